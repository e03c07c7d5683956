/* Private to datasets/: steps of decoding a picture. */
#ifndef PRONY_DATASETS_IMAGE_INTERNAL_H
#define PRONY_DATASETS_IMAGE_INTERNAL_H

#include "datasets/image.h"

/* The end of every message about a picture. */
#define IMAGE_REMEDY "replace the file, or remove it"

/* PRONY_BAD_INPUT above IMAGE_SIDE_MAX or IMAGE_PIXELS_MAX. */
enum prony_status image_check_size(const char *name, int64_t height, int64_t width,
				   struct error *err);

/* The needed part of a picture: rows top to bottom, columns left to right, at `eighths` of its size
 * (8, 4, 2 or 1 of 8; rows and columns are in pixels of that size). */
struct jpeg_part {
	int eighths;
	int top, bottom, left, right;
};

/* Decodes a part; the image contains only that part. */
enum prony_status jpeg_decode(const char *name, const uint8_t *bytes, size_t length,
			      const struct jpeg_part *part, struct image *out, struct error *err);
enum prony_status jpeg_measure(const char *name, const uint8_t *bytes, size_t length, int *height,
			       int *width, struct error *err);
/* The length of a side at that scale. */
int jpeg_scaled(int side, int eighths);

enum prony_status png_decode(const char *name, const uint8_t *bytes, size_t length,
			     struct image *out, struct error *err);
enum prony_status png_measure(const char *name, const uint8_t *bytes, size_t length, int *height,
			      int *width, struct error *err);

/* Resamples into planes of height x width with a triangle filter (bilinear with antialiasing, as
 * Pillow's BILINEAR), rows first; both passes round to bytes. Uses integers only, so that all
 * machines give the same bytes. */
void image_resample(const struct image *image, const struct image_box *box, int height, int width,
		    uint8_t *planes);

/* Filter weights of one axis with 14 fractional bits; the weights of an output sum to 1. */
struct image_taps {
	int *first;    /* per output: its first source pixel */
	int *count;    /* number of source pixels */
	int16_t *taps; /* `most` weights per output */
	int most;
};
void image_taps_make(const struct image_span *span, int outputs, struct image_taps *out);
void image_taps_release(struct image_taps *taps);

#endif
