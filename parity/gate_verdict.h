/* The verdict of the gate, figure by figure. */
#ifndef PRONY_PARITY_GATE_VERDICT_H
#define PRONY_PARITY_GATE_VERDICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* One figure with its bound. Texts are borrowed: a tensor's name from the gate's reference. */
struct gate_check {
	const char *what, *tensor; /* tensor: NULL if the figure is of no tensor */
	int step;		   /* -1: of the whole run */
	double value, bound;	   /* value: NAN if it cannot be computed */
	bool vanished;		   /* the exact tensor is zero, so that only rounding is compared */
	double ratio;		   /* length along the reference over the reference's; 0: unknown */
	const char *reason;	   /* why value cannot be computed, such as "missing"; else NULL */
	bool passed;
};

/* The verdict for the correct answer (gate_reference) that fits best. */
struct gate_verdict {
	struct arena *arena; /* holds the figures */
	struct gate_check *checks;
	size_t count, worst; /* worst: index of the figure largest in units of its bound */
	double worst_ratio;  /* value of the worst figure in units of its bound */
	bool passed;
	int64_t parameters, macs; /* as the framework counts; -1: unknown */
	int64_t batch, kinks, turned;
	int64_t tokens;		      /* of a sample, where each has a label; else 0 */
	double learning_rate;	      /* NAN: no training */
	double clip_norm;	      /* 0: no clipping */
	const char *precision_proved; /* shown by the logits (bounds.h); NULL: not comparable */
	const char *rmsprop_epsilon;  /* "inside", "outside"; NULL: no choice */
	const char *running_variance; /* "n", "n-1", "not read"; NULL: none */
	const char *batch_statistics; /* of ranks: "rank", "global"; NULL: none */
};

#define GATE_CHECK_BYTES 400
/*
 * Writes a figure as text: "change of fc1.weight differs from the reference by 7, allowed 0.0001".
 */
void gate_check_text(const struct gate_check *check, char text[GATE_CHECK_BYTES]);

/* Return the stored form, described in docs/parity.md. New references. */
json_t *gate_check_to_json(const struct gate_check *check);
json_t *gate_verdict_to_json(const struct gate_verdict *verdict);

#endif
