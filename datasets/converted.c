#include "datasets/converted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/convert.h"
#include "datasets/folders.h"
#include "datasets/format.h"
#include "datasets/writer.h"

/* The file has only a few lines. */
#define LIMIT_BYTES ((size_t)1 << 16)

/* Parses "source: SOURCE, N samples", then format, size and list of files, one per line. */
static bool parse_note(char *text, struct conversion_note *note)
{
	static const char head[] = "source: ";
	char *rest = strchr(text, '\n'), format[32];
	int length = 0;

	if (!rest || strncmp(text, head, sizeof(head) - 1) != 0)
		return false;
	*rest++ = '\0';
	char *samples = strrchr(text, ',');
	if (!samples || sscanf(rest, "format: %31s size: %n", format, &length) != 1 || length == 0)
		return false;
	*samples = '\0';
	rest += length;
	if (sscanf(rest, "%d", &note->size) != 1)
		note->size = 0; /* "as it is" */
	rest = strchr(rest, '\n');
	note->format = data_format_find(format);
	note->source = text + sizeof(head) - 1;
	return note->format && rest && note->size >= 0 &&
	       sscanf(rest, " written: %" SCNd64, &note->samples) == 1 && note->samples > 0;
}

enum prony_status conversion_note_read(const char *folder, struct conversion_note *out,
				       struct error *err)
{
	char *path = path_join(folder, CONVERT_WHOLE), *text = NULL;
	struct conversion_note note = {.size = 0};
	size_t length;
	enum prony_status status = file_read(path, LIMIT_BYTES, &text, &length, err);

	if (status == PRONY_OK && parse_note(text, &note)) {
		note.source = memory_strdup(note.source);
		*out = note;
	} else if (status == PRONY_OK) {
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: not a valid description of a conversion; remove its folder "
				   "and convert again",
				   path);
	}
	free(text);
	free(path);
	return status;
}

/* Whether the folder holds a conversion of this part in this format. */
static enum prony_status check_note(const char *folder, const struct dataset *dataset,
				    const char *part, struct converted *out, struct error *err)
{
	struct conversion_note note;
	enum prony_status status = conversion_note_read(folder, &note, err);

	if (status != PRONY_OK)
		return status;
	char *wanted = memory_printf("%s, %s", dataset->name, part);
	if (strcmp(note.source, wanted) != 0 || strcmp(note.format->name, out->format) != 0)
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s/" CONVERT_WHOLE
				   " is not about %s in %s; remove its folder and "
				   "convert again",
				   folder, wanted, out->format);
	out->size = note.size;
	out->samples = note.samples;
	free(wanted);
	free(note.source);
	return status;
}

static enum prony_status not_converted(const struct dataset *dataset, const char *format,
				       bool begun, char *const *folders, size_t count,
				       struct error *err)
{
	char *home = path_data_home();
	const struct data_writer *writer = data_format_find(format)->writer;
	char *into = memory_printf("%s/data/%s-%s", home ? home : "DIR", dataset->name, format);
	enum prony_status status = error_set(
		err, PRONY_MISSING,
		"%s is not converted to %s%s; run `prony data convert %s --to %s%s -o %s` (or use "
		"a folder %s-%s where data sets are searched%s%s)",
		dataset->name, format, begun ? " completely" : "", dataset->name, format,
		dataset->dims[1] != 0			       ? ""
		: writer->one_size || writer->read_in_one_size ? " --size 256"
							       : " [--size N]",
		into, dataset->name, format, count ? ", first in " : "", count ? folders[0] : "");

	free(into);
	free(home);
	return status;
}

enum prony_status dataset_locate_converted(const struct dataset *dataset, const char *format,
					   bool training, const char *data_option,
					   struct converted *out, struct error *err)
{
	const char *part = dataset_part(training);
	char *folders[DATA_FOLDERS_MAX];
	struct converted found = {.format = format};
	size_t count = data_folders(data_option, folders);
	bool begun = false;
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < count && !found.folder; i++) {
		char *folder =
			memory_printf("%s/%s-%s/%s", folders[i], dataset->name, format, part);
		char *whole = path_join(folder, CONVERT_WHOLE);

		if (file_exists(whole)) {
			status = check_note(folder, dataset, part, &found, err);
			found.folder = folder;
		} else {
			begun |= file_exists(folder);
			free(folder);
		}
		free(whole);
	}
	if (!found.folder)
		status = not_converted(dataset, format, begun, folders, count, err);
	for (size_t i = 0; i < count; i++)
		free(folders[i]);
	if (status == PRONY_OK)
		*out = found;
	else
		free(found.folder);
	return status;
}
