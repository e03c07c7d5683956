/* Descriptors of cuDNN's operation graphs and plans, which convolutions (conv_plan.c) and attention
 * (attention_plan.c) are made of. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_PLAN_BUILD_H
#define PRONY_ADAPTERS_NATIVE_CUDA_PLAN_BUILD_H

#include <stdbool.h>

#include "adapters/native/cuda/cudnn.h"
#include "graph/graph.h"

/* All addresses are multiples of it. */
enum { PLAN_ALIGNMENT = 16 };

/* Descriptors of the largest graph, an attention's gradients, and of its plan. */
enum { CUDNN_PLAN_PARTS = 128 };

struct cudnn_plan {
	cudnn_descriptor execution;		  /* one of the parts */
	cudnn_descriptor parts[CUDNN_PLAN_PARTS]; /* owned */
	int part_count;
	int64_t workspace, engine;
	unsigned notes; /* bits: numerical notes of the engine */
	float ms;	/* as measured, or 0 */
	double error;	/* relative error as measured, or 0 */
};
void cudnn_plan_release(const struct cudnn *cudnn, struct cudnn_plan *plan);

/* Descriptors of a plan in the making: keeps the first failure and ignores later calls. */
struct plan_build {
	const struct cudnn *cudnn;
	struct cudnn_plan *plan; /* owns the descriptors */
	int status;
	const char *what; /* what failed */
};

cudnn_descriptor plan_part(struct plan_build *b, int type);
void plan_set(struct plan_build *b, cudnn_descriptor descriptor, int attribute, int type,
	      int64_t count, const void *elements);
void plan_set_part(struct plan_build *b, cudnn_descriptor descriptor, int attribute,
		   cudnn_descriptor part);
void plan_finalise(struct plan_build *b, cudnn_descriptor descriptor, const char *what);
int plan_data_type(enum dtype type);

/* A tensor of rank 4. */
struct plan_tensor {
	int64_t uid;
	int type; /* enum cudnn_data_type */
	int64_t dims[4], strides[4];
	bool is_virtual;
	bool by_value; /* one number in the host's memory */
};
cudnn_descriptor plan_tensor(struct plan_build *b, const struct plan_tensor *tensor);

/* y = mode(x, second, third), with as many terms as the mode has; in fp32 unless `math` is another
 * type. */
struct plan_function {
	int mode, math;
	int64_t axis; /* of CUDNN_POINTWISE_GEN_INDEX */
	cudnn_descriptor x, second, third, y;
};
cudnn_descriptor plan_pointwise(struct plan_build *b, const struct plan_function *function);

/* handle: of the device, or NULL. */
cudnn_descriptor plan_graph(struct plan_build *b, cudnn_handle handle,
			    const cudnn_descriptor *operations, int64_t count);

/* How many configurations of one mode of the heuristics are looked at. */
enum { PLAN_CONFIGURATIONS_MAX = 64 };

/* The configurations that one mode of the heuristics names for a graph, best first; `device`: the
 * description of a device, or NULL if the graph has a handle. The descriptors belong to the caller;
 * those beyond the result's count hold nothing. */
int plan_heuristics(const struct cudnn *cudnn, cudnn_descriptor device, cudnn_descriptor graph,
		    int mode, cudnn_descriptor made[PLAN_CONFIGURATIONS_MAX], int *made_count);

/* Appends the plan of a configuration, for a handle or a description of a device. Call plan_finish
 * next. */
void plan_of_configuration(struct plan_build *b, cudnn_handle handle, cudnn_descriptor device,
			   cudnn_descriptor configuration);
/* Finalises b->plan->execution, whose attributes are set, and asks for its workspace, which may
 * differ from that of the device for which a kept plan was made. False, and the plan is released,
 * if the library cannot or the workspace is larger than `most`. */
bool plan_finish(struct plan_build *b, int64_t most);

/* Issues a plan on the handle's stream, with the addresses of the tensors of these ids. */
enum prony_status plan_run(const struct cudnn *cudnn, cudnn_handle handle,
			   const struct cudnn_plan *plan, const int64_t *ids,
			   void *const *addresses, int64_t count, void *workspace, const char *what,
			   const char *name, struct error *err);

#endif
