#include "base/random.h"

#include <assert.h>
#include <math.h>

/*
 * Forbid fused multiply-add, so that all machines give the same bits. GCC does not contract under
 * -std=c11; Clang does unless told otherwise.
 */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

static uint64_t splitmix64_next(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void random_init(struct random *random, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		random->state[i] = splitmix64_next(&seed);
}

void random_init_named(struct random *random, uint64_t seed, const char *name)
{
	/* FNV-1a (RFC 9923); the seed is mixed first, so that nearby seeds do not cancel in the
	 * xor. */
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = (hash ^ *c) * UINT64_C(0x00000100000001b3);
	random_init(random, splitmix64_next(&seed) ^ hash);
}

static uint64_t rotate_left(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

uint64_t random_next(struct random *random)
{
	uint64_t *s = random->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

double random_uniform(struct random *random)
{
	return (double)(random_next(random) >> 11) * 0x1p-53;
}

/* Natural logarithm of x in (0, 1), accurate to about 1e-16, using only operations that IEEE 754
 * rounds exactly. libm's log() may differ in the last bit between machines with and without fused
 * multiply-add. */
static double portable_log(double x)
{
	int exponent;
	double mantissa = frexp(x, &exponent); /* [0.5, 1) */

	if (mantissa < 0.70710678118654752) {
		mantissa *= 2.0;
		exponent--;
	}
	/* log m = 2 atanh((m - 1) / (m + 1)); |s| <= 0.172, so the 12th term is below 1e-18. */
	double s = (mantissa - 1.0) / (mantissa + 1.0);
	double square = s * s;
	double sum = 0.0;
	for (int k = 25; k >= 1; k -= 2)
		sum = sum * square + 1.0 / k;
	return 2.0 * s * sum + (double)exponent * 0.69314718055994531;
}

double random_normal(struct random *random)
{
	/* Marsaglia and Bray 1964. The second number of the pair is discarded to keep the state
	 * small. */
	double x, y, square;

	do {
		x = 2.0 * random_uniform(random) - 1.0;
		y = 2.0 * random_uniform(random) - 1.0;
		square = x * x + y * y;
	} while (square >= 1.0 || square <= 0.0);
	return x * sqrt(-2.0 * portable_log(square) / square);
}

uint64_t random_below(struct random *random, uint64_t bound)
{
	assert(bound > 0);
	/* Reject the lowest 2^64 mod bound values; they would make small results more likely. */
	uint64_t rejected = (0 - bound) % bound;
	uint64_t value;

	do {
		value = random_next(random);
	} while (value < rejected);
	return value % bound;
}

void random_shuffle(struct random *random, size_t *indices, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t j = (size_t)random_below(random, i);
		size_t swapped = indices[i - 1];

		indices[i - 1] = indices[j];
		indices[j] = swapped;
	}
}
