/* Functions shared by the benchmark forms; private to report/. */
#ifndef PRONY_REPORT_FORM_INTERNAL_H
#define PRONY_REPORT_FORM_INTERNAL_H

#include "report/form.h"

#define FORM_NS 1e-9 /* seconds */

/* Returns process p of a cell if the cell may be shown and the process ended ok; else NULL. */
const struct process_record *form_process(const struct stored_cell *cell, size_t p);

/* Adds "# tensorflow 2.21.0, alexnet-tf, batch 128, cpu, fp32, process 1 of 3"; cells without a
 * good process get their status and reason instead. */
void form_heading(const struct stored_cell *cell, size_t p, struct strbuf *out);

/* Returns the seconds of step i of a process with one-by-one steps (--sync step). */
double form_step(const struct process_record *record, size_t i);
/* Whether the process has them; if not, adds a line about it. */
bool form_has_steps(const struct process_record *record, struct strbuf *out);

/* Returns the seconds of the timed steps of a process; record->steps is their number. */
double form_timed(const struct process_record *record);
/* Returns total images per second, the mean over processes; NaN without one. */
double form_total_speed(const struct stored_cell *cell);

/* Print one process, and what follows all processes. */
void form_alexnet(const struct stored_cell *cell, const struct process_record *record,
		  const struct form_layers *layers, struct strbuf *out);
void form_cnn(const struct stored_cell *cell, const struct process_record *record,
	      struct strbuf *out);
void form_cnn_tables(const struct stored_run *run, struct strbuf *out);

#endif
