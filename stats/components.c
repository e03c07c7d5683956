#include "stats/components.h"

#include <math.h>

enum { BATCHES = 10 };

/* Variance of the logarithm of a window's mean. */
static double variance_of_mean(const struct diagnosed_process *process)
{
	size_t each = process->block_count / BATCHES;
	double batches[BATCHES], mean = 0, squares = 0;

	for (size_t i = 0; i < BATCHES; i++) {
		double sum = 0;
		for (size_t k = 0; k < each; k++)
			sum += process->blocks[i * each + k];
		batches[i] = log(sum / (double)each);
		mean += batches[i] / BATCHES;
	}
	for (size_t i = 0; i < BATCHES; i++)
		squares += (batches[i] - mean) * (batches[i] - mean);
	return squares / (BATCHES - 1) / BATCHES;
}

/* Variance of the estimate multiplied by its time. */
static double variance_time(const struct components *c, double window_s)
{
	return (fmax(c->between, 0) + c->within / window_s) * (c->cost_s + window_s);
}

void components_of(const struct diagnosed_process *processes, size_t count, double window_s,
		   double cost_s, struct components *out)
{
	double noise = 0, mean = 0, squares = 0;
	size_t n = 0;

	*out = (struct components){NAN, NAN, NAN, NAN, NAN, NAN};
	for (size_t i = 0; i < count; i++) {
		if (processes[i].block_count < DIAGNOSED_BLOCKS_MIN)
			continue;
		double value = log(processes[i].mean), off = value - mean;
		n++;
		noise += variance_of_mean(&processes[i]);
		mean += off / (double)n; /* Welford 1962 */
		squares += off * (value - mean);
	}
	if (n < 2 || !(window_s > 0) || !(cost_s > 0))
		return;
	noise /= (double)n;
	out->within = noise * window_s;
	out->between = squares / (double)(n - 1) - noise;
	out->window_s = window_s;
	out->cost_s = cost_s;
	/* Without variance between processes the longest windows are best. */
	double best = out->between > 0 ? sqrt(cost_s * out->within / out->between) : INFINITY;
	out->best_s = fmin(fmax(best, COMPONENTS_WINDOW_MIN_S), COMPONENTS_WINDOW_MAX_S);
	out->error_ratio = sqrt(variance_time(out, out->best_s) / variance_time(out, window_s));
}
