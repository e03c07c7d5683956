/* Selects the elements that a dropout node drops: the same on every backend and with any number of
 * threads. */
#ifndef PRONY_ADAPTERS_NATIVE_DROPOUT_H
#define PRONY_ADAPTERS_NATIVE_DROPOUT_H

#include <stdint.h>

/* One draw of a dropout mask: all data that determine an element's bit, except its index. */
struct dropout_draw {
	uint32_t key[2];
	uint32_t threshold; /* an element is dropped when its hash is below */
	float scale;	    /* 1 / (1 - ratio) */
};

/* The mask of a dropout node (its index in the graph) in a step. */
struct dropout_draw dropout_draw_make(uint64_t seed, uint64_t step, uint64_t node, double ratio);

/* The hash of element `index`: a bijective mix of 32 bits with low bias (Ellis 2018,
 * nullprogram.com/blog/2018/07/31), with a second key word between its rounds so that streams are
 * not shifts of one another. */
static inline __attribute__((always_inline)) uint32_t dropout_hash(uint32_t index,
								   const uint32_t *key)
{
	uint32_t h = index * 0x9e3779b9u ^ key[0];

	h ^= h >> 16;
	h *= 0x7feb352du;
	h ^= (h >> 15) ^ key[1];
	h *= 0x846ca68bu;
	return h ^ h >> 16;
}

#endif
