/* Depthwise convolution: loops over rows, phases and taps. */
#include "adapters/native/cpu/kernels/depthwise.h"

#include <assert.h>
#include <string.h>

#include "adapters/native/cpu/kernels/depthwise_loops.h"

/*
 * The loops process units. A unit has as many channels as a vector has lanes. At the end of
 * channels last the last unit overlaps the one before. All data are vectors of a unit: weights are
 * packed so that a tap of the window is one vector.
 *
 * Forward and the gradient of the data use the same loop: several neighbouring points of a row are
 * summed in registers over a list of taps. With strides the points of the gradient form as many
 * phases, each with its own taps. The weights' gradient keeps the taps of a part of the window in
 * registers along a row. Sums of rows are added up in memory, which also keeps rounding errors
 * small.
 */

#define TAPS_MAX (DEPTHWISE_SIDE_MAX * DEPTHWISE_SIDE_MAX)

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b > 0);
}

size_t depthwise_units(const struct depthwise *d, const struct depthwise_loops *loops)
{
	return (size_t)divide_up(d->present, loops->lanes);
}

static int64_t first_channel(const struct depthwise *d, const struct depthwise_loops *loops,
			     int64_t unit)
{
	return least(unit * loops->lanes, d->present - loops->lanes);
}

static int64_t channel_offset(const struct depthwise_layout *layout, int64_t channel)
{
	return channel / layout->block * layout->block_stride + channel % layout->block;
}

static int64_t weight_offset(const struct depthwise *d, int64_t channel)
{
	return channel / d->w.block * d->w.block_stride + channel % d->w.block;
}

/* Packs the weights of a unit, tap by tap, with zeros for missing channels. */
static void pack(const struct depthwise *d, int lanes, int64_t channel, const float *w,
		 float *packed)
{
	int64_t count = least(lanes, d->channels - channel), at[DEPTHWISE_LANES_MAX];

	for (int64_t i = 0; i < count; i++)
		at[i] = weight_offset(d, channel + i);
	for (int64_t row = 0; row < d->kernel[0]; row++) {
		for (int64_t column = 0; column < d->kernel[1]; column++, packed += lanes) {
			const float *tap = w + row * d->w.row + column * d->w.column;

			for (int64_t i = 0; i < count; i++)
				packed[i] = tap[at[i]];
			for (int64_t i = count > 0 ? count : 0; i < lanes; i++)
				packed[i] = 0;
		}
	}
}

/* Points of a row (or of a column) that use the same taps: first, first + step and so on. The j-th
 * point reads input j * in_step + offset[t] at tap index[t]. */
struct phase {
	int64_t first, step, count, in_step, in_size;
	int taps;
	int64_t offset[DEPTHWISE_SIDE_MAX];
	int index[DEPTHWISE_SIDE_MAX];
	int64_t inner, inner_end; /* points whose taps are all inside the input */
};

static bool reads(const struct phase *phase, int64_t j, int tap)
{
	int64_t at = j * phase->in_step + phase->offset[tap];

	return at >= 0 && at < phase->in_size;
}

static void find_inner(struct phase *phase)
{
	int64_t first = 0, end = phase->count;

	for (int t = 0; t < phase->taps; t++) {
		int64_t below = -phase->offset[t],
			above = phase->in_size - phase->offset[t]; /* first j beyond, in inputs */

		if (below > 0 && divide_up(below, phase->in_step) > first)
			first = divide_up(below, phase->in_step);
		end = above > 0 ? least(end, divide_up(above, phase->in_step)) : 0;
	}
	phase->inner = first < end ? first : 0;
	phase->inner_end = first < end ? end : 0;
}

static void forward_phase(const struct depthwise *d, int side, struct phase *phase)
{
	*phase = (struct phase){.step = 1,
				.count = d->out[side],
				.in_step = d->strides[side],
				.in_size = d->in[side],
				.taps = (int)d->kernel[side]};
	for (int t = 0; t < phase->taps; t++) {
		phase->index[t] = t;
		phase->offset[t] = t * d->dilations[side] - d->before[side];
	}
	find_inner(phase);
}

/* The points `first`, `first` + stride and so on of the input's gradient. */
static void data_phase(const struct depthwise *d, int side, int64_t first, struct phase *phase)
{
	int64_t stride = d->strides[side];

	*phase = (struct phase){.first = first,
				.step = stride,
				.count = divide_up(d->in[side] - first, stride),
				.in_step = 1,
				.in_size = d->out[side]};
	for (int64_t t = 0; t < d->kernel[side]; t++) {
		int64_t from = first + d->before[side] - t * d->dilations[side];

		if (from % stride != 0)
			continue;
		phase->index[phase->taps] = (int)t;
		phase->offset[phase->taps++] = from / stride;
	}
	find_inner(phase);
}

