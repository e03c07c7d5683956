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

#endif
