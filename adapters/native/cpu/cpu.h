/*
 * The CPU's backend: oneDNN and loops of our own. What its files share, by the file that has it,
 * the ones below first.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_CPU_H
#define PRONY_ADAPTERS_NATIVE_CPU_CPU_H

#include "adapters/native/cpu/kernels/loops.h"
#include "adapters/native/cpu/onednn.h"
#include "adapters/native/lower/lower_internal.h"

struct device {
	struct onednn dnn;
	const struct kernels *kernels;
	/* Descriptors and attributes that planning uses; owned, until the program is complete. */
	struct kept *kept;
	int kept_count, kept_capacity;
	dnnl_primitive_attr_t attributes; /* of primitives that compute nothing besides; kept */
	dnnl_status_t failed; /* why something that is kept could not be made; dnnl_success */
	struct update_rule rule;
	void (*update)(float *w, float *v, const float *g, const struct update_rule *rule,
		       size_t n);
};

struct work {
	dnnl_primitive_t primitive; /* owned; NULL: kernel */
	void (*kernel)(struct program *program, const struct command *command);
	dnnl_exec_arg_t *args; /* of a primitive, in the order of the command's operands */
	int parts;	       /* of a primitive: see cpu_primitive_parts; else 1 */
	size_t elements;       /* of a kernel */
	bool bf16;	       /* operand 0 of a kernel, and those of its kind */
	double ratio;	       /* dropout; momentum of a statistic; what is filled in */
	const void *detail;    /* what else a kernel needs, in the program's arena */
};

struct node_work {
	dnnl_primitive_desc_t forward, backward_data, backward_weights; /* owned */
	const struct recurrent *recurrent;				/* recurrent.c */
	const void *detail;		 /* what the gradient's kernel needs, too */
	struct winograd_layer *winograd; /* winograd.c; NULL where it does not compute the node */
	bool winograd_gradient;		 /* it computes the gradient of the input, too */
};

static inline const struct onednn *cpu_onednn(const struct lowering *l)
{
	return &l->program->device->dnn;
}

extern const struct backend backend_cpu;

/* layout.c: layouts in the library's words. */

dnnl_data_type_t cpu_type(enum dtype type);
/* A descriptor that the caller destroys. */
enum prony_status cpu_describe(const struct onednn *dnn, const struct layout *layout,
			       dnnl_memory_desc_t *out, struct error *err);
/* Its blob, if any, is borrowed from `desc`. */
struct layout cpu_layout(const struct onednn *dnn, const_dnnl_memory_desc_t desc);

/* What these return is the device's, until the program is complete. Where one cannot be made,
 * device.failed says so, and cpu_finish fails. */
void cpu_keep(struct device *device, dnnl_memory_desc_t desc, dnnl_primitive_attr_t attributes);
const_dnnl_memory_desc_t cpu_desc_of(const struct lowering *l, const struct layout *layout);
const_dnnl_memory_desc_t cpu_row_major(const struct lowering *l, enum dtype type, int rank,
				       const int64_t *dims);
/* A layout that a primitive is free to choose. */
const_dnnl_memory_desc_t cpu_any(const struct lowering *l, enum dtype type, int rank,
				 const int64_t *dims);
/* The layout that the library calls `tag`. */
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

/* How the windows of a node move over its input, in the library's words. */
struct sliding_window {
	dnnl_dims_t kernel, strides, dilations, before, after;
};
struct sliding_window cpu_window(const struct lowering *l, const struct node *node);

/* A planned operand, and lower_as, for a layout that a primitive has chosen. */
enum prony_status cpu_operand(struct lowering *l, const_dnnl_memory_desc_t desc, int *out,
			      struct error *err);
/* The workspace of a primitive in training; OPERAND_NONE in *out where it has none. */
enum prony_status cpu_workspace(struct lowering *l, const_dnnl_primitive_desc_t pd, int *out,
				struct error *err);
enum prony_status cpu_as(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
			 const char *name, int *out, struct error *err);

/* primitive.c: attributes and implementations of the library's primitives. */

/* A function as the library names it. */
struct eltwise_function {
	dnnl_alg_kind_t algorithm;
	float alpha, beta;
};

/* Whether the operator is a function of one element that the library has. */
bool cpu_has_function(enum op op);
/* `node` has the attributes; in training the gradient needs a forward pass of its kind. */
struct eltwise_function cpu_function(enum op op, const struct node *node, bool training);

/* Attributes of primitives: strict fp32, our scratchpad, and what of a chain (NULL: none) the
 * primitive computes. Kept by the device. */
const_dnnl_primitive_attr_t cpu_attributes(const struct lowering *l, const struct chain *chain);
/* How good an implementation is: 0 reference code, 1 general (im2col and gemm), 2 specialised. */
int cpu_grade(const struct lowering *l, const_dnnl_primitive_desc_t pd, int gemm_grade);
/* Notes what computes a node and the `count` nodes that are computed with it: the implementations,
 * forward and backward. */
void cpu_note(struct lowering *l, int n, const int *fused, int count);
/* Notes in what type each product (convolution, matrix product, recurrent layer) multiplies. */
enum prony_status cpu_check_types(struct lowering *l, struct error *err);

/* execute.c: commands, and running them. */

/*
 * Makes the primitive of `pd` and appends it. operands[i] is passed as args[i]; OPERAND_NONE ones
 * are left out. The scratchpad that the primitive wants is planned too.
 */
enum prony_status cpu_primitive(struct lowering *l, const char *name, const char *what,
				const_dnnl_primitive_desc_t pd, const int *args,
				const int *operands, int count, struct error *err);
/*
 * The same for `parts` independent parts of the work, executed at once by as many threads, one
 * each: part p has operands[p * count + i] as args[i], OPERAND_NONE in all parts or in none. The
 * primitive was described for one thread (onednn_use_threads), on a library whose threads are
 * OpenMP's.
 */
