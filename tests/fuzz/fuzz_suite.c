/* Fuzz target: suite files. */
#include "tests/fuzz/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "spec/spec.h"

/* Checks that a refusal is one line with the file's name, and that the spec is unchanged. */
static void check_refusal(const struct spec *spec, const char *path, enum prony_status status,
			  const struct error *err)
{
	if (status != PRONY_BAD_INPUT || err->code != status || strchr(err->text, '\n') != NULL ||
	    strstr(err->text, path) == NULL)
		abort();
	if (*spec->suite || spec->axes[AXIS_NETWORK].count || spec->exclude_count ||
	    spec->override_count)
		abort();
}

/* Checks that every word can be printed and used, whatever its source. */
static void check_words(struct spec *spec)
{
	char *text = spec_canonical(spec);

	for (int id = 0; id < AXIS_COUNT; id++) {
		const struct spec_list *list = &spec->axes[id];

		for (size_t i = 0; i < list->count; i++)
			if (!*list->words[i].text ||
			    (!strstr(list->words[i].origin, axes[id].plural) &&
			     !strstr(list->words[i].origin, axes[id].singular)))
				abort();
	}
	spec_complete(spec);
	if (!spec->axes[AXIS_FRAMEWORK].count || !spec->axes[AXIS_BATCH].count ||
	    spec->repeat < 0 || spec->steps < 0)
		abort();
	free(text);
}

/* Returns 0. Aborts if a refused suite has no proper message or leaves anything behind. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct error err = ERROR_INIT;
	struct spec spec;
	char path[64];
	int fd = memfd_create("suite", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	spec_init(&spec);
	enum prony_status status = spec_read_file(&spec, path, &err);
	if (status == PRONY_OK)
		check_words(&spec);
	else
		check_refusal(&spec, path, status, &err);
	spec_release(&spec);
	close(fd);
	return 0;
}
