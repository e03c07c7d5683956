#include "datasets/converted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/convert.h"
#include "datasets/places.h"

/* A few lines. */
#define LIMIT_BYTES ((size_t)1 << 16)

/* Of its conversion.txt: datasets/convert.c writes it. */
static enum prony_status read_whole(const char *path, const struct dataset *dataset,
				    const char *part, struct converted *out, struct error *err)
{
	char *text, *wanted = memory_printf("source: %s, %s, ", dataset->name, part);
	char *format = memory_printf("\nformat: %s\nsize: ", out->format);
	size_t length;
	enum prony_status status = file_read(path, LIMIT_BYTES, &text, &length, err);

	if (status == PRONY_OK) {
		const char *size = strstr(text, format);
		const char *written = strstr(text, "\nwritten: ");
		bool whole = strncmp(text, wanted, strlen(wanted)) == 0 && size && written &&
			     sscanf(written, "\nwritten: %" SCNd64, &out->samples) == 1 &&
			     out->samples > 0;

		if (whole && sscanf(size + strlen(format), "%d", &out->size) != 1)
			out->size = 0; /* "as it is" */
		if (!whole)
			status = error_set(err, PRONY_BAD_INPUT,
					   "%s is not of %s, %s in %s: remove its folder and "
					   "convert again",
					   path, dataset->name, part, out->format);
		free(text);
	}
	free(wanted);
	free(format);
	return status;
}

static enum prony_status not_converted(const struct dataset *dataset, const char *format,
				       bool begun, char *const *places, size_t count,
				       struct error *err)
{
	char *home = path_data_home();
	char *into = memory_printf("%s/data/%s-%s", home ? home : "DIR", dataset->name, format);
	enum prony_status status = error_set(
		err, PRONY_MISSING,
		"%s is not there in %s%s: `prony data convert %s --to %s%s -o %s` makes it (any "
		"folder %s-%s where data sets are looked for will do%s%s)",
		dataset->name, format, begun ? " to its end" : "", dataset->name, format,
		dataset->dims[1] == 0 ? " [--size N]" : "", into, dataset->name, format,
		count ? ", the first of them is " : "", count ? places[0] : "");

	free(into);
	free(home);
	return status;
}

enum prony_status dataset_locate_converted(const struct dataset *dataset, const char *format,
					   bool training, const char *data_option,
					   struct converted *out, struct error *err)
{
	const char *part = training ? "train" : "evaluation";
	char *places[PLACES_MAX];
	struct converted found = {.format = format};
	size_t count = data_places(data_option, places);
	bool begun = false;
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < count && !found.folder; i++) {
		char *folder = memory_printf("%s/%s-%s/%s", places[i], dataset->name, format, part);
		char *whole = path_join(folder, CONVERT_WHOLE);

		if (file_exists(whole)) {
			status = read_whole(whole, dataset, part, &found, err);
			found.folder = folder;
		} else {
			begun |= file_exists(folder);
			free(folder);
		}
		free(whole);
	}
	if (!found.folder)
		status = not_converted(dataset, format, begun, places, count, err);
	for (size_t i = 0; i < count; i++)
		free(places[i]);
	if (status == PRONY_OK)
		*out = found;
	else
		free(found.folder);
	return status;
}
