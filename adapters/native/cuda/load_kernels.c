/* Loads prony's kernels into the device. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapters/native/cuda/kernels.h"
#include "adapters/probe.h"
#include "base/files.h"

#define IMAGE_BYTES_MAX ((size_t)256 << 20)

enum prony_status cuda_kernels_check(struct error *err)
{
	return cuda_kernel_images[0] || *probe_environment("PRONY_CUDA_KERNELS", "")
		       ? PRONY_OK
		       : error_set(err, PRONY_MISSING,
				   "prony was built without CUDA's compiler (nvcc)");
}

static enum prony_status load(struct device *device, const void *image, const char *name,
			      struct error *err)
{
	char version[32];
	int status;
	enum prony_status checked;

	if (device->module_count == CUDA_MODULES_MAX)
		return error_set(err, PRONY_INTERNAL, "more than %d files of kernels",
				 CUDA_MODULES_MAX);
	status = device->driver.ModuleLoadData(&device->modules[device->module_count], image);
	checked = cuda_check(&device->driver, status, "loading of kernels", name, err);
	if (checked == PRONY_OK) {
		device->module_count++;
		return PRONY_OK;
	}
	if (status == CUDA_ERROR_NO_BINARY_FOR_GPU) {
		error_clear(err);
		return error_set(err, PRONY_UNSUPPORTED,
				 "native was built for GPUs of sm_75 to sm_120; %s is sm_%d",
				 device->name, device->capability);
	}
	cuda_version_text(device->driver.version, version, sizeof(version));
	error_prefix(err, "sm_%d with a driver for CUDA %s", device->capability, version);
	return checked;
}

/* The driver reads the length from the image itself. */
static enum prony_status load_file(struct device *device, const char *path, struct error *err)
{
	char *image = NULL;
	size_t bytes;
	enum prony_status status = file_read(path, IMAGE_BYTES_MAX, &image, &bytes, err);

	if (status == PRONY_OK)
		status = load(device, image, path, err);
	free(image);
	return status;
}

static enum prony_status load_folder(struct device *device, const char *folder, struct error *err)
{
	char pattern[4096];
	glob_t found = {0};
	enum prony_status status = PRONY_OK;

	snprintf(pattern, sizeof(pattern), "%s/*.fatbin", folder);
	if (glob(pattern, 0, NULL, &found) != 0)
		status = error_set(err, PRONY_MISSING,
				   "PRONY_CUDA_KERNELS: %s has no files *.fatbin", folder);
	for (size_t i = 0; status == PRONY_OK && i < found.gl_pathc; i++)
		status = load_file(device, found.gl_pathv[i], err);
	globfree(&found);
	return status;
}

enum prony_status cuda_kernels_load(struct device *device, struct error *err)
{
	const char *folder = probe_environment("PRONY_CUDA_KERNELS", "");
	enum prony_status status = PRONY_OK;

	if (*folder)
		return load_folder(device, folder, err);
	for (int i = 0; status == PRONY_OK && cuda_kernel_images[i]; i++)
		status = load(device, cuda_kernel_images[i], "the program", err);
	return status;
}
