/*
 * Measures the harness's overhead per step: the null adapter under each sync mode, within a bound.
 */
#include <stdio.h>
#include <stdlib.h>

#include "adapters/null.h"
#include "worker/loop.h"

#define STEPS 100000
#define REPEATS 21
/* The whole budget of the loop: two indirect calls, and for sync "step" one clock reading. */
#define STEP_NS_MAX 200.0

static struct step_record records[STEPS];

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the median over repeats: nanoseconds per step. */
static double cost_ns(int64_t every)
{
	struct session session = {.option = ""};
	struct loop_plan plan = {.steps = STEPS, .every = every, .slots = 8};
	struct error err = ERROR_INIT;
	double costs[REPEATS];

	for (int i = 0; i < REPEATS; i++) {
		if (loop_run(&adapter_null, &session, &plan, records, &err) != PRONY_OK)
			exit(EXIT_FAILURE);
		int64_t spent_ns = records[loop_records(&plan) - 1].end_ns - records[0].begin_ns;
		costs[i] = (double)spent_ns / STEPS;
	}
	qsort(costs, REPEATS, sizeof costs[0], compare);
	return costs[REPEATS / 2];
}

int main(void)
{
	double end_ns = cost_ns(STEPS), step_ns = cost_ns(1), blocks_ns = cost_ns(100);

	printf("null adapter, ns per step (at most %.0f): sync end %.1f, step %.1f, blocks of 100 "
	       "%.1f\n",
	       STEP_NS_MAX, end_ns, step_ns, blocks_ns);
	return end_ns <= STEP_NS_MAX && step_ns <= STEP_NS_MAX && blocks_ns <= STEP_NS_MAX
		       ? EXIT_SUCCESS
		       : EXIT_FAILURE;
}
