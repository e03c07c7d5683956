/* Decodes JPEG and PNG pictures of any size and crops and resizes them to the network's size. The
 * result depends only on the bytes and the view. */
#ifndef PRONY_DATASETS_IMAGE_H
#define PRONY_DATASETS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Larger pictures are refused: the largest of ImageNet has a third of that. */
enum { IMAGE_SIDE_MAX = 16384, IMAGE_PIXELS_MAX = 1 << 27, IMAGE_CHANNELS = 3 };

/* Which part of a picture becomes a sample, and its size. */
struct image_view {
	int height, width; /* size of the sample; both 0: the whole picture unchanged */
	/* Random: a part of 8 to 100 % of the area with an aspect ratio of 3:4 to 4:3, mirrored
	 * half of the time, chosen by `draw` (Szegedy and others 2015, section 6; numbers as in
	 * torchvision's RandomResizedCrop and RandomHorizontalFlip). Otherwise: the shorter side is
	 * resized to 8 / 7 of the sample's, and the centre is cropped (224 out of 256, as in He and
	 * others 2016). */
	bool random;
	uint64_t draw;
};

/* Interleaved RGB; `pixels` is allocated with malloc. */
struct image {
	int height, width;
	uint8_t *pixels;
};
void image_release(struct image *image);

/* How one axis of a part is sampled: the centre of output i is at start + (i + 0.5) * step, in
 * pixels of the picture. Only pixels from low to high are used. */
struct image_span {
	double start, step;
	int low, high;
};

struct image_box {
	struct image_span x, y;
	bool mirrored;
};

/* The part of a picture that the view selects. */
void image_box_of(const struct image_view *view, int height, int width, struct image_box *box);

enum image_kind { IMAGE_NONE, IMAGE_JPEG, IMAGE_PNG };
enum image_kind image_kind_of(const uint8_t *bytes, size_t length);

/* Decodes a picture through the view into three planes (red, green, blue) of its height and width.
 * Messages begin with `name` and end with a remedy; PRONY_BAD_INPUT when it is not a picture,
 * truncated, corrupt or too large. */
enum prony_status image_decode(const char *name, const uint8_t *bytes, size_t length,
			       const struct image_view *view, uint8_t *planes, struct error *err);

/* Decodes the whole picture unchanged. */
enum prony_status image_decode_whole(const char *name, const uint8_t *bytes, size_t length,
				     struct image *out, struct error *err);

/* Reads height and width from the header only. */
enum prony_status image_measure(const char *name, const uint8_t *bytes, size_t length, int *height,
				int *width, struct error *err);

/*
 * Encodes interleaved pixels of 1 (grey) or 3 (RGB) channels as PNG; *bytes: the caller frees it.
 */
void image_encode_png(const uint8_t *pixels, int height, int width, int channels, uint8_t **bytes,
		      size_t *length);

/* Applies the view to a decoded picture, interleaved or as planes (`planar`). */
void image_view_pixels(const uint8_t *pixels, int height, int width, bool planar,
		       const struct image_view *view, uint8_t *planes);

#endif
