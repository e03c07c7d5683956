/*
 * Loops for updates, element-wise gradients, dropout and losses, compiled for each instruction set.
 */
#include "adapters/native/cpu/kernels/loops.h"

#include <math.h>
#include <string.h>

#include "adapters/bf16.h"
#include "adapters/native/cpu/kernels/instruction_set.h"

BODY void relu_body(float *y, const float *x, size_t n)
{
	INDEPENDENT
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] > 0 ? x[i] : 0;
}

BODY void relu_grad_body(float *dx, const float *dy, const float *y, size_t n)
{
	INDEPENDENT
	for (size_t i = 0; i < n; i++)
		dx[i] = y[i] > 0 ? dy[i] : 0;
}

/* As integers the bits have the same order and sign: positive numbers are positive. */
BODY void relu_bf16_body(uint16_t *y, const uint16_t *x, size_t n)
{
	INDEPENDENT
	for (size_t i = 0; i < n; i++)
		y[i] = (int16_t)x[i] > 0 ? x[i] : 0;
}

BODY void relu_grad_bf16_body(uint16_t *dx, const uint16_t *dy, const uint16_t *y, size_t n)
{
	INDEPENDENT
	for (size_t i = 0; i < n; i++)
		dx[i] = (int16_t)y[i] > 0 ? dy[i] : 0;
}

BODY void dropout_body(float *y, uint8_t *mask, const float *x, const struct dropout_draw *draw,
		       size_t first, size_t n)
{
	uint32_t key[2] = {draw->key[0], draw->key[1] ^ (uint32_t)((uint64_t)first >> 32)};
	uint32_t base = (uint32_t)first, threshold = draw->threshold;
	float scale = draw->scale;

	INDEPENDENT
	for (size_t i = 0; i < n; i++) {
		uint32_t keep = dropout_hash(base + (uint32_t)i, key) >= threshold;

		mask[i] = (uint8_t)keep;
		y[i] = x[i] * (scale * (float)(int32_t)keep);
	}
}

BODY void dropout_grad_body(float *dx, const float *dy, const uint8_t *mask, float scale, size_t n)
{
	INDEPENDENT
	for (size_t i = 0; i < n; i++)
		dx[i] = dy[i] * (scale * (float)(int32_t)mask[i]);
}

BODY void dropout_bf16_body(uint16_t *y, uint8_t *mask, const uint16_t *x,
			    const struct dropout_draw *draw, size_t first, size_t n)
{
	uint32_t key[2] = {draw->key[0], draw->key[1] ^ (uint32_t)((uint64_t)first >> 32)};
	uint32_t base = (uint32_t)first, threshold = draw->threshold;
	float scale = draw->scale;

	INDEPENDENT
	for (size_t i = 0; i < n; i++) {
		uint32_t keep = dropout_hash(base + (uint32_t)i, key) >= threshold;

		mask[i] = (uint8_t)keep;
		y[i] = bf16_from_float(bf16_to_float(x[i]) * (scale * (float)(int32_t)keep));
	}
}

BODY void dropout_grad_bf16_body(uint16_t *dx, const uint16_t *dy, const uint8_t *mask, float scale,
				 size_t n)
{
	INDEPENDENT
	for (size_t i = 0; i < n; i++)
		dx[i] = bf16_from_float(bf16_to_float(dy[i]) * (scale * (float)(int32_t)mask[i]));
}

BODY void sgd_body(float *restrict w, float *v, const float *restrict g,
		   const struct update_rule *rule, size_t n)
{
	float rate = rule->learning_rate, decay = rule->weight_decay, clip = rule->clip;

	(void)v;
	for (size_t i = 0; i < n; i++)
		w[i] -= rate * (clip * g[i] + decay * w[i]);
}

BODY void momentum_body(float *restrict w, float *restrict v, const float *restrict g,
			const struct update_rule *rule, size_t n)
{
	float rate = rule->learning_rate, decay = rule->weight_decay, momentum = rule->momentum;
	float clip = rule->clip;

	for (size_t i = 0; i < n; i++) {
		v[i] = momentum * v[i] + (clip * g[i] + decay * w[i]);
		w[i] -= rate * v[i];
	}
}

BODY void rmsprop_body(float *restrict w, float *restrict v, const float *restrict g,
		       const struct update_rule *rule, size_t n)
{
	float rate = rule->learning_rate, decay = rule->weight_decay, epsilon = rule->epsilon;
	float rho = rule->rho, rest = 1 - rule->rho, clip = rule->clip;

	for (size_t i = 0; i < n; i++) {
		float gradient = clip * g[i] + decay * w[i];

		v[i] = rho * v[i] + rest * gradient * gradient;
		w[i] -= rate * gradient / (sqrtf(v[i]) + epsilon);
	}
}

BODY void adamw_body(float *restrict w, float *restrict m, const float *restrict g,
		     const struct update_rule *rule, size_t n)
{
	float decay = rule->learning_rate * rule->weight_decay, epsilon = rule->epsilon;
	float rate = rule->learning_rate * rule->scale1, scale = rule->scale2;
	float beta1 = rule->beta1, beta2 = rule->beta2, rest1 = rule->rest1, rest2 = rule->rest2;
	float *restrict s = m + rule->squares;
	float clip = rule->clip;

	for (size_t i = 0; i < n; i++) {
		float gradient = clip * g[i];

		m[i] = beta1 * m[i] + rest1 * gradient;
		s[i] = beta2 * s[i] + rest2 * gradient * gradient;
		w[i] -= decay * w[i] + rate * m[i] / (sqrtf(scale * s[i]) + epsilon);
	}
}

/* exp for x <= 0 within 2 ulp (Cephes expf: 2^n times a polynomial in the remainder), in operations
 * that vectorise; libm's needs a call per element. NaN stays NaN. */
