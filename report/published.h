/* Figures published by the benchmarks that the built-in suites repeat (suites/published.tsv). */
#ifndef PRONY_REPORT_PUBLISHED_H
#define PRONY_REPORT_PUBLISHED_H

#include "base/arena.h"
#include "report/summary.h"

struct published_row {
	const char *suite;     /* the suite that repeats the benchmark: "thesis" */
	const char *source;    /* "appendix A" */
	const char *year;      /* approximate */
	const char *hardware;  /* "2 x Tesla K20m" */
	const char *framework; /* in prony's spelling: "tensorflow+nhwc+xla" */
	const char *network, *dataset;
	const char *device; /* "cpu", or the source's name of a GPU: "gpu-k20m-2" */
	const char *precision, *stage;
	int64_t batch;
	const char *metric; /* a word of PUBLISHED_METRICS */
	double value,
		spread; /* as printed; NaN: the value was not available, or no spread was given */
};

/* X(word, samples per second computed from value v and batch b; NaN: the metric is not a speed) */
#define PUBLISHED_METRICS(X)                                                                       \
	X("images_per_second", (v))                                                                \
	X("milliseconds_per_step", (b) / ((v)*1e-3))                                               \
	X("seconds_per_step", (b) / (v))                                                           \
	X("gpu_memory_mib", NAN *(b))                                                              \
	X("gpu_power_w", NAN *(b))

struct published {
	struct arena arena;
	struct published_row *rows; /* in the order of the file */
	size_t count;
};

/* Reads the file; NULL: that of the installed suites (a missing file gives no rows).
 * PRONY_BAD_INPUT names file, line, column and what is expected. Call published_release after
 * success. */
enum prony_status published_load(const char *path, struct published *out, struct error *err);
void published_release(struct published *published);

/* Whether a row is about a cell of a run of that suite: equal framework (tensorflow-python counts
 * as TensorFlow), network and stage. Batch, precision and device need not match; they are shown
 * beside the row. */
bool published_matches(const struct published_row *row, const char *suite, const struct cell *cell);

/* Returns NaN if the metric is not a speed or the value was not available. */
double published_samples_per_second(const struct published_row *row);

/* Adds a table of the run's speeds with the published ones beside them, for devices of the same
 * kind if there are any; nothing if nothing was published. */
void published_render(const struct published *published, const struct summary *summary, bool colour,
		      int width, struct strbuf *out);

#endif
