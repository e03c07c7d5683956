/*
 * Writes StableHLO (openxla.org/stablehlo/spec) as MLIR text. Each function appends one operation,
 * or none where it would change nothing, and returns its result; shapes are known throughout.
 */
#ifndef PRONY_ADAPTERS_XLA_HLO_H
#define PRONY_ADAPTERS_XLA_HLO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "graph/tensor.h"

enum hlo_type { HLO_F32, HLO_BF16, HLO_I32, HLO_U32, HLO_U64, HLO_BOOL };

/* A value: %vID. */
struct hlo {
	int id;
	enum hlo_type type;
	struct shape shape;
};

struct hlo_text {
	struct strbuf text;
	int next;
	bool exact;	/* asks for products in full fp32, where a device has faster ones */
	int64_t macs;	/* of the convolutions and products so far */
	int64_t repeat; /* how often what is written now runs: 1, or a loop's trips */
};

void hlo_init(struct hlo_text *h);
void hlo_release(struct hlo_text *h);

/* A value that is defined elsewhere: an argument of the function. */
struct hlo hlo_name(struct hlo_text *h, enum hlo_type type, const struct shape *shape);
/* "tensor<8x3xf32>" */
void hlo_write_type(struct strbuf *out, enum hlo_type type, const struct shape *shape);

/* Of each element: "tanh", "add"; operands have one type and shape. */
struct hlo hlo_unary(struct hlo_text *h, const char *op, struct hlo x);
struct hlo hlo_erf(struct hlo_text *h, struct hlo x); /* of the dialect above, CHLO */
struct hlo hlo_binary(struct hlo_text *h, const char *op, struct hlo a, struct hlo b);
/* With a number for b. */
struct hlo hlo_with(struct hlo_text *h, const char *op, struct hlo a, double b);
/* The number in the type and shape of `like`. */
struct hlo hlo_number(struct hlo_text *h, struct hlo like, double number);
struct hlo hlo_minus_infinity(struct hlo_text *h, enum hlo_type type);
struct hlo hlo_vector(struct hlo_text *h, const double *numbers, int64_t count); /* F32 */
/* "GT", "EQ"; floating-point numbers or integers, by the type. */
struct hlo hlo_compare(struct hlo_text *h, const char *direction, struct hlo a, struct hlo b);
struct hlo hlo_select(struct hlo_text *h, struct hlo condition, struct hlo yes, struct hlo no);
struct hlo hlo_convert(struct hlo_text *h, struct hlo x, enum hlo_type type);
struct hlo hlo_iota(struct hlo_text *h, enum hlo_type type, const struct shape *shape, int axis);

struct hlo hlo_reshape(struct hlo_text *h, struct hlo x, const struct shape *shape);
/* Dimension i of the result is dimension order[i] of x. */
struct hlo hlo_transpose(struct hlo_text *h, struct hlo x, const int *order);
/* Dimension i of x becomes dimension to[i], ascending; they agree in size. */
struct hlo hlo_broadcast(struct hlo_text *h, struct hlo x, const int *to,
			 const struct shape *shape);
struct hlo hlo_slice(struct hlo_text *h, struct hlo x, int axis, int64_t start, int64_t end,
		     int64_t step);
/* Numbers of elements before, behind and between those of x, for each dimension; before and behind
 * may be negative. */
struct hlo hlo_pad(struct hlo_text *h, struct hlo x, double value, const int64_t *low,
		   const int64_t *high, const int64_t *interior);
struct hlo hlo_concatenate(struct hlo_text *h, const struct hlo *parts, int count, int axis);
struct hlo hlo_reverse(struct hlo_text *h, struct hlo x, int first, int second);

/* "add" or "maximum" over axes, which leave the shape. Sums of bf16 are made, and given, in fp32.
 */
struct hlo hlo_reduce(struct hlo_text *h, const char *op, struct hlo x, const int *axes, int count);

struct hlo_window {
	int64_t size[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK], dilation[TENSOR_MAX_RANK];
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK];
};
struct hlo hlo_reduce_window(struct hlo_text *h, const char *op, struct hlo x,
			     const struct hlo_window *window);
/* Adds each element of dy to the place of the first maximum of its window of x. No dilation. */
struct hlo hlo_select_and_scatter(struct hlo_text *h, struct hlo x, struct hlo dy,
				  const struct hlo_window *window);

/* Rows of a table (its first dimension) that indices name: the shape of the indices, then that of a
 * row. */
struct hlo hlo_rows(struct hlo_text *h, struct hlo table, struct hlo indices);
/* A table with zeros to whose rows the rows of dy are added, each where its index says. */
struct hlo hlo_add_rows(struct hlo_text *h, struct hlo dy, struct hlo indices,
			const struct shape *table);

struct hlo_conv {
	const char *dimensions; /* "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]" */
	int64_t stride[2], low[2], high[2], lhs_dilation[2], rhs_dilation[2];
	int64_t groups, batch_groups;
	int64_t terms; /* products that each element of the result sums up */
};
struct hlo hlo_convolution(struct hlo_text *h, struct hlo lhs, struct hlo rhs,
			   const struct hlo_conv *conv, enum hlo_type type,
			   const struct shape *shape);
/* Matrices; sums over that dimension of a and that of b. */
struct hlo hlo_dot(struct hlo_text *h, struct hlo a, int over_a, struct hlo b, int over_b,
		   enum hlo_type type);

/* Entry `index` (an I32 scalar) of the first dimension, without it; and x with it replaced. */
struct hlo hlo_entry(struct hlo_text *h, struct hlo x, struct hlo index);
struct hlo hlo_with_entry(struct hlo_text *h, struct hlo x, struct hlo entry, struct hlo index);

/* Random bits of a shape (U32); *state (2 x U64) becomes the next. */
struct hlo hlo_random(struct hlo_text *h, struct hlo *state, const struct shape *shape);

/* A loop over index = 0 .. trips - 1 that carries values, `carried`: begin makes `inside` of them,
 * end takes what they become and makes `after`. */
#define HLO_CARRIED 12
struct hlo_loop {
	int64_t trips;
	int count;
	struct hlo carried[HLO_CARRIED], inside[HLO_CARRIED], after[HLO_CARRIED];
	struct hlo index; /* inside */
};
void hlo_loop_begin(struct hlo_text *h, struct hlo_loop *loop);
void hlo_loop_end(struct hlo_text *h, struct hlo_loop *loop, const struct hlo *next);

#endif
