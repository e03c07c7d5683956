/* The CPU's backend: oneDNN and prony's own loops. Shared declarations by file, the lowest level
 * first. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_CPU_H
#define PRONY_ADAPTERS_NATIVE_CPU_CPU_H

#include "adapters/native/cpu/kernels/loops.h"
#include "adapters/native/cpu/onednn.h"
#include "adapters/native/lower/lower_internal.h"

#define CPU_NORM_PARTS 256

struct device {
	struct onednn dnn;
	const struct kernels *kernels;
	/* Descriptors and attributes that planning uses; owned until the program is complete. */
	struct kept *kept;
	int kept_count, kept_capacity;
	dnnl_primitive_attr_t attributes; /* attributes of primitives without a chain; kept */
	dnnl_status_t failed; /* dnnl_success, or why a kept object could not be created */
	struct update_rule rule;
	void (*update)(float *w, float *v, const float *g, const struct update_rule *rule,
		       size_t n);
	size_t decayed; /* the numbers, from the first, that AdamW decays */
	double betas[2];
	int64_t updates;		/* of AdamW so far */
	double clip_norm;		/* 0: no clipping */
	double mean;			/* of a sum over ranks: 1 / ranks; else 1 */
	double squares[CPU_NORM_PARTS]; /* half the sum of squares of each part of the gradients */
};

struct work {
	dnnl_primitive_t primitive; /* owned; NULL: kernel */
	void (*kernel)(struct program *program, const struct command *command);
	dnnl_exec_arg_t *args; /* of a primitive, in the order of the command's operands */
	int parts;	       /* of a primitive: see cpu_primitive_parts; else 1 */
	size_t elements;       /* of a kernel */
	bool bf16;	       /* operand 0 of a kernel, and the operands of its kind */
	double ratio;	       /* dropout; momentum of a statistic; fill value */
	const void *detail;    /* other data of a kernel, in the program's arena */
};

struct node_work {
	dnnl_primitive_desc_t forward, backward_data, backward_weights; /* owned */
	const struct recurrent *recurrent;				/* recurrent.c */
	const void *detail;		 /* data that the gradient's kernel also needs */
	struct winograd_layer *winograd; /* winograd.c; NULL if it does not compute the node */
	bool winograd_gradient;		 /* it also computes the gradient of the input */
};

static inline const struct onednn *cpu_onednn(const struct lowering *l)
{
	return &l->program->device->dnn;
}

/* layout.c: layouts as the library's descriptors. */

dnnl_data_type_t cpu_type(enum dtype type);
/* Creates a descriptor, which the caller destroys. */
enum prony_status cpu_describe(const struct onednn *dnn, const struct layout *layout,
			       dnnl_memory_desc_t *out, struct error *err);
/* Its blob, if any, is borrowed from `desc`. */
struct layout cpu_layout(const struct onednn *dnn, const_dnnl_memory_desc_t desc);

/* The device owns the results of these functions until the program is complete. If one cannot be
 * created, device.failed stores the error, and cpu_finish fails. */
void cpu_keep(struct device *device, dnnl_memory_desc_t desc, dnnl_primitive_attr_t attributes);
const_dnnl_memory_desc_t cpu_desc_of(const struct lowering *l, const struct layout *layout);
const_dnnl_memory_desc_t cpu_row_major(const struct lowering *l, enum dtype type, int rank,
				       const int64_t *dims);
/* A layout that a primitive may choose freely. */
const_dnnl_memory_desc_t cpu_any(const struct lowering *l, enum dtype type, int rank,
				 const int64_t *dims);
/* The layout of the library's tag `tag`. */
struct layout cpu_tagged(const struct lowering *l, enum dtype type, int rank, const int64_t *dims,
			 dnnl_format_tag_t tag);
void cpu_release_kept(struct device *device);

const_dnnl_memory_desc_t cpu_desc(const struct lowering *l, int operand);
bool cpu_same_layout(const struct device *device, const struct layout *a, const struct layout *b);
bool cpu_same_blocks(struct device *device, const struct layout *like, enum dtype type, int rank,
		     const int64_t *dims, struct layout *out);
bool cpu_view(struct device *device, const struct layout *whole, const int64_t *start,
	      const int64_t *dims, struct layout *out);
bool cpu_permute(struct device *device, const struct layout *layout, const int *order,
		 struct layout *out);

/* The position and movement of a node's windows, in the library's form. */
struct sliding_window {
	dnnl_dims_t kernel, strides, dilations, before, after;
};
struct sliding_window cpu_window(const struct lowering *l, const struct node *node);

