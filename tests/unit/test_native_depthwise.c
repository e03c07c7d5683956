/* Depthwise convolutions of the native executor against sums in double, on every instruction set of
 * this processor and in every layout. Needs no library. */
#include "adapters/native/cpu/kernels/depthwise.h"
#include "unit_test.h"

/* One layer and its tensors. The padding of a layout is zero. */
struct layer {
	struct depthwise d;
	float *x, *y, *dx, *dy, *w, *dw, *bias, *db;
	size_t x_floats, y_floats, w_floats;
};

/* Channels in blocks of `block`; 0 = channels last. */
static void lay_out(struct depthwise *d, struct depthwise_layout *out, const int64_t *size,
		    int64_t block)
{
	int64_t width = block ? block : d->channels;

	*out = (struct depthwise_layout){.column = width,
					 .row = width * size[1],
					 .block = width,
					 .block_stride = width * size[0] * size[1]};
	d->present = (d->channels + width - 1) / width * width;
	out->sample = d->present * size[0] * size[1];
}

static float *random_floats(struct random *random, size_t count)
{
	float *made = test_keep(memory_alloc(count * sizeof(float)));

	for (size_t i = 0; i < count; i++)
		made[i] = (float)random_normal(random);
	return made;
}

/* Zeroes the padding of blocks. */
static void clear_padding(const struct depthwise *d, const struct depthwise_layout *layout,
			  const int64_t *size, float *data)
{
	for (int64_t n = 0; n < d->batch; n++)
		for (int64_t c = d->channels; c < d->present; c++)
			for (int64_t i = 0; i < size[0] * size[1]; i++)
				data[n * layout->sample + c / layout->block * layout->block_stride +
				     c % layout->block + i * layout->column] = 0;
}

static void layer_make(struct layer *layer, const struct depthwise *shape, int64_t block,
		       int64_t weight_block)
{
	struct depthwise *d = &layer->d;
	struct random random;

	random_init(&random, 3);
	*d = *shape;
	lay_out(d, &d->x, d->in, block);
	lay_out(d, &d->y, d->out, block);
	d->w.block = weight_block;
	d->w.column = weight_block;
	d->w.row = d->kernel[1] * weight_block;
	d->w.block_stride = d->kernel[0] * d->w.row;
	layer->x_floats = (size_t)(d->batch * d->x.sample);
	layer->y_floats = (size_t)(d->batch * d->y.sample);
	layer->w_floats =
		(size_t)((d->channels + weight_block - 1) / weight_block * d->w.block_stride);
	layer->x = random_floats(&random, layer->x_floats);
	layer->dy = random_floats(&random, layer->y_floats);
	layer->dx = random_floats(&random, layer->x_floats);
	layer->y = random_floats(&random, layer->y_floats);
	layer->w = random_floats(&random, layer->w_floats);
	layer->dw = random_floats(&random, layer->w_floats);
	layer->bias = random_floats(&random, (size_t)d->channels);
	layer->db = random_floats(&random, (size_t)d->channels);
	clear_padding(d, &d->x, d->in, layer->x);
	clear_padding(d, &d->y, d->out, layer->dy);
}

static int64_t place(const struct depthwise_layout *layout, int64_t n, int64_t c, int64_t h,
		     int64_t w)
{
	return n * layout->sample + c / layout->block * layout->block_stride + c % layout->block +
	       h * layout->row + w * layout->column;
}

static int64_t weight_place(const struct depthwise *d, int64_t c, int64_t h, int64_t w)
{
	return c / d->w.block * d->w.block_stride + c % d->w.block + h * d->w.row + w * d->w.column;
}

/* The expected results in double, in the layouts of the layer. */
struct expected {
	double *y, *dx, *dw, *db;
};

static double *zeros(size_t count)
{
	double *made = test_keep(memory_alloc(count * sizeof(double)));

	memset(made, 0, count * sizeof(double));
	return made;
}

