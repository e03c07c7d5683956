/*
 * The part of cuDNN 9 that prony calls: the backend ("graph") interface, for convolutions and
 * attention. Declared here so that building needs no toolkit. Everything is from cudnn_graph_v9.h
 * of cuDNN 9.19 (its comment there is the reference); names and values are NVIDIA's and are stable
 * within version 9. Descriptors are opaque: attributes are set and read one by one, then the
 * descriptor is finalised.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_CUDNN_H
#define PRONY_ADAPTERS_NATIVE_CUDA_CUDNN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef void *cudnn_descriptor; /* cudnnBackendDescriptor_t */
typedef void *cudnn_handle;	/* cudnnHandle_t: made in the current context of the driver */

/* cudnnStatus_t: the thousands are the category. */
enum cudnn_status {
	CUDNN_STATUS_SUCCESS = 0,
	CUDNN_STATUS_NOT_INITIALIZED = 1001, /* of cudnnCreate: there is no device */
	CUDNN_STATUS_BAD_PARAM = 2000,
	CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002,
	CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED = 2004,
	CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND = 2005,
	CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2006,
	CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2008,
	CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE = 2010,
	CUDNN_STATUS_NOT_SUPPORTED = 3000,
	CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN = 3001,
	CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING = 3008, /* no driver */
	CUDNN_STATUS_INTERNAL_ERROR = 4000,
	CUDNN_STATUS_EXECUTION_FAILED = 5000
};

/* cudnnDataType_t */
enum cudnn_data_type {
	CUDNN_DATA_FLOAT = 0,
	CUDNN_DATA_HALF = 2,
	CUDNN_DATA_INT32 = 4,
	CUDNN_DATA_BFLOAT16 = 9,
	CUDNN_DATA_INT64 = 10,
	CUDNN_DATA_BOOLEAN = 11
};

/* cudnnConvolutionMode_t */
enum cudnn_convolution_mode { CUDNN_CROSS_CORRELATION = 1 };

/* cudnnPointwiseMode_t */
enum cudnn_pointwise_mode {
	CUDNN_POINTWISE_ADD = 0,
	CUDNN_POINTWISE_MUL = 1,
	CUDNN_POINTWISE_DIV = 6,
	CUDNN_POINTWISE_SUB = 9,
	CUDNN_POINTWISE_EXP = 13,
	CUDNN_POINTWISE_LOG = 15,
	CUDNN_POINTWISE_IDENTITY = 21,
	CUDNN_POINTWISE_RELU_FWD = 100,
	CUDNN_POINTWISE_CMP_GE = 303,
	CUDNN_POINTWISE_GEN_INDEX = 501,    /* the place on an axis */
	CUDNN_POINTWISE_BINARY_SELECT = 601 /* t ? x : b */
};

/* cudnnRngDistribution_t */
enum cudnn_rng_distribution { CUDNN_RNG_DISTRIBUTION_BERNOULLI = 0 };

/* cudnnReduceTensorOp_t */
enum cudnn_reduction { CUDNN_REDUCE_TENSOR_ADD = 0, CUDNN_REDUCE_TENSOR_MAX = 3 };

/* cudnnBackendHeurMode_t */
enum cudnn_heur_mode { CUDNN_HEUR_MODE_B = 1, CUDNN_HEUR_MODE_FALLBACK = 2, CUDNN_HEUR_MODE_A = 3 };

/* cudnnBackendNumericalNote_t: how an engine departs from plain arithmetic in the given type. */
enum cudnn_numerical_note {
	CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0,
	CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1,
	CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2,
	CUDNN_NUMERICAL_NOTE_FFT = 3,
	CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,
	CUDNN_NUMERICAL_NOTE_WINOGRAD = 5,
	CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 = 6,
	CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 = 7,
	CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 = 8,
	CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP = 9
};
#define CUDNN_NUMERICAL_NOTES 10

/* cudnnBackendBehaviorNote_t */
enum cudnn_behavior_note { CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION = 0 };
#define CUDNN_BEHAVIOR_NOTES 5

/* cudnnBackendDescriptorType_t */
enum cudnn_descriptor_type {
	CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
	CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1,
	CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
	CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
	CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
	CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
	CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
	CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11,
	CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
	CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
	CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
	CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
	CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
	CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18,
	CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19,
	CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21,
	CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22,
	CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR = 31,
	CUDNN_BACKEND_RNG_DESCRIPTOR = 32,
	CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR = 33,
	CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR = 38
};

/* cudnnBackendAttributeType_t: the type of an attribute's elements. */
enum cudnn_attribute_type {
	CUDNN_TYPE_HANDLE = 0,
	CUDNN_TYPE_DATA_TYPE = 1,
	CUDNN_TYPE_BOOLEAN = 2,
	CUDNN_TYPE_INT64 = 3,
	CUDNN_TYPE_FLOAT = 4,
	CUDNN_TYPE_DOUBLE = 5,
	CUDNN_TYPE_VOID_PTR = 6,
	CUDNN_TYPE_CONVOLUTION_MODE = 7,
	CUDNN_TYPE_HEUR_MODE = 8,
	CUDNN_TYPE_NUMERICAL_NOTE = 11,
	CUDNN_TYPE_POINTWISE_MODE = 14,
	CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
	CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18,
	CUDNN_TYPE_BEHAVIOR_NOTE = 19,
	CUDNN_TYPE_INT32 = 23,
	CUDNN_TYPE_CHAR = 24,
	CUDNN_TYPE_RNG_DISTRIBUTION = 29
};

