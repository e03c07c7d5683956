/* A libcuda.so.1 that executes nothing: with it cuDNN makes plans whose code it compiles at run
 * time on a machine without a driver. It resolves all these names, and uses few. */
#define EXPORT __attribute__((visibility("default")))

static char handle[64];

#define GIVES(name)                                                                                \
	EXPORT int name(void **out)                                                                \
	{                                                                                          \
		*out = handle;                                                                     \
		return 0;                                                                          \
	}
GIVES(cuCtxGetCurrent)
GIVES(cuDevicePrimaryCtxRetain)
GIVES(cuKernelGetFunction)
GIVES(cuLibraryGetKernel)
GIVES(cuLibraryLoadData)
GIVES(cuLibraryLoadFromFile)
GIVES(cuModuleGetFunction)
GIVES(cuModuleLoadData)
GIVES(cuModuleLoadDataEx)
GIVES(cuModuleLoadFatBinary)

#define NUMBER(name, value)                                                                        \
	EXPORT int name(int *out)                                                                  \
	{                                                                                          \
		*out = value;                                                                      \
		return 0;                                                                          \
	}
NUMBER(cuCtxGetDevice, 0)
NUMBER(cuDeviceGet, 0)
NUMBER(cuDeviceGetAttribute, 0)
NUMBER(cuDeviceGetCount, 1)
NUMBER(cuDriverGetVersion, 13000)
NUMBER(cuFuncGetAttribute, 64)
NUMBER(cuKernelGetAttribute, 64)
NUMBER(cuOccupancyMaxActiveBlocksPerMultiprocessor, 2)
NUMBER(cuOccupancyMaxPotentialClusterSize, 1)

/* With one of NVIDIA's private tables NVRTC would compile to nothing. */
EXPORT int cuGetExportTable(const void **table, const void *id)
{
	(void)table;
	(void)id;
	return 500; /* CUDA_ERROR_NOT_FOUND */
}

#define DOES_NOTHING(name)                                                                         \
	EXPORT int name(void)                                                                      \
	{                                                                                          \
		return 0;                                                                          \
	}
DOES_NOTHING(cuCtxGetLimit)
DOES_NOTHING(cuCtxPopCurrent)
DOES_NOTHING(cuCtxPushCurrent)
DOES_NOTHING(cuDevicePrimaryCtxRelease)
DOES_NOTHING(cuDevicePrimaryCtxReset)
DOES_NOTHING(cuFuncSetAttribute)
DOES_NOTHING(cuGetErrorName)
DOES_NOTHING(cuGetErrorString)
DOES_NOTHING(cuInit)
DOES_NOTHING(cuKernelSetAttribute)
DOES_NOTHING(cuLaunchCooperativeKernel)
DOES_NOTHING(cuLaunchKernel)
DOES_NOTHING(cuLaunchKernelEx)
DOES_NOTHING(cuLibraryUnload)
DOES_NOTHING(cuLinkAddData)
DOES_NOTHING(cuLinkAddData_v2)
DOES_NOTHING(cuLinkAddFile_v2)
DOES_NOTHING(cuLinkComplete)
DOES_NOTHING(cuLinkCreate)
DOES_NOTHING(cuLinkCreate_v2)
DOES_NOTHING(cuLinkDestroy)
DOES_NOTHING(cuMemcpyDtoH_v2)
DOES_NOTHING(cuModuleGetGlobal_v2)
DOES_NOTHING(cuModuleUnload)
DOES_NOTHING(cuStreamGetCtx)
DOES_NOTHING(cuStreamSynchronize)
DOES_NOTHING(cuTensorMapEncodeTiled)