BODY float exp_negative(float x)
{
	const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
	float y = x < -87.0f ? -87.0f : x;
	float shifted = y * 1.44269504088896341f + to_integer;
	float n = shifted - to_integer;
	float r = y - n * 0.693359375f + n * 2.12194440e-4f;
	float p = 1.9875691500e-4f;
	uint32_t bits;
	float scale;

	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1.0f;
	memcpy(&bits, &shifted, sizeof(bits));
	bits = (bits + 127u) << 23; /* the low bits of `shifted` are n */
	memcpy(&scale, &bits, sizeof(scale));
	return p * scale;
}

BODY double cross_entropy_body(float *dlogits, const float *logits, const int32_t *labels,
			       float scale, size_t rows, size_t classes)
{
	double loss = 0;

	for (size_t row = 0; row < rows; row++) {
		const float *restrict x = logits + row * classes;
		float *restrict e = dlogits + row * classes;
		size_t label = (size_t)labels[row];
		float max = x[0], factor;
		double sum = 0;

		if (labels[row] < 0) {
			memset(e, 0, classes * sizeof(*e));
			continue;
		}
		for (size_t i = 1; i < classes; i++)
			max = x[i] > max ? x[i] : max;
		for (size_t i = 0; i < classes; i++)
			e[i] = exp_negative(x[i] - max);
		for (size_t i = 0; i < classes; i++)
			sum += (double)e[i];
		loss += log(sum) - (double)(x[label] - max);
		factor = (float)((double)scale / sum);
		for (size_t i = 0; i < classes; i++)
			e[i] *= factor;
		e[label] -= scale;
	}
	return loss;
}

BODY double half_squares_body(const float *x, size_t n)
{
	enum { LANES = 16 };
	double lanes[LANES] = {0}, sum = 0;
	size_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		for (size_t k = 0; k < LANES; k++)
			lanes[k] += (double)x[i + k] * (double)x[i + k];
	}
	for (; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	for (size_t k = 0; k < LANES; k++)
		sum += lanes[k];
	return sum / 2;
}

/* A loop, compiled for one instruction set. */
#define LOOP(set, attribute, name, parameters, arguments)                                          \
	attribute static void name##_##set parameters                                              \
	{                                                                                          \
		name##_body arguments;                                                             \
	}
/* The same for both element types. */
#define LOOPS(set, attribute, name, parameters, arguments)                                         \
	LOOP(set, attribute, name, parameters, arguments)                                          \
	LOOP(set, attribute, name##_bf16, parameters, arguments)

/* All loops of an instruction set. */
#define KERNEL_SET(set, attribute)                                                                 \
	LOOPS(set, attribute, relu, (void *y, const void *x, size_t n), (y, x, n))                 \
	LOOPS(set, attribute, relu_grad, (void *dx, const void *dy, const void *y, size_t n),      \
	      (dx, dy, y, n))                                                                      \
	LOOPS(set, attribute, dropout,                                                             \
	      (void *y, uint8_t *mask, const void *x, const struct dropout_draw *draw,             \
	       size_t first, size_t n),                                                            \
	      (y, mask, x, draw, first, n))                                                        \
	LOOPS(set, attribute, dropout_grad,                                                        \
	      (void *dx, const void *dy, const uint8_t *mask, float scale, size_t n),              \
	      (dx, dy, mask, scale, n))                                                            \
	LOOP(set, attribute, sgd, UPDATE_PARAMETERS, (w, v, g, rule, n))                           \
	LOOP(set, attribute, momentum, UPDATE_PARAMETERS, (w, v, g, rule, n))                      \
	LOOP(set, attribute, rmsprop, UPDATE_PARAMETERS, (w, v, g, rule, n))                       \
	LOOP(set, attribute, adamw, UPDATE_PARAMETERS, (w, v, g, rule, n))                         \
	attribute static double cross_entropy_##set(float *dlogits, const float *logits,           \
						    const int32_t *labels, float scale,            \
						    size_t rows, size_t classes)                   \
	{                                                                                          \
		return cross_entropy_body(dlogits, logits, labels, scale, rows, classes);          \
	}                                                                                          \
	attribute static double half_squares_##set(const float *x, size_t n)                       \
	{                                                                                          \
		return half_squares_body(x, n);                                                    \
	}                                                                                          \
	static const struct kernels kernels_##set = {                                              \
		.name = #set,                                                                      \
		.relu = {relu_##set, relu_bf16_##set},                                             \
		.relu_grad = {relu_grad_##set, relu_grad_bf16_##set},                              \
		.dropout = {dropout_##set, dropout_bf16_##set},                                    \
		.dropout_grad = {dropout_grad_##set, dropout_grad_bf16_##set},                     \
		.sgd = sgd_##set,                                                                  \
		.momentum = momentum_##set,                                                        \
		.rmsprop = rmsprop_##set,                                                          \
		.adamw = adamw_##set,                                                              \
		.cross_entropy = cross_entropy_##set,                                              \
		.half_squares = half_squares_##set,                                                \
	};

#define UPDATE_PARAMETERS                                                                          \
	(float *w, float *v, const float *g, const struct update_rule *rule, size_t n)
#define NO_ATTRIBUTE
KERNEL_SET(baseline, NO_ATTRIBUTE)
#if defined(__x86_64__)
KERNEL_SET(avx2, VECTORISED_AVX2)
KERNEL_SET(avx512, VECTORISED_AVX512)
#endif

const struct kernels *kernels_pick(void)
{
#if defined(__x86_64__)
	if (instruction_set_best() == INSTRUCTIONS_AVX512)
		return &kernels_avx512;
	if (instruction_set_best() == INSTRUCTIONS_AVX2)
		return &kernels_avx2;
#endif
	return &kernels_baseline;
}
