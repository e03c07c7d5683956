#include "adapters/native/cuda/cudnn.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/native/cuda/packages.h"
#include "base/loader.h"

#define LIBRARY "libcudnn.so.9"

/* Fills cudnn->path with the library in `folder`; false if it has none. */
static bool in_folder(struct cudnn *cudnn, const char *folder)
{
	int length = snprintf(cudnn->path, sizeof(cudnn->path), "%s/" LIBRARY, folder);

	return length > 0 && (size_t)length < sizeof(cudnn->path) && access(cudnn->path, R_OK) == 0;
}

static enum prony_status find(struct cudnn *cudnn, const char *folder, struct error *err)
{
	const char *named = getenv("PRONY_CUDNN");
	char *packaged;

	if (named && *named)
		return in_folder(cudnn, named) ? PRONY_OK
					       : error_set(err, PRONY_MISSING,
							   "PRONY_CUDNN: %s has no " LIBRARY
							   "; name the folder with cuDNN 9",
							   named);
	if (folder && in_folder(cudnn, folder))
		return PRONY_OK;
	packaged = cuda_package_library(LIBRARY);
	/* A name without a folder is searched on the loader's path. */
	snprintf(cudnn->path, sizeof(cudnn->path), "%s", packaged ? packaged : LIBRARY);
	free(packaged);
	return PRONY_OK;
}

enum prony_status cudnn_load(struct cudnn *cudnn, const char *folder, struct error *err)
{
	const struct loader_symbol symbols[] = {
#define X(result, name, parameters) LOADER_SYMBOL(cudnn->name, "cudnn" #name),
		CUDNN_FUNCTIONS(X)
#undef X
	};
	enum prony_status status = find(cudnn, folder, err);
	char version[32];
	void *handle;

	if (status == PRONY_OK)
		status = loader_open(cudnn->path, &handle, err);
	if (status == PRONY_OK)
		status = loader_resolve(handle, cudnn->path, symbols,
					sizeof(symbols) / sizeof(symbols[0]), err);
	if (status != PRONY_OK) {
		error_prefix(err, "cuDNN 9 is needed (name its folder in PRONY_CUDNN)");
		return status;
	}
	if (cudnn->GetVersion() >= CUDNN_OLDEST)
		return PRONY_OK;
	cudnn_version_text(cudnn, version, sizeof(version));
	return error_set(err, PRONY_MISSING,
			 "%s is cuDNN %s; version 9.8 or newer is needed: name its folder in "
			 "PRONY_CUDNN",
			 cudnn->path, version);
}

void cudnn_version_text(const struct cudnn *cudnn, char *out, size_t out_bytes)
{
	size_t version = cudnn->GetVersion();

	snprintf(out, out_bytes, "%zu.%zu.%zu", version / 10000, version / 100 % 100,
		 version % 100);
}

enum prony_status cudnn_check(const struct cudnn *cudnn, int status, const char *what,
			      const char *name, struct error *err)
{
	char reason[512] = "";

	if (status == CUDNN_STATUS_SUCCESS)
		return PRONY_OK;
	cudnn->GetLastErrorString(reason, sizeof(reason));
	reason[strcspn(reason, "\n")] = '\0';
	return error_set(err,
			 status / 1000 * 1000 == CUDNN_STATUS_NOT_SUPPORTED ? PRONY_UNSUPPORTED
									    : PRONY_INTERNAL,
			 "cuDNN: the %s of '%s' failed: %s%s%s", what, name,
			 cudnn->GetErrorString(status), reason[0] ? ": " : "", reason);
}
