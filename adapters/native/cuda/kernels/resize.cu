// Resize of images by whole multiples, and its gradient. graph/operators/resize.c defines the taps.
#include "adapters/native/cuda/kernels/common.cuh"

struct tap {
	int low, high;
	float weight; // of high
};

DEVICE tap tap_of(int i, int in, int scale, const struct resize_arguments &a)
{
	float at = (i + 0.5f) / scale - 0.5f;
	tap t;

	if (!a.linear)
		return {i / scale, i / scale, 0};
	if (a.align_corners)
		at = in > 1 ? (float)i * (in - 1) / (in * scale - 1) : 0;
	at = at < 0 ? 0 : at;
	t.low = (int)at < in - 1 ? (int)at : in - 1;
	t.high = t.low < in - 1 ? t.low + 1 : t.low;
	t.weight = at - t.low;
	return t;
}

// The part of place `own` in result i.
DEVICE float share_of(int own, int i, int in, int scale, const struct resize_arguments &a)
{
	tap t = tap_of(i, in, scale, a);

	return (t.low == own ? 1 - t.weight : 0) + (t.high == own ? t.weight : 0);
}

// Element i of images of height x width: its image and channel as `plane`, row and column.
struct image_place {
	long long plane;
	int row, column;
};

DEVICE image_place image_place_of(long long i, int height, int width,
				  const struct resize_arguments &a)
{
	image_place p;
	int channel = a.last ? (int)(i % a.channels) : 0;

	i /= a.last ? a.channels : 1;
	p.column = (int)(i % width);
	i /= width;
	p.row = (int)(i % height);
	i /= height;
	p.plane = a.last ? i * a.channels + channel : i;
	return p;
}

DEVICE long long index_of(long long plane, int row, int column, int height, int width,
			  const struct resize_arguments &a)
{
	return a.last ? ((plane / a.channels * height + row) * width + column) * a.channels +
				plane % a.channels
		      : (plane * height + row) * width + column;
}

template <class T> DEVICE void resize(T *y, const T *x, const struct resize_arguments &a)
{
	int height = a.in[0] * a.scales[0], width = a.in[1] * a.scales[1];

	FOR_ELEMENTS (i, a.planes * height * width) {
		image_place p = image_place_of(i, height, width, a);
		tap r = tap_of(p.row, a.in[0], a.scales[0], a);
		tap c = tap_of(p.column, a.in[1], a.scales[1], a);
		float sum[2];

		for (int k = 0; k < 2; k++) {
			int row = k ? r.high : r.low;

			sum[k] = to_float(x[index_of(p.plane, row, c.low, a.in[0], a.in[1], a)]) *
					 (1 - c.weight) +
				 to_float(x[index_of(p.plane, row, c.high, a.in[0], a.in[1], a)]) *
					 c.weight;
		}
		y[i] = from_float<T>(sum[0] * (1 - r.weight) + sum[1] * r.weight);
	}
}

// The results that may read place `own` are from first to last.
DEVICE void readers(int own, int in, int scale, const struct resize_arguments &a, int *first,
		    int *last)
{
	float step = a.linear && a.align_corners && in > 1 ? (in * scale - 1.0f) / (in - 1) : scale;

	*first = own * scale;
	*last = own * scale + scale - 1;
	if (!a.linear)
		return;
	*first = (int)((own - 1) * step) - scale;
	*last = (int)((own + 1) * step) + scale + 1;
	*first = *first < 0 ? 0 : *first;
	*last = *last < in * scale ? *last : in * scale - 1;
}

template <class T> DEVICE void resize_grad(T *dx, const T *dy, const struct resize_arguments &a)
{
	int height = a.in[0] * a.scales[0], width = a.in[1] * a.scales[1];

	FOR_ELEMENTS (i, a.planes * a.in[0] * a.in[1]) {
		image_place p = image_place_of(i, a.in[0], a.in[1], a);
		int top, bottom, left, right;
		float sum = 0;

		readers(p.row, a.in[0], a.scales[0], a, &top, &bottom);
		readers(p.column, a.in[1], a.scales[1], a, &left, &right);
		for (int row = top; row <= bottom; row++) {
			float share = share_of(p.row, row, a.in[0], a.scales[0], a), line = 0;

			for (int column = left; share > 0 && column <= right; column++)
				line += share_of(p.column, column, a.in[1], a.scales[1], a) *
					to_float(dy[index_of(p.plane, row, column, height, width, a)]);
			sum += share * line;
		}
		dx[i] = from_float<T>(sum);
	}
}

#define RESIZE(T, suffix)                                                                          \
	KERNEL(resize_##suffix)(T *y, const T *x, struct resize_arguments a)                       \
	{                                                                                          \
		resize<T>(y, x, a);                                                                \
	}                                                                                          \
	KERNEL(resize_grad_##suffix)(T *dx, const T *dy, struct resize_arguments a)                \
	{                                                                                          \
		resize_grad<T>(dx, dy, a);                                                         \
	}
FOR_TYPES(RESIZE)
