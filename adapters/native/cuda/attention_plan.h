/*
 * Attention, softmax(scale q k' + mask) v, and its gradients as plans of cuDNN: the operation
 * graphs that its engines for attention recognise, built as NVIDIA's cudnn-frontend builds them
 * (include/cudnn_frontend/node/scaled_dot_product_flash_attention.h, CompositeSDPANode and
 * CompositeSDPABackwardNode). Scores are never stored. cuDNN has such engines for 16 bits only.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_ATTENTION_PLAN_H
#define PRONY_ADAPTERS_NATIVE_CUDA_ATTENTION_PLAN_H

#include "adapters/native/cuda/plan_build.h"

/* Arrays of a plan. Those up to ATTENTION_DV are N x H x T x d in the type of activations, the
 * others fp32 but for the last two. */
enum attention_array {
	ATTENTION_Q,
	ATTENTION_K,
	ATTENTION_V,
	ATTENTION_Y,
	ATTENTION_DY, /* this and the next three: of gradients only */
	ATTENTION_DQ,
	ATTENTION_DK,
	ATTENTION_DV,
	ATTENTION_TENSORS,
	/* N x H x T: the logarithm of the sum of each query's exponentials. Written by the forward
	 * pass if `stats`, read by the gradients. */
	ATTENTION_STATS = ATTENTION_TENSORS,
	ATTENTION_ROW_SUMS, /* scratch of the gradients, N x H x T */
	ATTENTION_DQ_SUMS,  /* scratch of the gradients, N x H x T x d; zero it before each run */
	/* With dropout: one number each, 64 bits, in the device's memory. The gradients need those
	 * of the forward pass. */
	ATTENTION_SEED,
	ATTENTION_OFFSET,
	ATTENTION_ARRAYS
};

/* Compared byte by byte: zero it first. */
struct attention_problem {
	int64_t samples, heads, queries, keys, width;
	int64_t strides[ATTENTION_TENSORS][4]; /* in the order N H T d; that of d is 1 */
	enum dtype type;
	bool causal;   /* a query sees keys up to its own place */
	bool gradient; /* dq, dk, dv; else y */
	bool stats;    /* of a forward pass */
	double ratio;  /* the share of weights that dropout drops, or 0 */
};

/* No plan uses more workspace than this. */
#define ATTENTION_WORKSPACE_BYTES (INT64_C(256) << 20)

/* Plans a problem for the device of a handle, or, if that is NULL, for the described `device`;
 * takes the first plan that cuDNN's heuristics name and the library can make. Release it with
 * cudnn_plan_release. `name` is the layer's, for messages. PRONY_UNSUPPORTED: there is none. */
enum prony_status attention_plan_make(const struct cudnn *cudnn, cudnn_handle handle,
				      cudnn_descriptor device,
				      const struct attention_problem *problem, const char *name,
				      struct cudnn_plan *out, struct error *err);

/* Issues a plan on the handle's stream. data: addresses on the device; NULL for those that the plan
 * lacks. */
enum prony_status attention_plan_run(const struct cudnn *cudnn, cudnn_handle handle,
				     const struct attention_problem *problem,
				     const struct cudnn_plan *plan, float scale,
				     void *const data[ATTENTION_ARRAYS], void *workspace,
				     const char *name, struct error *err);

#endif
