/* The part of ONNX Runtime's C interface that prony calls. The Python package, where most users get
 * the library from, has no header. The function table is append-only ("New functions are always
 * added at the end", onnxruntime_c_api.h), so positions in it are stable. */
#ifndef PRONY_ADAPTERS_ONNXRUNTIME_ORT_API_H
#define PRONY_ADAPTERS_ONNXRUNTIME_ORT_API_H

#include <stddef.h>
#include <stdint.h>

#define ORT_API_WANTED 21 /* ONNX Runtime 1.21; newer libraries still provide this table */

struct ort_env;
struct ort_status; /* NULL = success; otherwise free it with release_status */
struct ort_memory_info;
struct ort_session;
struct ort_session_options;
struct ort_run_options;
struct ort_value;
struct ort_tensor_info;
struct ort_type_info;

enum ort_logging_level { ORT_LOGGING_ERROR = 3 };
enum ort_error_code { ORT_NOT_IMPLEMENTED = 9 };
enum ort_optimization_level { ORT_ENABLE_ALL = 99 };
enum ort_execution_mode { ORT_SEQUENTIAL = 0 };
/* The numbers of ONNX. */
enum ort_element_type {
	ORT_ELEMENT_FLOAT = 1,
	ORT_ELEMENT_UINT8 = 2,
	ORT_ELEMENT_INT32 = 6,
	ORT_ELEMENT_INT64 = 7,
	ORT_ELEMENT_BOOL = 9,
	ORT_ELEMENT_FLOAT16 = 10,
	ORT_ELEMENT_DOUBLE = 11,
	ORT_ELEMENT_BFLOAT16 = 16
};
enum ort_allocator_type { ORT_ARENA_ALLOCATOR = 1 };
enum ort_memory_type { ORT_MEMORY_DEFAULT = 0 };

typedef void ort_unused(void);

/* OrtApi. The number after each member is its position; the gaps are functions that prony does not
 * call. */
