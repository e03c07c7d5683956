// Updates of all parameters in one pass, and the loss scale of fp16. n is a multiple of 4, and the
// arrays begin at multiples of 16 bytes.
#include "adapters/native/cuda/kernels/each.cuh"

enum { FOUR = packed<float>::COUNT };
typedef pack<float, FOUR> four;

// Calls step(w, v, g) for each number. v may be NULL.
template <class F>
DEVICE void update(float *w, float *v, const float *g, const struct loss_scale *scale, long long n,
		   F step)
{
	float inverse = scale ? scale->inverse : 1;

	if (scale && scale->skip)
		return;
	FOR_ELEMENTS (i, n / FOUR) {
		four weights = ((four *)w)[i], values = v ? ((four *)v)[i] : weights;
		four gradients = ((const four *)g)[i];

#pragma unroll
		for (int k = 0; k < FOUR; k++)
			step(weights.v[k], values.v[k], gradients.v[k] * inverse);
		((four *)w)[i] = weights;
		if (v)
			((four *)v)[i] = values;
	}
}

KERNEL(update_sgd)
(float *w, float *v, const float *g, const struct loss_scale *scale, long long n,
 struct cuda_update_rule rule)
{
	(void)v;
	update(w, NULL, g, scale, n, [=](float &weight, float &, float gradient) {
		weight -= rule.learning_rate * (gradient + rule.weight_decay * weight);
	});
}

KERNEL(update_momentum)
(float *w, float *v, const float *g, const struct loss_scale *scale, long long n,
 struct cuda_update_rule rule)
{
	update(w, v, g, scale, n, [=](float &weight, float &velocity, float gradient) {
		gradient += rule.weight_decay * weight;
		velocity = rule.momentum * velocity + gradient;
		weight -= rule.learning_rate * velocity;
	});
}

// Hinton 2012, Coursera lecture 6e; epsilon is outside the root, as in Keras and PyTorch.
KERNEL(update_rmsprop)
(float *w, float *v, const float *g, const struct loss_scale *scale, long long n,
 struct cuda_update_rule rule)
{
	update(w, v, g, scale, n, [=](float &weight, float &square, float gradient) {
		gradient += rule.weight_decay * weight;
		square = rule.rho * square + (1 - rule.rho) * gradient * gradient;
		weight -= rule.learning_rate * gradient / (sqrtf(square) + rule.epsilon);
	});
}

// found[k]: whether the k-th of `parts` parts of g has inf or NaN.
BLOCK_KERNEL(find_overflow)(int *found, const float *g, long long n, int parts)
{
	FOR_BLOCKS (part, parts) {
		long long first = n / FOUR * part / parts;
		float bad = 0;

		FOR_THREADS (i, n / FOUR * (part + 1) / parts - first) {
			four gradients = ((const four *)g)[first + i];

#pragma unroll
			for (int k = 0; k < FOUR; k++) /* inf - inf and NaN are not 0 */
				bad = gradients.v[k] - gradients.v[k] == 0 ? bad : 1;
		}
		bad = block_max(bad);
		if (threadIdx.x == 0)
			found[part] = bad > 0;
	}
}

// What the update of this step does, and the scale of the next step.
BLOCK_KERNEL(step_loss_scale)(struct loss_scale *scale, const int *found, int parts)
{
	float bad = 0;

	FOR_THREADS (i, parts)
		bad += found[i];
	bad = block_sum(bad);
	if (blockIdx.x > 0 || threadIdx.x > 0)
		return;
	scale->inverse = 1 / ldexpf(LOSS_SCALE_START, scale->exponent);
	scale->skip = bad > 0;
	scale->good = scale->skip ? 0 : scale->good + 1;
	if (scale->skip)
		scale->exponent--;
	if (scale->good == LOSS_SCALE_GROWTH_STEPS) {
		scale->exponent++;
		scale->good = 0;
	}
}

// For steps without an update.
KERNEL(unscale)(float *g, const struct loss_scale *scale, long long n)
{
	float inverse = 1 / ldexpf(LOSS_SCALE_START, scale->exponent);

	each(g, g, n, [=](float gradient, long long) { return gradient * inverse; });
}
