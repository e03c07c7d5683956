#include "samples/record.h"
#include "samples/disturbance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_INT FIELD_TYPE_INT
#define TYPE_REAL FIELD_TYPE_REAL
#define TYPE_TEXT16 FIELD_TYPE_TEXT
#define TYPE_TEXT128 FIELD_TYPE_TEXT
#define TYPE_TEXT1024 FIELD_TYPE_TEXT

const struct record_field process_fields[] = {
#define X(member, kind, unit_text, doc_text)                                                       \
	{.name = #member,                                                                          \
	 .unit = unit_text,                                                                        \
	 .doc = doc_text,                                                                          \
	 .type = TYPE_##kind,                                                                      \
	 .offset = offsetof(struct process_record, member),                                        \
	 .bytes = sizeof(((struct process_record *)0)->member)},
	PROCESS_FIELDS(X)
#undef X
};
const size_t process_field_count = sizeof process_fields / sizeof process_fields[0];

enum disturbance process_disturbance(const struct process_record *record)
{
	if (cell_flags_parse(record->flags) & CELL_FLAG_DISTURBED) {
		unsigned seen = disturbance_seen(record);
		return seen && !disturbance_by_others(seen) ? DISTURBANCE_NONE : DISTURBANCE_SEEN;
	}
	return isnan(record->foreign_share) ? DISTURBANCE_UNKNOWN : DISTURBANCE_NONE;
}

void process_record_init(struct process_record *record)
{
	*record = (struct process_record){.intervals = NULL};
	for (size_t i = 0; i < process_field_count; i++) {
		char *member = (char *)record + process_fields[i].offset;
		if (process_fields[i].type == FIELD_TYPE_INT)
			memcpy(member, &(int64_t){RECORD_NONE}, sizeof(int64_t));
		else if (process_fields[i].type == FIELD_TYPE_REAL)
			memcpy(member, &(double){NAN}, sizeof(double));
	}
}

void process_record_drop_samples(struct process_record *record)
{
	for (size_t i = 0; i < record->series_count; i++)
		series_release(&record->series[i]);
	free(record->series);
	free(record->intervals);
	free(record->rank_records);
	record->rank_records = NULL;
	record->rank_count = 0;
	record->series = NULL;
	record->series_count = 0;
	record->intervals = NULL;
	record->interval_count = 0;
}

void process_record_release(struct process_record *record)
{
	if (!record)
		return;
	process_record_drop_samples(record);
	free(record->log);
	record->log = NULL;
}

static enum prony_status check_intervals(const struct process_record *record, struct error *err)
{
	const struct step_record *row = record->intervals;

	if (record->interval_count == 0 || record->block_steps < 1)
		return error_set(err, PRONY_INVALID, "the window has no steps");
	for (size_t i = 0; i < record->interval_count; i++) {
		if (row[i].begin_ns < 0 || row[i].end_ns < row[i].begin_ns)
			return error_set(err, PRONY_INVALID,
					 "interval %zu of the window ends before it begins", i);
		if (i > 0 && row[i].begin_ns < row[i - 1].end_ns)
			return error_set(
				err, PRONY_INVALID,
				"interval %zu of the window begins before the previous one ends",
				i);
	}
	if (row[record->interval_count - 1].end_ns == row[0].begin_ns)
		return error_set(err, PRONY_INVALID, "the window has zero length");
	return PRONY_OK;
}

/* Steps of the whole window: the last block may hold fewer than the others. */
static enum prony_status count_steps(const struct process_record *record, int64_t *out,
				     struct error *err)
{
	int64_t blocks = (int64_t)record->interval_count, each = record->block_steps, most;

	if (__builtin_mul_overflow(blocks, each, &most))
		return error_set(err, PRONY_INVALID, "the window has too many steps");
	if (record->steps == RECORD_NONE) {
		*out = most;
		return PRONY_OK;
	}
	if (record->steps > most || record->steps <= most - each)
		return error_set(err, PRONY_INVALID,
				 "%lld steps do not fit %lld intervals of %lld steps",
				 (long long)record->steps, (long long)blocks, (long long)each);
	*out = record->steps;
	return PRONY_OK;
}

