/* Resizes with a triangle filter as wide as the larger pixels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "datasets/image_internal.h"

enum { TAP_BITS = 14, TAP_ONE = 1 << TAP_BITS, TAP_HALF = TAP_ONE / 2 };

/* Rounds weights that sum to one to integers that sum to one as well. */
static void round_taps(const double *weights, int count, double sum, int16_t *taps)
{
	int left = TAP_ONE, heaviest = 0;

	for (int i = 0; i < count; i++) {
		taps[i] = (int16_t)lrint(weights[i] / sum * TAP_ONE);
		left -= taps[i];
		if (weights[i] > weights[heaviest])
			heaviest = i;
	}
	taps[heaviest] = (int16_t)(taps[heaviest] + left);
}

void image_taps_make(const struct image_span *span, int outputs, struct image_taps *out)
{
	double reach = span->step > 1 ? span->step : 1;
	int most = (int)ceil(2 * reach) + 2;
	size_t count = (size_t)outputs;
	double *weights = memory_alloc((size_t)most * sizeof(*weights));

	*out = (struct image_taps){
		.first = memory_alloc(count * sizeof(*out->first)),
		.count = memory_alloc(count * sizeof(*out->count)),
		.taps = memory_alloc(count * (size_t)most * sizeof(*out->taps)),
		.most = most,
	};
	for (int i = 0; i < outputs; i++) {
		double middle = span->start + (i + 0.5) * span->step, sum = 0;
		int from = (int)fmax(floor(middle - reach), span->low);
		int to = (int)fmin(ceil(middle + reach), span->high);

		/* Repeat the last pixel beyond the edge. */
		if (from > span->high - 1)
			from = span->high - 1;
		if (to <= from)
			to = from + 1;
		if (to - from > most)
			to = from + most;
		for (int j = from; j < to; j++) {
			weights[j - from] = fmax(0, 1 - fabs(j + 0.5 - middle) / reach);
			sum += weights[j - from];
		}
		if (sum <= 0)
			sum = weights[0] = 1;
		out->first[i] = from;
		out->count[i] = to - from;
		round_taps(weights, to - from, sum, out->taps + (size_t)i * (size_t)most);
	}
	free(weights);
}

void image_taps_release(struct image_taps *taps)
{
	free(taps->first);
	free(taps->count);
	free(taps->taps);
	*taps = (struct image_taps){0};
}

/* Computes a row with the sample's vertical and the picture's horizontal resolution. */
static void mix_rows(const struct image *image, const struct image_taps *taps, int at,
		     int32_t *sums, uint8_t *line)
{
	size_t values = (size_t)image->width * IMAGE_CHANNELS;
	const int16_t *tap = taps->taps + (size_t)at * (size_t)taps->most;

	for (size_t i = 0; i < values; i++)
		sums[i] = TAP_HALF;
	for (int k = 0; k < taps->count[at]; k++) {
		const uint8_t *row = image->pixels + (size_t)(taps->first[at] + k) * values;
		int16_t weight = tap[k];

		for (size_t i = 0; i < values; i++)
			sums[i] += (int32_t)weight * (int16_t)row[i];
	}
	for (size_t i = 0; i < values; i++)
		line[i] = (uint8_t)(sums[i] >> TAP_BITS);
}

static void mix_columns(const uint8_t *line, const struct image_taps *taps, int width,
			bool mirrored, uint8_t *row, size_t plane)
{
	for (int at = 0; at < width; at++) {
		const uint8_t *pixel = line + (size_t)taps->first[at] * IMAGE_CHANNELS;
		const int16_t *tap = taps->taps + (size_t)at * (size_t)taps->most;
		int32_t red = TAP_HALF, green = TAP_HALF, blue = TAP_HALF;
		uint8_t *out = row + (mirrored ? width - 1 - at : at);

		for (int k = 0; k < taps->count[at]; k++, pixel += IMAGE_CHANNELS) {
			red += tap[k] * pixel[0];
			green += tap[k] * pixel[1];
			blue += tap[k] * pixel[2];
		}
		out[0] = (uint8_t)(red >> TAP_BITS);
		out[plane] = (uint8_t)(green >> TAP_BITS);
		out[2 * plane] = (uint8_t)(blue >> TAP_BITS);
	}
}

void image_resample(const struct image *image, const struct image_box *box, int height, int width,
		    uint8_t *planes)
{
	size_t values = (size_t)image->width * IMAGE_CHANNELS;
	size_t plane = (size_t)height * (size_t)width;
	int32_t *sums = memory_alloc(values * sizeof(*sums));
	uint8_t *line = memory_alloc(values);
	struct image_taps rows, columns;

	image_taps_make(&box->y, height, &rows);
	image_taps_make(&box->x, width, &columns);
	for (int y = 0; y < height; y++) {
		mix_rows(image, &rows, y, sums, line);
		mix_columns(line, &columns, width, box->mirrored,
			    planes + (size_t)y * (size_t)width, plane);
	}
	image_taps_release(&rows);
	image_taps_release(&columns);
	free(line);
	free(sums);
}