enum prony_status cpu_primitive_parts(struct lowering *l, const char *name, const char *what,
				      const_dnnl_primitive_desc_t pd, const int *args,
				      const int *operands, int count, int parts, struct error *err);
/* Appends nodes[n].work->forward, whose one result has the layout of its one source, nodes[n].src.
 */
enum prony_status cpu_unary(struct lowering *l, int n, struct error *err);
/* The backend's copy: a reorder. */
enum prony_status cpu_copy(struct lowering *l, int from, int to, const char *name, const char *what,
			   struct error *err);
/* Appends a loop of ours; operands[0] says how many elements it has. */
struct work *cpu_kernel(struct lowering *l, const char *name, const char *what,
			void (*kernel)(struct program *, const struct command *),
			const int *operands, int count);
/* The operand's memory, for such a loop, and the threads for its elements. Optional operands are
 * the last ones: NULL where the command has fewer. */
void *cpu_data(const struct program *program, const struct command *command, int i);
void *cpu_optional(const struct program *program, const struct command *command, int i);
int cpu_threads(const struct program *program, size_t elements);

enum prony_status cpu_finish(struct program *program, struct error *err);
enum prony_status cpu_run(struct program *program, int slot, struct error *err);
enum prony_status cpu_run_one(struct program *program, int i, struct error *err);
void cpu_release_commands(struct program *program);
/* One reorder between two memories, outside steps. */
enum prony_status cpu_reorder_now(const struct onednn *dnn, const_dnnl_memory_desc_t from_desc,
				  const void *from, const_dnnl_memory_desc_t to_desc, void *to,
				  struct error *err);

/* weighted.c: what convolutions and matrix products share. The forward node has kept its primitive
 * descriptors. */
enum prony_status cpu_weighted_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status cpu_weighted_grad_weight(struct lowering *l, int n, struct error *err);
/* Declares the parameters of node n and appends its forward primitive. */
enum prony_status cpu_weighted_forward(struct lowering *l, int n, const struct layout *outside,
				       const struct chain *chain, struct error *err);

/* depthwise.c: convolutions in which each channel has a window of its own. Gradients are for layers
 * whose pass the library has no good code for; dx and dy are operands in the layouts of the forward
 * pass. */
bool cpu_is_depthwise(const struct lowering *l, int n);
enum prony_status cpu_depthwise(struct lowering *l, int n, struct error *err);
void cpu_depthwise_grad_input(struct lowering *l, int n, int dx, int dy);
enum prony_status cpu_depthwise_grad_weight(struct lowering *l, int n, struct error *err);

/* few_rows_gemm.c: matrix products of few rows with many weights; the source is nodes[n].src. */
bool cpu_is_few_rows(const struct lowering *l, int n);
enum prony_status cpu_few_rows(struct lowering *l, int n, struct error *err);

/*
 * winograd.c: convolutions of 3x3 windows by fewer multiplications; the source is nodes[n].src. In
 * training the library's primitives of the node are there, too: *done is false, and nothing was
 * appended, where they want other layouts. Of convolutions whose winograd_gradient is set it
 * computes the gradient of the input, too.
 */
bool cpu_is_winograd(const struct lowering *l, int n);
enum prony_status cpu_winograd(struct lowering *l, int n, bool *done, struct error *err);
void cpu_winograd_grad_input(struct lowering *l, int n, int dx, int dy);

/* The other operators: a function for each or for a family; n is the node. */

/* conv.c, gemm.c, recurrent.c */
enum prony_status cpu_conv(struct lowering *l, int n, struct error *err);
enum prony_status cpu_conv_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status cpu_conv_grad_weight(struct lowering *l, int n, struct error *err);
enum prony_status cpu_gemm(struct lowering *l, int n, struct error *err);
enum prony_status cpu_recurrent(struct lowering *l, int n, struct error *err);
enum prony_status cpu_recurrent_grad(struct lowering *l, int n, struct error *err);
/* Where the gradient of a scale or shift, output k, goes: to the parameter's own place if it is all
 * of it. */
enum prony_status cpu_channel_gradient(struct lowering *l, const struct node *node, int k,
				       int parameter, int *out, struct error *err);
/* pool.c, norm.c, layer_norm.c, lrn.c */
enum prony_status cpu_pool(struct lowering *l, int n, struct error *err);
enum prony_status cpu_pool_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_batch_norm(struct lowering *l, int n, struct error *err);
enum prony_status cpu_batch_norm_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_layer_norm(struct lowering *l, int n, struct error *err);
enum prony_status cpu_layer_norm_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_lrn(struct lowering *l, int n, struct error *err);
enum prony_status cpu_lrn_grad(struct lowering *l, int n, struct error *err);
/* binary.c */
enum prony_status cpu_binary(struct lowering *l, int n, struct error *err);
enum prony_status cpu_mean(struct lowering *l, int n, struct error *err);
enum prony_status cpu_mean_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_broadcast_grad(struct lowering *l, int n, struct error *err);
void cpu_copy_box(struct lowering *l, const char *name, int rank, const int64_t *dims, int from,
		  const struct box *source, int to, const struct box *target);
/* concat.c, eltwise.c, gather.c, softmax.c */
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
enum prony_status cpu_dropout(struct lowering *l, int n, struct error *err);
enum prony_status cpu_dropout_grad(struct lowering *l, int n, struct error *err);
enum prony_status cpu_half_squares(struct lowering *l, int n, struct error *err);
enum prony_status cpu_cross_entropy(struct lowering *l, int n, struct error *err);
void cpu_fill(struct lowering *l, const char *name, int operand, double value);
void cpu_update(struct lowering *l);

#endif