struct ort_api {
	ort_unused *unused_0[1];
	enum ort_error_code (*get_error_code)(const struct ort_status *status); /* 1 */
	const char *(*get_error_message)(const struct ort_status *status);	/* 2 */
	struct ort_status *(*create_env)(enum ort_logging_level level, const char *log_id,
					 struct ort_env **out); /* 3 */
	ort_unused *unused_4[2];
	struct ort_status *(*disable_telemetry_events)(const struct ort_env *env); /* 6 */
	ort_unused *unused_7[1];
	struct ort_status *(*create_session_from_array)(const struct ort_env *env,
							const void *model, size_t bytes,
							const struct ort_session_options *options,
							struct ort_session **out); /* 8 */
	struct ort_status *(*run)(struct ort_session *session,
				  const struct ort_run_options *options,
				  const char *const *input_names,
				  const struct ort_value *const *inputs, size_t input_count,
				  const char *const *output_names, size_t output_count,
				  struct ort_value **outputs);				/* 9 */
	struct ort_status *(*create_session_options)(struct ort_session_options **out); /* 10 */
	ort_unused *unused_11[2];
	struct ort_status *(*set_session_execution_mode)(struct ort_session_options *options,
							 enum ort_execution_mode mode); /* 13 */
	struct ort_status *(*enable_profiling)(struct ort_session_options *options,
					       const char *file_prefix);	      /* 14 */
	struct ort_status *(*disable_profiling)(struct ort_session_options *options); /* 15 */
	ort_unused *unused_16[7];
	struct ort_status *(*set_graph_optimization_level)(
		struct ort_session_options *options, enum ort_optimization_level level); /* 23 */
	struct ort_status *(*set_intra_op_num_threads)(struct ort_session_options *options,
						       int threads); /* 24 */
	struct ort_status *(*set_inter_op_num_threads)(struct ort_session_options *options,
						       int threads); /* 25 */
	ort_unused *unused_26[7];
	struct ort_status *(*session_get_input_type_info)(const struct ort_session *session,
							  size_t index,
							  struct ort_type_info **out); /* 33 */
	ort_unused *unused_34[15];
	struct ort_status *(*create_tensor_with_data)(const struct ort_memory_info *memory,
						      void *data, size_t bytes,
						      const int64_t *shape, size_t rank,
						      enum ort_element_type type,
						      struct ort_value **out); /* 49 */
	ort_unused *unused_50[1];
	struct ort_status *(*get_tensor_data)(struct ort_value *value, void **out); /* 51 */
	ort_unused *unused_52[3];
	struct ort_status *(*cast_to_tensor_info)(const struct ort_type_info *info,
						  const struct ort_tensor_info **out); /* 55 */
	ort_unused *unused_56[4];
	struct ort_status *(*get_element_type)(const struct ort_tensor_info *info,
					       enum ort_element_type *out);		 /* 60 */
	struct ort_status *(*get_rank)(const struct ort_tensor_info *info, size_t *out); /* 61 */
	struct ort_status *(*get_dims)(const struct ort_tensor_info *info, int64_t *out,
				       size_t rank); /* 62 */
	ort_unused *unused_63[2];
	struct ort_status *(*get_tensor_info)(const struct ort_value *value,
					      struct ort_tensor_info **out); /* 65 */
	ort_unused *unused_66[3];
	struct ort_status *(*create_cpu_memory_info)(enum ort_allocator_type allocator,
						     enum ort_memory_type type,
						     struct ort_memory_info **out); /* 69 */
	ort_unused *unused_70[22];
	void (*release_env)(struct ort_env *env);		     /* 92 */
	void (*release_status)(struct ort_status *status);	     /* 93 */
	void (*release_memory_info)(struct ort_memory_info *memory); /* 94 */
	void (*release_session)(struct ort_session *session);	     /* 95 */
	void (*release_value)(struct ort_value *value);		     /* 96 */
	ort_unused *unused_97[1];
	void (*release_type_info)(struct ort_type_info *info);		      /* 98 */
	void (*release_tensor_info)(struct ort_tensor_info *info);	      /* 99 */
	void (*release_session_options)(struct ort_session_options *options); /* 100 */
	ort_unused *unused_101[24];
	struct ort_status *(*get_available_providers)(char ***out, int *count);	    /* 125 */
	struct ort_status *(*release_available_providers)(char **names, int count); /* 126 */
	ort_unused *unused_127[3];
	struct ort_status *(*add_session_config_entry)(struct ort_session_options *options,
						       const char *key,
						       const char *value); /* 130 */
};

#define ORT_POSITION(member, position)                                                             \
	_Static_assert(offsetof(struct ort_api, member) == (position) * sizeof(ort_unused *),      \
		       "position of " #member " in OrtApi")
ORT_POSITION(get_error_message, 2);
ORT_POSITION(disable_telemetry_events, 6);
ORT_POSITION(run, 9);
ORT_POSITION(set_session_execution_mode, 13);
ORT_POSITION(enable_profiling, 14);
ORT_POSITION(set_inter_op_num_threads, 25);
ORT_POSITION(session_get_input_type_info, 33);
ORT_POSITION(create_tensor_with_data, 49);
ORT_POSITION(get_tensor_data, 51);
ORT_POSITION(cast_to_tensor_info, 55);
ORT_POSITION(get_element_type, 60);
ORT_POSITION(get_tensor_info, 65);
ORT_POSITION(create_cpu_memory_info, 69);
ORT_POSITION(release_value, 96);
ORT_POSITION(release_tensor_info, 99);
ORT_POSITION(release_session_options, 100);
ORT_POSITION(get_available_providers, 125);
ORT_POSITION(add_session_config_entry, 130);

/* OrtApiBase, returned by the only exported function, OrtGetApiBase. */
struct ort_api_base {
	const struct ort_api *(*get_api)(uint32_t version); /* NULL when the library is older */
	const char *(*get_version_string)(void);	    /* "1.31.1", static */
};

#endif
