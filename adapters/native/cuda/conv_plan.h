/*
 * From a convolution to a plan of cuDNN: the operation graph, the engines that its heuristics name,
 * which of them the precision allows, and the fastest of the first few where a device measures
 * them. Without a device it plans for one that is described as JSON (cuDNN 9.8 and newer).
 *
 * Strict fp32: the interface has no math mode, and its first choice in fp32 is TF32. So engines
 * with numerical notes are left out, and engine 17, which bears no note and was off by 2e-5 to 6e-4
 * on an H200; what is left must also be right in a measurement.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_CONV_PLAN_H
#define PRONY_ADAPTERS_NATIVE_CUDA_CONV_PLAN_H

#include <stdbool.h>

#include "adapters/native/cuda/plan_build.h"
#include "base/json.h"
#include "graph/graph.h"

/* The engine that strict plans leave out by its number. */
#define CONV_ENGINE_INEXACT 17

/* No plan uses more workspace than this. */
#define CONV_WORKSPACE_BYTES (INT64_C(256) << 20)

enum conv_kind { CONV_FORWARD, CONV_GRAD_INPUT, CONV_GRAD_WEIGHT };

/* A convolution of images. The number of groups is x[1] / w[1]. Sums are fp32. */
struct conv_problem {
	enum conv_kind kind;
	int64_t x[4], w[4], y[4]; /* N C H W; outputs, inputs of a group, R, S; N outputs H W */
	int64_t strides[2], dilations[2], before[2], after[2];
	enum dtype type, w_type; /* of x and y, and of w or its gradient */
	bool strict;		 /* fp32 without tensor cores; else any engine with fp32 sums */
	bool channels_last;	 /* x, w and y; else row-major */
	/* Of a forward one: plus z, which is like y; plus a bias in that type; then max(0, x).
	 * cuDNN has engines for a sum or a ReLU only together with a bias. */
	bool sum, bias, relu;
};

const char *conv_kind_word(enum conv_kind kind); /* "input gradient" */

/* The problem of convolution n of a graph, without bias and ReLU: in row-major order when strict,
 * else channels last. Of a ConvTranspose: the convolution whose x is its result and whose y is its
 * input. */
struct conv_problem conv_problem_of(const struct graph *graph, int n, enum conv_kind kind,
				    enum dtype type, bool strict);

/* The problem as text, a key of the cache: "forward f32 strict nchw x 64 3 ...". */
enum { CONV_KEY_BYTES = 320 };
void conv_problem_key(const struct conv_problem *problem, char out[CONV_KEY_BYTES]);

/* Bits: the numerical notes that an engine must not have. */
unsigned conv_forbidden_notes(const struct conv_problem *problem);

/* Above this measured error a strict plan is chosen only if no other is below. Plans with fp32
 * products gave 1e-7 to 1e-6, TF32 3e-4 and engine 17 from 2e-5. */
#define CONV_STRICT_ERROR_MAX 1e-5

struct plan_cache;

struct conv_planner {
	const struct cudnn *cudnn;
	cudnn_handle handle;	  /* of the device, or NULL: */
	cudnn_descriptor device;  /* its description (conv_device) */
	struct plan_cache *cache; /* plans made before, and new ones; NULL: none */
	/* Runs plans on random data and sets their ms, and for a strict problem their error, the
	 * relative error of some results (conv_error). Plans that are hopeless beside an earlier
	 * one are run once and not checked. ms stays 0 where a plan does not run, or where time is
	 * over. NULL: the first allowed plan is taken. */
	enum prony_status (*measure)(void *context, const struct conv_problem *problem,
				     struct cudnn_plan *plans, int count, struct error *err);
	void *context;
};

/* Makes the description of a device from the JSON that cuDNN gives of one. Destroy it with
 * BackendDestroyDescriptor. */
enum prony_status conv_device(const struct cudnn *cudnn, const char *json, cudnn_descriptor *out,
			      struct error *err);

/* Plans a problem, or loads its plan from the cache; release it with cudnn_plan_release. `name` is
 * the layer's, for messages. PRONY_UNSUPPORTED: no engine is allowed, or none below the limit of
 * workspace. */
enum prony_status conv_plan_make(const struct conv_planner *planner,
				 const struct conv_problem *problem, const char *name,
				 struct cudnn_plan *out, struct error *err);

/* Addresses on the device; z, bias and workspace may be NULL if the plan needs none. */
struct conv_data {
	void *x, *w, *y, *z, *bias, *workspace;
};

/* Issues a plan on the handle's stream. */
enum prony_status conv_plan_run(const struct cudnn *cudnn, cudnn_handle handle,
				const struct conv_problem *problem, const struct cudnn_plan *plan,
				const struct conv_data *data, const char *name, struct error *err);

/* The plan as JSON, to be freed by the caller; NULL if this engine's plans cannot be written. */
char *conv_plan_json(const struct cudnn *cudnn, const struct cudnn_plan *plan);

/*
 * Results of a problem on known numbers, to check plans for strict fp32 (conv_sample.c). Element i
 * of x, w and y (tensor 0, 1, 2) is numbers[(i + conv_shift(tensor)) % CONV_NUMBERS], in the order
 * of memory, and the bias is 0.
 */
enum { CONV_NUMBERS = 1048573, CONV_SAMPLES_MAX = 64 };
struct conv_sample {
	int64_t at; /* place in the result */
	double sum; /* the result in float64 */
	float found;
};
int64_t conv_shift(int tensor);
/* Chooses results and computes their sums; returns their number, fewer where they are long. */
int conv_samples(const struct conv_problem *problem, const float *numbers,
		 struct conv_sample out[CONV_SAMPLES_MAX]);
/* The relative error of `found`: the root of the ratio of the sums of squares. */
double conv_error(const struct conv_sample *samples, int count);

/*
 * Plans of one device and version of cuDNN, kept from run to run in a file of the cache folder
 * (plan_cache.c). Plans that were made elsewhere can be put there. Planning works without it: a
 * file that cannot be read or written is ignored.
 */
struct plan_cache *plan_cache_open(const struct cudnn *cudnn, const char *device, int capability);
/* The plan of that key as JSON, borrowed; NULL if there is none. */
const char *plan_cache_find(const struct plan_cache *cache, const char *key, double *ms,
			    double *error);
void plan_cache_add(struct plan_cache *cache, const char *key, const char *plan, double ms,
		    double error);
/* Writes what is new, together with what other processes have written meanwhile. */
void plan_cache_write(struct plan_cache *cache);
void plan_cache_close(struct plan_cache *cache); /* writes too */

#endif
