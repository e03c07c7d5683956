/* What the gate found, figure by figure. */
#ifndef PRONY_PARITY_GATE_VERDICT_H
#define PRONY_PARITY_GATE_VERDICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* One figure with its bound. Texts are borrowed: a tensor's name from the gate's reference. */
struct gate_check {
	const char *what, *tensor; /* tensor: NULL where it is of none */
	int step;		   /* -1: of the whole */
	double value, bound;	   /* value: NAN where it cannot be computed */
	double ratio;	    /* how many times the reference it is, along itself; 0: not known */
	const char *reason; /* why it cannot be computed, as in "missing"; else NULL */
	bool passed;
};

/* Of the answers that are correct (gate_reference), the one that fits best. */
struct gate_verdict {
	struct arena *arena; /* that the figures are in */
	struct gate_check *checks;
	size_t count, worst; /* worst: index of the figure that is largest in units of its bound */
	double worst_ratio;  /* that many */
	bool passed;
	int64_t parameters, macs; /* as the framework counts; -1: it cannot say */
	int64_t batch, kinks, turned;
	double learning_rate;	      /* NAN: nothing is trained */
	const char *precision_proved; /* that the logits show (bounds.h); NULL: they could not be
					 compared */
	const char *rmsprop_epsilon;  /* "inside", "outside"; NULL: there is no choice */
	const char *running_variance; /* "n", "n-1", "not read"; NULL: there is none */
};

#define GATE_CHECK_BYTES 400
/* "change of fc1.weight differs from the reference by 7, allowed 0.0001" */
void gate_check_text(const struct gate_check *check, char text[GATE_CHECK_BYTES]);

/* As they are stored: docs/parity.md shows it. New references. */
json_t *gate_check_to_json(const struct gate_check *check);
json_t *gate_verdict_to_json(const struct gate_verdict *verdict);

#endif
