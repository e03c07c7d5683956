/* Structs that kernels take by value, for the host's C (cuda_struct) and the kernels' C++. Only
 * int, long long, float and arrays of them: the same layout in both. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_KERNELS_ARGUMENTS_H
#define PRONY_ADAPTERS_NATIVE_CUDA_KERNELS_ARGUMENTS_H

/* Kernels that have packs load and store so many bytes at once where a layout allows it. */
enum { PACK_BYTES = 16 };

/* pool.cu: windows on images. */
struct pool_arguments {
	int channels, in[2], out[2];
	int kernel[2], strides[2], dilations[2], pads[4]; /* as in struct attributes */
	int channels_last, packed;
	int include_pad; /* an average counts padding */
	int wide;	 /* a window has more than 256 elements */
};

/* batch_norm.cu */
enum { NORM_FINISH_CHANNELS = 8 }; /* a block of the second stage */
struct norm_arguments {
	long long rows; /* of channels * inner elements each */
	int channels, inner;
	int packed, relu;
	int uncentred;		  /* layer_norm.cu: RMSNormalization, without mean and shift */
	int tiles, lanes, chunks; /* a reduction has tiles * chunks blocks, with channels last for
				     `lanes` packs of channels each */
	long long groups;	  /* rows that a whole element-wise kernel computes at a time */
	float epsilon, momentum;
};

/* lrn.cu: a thread computes LRN_RUN channels, a pack of them, or one if a window reaches beyond
 * LRN_HALO channels. */
enum { LRN_HALO = 2, LRN_RUN = 8 };
struct lrn_arguments {
	int channels, inner; /* elements from one channel to the next: 1 with channels last */
	int before, after;   /* channels beside an element's own in its window */
	int packed, wide;
	float scale, bias, beta, slope; /* alpha / size; slope: 2 alpha beta / size */
};

/* recurrent.cu: one step */
struct recurrent_arguments {
	int batch, steps, hidden, step, training;
};

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
	FUNCTION_SWISH, /* x sigmoid(alpha x) */
	FUNCTION_NEG,
	FUNCTION_ERF,
	FUNCTION_POW /* x^alpha */
};

struct function {
	int code; /* enum function_code */
	float alpha, beta;
};

/* update.cu */
struct cuda_update_rule {
	float learning_rate, momentum, weight_decay, rho, epsilon;
	float beta1, beta2, rest1, rest2; /* AdamW; rest: 1 - beta */
};

/* The updates of AdamW so far and what corrects the bias of this one, in the device's memory, which
 * is zero at first. */
struct adam_step {
	int updates;
	float scale1, scale2;
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

enum { WALK_RANK_MAX = 8 };

/* The places of an array's elements; strides count elements, 0 repeats. */
struct cuda_walk {
	int rank;
	int dims[WALK_RANK_MAX];
	long long strides[WALK_RANK_MAX];
};

/* binary.cu */
enum broadcast_code { BROADCAST_ADD, BROADCAST_SUB, BROADCAST_MUL, BROADCAST_DIV, BROADCAST_SCALE };

/* y[i] = a[i] op b[i], then max(0, y) if relu, or factor * a[i] for BROADCAST_SCALE. The dimensions
 * of both walks are those of y, which has no gaps, in the order of its strides. */
struct cuda_broadcast {
	int code; /* enum broadcast_code */
	int relu;
	float factor;
	struct cuda_walk a, b;
};

/* reduce.cu: the sums over the dimensions `terms` of an array for each element of `outputs`, times
 * factor. The terms of each output are in `splits` parts, whose sums are numbers of their own:
 * part, then output. */
struct cuda_reduction {
	struct cuda_walk outputs, terms;
	int output_count, term_count, splits;
	float factor;
};

/* gather.cu: a cache and the rows that are written into it. */
struct cache_shape {
	int outer, blocks_of_sample, size, places, width;
};

/* dropout.cu: see adapters/native/dropout.h. */
struct cuda_dropout {
	long long seed, node, threshold;
	float scale;
};

/* group_norm.cu: row-major images; channels of a group, elements of a channel. */
struct group_arguments {
	int samples, groups, channels, inner;
	float epsilon;
};

/* resize.cu: images of in[0] x in[1] and those that are scales[] times as large. */
struct resize_arguments {
	long long planes; /* of all images */
	int channels, in[2], scales[2];
	int linear, align_corners;
	int last; /* channels are innermost */
};

/* conv.cu: all elements of a tensor by channel. */
struct channel_rows {
	long long rows, places; /* of the batch, and of one image */
	int channels, parts;
	int last; /* channels are innermost */
};

/* copy.cu: a copy of dims[0] x ... elements between two places of any strides, the last dimension
 * fastest. Offsets and strides in elements. */
enum { COPY_RANK_MAX = 8 };
struct copy_shape {
	int rank;
	long long elements;
	long long from_start, to_start;
	long long dims[COPY_RANK_MAX], from[COPY_RANK_MAX], to[COPY_RANK_MAX];
};

/* copy.cu: `batch` matrices of rows x columns, each transposed. */
struct transpose_shape {
	long long batch, rows, columns;
};

#endif
