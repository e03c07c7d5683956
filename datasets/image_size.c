/* Size limits of pictures and releasing an image, shared by the decoders. */
#include <inttypes.h>
#include <stdlib.h>

#include "datasets/image_internal.h"

enum prony_status image_check_size(const char *name, int64_t height, int64_t width,
				   struct error *err)
{
	if (height >= 1 && width >= 1 && height <= IMAGE_SIDE_MAX && width <= IMAGE_SIDE_MAX &&
	    height * width <= IMAGE_PIXELS_MAX)
		return PRONY_OK;
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: too large: %" PRId64 " x %" PRId64
			 " pixels; a side must be 1 to %d and the image at most %d million "
			 "pixels; " IMAGE_REMEDY,
			 name, width, height, IMAGE_SIDE_MAX, IMAGE_PIXELS_MAX >> 20);
}

void image_release(struct image *image)
{
	free(image->pixels);
	*image = (struct image){0};
}
