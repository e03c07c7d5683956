// Updates of all parameters in one pass, and the loss scale of fp16. n is a multiple of 4, and the
// arrays begin at multiples of 16 bytes.
#include "adapters/native/cuda/kernels/each.cuh"

enum { FOUR = packed<float>::COUNT };
typedef pack<float, FOUR> four;

// What gradients are multiplied by: the inverse loss scale, and the factor that clips their norm.
// Both may be NULL.
DEVICE float gradient_factor(const struct loss_scale *scale, const float *clip)
{
	return (scale ? scale->inverse : 1) * (clip ? *clip : 1);
}

// Calls step(w, v, g) for each number, and copies the new w in the type of activations. v and
// copies may be NULL.
template <class T, class F>
DEVICE void update(float *w, float *v, T *copies, const float *g, const struct loss_scale *scale,
		   const float *clip, long long n, F step)
{
	float factor = gradient_factor(scale, clip);

	if (scale && scale->skip)
		return;
	FOR_ELEMENTS (i, n / FOUR) {
		four weights = ((four *)w)[i], values = v ? ((four *)v)[i] : weights;
		four gradients = ((const four *)g)[i];
		pack<T, FOUR> copy;

#pragma unroll
		for (int k = 0; k < FOUR; k++) {
			step(weights.v[k], values.v[k], gradients.v[k] * factor);
			copy.v[k] = from_float<T>(weights.v[k]);
		}
		((four *)w)[i] = weights;
		if (v)
			((four *)v)[i] = values;
		if (copies)
			store_pack<FOUR>(copies + i * FOUR, copy);
	}
}

#define UPDATE(name, T, suffix)                                                                    \
	KERNEL(update_##name##_##suffix)                                                           \
	(float *w, float *v, T *copies, const float *g, const struct loss_scale *scale,            \
	 const float *clip, long long n, struct cuda_update_rule rule)                             \
	{                                                                                          \
		update(w, v, copies, g, scale, clip, n,                                            \
		       [=](float &weight, float &value, float gradient) {                          \
			       update_##name(weight, value, gradient, rule);                       \
		       });                                                                         \
	}

DEVICE void update_sgd(float &weight, float &, float gradient, const struct cuda_update_rule &rule)
{
	weight -= rule.learning_rate * (gradient + rule.weight_decay * weight);
}
#define SGD(T, suffix) UPDATE(sgd, T, suffix)
FOR_TYPES(SGD)

DEVICE void update_momentum(float &weight, float &velocity, float gradient,
			    const struct cuda_update_rule &rule)
{
	gradient += rule.weight_decay * weight;
	velocity = rule.momentum * velocity + gradient;
	weight -= rule.learning_rate * velocity;
}
#define MOMENTUM(T, suffix) UPDATE(momentum, T, suffix)
FOR_TYPES(MOMENTUM)

// Hinton 2012, Coursera lecture 6e; epsilon is outside the root, as in Keras and PyTorch.
DEVICE void update_rmsprop(float &weight, float &square, float gradient,
			   const struct cuda_update_rule &rule)
{
	gradient += rule.weight_decay * weight;
	square = rule.rho * square + (1 - rule.rho) * gradient * gradient;
	weight -= rule.learning_rate * gradient / (sqrtf(square) + rule.epsilon);
}
#define RMSPROP(T, suffix) UPDATE(rmsprop, T, suffix)
FOR_TYPES(RMSPROP)

// The update that follows is one more, unless the loss scale skips it.
KERNEL(advance_adamw)
(struct adam_step *step, const struct loss_scale *scale, double beta1, double beta2)
{
	FOR_ELEMENTS (i, 1) {
		if (scale && scale->skip)
			return;
		step->updates++;
		step->scale1 = (float)(1 / (1 - pow(beta1, (double)step->updates)));
		step->scale2 = (float)(1 / (1 - pow(beta2, (double)step->updates)));
	}
}

// Loshchilov and Hutter 2019 (arXiv 1711.05101). The squares are behind the n numbers of m; only the
// first `decayed` weights, a multiple of 4, decay.
template <class T>
DEVICE void update_adamw(float *w, float *m, T *copies, const float *g,
			 const struct loss_scale *scale, const float *clip,
			 const struct adam_step *step, long long n, long long decayed,
			 const struct cuda_update_rule &rule)
{
	float factor = gradient_factor(scale, clip);
	float rate = rule.learning_rate * step->scale1;

	if (scale && scale->skip)
		return;
	FOR_ELEMENTS (i, n / FOUR) {
		float decay = i * FOUR < decayed ? rule.learning_rate * rule.weight_decay : 0;
		four weights = ((four *)w)[i], moments = ((four *)m)[i];
		four squares = ((four *)(m + n))[i], gradients = ((const four *)g)[i];
		pack<T, FOUR> copy;

#pragma unroll
		for (int k = 0; k < FOUR; k++) {
			float gradient = gradients.v[k] * factor;
			float moment = rule.beta1 * moments.v[k] + rule.rest1 * gradient;
			float square = rule.beta2 * squares.v[k] + rule.rest2 * gradient * gradient;

			moments.v[k] = moment;
			squares.v[k] = square;
			weights.v[k] -= decay * weights.v[k] +
					rate * moment / (sqrtf(step->scale2 * square) + rule.epsilon);
			copy.v[k] = from_float<T>(weights.v[k]);
		}
		((four *)w)[i] = weights;
		((four *)m)[i] = moments;
		((four *)(m + n))[i] = squares;
		if (copies)
			store_pack<FOUR>(copies + i * FOUR, copy);
	}
}

#define ADAMW(T, suffix)                                                                           \
	KERNEL(update_adamw_##suffix)                                                              \
	(float *w, float *m, T *copies, const float *g, const struct loss_scale *scale,            \
	 const float *clip, const struct adam_step *step, long long n, long long decayed,          \
	 struct cuda_update_rule rule)                                                             \
	{                                                                                          \
		update_adamw(w, m, copies, g, scale, clip, step, n, decayed, rule);                \
	}
FOR_TYPES(ADAMW)

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

// sums[k]: the sum of the squares of the k-th of `parts` parts of g. A thread's squares are added
// in fp32, those of threads and parts in the order of block_combine.
BLOCK_KERNEL(square_parts)
(float *sums, const float *g, const struct loss_scale *scale, long long n, int parts)
{
	float inverse = scale ? scale->inverse : 1;

	FOR_BLOCKS (part, parts) {
		long long first = n / FOUR * part / parts;
		float sum = 0;

		FOR_THREADS (i, n / FOUR * (part + 1) / parts - first) {
			four gradients = ((const four *)g)[first + i];

#pragma unroll
			for (int k = 0; k < FOUR; k++) {
				float gradient = gradients.v[k] * inverse;

				sum += gradient * gradient;
			}
		}
		sum = block_sum(sum);
		if (threadIdx.x == 0)
			sums[part] = sum;
	}
}

// clip = min(1, norm / (the root of the sum + 1e-6)), as torch.nn.utils.clip_grad_norm_ has it.
BLOCK_KERNEL(clip_factor)(float *clip, const float *sums, int parts, float norm)
{
	float sum = 0;

	FOR_THREADS (i, parts)
		sum += sums[i];
	sum = block_sum(sum);
	if (blockIdx.x == 0 && threadIdx.x == 0) {
		float factor = norm / (sqrtf(sum) + 1e-6f);

		*clip = factor < 1 ? factor : 1;
	}
}
