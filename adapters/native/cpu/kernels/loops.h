/* Loops that oneDNN lacks or that are cheaper without a call of it: updates, element-wise
 * gradients, dropout, the loss. They are plain C that both compilers vectorise, compiled for
 * several instruction sets; the set is picked once, when the session opens. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_LOOPS_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_LOOPS_H

#include <stddef.h>
#include <stdint.h>

#include "adapters/native/dropout.h"

struct update_rule {
	float learning_rate, momentum, weight_decay, rho, epsilon;
	/* AdamW: the betas and 1 - beta; what corrects the bias of this update. */
	float beta1, beta2, rest1, rest2, scale1, scale2;
	size_t squares; /* numbers from v to AdamW's squares */
	float clip;	/* what each gradient is first multiplied by */
};

/* An output may be one of the inputs (element by element); otherwise arrays must not overlap. */
struct kernels {
	const char *name; /* "avx512", "avx2", "baseline" */
	/* The first of each pair is for fp32 arrays. The second is for bf16: it computes in fp32
	 * and rounds. */
	void (*relu[2])(void *y, const void *x, size_t n);
	/* dx = y > 0 ? dy : 0 */
	void (*relu_grad[2])(void *dx, const void *dy, const void *y, size_t n);
	/*
	 * Processes elements first..first+n-1 of the tensor; the pointers are to element `first`.
	 */
	void (*dropout[2])(void *y, uint8_t *mask, const void *x, const struct dropout_draw *draw,
			   size_t first, size_t n);
	void (*dropout_grad[2])(void *dx, const void *dy, const uint8_t *mask, float scale,
				size_t n);
	/* w -= lr * (g + decay * w) */
	void (*sgd)(float *w, float *v, const float *g, const struct update_rule *rule, size_t n);
	/* v = mu * v + (g + decay * w); w -= lr * v */
	void (*momentum)(float *w, float *v, const float *g, const struct update_rule *rule,
			 size_t n);
	/* v = rho * v + (1 - rho) * g^2; w -= lr * g / (sqrt(v) + epsilon), where g includes decay
	 * * w. Hinton 2012, Coursera lecture 6e; epsilon is outside the root, as in Keras and
	 * PyTorch. */
	void (*rmsprop)(float *w, float *v, const float *g, const struct update_rule *rule,
			size_t n);
	/* m = v, s = v + squares; m = beta1 * m + rest1 * g; s = beta2 * s + rest2 * g^2; w -= lr *
	 * decay * w; w -= lr * m * scale1 / (sqrt(s * scale2) + epsilon). */
	void (*adamw)(float *w, float *v, const float *g, const struct update_rule *rule, size_t n);
	/* Returns the sum over the rows of -log softmax(logits)[label]; dlogits = (softmax -
	 * onehot) * scale. Rows with a negative label add nothing, and their dlogits are 0. */
	double (*cross_entropy)(float *dlogits, const float *logits, const int32_t *labels,
				float scale, size_t rows, size_t classes);
	/* Returns half the sum of squares. */
	double (*half_squares)(const float *x, size_t n);
};

/* Returns the loops for this processor. */
const struct kernels *kernels_pick(void);

#endif
