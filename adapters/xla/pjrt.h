/* A PJRT plug-in, its client on one device, and the operations on them. */
#ifndef PRONY_ADAPTERS_XLA_PJRT_H
#define PRONY_ADAPTERS_XLA_PJRT_H

#include "adapters/xla/pjrt_api.h"
#include "base/error.h"
#include "graph/tensor.h"

struct pjrt {
	const struct pjrt_api *api;
	struct pjrt_client *client;
	struct pjrt_device *const *devices; /* owned by the client */
	size_t device_count;
	struct pjrt_device *device; /* the device in use */
	int device_id;
	char platform[32]; /* "cpu", "cuda", "tpu" */
};

/* Loads the library and initialises the plug-in. PRONY_MISSING: no library, not a PJRT library, or
 * another major version. */
enum prony_status pjrt_load(struct pjrt *pjrt, const char *path, struct error *err);

/* Starts a client: starts its threads, finds its devices and platform, and chooses the first
 * device. A CPU is one device. PRONY_MISSING: the plug-in finds no device. */
enum prony_status pjrt_start(struct pjrt *pjrt, struct error *err);
/* Chooses the device with that index; `kind` gets its name ("NVIDIA H100"). */
enum prony_status pjrt_choose(struct pjrt *pjrt, size_t index, char *kind, size_t kind_bytes,
			      struct error *err);
bool pjrt_is_cpu(const struct pjrt *pjrt);
void pjrt_stop(struct pjrt *pjrt);

/* Gets the client's platform version, terminated and cut to out_bytes. */
void pjrt_platform_version(const struct pjrt *pjrt, char *out, size_t out_bytes);
/*
 * Gets an attribute of the plug-in as text ("1.13.0" for a list of numbers); false: there is none.
 */
bool pjrt_attribute(const struct pjrt *pjrt, const char *name, char *out, size_t out_bytes);

/* Compiles StableHLO; the caller destroys *out with pjrt_executable_free. */
enum prony_status pjrt_compile(const struct pjrt *pjrt, const char *text, size_t bytes,
			       struct pjrt_executable **out, struct error *err);
/* Gets the optimised program as a serialised HloModuleProtoWithConfig; the caller frees *out.
 * PRONY_UNSUPPORTED if the plug-in does not give it. */
enum prony_status pjrt_optimised(const struct pjrt *pjrt, struct pjrt_executable *executable,
				 char **out, size_t *bytes, struct error *err);
void pjrt_executable_free(const struct pjrt *pjrt, struct pjrt_executable *executable);

/* Copies dense host data to the device; the data may be freed afterwards. */
enum prony_status pjrt_upload(const struct pjrt *pjrt, const void *data, enum pjrt_element type,
			      const struct shape *shape, struct pjrt_buffer **out,
			      struct error *err);
/* Copies a buffer to `bytes` of dense host memory, row-major; waits until it is computed. */
enum prony_status pjrt_download(const struct pjrt *pjrt, struct pjrt_buffer *buffer, int rank,
				void *data, size_t bytes, struct error *err);
int64_t pjrt_elements(const struct pjrt *pjrt, struct pjrt_buffer *buffer); /* -1: unknown */
/* Waits until a buffer is computed. */
enum prony_status pjrt_wait(const struct pjrt *pjrt, struct pjrt_buffer *buffer, struct error *err);
void pjrt_free(const struct pjrt *pjrt, struct pjrt_buffer *buffer); /* NULL is fine */

/* Starts a run and fills `results`; the caller frees them. It may return before the run is
 * finished. */
enum prony_status pjrt_execute(const struct pjrt *pjrt, struct pjrt_executable *executable,
			       struct pjrt_buffer *const *arguments, size_t argument_count,
			       struct pjrt_buffer **results, struct error *err);

#endif
