/* What benchmarks published that the built-in suites repeat (suites/published.tsv). */
#ifndef PRONY_REPORT_PUBLISHED_H
#define PRONY_REPORT_PUBLISHED_H

#include "base/arena.h"
#include "report/summary.h"

struct published_row {
	const char *suite;     /* that repeats it: "thesis" */
	const char *source;    /* "appendix A" */
	const char *year;      /* about */
	const char *hardware;  /* "2 x Tesla K20m" */
	const char *framework; /* spelled as ours: "tensorflow+nhwc+xla" */
	const char *network, *dataset;
	const char *device; /* "cpu", or what the source calls a GPU: "gpu-k20m-2" */
	const char *precision, *stage;
	int64_t batch;
	const char *metric; /* a row of PUBLISHED_METRICS */
	double value,
		spread; /* as printed; NaN: the value was not available, no spread was given */
};

/* X(word, samples a second out of value v and batch b; NaN: the metric is no speed) */
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

/* Reads the file, that of the installed suites for NULL (no rows where there is none).
 * PRONY_BAD_INPUT names file, line, column
 * and what is expected. After success published_release. */
enum prony_status published_load(const char *path, struct published *out, struct error *err);
void published_release(struct published *published);

/* Whether a row is about a cell of the run of that suite: framework (tensorflow-python is
 * TensorFlow, too), network and stage; batch, precision and device are the row's own and stand
 * beside it. */
bool published_matches(const struct published_row *row, const char *suite, const struct cell *cell);

/* NaN for a metric that is no speed, and where nothing was available. */
double published_samples_per_second(const struct published_row *row);

/* Adds a table of the run's speeds and the published ones beside them, for devices of the same kind
 * where there are such; nothing where nothing was published. */
void published_render(const struct published *published, const struct summary *summary, bool colour,
		      int width, struct strbuf *out);

#endif
