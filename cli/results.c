#include "cli/results.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"

const char **results_words(int argc)
{
	return memory_alloc(((size_t)argc + 1) * sizeof(const char *));
}

void results_words_free(const char **words)
{
	free(words);
}

enum prony_status results_load_run(const char *store_file, const char *which,
				   enum results_depth depth, struct stored_run *out,
				   struct error *err)
{
	static const unsigned parts[] = {[RESULTS_FIGURES] = 0,
					 [RESULTS_SERIES] = STORE_SERIES,
					 [RESULTS_LOGS] = STORE_SERIES | STORE_LOGS,
					 [RESULTS_EVERYTHING] = STORE_ALL};
	struct store *store = NULL;
	enum prony_status status = store_open(store_file, true, &store, err);
	if (status == PRONY_OK)
		status = store_load_run(store, which, parts[depth], out, err);
	store_close(store);
	return status;
}

enum prony_status results_write(const struct strbuf *text, const char *path, struct error *err)
{
	if (path && strcmp(path, "-"))
		return file_write_atomic(path, strbuf_text(text), text->length, err);
	size_t written = fwrite(strbuf_text(text), 1, text->length, stdout);
	if (written != text->length || fflush(stdout))
		return error_errno(err, PRONY_IO, errno, "writing to standard output");
	return PRONY_OK;
}
