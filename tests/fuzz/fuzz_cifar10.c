/* Fuzz target: CIFAR-10's binary files. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "datasets/format.h"
#include "tests/fuzz/data_input.h"

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS };

static struct data_source *source_of(const uint8_t *bytes, size_t length)
{
	const char *path = input_file(bytes, length);
	const struct data_shard shard = {.paths = &path, .classes = 10};
	struct data_source *source = NULL;
	struct error err = ERROR_INIT;

	if (!input_was_read(data_format_find("cifar10")->open(&shard, &source, &err), &err) &&
	    source)
		abort();
	return source;
}

/* Returns all samples as a plain file, up to the first refused one; the caller frees it. */
static uint8_t *read_all(struct data_source *source, size_t *length)
{
	uint8_t *out = malloc((size_t)source->count * RECORD + 1);
	struct error err = ERROR_INIT;
	int64_t label;

	if (!out)
		abort();
	*length = 0;
	while (source->position < source->count) {
		const struct data_format *format = data_format_find("cifar10");

		if (!input_was_read(format->next(source, out + *length + 1, &label, &err), &err))
			break;
		if (label < 0 || label > 9)
			abort();
		out[*length] = (uint8_t)label;
		*length += RECORD;
	}
	return out;
}

/* Returns 0. Aborts if the samples read are not the file's bytes, if a file that is a byte shorter
 * or longer is also read, or if a refusal has no message. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	const struct data_format *format = data_format_find("cifar10");
	struct data_source *source = source_of(bytes, length), *again;
	size_t read_bytes;

	if (!source)
		return 0;
	uint8_t *plain = read_all(source, &read_bytes);
	bool gzip = length > 1 && bytes[0] == 0x1f && bytes[1] == 0x8b;

	if ((int64_t)read_bytes != source->position * RECORD ||
	    (!gzip &&
	     (source->count * RECORD != (int64_t)length || memcmp(plain, bytes, read_bytes) != 0)))
		abort();
	/* Reads backwards: the first sample again. */
	uint8_t pixels[PIXELS];
	int64_t label;

	source->position = 0;
	if (read_bytes > 0 && (format->next(source, pixels, &label, NULL) != PRONY_OK ||
			       memcmp(pixels, plain + 1, PIXELS) != 0 || label != plain[0]))
		abort();
	format->close(source);
	again = source_of(bytes, length - 1);
	if (again)
		abort();
	if (read_bytes > 0 && source_of(plain, read_bytes - 1))
		abort();
	free(plain);
	return 0;
}
