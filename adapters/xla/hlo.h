/* Writes StableHLO (openxla.org/stablehlo/spec) as MLIR text. Each function appends an operation,
 * or none if it would change nothing, and returns the result. All shapes are known. */
#ifndef PRONY_ADAPTERS_XLA_HLO_H
#define PRONY_ADAPTERS_XLA_HLO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "graph/tensor.h"

enum hlo_type { HLO_F32, HLO_BF16, HLO_I32, HLO_U32, HLO_U64, HLO_BOOL };

/* A value, %vID. */
struct hlo {
	int id;
	enum hlo_type type;
	struct shape shape;
};

struct hlo_text {
	struct strbuf text;
	int next;
	bool exact;	/* requests full fp32 products on devices that have faster modes */
	int64_t macs;	/* of all convolutions and products so far */
	int64_t repeat; /* how often the code being written runs: 1, or the loop's trips */
};

void hlo_init(struct hlo_text *h);
void hlo_release(struct hlo_text *h);

/* Returns a new value that is defined elsewhere, such as an argument of the function. */
struct hlo hlo_name(struct hlo_text *h, enum hlo_type type, const struct shape *shape);
/* Writes "tensor<8x3xf32>". */
void hlo_write_type(struct strbuf *out, enum hlo_type type, const struct shape *shape);

/* Elementwise operations: "tanh", "add"; operands have the same type and shape. */
struct hlo hlo_unary(struct hlo_text *h, const char *op, struct hlo x);
struct hlo hlo_erf(struct hlo_text *h, struct hlo x); /* of the dialect CHLO */
struct hlo hlo_binary(struct hlo_text *h, const char *op, struct hlo a, struct hlo b);
/* The same with a number for b. */
struct hlo hlo_with(struct hlo_text *h, const char *op, struct hlo a, double b);
/* Returns the number in the type and shape of `like`. */
struct hlo hlo_number(struct hlo_text *h, struct hlo like, double number);
struct hlo hlo_minus_infinity(struct hlo_text *h, enum hlo_type type);
struct hlo hlo_vector(struct hlo_text *h, const double *numbers, int64_t count); /* F32 */
/* Compares with "GT", "EQ"; as floating-point numbers or integers, according to the type. */
struct hlo hlo_compare(struct hlo_text *h, const char *direction, struct hlo a, struct hlo b);
struct hlo hlo_select(struct hlo_text *h, struct hlo condition, struct hlo yes, struct hlo no);
struct hlo hlo_convert(struct hlo_text *h, struct hlo x, enum hlo_type type);
struct hlo hlo_iota(struct hlo_text *h, enum hlo_type type, const struct shape *shape, int axis);

struct hlo hlo_reshape(struct hlo_text *h, struct hlo x, const struct shape *shape);
/* Dimension i of the result is dimension order[i] of x. */
struct hlo hlo_transpose(struct hlo_text *h, struct hlo x, const int *order);
/* Dimension i of x becomes dimension to[i] of the result; `to` is ascending, and the sizes must
 * match. */
struct hlo hlo_broadcast(struct hlo_text *h, struct hlo x, const int *to,
			 const struct shape *shape);
struct hlo hlo_slice(struct hlo_text *h, struct hlo x, int axis, int64_t start, int64_t end,
		     int64_t step);
/* Pads each dimension with elements before, after and between those of x; low and high may be
 * negative. */
struct hlo hlo_pad(struct hlo_text *h, struct hlo x, double value, const int64_t *low,
		   const int64_t *high, const int64_t *interior);
struct hlo hlo_concatenate(struct hlo_text *h, const struct hlo *parts, int count, int axis);
struct hlo hlo_reverse(struct hlo_text *h, struct hlo x, const int *axes, int count);

/* Reduces by "add" or "maximum" over axes, which are removed. Sums of bf16 are computed and
 * returned in fp32. */
struct hlo hlo_reduce(struct hlo_text *h, const char *op, struct hlo x, const int *axes, int count);

struct hlo_window {
	int64_t size[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK], dilation[TENSOR_MAX_RANK];
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK];
};
struct hlo hlo_reduce_window(struct hlo_text *h, const char *op, struct hlo x,
			     const struct hlo_window *window);
/* Adds each element of dy at the position of the first maximum in its window of x. Without
 * dilation. */
struct hlo hlo_select_and_scatter(struct hlo_text *h, struct hlo x, struct hlo dy,
				  const struct hlo_window *window);

/* Returns the rows of a table (first dimension) selected by indices. The shape is that of the
 * indices followed by that of a row. */
struct hlo hlo_rows(struct hlo_text *h, struct hlo table, struct hlo indices);
/* Returns a table of zeros with the rows of dy added at their indices. */
struct hlo hlo_add_rows(struct hlo_text *h, struct hlo dy, struct hlo indices,
			const struct shape *table);

struct hlo_conv {
	const char *dimensions; /* "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]" */
	int64_t stride[2], low[2], high[2], lhs_dilation[2], rhs_dilation[2];
	int64_t groups, batch_groups;
	int64_t terms; /* products summed per element of the result */
};
struct hlo hlo_convolution(struct hlo_text *h, struct hlo lhs, struct hlo rhs,
			   const struct hlo_conv *conv, enum hlo_type type,
			   const struct shape *shape);
/* The product of two matrices, summed over dimension over_a of a and over_b of b. */
struct hlo hlo_dot(struct hlo_text *h, struct hlo a, int over_a, struct hlo b, int over_b,
		   enum hlo_type type);

/* The products of the matrices in the last two dimensions; the leading ones are equal. */
struct hlo hlo_matrices(struct hlo_text *h, struct hlo a, struct hlo b, enum hlo_type type);

/* hlo_entry returns entry `index` (an I32 scalar) of the first dimension, without that dimension.
 * hlo_with_entry returns x with the entry replaced. */
struct hlo hlo_entry(struct hlo_text *h, struct hlo x, struct hlo index);
struct hlo hlo_with_entry(struct hlo_text *h, struct hlo x, struct hlo entry, struct hlo index);

/* Returns random bits of a shape (U32); *state (2 x U64) becomes the next state. */
struct hlo hlo_random(struct hlo_text *h, struct hlo *state, const struct shape *shape);

/* A loop over index = 0 .. trips - 1 that carries the values `carried`. hlo_loop_begin sets
 * `inside`, the values in the body. hlo_loop_end takes the next values and sets `after`, the values
 * after the loop. */
#define HLO_CARRIED 12
struct hlo_loop {
	int64_t trips;
	int count;
	struct hlo carried[HLO_CARRIED], inside[HLO_CARRIED], after[HLO_CARRIED];
	struct hlo index; /* in the body */
};
void hlo_loop_begin(struct hlo_text *h, struct hlo_loop *loop);
void hlo_loop_end(struct hlo_text *h, struct hlo_loop *loop, const struct hlo *next);

#endif