/* A planned operand, and lower_as, for a layout that a primitive has chosen. */
enum prony_status cpu_operand(struct lowering *l, const_dnnl_memory_desc_t desc, int *out,
			      struct error *err);
/* The workspace of a primitive in training; OPERAND_NONE in *out if it has none. */
enum prony_status cpu_workspace(struct lowering *l, const_dnnl_primitive_desc_t pd, int *out,
				struct error *err);
enum prony_status cpu_as(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
			 const char *name, int *out, struct error *err);

/* primitive.c: attributes and implementations of the library's primitives. */

/* A function in the library's form. */
struct eltwise_function {
	dnnl_alg_kind_t algorithm;
	float alpha, beta;
};

/* Whether the operator is an element-wise function that the library has. */
bool cpu_has_function(enum op op);
/* Returns the library's function for an operator, with the attributes of `node`. In training the
 * gradient needs a forward pass with the same algorithm. */
struct eltwise_function cpu_function(enum op op, const struct node *node, bool training);

/* Attributes of primitives: strict fp32, prony's scratchpad, and the part of a chain (NULL: none)
 * that the primitive computes. Kept by the device. */
const_dnnl_primitive_attr_t cpu_attributes(const struct lowering *l, const struct chain *chain);
/* The grade of an implementation: 0 reference code, 1 general (im2col and gemm), 2 specialised. */
int cpu_grade(const struct lowering *l, const_dnnl_primitive_desc_t pd, int gemm_grade);
/* Notes the implementations, forward and backward, of a node and of the `count` nodes that are
 * computed with it. */
void cpu_note(struct lowering *l, int n, const int *fused, int count);
/*
 * Notes the type in which each product (convolution, matrix product, recurrent layer) multiplies.
 */
enum prony_status cpu_check_types(struct lowering *l, struct error *err);

/* execute.c: commands, and running them. */

/* Creates the primitive of `pd` and appends it. operands[i] is passed as args[i]; OPERAND_NONE ones
 * are omitted. The primitive's scratchpad is planned too. */
enum prony_status cpu_primitive(struct lowering *l, const char *name, const char *what,
				const_dnnl_primitive_desc_t pd, const int *args,
				const int *operands, int count, struct error *err);
/* The same for `parts` independent parts of the work, which run at the same time on as many
 * threads. Part p has operands[p * count + i] as args[i]; an operand is OPERAND_NONE in all parts
 * or in none. The primitive was described for one thread (onednn_use_threads), with a library that
 * uses OpenMP threads. */
enum prony_status cpu_primitive_parts(struct lowering *l, const char *name, const char *what,
				      const_dnnl_primitive_desc_t pd, const int *args,
				      const int *operands, int count, int parts, struct error *err);
/* Appends nodes[n].work->forward, whose only result has the layout of its only source,
 * nodes[n].src. */
enum prony_status cpu_unary(struct lowering *l, int n, struct error *err);
/* The backend's copy: a reorder. */
enum prony_status cpu_copy(struct lowering *l, int from, int to, const char *name, const char *what,
			   struct error *err);
/* Appends one of prony's own loops; operands[0] gives the number of elements. */
struct work *cpu_kernel(struct lowering *l, const char *name, const char *what,
			void (*kernel)(struct program *, const struct command *),
			const int *operands, int count);
/* The operand's memory for such a loop, and the threads for its elements. Optional operands are the
 * last ones: NULL if the command has fewer. */
void *cpu_data(const struct program *program, const struct command *command, int i);
void *cpu_optional(const struct program *program, const struct command *command, int i);
int cpu_threads(const struct program *program, size_t elements);

enum prony_status cpu_finish(struct program *program, struct error *err);
enum prony_status cpu_run(struct program *program, int slot, struct error *err);
enum prony_status cpu_run_one(struct program *program, int i, struct error *err);
void cpu_release_commands(struct program *program);
/* Runs one reorder between two memories, outside steps. */
enum prony_status cpu_reorder_now(const struct onednn *dnn, const_dnnl_memory_desc_t from_desc,
				  const void *from, const_dnnl_memory_desc_t to_desc, void *to,
				  struct error *err);

/* weighted.c: functions for convolutions and matrix products. The forward node has kept its
 * primitive descriptors. */
enum prony_status cpu_weighted_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status cpu_weighted_grad_weight(struct lowering *l, int n, struct error *err);
/* Declares the parameters of node n and appends its forward primitive. */
enum prony_status cpu_weighted_forward(struct lowering *l, int n, const struct layout *outside,
				       const struct chain *chain, struct error *err);

/* depthwise.c: convolutions in which each channel has its own window. Gradients are for layers
 * whose pass the library computes slowly; dx and dy are operands in the layouts of the forward
 * pass. */
