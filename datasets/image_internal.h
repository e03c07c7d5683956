/* Private to datasets/: the steps of decoding a picture. */
#ifndef PRONY_DATASETS_IMAGE_INTERNAL_H
#define PRONY_DATASETS_IMAGE_INTERNAL_H

#include "datasets/image.h"

/* The end of every message about a picture. */
#define IMAGE_REMEDY "replace the file, or take it away"

/* PRONY_BAD_INPUT beyond IMAGE_SIDE_MAX and IMAGE_PIXELS_MAX. */
enum prony_status image_check_size(const char *name, int64_t height, int64_t width,
				   struct error *err);

/* What is needed of a picture: rows top to bottom, columns left to right, `eighths` of its size
 * (8, 4, 2 or 1 of 8; rows and columns count in pixels of that size). */
struct jpeg_part {
	int eighths;
	int top, bottom, left, right;
};

/* Decodes a part; the image is that part alone. */
enum prony_status jpeg_decode(const char *name, const uint8_t *bytes, size_t length,
			      const struct jpeg_part *part, struct image *out, struct error *err);
enum prony_status jpeg_measure(const char *name, const uint8_t *bytes, size_t length, int *height,
			       int *width, struct error *err);
/* A side at that many eighths. */
int jpeg_scaled(int side, int eighths);

enum prony_status png_decode(const char *name, const uint8_t *bytes, size_t length,
			     struct image *out, struct error *err);
enum prony_status png_measure(const char *name, const uint8_t *bytes, size_t length, int *height,
			      int *width, struct error *err);

/*
 * Resamples into planes of height x width: a triangle over a pixel of whichever side has the
 * larger ones (bilinear with antialiasing, as Pillow's BILINEAR), rows first; both passes round to
 * bytes. Integers only, so that the bytes are the same on every machine.
 */
void image_resample(const struct image *image, const struct image_box *box, int height, int width,
		    uint8_t *planes);

/* The weights of one axis, 14 bits after the point; those of an output add up to 1. */
struct image_taps {
	int *first;    /* of each output: its first source pixel */
	int *count;    /* and how many */
	int16_t *taps; /* `most` for each output */
	int most;
};
void image_taps_make(const struct image_span *span, int outputs, struct image_taps *out);
void image_taps_release(struct image_taps *taps);

#endif
