/* Conversion to bfloat16, the upper half of an fp32. */
#ifndef PRONY_ADAPTERS_BF16_H
#define PRONY_ADAPTERS_BF16_H

#include <stdint.h>
#include <string.h>

static inline float bf16_to_float(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float out;

	memcpy(&out, &bits, sizeof(out));
	return out;
}

/* Rounds to nearest, ties to even, like the processor's instruction; NaN stays NaN. */
static inline uint16_t bf16_from_float(float x)
{
	uint32_t bits, rounded;

	memcpy(&bits, &x, sizeof(bits));
	rounded = bits + 0x7fffu + (bits >> 16 & 1u);
	return (uint16_t)((x == x ? rounded : bits | 0x400000u) >> 16);
}

#endif
