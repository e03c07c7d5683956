/* The bounds of the parity gate, in one table; each row states its reason. */
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

/* Returns the bounds for a precision, from its unit roundoff and the graph's depth of accumulation.
 * The bounds must reject tf32 reported as fp32 and a learning rate x 1.01, and accept every correct
 * framework. */
struct parity_bounds parity_bounds_for(const struct graph *graph, enum precision precision);

/* The bounds if gradients are clipped at that norm. The norm adds its own error to every gradient:
 * at most that of a gradient, the rounding of its sum of squares, and the 1e-6 of its denominator,
 * which some frameworks leave out. */
struct clipped_bounds {
	double change; /* instead of parity_bounds.change */
	double later;  /* added to the bounds of logits and loss after the first update */
};
struct clipped_bounds parity_clipped_bounds(const struct graph *graph, enum precision precision,
					    double clip_norm);

/* Returns true if the usual rounding of a gradient is so near the ceiling of the precision's bounds
 * that a correct program may exceed it: in deep networks whose operands are rounded. */
bool parity_ceiling_is_near(const struct graph *graph, enum precision precision);

/* Returns the unit roundoff of the operands of products; 0: they are not rounded. */
double parity_operand_roundoff(enum precision precision);

/* Returns true if the operands of products are rounded first: in every precision but fp32. */
bool parity_rounds_operands(enum precision precision);

/* Returns the precision whose rounding is nearest to the error of a forward pass's logits (relative
 * to their root mean square), on a scale of ratios: fp32, tf32 or bf16. Returns `asked` if its
 * rounding is the same (fp16 and tf32 both round to 11 bits) or equally likely. If the network
 * takes means of n elements, the usual error of a precision is a range (down to 1 / sqrt(n) of the
 * whole). The result is evidence of the arithmetic used. */
enum precision parity_precision_shown(const struct graph *graph, enum precision asked,
				      double logits_error);

#endif
