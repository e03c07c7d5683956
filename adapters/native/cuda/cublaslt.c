/* Finds and loads cuBLASLt, and words its errors. */
#include "adapters/native/cuda/cublaslt.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "adapters/native/cuda/packages.h"
#include "base/loader.h"

static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

/* Fills blas->path with the newest library in `folder`; false if it has none. */
static bool in_folder(struct cublaslt *blas, const char *folder)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int length = snprintf(blas->path, sizeof(blas->path), "%s/%s", folder, names[i]);

		if (length > 0 && (size_t)length < sizeof(blas->path) &&
		    access(blas->path, R_OK) == 0)
			return true;
	}
	return false;
}

/* The same for the packages of installed frameworks. */
static bool in_packages(struct cublaslt *blas)
{
	bool found = false;

	for (size_t i = 0; !found && i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = cuda_package_library(names[i]);

		found = path && snprintf(blas->path, sizeof(blas->path), "%s", path) <
					(int)sizeof(blas->path);
		free(path);
	}
	return found;
}

/* Opens the library of blas->path, or the newest on the loader's path if that is empty. */
static enum prony_status open_library(struct cublaslt *blas, void **handle, struct error *err)
{
	if (blas->path[0])
		return loader_open(blas->path, handle, err);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(blas->path, sizeof(blas->path), "%s", names[i]);
		error_clear(err);
		if (loader_open(blas->path, handle, err) == PRONY_OK)
			return PRONY_OK;
	}
	return PRONY_MISSING;
}

enum prony_status cublaslt_load(struct cublaslt *blas, struct error *err)
{
	const struct loader_symbol symbols[] = {
#define X(result, name, parameters) LOADER_SYMBOL(blas->name, "cublasLt" #name),
		CUBLASLT_FUNCTIONS(X)
#undef X
	};
	const char *named = getenv("PRONY_CUBLAS");
	enum prony_status status;
	void *handle;

	if (named && *named) {
		if (!in_folder(blas, named))
			return error_set(err, PRONY_MISSING,
					 "PRONY_CUBLAS: %s has neither %s nor %s; name the folder "
					 "with cuBLAS of CUDA 12 or 13",
					 named, names[0], names[1]);
	} else if (!in_packages(blas)) {
		blas->path[0] = '\0';
	}
	status = open_library(blas, &handle, err);
	if (status == PRONY_OK)
		status = loader_resolve(handle, blas->path, symbols,
					sizeof(symbols) / sizeof(symbols[0]), err);
	if (status != PRONY_OK)
		error_prefix(err, "cuBLASLt is needed (name its folder in PRONY_CUBLAS)");
	return status;
}

void cublaslt_version_text(const struct cublaslt *blas, char *out, size_t out_bytes)
{
	size_t version = blas->GetVersion();

	snprintf(out, out_bytes, "%zu.%zu.%zu", version / 10000, version / 100 % 100,
		 version % 100);
}

enum prony_status cublaslt_check(const struct cublaslt *blas, int status, const char *what,
				 const char *name, struct error *err)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return PRONY_OK;
	return error_set(
		err, status == CUBLAS_STATUS_NOT_SUPPORTED ? PRONY_UNSUPPORTED : PRONY_INTERNAL,
		"cuBLASLt: the %s of '%s' failed: %s", what, name, blas->GetStatusString(status));
}