bool cpu_is_depthwise(const struct lowering *l, int n);
enum prony_status cpu_depthwise(struct lowering *l, int n, struct error *err);
void cpu_depthwise_grad_input(struct lowering *l, int n, int dx, int dy);
enum prony_status cpu_depthwise_grad_weight(struct lowering *l, int n, struct error *err);

/* few_rows_gemm.c: matrix products of few rows with many weights; the source is nodes[n].src. */
bool cpu_is_few_rows(const struct lowering *l, int n);
enum prony_status cpu_few_rows(struct lowering *l, int n, struct error *err);

/* winograd.c: convolutions of 3x3 windows with fewer multiplications; the source is nodes[n].src.
 * In training the library's primitives of the node must exist as well. *done is false, and nothing
 * is appended, if they need other layouts. If winograd_gradient is set, it also computes the
 * gradient of the input. */
bool cpu_is_winograd(const struct lowering *l, int n);
enum prony_status cpu_winograd(struct lowering *l, int n, bool *done, struct error *err);
void cpu_winograd_grad_input(struct lowering *l, int n, int dx, int dy);

/* The other operators: a function for each or for a family; n is the node. */

/* conv.c, gemm.c, matmul.c, recurrent.c */
enum prony_status cpu_conv(struct lowering *l, int n, struct error *err);
enum prony_status cpu_conv_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status cpu_conv_grad_weight(struct lowering *l, int n, struct error *err);
enum prony_status cpu_gemm(struct lowering *l, int n, struct error *err);
enum prony_status cpu_matmul(struct lowering *l, int n, struct error *err);
/* The layout of a value in which a Transpose that alone reads it needs no copy; else row-major. */
struct layout cpu_result_layout(const struct lowering *l, int value, enum dtype type);
/* attention.c: the backend's attention. */
enum prony_status cpu_attention(struct lowering *l, struct fused_attention *attention,
				bool gradient, struct error *err);
enum prony_status cpu_recurrent(struct lowering *l, int n, struct error *err);
enum prony_status cpu_recurrent_grad(struct lowering *l, int n, struct error *err);
/* pool.c, norm.c, layer_norm.c, row_norm.c, lrn.c */
enum prony_status cpu_pool(struct lowering *l, int n, struct error *err);
enum prony_status cpu_pool_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_batch_norm(struct lowering *l, int n, struct error *err);
enum prony_status cpu_batch_norm_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_layer_norm(struct lowering *l, int n, struct error *err);
enum prony_status cpu_layer_norm_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_row_norm(struct lowering *l, int n, struct error *err);
enum prony_status cpu_row_norm_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_lrn(struct lowering *l, int n, struct error *err);
enum prony_status cpu_lrn_grad(struct lowering *l, int n, struct error *err);
/* binary.c */
enum prony_status cpu_binary(struct lowering *l, int n, struct error *err);
enum prony_status cpu_expand(struct lowering *l, int n, struct error *err);
enum prony_status cpu_mean(struct lowering *l, int n, struct error *err);
enum prony_status cpu_mean_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_broadcast_grad(struct lowering *l, int n, struct error *err);
void cpu_copy_box(struct lowering *l, const char *name, int rank, const int64_t *dims, int from,
		  const struct box *source, int to, const struct box *target);
/* cache.c, concat.c, eltwise.c, gather.c, resize.c, softmax.c */
enum prony_status cpu_cache(struct lowering *l, int n, struct error *err);
enum prony_status cpu_resize(struct lowering *l, int n, struct error *err);
enum prony_status cpu_resize_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_concat(struct lowering *l, int n, struct error *err);
enum prony_status cpu_gather(struct lowering *l, int n, struct error *err);
enum prony_status cpu_gather_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_eltwise(struct lowering *l, int n, struct error *err);
enum prony_status cpu_eltwise_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_softmax(struct lowering *l, int n, struct error *err);
enum prony_status cpu_softmax_grad(struct lowering *l, int n, struct error *err);
/* loops.c */
enum prony_status cpu_relu(struct lowering *l, int n, struct error *err);
enum prony_status cpu_relu_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_erf(struct lowering *l, int n, struct error *err);
void cpu_erf_grad(struct lowering *l, const char *name, int dx, int dy, int x);
enum prony_status cpu_dropout(struct lowering *l, int n, struct error *err);
enum prony_status cpu_dropout_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_half_squares(struct lowering *l, int n, struct error *err);
enum prony_status cpu_cross_entropy(struct lowering *l, int n, struct error *err);
void cpu_fill(struct lowering *l, const char *name, int operand, double value);
void cpu_update(struct lowering *l);

#endif
