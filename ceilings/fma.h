/* Peak of a processor's multiply-add units: loops on registers only, whose result proves how many
 * multiply-adds were done. */
#ifndef PRONY_CEILINGS_FMA_H
#define PRONY_CEILINGS_FMA_H

#include <stdbool.h>
#include <stddef.h>

enum fma_type { FMA_FP32, FMA_BF16 };

struct fma_kernel {
	const char *name;    /* its instructions: "avx512f", "avx2+fma", "portable" */
	size_t lanes;	     /* fp32 lanes of one instruction */
	double per_lane;     /* multiply-adds per lane of one instruction */
	double flops;	     /* of one piece; a multiply-add counts as two */
	volatile bool wrong; /* the loop's result was wrong, so its time is invalid */
	void (*run)(float one, float *lanes);
};

/* The best kernel for this processor; false when it has none for this type. */
bool fma_kernel_find(enum fma_type type, struct fma_kernel *out);

/* Runs pieces first to end - 1 of a struct fma_kernel, some milliseconds each, in the calling
 * thread. Several threads may call it at once. */
void fma_pieces(void *kernel, size_t first, size_t end);

#endif