/* A pass in one direction, from `from` to `to`. */
struct correlation {
	const struct depthwise *d;
	const struct depthwise_loops *loops;
	const struct depthwise_layout *to, *from;
	float *out;
	const float *in, *w, *bias;
	bool relu;
	struct phase columns[DEPTHWISE_SIDE_MAX], rows[DEPTHWISE_SIDE_MAX];
	int64_t column_phases, row_phases, to_rows;
};

/* The common data of the points of an output row. */
struct line {
	float *out;
	const float *in;      /* of the sample and the unit */
	const float *weights; /* packed */
	const float *start;
	int64_t row; /* j in the row's phase */
	const struct phase *rows;
};

/* Lists the taps of point j of the line. For j < 0 it lists all of the phase's columns, with the
 * addresses for the first inner point. Returns their number. */
static int find_taps(const struct correlation *c, const struct line *line,
		     const struct phase *columns, int64_t j, struct depthwise_tap *taps)
{
	int64_t at = j < 0 ? columns->inner : j;
	int count = 0;

	for (int r = 0; r < line->rows->taps; r++) {
		const float *in =
			line->in +
			(line->row * line->rows->in_step + line->rows->offset[r]) * c->from->row;
		const float *weights = line->weights + (int64_t)line->rows->index[r] *
							       c->d->kernel[1] * c->loops->lanes;

		if (!reads(line->rows, line->row, r))
			continue;
		for (int k = 0; k < columns->taps; k++) {
			if (j >= 0 && !reads(columns, j, k))
				continue;
			taps[count].in =
				in + (at * columns->in_step + columns->offset[k]) * c->from->column;
			taps[count++].weight =
				weights + (int64_t)columns->index[k] * c->loops->lanes;
		}
	}
	return count;
}

static void compute_line(const struct correlation *c, const struct line *line,
			 const struct phase *columns)
{
	struct depthwise_tap taps[TAPS_MAX];
	struct depthwise_points points = {.to_step = columns->step * c->to->column,
					  .in_step = columns->in_step * c->from->column,
					  .start = line->start,
					  .taps = taps,
					  .relu = c->relu};
	float *out = line->out + columns->first * c->to->column;

	for (int64_t j = 0; j < columns->count; j++) {
		bool inner = j == columns->inner && j < columns->inner_end;

		points.tap_count = find_taps(c, line, columns, inner ? -1 : j, taps);
		points.to = out + j * points.to_step;
		points.count = inner ? columns->inner_end - j : 1;
		c->loops->points(&points);
		j += points.count - 1;
	}
}

static void correlate_unit(const struct correlation *c, int64_t channel, size_t first, size_t end)
{
	_Alignas(64) float weights[TAPS_MAX * DEPTHWISE_LANES_MAX],
		start[DEPTHWISE_LANES_MAX] = {0};
	struct line line = {.weights = weights, .start = start};

	pack(c->d, c->loops->lanes, channel, c->w, weights);
	for (int64_t i = 0; c->bias && i < least(c->loops->lanes, c->d->channels - channel); i++)
		start[i] = c->bias[channel + i];
	for (size_t item = first; item < end; item++) {
		int64_t sample = (int64_t)item / c->to_rows, row = (int64_t)item % c->to_rows;

		line.rows = &c->rows[row % c->row_phases];
		line.row = row / c->row_phases;
		line.in = c->in + sample * c->from->sample + channel_offset(c->from, channel);
		line.out = c->out + sample * c->to->sample + row * c->to->row +
			   channel_offset(c->to, channel);
		for (int64_t i = 0; i < c->column_phases; i++)
			compute_line(c, &line, &c->columns[i]);
	}
}

static void correlate(const struct correlation *c, size_t first, size_t end)
{
	int64_t units = (int64_t)depthwise_units(c->d, c->loops);

	for (int64_t unit = 0; unit < units; unit++)
		correlate_unit(c, first_channel(c->d, c->loops, unit), first, end);
}

void depthwise_forward(const struct depthwise *d, const struct depthwise_loops *loops, float *y,
		       const float *x, const float *w, const float *bias, bool relu, size_t first,
		       size_t end)
{
	struct correlation c = {.d = d,
				.loops = loops,
				.to = &d->y,
				.from = &d->x,
				.out = y,
				.in = x,
				.w = w,
				.bias = bias,
				.relu = relu,
				.column_phases = 1,
				.row_phases = 1,
				.to_rows = d->out[0]};

	forward_phase(d, 0, &c.rows[0]);
	forward_phase(d, 1, &c.columns[0]);
	correlate(&c, first, end);
}

