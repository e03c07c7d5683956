/* Chooses the part of a picture that becomes a sample. */
#include <math.h>

#include "base/random.h"
#include "datasets/image.h"

/* The side from which the centre of a sample's side is cropped. */
static int64_t side_before_cut(int side)
{
	return (side * INT64_C(16) + 7) / 14;
}

/* Resizes a side by `step` and takes the middle. */
static void centre_span(int side, int resized, int outputs, struct image_span *span)
{
	double step = (double)side / resized;

	*span = (struct image_span){
		/* In whole pixels of the resized picture, as in libraries that resize first and
		 * then crop; halves round to even. */
		.start = rint((resized - outputs) / 2.0) * step,
		.step = step,
		.high = side,
	};
}

/* The shorter side becomes 8 / 7 of the sample's; the other keeps the ratio, rounded down. */
static void centre_box(const struct image_view *view, int height, int width, struct image_box *box)
{
	int64_t side_x = side_before_cut(view->width), side_y = side_before_cut(view->height);
	bool by_width = side_x * height >= side_y * width;
	int resized_x = (int)(by_width ? side_x : side_y * width / height);
	int resized_y = (int)(by_width ? side_x * height / width : side_y);

	centre_span(width, resized_x, view->width, &box->x);
	centre_span(height, resized_y, view->height, &box->y);
	box->mirrored = false;
}

static void part_span(int from, int length, int outputs, struct image_span *span)
{
	*span = (struct image_span){
		.start = from,
		.step = (double)length / outputs,
		.low = from,
		.high = from + length,
	};
}

/* After ten parts that do not fit: the largest central part with an allowed aspect ratio. */
static void fall_back(int height, int width, int *part_height, int *part_width)
{
	double shape = (double)width / height;

	*part_width = shape > 4.0 / 3.0 ? (int)rint(height * 4.0 / 3.0) : width;
	*part_height = shape < 3.0 / 4.0 ? (int)rint(width / (3.0 / 4.0)) : height;
}

static void random_box(const struct image_view *view, int height, int width, struct image_box *box)
{
	struct random random;
	double area = (double)height * width;
	int part_height = 0, part_width = 0, x, y;

	random_init(&random, view->draw);
	for (int i = 0; i < 10; i++) {
		double part = area * (0.08 + 0.92 * random_uniform(&random));
		double shape = exp(log(3.0 / 4.0) +
				   random_uniform(&random) * (log(4.0 / 3.0) - log(3.0 / 4.0)));

		part_width = (int)rint(sqrt(part * shape));
		part_height = (int)rint(sqrt(part / shape));
		if (part_width > 0 && part_width <= width && part_height > 0 &&
		    part_height <= height)
			break;
		part_width = 0;
	}
	if (part_width > 0) {
		y = (int)random_below(&random, (uint64_t)(height - part_height + 1));
		x = (int)random_below(&random, (uint64_t)(width - part_width + 1));
	} else {
		fall_back(height, width, &part_height, &part_width);
		y = (height - part_height) / 2;
		x = (width - part_width) / 2;
	}
	part_span(x, part_width, view->width, &box->x);
	part_span(y, part_height, view->height, &box->y);
	box->mirrored = random_uniform(&random) < 0.5;
}

void image_box_of(const struct image_view *view, int height, int width, struct image_box *box)
{
	if (view->random)
		random_box(view, height, width, box);
	else
		centre_box(view, height, width, box);
}
