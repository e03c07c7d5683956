/* Comparison of two runs, or of two frameworks of one run: which cells match, how much slower B is
 * than A, and what else differs (docs/results.md). */
#ifndef PRONY_REPORT_COMPARE_H
#define PRONY_REPORT_COMPARE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "report/labels.h"
#include "stats/contrast.h"
#include "stats/estimate.h"
#include "store/store.h"

#define COMPARE_THRESHOLD 0.01 /* default: differences within 1 % count as equal */

/*
 * One side of a comparison: all cells of a run, or those of one framework (its canonical spelling).
 */
struct compare_side {
	const struct stored_run *run; /* borrowed */
	const char *framework;	      /* NULL: all */
};

#define COMPARE_NOISE_DAYS 30 /* a floor measured longer ago is reported as old */

struct compare_settings {
	double threshold; /* for verdicts; NaN: COMPARE_THRESHOLD, or the noise if larger */
	bool force;	  /* judge disturbed cells like others */
	/* Whether a cell is compared; NULL: all are. */
	bool (*wanted)(const struct stored_cell *cell, void *context);
	void *context;
};

/* A cell of A and the matching cell of B, or only one of them if none matches. */
struct compare_row {
	const struct stored_cell *a, *b;  /* borrowed; NULL: no such cell */
	struct estimate step_a, step_b;	  /* ns; n = 0 if the cell has no figures */
	struct contrast contrast;	  /* B over A */
	struct contrast undisturbed;	  /* the same ratio for undisturbed steps; NaN if unknown */
	enum verdict undisturbed_verdict; /* verdict of that ratio alone; for information only */
	/* Of the hypothesis "not off by more than the threshold"; NaN if not tested. */
	double p, p_adjusted;
	bool judged; /* both have figures, so the verdict is valid */
	/* Whether processes that count were disturbed (report/replicates.h). */
	bool disturbed_a, disturbed_b;
	enum verdict verdict;
	size_t needed; /* processes of each side needed for a decision; 0: not asked, or unknown */
	const char *reason; /* why the row is not judged or is inconclusive; else "" */
};

/* The importance of a difference between two machines. */
enum difference_kind { DIFFERENCE_MUST, DIFFERENCE_SHOULD, DIFFERENCE_INFORMATIONAL };
#define DIFFERENCE_KINDS 3

struct compare_difference {
	enum difference_kind kind;
	const char *what, *a, *b; /* texts; "null" if unknown */
};

struct compare {
	struct arena arena;
	struct compare_side a, b;
	double threshold;
	/* `apart` and the floor of stats/noise.h, the larger of both machines; NaN: not measured */
	double noise, noise_floor;
	const char *noise_measured_at; /* time of the floor's measurement, UTC; NULL without */
	double noise_age_days; /* days from the floor's measurement to its run; NaN without */
	/* What has changed since the floor's measurement, "kernel: then 6.1, now 6.8"; NULL:
	 * nothing, or unknown. */
	const char *noise_elsewhere;
	bool paired;		  /* both sides have the same rounds of one run */
	bool full;		  /* set it to write all cells of one side and all differences */
	struct compare_row *rows; /* matched rows, then those of A only, then those of B only */
	size_t count, matched, only_a, only_b;
	size_t verdicts[VERDICT_COUNT]; /* of judged rows */
	size_t broken;			/* ok in A but not in B */
	size_t hypotheses;		/* rows with a p */
	struct contrast overall;	/* geometric mean of the judged rows' ratios */
	struct compare_difference *differences;
	size_t difference_count, of_kind[DIFFERENCE_KINDS];
	struct labels labels; /* the axes that distinguish the matched rows */
};

void compare_init(struct compare *compare, const struct compare_side *a,
		  const struct compare_side *b, const struct compare_settings *settings);
void compare_release(struct compare *compare);

/* Adds the must-match differences of two machine records as one sentence, "cores (2 and 8), ...";
 * false if there are none, and nothing is added. */
bool compare_machines(const char *environment_a, const char *environment_b, struct strbuf *out);
/* The same for a comparison, including the settings that took effect in its cells. */
bool compare_obstacles(const struct compare *compare, struct strbuf *out);

/* Adds the differences between a machine record and the conditions stored with its noise floor:
 * "kernel: then 6.1, now 6.8; governor: ...". False if there are none or they are unknown, and
 * nothing is added. */
bool compare_noise_elsewhere(const json_t *record, struct strbuf *out);

/* Returns the verdict of the whole: SLOWER if any row is, else INCONCLUSIVE if any is, else FASTER
 * if any is, else SAME; INCONCLUSIVE if no row is judged. */
enum verdict compare_verdict(const struct compare *compare);

void compare_render(const struct compare *compare, bool colour, int width, struct strbuf *out);
void compare_markdown(const struct compare *compare, struct strbuf *out);
/* Writes a row per cell, including cells of one side only. */
void compare_csv(const struct compare *compare, struct strbuf *out);
/* Returns the comparison as JSON, a new reference; docs/exports.md describes every member. */
json_t *compare_to_json(const struct compare *compare);

#endif
