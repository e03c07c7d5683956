#include "ceilings/ceilings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "ceilings/fma.h"
#include "ceilings/gpu.h"
#include "ceilings/matrix.h"
#include "ceilings/team.h"

#define SECOND_NS 1e9
enum { TIMES_MIN = 3 };

/* Each array is at least four times the last cache (McCalpin's rule for STREAM), within limits. */
#define TRIAD_BYTES_MIN ((size_t)64 << 20)
#define TRIAD_BYTES_MAX ((size_t)256 << 20)
/* All three arrays take at most 1 / TRIAD_MEMORY_PART of the machine's memory. */
#define TRIAD_MEMORY_PART 8

static enum prony_status measure_fma(const struct ceilings_settings *s, enum fma_type type,
				     struct ceiling *out, struct error *err)
{
	struct fma_kernel kernel;
	struct team_work work = {
		.cpus = s->cpus, .piece = fma_pieces, .data = &kernel, .times_min = TIMES_MIN};
	double one = NAN, all = NAN;
	enum prony_status status;

	if (!fma_kernel_find(type, &kernel)) {
		snprintf(out->absent, sizeof out->absent, "this processor lacks the instruction");
		return PRONY_OK;
	}
	work.count = 1;
	status = team_best(&work, s->each_ns, &one, err);
	work.count = s->cpu_count;
	if (status == PRONY_OK)
		status = team_best(&work, s->each_ns, &all, err);
	if (status != PRONY_OK)
		return status;
	if (kernel.wrong) {
		snprintf(out->absent, sizeof out->absent,
			 "the %s loop gave a wrong result, so its time is not used", kernel.name);
		return PRONY_OK;
	}
	out->one = kernel.flops / one * SECOND_NS;
	out->all = kernel.flops * s->cpu_count / all * SECOND_NS;
	snprintf(out->how, sizeof out->how, "%s", kernel.name);
	return PRONY_OK;
}

struct triad {
	double *a, *b, *c;
	size_t count; /* elements of each array */
	int threads;
	bool filled; /* false: the pass fills the arrays, so that each page is near the thread that
			uses it */
};

static void run_triad(void *data, size_t first, size_t end)
{
	static volatile double unknown = 3;
	struct triad *t = data;
	double scale = unknown, *a = t->a, *b = t->b, *c = t->c;
	size_t threads = (size_t)t->threads;
	size_t from = t->count / threads * first;
	size_t to = end == threads ? t->count : t->count / threads * end;

	for (size_t i = from; !t->filled && i < to; i++) {
		a[i] = 0;
		b[i] = 1;
		c[i] = 2;
	}
	for (size_t i = from; i < to; i++)
		a[i] = b[i] + scale * c[i];
}

static size_t triad_bytes(void)
{
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
	size_t bytes = cache > 0 ? 4 * (size_t)cache : TRIAD_BYTES_MIN;
	size_t room = (size_t)memory_physical_bytes() / TRIAD_MEMORY_PART / 3;

	bytes = bytes < TRIAD_BYTES_MIN ? TRIAD_BYTES_MIN : bytes;
	bytes = bytes > TRIAD_BYTES_MAX ? TRIAD_BYTES_MAX : bytes;
	return bytes > room ? room : bytes;
}

static enum prony_status time_triad(const struct ceilings_settings *s, struct triad *t, int threads,
				    double *out, struct error *err)
{
	struct team_work work = {
		.cpus = s->cpus, .count = threads, .piece = run_triad, .data = t, .times_min = 1};
	double best = NAN;
	enum prony_status status;

	t->threads = threads;
	t->filled = false;
	status = team_best(&work, 0, &best, err);
	t->filled = true;
	work.times_min = TIMES_MIN;
	if (status == PRONY_OK)
		status = team_best(&work, s->each_ns, &best, err);
	if (status == PRONY_OK)
		*out = 3.0 * (double)(t->count * sizeof(double)) / best * SECOND_NS;
	return status;
}

static enum prony_status measure_bandwidth(const struct ceilings_settings *s, struct ceiling *out,
					   struct error *err)
{
	size_t bytes = s->array_bytes ? s->array_bytes : triad_bytes();
	struct triad t = {.count = bytes / sizeof(double)};
	double *memory = malloc(3 * t.count * sizeof(double));
	enum prony_status status;

	if (!memory || t.count == 0) {
		free(memory);
		snprintf(out->absent, sizeof out->absent, "no memory for arrays of %zu MiB",
			 3 * t.count * sizeof(double) >> 20);
		return PRONY_OK;
	}
	t.a = memory;
	t.b = memory + t.count;
	t.c = memory + 2 * t.count;
	status = time_triad(s, &t, s->cpu_count, &out->all, err);
	if (status == PRONY_OK)
		status = time_triad(s, &t, 1, &out->one, err);
	bool right = t.a[0] == 7 && t.a[t.count / 2] == 7 && t.a[t.count - 1] == 7;
	free(memory);
	if (status == PRONY_OK && !right) {
		snprintf(out->absent, sizeof out->absent,
			 "the copy loop gave a wrong result, so its time is not used");
		out->one = out->all = NAN;
	}
	snprintf(out->how, sizeof out->how, "3 arrays of %zu MiB", t.count * sizeof(double) >> 20);
	return status;
}

enum prony_status ceilings_measure(const struct ceilings_settings *s, struct ceilings *out,
				   struct error *err)
{
	struct ceilings found = {
#define X(name, title, unit) .name = {.one = NAN, .all = NAN},
		CEILINGS(X) CEILINGS_GPU(X)
#undef X
	};
	enum prony_status status = measure_fma(s, FMA_FP32, &found.fma_fp32, err);

	if (status == PRONY_OK)
		status = measure_fma(s, FMA_BF16, &found.fma_bf16, err);
	if (status == PRONY_OK)
		status = measure_bandwidth(s, &found.bandwidth, err);
	if (status == PRONY_OK)
		matrix_measure(s, &found);
	if (status == PRONY_OK)
		gpu_measure(s, &found);
	if (status == PRONY_OK)
		*out = found;
	return status;
}

static json_t *ceiling_to_json(const struct ceiling *ceiling, const char *title, const char *unit)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:s, s:o}", "what", title, "unit", unit, "one",
			 json_number(ceiling->one), "all", json_number(ceiling->all), "how",
			 ceiling->how, "absent",
			 *ceiling->absent ? json_string(ceiling->absent) : json_null());
}

json_t *ceilings_to_json(const struct ceilings *ceilings, int cores)
{
	json_t *out = json_object();

	json_object_set_new(out, "cores", json_integer(cores));
#define X(name, title, unit)                                                                       \
	json_object_set_new(out, #name, ceiling_to_json(&ceilings->name, title, unit));
	CEILINGS(X)
	if (ceilings->has_gpu) {
		CEILINGS_GPU(X)
	}
#undef X
	return out;
}
