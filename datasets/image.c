#include "datasets/image.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "datasets/image_internal.h"

/* Extra pixels around a part: chroma at its edges is interpolated from neighbours. */
enum { JPEG_MARGIN = 4 };

enum image_kind image_kind_of(const uint8_t *bytes, size_t length)
{
	static const uint8_t jpeg[] = {0xff, 0xd8, 0xff}, png[] = {0x89, 'P', 'N', 'G'};

	if (length >= sizeof(jpeg) && memcmp(bytes, jpeg, sizeof(jpeg)) == 0)
		return IMAGE_JPEG;
	return length >= sizeof(png) && memcmp(bytes, png, sizeof(png)) == 0 ? IMAGE_PNG
									     : IMAGE_NONE;
}

static enum prony_status no_image(const char *name, const uint8_t *bytes, size_t length,
				  struct error *err)
{
	char head[16] = "";

	if (length == 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: not an image: the file is empty; " IMAGE_REMEDY, name);
	for (size_t i = 0; i < length && i < 4; i++)
		snprintf(head + 3 * i, sizeof(head) - 3 * i, " %02x", bytes[i]);
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: not an image: it begins with%s, not with ff d8 ff (JPEG) or 89 50 4e "
			 "47 (PNG); " IMAGE_REMEDY,
			 name, head);
}

enum prony_status image_measure(const char *name, const uint8_t *bytes, size_t length, int *height,
				int *width, struct error *err)
{
	switch (image_kind_of(bytes, length)) {
	case IMAGE_JPEG:
		return jpeg_measure(name, bytes, length, height, width, err);
	case IMAGE_PNG:
		return png_measure(name, bytes, length, height, width, err);
	default:
		return no_image(name, bytes, length, err);
	}
}

enum prony_status image_decode_whole(const char *name, const uint8_t *bytes, size_t length,
				     struct image *out, struct error *err)
{
	struct jpeg_part part = {.eighths = 8};
	enum prony_status status;

	switch (image_kind_of(bytes, length)) {
	case IMAGE_JPEG:
		status = jpeg_measure(name, bytes, length, &part.bottom, &part.right, err);
		return status != PRONY_OK ? status
					  : jpeg_decode(name, bytes, length, &part, out, err);
	case IMAGE_PNG:
		return png_decode(name, bytes, length, out, err);
	default:
		return no_image(name, bytes, length, err);
	}
}

/* The smallest scale that still has at least one pixel per output pixel. */
static int choose_eighths(const struct image_box *box)
{
	double least = box->x.step < box->y.step ? box->x.step : box->y.step;

	return least >= 8 ? 1 : least >= 4 ? 2 : least >= 2 ? 4 : 8;
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

static int larger(int a, int b)
{
	return a > b ? a : b;
}

/* The pixels of a picture of `side` that `outputs` samples use, and the span within them. */
static void cut_span(struct image_span *span, int outputs, int side, int eighths, int *from,
		     int *to)
{
	double scale = eighths / 8.0, reach;

	span->start *= scale;
	span->step *= scale;
	/* An edge inside a pixel includes the whole pixel. */
	span->low = span->low * eighths / 8;
	span->high = smaller((span->high * eighths + 7) / 8, side);
	reach = span->step > 1 ? span->step : 1;
	*from = larger(span->low, (int)(span->start + 0.5 * span->step - reach) - 1);
	*to = smaller(span->high, (int)(span->start + (outputs - 0.5) * span->step + reach) + 2);
	*from = larger(*from - JPEG_MARGIN, 0);
	*to = smaller(*to + JPEG_MARGIN, side);
	span->start -= *from;
	span->low = larger(span->low - *from, 0);
	span->high = smaller(span->high - *from, *to - *from);
}

static enum prony_status decode_jpeg(const char *name, const uint8_t *bytes, size_t length,
				     const struct image_view *view, uint8_t *planes,
				     struct error *err)
{
	struct image image = {0};
	struct jpeg_part part;
	struct image_box box;
	int height, width;
	enum prony_status status = jpeg_measure(name, bytes, length, &height, &width, err);

	if (status != PRONY_OK)
		return status;
	image_box_of(view, height, width, &box);
	part.eighths = choose_eighths(&box);
	cut_span(&box.x, view->width, jpeg_scaled(width, part.eighths), part.eighths, &part.left,
		 &part.right);
	cut_span(&box.y, view->height, jpeg_scaled(height, part.eighths), part.eighths, &part.top,
		 &part.bottom);
	status = jpeg_decode(name, bytes, length, &part, &image, err);
	if (status == PRONY_OK)
		image_resample(&image, &box, view->height, view->width, planes);
	image_release(&image);
	return status;
}

/* Converts interleaved pixels to planes. */
static void spread(const uint8_t *pixels, size_t count, uint8_t *planes)
{
	for (int channel = 0; channel < IMAGE_CHANNELS; channel++)
		for (size_t i = 0; i < count; i++)
			*planes++ = pixels[IMAGE_CHANNELS * i + (size_t)channel];
}

static void gather(const uint8_t *planes, size_t count, uint8_t *pixels)
{
	for (int channel = 0; channel < IMAGE_CHANNELS; channel++)
		for (size_t i = 0; i < count; i++)
			pixels[IMAGE_CHANNELS * i + (size_t)channel] = *planes++;
}

void image_view_pixels(const uint8_t *pixels, int height, int width, bool planar,
		       const struct image_view *view, uint8_t *planes)
{
	size_t count = (size_t)height * (size_t)width;
	struct image image = {.height = height, .width = width};
	struct image_box box;

	if (view->width == 0 || (view->width == width && view->height == height)) {
		if (planar)
			memcpy(planes, pixels, count * IMAGE_CHANNELS);
		else
			spread(pixels, count, planes);
		return;
	}
	image.pixels = memory_alloc(count * IMAGE_CHANNELS);
	if (planar)
		gather(pixels, count, image.pixels);
	else
		memcpy(image.pixels, pixels, count * IMAGE_CHANNELS);
	image_box_of(view, height, width, &box);
	image_resample(&image, &box, view->height, view->width, planes);
	image_release(&image);
}

enum prony_status image_decode(const char *name, const uint8_t *bytes, size_t length,
			       const struct image_view *view, uint8_t *planes, struct error *err)
{
	struct image image = {0};
	enum image_kind kind = image_kind_of(bytes, length);

	if (kind == IMAGE_JPEG && view->width > 0)
		return decode_jpeg(name, bytes, length, view, planes, err);
	enum prony_status status = image_decode_whole(name, bytes, length, &image, err);
	if (status == PRONY_OK)
		image_view_pixels(image.pixels, image.height, image.width, false, view, planes);
	image_release(&image);
	return status;
}
