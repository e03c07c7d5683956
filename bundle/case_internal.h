/* Private to bundle/: functions that the two kinds of case, graph and model file, share. */
#ifndef PRONY_BUNDLE_CASE_INTERNAL_H
#define PRONY_BUNDLE_CASE_INTERNAL_H

#include "bundle/bundle.h"

#define BUNDLE_NAME_BYTES 32
#define BUNDLE_MODEL_MAX_BYTES ((size_t)INT32_MAX)

/* Writes the set as the bundle's file `name`, or writes it as `shared` and links to that. */
enum prony_status case_put_set(const struct tensor_set *set, const char *folder, const char *name,
			       const char *shared, struct error *err);
/* Writes case.json. A `document` of NULL is an error: it could not be expressed as JSON. */
enum prony_status case_write(const char *folder, const json_t *document, struct error *err);
enum prony_status case_check_tensor(const struct tensor *tensor, enum dtype dtype,
				    const struct shape *shape, struct error *err);

/* Reads "model" and then the two files of such a bundle. */
enum prony_status case_read_model(const json_t *document, const char *folder, struct bundle *bundle,
				  struct error *err);
enum prony_status case_read_model_files(const char *model, const char *input, struct bundle *bundle,
					struct error *err);

#endif
