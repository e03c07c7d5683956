/* Decodes JPEG (ISO/IEC 10918-1) with libjpeg-turbo: baseline, extended and progressive; grey,
 * YCbCr, RGB, CMYK and YCCK, all to RGB. Decodes only the needed part. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/memory.h"
#include "datasets/image_internal.h"

/* The library reports errors by longjmp; warnings are remembered. */
struct jpeg_reader {
	struct jpeg_decompress_struct info;
	struct jpeg_error_mgr errors;
	jmp_buf end;
	char text[JMSG_LENGTH_MAX];
	int warning; /* message code of the first warning that means lost pixels; 0 = none */
	uint8_t *row;
	struct image image;
};

static void give_up(j_common_ptr common)
{
	struct jpeg_reader *reader = common->client_data;

	common->err->format_message(common, reader->text);
	longjmp(reader->end, 1);
}

static void note(j_common_ptr common, int level)
{
	struct jpeg_reader *reader = common->client_data;
	int code = common->err->msg_code;

	/* Extra bytes between two markers lose no pixels; some cameras write them. */
	if (level >= 0 || reader->warning != 0 || code == JWRN_EXTRANEOUS_DATA ||
	    code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM)
		return;
	reader->warning = code;
	common->err->format_message(common, reader->text);
	/* The pixels would be discarded anyway: a few bytes may claim to be a large picture. */
	longjmp(reader->end, 1);
}

static void say_nothing(j_common_ptr common)
{
	(void)common;
}

static void start(struct jpeg_reader *reader)
{
	memset(reader, 0, sizeof(*reader));
	reader->info.err = jpeg_std_error(&reader->errors);
	reader->info.client_data = reader;
	reader->errors.error_exit = give_up;
	reader->errors.emit_message = note;
	reader->errors.output_message = say_nothing;
}

static enum prony_status failed(const struct jpeg_reader *reader, const char *name,
				struct error *err)
{
	int code = reader->warning ? reader->warning : reader->errors.msg_code;
	const char *kind = "corrupt";

	if (code == JERR_OUT_OF_MEMORY)
		return error_set(err, PRONY_NOMEM, "%s: not enough memory to decode it", name);
	if (code == JWRN_JPEG_EOF || code == JERR_INPUT_EOF)
		kind = "truncated";
	else if (code == JERR_NO_SOI || code == JERR_SOI_DUPLICATE)
		kind = "no JPEG image";
	return error_set(err, PRONY_BAD_INPUT, "%s: %s: %s; " IMAGE_REMEDY, name, kind,
			 reader->text);
}

static enum prony_status read_head(struct jpeg_reader *reader, const char *name,
				   const uint8_t *bytes, size_t length, struct error *err)
{
	jpeg_create_decompress(&reader->info);
	jpeg_mem_src(&reader->info, bytes, (unsigned long)length);
	jpeg_read_header(&reader->info, TRUE);
	return image_check_size(name, reader->info.image_height, reader->info.image_width, err);
}

enum prony_status jpeg_measure(const char *name, const uint8_t *bytes, size_t length, int *height,
			       int *width, struct error *err)
{
	struct jpeg_reader *reader = memory_alloc(sizeof(*reader));
	enum prony_status status;

	start(reader);
	if (setjmp(reader->end) == 0) {
		status = read_head(reader, name, bytes, length, err);
		*height = (int)reader->info.image_height;
		*width = (int)reader->info.image_width;
	} else {
		status = failed(reader, name, err);
	}
	jpeg_destroy_decompress(&reader->info);
	free(reader);
	return status;
}

int jpeg_scaled(int side, int eighths)
{
	return (side * eighths + 7) / 8;
}

/* Converts CMYK to RGB; Adobe's files, as all of these are, hold inverted values. */
static void mix_inks(const uint8_t *inks, int width, uint8_t *pixels)
{
	for (int x = 0; x < width; x++, inks += 4)
		for (int channel = 0; channel < IMAGE_CHANNELS; channel++)
			*pixels++ = (uint8_t)((inks[channel] * inks[3] + 127) / 255);
}

static void choose_output(struct jpeg_reader *reader, const struct jpeg_part *part)
{
	struct jpeg_decompress_struct *info = &reader->info;
	bool inks = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;

	info->out_color_space = inks ? JCS_CMYK : JCS_RGB;
	info->scale_num = (unsigned)part->eighths;
	info->scale_denom = 8;
	info->dct_method =
		JDCT_ISLOW; /* the exact DCT, which gives the same bytes in every build */
}

static void read_rows(struct jpeg_reader *reader, const struct jpeg_part *part)
{
	struct jpeg_decompress_struct *info = &reader->info;
	JDIMENSION left = (JDIMENSION)part->left, width = (JDIMENSION)(part->right - part->left);
	size_t wanted = (size_t)width;

	if (wanted < info->output_width)
		jpeg_crop_scanline(info, &left, &width);
	size_t skipped = (size_t)part->left - left;
	reader->row = memory_alloc((size_t)width * 4);
	reader->image.height = part->bottom - part->top;
	reader->image.width = (int)wanted;
	reader->image.pixels = memory_alloc((size_t)reader->image.height * wanted * IMAGE_CHANNELS);
	if (part->top > 0)
		jpeg_skip_scanlines(info, (JDIMENSION)part->top);
	uint8_t *out = reader->image.pixels;
	size_t components = (size_t)info->output_components;
	for (int y = part->top; y < part->bottom; y++, out += wanted * IMAGE_CHANNELS) {
		jpeg_read_scanlines(info, &reader->row, 1);
		if (components == 4)
			mix_inks(reader->row + skipped * 4, (int)wanted, out);
		else
			memcpy(out, reader->row + skipped * components, wanted * IMAGE_CHANNELS);
	}
	/* Truncation is detected only after reading the last row. */
	if (info->output_scanline == info->output_height)
		jpeg_finish_decompress(info);
}

enum prony_status jpeg_decode(const char *name, const uint8_t *bytes, size_t length,
			      const struct jpeg_part *part, struct image *out, struct error *err)
{
	struct jpeg_reader *reader = memory_alloc(sizeof(*reader));
	enum prony_status status;

	start(reader);
	if (setjmp(reader->end) == 0) {
		status = read_head(reader, name, bytes, length, err);
		if (status == PRONY_OK) {
			choose_output(reader, part);
			jpeg_start_decompress(&reader->info);
			read_rows(reader, part);
			if (reader->warning != 0)
				status = failed(reader, name, err);
		}
	} else {
		status = failed(reader, name, err);
	}
	jpeg_destroy_decompress(&reader->info);
	free(reader->row);
	if (status == PRONY_OK)
		*out = reader->image;
	else
		image_release(&reader->image);
	free(reader);
	return status;
}
