/* The bounds of the parity gate: one table, each row with its reason. */
#ifndef PRONY_PARITY_BOUNDS_H
#define PRONY_PARITY_BOUNDS_H

#include <stdbool.h>

#include "cell/vocabulary.h"
#include "graph/graph.h"

struct parity_bounds {
	double logits;	   /* max |l - l_ref| / (rms(l_ref) + tiny) */
	double loss;	   /* |loss - loss_ref| / max(1, |loss_ref|) */
	double gradient;   /* ||g - g_ref|| / ||g_ref||, per tensor */
	double change;	   /* ||dw - dw_ref|| / ||dw_ref||, per tensor, after three updates */
	double timed_loss; /* first loss of the timed process against the reference, relative */
};

/* Bounds for a precision, from its unit roundoff and the graph's depth of accumulation. They must
 * reject tf32 passed off as fp32 and learning rate x 1.01, and accept every correct framework. */
struct parity_bounds parity_bounds_for(const struct graph *graph, enum precision precision);

/* Whether what is multiplied is rounded before: in every precision but fp32. */
bool parity_rounds_operands(enum precision precision);

/*
 * The precision whose rounding is nearest to how far the logits of a forward pass were off
 * (relative to their root mean square), on a scale of ratios: fp32, tf32 or bf16, and `asked` where
 * that rounds alike (fp16 and tf32, both to 11 bits) or as likely. What a precision usually does is
 * a range where the network takes means (of n elements: down to 1 / sqrt(n) of the whole). Evidence
 * of what the arithmetic was.
 */
enum precision parity_precision_shown(const struct graph *graph, enum precision asked,
				      double logits_error);

#endif
