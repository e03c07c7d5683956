/* Checks that a folder written by `prony data convert` is intact. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/files.h"
#include "datasets/convert.h"
#include "datasets/converted.h"
#include "datasets/format.h"
#include "datasets/writer.h"

#define REMEDY "remove the folder and convert again"

/* State while the lines of SHA256SUMS are checked. */
struct look {
	const char *folder;
	const struct data_format *format; /* named by conversion.txt */
	struct data_findings *findings;
	bool read; /* a record file was read to its end */
	int64_t files, changed, bytes;
};

static bool holds(const char *folder, const char *name)
{
	char *path = path_join(folder, name);
	bool is = file_exists(path);

	free(path);
	return is;
}

bool dataset_is_converted(const char *folder)
{
	return holds(folder, CONVERT_WHOLE) || holds(folder, CONVERT_JOURNAL);
}

static void tell(const struct data_findings *findings, const char *text)
{
	if (findings->broken)
		findings->broken(findings->context, text);
}

/* Reads all records of a file or folder and adds to the same findings. */
static void read_if_records(struct look *look, const char *path)
{
	const struct data_format *format;
	struct data_findings found = {.broken = look->findings->broken,
				      .context = look->findings->context};
	struct error err = ERROR_INIT;
	int64_t bytes = 0;

	if (data_format_recognise(path, &format, NULL) != PRONY_OK || format != look->format)
		return;
	look->read = true;
	if (data_format_verify(look->format, path, 0, &found, &bytes, &err) != PRONY_OK &&
	    found.count == 0) {
		tell(look->findings, err.text); /* the file itself is broken, not a single sample */
		found.count++;
	}
	look->findings->samples += found.samples;
	look->findings->count += found.count;
	look->bytes += bytes;
}

/* Checks a file against its digest and reads its records, if it has any. */
static void look_at(struct look *look, const char *name, const char *sum)
{
	char *path = path_join(look->folder, name), hex[DIGEST_HEX_BYTES];
	struct error err = ERROR_INIT;

	look->files++;
	if (digest_file(path, hex, &err) == PRONY_OK && strcmp(hex, sum) != 0)
		error_set(&err, PRONY_BAD_INPUT, "%s: SHA-256 is %s instead of %s", path, hex, sum);
	if (err.code != PRONY_OK) {
		tell(look->findings, err.text);
		look->changed++;
	}
	/* Read even a damaged file's records, if its format can be recognised: the broken record
	 * says more than the digest. */
	if (!strchr(name, '/'))
		read_if_records(look, path);
	free(path);
}

/*
 * Parses "DIGEST  NAME
 * ", NAME below the folder.
 */
static bool split_line(char *line, char **sum, char **name)
{
	size_t digits = strspn(line, "0123456789abcdef");

	line[strcspn(line, "\n")] = '\0';
	if (digits != DIGEST_HEX_BYTES - 1 || strncmp(line + digits, "  ", 2) != 0)
		return false;
	line[digits] = '\0';
	*sum = line;
	*name = line + digits + 2;
	return **name != '\0' && **name != '/' && !strstr(*name, "..");
}

static enum prony_status go_through_sums(struct look *look, struct error *err)
{
	char *path = path_join(look->folder, WRITER_SUMS), *line = NULL, *sum, *name;
	FILE *file = fopen(path, "r");
	size_t room = 0;
	enum prony_status status = PRONY_OK;

	if (!file)
		status = error_errno(err, PRONY_BAD_INPUT, errno, "cannot read %s (" REMEDY ")",
				     path);
	for (int64_t number = 1; status == PRONY_OK && getline(&line, &room, file) > 0; number++) {
		if (split_line(line, &sum, &name))
			look_at(look, name, sum);
		else
			status = error_set(err, PRONY_BAD_INPUT,
					   "%s: line %" PRId64
					   " is not a SHA-256, two spaces and a name; " REMEDY,
					   path, number);
	}
	free(line);
	if (file)
		fclose(file);
	free(path);
	return status;
}

enum prony_status dataset_verify_converted(const char *folder, struct data_findings *findings,
					   int64_t *bytes, struct error *err)
{
	struct look look = {.folder = folder, .findings = findings};

	if (!holds(folder, CONVERT_WHOLE))
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: the conversion is not finished; repeat its command to continue",
			folder);
	struct conversion_note note;
	enum prony_status status = conversion_note_read(folder, &note, err);

	if (status != PRONY_OK)
		return status;
	free(note.source);
	look.format = note.format;
	status = go_through_sums(&look, err);
	if (status != PRONY_OK)
		return status;
	if (!look.read) /* a format whose shard is the whole folder */
		read_if_records(&look, folder);
	*bytes = look.bytes;
	if (look.changed == 0 && !look.read)
		return error_set(err, PRONY_BAD_INPUT, "%s: it contains no %s file; " REMEDY,
				 folder, look.format->name);
	if (look.changed == 0 && findings->count == 0 && findings->samples < note.samples)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: it contains %" PRId64 " of %" PRId64 " samples; " REMEDY,
				 folder, findings->samples, note.samples);
	if (look.changed == 0 && findings->count == 0)
		return PRONY_OK;
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: %" PRId64 " of %" PRId64 " files were changed, and %" PRId64
			 " of %" PRId64 " samples are damaged; " REMEDY,
			 folder, look.changed, look.files, findings->count, findings->samples);
}
