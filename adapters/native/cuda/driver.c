/* Loads the CUDA driver and words its errors. */
#include "adapters/native/cuda/driver.h"

#include <stdio.h>

#include "base/loader.h"

#define LIBRARY "libcuda.so.1"

void cuda_version_text(int version, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%d.%d", version / 1000, version % 1000 / 10);
}

/* The driver's name of a status and its explanation. */
static void status_text(const struct cuda_driver *driver, int status, char *out, size_t out_bytes)
{
	const char *name = NULL, *text = NULL;

	driver->GetErrorName(status, &name);
	driver->GetErrorString(status, &text);
	if (name && text)
		snprintf(out, out_bytes, "%s (%s)", text, name);
	else
		snprintf(out, out_bytes, "status %d", status);
}

static enum prony_status resolve(struct cuda_driver *driver, struct error *err)
{
	const struct loader_symbol symbols[] = {
#define X(name, symbol, parameters) LOADER_SYMBOL(driver->name, symbol),
		CUDA_FUNCTIONS(X)
#undef X
	};
	void *handle;

	if (loader_open(LIBRARY, &handle, err) != PRONY_OK) {
		error_clear(err);
		return error_set(err, PRONY_MISSING, "no CUDA driver (" LIBRARY ")");
	}
	if (loader_resolve(handle, LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), err) !=
	    PRONY_OK) {
		error_prefix(err, "the CUDA driver is too old (12.0 or newer is needed)");
		return PRONY_MISSING;
	}
	return PRONY_OK;
}

enum prony_status cuda_driver_load(struct cuda_driver *driver, struct error *err)
{
	char text[256];
	int status;

	if (resolve(driver, err) != PRONY_OK)
		return PRONY_MISSING;
	status = driver->Init(0);
	if (status == CUDA_SUCCESS)
		status = driver->DriverGetVersion(&driver->version);
	if (status == CUDA_SUCCESS && driver->version < CUDA_DRIVER_OLDEST) {
		cuda_version_text(driver->version, text, sizeof(text));
		return error_set(err, PRONY_MISSING,
				 "the CUDA driver is too old: it is made for CUDA %s, and 12.0 or "
				 "newer is needed",
				 text);
	}
	if (status == CUDA_SUCCESS)
		status = driver->DeviceGetCount(&driver->devices);
	if (status == CUDA_SUCCESS && driver->devices == 0)
		status = CUDA_ERROR_NO_DEVICE;
	if (status == CUDA_SUCCESS)
		return PRONY_OK;
	status_text(driver, status, text, sizeof(text));
	return error_set(err, PRONY_MISSING, "the CUDA driver does not start: %s", text);
}

enum prony_status cuda_check(const struct cuda_driver *driver, int status, const char *what,
			     const char *name, struct error *err)
{
	char text[256];

	if (status == CUDA_SUCCESS)
		return PRONY_OK;
	status_text(driver, status, text, sizeof(text));
	return error_set(err,
			 status == CUDA_ERROR_OUT_OF_MEMORY ? PRONY_OUT_OF_MEMORY : PRONY_INTERNAL,
			 "CUDA: the %s of '%s' failed: %s", what, name, text);
}
