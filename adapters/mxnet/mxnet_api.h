/* The functions of MXNet's C interface that prony calls (include/mxnet/c_api.h and
 * include/nnvm/c_api.h of 1.9.1), with prony's own prototypes, so that a build does not need
 * MXNet's headers. Every function returns 0, or -1 with the text of MXGetLastError. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_API_H
#define PRONY_ADAPTERS_MXNET_MXNET_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "graph/tensor.h"

struct mx_ndarray;
struct mx_symbol;
struct mx_executor;
struct mx_operator;
struct mx_iterator;
struct mx_store;

struct mx_feature { /* LibFeature of libinfo.h */
	const char *name;
	bool enabled;
};

struct mx_context { /* the target of a ContextHandle (base.h, struct Context) */
	int32_t device_type, device_id;
};

#define MX_DEVICE_CPU 1
#define MX_DEVICE_GPU 2
#define MX_TYPE_FLOAT32 0
#define MX_GRADIENT_NONE 0u
#define MX_GRADIENT_WRITE 1u /* OpReqType kWriteTo: gradients are overwritten, not accumulated */

/* X(function, arguments); arrays that a call returns are valid until the thread's next call. */
#define MX_FUNCTIONS(X)                                                                            \
	X(MXGetVersion, (int *out))                                                                \
	X(MXGetGPUCount, (int *out))                                                               \
	X(MXLibInfoFeatures, (const struct mx_feature **out, size_t *count))                       \
	X(MXRandomSeed, (int seed))                                                                \
	X(MXSetNumOMPThreads, (int threads))                                                       \
	X(MXNotifyShutdown, (void))                                                                \
	X(MXEnginePushSync,                                                                        \
	  (void (*function)(void *run_context, void *argument), void *argument,                    \
	   void (*deleter)(void *argument), const struct mx_context *context, void *const_vars,    \
	   int const_count, void *mutable_vars, int mutable_count, const void *property,           \
	   int priority, const char *name))                                                        \
	X(MXNDArrayCreateEx, (const uint32_t *shape, uint32_t rank, int device_type,               \
			      int device_id, int delay_alloc, int type, struct mx_ndarray **out))  \
	X(MXNDArrayFree, (struct mx_ndarray * array))                                              \
	X(MXNDArraySlice,                                                                          \
	  (struct mx_ndarray * array, uint32_t begin, uint32_t end, struct mx_ndarray * *out))     \
	X(MXNDArrayReshape,                                                                        \
	  (struct mx_ndarray * array, int rank, int *dims, struct mx_ndarray **out))               \
	X(MXNDArrayGetShapeEx, (struct mx_ndarray * array, int *rank, const int **dims))           \
	X(MXNDArraySyncCopyFromCPU,                                                                \
	  (struct mx_ndarray * array, const void *data, size_t elements))                          \
	X(MXNDArraySyncCopyToCPU, (struct mx_ndarray * array, void *data, size_t elements))        \
	X(MXNDArrayWaitAll, (void))                                                                \
	X(MXNDArrayWaitToRead, (struct mx_ndarray * array))                                        \
	X(MXNDArrayGetData, (struct mx_ndarray * array, void **out))                               \
	X(MXListDataIters, (uint32_t * count, const void ***out))                                  \
	X(MXDataIterGetIterInfo,                                                                   \
	  (const void *creator, const char **name, const char **text, uint32_t *count,             \
	   const char ***names, const char ***types, const char ***texts))                         \
	X(MXDataIterCreateIter, (const void *creator, uint32_t count, const char **keys,           \
				 const char **values, struct mx_iterator **out))                   \
	X(MXDataIterFree, (struct mx_iterator * iterator))                                         \
	X(MXDataIterNext, (struct mx_iterator * iterator, int *more))                              \
	X(MXDataIterBeforeFirst, (struct mx_iterator * iterator))                                  \
	X(MXDataIterGetData, (struct mx_iterator * iterator, struct mx_ndarray * *out))            \
	X(MXDataIterGetLabel, (struct mx_iterator * iterator, struct mx_ndarray * *out))           \
	X(MXImperativeInvokeEx,                                                                    \
	  (const struct mx_operator *op, int input_count, struct mx_ndarray **inputs,              \
	   int *output_count, struct mx_ndarray ***outputs, int parameter_count,                   \
	   const char **keys, const char **values, const int **output_storage))                    \
	X(MXSymbolListAtomicSymbolCreators, (uint32_t * count, const struct mx_operator ***out))   \
	X(MXSymbolCreateVariable, (const char *name, struct mx_symbol **out))                      \
	X(MXSymbolCreateAtomicSymbol,                                                              \
	  (const struct mx_operator *op, uint32_t parameter_count, const char **keys,              \
	   const char **values, struct mx_symbol **out))                                           \
	X(MXSymbolCreateGroup,                                                                     \
	  (uint32_t count, struct mx_symbol * *symbols, struct mx_symbol * *out))                  \
	X(MXSymbolFree, (struct mx_symbol * symbol))                                               \
	X(MXSymbolSaveToJSON, (struct mx_symbol * symbol, const char **out))                       \
	X(MXSymbolListArguments, (struct mx_symbol * symbol, uint32_t * count, const char ***out)) \
	X(MXSymbolListAuxiliaryStates,                                                             \
	  (struct mx_symbol * symbol, uint32_t * count, const char ***out))                        \
	X(MXSymbolListOutputs, (struct mx_symbol * symbol, uint32_t * count, const char ***out))   \
	X(MXSymbolGetInternals, (struct mx_symbol * symbol, struct mx_symbol * *out))              \
	X(MXSymbolGetOutput, (struct mx_symbol * symbol, uint32_t index, struct mx_symbol * *out)) \
	X(MXSymbolInferShapeEx,                                                                    \
	  (struct mx_symbol * symbol, uint32_t count, const char **keys, const uint32_t *starts,   \
	   const int *dims, uint32_t *in_count, const int **in_ranks, const int ***in_dims,        \
	   uint32_t *out_count, const int **out_ranks, const int ***out_dims, uint32_t *aux_count, \
	   const int **aux_ranks, const int ***aux_dims, int *complete))                           \
	X(MXExecutorBindEX,                                                                        \
	  (struct mx_symbol * symbol, int device_type, int device_id, uint32_t map_count,          \
	   const char **map_keys, const int *map_types, const int *map_ids, uint32_t count,        \
	   struct mx_ndarray **arguments, struct mx_ndarray **gradients, uint32_t *requests,       \
	   uint32_t aux_count, struct mx_ndarray **aux, struct mx_executor *shared,                \
	   struct mx_executor **out))                                                              \
	X(MXExecutorForward, (struct mx_executor * executor, int is_train))                        \
	X(MXExecutorBackwardEx, (struct mx_executor * executor, uint32_t count,                    \
				 struct mx_ndarray * *head_gradients, int is_train))               \
	X(MXExecutorOutputs,                                                                       \
	  (struct mx_executor * executor, uint32_t * count, struct mx_ndarray * **out))            \
	X(MXExecutorGetOptimizedSymbol, (struct mx_executor * executor, struct mx_symbol * *out))  \
	X(MXExecutorSetMonitorCallbackEX,                                                          \
	  (struct mx_executor * executor,                                                          \
	   void (*callback)(const char *name, struct mx_ndarray *array, void *context),            \
	   void *context, int inputs_too))                                                         \
	X(MXSetProcessProfilerConfig,                                                              \
	  (int count, const char *const *keys, const char *const *values, void *store))            \
	X(MXSetProcessProfilerState, (int on, int of_server, void *store))                         \
	X(MXDumpProcessProfile, (int finished, int of_server, void *store))                        \
	X(MXExecutorFree, (struct mx_executor * executor))                                         \
	X(MXKVStoreCreate, (const char *kind, struct mx_store **out))                              \
	X(MXKVStoreFree, (struct mx_store * store))                                                \
	X(MXKVStoreRunServer,                                                                      \
	  (struct mx_store * store, void (*command)(int head, const char *body, void *context),    \
	   void *context))                                                                         \
	X(MXKVStoreInit,                                                                           \
	  (struct mx_store * store, uint32_t count, const int *keys, struct mx_ndarray **values))  \
	X(MXKVStorePush, (struct mx_store * store, uint32_t count, const int *keys,                \
			  struct mx_ndarray *const *values, int priority))                         \
	X(MXKVStorePull, (struct mx_store * store, uint32_t count, const int *keys,                \
			  struct mx_ndarray *const *values, int priority))                         \
	X(NNGetOpHandle, (const char *name, const struct mx_operator **out))                       \
	X(NNSymbolCompose, (struct mx_symbol * symbol, const char *name, uint32_t count,           \
			    const char **keys, struct mx_symbol **arguments))

