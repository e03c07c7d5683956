/* Private to the gate: what its sources share. */
#ifndef PRONY_PARITY_GATE_INTERNAL_H
#define PRONY_PARITY_GATE_INTERNAL_H

#include "parity/gate.h"

/* Every operation on a stored number rounds it: half a unit in the last place of fp32 at most. */
#define STORED_ROUNDOFF 0x1p-24

/* Judges the figure and adds it. */
void gate_add_check(struct gate_verdict *verdict, struct gate_check check);

/* Element of an F32 or F64 tensor. */
double gate_element(const struct tensor *tensor, int64_t i);
double gate_norm(const struct tensor *tensor);
/* Why a tensor cannot be compared; NULL when it can. */
const char *gate_incomparable(const struct tensor *observed, const struct tensor *expected);

/* Of the answer, how far `other`, rounded and with its comparisons turned, moves every figure. */
void gate_set_slack(struct gate_expected *expected, const struct gate_expected *other);

/*
 * How many times as far the logits of each step are moved as those of the first, by a run that is
 * rounded; at least once.
 */
void gate_amplification(const struct gate_expected *expected, const struct gate_expected *other,
			double amplified[GATE_UPDATES]);

/* The gradients that RMSprop's updates were made of, by step * values + value, in two runs. */
struct gate_updates {
	const struct recipe *recipe;
	bool epsilon_inside;
	int values; /* of the graph */
	float *const *exact, *const *other;
};

/* After gate_set_slack: adds what the gradients' differences can do to each update. */
void gate_widen_by_updates(struct gate_expected *expected, const struct graph *graph,
			   const struct gate_updates *updates);

bool gate_normalises_by_batch(const struct graph *graph);
/* Whether what rounding does is measured (rounding_measure) rather than counted. */
bool gate_measures_rounding(const struct recipe *gate, const struct graph *graph);

/* Running statistics, with the variance of n or n - 1; `before` are those at the start (F32). */
void gate_check_state(struct gate_verdict *verdict, const struct graph *graph,
		      const struct gate_expected *expected, const struct tensor_set *before,
		      const struct tensor_set *observed, double bound);

#endif
