/* An exercise that is judged by the parity gate: for precisions whose rounding decides comparisons
 * otherwise than float64, which fixed bounds cannot tell from a wrong gradient. */
#ifndef PRONY_TESTS_UNIT_FRAMEWORK_GATE_H
#define PRONY_TESTS_UNIT_FRAMEWORK_GATE_H

#include "framework_exercise.h"

/* What is done otherwise than asked, once the reference is computed. */
struct gate_mutant {
	const char *what;
	double rate;	   /* factor of the learning rate; 0 = 1 */
	bool no_momentum;  /* plain SGD */
	const char *still; /* a tensor that stays as it was */
};

/*
 * Runs the gate on the recipe as it stands. PRONY_OK where it passes; with a mutant (NULL = none)
 * where it does not. Ends the process with 77 where the library lacks the precision.
 */
enum prony_status exercise_gate(struct exercise *exercise, const struct gate_mutant *mutant,
				struct error *err);

/* Whether the precision can be had; says why not on standard output. */
bool exercise_has_precision(const struct adapter *adapter, const char *library,
			    enum precision precision);

#endif