static void expect_point(const struct layer *layer, struct expected *e, int64_t n, int64_t c,
			 int64_t h, int64_t w)
{
	const struct depthwise *d = &layer->d;
	int64_t at = place(&d->y, n, c, h, w);
	double gradient = (double)layer->dy[at];

	e->y[at] = (double)layer->bias[c];
	e->db[c] += gradient;
	for (int64_t i = 0; i < d->kernel[0]; i++) {
		for (int64_t k = 0; k < d->kernel[1]; k++) {
			int64_t row = h * d->strides[0] + i * d->dilations[0] - d->before[0];
			int64_t column = w * d->strides[1] + k * d->dilations[1] - d->before[1];
			int64_t from = place(&d->x, n, c, row, column);
			int64_t tap = weight_place(d, c, i, k);

			if (row < 0 || row >= d->in[0] || column < 0 || column >= d->in[1])
				continue;
			e->y[at] += (double)layer->x[from] * (double)layer->w[tap];
			e->dx[from] += gradient * (double)layer->w[tap];
			e->dw[tap] += gradient * (double)layer->x[from];
		}
	}
}

static void expect(const struct layer *layer, struct expected *e)
{
	const struct depthwise *d = &layer->d;

	e->y = zeros(layer->y_floats);
	e->dx = zeros(layer->x_floats);
	e->dw = zeros(layer->w_floats);
	e->db = zeros((size_t)d->channels);
	for (int64_t n = 0; n < d->batch; n++)
		for (int64_t c = 0; c < d->channels; c++)
			for (int64_t h = 0; h < d->out[0]; h++)
				for (int64_t w = 0; w < d->out[1]; w++)
					expect_point(layer, e, n, c, h, w);
}

/* `sums`: the number of products in one sum. */
static void assert_near(const char *what, const float *have, const double *want, size_t count,
			double sums)
{
	double bound = 4e-7 * (4 + sqrt(sums) * 4);

	for (size_t i = 0; i < count; i++)
		if (!(fabs((double)have[i] - want[i]) <= bound + 1e-6 * fabs(want[i])))
			fail_msg("%s[%zu] is %.9g, not %.9g", what, i, (double)have[i], want[i]);
}

/* Runs each loop in three shares, like three threads. */
static void run(struct layer *layer, const struct depthwise_loops *loops, size_t parts)
{
	const struct depthwise *d = &layer->d;
	float *partial = test_keep(memory_alloc(depthwise_partial_bytes(d, loops, parts)));
	size_t units = depthwise_units(d, loops);
	size_t counts[] = {(size_t)(d->batch * d->out[0]), (size_t)(d->batch * d->in[0]),
			   units * parts, units};

	for (size_t i = 0; i < 3; i++)
		depthwise_forward(d, loops, layer->y, layer->x, layer->w, layer->bias, false,
				  counts[0] * i / 3, counts[0] * (i + 1) / 3);
	for (size_t i = 0; i < 3; i++)
		depthwise_data(d, loops, layer->dx, layer->dy, layer->w, counts[1] * i / 3,
			       counts[1] * (i + 1) / 3);
	for (size_t i = 0; i < 3; i++)
		depthwise_weights(d, loops, parts, partial, layer->x, layer->dy, true,
				  counts[2] * i / 3, counts[2] * (i + 1) / 3);
	for (size_t i = 0; i < 3; i++)
		depthwise_weights_sum(d, loops, parts, layer->dw, layer->db, partial,
				      counts[3] * i / 3, counts[3] * (i + 1) / 3);
}

/* The padding of dw must be unchanged. */
static void keep_padding(const struct layer *layer, const float *before, double *want)
{
	const struct depthwise *d = &layer->d;
	int64_t present = (int64_t)layer->w_floats / (d->kernel[0] * d->kernel[1]);

	for (int64_t c = d->channels; c < present; c++)
		for (int64_t h = 0; h < d->kernel[0]; h++)
			for (int64_t w = 0; w < d->kernel[1]; w++)
				want[weight_place(d, c, h, w)] =
					(double)before[weight_place(d, c, h, w)];
}

static void compare(const struct depthwise *shape, int64_t block, int64_t weight_block,
		    enum instruction_set set)
{
	const struct depthwise_loops *loops;
	struct expected e;
	struct layer layer;
	double sums;

