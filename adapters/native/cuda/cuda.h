/* The backend for NVIDIA's GPUs: cuDNN's convolutions, cuBLASLt's matrix products and prony's own
 * kernels, on one stream. No layout of this backend has a blob. Shared declarations by file, the
 * lowest level first. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_CUDA_H
#define PRONY_ADAPTERS_NATIVE_CUDA_CUDA_H

#include "adapters/native/cuda/cublaslt.h"
#include "adapters/native/cuda/cudnn.h"
#include "adapters/native/cuda/driver.h"
#include "adapters/native/lower/lower_internal.h"

enum { CUDA_MODULES_MAX = 32 };

struct device {
	struct cuda_driver driver;
	struct cublaslt blas;
	cublaslt_handle blas_handle;
	struct cudnn dnn;
	cudnn_handle dnn_handle; /* its stream is `stream` */
	int ordinal;		 /* of the device word: cuda:0 */
	CUdevice handle;
	char name[128];
	struct CUctx_st *context;		    /* retained primary context */
	struct CUstream_st *stream;		    /* of all commands */
	struct CUmod_st *modules[CUDA_MODULES_MAX]; /* prony's kernels */
	int module_count;
	int capability; /* 10 * major + minor */
	int multiprocessors;
	enum precision precision;
	bool capture;			/* whole steps run as graphs */
	struct CUgraphExec_st **graphs; /* one per slot; NULL before its first step; owned */
	int graph_count;
	int loss_scale, step_number;	      /* operands plus 1; 0: not made yet */
	struct conv_plans *convolutions;      /* conv.c; NULL before the first; owned */
	struct attention_planned *attentions; /* attention.c; a list; owned */
	struct cuda_profile *profile;	      /* profile.c; NULL unless steps are profiled; owned */
	enum prony_status
		failed; /* why planning could not append a command; PRONY_OK if it could */
	struct error failure;
};

enum { CUDA_ARGUMENTS_MAX = 24 };

/* An argument of a kernel: the address of an operand, NULL, or a value in the program's arena. */
struct cuda_argument {
	enum { CUDA_OPERAND, CUDA_NULL, CUDA_VALUE } kind;
	int operand;
	void *value;
};

struct work {
	struct CUfunc_st *function; /* NULL: call */
	unsigned blocks, threads;
	struct cuda_argument arguments[CUDA_ARGUMENTS_MAX];
	int argument_count;
	/* Issues the command's work on device->stream, through a library. */
	enum prony_status (*call)(struct program *program, const struct command *command,
				  struct error *err);
	const void *detail; /* of call, in the program's arena */
	/* Frees what detail holds of the library; or NULL. */
	void (*release)(struct device *device, const void *detail);
	int command; /* index in the program */
};

/* What a node's gradient needs of its forward pass. */
struct node_work {
	const void *detail; /* in the program's arena */
	int extra;	    /* a second operand for the gradient; `side` is the first */
};

/* command.c: commands of the step. */

/* Threads of a block of kernels without barriers. */
enum { CUDA_THREADS = 256 };
/* The kernel named `kernel`_f32, _f16 or _bf16 by `type`; DTYPE_COUNT: without suffix. */
enum prony_status cuda_find_kernel(const struct device *device, const char *kernel, enum dtype type,
				   struct CUfunc_st **out, struct error *err);
/* Blocks for so many threads, up to a limit: kernels loop with a grid stride. */
unsigned cuda_grid(const struct device *device, int64_t threads);

/* Appends a launch of kernel `kernel`_f32, _f16 or _bf16 by `type`; DTYPE_COUNT: without suffix.
 * One thread for each of `elements`, up to a limit: kernels loop with a grid stride. If the kernel
 * does not exist, finish fails. Append the arguments in the order of the kernel's parameters. */
struct work *cuda_kernel(struct lowering *l, const char *name, const char *what, const char *kernel,
			 enum dtype type, int64_t elements);
/* The same for a kernel with barriers: `blocks` blocks of `threads` threads (a power of two, 32 to
 * 256). */
struct work *cuda_blocks(struct lowering *l, const char *name, const char *what, const char *kernel,
			 enum dtype type, int64_t blocks, unsigned threads);
/* The threads of a block for a row of so many elements. */
static inline unsigned cuda_threads(int64_t elements)
{
	unsigned threads = 32;

	while (threads < 256 && threads < elements)
		threads *= 2;
	return threads;
}
/* The threads of a kernel that computes 16 bytes a thread (kernels/each.cuh). */
static inline int64_t cuda_packs(enum dtype type, int64_t elements)
{
	return elements * (int64_t)dtype_bytes(type) / 16 + 1;
}
/* Elements of a pack of 16 bytes (kernels/pack.cuh), or 1 if the operand does not begin at a
 * multiple of 16 bytes or does not consist of runs of `adjacent` elements in whole packs. pool.c */
