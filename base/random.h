/* Seeded random numbers that are the same on every machine. */
#ifndef PRONY_BASE_RANDOM_H
#define PRONY_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* xoshiro256** seeded by splitmix64 (Blackman and Vigna 2018, https://prng.di.unimi.it). */
struct random {
	uint64_t state[4];
};

void random_init(struct random *random, uint64_t seed);

/* A separate stream for each name ("weights/conv1.weight"), so that adding a tensor changes no
 * other. */
void random_init_named(struct random *random, uint64_t seed, const char *name);

uint64_t random_next(struct random *random);
double random_uniform(struct random *random); /* [0, 1), 53 bits */
double random_normal(struct random *random);  /* mean 0, deviation 1 (polar method) */
uint64_t random_below(struct random *random, uint64_t bound); /* [0, bound), unbiased; bound > 0 */

/* Fisher-Yates over `count` indices. */
void random_shuffle(struct random *random, size_t *indices, size_t count);

#endif