	layer_make(&layer, shape, block, weight_block);
	expect(&layer, &e);
	keep_padding(&layer, layer.dw, e.dw);
	loops = depthwise_pick(&layer.d, set);
	sums = (double)(shape->batch * shape->out[0] * shape->out[1]);
	for (int threads = 1; threads <= 3; threads++) {
		run(&layer, loops, depthwise_parts(&layer.d, loops, threads));
		assert_near("y", layer.y, e.y, layer.y_floats, 121);
		assert_near("dx", layer.dx, e.dx, layer.x_floats, 121);
		assert_near("dw", layer.dw, e.dw, layer.w_floats, sums);
		assert_near("db", layer.db, e.db, (size_t)shape->channels, sums);
	}
}

static struct depthwise shape_make(int64_t batch, int64_t channels, int64_t height, int64_t width,
				   int64_t side, int64_t stride, int64_t dilation, int64_t after)
{
	struct depthwise d = {.batch = batch,
			      .channels = channels,
			      .in = {height, width},
			      .kernel = {side, side},
			      .strides = {stride, stride},
			      .dilations = {dilation, dilation},
			      .before = {side / 2 * dilation, (side / 2 - 1) * dilation}};

	for (int i = 0; i < 2; i++)
		d.out[i] = (d.in[i] + d.before[i] + after - (side - 1) * dilation - 1) / stride + 1;
	return d;
}

static void check_sets(const struct depthwise *shape)
{
	static const int64_t blocks[] = {0, 4, 8, 16};

	for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++)
		for (size_t i = 0; i < 4; i++)
			for (int64_t weight_block = 1; weight_block <= 16; weight_block *= 4)
				compare(shape, blocks[i], weight_block, (enum instruction_set)set);
}

TEST(every_window_agrees)
{
	static const int64_t sides[] = {2, 3, 4, 5, 7, 8, 11};

	for (size_t i = 0; i < COUNT(sides); i++) {
		for (int64_t stride = 1; stride <= 3; stride++) {
			struct depthwise shape =
				shape_make(2, 18, 13, 22, sides[i], stride, 1, sides[i] / 2);

			check_sets(&shape);
		}
	}
}

TEST(every_number_of_channels_agrees)
{
	static const int64_t channels[] = {2, 3, 4, 7, 8, 11, 16, 24, 33};

	for (size_t i = 0; i < COUNT(channels); i++) {
		struct depthwise shape = shape_make(1, channels[i], 9, 14, 3, 2, 1, 1);

		check_sets(&shape);
	}
}

TEST(dilated_windows_agree)
{
	for (int64_t stride = 1; stride <= 2; stride++) {
		struct depthwise shape = shape_make(2, 17, 12, 15, 3, stride, 2, 2);

		check_sets(&shape);
	}
}

/* Windows larger than the image, and strides that skip inputs. */
TEST(odd_shapes_agree)
{
	struct depthwise small = shape_make(3, 16, 2, 1, 5, 1, 1, 3);
	struct depthwise skipping = shape_make(2, 9, 10, 11, 1, 3, 1, 0);
	struct depthwise uneven = shape_make(1, 20, 6, 9, 3, 1, 1, 1);

	skipping.before[1] = 0;
	skipping.out[1] = (skipping.in[1] - 1) / 3 + 1;
	check_sets(&small);
	check_sets(&skipping);
	uneven.kernel[0] = 1;
	uneven.before[0] = 0;
	uneven.out[0] = 6;
	check_sets(&uneven);
}

TEST(relu_and_repetition)
{
	struct depthwise shape = shape_make(2, 24, 10, 20, 5, 1, 1, 2);
	struct layer layer;
	const struct depthwise_loops *loops;
	float *first;

	layer_make(&layer, &shape, 0, 8);
	loops = depthwise_pick(&layer.d, instruction_set_best());
	run(&layer, loops, 4);
	first = test_keep(memory_alloc(layer.w_floats * sizeof(float)));
	memcpy(first, layer.dw, layer.w_floats * sizeof(float));
	run(&layer, loops, 4);
	assert_memory_equal(first, layer.dw, layer.w_floats * sizeof(float));
	first = test_keep(memory_alloc(layer.y_floats * sizeof(float)));
	memcpy(first, layer.y, layer.y_floats * sizeof(float));
	depthwise_forward(&layer.d, loops, layer.y, layer.x, layer.w, layer.bias, true, 0,
			  (size_t)(shape.batch * shape.out[0]));
	for (size_t i = 0; i < layer.y_floats; i++)
		assert_true(layer.y[i] == (first[i] > 0 ? first[i] : 0));
}
