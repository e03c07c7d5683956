/*
 * Loops that oneDNN does not have or that are cheaper without its call: updates, element-wise
 * gradients, dropout, the loss. Plain C that both compilers vectorise, built for several
 * instruction sets and picked once when the session opens.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_LOOPS_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* One draw of a dropout mask: everything that an element's bit depends on besides its index. */
struct dropout_draw {
	uint32_t key[2];
	uint32_t threshold; /* an element is dropped when its hash is below */
	float scale;	    /* 1 / (1 - ratio) */
};

struct update_rule {
	float learning_rate, momentum, weight_decay, rho, epsilon;
};

/* Outputs may be one of the inputs (element by element); else arrays must not overlap. */
struct kernels {
	const char *name; /* "avx512", "avx2", "baseline" */
	void (*relu)(float *y, const float *x, size_t n);
	/* dx = y > 0 ? dy : 0 */
	void (*relu_grad)(float *dx, const float *dy, const float *y, size_t n);
	/* Elements first..first+n-1 of the tensor; pointers are those of element `first`. */
	void (*dropout)(float *y, uint8_t *mask, const float *x, const struct dropout_draw *draw,
			size_t first, size_t n);
	void (*dropout_grad)(float *dx, const float *dy, const uint8_t *mask, float scale,
			     size_t n);
	/* The same on bf16, computed in fp32 and rounded. */
	void (*relu_bf16)(uint16_t *y, const uint16_t *x, size_t n);
	void (*relu_grad_bf16)(uint16_t *dx, const uint16_t *dy, const uint16_t *y, size_t n);
	void (*dropout_bf16)(uint16_t *y, uint8_t *mask, const uint16_t *x,
			     const struct dropout_draw *draw, size_t first, size_t n);
	void (*dropout_grad_bf16)(uint16_t *dx, const uint16_t *dy, const uint8_t *mask,
				  float scale, size_t n);
	/* w -= lr * (g + decay * w) */
	void (*sgd)(float *w, float *v, const float *g, const struct update_rule *rule, size_t n);
	/* v = mu * v + (g + decay * w); w -= lr * v */
	void (*momentum)(float *w, float *v, const float *g, const struct update_rule *rule,
			 size_t n);
	/* v = rho * v + (1 - rho) * g^2; w -= lr * g / (sqrt(v) + epsilon), g with decay * w added.
	 * Hinton 2012, Coursera lecture 6e; epsilon outside the root as Keras and PyTorch have it.
	 */
	void (*rmsprop)(float *w, float *v, const float *g, const struct update_rule *rule,
			size_t n);
	/* Sum over the rows of -log softmax(logits)[label]; dlogits = (softmax - onehot) * scale.
	 * Rows with a negative label add nothing, and their dlogits are 0. */
	double (*cross_entropy)(float *dlogits, const float *logits, const int32_t *labels,
				float scale, size_t rows, size_t classes);
	/* Half the sum of squares. */
	double (*half_squares)(const float *x, size_t n);
};

/* The set for this processor. */
const struct kernels *kernels_pick(void);

/* The mask of a dropout node (its index in the graph) in a step. */
struct dropout_draw dropout_draw_make(uint64_t seed, uint64_t step, uint64_t node, double ratio);

#endif
