#include "adapters/native/kernels/winograd.h"
#include "adapters/native/lower/lower_internal.h"

/*
 * Convolutions of 3x3 windows in evaluation, whose windows nobody changes: they are transformed
 * when they are loaded. oneDNN 3.2 has no such code for fp32.
 */

/*
 * Where it is not worth it: fewer channels, and the transformations cost more than the
 * multiplications that they save; fewer tiles of a thread, and reading the windows does, 16 values
 * instead of 9; images so small that much of their tiles lies outside, while the library leaves out
 * what multiplies padding (on one thread, against oneDNN 3.2: 0.5 to 0.75 of its time where it is
 * used, 0.88 with 16 channels, 0.95 on images of 5x5, 1.26 of 3x3).
 */
#define CHANNELS_LEAST 16
#define TILES_LEAST 8
#define PRODUCTS_MOST 0.8 /* of those of the definition */

/* What the command needs, in the program's arena. */
struct layer {
	struct winograd c;
	const struct winograd_loops *loops;
	size_t shares;
	int windows; /* operand: transformed */
};

struct share {
	const struct layer *layer;
	float *y, *scratch;
	const float *x, *u, *bias;
};

static void share_forward(void *data, size_t first, size_t end)
{
	const struct share *s = data;

	winograd_forward(&s->layer->c, s->layer->loops, s->y, s->x, s->u, s->bias, s->scratch,
			 s->layer->shares, first, end);
}

/* Operands: y, scratch, x, transformed windows and perhaps the bias. */
static void run(struct program *program, const struct command *command)
{
	const struct layer *layer = command->detail;
	struct share s = {.layer = layer,
			  .y = lower_data(program, command, 0),
			  .scratch = lower_data(program, command, 1),
			  .x = lower_data(program, command, 2),
			  .u = lower_data(program, command, 3)};

	if (command->operand_count > 4)
		s.bias = lower_data(program, command, 4);
	onednn_split(program->dnn, program->threads, layer->shares, share_forward, &s);
}

struct transformation {
	const struct layer *layer;
	float *u;
	const float *w;
};

static void share_weights(void *data, size_t first, size_t end)
{
	const struct transformation *t = data;

	winograd_weights(&t->layer->c, t->layer->loops, t->u, t->w, first, end);
}

static void prepare(struct program *program, const struct parameter *parameter)
{
	const struct layer *layer = parameter->prepare_detail;
	struct transformation t = {.layer = layer,
				   .u = program->operands[layer->windows].data,
				   .w = program->operands[parameter->operand].data};

	onednn_split(program->dnn, program->threads, winograd_panels(&layer->c, layer->loops),
		     share_weights, &t);
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

/* Places of windows in one dimension that lie in the image, over all outputs. */
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

	return (double)(winograd_tiles(c) / c->batch * 16) <= PRODUCTS_MOST * places;
}

bool lower_is_winograd(const struct lowering *l, int n)
{
	const struct node *node = &l->graph->nodes[n];
	const struct attributes *a = &node->attributes;
	const struct winograd_loops *loops = winograd_pick(instruction_set_best());
	struct winograd c = geometry(l, node);
	int64_t lanes;

	if (!loops || l->training || l->data != dnnl_f32 || a->group != 1)
		return false;
	for (int i = 0; i < 2; i++) {
		if (a->kernel[i] != 3 || a->strides[i] != 1 || a->dilations[i] != 1)
			return false;
	}
	lanes = winograd_lanes(loops);
	return c.channels % lanes == 0 && c.outputs % lanes == 0 && c.channels >= CHANNELS_LEAST &&
	       c.outputs >= CHANNELS_LEAST &&
	       winograd_tiles(&c) >= TILES_LEAST * l->program->threads && saves(&c);
}

/* Of what the layer could compute on the way: a folded batch normalisation, a sum and a ReLU. */
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

/* Blocks of channels for dims. */
static enum prony_status blocked(const struct lowering *l, const struct layer *layer,
				 const int64_t hw[2], int64_t channels, dnnl_memory_desc_t *out,
				 struct error *err)
{
	const dnnl_dims_t dims = {layer->c.batch, channels, hw[0], hw[1]};
	dnnl_format_tag_t tag = winograd_lanes(layer->loops) == 16 ? dnnl_nChw16c : dnnl_nChw8c;

	return onednn_check(l->dnn->memory_desc_create_with_tag(out, 4, dims, dnnl_f32, tag),
			    "memory descriptor", "blocks of channels", err);
}

