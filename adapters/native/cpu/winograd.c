/* Convolutions of 3x3 windows in fp32, forward, and the gradients of their inputs, which are such
 * convolutions with flipped windows: rotated by 180 degrees, inputs and outputs exchanged. In
 * evaluation the windows do not change and are transformed when they are loaded; in training they
 * are transformed once a step for each of the two. oneDNN 3.2 has no such code. */
#include "adapters/native/cpu/kernels/winograd.h"

#include "adapters/native/cpu/cpu.h"

/* Limits below which the library is faster. With fewer channels the transformations cost more than
 * the multiplications that they save. With fewer tiles per thread, reading the windows costs more:
 * 16 values instead of 9. On small images much of the tiles is outside the image, while the library
 * skips multiplications of padding. On one thread this code takes 0.5 to 0.75 of oneDNN 3.2's time
 * in the cases where it is used, 0.88 with 16 channels, 0.95 on images of 5x5, 1.26 on images of
 * 3x3. */
#define CHANNELS_MIN 16
#define TILES_MIN 8
#define PRODUCTS_MAX 0.8 /* of those of the definition */
/* The limit if windows are transformed in each step, which takes as long as the products of 8 to 27
 * tiles. */
#define TILES_MIN_TRAINING 96

/* Arguments of a pass's commands, in the program's arena. */
struct pass {
	struct winograd c;
	const struct winograd_loops *loops;
	size_t shares;
	int windows; /* operand: transformed */
	bool flipped;
};

/* The passes of a layer: forward, and the gradient of its input. */
struct winograd_layer {
	struct pass forward, gradient;
};

struct share {
	const struct pass *pass;
	float *y, *scratch;
	const float *x, *u, *bias;
};

static void share_forward(void *data, size_t first, size_t end)
{
	const struct share *s = data;

	winograd_forward(&s->pass->c, s->pass->loops, s->y, s->x, s->u, s->bias, s->scratch,
			 s->pass->shares, first, end);
}

/* Operands: y, scratch, x, transformed windows and optionally the bias. */
static void run(struct program *program, const struct command *command)
{
	const struct pass *pass = command->work->detail;
	struct share s = {.pass = pass,
			  .y = cpu_data(program, command, 0),
			  .scratch = cpu_data(program, command, 1),
			  .x = cpu_data(program, command, 2),
			  .u = cpu_data(program, command, 3),
			  .bias = cpu_optional(program, command, 4)};

	onednn_split(&program->device->dnn, program->threads, pass->shares, share_forward, &s);
}

struct transformation {
	const struct pass *pass;
	float *u;
	const float *w;
};

static void share_weights(void *data, size_t first, size_t end)
{
	const struct transformation *t = data;

	winograd_weights(&t->pass->c, t->pass->loops, t->u, t->w, t->pass->flipped, first, end);
}

static void transform(struct program *program, const struct pass *pass, float *u, const float *w)
{
	struct transformation t = {.pass = pass, .u = u, .w = w};

	onednn_split(&program->device->dnn, program->threads,
		     winograd_panels(&pass->c, pass->loops), share_weights, &t);
}

/* Operands: w, transformed windows. */
static void run_transform(struct program *program, const struct command *command)
{
	transform(program, command->work->detail, cpu_data(program, command, 1),
		  cpu_data(program, command, 0));
}

static void prepare(struct program *program, const struct parameter *parameter)
{
	const struct pass *pass = parameter->prepare_detail;

	transform(program, pass, program->operands[pass->windows].data,
		  program->operands[parameter->operand].data);
}

static struct winograd geometry(const struct lowering *l, const struct node *node)
{
	const int64_t *x = l->graph->values[node->inputs[0]].shape.dims;
	const int64_t *y = l->graph->values[node->outputs[0]].shape.dims;

	return (struct winograd){.batch = x[0],
				 .channels = x[1],
				 .outputs = y[1],
				 .in = {x[2], x[3]},
				 .out = {y[2], y[3]},
				 .before = {node->attributes.pads[0], node->attributes.pads[1]}};
}

/* The number of elements of all windows, in one dimension, that are inside the image. */
static int64_t places_inside(int64_t in, int64_t out, int64_t before)
{
	int64_t inside = 0;

	for (int64_t i = 0; i < out; i++) {
		for (int64_t k = i - before; k < i - before + 3; k++)
			inside += k >= 0 && k < in;
	}
	return inside;
}

static bool saves(const struct winograd *c)
{
	double places = (double)places_inside(c->in[0], c->out[0], c->before[0]) *
			(double)places_inside(c->in[1], c->out[1], c->before[1]);

	return (double)(winograd_tiles(c) / c->batch * 16) <= PRODUCTS_MAX * places;
}

