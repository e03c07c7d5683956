/* The CUDA driver, loaded by dlopen: the types and functions of libcuda that prony uses. Types and
 * values as in cuda.h of CUDA 13. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_DRIVER_H
#define PRONY_ADAPTERS_NATIVE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
/* Handles: of a context, a stream, an event, a module, a kernel, a graph and one ready to run. */
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;

struct cuda_uuid {
	unsigned char bytes[16];
};

struct cuda_driver {
	void *library; /* of dlopen */
};

#endif