/* Where the result goes, and what is computed on the way: a sum only onto what has its layout. */
static enum prony_status choose_result(struct lowering *l, int n, struct layer *layer,
				       struct chain *chain, struct error *err)
{
	struct node_state *state = &l->nodes[n];
	dnnl_memory_desc_t desc = NULL;
	enum prony_status status = blocked(l, layer, layer->c.out, layer->c.outputs, &desc, err);

	if (status != PRONY_OK)
		return status;
	*chain = short_chain(l, n, true);
	if (chain->sum != OPERAND_NONE &&
	    !l->dnn->memory_desc_equal(l->program->operands[chain->sum].desc, desc))
		*chain = short_chain(l, n, false);
	layer->c.sum = chain->sum != OPERAND_NONE;
	layer->c.relu =
		chain->count > 0 && l->graph->nodes[chain->nodes[chain->count - 1]].op == OP_RELU;
	state->dst = chain->sum;
	if (!layer->c.sum)
		status = program_operand(l->program, desc, REGION_PLANNED, &state->dst, err);
	l->dnn->memory_desc_destroy(desc);
	return status;
}

/* Declares the windows: as the graph has them, and transformed. */
static enum prony_status declare_weights(struct lowering *l, int n, struct layer *layer,
					 struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *w = &l->graph->values[node->inputs[1]].shape;
	int64_t floats = (int64_t)winograd_weight_floats(&layer->c, layer->loops);
	dnnl_memory_desc_t plain = NULL, row = NULL;
	struct parameter *parameter;
	enum prony_status status = lower_plain(l, dnnl_f32, w->rank, w->dims, &plain, err);

	if (status == PRONY_OK)
		status = lower_parameter(l, node->inputs[1], plain, plain, err);
	if (status == PRONY_OK)
		status = lower_plain(l, dnnl_f32, 1, &floats, &row, err);
	if (status == PRONY_OK)
		status = program_operand(l->program, row, REGION_LASTING, &layer->windows, err);
	if (row)
		l->dnn->memory_desc_destroy(row);
	if (status != PRONY_OK)
		return status;
	parameter = lower_find_parameter(l, node->inputs[1]);
	parameter->prepare = prepare;
	parameter->prepare_detail = layer;
	return PRONY_OK;
}

static enum prony_status append(struct lowering *l, int n, struct layer *layer,
				const struct chain *chain, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct command *command;
	enum prony_status status = declare_weights(l, n, layer, err);
	int bias = OPERAND_NONE, scratch;

	if (status == PRONY_OK)
		status = lower_weighted_bias(l, n, chain, &bias, err);
	if (status != PRONY_OK)
		return status;
	scratch = program_bytes(
		l->program,
		layer->shares * winograd_scratch_floats(&layer->c, layer->loops, layer->shares) *
			sizeof(float));
	command =
		lower_command(l, node->name, "forward", run,
			      (const int[]){state->dst, scratch, state->src, layer->windows, bias},
			      bias == OPERAND_NONE ? 4 : 5);
	command->detail = layer;
	state->detail = layer;
	state->own = "winograd";
	return PRONY_OK;
}

enum prony_status lower_winograd(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct layer *layer = arena_alloc(&l->program->arena, sizeof(*layer));
	dnnl_memory_desc_t x = NULL;
	struct chain chain;
	enum prony_status status;

	*layer = (struct layer){.c = geometry(l, node),
				.loops = winograd_pick(instruction_set_best()),
				.shares = (size_t)l->program->threads};
	status = blocked(l, layer, layer->c.in, layer->c.channels, &x, err);
	if (status == PRONY_OK)
		status = lower_as(l, state->src, x, node->name, &state->src, err);
	if (x)
		l->dnn->memory_desc_destroy(x);
	if (status == PRONY_OK)
		status = choose_result(l, n, layer, &chain, err);
	if (status == PRONY_OK)
		status = append(l, n, layer, &chain, err);
	if (status != PRONY_OK)
		return status;
	l->macs += layer->c.batch * layer->c.outputs * layer->c.out[0] * layer->c.out[1] *
		   layer->c.channels * 9;
	l->values[node->outputs[0]].operand = state->dst;
	lower_chain_absorb(l, &chain, state->dst);
	lower_note(l, n, chain.nodes, chain.count);
	return PRONY_OK;
}
