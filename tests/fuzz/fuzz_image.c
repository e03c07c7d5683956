/* Fuzz target: pictures. */
#include "tests/fuzz/target.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/image.h"

enum { SIDE = 24 };

/* Returns whether the picture was read; aborts unless a refusal is one line that begins with the
 * name. */
static bool was_read(enum prony_status status, const struct error *err)
{
	if (status == PRONY_OK)
		return true;
	if (status != PRONY_BAD_INPUT || strncmp(err->text, "input: ", 7) != 0 ||
	    strchr(err->text, '\n') || !strstr(err->text, "; "))
		abort();
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint8_t planes[IMAGE_CHANNELS * SIDE * SIDE], again[sizeof(planes)];
	struct image_view centre = {.height = SIDE, .width = SIDE};
	struct image_view part = {.height = SIDE, .width = SIDE, .random = true, .draw = length};
	struct image whole = {0};
	struct error err = ERROR_INIT, other = ERROR_INIT, third = ERROR_INIT;
	int height = 0, width = 0;

	/* A picture of many pixels in few bytes is valid but slow. */
	if (!was_read(image_measure("input", bytes, length, &height, &width, &err), &err))
		return image_decode("input", bytes, length, &part, planes, &other) == PRONY_OK
			       ? (abort(), 0)
			       : 0;
	if ((int64_t)height * width > 1 << 20)
		return 0;
	bool good = was_read(image_decode_whole("input", bytes, length, &whole, &err), &err);

	if (good && (whole.height != height || whole.width != width))
		abort();
	/* A part may be intact if the whole is not, never the reverse. */
	if (!was_read(image_decode("input", bytes, length, &centre, planes, &other), &other) &&
	    good)
		abort();
	if (was_read(image_decode("input", bytes, length, &part, planes, &third), &third)) {
		if (image_decode("input", bytes, length, &part, again, NULL) != PRONY_OK ||
		    memcmp(planes, again, sizeof(planes)) != 0)
			abort();
	} else if (good) {
		abort();
	}
	image_release(&whole);
	return 0;
}
