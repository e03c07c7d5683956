/* Loads MXNet's library and creates its arrays. */
#include "adapters/mxnet/mxnet_api.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/loader.h"

enum prony_status mx_api_load(struct mx_api *api, const char *path, struct error *err)
{
	struct mx_api loaded = {.device = {.device_type = MX_DEVICE_CPU}};
	const struct loader_symbol symbols[] = {
#define X(function, arguments) LOADER_SYMBOL(loaded.function, #function),
		MX_FUNCTIONS(X)
#undef X
			LOADER_SYMBOL(loaded.MXGetLastError, "MXGetLastError"),
		LOADER_SYMBOL(loaded.omp_get_max_threads, "omp_get_max_threads"),
		LOADER_SYMBOL(loaded.omp_set_num_threads, "omp_set_num_threads"),
		LOADER_OPTIONAL(loaded.openblas_get_config, "openblas_get_config"),
	};
	const struct mx_operator **operators = NULL;
	uint32_t count = 0;
	int version = 0;
	void *library;
	enum prony_status status = loader_open(path, &library, err);

	if (status == PRONY_OK)
		status = loader_resolve(library, path, symbols,
					sizeof(symbols) / sizeof(symbols[0]), err);
	if (status == PRONY_OK)
		status = mx_check(&loaded, loaded.MXGetVersion(&version), "get its version", err);
	if (status != PRONY_OK)
		return status;
	if (version / 100 != 109) /* 10901 is 1.9.1 */
		return error_set(err, PRONY_MISSING,
				 "MXNet %d.%d.%d in %s is not supported: version 1.9 is needed",
				 version / 10000, version / 100 % 100, version % 100, path);
	/*
	 * Only this call makes operators of the old kind (Pad) known to the rest of the interface.
	 */
	status = mx_check(&loaded, loaded.MXSymbolListAtomicSymbolCreators(&count, &operators),
			  "list operators", err);
	if (status == PRONY_OK)
		*api = loaded;
	return status;
}

enum prony_status mx_check(const struct mx_api *api, int result, const char *what,
			   struct error *err)
{
	static const char marker[] = "Error: ";
	enum prony_status code = PRONY_INVALID;

	if (result == 0)
		return PRONY_OK;
	const char *text = api->MXGetLastError();
	if (strstr(text, "bad_alloc") || strstr(text, "Failed to allocate"))
		code = PRONY_OUT_OF_MEMORY;
	/* "Traceback...\n  File ...\nMXNetError: the line that matters\n", then a stack trace. */
	const char *start = strstr(text, marker);
	start = start ? start + strlen(marker) : text;
	return error_set(err, code, "MXNet failed (%s): %.*s", what, (int)strcspn(start, "\n"),
			 start);
}

enum prony_status mx_array_new(const struct mx_api *api, const struct shape *shape,
			       const float *data, struct mx_ndarray **out, struct error *err)
{
	uint32_t dims[TENSOR_MAX_RANK] = {1}; /* a scalar has one dimension in MXNet */
	uint32_t rank = shape->rank > 0 ? (uint32_t)shape->rank : 1;
	int64_t elements = shape_elements(shape);
	struct mx_ndarray *array = NULL;
	float *zeros = NULL;
	enum prony_status status;

	if (elements < 1 || elements > INT_MAX)
		return error_set(err, PRONY_UNSUPPORTED,
				 "an array has %lld elements; MXNet's limit is %d",
				 (long long)elements, INT_MAX);
	for (int i = 0; i < shape->rank; i++)
		dims[i] = (uint32_t)shape->dims[i];
	if (!data) {
		zeros = calloc((size_t)elements, sizeof(zeros[0]));
		if (!zeros)
			return error_set(err, PRONY_NOMEM, "no memory for %lld zeros",
					 (long long)elements);
	}
	status = mx_check(api,
			  api->MXNDArrayCreateEx(dims, rank, api->device.device_type,
						 api->device.device_id, 0, MX_TYPE_FLOAT32, &array),
			  "create an array", err);
	if (status == PRONY_OK)
		status = mx_check(
			api,
			api->MXNDArraySyncCopyFromCPU(array, data ? data : zeros, (size_t)elements),
			"fill an array", err);
	free(zeros);
	if (status != PRONY_OK) {
		if (array)
			api->MXNDArrayFree(array);
		return status;
	}
	*out = array;
	return PRONY_OK;
}

int64_t mx_array_elements(const struct mx_api *api, struct mx_ndarray *array)
{
	int rank = 0;
	const int *dims = NULL;
	int64_t elements = 1;

	if (api->MXNDArrayGetShapeEx(array, &rank, &dims) != 0 || rank < 0)
		return -1;
	for (int i = 0; i < rank; i++)
		elements *= dims[i];
	return elements;
}
