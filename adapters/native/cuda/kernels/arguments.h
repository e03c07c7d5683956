/* Structs that kernels take by value, for the host's C (cuda_struct) and the kernels' C++. Only
 * int, long long, float and arrays of them: the same layout in both. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_KERNELS_ARGUMENTS_H
#define PRONY_ADAPTERS_NATIVE_CUDA_KERNELS_ARGUMENTS_H

/* elementwise.cu: functions of one number. */
enum function_code {
	FUNCTION_RELU,
	FUNCTION_TANH,
	FUNCTION_SIGMOID,
	FUNCTION_HARD_SIGMOID, /* alpha * x + beta, within 0 and 1 */
	FUNCTION_HARD_SWISH,
	FUNCTION_CLIP, /* from alpha to beta */
	FUNCTION_ELU,
	FUNCTION_LEAKY_RELU,
	FUNCTION_EXP,
	FUNCTION_SQRT,
	FUNCTION_LOG,
	FUNCTION_GELU,
	FUNCTION_GELU_TANH,
	FUNCTION_NEG
};

struct function {
	int code; /* enum function_code */
	float alpha, beta;
};

/* update.cu */
struct cuda_update_rule {
	float learning_rate, momentum, weight_decay, rho, epsilon;
};

/* The loss scale of fp16, in the device's memory, which is zero at first. The loss is multiplied by
 * LOSS_SCALE_START * 2^exponent. */
struct loss_scale {
	int exponent;
	int good;      /* steps without inf and NaN since the exponent changed */
	int skip;      /* the gradients of this step have inf or NaN */
	float inverse; /* 1 / scale of this step */
};

/* As PyTorch's GradScaler, but its start value of 65536 overflows in the first steps: see
 * LOSS_SCALE in python/adapters/pytorch.py. */
#define LOSS_SCALE_START 1024.0f
enum { LOSS_SCALE_GROWTH_STEPS = 2000 };

#endif