struct mx_api {
#define X(function, arguments) int(*function) arguments;
	MX_FUNCTIONS(X)
#undef X
	const char *(*MXGetLastError)(void);
	/* From libgomp and OpenBLAS, on which libmxnet.so depends. */
	int (*omp_get_max_threads)(void);
	void (*omp_set_num_threads)(int threads);
	const char *(*openblas_get_config)(void); /* NULL with another BLAS */
	struct mx_context device;		  /* the device of arrays and executors */
};

/* Loads the library for the device CPU. PRONY_MISSING when it cannot be loaded, lacks a function or
 * has another version than 1.9. */
enum prony_status mx_api_load(struct mx_api *api, const char *path, struct error *err);

/* Turns a return code into a status; `what` names the attempted action. */
enum prony_status mx_check(const struct mx_api *api, int result, const char *what,
			   struct error *err);

/* Creates an fp32 array on the device with the shape `shape`, filled from `data`, or with zeros if
 * that is NULL. PRONY_UNSUPPORTED for shapes with more than 2^31 - 1 elements, the limit of this
 * build of MXNet. */
enum prony_status mx_array_new(const struct mx_api *api, const struct shape *shape,
			       const float *data, struct mx_ndarray **out, struct error *err);

/* The number of elements of an array according to MXNet; -1 when unknown. */
int64_t mx_array_elements(const struct mx_api *api, struct mx_ndarray *array);

#endif
