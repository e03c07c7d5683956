/* Private to hlo.c and hlo_products.c: the two ends of an operation's line. */
#ifndef PRONY_ADAPTERS_XLA_HLO_INTERNAL_H
#define PRONY_ADAPTERS_XLA_HLO_INTERNAL_H

#include "adapters/xla/hlo.h"

extern const struct shape hlo_scalar;

/* "  %v7 = stablehlo.OP", or OP as it is when it has a dialect of its own; operands and attributes
 * follow. */
struct hlo hlo_begin(struct hlo_text *h, const char *op, enum hlo_type type,
		     const struct shape *shape);
/* " : (A, B) -> C", the end of an operation. */
struct hlo hlo_end(struct hlo_text *h, const struct hlo *operands, int count, struct hlo result);

#endif
