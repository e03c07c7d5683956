/* The functions of TensorFlow's C interface that prony calls (tensorflow/c/c_api.h), with its own
 * prototypes, so that building needs no header of TensorFlow. 1.15 and 2.21 both have them. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_API_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tf_status;
struct tf_graph;
struct tf_operation;
struct tf_description; /* an operation under construction */
struct tf_tensor;
struct tf_session;
struct tf_session_options;
struct tf_device_list;
struct tf_server;

struct tf_buffer { /* TF_Buffer */
	const void *data;
	size_t length;
	void (*release)(void *data, size_t length);
};

struct tf_output { /* TF_Output, passed by value */
	struct tf_operation *operation;
	int index;
};

/* The values of TF_DataType and TF_Code that prony uses. */
enum tf_type {
	TF_TYPE_FLOAT = 1,
	TF_TYPE_INT32 = 3,
	TF_TYPE_INT64 = 9,
	TF_TYPE_BOOL = 10,
	TF_TYPE_BFLOAT16 = 14
};
enum tf_code { TF_CODE_OK = 0, TF_CODE_RESOURCE_EXHAUSTED = 8, TF_CODE_UNIMPLEMENTED = 12 };

/* X(result, function, arguments) */
#define TF_FUNCTIONS(X)                                                                            \
	X(const char *, TF_Version, (void))                                                        \
	X(struct tf_status *, TF_NewStatus, (void))                                                \
	X(void, TF_DeleteStatus, (struct tf_status * status))                                      \
	X(int, TF_GetCode, (const struct tf_status *status))                                       \
	X(const char *, TF_Message, (const struct tf_status *status))                              \
	X(struct tf_buffer *, TF_NewBuffer, (void))                                                \
	X(void, TF_DeleteBuffer, (struct tf_buffer * buffer))                                      \
	X(struct tf_buffer *, TF_GetRegisteredKernelsForOp,                                        \
	  (const char *operation, struct tf_status *status))                                       \
	X(struct tf_tensor *, TF_AllocateTensor,                                                   \
	  (int type, const int64_t *dims, int rank, size_t bytes))                                 \
	X(struct tf_tensor *, TF_NewTensor,                                                        \
	  (int type, const int64_t *dims, int rank, void *data, size_t bytes,                      \
	   void (*release)(void *data, size_t bytes, void *argument), void *argument))             \
	X(void *, TF_TensorData, (const struct tf_tensor *tensor))                                 \
	X(size_t, TF_TensorByteSize, (const struct tf_tensor *tensor))                             \
	X(void, TF_DeleteTensor, (struct tf_tensor * tensor))                                      \
	X(struct tf_graph *, TF_NewGraph, (void))                                                  \
	X(void, TF_DeleteGraph, (struct tf_graph * graph))                                         \
	X(int, TF_GraphGetTensorNumDims,                                                           \
	  (struct tf_graph * graph, struct tf_output output, struct tf_status * status))           \
	X(void, TF_GraphGetTensorShape,                                                            \
	  (struct tf_graph * graph, struct tf_output output, int64_t * dims, int rank,             \
	   struct tf_status *status))                                                              \
	X(int, TF_OperationOutputType, (struct tf_output output))                                  \
	X(struct tf_description *, TF_NewOperation,                                                \
	  (struct tf_graph * graph, const char *type, const char *name))                           \
	X(void, TF_SetDevice, (struct tf_description * description, const char *device))           \
	X(void, TF_AddInput, (struct tf_description * description, struct tf_output input))        \
	X(void, TF_AddInputList,                                                                   \
	  (struct tf_description * description, const struct tf_output *inputs, int count))        \
	X(void, TF_AddControlInput,                                                                \
	  (struct tf_description * description, struct tf_operation * operation))                  \
	X(void, TF_SetAttrString,                                                                  \
	  (struct tf_description * description, const char *name, const void *text,                \
	   size_t length))                                                                         \
	X(void, TF_SetAttrInt,                                                                     \
	  (struct tf_description * description, const char *name, int64_t value))                  \
	X(void, TF_SetAttrIntList,                                                                 \
	  (struct tf_description * description, const char *name, const int64_t *values,           \
	   int count))                                                                             \
	X(void, TF_SetAttrFloat,                                                                   \
	  (struct tf_description * description, const char *name, float value))                    \
	X(void, TF_SetAttrBool,                                                                    \
	  (struct tf_description * description, const char *name, unsigned char value))            \
	X(void, TF_SetAttrType, (struct tf_description * description, const char *name, int type)) \
	X(void, TF_SetAttrShape,                                                                   \
	  (struct tf_description * description, const char *name, const int64_t *dims, int rank))  \
	X(void, TF_SetAttrTensor,                                                                  \
	  (struct tf_description * description, const char *name, struct tf_tensor *tensor,        \
	   struct tf_status *status))                                                              \
	X(struct tf_operation *, TF_FinishOperation,                                               \
	  (struct tf_description * description, struct tf_status * status))                        \
	X(struct tf_session_options *, TF_NewSessionOptions, (void))                               \
	X(void, TF_DeleteSessionOptions, (struct tf_session_options * options))                    \
	X(void, TF_SetConfig,                                                                      \
	  (struct tf_session_options * options, const void *config, size_t bytes,                  \
	   struct tf_status *status))                                                              \
	X(void, TF_SetTarget, (struct tf_session_options * options, const char *target))           \
	X(struct tf_server *, TF_NewServer,                                                        \
	  (const void *definition, size_t bytes, struct tf_status *status))                        \
	X(void, TF_ServerStart, (struct tf_server * server, struct tf_status * status))            \
	X(const char *, TF_ServerTarget, (struct tf_server * server))                              \
	X(struct tf_session *, TF_NewSession,                                                      \
	  (struct tf_graph * graph, const struct tf_session_options *options,                      \
	   struct tf_status *status))                                                              \
	X(void, TF_CloseSession, (struct tf_session * session, struct tf_status * status))         \
	X(void, TF_DeleteSession, (struct tf_session * session, struct tf_status * status))        \
	X(struct tf_device_list *, TF_SessionListDevices,                                          \
	  (struct tf_session * session, struct tf_status * status))                                \
	X(void, TF_DeleteDeviceList, (struct tf_device_list * list))                               \
	X(int, TF_DeviceListCount, (const struct tf_device_list *list))                            \
	X(const char *, TF_DeviceListType,                                                         \
	  (const struct tf_device_list *list, int index, struct tf_status *status))                \
	X(void, TF_SessionRun,                                                                     \
	  (struct tf_session * session, const struct tf_buffer *run_options,                       \
	   const struct tf_output *inputs, struct tf_tensor *const *input_values, int input_count, \
	   const struct tf_output *outputs, struct tf_tensor **output_values, int output_count,    \
	   const struct tf_operation *const *targets, int target_count,                            \
	   struct tf_buffer *run_metadata, struct tf_status *status))

struct tf_api {
#define X(result, function, arguments) result(*function) arguments;
	TF_FUNCTIONS(X)
#undef X
	struct tf_status *status; /* of the last call; prony calls from one thread */
};

/* Loads the library, after loading `before` with global symbols (NULL: none). PRONY_MISSING if a
 * library cannot be loaded or lacks a function. Call tf_api_release afterwards. */
enum prony_status tf_api_load(struct tf_api *api, const char *path, const char *before,
			      struct error *err);
void tf_api_release(struct tf_api *api);

/* Converts api->status of the last call; `what` names the attempted action. PRONY_UNSUPPORTED if
 * TensorFlow reports it as unimplemented or has no kernel, with TensorFlow's message. */
enum prony_status tf_check(const struct tf_api *api, const char *what, struct error *err);

#endif