int cuda_pack(const struct lowering *l, int operand, int64_t adjacent);
/* Replaces an operand that does not begin at a multiple of 16 bytes by a copy that does. */
enum prony_status cuda_packed(struct lowering *l, const char *name, int *operand,
			      struct error *err);
void cuda_operand(struct lowering *l, struct work *work, int operand); /* OPERAND_NONE: NULL */
void cuda_long(struct lowering *l, struct work *work, int64_t value);
void cuda_int(struct lowering *l, struct work *work, int value);
void cuda_float(struct lowering *l, struct work *work, double value);
void cuda_struct(struct lowering *l, struct work *work, const void *value, size_t bytes);

/* Appends a library call; `detail` is kept by the caller in the program's arena; set work->release
 * if it holds objects of the library. Operands follow by cuda_operand. The call may neither wait
 * nor allocate: it is captured. */
struct work *cuda_call(struct lowering *l, const char *name, const char *what,
		       enum prony_status (*call)(struct program *program,
						 const struct command *command, struct error *err),
		       const void *detail);
/* The address of the command's operand `i` on the device; NULL if it was OPERAND_NONE. */
void *cuda_data(const struct program *program, const struct command *command, int i);
/* An operand for a library's workspace, and its address as operand `i` of the command: a multiple
 * of 256 bytes, as cuBLASLt demands ("cublasLtMatmul" in its manual) and cuMemAlloc gives. */
int cuda_workspace(struct lowering *l, size_t bytes);
void *cuda_workspace_data(const struct program *program, const struct command *command, int i);

enum prony_status cuda_finish(struct program *program, struct error *err);
enum prony_status cuda_run(struct program *program, int slot, struct error *err);
enum prony_status cuda_run_one(struct program *program, int i, struct error *err);
void cuda_release_commands(struct program *program);

/* profile.c: what the GPU ran in profiled steps, by CUPTI. */
enum prony_status cuda_profile_begin(struct program *program, int64_t steps,
				     int64_t (*now_ns)(void), struct error *err);
enum prony_status cuda_profile_end(struct program *program, const struct graph *graph,
				   const int64_t *instants, int64_t steps, struct profile_log *log,
				   struct error *err);
void cuda_profile_release(struct device *device);

/* copy.c: layouts and copies. */

/* The layout of images that the precision asks for: row-major for strict fp32, else channels last.
 * Any rank: channels last concerns rank 4 only. */
struct layout cuda_image(const struct lowering *l, enum dtype type, int rank, const int64_t *dims);
/* The value in the type of activations and, with four dimensions, in that layout; others row-major.
 */
enum prony_status cuda_activation(struct lowering *l, int value, const char *name, int *out,
				  struct error *err);
/* A new planned operand in that layout. */
enum prony_status cuda_new_image(struct lowering *l, enum dtype type, int rank, const int64_t *dims,
				 int *out, struct error *err);
enum prony_status cuda_copy(struct lowering *l, int from, int to, const char *name,
			    const char *what, struct error *err);
/* Copies at once, outside a step. */
enum prony_status cuda_convert(struct program *program, int from, int to, struct error *err);
void cuda_copy_box(struct lowering *l, const char *name, int rank, const int64_t *dims, int from,
		   const struct box *source, int to, const struct box *target);
void cuda_fill(struct lowering *l, const char *name, int operand, double value);

/* product.c: matrix products by cuBLASLt. */

/* out (m x n) = op(a) op(b), batched; row-major matrices; leading dimensions and distances between
 * matrices of a batch in elements. Sums are fp32; inputs have one type, the output that or fp32. */
struct cuda_product {
	int64_t m, n, k, batch;
	bool transpose_a, transpose_b;
	bool accumulate; /* add to what the output holds */
	bool exact;	 /* fp32 inputs are not rounded, not even in tf32 */
	int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
	enum dtype a, b, c;
	bool bias; /* add a row of n elements, of the output's type */
	bool relu; /* then max(0, x) */
};
/* Appends the product. bias is OPERAND_NONE unless product->bias. offset_*: elements from the start
 * of the operand. PRONY_UNSUPPORTED if the library has no algorithm for it. */
enum prony_status cuda_product(struct lowering *l, const char *name, const char *what,
			       const struct cuda_product *product, int a, int64_t offset_a, int b,
			       int64_t offset_b, int c, int64_t offset_c, int bias,
			       struct error *err);
/* out[c] = the sum of column c of a dense matrix, in fp32: gradients of biases. */
enum prony_status cuda_column_sums(struct lowering *l, const char *name, const char *what,
				   int matrix, int64_t rows, int64_t columns, int out,
				   struct error *err);

/* The operators: a function for each or for a family; n is the node. */

