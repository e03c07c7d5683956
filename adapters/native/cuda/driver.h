/*
 * The CUDA driver, loaded by dlopen: the types and functions of libcuda that prony uses. Declared
 * here so that building needs no toolkit; types and values are those of cuda.h of CUDA 13.
 */
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

/* CUresult */
enum cuda_status {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901
};

/* CUdevice_attribute */
enum cuda_attribute {
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
};

enum { CU_STREAM_NON_BLOCKING = 1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1, CU_EVENT_DEFAULT = 0 };

/*
 * Every function that prony calls: member, exported name, parameters. All return a CUresult.
 */
#define CUDA_FUNCTIONS(X)                                                                          \
	X(Init, "cuInit", (unsigned flags))                                                        \
	X(DriverGetVersion, "cuDriverGetVersion", (int *version))                                  \
	X(GetErrorName, "cuGetErrorName", (int status, const char **name))                         \
	X(GetErrorString, "cuGetErrorString", (int status, const char **text))                     \
	X(DeviceGetCount, "cuDeviceGetCount", (int *count))                                        \
	X(DeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                              \
	X(DeviceGetName, "cuDeviceGetName", (char *name, int bytes, CUdevice device))              \
	X(DeviceGetUuid, "cuDeviceGetUuid_v2", (struct cuda_uuid * uuid, CUdevice device))         \
	X(DeviceGetAttribute, "cuDeviceGetAttribute", (int *out, int attribute, CUdevice device))  \
	X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                                      \
	  (struct CUctx_st * *context, CUdevice device))                                           \
	X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))              \
	X(CtxSetCurrent, "cuCtxSetCurrent", (struct CUctx_st * context))                           \
	X(MemAlloc, "cuMemAlloc_v2", (CUdeviceptr * address, size_t bytes))                        \
	X(MemFree, "cuMemFree_v2", (CUdeviceptr address))                                          \
	X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                 \
	  (CUdeviceptr to, const void *from, size_t bytes, struct CUstream_st *stream))            \
	X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                 \
	  (void *to, CUdeviceptr from, size_t bytes, struct CUstream_st *stream))                  \
	X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                 \
	  (CUdeviceptr to, CUdeviceptr from, size_t bytes, struct CUstream_st * stream))           \
	X(MemsetD8Async, "cuMemsetD8Async",                                                        \
	  (CUdeviceptr to, unsigned char value, size_t bytes, struct CUstream_st *stream))         \
	X(StreamCreate, "cuStreamCreate", (struct CUstream_st * *stream, unsigned flags))          \
	X(StreamDestroy, "cuStreamDestroy_v2", (struct CUstream_st * stream))                      \
	X(StreamSynchronize, "cuStreamSynchronize", (struct CUstream_st * stream))                 \
	X(StreamBeginCapture, "cuStreamBeginCapture_v2", (struct CUstream_st * stream, int mode))  \
	X(StreamEndCapture, "cuStreamEndCapture",                                                  \
	  (struct CUstream_st * stream, struct CUgraph_st * *graph))                               \
	X(GraphInstantiate, "cuGraphInstantiateWithFlags",                                         \
	  (struct CUgraphExec_st * *ready, struct CUgraph_st * graph, unsigned long long flags))   \
	X(GraphLaunch, "cuGraphLaunch",                                                            \
	  (struct CUgraphExec_st * ready, struct CUstream_st * stream))                            \
	X(GraphExecDestroy, "cuGraphExecDestroy", (struct CUgraphExec_st * ready))                 \
	X(GraphDestroy, "cuGraphDestroy", (struct CUgraph_st * graph))                             \
	X(EventCreate, "cuEventCreate", (struct CUevent_st * *event, unsigned flags))              \
	X(EventDestroy, "cuEventDestroy_v2", (struct CUevent_st * event))                          \
	X(EventRecord, "cuEventRecord", (struct CUevent_st * event, struct CUstream_st * stream))  \
	X(EventSynchronize, "cuEventSynchronize", (struct CUevent_st * event))                     \
	X(EventElapsedTime, "cuEventElapsedTime",                                                  \
	  (float *milliseconds, struct CUevent_st *start, struct CUevent_st *end))                 \
	X(ModuleLoadData, "cuModuleLoadData", (struct CUmod_st * *module, const void *image))      \
	X(ModuleUnload, "cuModuleUnload", (struct CUmod_st * module))                              \
	X(ModuleGetFunction, "cuModuleGetFunction",                                                \
	  (struct CUfunc_st * *function, struct CUmod_st * module, const char *name))              \
	X(LaunchKernel, "cuLaunchKernel",                                                          \
	  (struct CUfunc_st * function, unsigned grid_x, unsigned grid_y, unsigned grid_z,         \
	   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,            \
	   struct CUstream_st *stream, void **parameters, void **extra))

struct cuda_driver {
#define X(name, symbol, parameters) int(*name) parameters;
	CUDA_FUNCTIONS(X)
#undef X
	int version; /* of CUDA that the driver is made for: 13000 */
	int devices; /* 0 to devices - 1 are there */
};

/* The oldest version in use. */
#define CUDA_DRIVER_OLDEST 12000

/*
 * Loads libcuda.so.1 from the loader's path, starts it and counts its devices. PRONY_MISSING with
 * the reason: no driver, one that is too old, one that does not match the kernel's module, or no
 * GPU.
 */
enum prony_status cuda_driver_load(struct cuda_driver *driver, struct error *err);

/* "13.0" of 13000. */
void cuda_version_text(int version, char *out, size_t out_bytes);

/* Turns a CUresult into prony's status; the message is "CUDA: WHAT of 'NAME' failed: ...".
 * PRONY_OUT_OF_MEMORY when the device has no memory left, else PRONY_INTERNAL. */
enum prony_status cuda_check(const struct cuda_driver *driver, int status, const char *what,
			     const char *name, struct error *err);

#endif