void depthwise_data(const struct depthwise *d, const struct depthwise_loops *loops, float *dx,
		    const float *dy, const float *w, size_t first, size_t end)
{
	struct correlation c = {.d = d,
				.loops = loops,
				.to = &d->x,
				.from = &d->y,
				.out = dx,
				.in = dy,
				.w = w,
				.column_phases = d->strides[1],
				.row_phases = d->strides[0],
				.to_rows = d->in[0]};

	assert(d->strides[0] <= DEPTHWISE_SIDE_MAX && d->strides[1] <= DEPTHWISE_SIDE_MAX);
	for (int64_t i = 0; i < d->strides[0]; i++)
		data_phase(d, 0, i, &c.rows[i]);
	for (int64_t i = 0; i < d->strides[1]; i++)
		data_phase(d, 1, i, &c.columns[i]);
	correlate(&c, first, end);
}

/* The number of floats per item of `partial`: taps and the bias. */
static int64_t item_floats(const struct depthwise *d, const struct depthwise_loops *loops)
{
	return (d->kernel[0] * d->kernel[1] + 1) * loops->lanes;
}

/* The smallest number that gives each thread about the same work. */
size_t depthwise_parts(const struct depthwise *d, const struct depthwise_loops *loops, int threads)
{
	size_t units = depthwise_units(d, loops), team = threads > 1 ? (size_t)threads : 1;
	size_t rows = (size_t)(d->batch * d->out[0]), parts = 1;

	while (units * parts % team != 0 && units * parts < 8 * team && parts < rows)
		parts++;
	return parts;
}

size_t depthwise_partial_bytes(const struct depthwise *d, const struct depthwise_loops *loops,
			       size_t parts)
{
	return depthwise_units(d, loops) * parts * (size_t)item_floats(d, loops) * sizeof(float);
}

/* Taps of a window's row that are summed together. */
struct piece {
	int first, width, kind; /* index in the table of widths */
	int64_t inner, inner_end;
};

/* The part of a phase with `count` taps from the k-th on. */
static struct phase part_of(const struct phase *phase, int k, int count)
{
	struct phase part = *phase;

	part.taps = count;
	for (int i = 0; i < count; i++)
		part.offset[i] = phase->offset[k + i];
	find_inner(&part);
	return part;
}

static int cut_window(const struct depthwise *d, const struct phase *columns, struct piece *pieces)
{
	int count = 0;

	for (int first = 0, kind = 0; first < (int)d->kernel[1]; count++) {
		struct phase part;

		while (depthwise_widths[kind] > (int)d->kernel[1] - first)
			kind++;
		part = part_of(columns, first, depthwise_widths[kind]);
		pieces[count] = (struct piece){.first = first,
					       .width = depthwise_widths[kind],
					       .kind = kind,
					       .inner = part.inner,
					       .inner_end = part.inner_end};
		first += depthwise_widths[kind];
	}
	return count;
}

struct weights_sum {
	const struct depthwise *d;
	const struct depthwise_loops *loops;
	struct phase rows, columns;
	int64_t tap_first[DEPTHWISE_SIDE_MAX],
		tap_end[DEPTHWISE_SIDE_MAX]; /* points that have this tap */
	struct piece pieces[DEPTHWISE_SIDE_MAX];
	int piece_count;
	bool bias;
};

/* Adds one tap's products for the points from..end-1. `x` is the tap's input at point 0. */
static void add_border(const struct weights_sum *s, const float *dy, const float *x, int64_t from,
		       int64_t end, float *sums)
{
	const struct depthwise *d = s->d;
	struct depthwise_products p = {.dy = dy + from * d->y.column,
				       .x = x + from * d->strides[1] * d->x.column,
				       .dy_step = d->y.column,
				       .x_step = d->strides[1] * d->x.column,
				       .count = end - from,
				       .sums = sums};

	if (from < end)
		s->loops->products[DEPTHWISE_WIDTHS - 1][0](&p);
}

/* Adds one row of a piece of the window for the points that do not have all of its taps. */
static void add_borders(const struct weights_sum *s, const struct piece *piece, const float *dy,
			const float *x, float *sums)
{
	for (int k = piece->first; k < piece->first + piece->width; k++, sums += s->loops->lanes) {
		const float *in = x + s->columns.offset[k] * s->d->x.column;

		if (piece->inner == piece->inner_end) {
			add_border(s, dy, in, s->tap_first[k], s->tap_end[k], sums);
			continue;
		}
		add_border(s, dy, in, s->tap_first[k], piece->inner, sums);
		add_border(s, dy, in, piece->inner_end, s->tap_end[k], sums);
	}
}

/* Adds the products of a row of dy with the window's rows from `row` to `end`. `x` is that of the
 * sample and the unit. */
