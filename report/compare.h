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

#define COMPARE_THRESHOLD 0.01 /* without another: what lies within 1 % is the same */

/* One of the two: all cells of a run, or those of one framework (its canonical spelling). */
struct compare_side {
	const struct stored_run *run; /* borrowed */
	const char *framework;	      /* NULL: all */
};

#define COMPARE_NOISE_DAYS 30 /* a floor that was measured earlier is said to be old */

struct compare_settings {
	double threshold; /* of verdicts; NaN: COMPARE_THRESHOLD, or the noise if larger */
	bool force;	  /* disturbed cells are judged as others are */
	/* Which cells are meant; NULL: all. */
	bool (*wanted)(const struct stored_cell *cell, void *context);
	void *context;
};

/* A cell of A and the one of B that matches it; only one of them where nothing does. */
struct compare_row {
	const struct stored_cell *a, *b;  /* borrowed; NULL: there is none */
	struct estimate step_a, step_b;	  /* ns; n = 0 where it has no figures */
	struct contrast contrast;	  /* B over A */
	struct contrast undisturbed;	  /* the same of undisturbed steps; ratio NaN without */
	enum verdict undisturbed_verdict; /* of that alone; it decides nothing */
	double p, p_adjusted;		  /* of "not off by more than the threshold"; NaN without */
	bool judged;			  /* both have figures: the verdict means something */
	bool disturbed_a, disturbed_b;	  /* processes that count were (report/replicates.h) */
	enum verdict verdict;
	size_t needed;	    /* processes of each that would decide; 0: not asked, or unknown */
	const char *reason; /* why it is not judged, or is inconclusive; "" */
};

/* How important a difference between two machines is. */
enum difference_kind { DIFFERENCE_MUST, DIFFERENCE_SHOULD, DIFFERENCE_INFORMATIONAL };
#define DIFFERENCE_KINDS 3

struct compare_difference {
	enum difference_kind kind;
	const char *what, *a, *b; /* texts; "null" for what is not known */
};

struct compare {
	struct arena arena;
	struct compare_side a, b;
	double threshold;
	/* stats/noise.h: `apart` and the floor, the larger ones of both machines; NaN: not measured
	 */
	double noise, noise_floor;
	const char *noise_measured_at; /* the floor's time, UTC; NULL without */
	double noise_age_days;	       /* then, from it to the run that has it; NaN without */
	/* "kernel: then 6.1, now 6.8": what was otherwise then; NULL: nothing, or it is not known
	 */
	const char *noise_elsewhere;
	bool paired;		  /* cells of the same rounds of one run */
	struct compare_row *rows; /* matched ones, then those of A only, then those of B only */
	size_t count, matched, only_a, only_b;
	size_t verdicts[VERDICT_COUNT]; /* of judged rows */
	size_t broken;			/* ok in A, not in B */
	size_t hypotheses;		/* rows with a p */
	struct contrast overall;	/* geometric mean of the judged rows' ratios */
	struct compare_difference *differences;
	size_t difference_count, of_kind[DIFFERENCE_KINDS];
	struct labels labels; /* what tells the matched rows apart */
};

void compare_init(struct compare *compare, const struct compare_side *a,
		  const struct compare_side *b, const struct compare_settings *settings);
void compare_release(struct compare *compare);

/* Must-match differences of two records of machines as one sentence, "cores (2 and 8), ..."; false,
 * and nothing added, when there are none. */
bool compare_machines(const char *environment_a, const char *environment_b, struct strbuf *out);
/* The same of a comparison, with what took effect in its cells. */
bool compare_obstacles(const struct compare *compare, struct strbuf *out);

/* "kernel: then 6.1, now 6.8; governor: ...": what the record of a machine says otherwise than was
 * written down with its noise floor; false, and nothing added, when there is nothing or it is not
 * known. */
bool compare_noise_elsewhere(const json_t *record, struct strbuf *out);

/* "SLOWER", "SAME"... of the whole: SLOWER where any is, INCONCLUSIVE where any is left, FASTER
 * where any is. */
enum verdict compare_verdict(const struct compare *compare);

void compare_render(const struct compare *compare, bool colour, int width, struct strbuf *out);
void compare_markdown(const struct compare *compare, struct strbuf *out);
/* A row per cell, those of one side only included. */
void compare_csv(const struct compare *compare, struct strbuf *out);
/* docs/exports.md describes every member; new reference. */
json_t *compare_to_json(const struct compare *compare);

#endif