static bool is_faster(const struct lowering *l, const struct winograd *c)
{
	int64_t lanes = winograd_lanes(winograd_pick(instruction_set_best()));

	return c->channels % lanes == 0 && c->outputs % lanes == 0 && c->channels >= CHANNELS_MIN &&
	       c->outputs >= CHANNELS_MIN && winograd_tiles(c) >= TILES_MIN * l->program->threads &&
	       (!l->training || winograd_tiles(c) >= TILES_MIN_TRAINING) && saves(c);
}

bool cpu_is_winograd(const struct lowering *l, int n)
{
	const struct attributes *a = &l->graph->nodes[n].attributes;
	struct winograd c = geometry(l, &l->graph->nodes[n]);

	for (int i = 0; i < 2; i++) {
		if (a->kernel[i] != 3 || a->strides[i] != 1 || a->dilations[i] != 1)
			return false;
	}
	return l->graph->nodes[n].op == OP_CONV && winograd_pick(instruction_set_best()) &&
	       l->data == DTYPE_F32 && a->group == 1 && is_faster(l, &c);
}

/* The part of a chain that these loops can compute: a folded batch normalisation, a sum and a ReLU.
 */
static struct chain short_chain(const struct lowering *l, int n, bool allow_sum)
{
	struct chain chain = lower_chain(l, n, true, allow_sum);
	int keep = chain.batch_norm >= 0;
	bool sum = keep < chain.count && l->graph->nodes[chain.nodes[keep]].op == OP_ADD;

	keep += sum;
	if (keep < chain.count && l->graph->nodes[chain.nodes[keep]].op == OP_RELU)
		keep++;
	chain.count = keep;
	if (!sum)
		chain.sum = OPERAND_NONE;
	return chain;
}

struct layouts {
	struct layout x, y, w;
};

/* Whether the library's gradient of the weights uses the same layouts, so that it needs no
 * conversion. */
static bool same_layouts(const struct lowering *l, const_dnnl_primitive_desc_t backward_weights,
			 const struct layouts *layouts)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct {
		dnnl_query_t query;
		const struct layout *layout;
	} rows[] = {{dnnl_query_src_md, &layouts->x},
		    {dnnl_query_diff_dst_md, &layouts->y},
		    {dnnl_query_diff_weights_md, &layouts->w}};

	for (int i = 0; i < 3; i++) {
		struct layout of_library = cpu_layout(
			dnn, dnn->primitive_desc_query_md(backward_weights, rows[i].query, 0));

		if (!lower_same(l, &of_library, rows[i].layout))
			return false;
	}
	return true;
}

/* Blocks of channels, and of both dimensions of the windows, the same as the library uses for the
 * gradient of the weights. */
static struct layouts layouts_make(const struct lowering *l, const struct pass *pass)
{
	const struct winograd *c = &pass->c;
	const int64_t x[] = {c->batch, c->channels, c->in[0], c->in[1]};
	const int64_t y[] = {c->batch, c->outputs, c->out[0], c->out[1]};
	const int64_t w[] = {c->outputs, c->channels, 3, 3};
	bool wide = winograd_lanes(pass->loops) == 16;
	dnnl_format_tag_t images = wide ? dnnl_nChw16c : dnnl_nChw8c;

	return (struct layouts){
		.x = cpu_tagged(l, DTYPE_F32, 4, x, images),
		.y = cpu_tagged(l, DTYPE_F32, 4, y, images),
		.w = cpu_tagged(l, DTYPE_F32, 4, w, wide ? dnnl_OIhw16i16o : dnnl_OIhw8i8o)};
}

static struct pass pass_make(const struct lowering *l, struct winograd c, bool flipped)
{
	return (struct pass){.c = c,
			     .loops = winograd_pick(instruction_set_best()),
			     .shares = (size_t)l->program->threads,
			     .flipped = flipped};
}

/* Appends a transformation of the windows in each step. */
static void append_transform(struct lowering *l, int n, struct pass *pass, const char *what)
{
	const struct node *node = &l->graph->nodes[n];
	struct work *work;

	pass->windows = program_bytes(l->program, winograd_weight_floats(&pass->c, pass->loops) *
							  sizeof(float));
	work = cpu_kernel(
		l, node->name, what, run_transform,
		(const int[]){lower_find_parameter(l, node->inputs[1])->operand, pass->windows}, 2);
	work->detail = pass;
}