static void add_piece(const struct weights_sum *s, const struct piece *piece, const float *dy,
		      const float *x, int64_t at, int row, int end, float *sums)
{
	const struct depthwise *d = s->d;
	int64_t sums_row = d->kernel[1] * s->loops->lanes;
	struct depthwise_products p = {.dy = dy + piece->inner * d->y.column,
				       .dy_step = d->y.column,
				       .x_step = d->strides[1] * d->x.column,
				       .x_row = d->dilations[0] * d->x.row,
				       .tap_step = d->dilations[1] * d->x.column,
				       .count = piece->inner_end - piece->inner,
				       .sums_row = sums_row};

	for (int rows; row < end; row += rows) {
		const float *in = x + (at * s->rows.in_step + s->rows.offset[row]) * d->x.row;
		float *to = sums + row * sums_row + piece->first * s->loops->lanes;

		rows = (int)least(depthwise_rows[piece->kind], end - row);
		p.x = in + piece->inner * p.x_step + s->columns.offset[piece->first] * d->x.column;
		p.sums = to;
		if (p.count > 0)
			s->loops->products[piece->kind][rows - 1](&p);
		for (int r = 0; r < rows; r++)
			add_borders(s, piece, dy, in + r * p.x_row, to + r * sums_row);
	}
}

static void sum_item(const struct weights_sum *s, int64_t channel, int64_t line, int64_t end,
		     const float *x, const float *dy, float *sums)
{
	const struct depthwise *d = s->d;
	float *total = sums + d->kernel[0] * d->kernel[1] * s->loops->lanes;

	memset(sums, 0, (size_t)item_floats(d, s->loops) * sizeof(float));
	for (; line < end; line++) {
		int64_t sample = line / d->out[0], at = line % d->out[0];
		const float *in = x + sample * d->x.sample + channel_offset(&d->x, channel);
		const float *row =
			dy + sample * d->y.sample + at * d->y.row + channel_offset(&d->y, channel);
		int first = 0, last = (int)d->kernel[0];

		while (first < last && !reads(&s->rows, at, first))
			first++;
		while (last > first && !reads(&s->rows, at, last - 1))
			last--;
		for (int i = 0; i < s->piece_count; i++)
			add_piece(s, &s->pieces[i], row, in, at, first, last, sums);
		if (s->bias)
			s->loops->total(row, d->y.column, d->out[1], total);
	}
}

void depthwise_weights(const struct depthwise *d, const struct depthwise_loops *loops, size_t parts,
		       float *partial, const float *x, const float *dy, bool bias, size_t first,
		       size_t end)
{
	struct weights_sum s = {.d = d, .loops = loops, .bias = bias};
	int64_t lines = d->batch * d->out[0], count = (int64_t)parts;

	forward_phase(d, 0, &s.rows);
	forward_phase(d, 1, &s.columns);
	s.piece_count = cut_window(d, &s.columns, s.pieces);
	for (int k = 0; k < (int)d->kernel[1]; k++) {
		struct phase tap = part_of(&s.columns, k, 1);

		s.tap_first[k] = tap.inner;
		s.tap_end[k] = tap.inner_end;
	}
	for (int64_t item = (int64_t)first; item < (int64_t)end; item++) {
		int64_t part = item % count;

		sum_item(&s, first_channel(d, loops, item / count), lines * part / count,
			 lines * (part + 1) / count, x, dy, partial + item * item_floats(d, loops));
	}
}

/* Stores the channels of a unit from `skip` on; the channels before belong to another unit. */
static void store(const struct depthwise *d, int lanes, int64_t channel, int64_t skip, float *dw,
		  float *db, const float *sums)
{
	int64_t end = least(lanes, d->channels - channel), at[DEPTHWISE_LANES_MAX];

	for (int64_t i = skip; i < end; i++)
		at[i] = weight_offset(d, channel + i);
	for (int64_t row = 0; row < d->kernel[0]; row++) {
		for (int64_t column = 0; column < d->kernel[1]; column++, sums += lanes) {
			float *tap = dw + row * d->w.row + column * d->w.column;

			for (int64_t i = skip; i < end; i++)
				tap[at[i]] = sums[i];
		}
	}
	for (int64_t i = skip; db && i < end; i++)
		db[channel + i] = sums[i];
}

void depthwise_weights_sum(const struct depthwise *d, const struct depthwise_loops *loops,
			   size_t parts, float *dw, float *db, const float *partial, size_t first,
			   size_t end)
{
	float sums[(TAPS_MAX + 1) * DEPTHWISE_LANES_MAX];
	int64_t floats = item_floats(d, loops);

	for (size_t unit = first; unit < end; unit++) {
		const float *item = partial + (int64_t)(unit * parts) * floats;
		int64_t channel = first_channel(d, loops, (int64_t)unit);

		memcpy(sums, item, (size_t)floats * sizeof(float));
		for (size_t part = 1; part < parts; part++) {
			item += floats;
			for (int64_t i = 0; i < floats; i++)
				sums[i] += item[i];
		}
		store(d, loops->lanes, channel, (int64_t)unit * loops->lanes - channel, dw, db,
		      sums);
	}
}
