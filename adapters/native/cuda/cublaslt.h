/* cuBLASLt, loaded by dlopen: the types and functions that prony uses. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_CUBLASLT_H
#define PRONY_ADAPTERS_NATIVE_CUDA_CUBLASLT_H

struct cublaslt {
	void *library; /* of dlopen */
};

#endif
