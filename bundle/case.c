/* Functions that both kinds of case share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "bundle/case_internal.h"

enum prony_status case_put_set(const struct tensor_set *set, const char *folder, const char *name,
			       const char *shared, struct error *err)
{
	char *path = path_join(folder, name);
	enum prony_status status = PRONY_OK;

	if (shared && !file_exists(shared)) {
		status = safetensors_write_file(set, shared, err);
		/* Read-only: otherwise one worker could change the data of the next. */
		if (status == PRONY_OK && chmod(shared, S_IRUSR | S_IRGRP | S_IROTH) != 0)
			status = error_errno(err, PRONY_IO, errno, "%s: cannot be made read-only",
					     shared);
	}
	if (status == PRONY_OK && shared)
		unlink(path);
	if (status == PRONY_OK && (!shared || link(shared, path) != 0))
		status = safetensors_write_file(set, path, err);
	free(path);
	return status;
}

enum prony_status case_write(const char *folder, const json_t *document, struct error *err)
{
	char *path = path_join(folder, BUNDLE_CASE_FILE);
	char *text = document ? json_dumps(document, JSON_INDENT(1)) : NULL;
	enum prony_status status;

	if (text)
		status = file_write_atomic(path, text, strlen(text), err);
	else
		status = error_set(err, PRONY_INTERNAL,
				   "%s: cannot write the recipe or graph as JSON; names must be "
				   "UTF-8 and numbers finite",
				   path);
	free(text);
	free(path);
	return status;
}

enum prony_status case_check_tensor(const struct tensor *tensor, enum dtype dtype,
				    const struct shape *shape, struct error *err)
{
	char have[128], want[128];

	if (tensor->dtype == dtype && shape_equal(&tensor->shape, shape))
		return PRONY_OK;
	shape_text(&tensor->shape, have, sizeof(have));
	shape_text(shape, want, sizeof(want));
	return error_set(err, PRONY_BAD_INPUT,
			 "%.80s has shape %s and type %s; the graph needs %s and %s", tensor->name,
			 have, dtype_name(tensor->dtype), want, dtype_name(dtype));
}
