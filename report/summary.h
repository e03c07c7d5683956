/* A stored run turned into rows: one per cell, with estimate, rate, overhead over the floor. */
#ifndef PRONY_REPORT_SUMMARY_H
#define PRONY_REPORT_SUMMARY_H

#include <jansson.h>

#include "base/strbuf.h"
#include "stats/estimate.h"
#include "store/store.h"

struct summary_row {
	const struct stored_cell *cell; /* borrowed from the run */
	struct estimate step;           /* ns per step over ok processes */
	double items_per_second;        /* batch / step center; NaN without an estimate */
	double floor_ratio;             /* step / native's step of the same cell otherwise; NaN without */
	double floor_low, floor_high;   /* Welch interval of it */
	double to_first_step_ns;        /* median over processes; NaN without */
	double rss_peak_bytes;          /* median over processes; NaN without */
	double flops;                   /* 2 x MACs x (3 when training) / step; NaN without */
};

struct summary {
	struct arena arena;
	const struct stored_run *run;
	struct summary_row *rows;
	size_t count;
};

void summary_init(struct summary *summary, const struct stored_run *run);
void summary_release(struct summary *summary);

/* The table of `run` and `show`; rows of one comparison (network, dataset, stage, batch...) stand
 * together, ranked: ok cells by step time, then the others with their reason. Ends with the parity
 * line ("parity: 7 of 7 cells did the same work (worst ... of bound)"). */
void summary_render(const struct summary *summary, bool colour, int width, struct strbuf *out);

/* {"run": {...}, "cells": [...]}: documented in docs/results.md; new reference. */
json_t *summary_to_json(const struct summary *summary);

/* "1.234 ms", "12.3 us" with a number of digits that fits the half width; never wider than 10. */
void format_duration(double ns, char *out, size_t out_bytes);
void format_bytes(double bytes, char *out, size_t out_bytes);
void format_rate(double per_second, char *out, size_t out_bytes);

#endif
