/*
 * Convolutions of 3x3 windows by the minimal filtering algorithm F(2x2, 3x3) of Lavin and Gray,
 * "Fast Algorithms for Convolutional Neural Networks" (2016, arXiv 1509.09308): 16 multiplications
 * for four outputs of a channel instead of 36. Images are cut into tiles of 2x2 outputs. The 4x4
 * inputs of a tile and the windows are transformed, 16 matrix products replace the convolution, and
 * their results are transformed back. Sums have a few more roundings than those of the definition;
 * the precision is the same.
 *
 * Stride 1, no dilation, one group. Images are in whole blocks of channels (oneDNN's nChw16c and
 * nChw8c, of winograd_lanes floats). Needs no library and starts no threads: work is counted in
 * shares, which the caller distributes among its threads.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_WINOGRAD_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/cpu/kernels/instruction_set.h"

struct winograd {
	int64_t batch, channels, outputs; /* channels and outputs: multiples of winograd_lanes */
	int64_t in[2], out[2];		  /* height and width */
	int64_t before[2]; /* padding above and to the left; the opposite padding follows */
	bool sum, relu;	   /* the result is added to y; negative results become zero */
};

struct winograd_loops;

/* Returns the loops, or NULL if there are none for the set. The processor must have the set. */
const struct winograd_loops *winograd_pick(enum instruction_set set);
int64_t winograd_lanes(const struct winograd_loops *loops);
/* The number of tiles of all images. */
int64_t winograd_tiles(const struct winograd *c);

/* The number of floats of the transformed windows, and the number of their panels of outputs. */
size_t winograd_weight_floats(const struct winograd *c, const struct winograd_loops *loops);
size_t winograd_panels(const struct winograd *c, const struct winograd_loops *loops);
/* Transforms the windows of panels first to end - 1 into u. w has outputs x channels windows in
 * blocks of winograd_lanes of both (oneDNN's OIhw16i16o and OIhw8i8o) and is aligned to a cache
 * line. `flipped`: c is the convolution that gives the gradient of another one's input, and w has
 * the windows of that other one, channels x outputs. They are rotated by 180 degrees, and inputs
 * and outputs are exchanged. */
void winograd_weights(const struct winograd *c, const struct winograd_loops *loops, float *u,
		      const float *w, bool flipped, size_t first, size_t end);

/* The number of floats of scratch memory per share. */
size_t winograd_scratch_floats(const struct winograd *c, const struct winograd_loops *loops,
			       size_t shares);
/* Computes shares first to end - 1 of `shares` equal shares of the tiles. Share i uses scratch from
 * i * winograd_scratch_floats on. bias: `outputs` floats, or NULL. x, y, u and scratch are aligned
 * to a cache line; y overlaps none of the others. */
void winograd_forward(const struct winograd *c, const struct winograd_loops *loops, float *y,
		      const float *x, const float *u, const float *bias, float *scratch,
		      size_t shares, size_t first, size_t end);

#endif
