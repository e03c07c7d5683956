/* Draws the masks of dropout nodes. */
#include "adapters/native/dropout.h"

/* splitmix64 (Vigna 2015): the three numbers of a draw are mixed one after the other. */
static uint64_t scramble(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

struct dropout_draw dropout_draw_make(uint64_t seed, uint64_t step, uint64_t node, double ratio)
{
	uint64_t key = scramble(scramble(scramble(seed) ^ step) ^ node);
	double threshold = ratio * 4294967296.0;

	return (struct dropout_draw){
		.key = {(uint32_t)key, (uint32_t)(key >> 32)},
		.threshold = threshold < 4294967295.0 ? (uint32_t)threshold : UINT32_MAX,
		.scale = (float)(1 / (1 - ratio)),
	};
}
