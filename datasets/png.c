/* PNG (ISO/IEC 15948) through libpng's simplified interface, read as 8-bit RGB
 * (what is transparent shows black) and written as RGB or grey. */
#include <png.h>
#include <string.h>

#include "base/memory.h"
#include "datasets/image_internal.h"

static enum prony_status failed(const png_image *png, const char *name, struct error *err)
{
	const char *kind = strstr(png->message, "end") || strstr(png->message, "EOF") ||
					   strstr(png->message, "Not enough")
				   ? "truncated"
				   : "corrupt";

	return error_set(err, PRONY_BAD_INPUT, "%s: %s: %s; " IMAGE_REMEDY, name, kind,
			 png->message);
}

static enum prony_status open_png(png_image *png, const char *name, const uint8_t *bytes,
				  size_t length, struct error *err)
{
	*png = (png_image){.version = PNG_IMAGE_VERSION};
	if (!png_image_begin_read_from_memory(png, bytes, length))
		return failed(png, name, err);
	return image_check_size(name, png->height, png->width, err);
}

enum prony_status png_measure(const char *name, const uint8_t *bytes, size_t length, int *height,
			      int *width, struct error *err)
{
	png_image png;
	enum prony_status status = open_png(&png, name, bytes, length, err);

	*height = (int)png.height;
	*width = (int)png.width;
	png_image_free(&png);
	return status;
}

enum prony_status png_decode(const char *name, const uint8_t *bytes, size_t length,
			     struct image *out, struct error *err)
{
	png_image png;
	png_color background = {0};
	struct image image = {0};
	enum prony_status status = open_png(&png, name, bytes, length, err);

	if (status == PRONY_OK) {
		png.format = PNG_FORMAT_RGB;
		image.height = (int)png.height;
		image.width = (int)png.width;
		image.pixels = memory_alloc(PNG_IMAGE_SIZE(png));
		if (!png_image_finish_read(&png, &background, image.pixels, 0, NULL))
			status = failed(&png, name, err);
		/* Of a warning, such as a wrong check sum at the end, it goes on. */
		else if (png.warning_or_error != 0)
			status = failed(&png, name, err);
	}
	png_image_free(&png);
	if (status == PRONY_OK)
		*out = image;
	else
		image_release(&image);
	return status;
}

void image_encode_png(const uint8_t *pixels, int height, int width, int channels, uint8_t **bytes,
		      size_t *length)
{
	png_image png = {
		.version = PNG_IMAGE_VERSION,
		.height = (png_uint_32)height,
		.width = (png_uint_32)width,
		.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB,
	};
	png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(png);

	*bytes = memory_alloc(room);
	/* Memory is all that it can lack, and there is room for the worst. */
	if (!png_image_write_to_memory(&png, *bytes, &room, 0, pixels, 0, NULL))
		memory_exhausted("a PNG file");
	*length = room;
}
