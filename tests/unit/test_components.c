/* Tests variance components on simulated machines, and the gain of windows retuned by them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "stats/components.h"

static void between(const char *what, double found, double low, double high)
{
	print_message("%s: %.4f\n", what, found);
	if (!(found >= low && found <= high))
		fail_msg("%s: %.4f is not between %g and %g", what, found, low, high);
}

/* A simulated machine for splits: variance per second of a window, between processes, and time
 * outside the window. */
struct machine {
	double within, between, cost_s; /* standard deviations at 1 s; seconds */
	double gained;			/* error with windows retuned / with those of 10 s */
};

enum { LOOKS = 5, BLOCKS_A_SECOND = 10, SPLIT_BLOCKS_MAX = 1200, RUN_PROCESSES_MAX = 2000 };

static double split_process(struct random *random, const struct machine *machine, double window_s,
			    double *blocks, size_t *count)
{
	double level = exp(machine->between * random_normal(random)), sum = 0;
	double spread = machine->within * sqrt(BLOCKS_A_SECOND);

	*count = (size_t)(window_s * BLOCKS_A_SECOND);
	for (size_t i = 0; i < *count; i++) {
		blocks[i] = level * exp(spread * random_normal(random));
		sum += blocks[i];
	}
	return sum / (double)*count;
}

/* Returns the ratio of the standard errors of the mean logarithm of process means in the same time,
 * windows retuned after LOOKS processes to fixed ones; below 1: retuning is better. */
static double retuned_error(uint64_t seed, const struct machine *machine, double window_s)
{
	enum { TRIALS = 400, PROCESSES = 12 };
	static double blocks[LOOKS][SPLIT_BLOCKS_MAX];
	struct random random;
	double squares[2] = {0, 0};
	const double budget_s = PROCESSES * (window_s + machine->cost_s);

	random_init(&random, seed);
	for (int trial = 0; trial < TRIALS; trial++)
		for (int retune = 0; retune < 2; retune++) {
			struct diagnosed_process processes[LOOKS];
			struct components found;
			double wanted = window_s, left = budget_s, sum = 0, weights = 0;
			for (int i = 0; i < RUN_PROCESSES_MAX && left >= wanted + machine->cost_s;
			     i++) {
				size_t count, place = (size_t)i % LOOKS;
				double mean = split_process(&random, machine, wanted, blocks[place],
							    &count);
				if (i < LOOKS)
					processes[i] = (struct diagnosed_process){i + 1, mean, NAN,
										  blocks[i], count};
				left -= wanted + machine->cost_s;
				sum += log(mean);
				weights += 1;
				if (!retune || i + 1 != LOOKS)
					continue;
				components_of(processes, LOOKS, window_s, machine->cost_s, &found);
				wanted = fmin(found.best_s, left - machine->cost_s);
			}
			squares[retune] += (sum / weights) * (sum / weights);
		}
	return sqrt(squares[1] / squares[0]);
}

/* The components are found; windows retuned by the components of five processes change the error as
 * expected. */
static void splits_follow_the_variance(void **state)
{
	static const struct machine machines[] = {
		{0.01, 0.007, 2, 1.01}, {0.02, 0.002, 5, 1.13}, {0.003, 0.03, 2, 0.59}};
	enum { MANY = 400 };
	static double blocks[MANY][100];
	struct diagnosed_process processes[MANY];
	struct components found;
	struct random random;

	(void)state;
	random_init(&random, 30);
	for (size_t i = 0; i < MANY; i++) {
		size_t count;
		double mean = split_process(&random, &machines[0], 10, blocks[i], &count);
		processes[i] =
			(struct diagnosed_process){(double)i + 1, mean, NAN, blocks[i], count};
	}
	components_of(processes, MANY, 10, machines[0].cost_s, &found);
	between("within, of 1 % at 1 s", sqrt(found.within), 0.0095, 0.0105);
	between("between, of 0.7 %", sqrt(found.between), 0.0063, 0.0077);
	between("best window / 2.02 s", found.best_s / 2.02, 0.8, 1.25);
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
		double gained = retuned_error(31 + i, &machines[i], 10);
		between("error with windows retuned / 10 s", gained, machines[i].gained - 0.1,
			machines[i].gained + 0.1);
	}
}

static void too_little_says_nothing(void **state)
{
	static const double blocks[DIAGNOSED_BLOCKS_MIN - 1] = {1};
	const struct diagnosed_process processes[2] = {
		{1, 1, NAN, blocks, DIAGNOSED_BLOCKS_MIN - 1}, {2, 1, NAN, NULL, 0}};
	struct components found;

	(void)state;
	components_of(processes, 2, 10, 2, &found);
	assert_true(isnan(found.within) && isnan(found.best_s) && isnan(found.error_ratio));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_follow_the_variance),
		cmocka_unit_test(too_little_says_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