static int compare_reals(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Of sorted numbers, between the two neighbours (type 7 of Hyndman and Fan 1996). */
static double quantile(const double *x, size_t n, double p)
{
	double at = p * (double)(n - 1);
	size_t below = (size_t)at, above = below + 1 < n ? below + 1 : below;

	return x[below] + (at - (double)below) * (x[above] - x[below]);
}

/* Means of the window in blocks of about RECORD_BLOCK_NS, in ns per step, in order of time. Each
 * block joins equally many intervals. A remainder at the end is dropped, and so is a last interval
 * with fewer steps. NULL and 0 when there would be fewer than RECORD_BLOCKS_MIN blocks or memory
 * runs out. The caller frees the result. */
static double *process_record_blocks(const struct process_record *record, size_t *count)
{
	size_t n = record->interval_count;
	const struct step_record *row = record->intervals;

	*count = 0;
	if (n < RECORD_BLOCKS_MIN || record->block_steps < 1)
		return NULL;
	if (record->steps % record->block_steps)
		n--;
	double length = (double)(row[n - 1].end_ns - row[0].begin_ns) / (double)n;
	double wanted = length > 0 ? (double)RECORD_BLOCK_NS / length + 0.5 : (double)n;
	size_t each = wanted < 2 ? 1 : wanted < (double)n ? (size_t)wanted : n, joined = n / each;
	double *blocks = joined < RECORD_BLOCKS_MIN ? NULL : malloc(joined * sizeof *blocks);
	if (!blocks)
		return NULL;
	for (size_t i = 0; i < joined; i++)
		blocks[i] = (double)(row[(i + 1) * each - 1].end_ns - row[i * each].begin_ns) /
			    ((double)each * (double)record->block_steps);
	*count = joined;
	return blocks;
}

/* NaN where there are too few blocks. */
static double undisturbed(const struct process_record *record)
{
	size_t count;
	double *blocks = process_record_blocks(record, &count);

	if (!blocks)
		return NAN;
	qsort(blocks, count, sizeof *blocks, compare_reals);
	double value = quantile(blocks, count, RECORD_UNDISTURBED_P);
	free(blocks);
	return value;
}

enum prony_status process_record_summarise(struct process_record *record, int64_t timed_ns,
					   struct error *err)
{
	int64_t steps = 0;
	enum prony_status status = check_intervals(record, err);

	if (status == PRONY_OK)
		status = count_steps(record, &steps, err);
	if (status != PRONY_OK)
		return status;

	size_t n = record->interval_count;
	double *means = malloc(n * sizeof *means);
	if (!means)
		return error_set(err, PRONY_NOMEM, "no memory for %zu intervals", n);
	double sum = 0, squares = 0;
	for (size_t i = 0; i < n; i++) {
		int64_t in_block = record->block_steps;
		if (i + 1 == n)
			in_block = steps - (int64_t)(n - 1) * record->block_steps;
		means[i] = (double)(record->intervals[i].end_ns - record->intervals[i].begin_ns) /
			   (double)in_block;
		sum += means[i];
	}
	/* Use two passes: the difference of two large sums would lose a small spread. */
	for (size_t i = 0; i < n; i++)
		squares += (means[i] - sum / (double)n) * (means[i] - sum / (double)n);
	qsort(means, n, sizeof *means, compare_reals);

	record->steps = steps;
	record->blocks = (int64_t)n;
	record->window_ns = record->intervals[n - 1].end_ns - record->intervals[0].begin_ns;
	record->step_mean_ns = (double)timed_ns / (double)steps;
	record->step_median_ns = quantile(means, n, 0.5);
	/* For a block only the mean is known, which says nothing about its slowest step. */
	record->step_p90_ns = record->block_steps == 1 ? quantile(means, n, 0.9) : NAN;
	record->step_p99_ns = record->block_steps == 1 ? quantile(means, n, 0.99) : NAN;
	record->step_min_ns = means[0];
	record->step_max_ns = means[n - 1];
	record->step_undisturbed_ns = undisturbed(record);
	record->step_sd_ns = n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
	free(means);
	return PRONY_OK;
}
