#include "stats/steady.h"

#include <math.h>

#define TRAILING_MIN_NS (STEADY_MIN_NS / 2)
#define STEPS_MIN 10
#define BLOCKS_MIN 4
#define DRIFT_MAX 0.02

/* A straight line fitted by least squares. */
struct line {
	double mean, slope, slope_error;
};

static double block_time(const struct step_record *block, int64_t origin_ns)
{
	/* Subtract the origin: squares of times since boot would lose digits. */
	return (double)(block->begin_ns - origin_ns) / 2 + (double)(block->end_ns - origin_ns) / 2;
}

static double block_mean(const struct step_record *block, int64_t steps)
{
	return (double)(block->end_ns - block->begin_ns) / (double)steps;
}

/* count >= 3; false when all blocks lie at one time. */
static bool fit(const struct step_record *blocks, const int64_t *steps, size_t count,
		struct line *out)
{
	int64_t origin_ns = blocks[0].begin_ns;
	double time = 0, mean = 0, xx = 0, xy = 0, residual = 0;

	for (size_t i = 0; i < count; i++) {
		time += block_time(&blocks[i], origin_ns) / (double)count;
		mean += block_mean(&blocks[i], steps[i]) / (double)count;
	}
	for (size_t i = 0; i < count; i++) {
		double x = block_time(&blocks[i], origin_ns) - time;
		xx += x * x;
		xy += x * (block_mean(&blocks[i], steps[i]) - mean);
	}
	if (!(xx > 0))
		return false;
	double slope = xy / xx;
	for (size_t i = 0; i < count; i++) {
		double x = block_time(&blocks[i], origin_ns) - time;
		double off = block_mean(&blocks[i], steps[i]) - mean - slope * x;
		residual += off * off;
	}
	*out = (struct line){.mean = mean,
			     .slope = slope,
			     .slope_error = sqrt(residual / (double)(count - 2) / xx)};
	return true;
}

bool steady_reached(const struct step_record *blocks, const int64_t *block_steps, size_t count,
		    int64_t window_ns)
{
	if (count < BLOCKS_MIN)
		return false;
	int64_t end_ns = blocks[count - 1].end_ns, trailing_ns = (end_ns - blocks[0].begin_ns) / 2;
	int64_t steps = 0;
	if (trailing_ns < TRAILING_MIN_NS)
		return false;
	size_t first = count;
	for (size_t i = 0; i < count; i++) {
		if (block_steps[i] < 1)
			return false;
		/* Stop adding early, so that hostile counts cannot overflow. */
		if (steps < STEPS_MIN)
			steps += block_steps[i] < STEPS_MIN ? block_steps[i] : STEPS_MIN;
		if (first == count && blocks[i].begin_ns >= end_ns - trailing_ns)
			first = i;
	}
	if (steps < STEPS_MIN || count - first < BLOCKS_MIN)
		return false;
	struct line line;
	if (!fit(blocks + first, block_steps + first, count - first, &line) || !(line.mean > 0))
		return false;
	double drift = (fabs(line.slope) + 2 * line.slope_error) * (double)window_ns / line.mean;
	return drift <= DRIFT_MAX;
}
