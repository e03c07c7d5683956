/* The functions of OpenVINO's C interface that prony calls (openvino/c/ of its package), with
 * prony's own prototypes, so that its headers are not needed for building. Numbers of element types
 * differ between releases: none is used here; they are read from the model's ports. */
#ifndef PRONY_ADAPTERS_OPENVINO_OPENVINO_API_H
#define PRONY_ADAPTERS_OPENVINO_OPENVINO_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ov_core;
struct ov_model;
struct ov_compiled;
struct ov_port;
struct ov_request;
struct ov_tensor;

struct ov_version {
	const char *build, *description; /* "2026.4.1-21450-..." */
};

struct ov_devices {
	char **names; /* "CPU", "GPU.0" */
	size_t count;
};

struct ov_shape {
	int64_t rank;
	int64_t *dims;
};

struct ov_dimension {
	int64_t min, max; /* equal: the dimension is fixed */
};

struct ov_partial_shape {
	struct ov_dimension rank, *dims;
};

enum { OV_NODE_NOT_RUN, OV_NODE_OPTIMISED_OUT, OV_NODE_EXECUTED };

struct ov_profiling {
	int status;
	int64_t real_us, cpu_us;
	const char *name, *executed_as, *type; /* "conv1", "jit_avx2_FP32", "Convolution" */
};

struct ov_profiling_list {
	struct ov_profiling *nodes;
	size_t count;
};

/* Value of the property CACHE_ENCRYPTION, a pointer: a function that receives an exported model. It
 * is called twice, first without a buffer to get the size. */
struct ov_encryption {
	void (*encrypt)(const char *in, size_t bytes, char *out, size_t *out_bytes);
	void (*decrypt)(const char *in, size_t bytes, char *out, size_t *out_bytes);
};
#define OV_CACHE_ENCRYPTION "CACHE_ENCRYPTION_CALLBACKS"

enum { OV_OK = 0, OV_NOT_IMPLEMENTED = -2 };

/* X(result, function, arguments). A result of type int is a status: 0, or a negative error. */
#define OV_FUNCTIONS(X)                                                                            \
	X(int, ov_get_openvino_version, (struct ov_version * out))                                 \
	X(void, ov_version_free, (struct ov_version * version))                                    \
	X(const char *, ov_get_last_err_msg, (void)) /* of the calling thread */                   \
	X(void, ov_free, (const char *text))                                                       \
	X(int, ov_core_create, (struct ov_core * *out))                                            \
	X(void, ov_core_free, (struct ov_core * core))                                             \
	X(int, ov_core_get_available_devices,                                                      \
	  (const struct ov_core *core, struct ov_devices *out))                                    \
	X(void, ov_available_devices_free, (struct ov_devices * devices))                          \
	X(int, ov_core_get_property,                                                               \
	  (const struct ov_core *core, const char *device, const char *key, char **value))         \
	X(int, ov_core_read_model,                                                                 \
	  (const struct ov_core *core, const char *path, const char *weights,                      \
	   struct ov_model **out))                                                                 \
	X(int, ov_core_read_model_from_memory_buffer,                                              \
	  (const struct ov_core *core, const char *model, size_t bytes,                            \
	   const struct ov_tensor *weights, struct ov_model **out))                                \
	X(void, ov_model_free, (struct ov_model * model))                                          \
	X(int, ov_core_compile_model, /* followed by `strings` keys and values */                  \
	  (const struct ov_core *core, const struct ov_model *model, const char *device,           \
	   size_t strings, struct ov_compiled **out, ...))                                         \
	X(void, ov_compiled_model_free, (struct ov_compiled * compiled))                           \
	X(int, ov_compiled_model_export_model,                                                     \
	  (const struct ov_compiled *compiled, const char *path))                                  \
	X(int, ov_compiled_model_get_property,                                                     \
	  (const struct ov_compiled *compiled, const char *key, char **value))                     \
	X(int, ov_compiled_model_input_by_index,                                                   \
	  (const struct ov_compiled *compiled, size_t index, struct ov_port **out))                \
	X(int, ov_compiled_model_output_by_index,                                                  \
	  (const struct ov_compiled *compiled, size_t index, struct ov_port **out))                \
	X(int, ov_compiled_model_input_by_name,                                                    \
	  (const struct ov_compiled *compiled, const char *name, struct ov_port **out))            \
	X(int, ov_port_get_element_type, (const struct ov_port *port, int *type))                  \
	X(int, ov_port_get_partial_shape,                                                          \
	  (const struct ov_port *port, struct ov_partial_shape *out))                              \
	X(void, ov_partial_shape_free, (struct ov_partial_shape * shape))                          \
	X(void, ov_output_const_port_free, (struct ov_port * port))                                \
	X(int, ov_compiled_model_create_infer_request,                                             \
	  (const struct ov_compiled *compiled, struct ov_request **out))                           \
	X(void, ov_infer_request_free, (struct ov_request * request))                              \
	X(int, ov_infer_request_set_input_tensor_by_index,                                         \
	  (struct ov_request * request, size_t index, const struct ov_tensor *tensor))             \
	X(int, ov_infer_request_set_output_tensor_by_index,                                        \
	  (struct ov_request * request, size_t index, const struct ov_tensor *tensor))             \
	X(int, ov_infer_request_set_tensor,                                                        \
	  (struct ov_request * request, const char *name, const struct ov_tensor *tensor))         \
	X(int, ov_infer_request_get_tensor,                                                        \
	  (const struct ov_request *request, const char *name, struct ov_tensor **out))            \
	X(int, ov_infer_request_infer, (struct ov_request * request))                              \
	X(int, ov_infer_request_start_async, (struct ov_request * request))                        \
	X(int, ov_infer_request_wait, (struct ov_request * request))                               \
	X(int, ov_infer_request_get_profiling_info,                                                \
	  (const struct ov_request *request, struct ov_profiling_list *out))                       \
	X(void, ov_profiling_info_list_free, (struct ov_profiling_list * list))                    \
	X(int, ov_tensor_create_from_host_ptr,                                                     \
	  (int type, struct ov_shape shape, void *data, struct ov_tensor **out))                   \
	X(int, ov_tensor_get_shape, (const struct ov_tensor *tensor, struct ov_shape *out))        \
	X(void, ov_shape_free, (struct ov_shape * shape))                                          \
	X(int, ov_tensor_data, (const struct ov_tensor *tensor, void **out))                       \
	X(int, ov_tensor_get_byte_size, (const struct ov_tensor *tensor, size_t *bytes))           \
	X(void, ov_tensor_free, (struct ov_tensor * tensor))

struct ov_api {
#define X(result, function, arguments) result(*function) arguments;
	OV_FUNCTIONS(X)
#undef X
	void *encrypts; /* not NULL: it has the property OV_CACHE_ENCRYPTION */
};

/* PRONY_MISSING when the library cannot be loaded or lacks a function. */
enum prony_status ov_api_load(struct ov_api *api, const char *path, struct error *err);

/* Converts a status, with OpenVINO's message on one line; `what` says what was tried. */
enum prony_status ov_check(const struct ov_api *api, int result, const char *what,
			   struct error *err);

#endif
