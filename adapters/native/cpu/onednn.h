/* oneDNN 3, loaded by dlopen: its functions, its engine, and the threads that it runs on. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_ONEDNN_H
#define PRONY_ADAPTERS_NATIVE_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Every function that prony calls, without its prefix; all are in 3.0 and later. */
#define ONEDNN_FUNCTIONS(X)                                                                        \
	X(version)                                                                                 \
	X(get_effective_cpu_isa)                                                                   \
	X(engine_get_count)                                                                        \
	X(engine_create)                                                                           \
	X(engine_destroy)                                                                          \
	X(stream_create)                                                                           \
	X(stream_wait)                                                                             \
	X(stream_destroy)                                                                          \
	X(memory_desc_create_with_tag)                                                             \
	X(memory_desc_create_with_strides)                                                         \
	X(memory_desc_create_submemory)                                                            \
	X(memory_desc_permute_axes)                                                                \
	X(memory_desc_clone)                                                                       \
	X(memory_desc_destroy)                                                                     \
	X(memory_desc_equal)                                                                       \
	X(memory_desc_get_size)                                                                    \
	X(memory_desc_query)                                                                       \
	X(memory_create)                                                                           \
	X(memory_destroy)                                                                          \
	X(memory_set_data_handle)                                                                  \
	X(post_ops_create)                                                                         \
	X(post_ops_append_eltwise)                                                                 \
	X(post_ops_append_sum)                                                                     \
	X(post_ops_destroy)                                                                        \
	X(primitive_attr_create)                                                                   \
	X(primitive_attr_set_scratchpad_mode)                                                      \
	X(primitive_attr_set_fpmath_mode)                                                          \
	X(primitive_attr_set_post_ops)                                                             \
	X(primitive_attr_destroy)                                                                  \
	X(primitive_desc_query)                                                                    \
	X(primitive_desc_query_md)                                                                 \
	X(primitive_desc_destroy)                                                                  \
	X(primitive_create)                                                                        \
	X(primitive_execute)                                                                       \
	X(primitive_destroy)                                                                       \
	X(reorder_primitive_desc_create)                                                           \
	X(convolution_forward_primitive_desc_create)                                               \
	X(convolution_backward_data_primitive_desc_create)                                         \
	X(convolution_backward_weights_primitive_desc_create)                                      \
	X(deconvolution_forward_primitive_desc_create)                                             \
	X(deconvolution_backward_data_primitive_desc_create)                                       \
	X(deconvolution_backward_weights_primitive_desc_create)                                    \
	X(matmul_primitive_desc_create)                                                            \
	X(inner_product_forward_primitive_desc_create)                                             \
	X(inner_product_backward_data_primitive_desc_create)                                       \
	X(inner_product_backward_weights_primitive_desc_create)                                    \
	X(pooling_forward_primitive_desc_create)                                                   \
	X(pooling_backward_primitive_desc_create)                                                  \
	X(batch_normalization_forward_primitive_desc_create)                                       \
	X(batch_normalization_backward_primitive_desc_create)                                      \
	X(layer_normalization_forward_primitive_desc_create)                                       \
	X(layer_normalization_backward_primitive_desc_create)                                      \
	X(eltwise_forward_primitive_desc_create)                                                   \
	X(eltwise_backward_primitive_desc_create)                                                  \
	X(softmax_forward_primitive_desc_create)                                                   \
	X(softmax_backward_primitive_desc_create)                                                  \
	X(binary_primitive_desc_create)                                                            \
	X(concat_primitive_desc_create)                                                            \
	X(lstm_forward_primitive_desc_create)                                                      \
	X(lstm_backward_primitive_desc_create)                                                     \
	X(gru_forward_primitive_desc_create)                                                       \
	X(gru_backward_primitive_desc_create)                                                      \
	X(lbr_gru_forward_primitive_desc_create)                                                   \
	X(lbr_gru_backward_primitive_desc_create)                                                  \
	X(vanilla_rnn_forward_primitive_desc_create)                                               \
	X(vanilla_rnn_backward_primitive_desc_create)

struct onednn {
	void *handle;
#define X(name) __typeof__(dnnl_##name) *name;
	ONEDNN_FUNCTIONS(X)
#undef X
	dnnl_engine_t engine;
	dnnl_stream_t stream;

	bool on_tbb;   /* uses TBB's threads, whose number cannot be set: onednn_sycl.h */
	bool deferred; /* its primitives are tasks of a queue: onednn_finish waits for them */

	/* The OpenMP run-time that libdnnl was linked with, so that prony's own loops run on the
	 * same threads and no second pool competes for the cores; with TBB, the system's OpenMP
	 * run-time. NULL when there is none. */
	void (*team_run)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
	int (*team_member)(void);
	int (*team_size)(void);
	int (*threads_max)(void);
	void (*threads_set)(int threads);
	int threads;	   /* number of threads for prony's own loops; 1 without a run-time */
	bool bound;	   /* each thread is bound to its own processor */
	bool narrowed;	   /* all threads share as many processors */
	cpu_set_t allowed; /* processors of the calling thread before that */
};

/* Loads the library; PRONY_MISSING when it is absent or is not version 3. */
enum prony_status onednn_load(struct onednn *dnn, const char *path, struct error *err);

/* Creates engine and stream, starts the threads and binds each of them, including the caller, to
 * one of the processors that the process may use: two threads that wait for each other by spinning
 * must never share one. They are not bound if there are fewer processors than threads. With TBB all
 * threads share as many processors, and the first call in a process decides (onednn_threads).
 * PRONY_MISSING if the library's run-time has no CPU. */
enum prony_status onednn_start(struct onednn *dnn, int threads, struct error *err);

/* Sets the number of threads for which primitives are created and on which they run. A primitive
 * must run on as many threads as it was created for. */
void onednn_use_threads(const struct onednn *dnn, int threads);

/* Returns when all primitives of the stream are finished; immediately if execution blocks. */
enum prony_status onednn_finish(const struct onednn *dnn, struct error *err);

/* Destroys engine and stream and unbinds the caller; the library and its threads stay. */
void onednn_stop(struct onednn *dnn);

/* "3.2.0". */
void onednn_version_text(const struct onednn *dnn, char *out, size_t out_bytes);

/* The run-time of the library's threads: "openmp", "tbb", "sycl" (on TBB), "sequential". */
const char *onednn_runtime_text(const struct onednn *dnn);

/* The number of threads of the library's primitives; -1 = unknown. */
int onednn_threads(const struct onednn *dnn);

/* The widest instruction set that the library will use: "avx512_core_bf16". */
const char *onednn_isa_text(const struct onednn *dnn);

/* Whether the processor has instructions for bf16, and whether the library uses them. Without them
 * the library emulates bf16, more slowly than fp32. */
bool onednn_processor_has_bf16(void);
bool onednn_has_bf16(const struct onednn *dnn);

/* The data type of a descriptor. */
dnnl_data_type_t onednn_type(const struct onednn *dnn, const_dnnl_memory_desc_t desc);

/* Turns a library's status into prony's; messages name `what` and `name`. */
enum prony_status onednn_check(dnnl_status_t status, const char *what, const char *name,
			       struct error *err);

/* Runs body(data, first, end) over [0, count), split among `threads` threads in multiples of 64
 * elements. */
void onednn_parallel(const struct onednn *dnn, int threads, size_t count,
		     void (*body)(void *data, size_t first, size_t end), void *data);

/* The same for `count` items of any size, in equal parts. */
void onednn_split(const struct onednn *dnn, int threads, size_t count,
		  void (*body)(void *data, size_t first, size_t end), void *data);

#endif
