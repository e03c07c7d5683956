/* An exercise judged by the parity gate. It is for precisions whose rounding decides comparisons
 * differently from float64: fixed bounds cannot distinguish that from a wrong gradient. */
#ifndef PRONY_TESTS_UNIT_FRAMEWORK_GATE_H
#define PRONY_TESTS_UNIT_FRAMEWORK_GATE_H

#include "framework_exercise.h"

/* Deviations from the recipe, applied after the reference has been computed. */
struct gate_mutant {
	const char *what;
	double rate;	   /* factor of the learning rate; 0 = 1 */
	bool no_momentum;  /* plain SGD */
	const char *still; /* a tensor that is not updated */
};

/* Runs the gate on the current recipe. Returns PRONY_OK if the gate passes; with a mutant (NULL =
 * none) if the gate rejects it. Exits with 77 if the library lacks the precision. */
enum prony_status exercise_gate(struct exercise *exercise, const struct gate_mutant *mutant,
				struct error *err);

/* Returns whether the precision is available; prints the reason to standard output if not. */
bool exercise_has_precision(const struct adapter *adapter, const char *library,
			    enum precision precision);

#endif
