/*
 * The matrix product in float64 of the reference answers. Blocked and packed as Goto and van
 * de Geijn have it (Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008): a
 * tile of the result is kept in registers while panels of both factors, copied so that they are
 * read in sequence, run past it.
 *
 * A factor is not a matrix in memory but a function that fills panels, so that a convolution can
 * gather its windows piece by piece and needs no im2col matrix: whatever is multiplied, each thread
 * holds GEMM_F64_SCRATCH_BYTES and nothing else.
 *
 * Each element of the result is summed up in an order that depends on the depth alone: it has the
 * same bits whatever the number of threads and whatever else is computed with it. Between
 * instruction sets it differs by rounding.
 */
#ifndef PRONY_GRAPH_GEMM_F64_H
#define PRONY_GRAPH_GEMM_F64_H

#include <stdbool.h>
#include <stdint.h>

/* The most that a panel can have: depth of one block, lanes of one tile. */
#define GEMM_F64_DEPTH 256
#define GEMM_F64_LANES 24

/* Blocks of both factors: rows of a, columns of b; multiples of every tile. */
#define GEMM_F64_ROWS 192
#define GEMM_F64_COLUMNS 240
#define GEMM_F64_SCRATCH_BYTES                                                                     \
	(sizeof(double) * GEMM_F64_DEPTH * (GEMM_F64_ROWS + GEMM_F64_COLUMNS))

/*
 * A piece of a factor. Lanes are the rows of a or the columns of b; element (k, lane) goes to
 * to[(k - first) * width + lane - first_lane], and lanes from `lanes` to `width` get 0.
 */
struct gemm_f64_panel {
	int64_t first, depth;	   /* depth <= GEMM_F64_DEPTH */
	int64_t first_lane, lanes; /* lanes <= width <= GEMM_F64_LANES */
	int64_t width;
	double *to; /* 64-byte aligned */
};

struct gemm_f64_factor {
	void (*pack)(const struct gemm_f64_factor *factor, const struct gemm_f64_panel *panel);
	const void *of; /* for pack; borrowed */
	/* of a factor that lies in memory: element (k, lane) is data[k * depth + lane * lane] */
	const double *data;
	int64_t depth, lane;
};

/* A matrix with these strides, which may be any. */
struct gemm_f64_factor gemm_f64_matrix(const double *data, int64_t depth_stride,
				       int64_t lane_stride);

/*
 * Where element (row, column) is added: column counts positions of a sample by lines, then samples;
 * data[row * this.row + sample * this.sample + line * this.line + position * this.step].
 */
struct gemm_f64_target {
	double *data;
	int64_t row;
	int64_t lines, positions; /* of a sample; positions of a line */
	int64_t sample, line, step;
};

/* A row-major matrix. */
struct gemm_f64_target gemm_f64_rows(double *data, int64_t columns);

enum gemm_f64_set { GEMM_F64_BEST, GEMM_F64_BASELINE, GEMM_F64_AVX2, GEMM_F64_AVX512 };

/* target(i, j) += alpha * sum over k of a(k, i) b(k, j). */
struct gemm_f64 {
	int64_t rows, columns, depth; /* none negative */
	double alpha;
	struct gemm_f64_factor a, b;
	struct gemm_f64_target target;
	int threads;	       /* 0: as many as are worth it */
	enum gemm_f64_set set; /* instructions, for tests; one that is missing counts as baseline */
};

void gemm_f64(const struct gemm_f64 *product);

/* Whether this processor (and this build) has them. */
bool gemm_f64_has(enum gemm_f64_set set);

#endif
