/* Fuzz target: framework descriptors. */
#include "tests/fuzz/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "frameworks/descriptor.h"

static char *folder;

static void remove_folder(void)
{
	directory_remove(folder, NULL);
	free(folder);
}

/* Returns a file in a folder of this process: a descriptor has the name of its file. */
static const char *file_of_process(void)
{
	static char path[4096];

	if (!folder) {
		if (directory_make_temporary("prony-fuzz-", &folder, NULL) != PRONY_OK ||
		    atexit(remove_folder) != 0)
			abort();
		snprintf(path, sizeof(path), "%s/x.yaml", folder);
	}
	return path;
}

/*
 * Checks that a row can be printed, and that its worker can be started or is reported as missing.
 */
static void check_row(const struct framework *row, struct arena *arena)
{
	struct framework_location place = {.framework = row,
					   .environment = "",
					   .origin = ORIGIN_NAMED,
					   .library = "/l",
					   .interpreter = "/p",
					   .program = "/c",
					   .version = "",
					   .folder = ""};
	const char *const *argv = NULL, *const *rows = NULL;
	const char *options = row->option_count ? row->options[0].name : "";

	if (strcmp(row->name, "x") != 0 || !row->summary || !row->stages || !row->precisions ||
	    !*framework_spelling(row, "e", arena))
		abort();
	for (size_t i = 0; i < row->repair_count; i++)
		if (!row->repairs[i].why || row->repairs[i].path[0] == '/')
			abort();
	framework_option_words(row, options, arena);
	if (framework_worker_command(&place, "/s", options, 1, arena, &argv, &rows, NULL) ==
		    PRONY_OK &&
	    (!argv[0] || !rows[0]))
		abort();
}

/* Returns 0. Aborts if a refused descriptor has no proper message, or an accepted one cannot be
 * used. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct framework rows[DESCRIPTOR_BACKENDS_MAX];
	const char *path = file_of_process();
	struct error err = ERROR_INIT;
	struct arena arena;
	size_t count = 0;

	FILE *file = fopen(path, "w");
	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
		abort();
	arena_init(&arena, 0);
	enum prony_status status = descriptor_read(path, true, &arena, rows, &count, &err);
	if (status == PRONY_OK)
		for (size_t i = 0; i < count; i++)
			check_row(&rows[i], &arena);
	else if (status != PRONY_BAD_INPUT || strchr(err.text, '\n') || !strstr(err.text, path))
		abort();
	arena_release(&arena);
	return 0;
}