/* conv.c */
enum prony_status cuda_conv(struct lowering *l, int n, struct error *err);
enum prony_status cuda_conv_transpose(struct lowering *l, int n, struct error *err);
enum prony_status cuda_conv_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status cuda_conv_grad_weight(struct lowering *l, int n, struct error *err);
/* Whether plans are measured, or the heuristics' first ones are taken (PRONY_CUDA_MEASURE=0). */
bool cuda_conv_measures(void);
/* Writes the device's new plans to the cache, and releases all of them. */
void cuda_conv_keep(struct device *device);
void cuda_conv_close(struct device *device);
/* conv_measure.c: as in struct conv_planner; context is the device. */
struct conv_problem;
struct cudnn_plan;
enum prony_status cuda_conv_measure(void *context, const struct conv_problem *problem,
				    struct cudnn_plan *plans, int count, struct error *err);
/* attention.c: as in struct backend */
bool cuda_takes_attention(struct lowering *l, struct fused_attention *attention, const char **why);
enum prony_status cuda_attention(struct lowering *l, struct fused_attention *attention,
				 bool gradient, struct error *err);
void cuda_attention_close(struct device *device);
/* gemm.c, matmul.c */
enum prony_status cuda_gemm(struct lowering *l, int n, struct error *err);
enum prony_status cuda_gemm_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status cuda_gemm_grad_weight(struct lowering *l, int n, struct error *err);
enum prony_status cuda_matmul(struct lowering *l, int n, struct error *err);
/* elementwise.c */
bool cuda_has_function(enum op op);
enum prony_status cuda_eltwise(struct lowering *l, int n, struct error *err); /* and Relu */
enum prony_status cuda_eltwise_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_relu_grad(struct lowering *l, int n, struct error *err);
/* binary.c, reduce.c */
enum prony_status cuda_binary(struct lowering *l, int n, struct error *err);
enum prony_status cuda_expand(struct lowering *l, int n, struct error *err);
enum prony_status cuda_broadcast_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_mean(struct lowering *l, int n, struct error *err);
enum prony_status cuda_mean_grad(struct lowering *l, int n, struct error *err);
/* softmax.c, loss.c */
enum prony_status cuda_softmax(struct lowering *l, int n, struct error *err);
enum prony_status cuda_softmax_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_cross_entropy(struct lowering *l, int n, struct error *err);
enum prony_status cuda_half_squares(struct lowering *l, int n, struct error *err);
/* dropout.c, gather.c, concat.c */
enum prony_status cuda_dropout(struct lowering *l, int n, struct error *err);
enum prony_status cuda_dropout_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_gather(struct lowering *l, int n, struct error *err);
enum prony_status cuda_gather_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_scatter(struct lowering *l, int n, struct error *err);
enum prony_status cuda_concat(struct lowering *l, int n, struct error *err);
/* pool.c, batch_norm.c, layer_norm.c, lrn.c, recurrent.c */
enum prony_status cuda_pool(struct lowering *l, int n, struct error *err);
enum prony_status cuda_pool_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_batch_norm(struct lowering *l, int n, struct error *err);
enum prony_status cuda_batch_norm_grad(struct lowering *l, int n, struct error *err);
/* Divides the work on a dense matrix with so many columns, each of them a channel. */
struct norm_arguments;
void cuda_norm_rows(const struct lowering *l, int operand, int64_t columns, double epsilon,
		    struct norm_arguments *out);
/* Appends the gradients of scale and shift: `kernel` (partial, the operands `in`, a), which sums
 * dy and its products by chunks, and the kernel that combines the chunks, which divides products by
 * the root of `variance`, unless that is OPERAND_NONE. */
void cuda_norm_parameter_grad(struct lowering *l, const char *name, const char *kernel,
			      const int *in, int count, int variance, const int gradients[2],
			      const struct norm_arguments *a);
enum prony_status cuda_layer_norm(struct lowering *l, int n, struct error *err);
enum prony_status cuda_layer_norm_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_group_norm(struct lowering *l, int n, struct error *err); /* group_norm.c */
enum prony_status cuda_group_norm_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_resize(struct lowering *l, int n, struct error *err); /* resize.c */
enum prony_status cuda_resize_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_lrn(struct lowering *l, int n, struct error *err);
enum prony_status cuda_lrn_grad(struct lowering *l, int n, struct error *err);
enum prony_status cuda_recurrent(struct lowering *l, int n, struct error *err);
enum prony_status cuda_recurrent_grad(struct lowering *l, int n, struct error *err);
/* update.c: also the loss scale of fp16, an operand (struct loss_scale of kernels/arguments.h), or
 * OPERAND_NONE when gradients are not scaled. */
int cuda_loss_scale(struct lowering *l);
void cuda_update(struct lowering *l);
/* Divides the gradients by the scale where a step has no update. */
void cuda_unscale(struct lowering *l);
/* dropout.c: the operand of one unsigned 64-bit number, the step's, which its commands count on. */
int cuda_step_number(struct lowering *l);

#endif
