// Functions of one number, and their gradients. The definitions are ONNX's.
#include "adapters/native/cuda/kernels/each.cuh"

DEVICE float clamp(float x, float min, float max)
{
	return x < min ? min : x > max ? max : x;
}

// Hendrycks and Gimpel 2016, arXiv 1606.08415.
#define GELU_CUBE 0.044715f
#define ROOT_2_PI 0.79788456080286536f /* sqrt(2 / pi) */
#define ROOT_HALF 0.70710678118654752f

DEVICE float gelu_tanh(float x)
{
	return 0.5f * x * (1 + tanhf(ROOT_2_PI * (x + GELU_CUBE * x * x * x)));
}

DEVICE float gelu_tanh_slope(float x)
{
	float t = tanhf(ROOT_2_PI * (x + GELU_CUBE * x * x * x));

	return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * ROOT_2_PI * (1 + 3 * GELU_CUBE * x * x);
}

DEVICE float gelu_slope(float x)
{
	return 0.5f * erfcf(-x * ROOT_HALF) + 0.5f * x * ROOT_2_PI * expf(-x * x / 2);
}

DEVICE float swish_slope(float x, float alpha)
{
	float s = 1 / (1 + expf(-alpha * x));

	return s + alpha * x * s * (1 - s);
}

// One loop for each function: the choice is outside.
#define VALUE(code, result)                                                                        \
	case code:                                                                                 \
		return each(y, x, n, [=](float v, long long) { return (result); });

template <class T> DEVICE void function(T *y, const T *x, long long n, struct function f)
{
	float alpha = f.alpha, beta = f.beta;

	switch (f.code) {
		VALUE(FUNCTION_RELU, v < 0 ? 0 : v)
		VALUE(FUNCTION_TANH, tanhf(v))
		VALUE(FUNCTION_SIGMOID, 1 / (1 + expf(-v)))
		VALUE(FUNCTION_HARD_SIGMOID, clamp(alpha * v + beta, 0, 1))
		VALUE(FUNCTION_HARD_SWISH, v * clamp(v / 6 + 0.5f, 0, 1))
		VALUE(FUNCTION_CLIP, clamp(v, alpha, beta))
		VALUE(FUNCTION_ELU, v > 0 ? v : alpha * expm1f(v))
		VALUE(FUNCTION_LEAKY_RELU, v > 0 ? v : alpha * v)
		VALUE(FUNCTION_EXP, expf(v))
		VALUE(FUNCTION_SQRT, sqrtf(v))
		VALUE(FUNCTION_LOG, logf(v))
		VALUE(FUNCTION_GELU, 0.5f * v * erfcf(-v * ROOT_HALF))
		VALUE(FUNCTION_GELU_TANH, gelu_tanh(v))
		VALUE(FUNCTION_SWISH, v / (1 + expf(-alpha * v)))
		VALUE(FUNCTION_NEG, -v)
		VALUE(FUNCTION_ERF, erff(v))
		VALUE(FUNCTION_POW, powf(v, alpha))
	}
}

#define FUNCTION(T, suffix)                                                                        \
	KERNEL(function_##suffix)(T * y, const T *x, long long n, struct function f)               \
	{                                                                                          \
		function<T>(y, x, n, f);                                                           \
	}
FOR_TYPES(FUNCTION)

// v is the function's output where its slope follows from it, else its input; a slope at the end of
// a piece is that of the outer piece.
#define SLOPE(code, result)                                                                        \
	case code:                                                                                 \
		return each_pair(dx, dy, in, n, [=](float d, float v) { return (result); });

template <class T>
DEVICE void function_grad(T *dx, const T *dy, const T *in, long long n, struct function f)
{
	float alpha = f.alpha, beta = f.beta;

	switch (f.code) {
		SLOPE(FUNCTION_RELU, v == 0 ? 0 : d)
		SLOPE(FUNCTION_TANH, d * (1 - v * v))
		SLOPE(FUNCTION_SIGMOID, d * (v * (1 - v)))
		SLOPE(FUNCTION_HARD_SIGMOID,
		      alpha * v + beta <= 0 || alpha * v + beta >= 1 ? 0 : d * alpha)
		SLOPE(FUNCTION_HARD_SWISH, d * (v <= -3 ? 0 : v >= 3 ? 1 : 0.5f + v / 3))
		SLOPE(FUNCTION_CLIP, v <= alpha || v >= beta ? 0 : d)
		SLOPE(FUNCTION_ELU, v > 0 ? d : d * (alpha * expf(v)))
		SLOPE(FUNCTION_LEAKY_RELU, v > 0 ? d : d * alpha)
		SLOPE(FUNCTION_EXP, d * v)
		SLOPE(FUNCTION_SQRT, d * (0.5f / v))
		SLOPE(FUNCTION_LOG, d / v)
		SLOPE(FUNCTION_GELU, d * gelu_slope(v))
		SLOPE(FUNCTION_GELU_TANH, d * gelu_tanh_slope(v))
		SLOPE(FUNCTION_SWISH, d * swish_slope(v, alpha))
		SLOPE(FUNCTION_ERF, d * (ROOT_2_PI / ROOT_HALF * expf(-v * v)))
		SLOPE(FUNCTION_POW, d * (alpha * powf(v, alpha - 1)))
	}
}

#define FUNCTION_GRAD(T, suffix)                                                                   \
	KERNEL(function_grad_##suffix)                                                             \
	(T * dx, const T *dy, const T *in, long long n, struct function f)                         \
	{                                                                                          \
		function_grad<T>(dx, dy, in, n, f);                                                \
	}
FOR_TYPES(FUNCTION_GRAD)
