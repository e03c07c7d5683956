/*
 * The peak of a processor's multiply-add units: loops on registers alone whose result tells how
 * many multiply-adds were really done.
 */
#ifndef PRONY_CEILINGS_FMA_H
#define PRONY_CEILINGS_FMA_H

#include <stdbool.h>
#include <stddef.h>

enum fma_type { FMA_FP32, FMA_BF16 };

struct fma_kernel {
	const char *name;    /* its instructions: "avx512f", "avx2+fma", "portable" */
	size_t lanes;	     /* of fp32 that one instruction adds to */
	double per_lane;     /* multiply-adds of one instruction into one lane */
	double flops;	     /* of one piece; a multiply-add is two */
	volatile bool wrong; /* a loop counted otherwise: its time says nothing */
	void (*run)(float one, float *lanes);
};

/* The best that this processor has; false where it has none of that type. */
bool fma_kernel_find(enum fma_type type, struct fma_kernel *out);

/* Runs `end - first` pieces of a struct fma_kernel, some milliseconds each, in the caller's thread;
 * as many threads at once as are wanted. */
void fma_pieces(void *kernel, size_t first, size_t end);

#endif