/* The same if no step changes the windows: once, when they are loaded. */
static enum prony_status lasting_transform(struct lowering *l, int n, struct pass *pass,
					   struct error *err)
{
	struct parameter *parameter = lower_find_parameter(l, l->graph->nodes[n].inputs[1]);
	int64_t floats = (int64_t)winograd_weight_floats(&pass->c, pass->loops);
	struct layout row = layout_row_major(DTYPE_F32, 1, &floats);

	parameter->prepare = prepare;
	parameter->prepare_detail = pass;
	return program_operand(l->program, &row, REGION_LASTING, &pass->windows, err);
}

/* Appends the convolution over transformed windows. */
static void append_pass(struct lowering *l, int n, const struct pass *pass, const char *what, int y,
			int x, int bias)
{
	size_t scratch =
		pass->shares * winograd_scratch_floats(&pass->c, pass->loops, pass->shares);
	struct work *work =
		cpu_kernel(l, l->graph->nodes[n].name, what, run,
			   (const int[]){y, program_bytes(l->program, scratch * sizeof(float)), x,
					 pass->windows, bias},
			   bias == OPERAND_NONE ? 4 : 5);

	work->detail = pass;
}

/* Declares windows, their transformed form and the bias. */
static enum prony_status declare(struct lowering *l, int n, struct winograd_layer *layer,
				 const struct layouts *layouts, const struct chain *chain,
				 int *bias, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *w = &l->graph->values[node->inputs[1]].shape;
	struct layout rows = layout_row_major(DTYPE_F32, w->rank, w->dims);
	enum prony_status status = lower_parameter(l, node->inputs[1], &layouts->w, &rows, err);

	if (status == PRONY_OK)
		status = lower_bias(l, n, chain, bias, err);
	if (status == PRONY_OK && !l->training)
		status = lasting_transform(l, n, &layer->forward, err);
	return status;
}

/* Appends the forward pass over agreed layouts. */
static enum prony_status forward(struct lowering *l, int n, struct winograd_layer *layer,
				 const struct layouts *layouts, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct pass *pass = &layer->forward;
	struct chain chain = short_chain(l, n, true);
	int bias = OPERAND_NONE;
	enum prony_status status;

	if (chain.sum != OPERAND_NONE && !lower_same(l, lower_layout(l, chain.sum), &layouts->y))
		chain = short_chain(l, n, false);
	pass->c.sum = chain.sum != OPERAND_NONE;
	pass->c.relu =
		chain.count > 0 && l->graph->nodes[chain.nodes[chain.count - 1]].op == OP_RELU;
	status = declare(l, n, layer, layouts, &chain, &bias, err);
	if (status == PRONY_OK)
		status = lower_as(l, state->src, &layouts->x, node->name, &state->src, err);
	state->dst = chain.sum;
	if (status == PRONY_OK && !pass->c.sum)
		status = program_operand(l->program, &layouts->y, REGION_PLANNED, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	if (l->training)
		append_transform(l, n, pass, "windows");
	append_pass(l, n, pass, "forward", state->dst, state->src, bias);
	state->work->winograd = layer;
	state->work->winograd_gradient = is_faster(l, &layer->gradient.c);
	l->values[node->outputs[0]].operand = state->dst;
	lower_chain_absorb(l, &chain, state->dst);
	cpu_note(l, n, chain.nodes, chain.count);
	return PRONY_OK;
}

enum prony_status cpu_winograd(struct lowering *l, int n, bool *done, struct error *err)
{
	struct node_state *state = &l->nodes[n];
	struct winograd_layer *layer = arena_alloc(&l->program->arena, sizeof(*layer));
	struct winograd c = geometry(l, &l->graph->nodes[n]), back = c;
	struct layouts layouts;

	back.channels = c.outputs;
	back.outputs = c.channels;
	for (int i = 0; i < 2; i++) {
		back.in[i] = c.out[i];
		back.out[i] = c.in[i];
		back.before[i] = 2 - c.before[i];
	}
	*layer = (struct winograd_layer){.forward = pass_make(l, c, false),
					 .gradient = pass_make(l, back, true)};
	layouts = layouts_make(l, &layer->forward);
	*done = !l->training || same_layouts(l, state->work->backward_weights, &layouts);
	return *done ? forward(l, n, layer, &layouts, err) : PRONY_OK;
}

void cpu_winograd_grad_input(struct lowering *l, int n, int dx, int dy)
{
	int forward = l->graph->nodes[n].differentiates;
	struct pass *pass = &l->nodes[forward].work->winograd->gradient;

	append_transform(l, forward, pass, "flipped windows");
	append_pass(l, forward, pass, "data gradient", dx, dy, OPERAND_NONE);
}
