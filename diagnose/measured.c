#include "diagnose/measured.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "store/machine_figures.h"

enum { KEY_DIGITS = 16, FILE_BYTES_MAX = 1 << 20 };

/* The file of a machine; the caller frees it. */
static char *file_of(const json_t *record)
{
	char hex[DIGEST_HEX_BYTES];
	char *text = json_dumps(json_object_get(record, "must_match"),
				JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

	if (!text)
		memory_exhausted("the machine's record");
	digest_bytes(text, strlen(text), hex);
	char *home = path_data_home();
	char *path = memory_printf("%s/machines/%.*s.json", home, KEY_DIGITS, hex);
	free(home);
	free(text);
	return path;
}

/* The content of a file; NULL when there is none or it cannot be read. New reference. */
static json_t *read_file(const char *path)
{
	struct error ignored = ERROR_INIT;
	json_t *kept = NULL;

	if (json_read_file(path, FILE_BYTES_MAX, &kept, &ignored) != PRONY_OK)
		return NULL;
	if (json_is_object(kept))
		return kept;
	json_decref(kept);
	return NULL;
}

enum prony_status measured_keep(const json_t *record, const char *part, json_t *value,
				struct error *err)
{
	char *path = file_of(record), now[32];
	json_t *kept = read_file(path);
	json_t *dated = json_copy(value);

	if (!kept)
		kept = json_object();
	clock_format_utc(clock_wall_ns(), now, sizeof now);
	json_object_set_new(dated, "measured_at", json_string(now));
	json_object_set_new(dated, "prony", json_string(PRONY_VERSION));
	json_object_set_new(dated, "surroundings", machine_surroundings(record));
	json_object_set_new(kept, part, dated);
	char *text = json_dumps(kept, JSON_INDENT(2) | JSON_SORT_KEYS);
	json_decref(kept);
	if (!text)
		memory_exhausted("what was measured of the machine");
	char *folder = memory_strdup(path);
	*strrchr(folder, '/') = '\0';
	enum prony_status status = directory_make(folder, err);
	if (status == PRONY_OK)
		status = file_write_atomic(path, text, strlen(text), err);
	free(folder);
	free(text);
	free(path);
	return status;
}

void measured_add(json_t *record)
{
	char *path = file_of(record);
	json_t *kept = read_file(path);

	if (kept)
		json_object_set_new(json_object_get(record, "informational"), "measured", kept);
	free(path);
}

const json_t *measured_part(const json_t *record, const char *part)
{
	const json_t *informational = json_object_get(record, "informational");
	return json_object_get(json_object_get(informational, "measured"), part);
}
