/* Private to the gate: declarations that its sources share. */
#ifndef PRONY_PARITY_GATE_INTERNAL_H
#define PRONY_PARITY_GATE_INTERNAL_H

#include "parity/gate.h"

/* Every operation on a stored number rounds it by at most half a unit in the last place of fp32. */
#define STORED_ROUNDOFF 0x1p-24

/* Judges the figure and adds it to the verdict. */
void gate_add_check(struct gate_verdict *verdict, struct gate_check check);

/* Returns element i of an F32 or F64 tensor. */
double gate_element(const struct tensor *tensor, int64_t i);
double gate_norm(const struct tensor *tensor);
/* Returns why a tensor cannot be compared; NULL if it can. */
const char *gate_incomparable(const struct tensor *observed, const struct tensor *expected);

/* Sets the slack of the answer: how far `other`, rounded and with its comparisons turned, moves
 * every figure. */
void gate_set_slack(struct gate_expected *expected, const struct gate_expected *other);

/* For each step, how much farther a rounded run moves the logits than in the first step; at least
 * 1. */
void gate_amplification(const struct gate_expected *expected, const struct gate_expected *other,
			double amplified[GATE_UPDATES]);

/* The gradients of the updates of RMSprop or AdamW in two runs, by step * values + value. */
struct gate_updates {
	const struct recipe *recipe;
	bool epsilon_inside;
	int values; /* number of values of the graph */
	float *const *exact, *const *other;
};

/* Adds the possible effect of the gradients' differences on each update. Call it after
 * gate_set_slack. */
void gate_widen_by_updates(struct gate_expected *expected, const struct graph *graph,
			   const struct gate_updates *updates);

/* Returns AdamW's largest update of a weight in step `steps`, in units of the rate, if its gradient
 * in step i lies between low[i] and high[i]; steps <= GATE_UPDATES. The smallest is minus the
 * largest of -high to -low. */
double gate_adam_most(const struct recipe *recipe, int steps, const double *low,
		      const double *high);

/* Returns true if the updates themselves move a network so far from the exact one that comparisons
 * after them need another distance; false if there are none. */
bool gate_amplifies(const struct recipe *gate, const struct graph *graph);
/* Returns true if the effect of rounding is measured (rounding_measure) instead of counted. */
bool gate_measures_rounding(const struct recipe *gate, const struct graph *graph);

/* Checks the running statistics, with the variance of n or n - 1. `before` has the initial
 * statistics (F32). */
void gate_check_state(struct gate_verdict *verdict, const struct graph *graph,
		      const struct gate_expected *expected, const struct tensor_set *before,
		      const struct tensor_set *observed, double bound);
/* Checks what the steps wrote into caches. */
void gate_check_caches(struct gate_verdict *verdict, const struct graph *graph,
		       const struct gate_expected *expected, const struct tensor_set *observed,
		       double bound);

#endif
