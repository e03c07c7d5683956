/*
 * Pictures of any size, JPEG or PNG, as samples of the size that a network takes: decoded, cut,
 * resized. What comes out depends on nothing but the bytes and the view.
 */
#ifndef PRONY_DATASETS_IMAGE_H
#define PRONY_DATASETS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Larger ones are refused: none of ImageNet has more than a third of that. */
enum { IMAGE_SIDE_MAX = 16384, IMAGE_PIXELS_MAX = 1 << 27, IMAGE_CHANNELS = 3 };

/* Which part of a picture becomes a sample, and how large. */
struct image_view {
	int height, width; /* of the sample; both 0: the picture as it is */
	/*
	 * Random: a part of 8 to 100 % of the area and 3:4 to 4:3 in shape, mirrored half of the
	 * time, as `draw` decides (Szegedy and others 2015, section 6; the numbers are those of
	 * torchvision's RandomResizedCrop and RandomHorizontalFlip). Else the centre of what has 8
	 * / 7 of the sample's shorter side (224 out of 256, as He and others 2016).
	 */
	bool random;
	uint64_t draw;
};

/* Interleaved RGB; `pixels` is of malloc. */
struct image {
	int height, width;
	uint8_t *pixels;
};
void image_release(struct image *image);

/* How one axis of a part is sampled: the middle of output i lies at start + (i + 0.5) * step, in
 * pixels of the picture; nothing outside of low to high is looked at. */
struct image_span {
	double start, step;
	int low, high;
};

struct image_box {
	struct image_span x, y;
	bool mirrored;
};

/* The part of a picture that the view means. */
void image_box_of(const struct image_view *view, int height, int width, struct image_box *box);

enum image_kind { IMAGE_NONE, IMAGE_JPEG, IMAGE_PNG };
enum image_kind image_kind_of(const uint8_t *bytes, size_t length);

/*
 * Decodes. Messages begin with `name` and end with a remedy; PRONY_BAD_INPUT for what is no
 * picture, truncated, corrupt or too large. View: height and width of it, in three planes (red,
 * green, blue) of `planes`.
 */
enum prony_status image_decode(const char *name, const uint8_t *bytes, size_t length,
			       const struct image_view *view, uint8_t *planes, struct error *err);

/* The whole, as it is. */
enum prony_status image_decode_whole(const char *name, const uint8_t *bytes, size_t length,
				     struct image *out, struct error *err);

/* Height and width, of which only the head is looked at. */
enum prony_status image_measure(const char *name, const uint8_t *bytes, size_t length, int *height,
				int *width, struct error *err);

/* PNG of interleaved pixels of 1 (grey) or 3 (RGB) channels; *bytes: the caller frees. */
void image_encode_png(const uint8_t *pixels, int height, int width, int channels, uint8_t **bytes,
		      size_t *length);

/* A picture that is whole in memory, or planes of one (`planar`), through the view. */
void image_view_pixels(const uint8_t *pixels, int height, int width, bool planar,
		       const struct image_view *view, uint8_t *planes);

#endif
