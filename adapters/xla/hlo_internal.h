/* Private to hlo.c and hlo_products.c: write the start and the end of an operation's line. */
#ifndef PRONY_ADAPTERS_XLA_HLO_INTERNAL_H
#define PRONY_ADAPTERS_XLA_HLO_INTERNAL_H

#include "adapters/xla/hlo.h"

extern const struct shape hlo_scalar;

/*
 * Writes "  %v7 = stablehlo.OP", or OP unchanged if it names its dialect; operands and attributes
 * follow.
 */
struct hlo hlo_begin(struct hlo_text *h, const char *op, enum hlo_type type,
		     const struct shape *shape);
/* Writes " : (A, B) -> C", the end of an operation. */
struct hlo hlo_end(struct hlo_text *h, const struct hlo *operands, int count, struct hlo result);

#endif
