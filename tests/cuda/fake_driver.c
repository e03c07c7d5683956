/* libcuda.so.1 of the tests: devices, contexts, memory, modules and launches. */
#include "tests/cuda/fake_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake_internal.h"

/* The product's declarations have the parameters of these functions. */
#define X(name, symbol, parameters) int fake_declared_##name parameters __asm__(symbol);
CUDA_FUNCTIONS(X)
#undef X

struct CUctx_st {
	CUdevice device;
};

static struct CUctx_st contexts[16];
static pthread_key_t current_context; /* no thread-local variable: see fake_kernels.c */
static bool started;
static char module;

static long environment(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtol(text, NULL, 10) : otherwise;
}

static int device_count(void)
{
	return (int)environment("FAKE_CUDA_DEVICES", 1);
}

FAKE_EXPORT int cuInit(unsigned flags)
{
	(void)flags;
	if (device_count() == 0)
		return CUDA_ERROR_NO_DEVICE;
	if (!started && pthread_key_create(&current_context, NULL) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	started = true;
	return fake_memory_start();
}

FAKE_EXPORT int cuDriverGetVersion(int *version)
{
	*version = FAKE_CUDA_VERSION;
	return CUDA_SUCCESS;
}

static const struct {
	int status;
	const char *name, *text;
} errors[] = {
	{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
	{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{ERROR_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{ERROR_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
	{ERROR_UNSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	 "operation not permitted when stream is capturing"},
	{CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	 "operation failed due to a previous error during capture"},
	{ERROR_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
	 "capturing stream has unjoined work"},
	{ERROR_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
	 "dependency created on uncaptured work in another stream"},
	{ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
	 "operation not permitted on an event last recorded in a capturing stream"},
};

static int error_row(int status)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].status == status)
			return (int)i;
	return -1;
}

FAKE_EXPORT int cuGetErrorName(int status, const char **name)
{
	int row = error_row(status);

	*name = row >= 0 ? errors[row].name : NULL;
	return row >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE_EXPORT int cuGetErrorString(int status, const char **text)
{
	int row = error_row(status);

	*text = row >= 0 ? errors[row].text : NULL;
	return row >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE_EXPORT int cuDeviceGetCount(int *count)
{
	*count = device_count();
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDeviceGet(CUdevice *device, int ordinal)
{
	if (ordinal < 0 || ordinal >= device_count() || ordinal >= 16)
		return 101; /* CUDA_ERROR_INVALID_DEVICE */
	*device = ordinal;
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDeviceGetName(char *name, int bytes, CUdevice device)
{
	(void)device;
	snprintf(name, (size_t)bytes, "%s", FAKE_CUDA_NAME);
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDeviceGetUuid_v2(struct cuda_uuid *uuid, CUdevice device)
{
	*uuid = (struct cuda_uuid){FAKE_CUDA_UUID};
	uuid->bytes[15] = (unsigned char)device;
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDeviceGetAttribute(int *out, int attribute, CUdevice device)
{
	(void)device;
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*out = FAKE_CUDA_MULTIPROCESSORS;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*out = FAKE_CUDA_CAPABILITY / 10;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*out = FAKE_CUDA_CAPABILITY % 10;
		return CUDA_SUCCESS;
	default:
		return fake_refuse(CUDA_ERROR_INVALID_VALUE,
				   "device attribute %d is not in the fake", attribute);
	}
}

static size_t memory_bytes(void)
{
	return (size_t)environment("FAKE_CUDA_MEMORY", 80L << 30);
}

FAKE_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	(void)device;
	*bytes = memory_bytes();
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDevicePrimaryCtxRetain(struct CUctx_st **context, CUdevice device)
{
	if (!started || device < 0 || device >= device_count())
		return CUDA_ERROR_INVALID_VALUE;
	*context = &contexts[device];
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	(void)device;
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuCtxSetCurrent(struct CUctx_st *context)
{
	return started ? pthread_setspecific(current_context, context) : ERROR_CONTEXT;
}

static int check_context(const char *what)
{
	if (started && pthread_getspecific(current_context) != NULL)
		return CUDA_SUCCESS;
	return fake_refuse(ERROR_CONTEXT, "%s on a thread without a current context", what);
}

FAKE_EXPORT int cuMemGetInfo_v2(size_t *left, size_t *total)
{
	*total = memory_bytes();
	*left = *total - fake_device_used();
	return check_context("cuMemGetInfo");
}

FAKE_EXPORT int cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	void *at = NULL;
	int status = check_context("cuMemAlloc");

	if (status == CUDA_SUCCESS && fake_forbidden("cuMemAlloc"))
		status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (status == CUDA_SUCCESS && bytes > memory_bytes() - fake_device_used())
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (status == CUDA_SUCCESS)
		status = fake_device_alloc(bytes, &at);
	if (status == CUDA_SUCCESS)
		*address = (CUdeviceptr)(uintptr_t)at;
	return status;
}

FAKE_EXPORT int cuMemFree_v2(CUdeviceptr address)
{
	if (fake_forbidden("cuMemFree"))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return fake_device_free((void *)(uintptr_t)address);
}

FAKE_EXPORT int cuMemAllocHost_v2(void **out, size_t bytes)
{
	int status = check_context("cuMemAllocHost");

	if (status == CUDA_SUCCESS && fake_forbidden("cuMemAllocHost"))
		status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return status == CUDA_SUCCESS ? fake_host_alloc(bytes, out) : status;
}

FAKE_EXPORT int cuMemFreeHost(void *address)
{
	return fake_host_free(address);
}

/* Where each side has to be: 'd'evice or 'h'ost. A capture takes pinned host memory alone. */
static int check_side(const char *what, char side, const void *address, size_t bytes,
		      struct CUstream_st *stream)
{
	bool device = fake_cuda_is_device(address, bytes);

	if (side == 'd' && !device)
		return fake_refuse(CUDA_ERROR_INVALID_VALUE,
				   "%s: %zu bytes at %p are not within device memory", what, bytes,
				   address);
	if (side == 'h' && (device || fake_cuda_is_device(address, 0)))
		return fake_refuse(CUDA_ERROR_INVALID_VALUE, "%s: %p is device memory", what,
				   address);
	if (side == 'h' && fake_capturing(stream) && !fake_is_pinned(address, bytes)) {
		fake_forbidden("a copy of memory that is not pinned");
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return CUDA_SUCCESS;
}

static int copy(const char *what, const char *sides, void *to, const void *from, size_t bytes,
		struct CUstream_st *stream)
{
	struct operation o = {.kind = COPY, .to = to, .from = from, .bytes = bytes};
	int status = check_context(what);

	if (status == CUDA_SUCCESS)
		status = check_side(what, sides[0], to, bytes, stream);
	if (status == CUDA_SUCCESS)
		status = check_side(what, sides[1], from, bytes, stream);
	return status == CUDA_SUCCESS ? fake_append(stream, &o) : status;
}

FAKE_EXPORT int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
				     struct CUstream_st *stream)
{
	return copy("cuMemcpyHtoDAsync", "dh", (void *)(uintptr_t)to, from, bytes, stream);
}

FAKE_EXPORT int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
				     struct CUstream_st *stream)
{
	return copy("cuMemcpyDtoHAsync", "hd", to, (const void *)(uintptr_t)from, bytes, stream);
}

FAKE_EXPORT int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
				     struct CUstream_st *stream)
{
	return copy("cuMemcpyDtoDAsync", "dd", (void *)(uintptr_t)to, (const void *)(uintptr_t)from,
		    bytes, stream);
}

FAKE_EXPORT int cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
				struct CUstream_st *stream)
{
	struct operation o = {
		.kind = FILL, .to = (void *)(uintptr_t)to, .value = value, .bytes = bytes};
	int status = check_side("cuMemsetD8Async", 'd', o.to, bytes, stream);

	return status == CUDA_SUCCESS ? fake_append(stream, &o) : status;
}

/* The image is machine code for a GPU: the fake has its own. */
FAKE_EXPORT int cuModuleLoadData(struct CUmod_st **out, const void *image)
{
	int status = check_context("cuModuleLoadData");

	if (status == CUDA_SUCCESS && fake_forbidden("cuModuleLoadData"))
		status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (status == CUDA_SUCCESS && image == NULL)
		status = CUDA_ERROR_INVALID_VALUE;
	if (status == CUDA_SUCCESS)
		*out = (struct CUmod_st *)(void *)&module;
	return status;
}

FAKE_EXPORT int cuModuleUnload(struct CUmod_st *unloaded)
{
	return (void *)unloaded == (void *)&module ? CUDA_SUCCESS : ERROR_HANDLE;
}

FAKE_EXPORT int cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *from,
				    const char *name)
{
	const struct fake_kernel *kernel = fake_kernel_find(name);

	if ((void *)from != (void *)&module)
		return ERROR_HANDLE;
	if (kernel == NULL)
		return CUDA_ERROR_NOT_FOUND;
	*function = (struct CUfunc_st *)(uintptr_t)kernel;
	return CUDA_SUCCESS;
}

/* A copy of the arguments, each at a multiple of 16 bytes. NULL if a pointer is no device memory.
 */
static unsigned char *copy_arguments(const struct fake_kernel *kernel, void **parameters)
{
	unsigned char *copied, *at;
	size_t bytes = 16;

	for (int i = 0; i < kernel->argument_count; i++)
		bytes += (kernel->arguments[i].bytes + 15) / 16 * 16;
	at = copied = calloc(1, bytes);
	for (int i = 0; i < kernel->argument_count; i++) {
		const struct fake_argument *argument = &kernel->arguments[i];
		const void *address;

		memcpy(at, parameters[i], argument->bytes);
		memcpy(&address, at, argument->pointer ? sizeof(address) : 0);
		if (argument->pointer && address != NULL && !fake_cuda_is_device(address, 1)) {
			fake_refuse(0, "%s: argument %d, %p, is not in device memory", kernel->name,
				    i + 1, address);
			free(copied);
			return NULL;
		}
		at += (argument->bytes + 15) / 16 * 16;
	}
	return copied;
}

FAKE_EXPORT int cuLaunchKernel(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y,
			       unsigned grid_z, unsigned block_x, unsigned block_y,
			       unsigned block_z, unsigned shared_bytes, struct CUstream_st *stream,
			       void **parameters, void **extra)
{
	const struct fake_kernel *kernel = (const void *)function;
	struct operation o = {
		.kind = LAUNCH, .kernel = kernel, .blocks = grid_x, .threads = block_x};
	int status = check_context("cuLaunchKernel");

	if (status != CUDA_SUCCESS)
		return status;
	if (grid_x == 0 || grid_x > 0x7fffffff || block_x == 0 || grid_y != 1 || grid_z != 1 ||
	    block_y != 1 || block_z != 1 || shared_bytes > 0 || extra != NULL)
		return fake_refuse(CUDA_ERROR_INVALID_VALUE,
				   "%s: launched with (%u, %u, %u) blocks of (%u, %u, %u) threads, "
				   "%u bytes of shared memory",
				   kernel->name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
				   shared_bytes);
	if (block_x > 1024 ||
	    (kernel->block && (block_x > 256 || block_x < 32 || (block_x & (block_x - 1)) != 0)))
		return fake_refuse(CUDA_ERROR_INVALID_VALUE,
				   "%s: launched with blocks of %u threads, not a power of two "
				   "from 32 to 256",
				   kernel->name, block_x);
	o.data = copy_arguments(kernel, parameters);
	if (o.data == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	status = fake_append(stream, &o);
	if (status != CUDA_SUCCESS)
		free(o.data);
	return status;
}
