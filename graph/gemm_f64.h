/*
 * The float64 matrix product of the reference. Blocked and packed as in Goto and van de Geijn
 * (Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008): a tile of the result
 * stays in registers, while panels of both factors, copied so that they are read in sequence, are
 * streamed past it.
 *
 * A factor is not a matrix in memory but a function that fills panels. So a convolution gathers its
 * windows piece by piece and needs no im2col matrix. Each thread allocates GEMM_F64_SCRATCH_BYTES
 * and nothing else, whatever is multiplied.
 *
 * The order in which an element of the result is summed depends on the depth alone. So it has the
 * same bits for any number of threads and for any other elements computed with it. Between
 * instruction sets it differs by rounding.
 */
#ifndef PRONY_GRAPH_GEMM_F64_H
#define PRONY_GRAPH_GEMM_F64_H

#include <stdbool.h>
#include <stdint.h>

/* The largest panel: depth of one block, lanes of one tile. */
#define GEMM_F64_DEPTH 256
#define GEMM_F64_LANES 24

/* The block sizes of both factors: rows of a, columns of b; multiples of every tile. */
#define GEMM_F64_ROWS 192
#define GEMM_F64_COLUMNS 240
#define GEMM_F64_SCRATCH_BYTES                                                                     \
	(sizeof(double) * GEMM_F64_DEPTH * (GEMM_F64_ROWS + GEMM_F64_COLUMNS))

/* A piece of a factor. Lanes are the rows of a or the columns of b. Element (k, lane) is written to
 * to[(k - first) * width + lane - first_lane]; lanes from `lanes` to `width` are set to 0. */
struct gemm_f64_panel {
	int64_t first, depth;	   /* depth <= GEMM_F64_DEPTH */
	int64_t first_lane, lanes; /* lanes <= width <= GEMM_F64_LANES */
	int64_t width;
	double *to; /* 64-byte aligned */
};

struct gemm_f64_factor {
	void (*pack)(const struct gemm_f64_factor *factor, const struct gemm_f64_panel *panel);
	const void *of; /* for pack; borrowed */
	/* for a factor in memory: element (k, lane) is data[k * depth + lane * lane], with the
	 * strides below */
	const double *data;
	int64_t depth, lane;
};

/* A matrix in memory with any strides. */
struct gemm_f64_factor gemm_f64_matrix(const double *data, int64_t depth_stride,
				       int64_t lane_stride);

/* The address to which element (row, column) is added. A column counts the positions of a sample
 * line by line, then the samples. The address is data[row * this.row + sample * this.sample + line
 * * this.line + position * this.step]. */
struct gemm_f64_target {
	double *data;
	int64_t row;
	int64_t lines, positions; /* lines of a sample; positions of a line */
	int64_t sample, line, step;
};

/* The target for a row-major matrix. */
struct gemm_f64_target gemm_f64_rows(double *data, int64_t columns);

enum gemm_f64_set { GEMM_F64_BEST, GEMM_F64_BASELINE, GEMM_F64_AVX2, GEMM_F64_AVX512 };

/* target(i, j) += alpha * sum over k of a(k, i) b(k, j). */
struct gemm_f64 {
	int64_t rows, columns, depth; /* none negative */
	double alpha;
	struct gemm_f64_factor a, b;
	struct gemm_f64_target target;
	int threads;	       /* 0: as many as the size of the product justifies */
	enum gemm_f64_set set; /* instruction set, for tests; baseline if the processor lacks it */
};

void gemm_f64(const struct gemm_f64 *product);

/* Whether this processor and this build have the instruction set. */
bool gemm_f64_has(enum gemm_f64_set set);

#endif
