/*
 * cuBLASLt, loaded by dlopen: the types and functions that prony uses. Declared here so that
 * building needs no toolkit; types and values are those of cublasLt.h and cublas_api.h of CUDA 13,
 * which are the same since CUDA 12. Matrices are column-major.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_CUBLASLT_H
#define PRONY_ADAPTERS_NATIVE_CUDA_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Opaque handles of the library, of a product, a matrix and the search for an algorithm. */
typedef void *cublaslt_handle, *cublaslt_product, *cublaslt_matrix, *cublaslt_preference;

enum cublas_status {
	CUBLAS_STATUS_SUCCESS = 0,
	CUBLAS_STATUS_NOT_INITIALIZED = 1,
	CUBLAS_STATUS_ALLOC_FAILED = 3,
	CUBLAS_STATUS_INVALID_VALUE = 7,
	CUBLAS_STATUS_EXECUTION_FAILED = 13,
	CUBLAS_STATUS_NOT_SUPPORTED = 15
};

/* cudaDataType_t */
enum cublas_type { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };

/* cublasComputeType_t */
enum cublas_compute {
	CUBLAS_COMPUTE_32F = 68,
	CUBLAS_COMPUTE_32F_PEDANTIC = 69,
	CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};

/* cublasOperation_t */
enum cublas_operation { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };

/* cublasLtMatmulDescAttributes_t; the type of each value is int32_t unless noted. */
enum cublaslt_product_attribute {
	CUBLASLT_MATMUL_DESC_TRANSA = 3,
	CUBLASLT_MATMUL_DESC_TRANSB = 4,
	CUBLASLT_MATMUL_DESC_EPILOGUE = 7,     /* uint32_t */
	CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8, /* void * */
	CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
};

/* cublasLtEpilogue_t */
enum cublaslt_epilogue {
	CUBLASLT_EPILOGUE_DEFAULT = 1,
	CUBLASLT_EPILOGUE_RELU = 2,
	CUBLASLT_EPILOGUE_BIAS = 4,
	CUBLASLT_EPILOGUE_RELU_BIAS = 6
};

/* cublasLtMatrixLayoutAttribute_t */
enum cublaslt_matrix_attribute {
	CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,		/* int32_t */
	CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6 /* int64_t, elements */
};

/* cublasLtMatmulPreferenceAttributes_t */
enum cublaslt_preference_attribute {
	CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,	/* uint64_t */
	CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, /* uint32_t */
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, /* uint32_t, these four */
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};

/* cublasLtReductionScheme_t: how parts of a sum are added up; without it in the output's type. */
enum cublaslt_reduction { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };

/* cublasLtMatmulAlgo_t */
struct cublaslt_algorithm {
	uint64_t data[8];
};

/* cublasLtMatmulHeuristicResult_t */
struct cublaslt_choice {
	struct cublaslt_algorithm algorithm;
	size_t workspace; /* bytes */
	int state;	  /* a status */
	float waves;
	int reserved[4];
};

/* Every function that prony calls: result, name without its prefix, parameters. */
#define CUBLASLT_FUNCTIONS(X)                                                                      \
	X(size_t, GetVersion, (void))                                                              \
	X(const char *, GetStatusString, (int status))                                             \
	X(int, Create, (cublaslt_handle * handle))                                                 \
	X(int, Destroy, (cublaslt_handle handle))                                                  \
	X(int, MatmulDescCreate, (cublaslt_product * product, int compute, int scale_type))        \
	X(int, MatmulDescDestroy, (cublaslt_product product))                                      \
	X(int, MatmulDescSetAttribute,                                                             \
	  (cublaslt_product product, int attribute, const void *value, size_t bytes))              \
	X(int, MatrixLayoutCreate,                                                                 \
	  (cublaslt_matrix * matrix, int type, uint64_t rows, uint64_t columns, int64_t leading))  \
	X(int, MatrixLayoutDestroy, (cublaslt_matrix matrix))                                      \
	X(int, MatrixLayoutSetAttribute,                                                           \
	  (cublaslt_matrix matrix, int attribute, const void *value, size_t bytes))                \
	X(int, MatmulPreferenceCreate, (cublaslt_preference * preference))                         \
	X(int, MatmulPreferenceDestroy, (cublaslt_preference preference))                          \
	X(int, MatmulPreferenceSetAttribute,                                                       \
	  (cublaslt_preference preference, int attribute, const void *value, size_t bytes))        \
	X(int, MatmulAlgoGetHeuristic,                                                             \
	  (cublaslt_handle handle, cublaslt_product product, cublaslt_matrix a, cublaslt_matrix b, \
	   cublaslt_matrix c, cublaslt_matrix d, cublaslt_preference preference, int room,         \
	   struct cublaslt_choice *choices, int *count))                                           \
	X(int, Matmul,                                                                             \
	  (cublaslt_handle handle, cublaslt_product product, const void *alpha, const void *a,     \
	   cublaslt_matrix a_layout, const void *b, cublaslt_matrix b_layout, const void *beta,    \
	   const void *c, cublaslt_matrix c_layout, void *d, cublaslt_matrix d_layout,             \
	   const struct cublaslt_algorithm *algorithm, void *workspace, size_t workspace_bytes,    \
	   void *stream))

struct cublaslt {
#define X(result, name, parameters) result(*name) parameters;
	CUBLASLT_FUNCTIONS(X)
#undef X
	char path[4096]; /* of the library in use */
};

/*
 * Loads libcublasLt.so.13 or .12 from the first of these places that has it: the folder in
 * PRONY_CUBLAS, which is then the only one; the packages of an installed framework; the loader's
 * path. PRONY_MISSING with the reason and the remedy.
 */
enum prony_status cublaslt_load(struct cublaslt *blas, struct error *err);

/* "13.1.0" of the library's number. */
void cublaslt_version_text(const struct cublaslt *blas, char *out, size_t out_bytes);

/* Turns a status into prony's; messages name `what` and `name`. PRONY_UNSUPPORTED for "not
 * supported", else PRONY_INTERNAL. */
enum prony_status cublaslt_check(const struct cublaslt *blas, int status, const char *what,
				 const char *name, struct error *err);

#endif