/* cudnnBackendAttributeName_t */
enum cudnn_attribute {
	CUDNN_ATTR_POINTWISE_MODE = 0,
	CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
	CUDNN_ATTR_POINTWISE_AXIS = 9,

	CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100,
	CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101,
	CUDNN_ATTR_CONVOLUTION_DILATIONS = 102,
	CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103,
	CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104,
	CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105,
	CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106,

	CUDNN_ATTR_ENGINEHEUR_MODE = 200,
	CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
	CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
	CUDNN_ATTR_ENGINEHEUR_DEVICEPROP = 204,

	CUDNN_ATTR_ENGINECFG_ENGINE = 300,

	CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400,
	CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
	CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
	CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION = 405,
	CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP = 407,

	CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,
	CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701,
	CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
	CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703,
	CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704,
	CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA = 707,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716,
	CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,

	CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
	CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
	CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
	CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
	CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758,

	CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
	CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,

	CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
	CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
	CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
	CUDNN_ATTR_TENSOR_STRIDES = 903,
	CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
	CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
	CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908,

	CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
	CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
	CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,

	CUDNN_ATTR_ENGINE_GLOBAL_INDEX = 1301,
	CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
	CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE = 1305,

	CUDNN_ATTR_MATMUL_COMP_TYPE = 1500,
	CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520,
	CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521,
	CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522,
	CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523,

	CUDNN_ATTR_REDUCTION_OPERATOR = 1600,
	CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601,
	CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610,
	CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611,
	CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612,

	CUDNN_ATTR_OPERATION_RESHAPE_XDESC = 2200,
	CUDNN_ATTR_OPERATION_RESHAPE_YDESC = 2201,

	CUDNN_ATTR_RNG_DISTRIBUTION = 2300,
	CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY = 2305,
	CUDNN_ATTR_OPERATION_RNG_YDESC = 2310,
	CUDNN_ATTR_OPERATION_RNG_SEED = 2311,
	CUDNN_ATTR_OPERATION_RNG_DESC = 2312,
	CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC = 2313,

	CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION = 2702
};

/*
 * Every function that prony calls: result, name without its prefix, parameters. Enumerations are
 * passed as int, the type that compilers give them on the platforms of CUDA; a stream is the
 * driver's CUstream.
 */
#define CUDNN_FUNCTIONS(X)                                                                         \
	X(size_t, GetVersion, (void))                                                              \
	X(const char *, GetErrorString, (int status))                                              \
	X(void, GetLastErrorString, (char *message, size_t max_size))                              \
	X(int, Create, (cudnn_handle * handle))                                                    \
	X(int, Destroy, (cudnn_handle handle))                                                     \
	X(int, SetStream, (cudnn_handle handle, void *stream))                                     \
	X(int, BackendCreateDescriptor, (int type, cudnn_descriptor *out))                         \
	X(int, BackendDestroyDescriptor, (cudnn_descriptor descriptor))                            \
	X(int, BackendFinalize, (cudnn_descriptor descriptor))                                     \
	X(int, BackendSetAttribute,                                                                \
	  (cudnn_descriptor descriptor, int attribute, int type, int64_t count,                    \
	   const void *elements))                                                                  \
	X(int, BackendGetAttribute,                                                                \
	  (cudnn_descriptor descriptor, int attribute, int type, int64_t room, int64_t *count,     \
	   void *elements))                                                                        \
	X(int, BackendExecute,                                                                     \
	  (cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor variant_pack))

struct cudnn {
#define X(result, name, parameters) result(*name) parameters;
	CUDNN_FUNCTIONS(X)
#undef X
	char path[4096]; /* of the library in use */
};

/* The oldest version in use: the first that plans from a description of the device. */
#define CUDNN_OLDEST 90800

/*
 * Loads libcudnn.so.9 from the first of these places that has it: the folder in PRONY_CUDNN, which
 * is then the only one; `folder`, unless NULL; the packages of an installed framework; the loader's
 * path, last because a machine may have an older one there. The library finds its parts in its own
 * folder. PRONY_MISSING with the reason and the remedy: none, damaged, or older than
 * CUDNN_OLDEST.
 */
enum prony_status cudnn_load(struct cudnn *cudnn, const char *folder, struct error *err);

/* "9.19.0" of cudnnGetVersion's 91900. */
void cudnn_version_text(const struct cudnn *cudnn, char *out, size_t out_bytes);

/* Turns a status into prony's, with the library's own explanation; messages name `what` and
 * `name`. PRONY_UNSUPPORTED for the category "not supported", else PRONY_INTERNAL. */
enum prony_status cudnn_check(const struct cudnn *cudnn, int status, const char *what,
			      const char *name, struct error *err);

#endif
