/* Depthwise convolutions. The library computes each pass for which it has depthwise code ("dw" in
 * the implementation's name), because prony's loops are no faster there. Its other code treats each
 * channel as a dense group of sixteen, with 256 times as many weights, or is reference code, up to
 * a thousand times slower (oneDNN 3.2: the gradient of the weights, of some windows with stride 2
 * and of 5x5 windows on small images). Prony's loops replace that code. All passes share one layout
 * of the weights, so that no conversion is needed, and use the layout of the input. */
#include "adapters/native/cpu/kernels/depthwise.h"

#include <string.h>

#include "adapters/native/cpu/cpu.h"

/* The choice of threads counts elements. This many multiplications take as long as one element of a
 * simple loop, which waits for memory. */
#define MACS_OF_AN_ELEMENT 8

/* Arguments of a layer's commands, in the program's arena. */
struct layer {
	struct depthwise d;
	const struct depthwise_loops *loops;
	size_t parts, work;
	bool relu;
};

struct share {
	const struct layer *layer;
	float *out, *bias, *partial;
	const float *a, *b; /* arrays that the pass reads */
};

static void share_forward(void *data, size_t first, size_t end)
{
	const struct share *s = data;

	depthwise_forward(&s->layer->d, s->layer->loops, s->out, s->a, s->b, s->bias,
			  s->layer->relu, first, end);
}

static void share_data(void *data, size_t first, size_t end)
{
	const struct share *s = data;

	depthwise_data(&s->layer->d, s->layer->loops, s->out, s->a, s->b, first, end);
}

static void share_weights(void *data, size_t first, size_t end)
{
	const struct share *s = data;

	depthwise_weights(&s->layer->d, s->layer->loops, s->layer->parts, s->partial, s->a, s->b,
			  s->bias != NULL, first, end);
}

static void share_sum(void *data, size_t first, size_t end)
{
	const struct share *s = data;

	depthwise_weights_sum(&s->layer->d, s->layer->loops, s->layer->parts, s->out, s->bias,
			      s->partial, first, end);
}

/* Operands: y, x, w and optionally the bias. */
static void run_forward(struct program *program, const struct command *command)
{
	const struct layer *layer = command->work->detail;
	struct share s = {.layer = layer,
			  .out = cpu_data(program, command, 0),
			  .a = cpu_data(program, command, 1),
			  .b = cpu_data(program, command, 2),
			  .bias = cpu_optional(program, command, 3)};

	onednn_split(&program->device->dnn, cpu_threads(program, command->work->elements),
		     (size_t)(layer->d.batch * layer->d.out[0]), share_forward, &s);
}

/* Operands: dx, dy, w. */
static void run_data(struct program *program, const struct command *command)
{
	const struct layer *layer = command->work->detail;
	struct share s = {.layer = layer,
			  .out = cpu_data(program, command, 0),
			  .a = cpu_data(program, command, 1),
			  .b = cpu_data(program, command, 2)};

	onednn_split(&program->device->dnn, cpu_threads(program, command->work->elements),
		     (size_t)(layer->d.batch * layer->d.in[0]), share_data, &s);
}

/* Operands: dw, partial sums, x, dy and optionally the bias's gradient. */
static void run_weights(struct program *program, const struct command *command)
{
	const struct layer *layer = command->work->detail;
	struct share s = {.layer = layer,
			  .out = cpu_data(program, command, 0),
			  .partial = cpu_data(program, command, 1),
			  .a = cpu_data(program, command, 2),
			  .b = cpu_data(program, command, 3),
			  .bias = cpu_optional(program, command, 4)};
	size_t units = depthwise_units(&layer->d, layer->loops);
	size_t taps = (size_t)(layer->d.kernel[0] * layer->d.kernel[1]);

	onednn_split(&program->device->dnn, cpu_threads(program, command->work->elements),
		     units * layer->parts, share_weights, &s);
	onednn_split(&program->device->dnn,
		     cpu_threads(program, (size_t)layer->d.channels * taps * layer->parts), units,
		     share_sum, &s);
}

/* Describes a layout for the loops; false for layouts other than channels last and blocks of
 * channels. */
static bool describe(const struct layout *layout, struct depthwise_layout *out, int64_t *present)
{
	const int64_t *strides = layout->strides;
	int64_t channels = layout->dims[1], block = layout->block;

	if (layout->rank != 4 || (layout->blob ? block == 0 : strides[1] != 1))
		return false;
	*present = layout->blob ? (channels + block - 1) / block * block : channels;
	*out = (struct depthwise_layout){.sample = strides[0],
					 .row = strides[2],
					 .column = strides[3],
					 .block = layout->blob ? block : channels,
					 .block_stride = layout->blob ? strides[1] : 0};
	return true;
}

static bool fits(const struct attributes *a)
{
	for (int i = 0; i < 2; i++) {
		if (a->kernel[i] > DEPTHWISE_SIDE_MAX || a->strides[i] > DEPTHWISE_SIDE_MAX)
			return false;
	}
	return true;
}

bool cpu_is_depthwise(const struct lowering *l, int n)
{
	const struct node *node = &l->graph->nodes[n];
	const struct attributes *a = &node->attributes;
	const int64_t *w = l->graph->values[node->inputs[1]].shape.dims;

	return node->op == OP_CONV && a->group > 1 && w[0] == a->group && w[1] == 1 && fits(a);
}

/* The layer's geometry, without layouts. */
static struct layer *make_layer(struct lowering *l, int n)
{
	const struct node *node = &l->graph->nodes[n];
	const struct attributes *a = &node->attributes;
	const int64_t *x = l->graph->values[node->inputs[0]].shape.dims;
	const int64_t *y = l->graph->values[node->outputs[0]].shape.dims;
	struct layer *layer = arena_alloc(&l->program->arena, sizeof(*layer));

	*layer = (struct layer){.d = {.batch = x[0], .channels = x[1]}};
	for (int i = 0; i < 2; i++) {
		layer->d.in[i] = x[2 + i];
		layer->d.out[i] = y[2 + i];
		layer->d.kernel[i] = a->kernel[i];
		layer->d.strides[i] = a->strides[i];
		layer->d.dilations[i] = a->dilations[i];
		layer->d.before[i] = a->pads[i];
	}
	layer->work = (size_t)(y[0] * y[1] * y[2] * y[3] * a->kernel[0] * a->kernel[1] /
			       MACS_OF_AN_ELEMENT);
	return layer;
}

/* The number of adjacent channels in the weights, the same as in the library's code. */
static int64_t weight_block(void)
{
	return instruction_set_best() == INSTRUCTIONS_AVX512 ? 16 : 8;
}

/* The layouts of a layer in memory. */
struct layouts {
	struct layout x, y, w;
};

/* Chooses the input's layout: its present one if the loops support it, else blocks, or channels
 * last if blocks would be mostly padding. */
static enum prony_status choose_input(struct lowering *l, struct layer *layer, int *src,
				      struct layout *out, struct error *err)
{
	struct depthwise *d = &layer->d;
	const int64_t dims[] = {d->batch, d->channels, d->in[0], d->in[1]};
	int64_t block = weight_block();
	bool last = d->channels * 3 < (d->channels + block - 1) / block * block * 2;
	enum prony_status status;

	*out = *lower_layout(l, *src);
	if (describe(out, &d->x, &d->present))
		return PRONY_OK;
	*out = cpu_tagged(l, DTYPE_F32, 4, dims,
			  last		? dnnl_nhwc
			  : block == 16 ? dnnl_nChw16c
					: dnnl_nChw8c);
	status = lower_as(l, *src, out, "depthwise", src, err);
	if (status == PRONY_OK && !describe(out, &d->x, &d->present))
		return error_set(err, PRONY_INTERNAL, "unknown input layout of a depthwise layer");
	return status;
}

static enum prony_status choose_layouts(struct lowering *l, struct layer *layer, int *src,
					struct layouts *out, struct error *err)
{
	struct depthwise *d = &layer->d;
	const int64_t w[] = {d->channels, 1, 1, d->kernel[0], d->kernel[1]};
	const int64_t y[] = {d->batch, d->channels, d->out[0], d->out[1]};
	int64_t block = weight_block(), present;
	enum prony_status status = choose_input(l, layer, src, &out->x, err);

	if (status != PRONY_OK)
		return status;
	out->y = lower_like(l, &out->x, DTYPE_F32, 4, y);
	out->w = cpu_tagged(l, DTYPE_F32, 5, w, block == 16 ? dnnl_Goihw16g : dnnl_Goihw8g);
	if (!describe(&out->y, &d->y, &present))
		return error_set(err, PRONY_INTERNAL, "unknown output layout of a depthwise layer");
	d->w.block = block;
	d->w.column = block;
	d->w.row = d->kernel[1] * block;
	d->w.block_stride = d->kernel[0] * d->w.row;
	return PRONY_OK;
}

/* Destroys a primitive descriptor whose implementation is not depthwise code. */
static void keep_special(const struct lowering *l, dnnl_status_t created, dnnl_primitive_desc_t *pd)
{
	const char *name = "";

	if (created == dnnl_success &&
	    cpu_onednn(l)->primitive_desc_query(*pd, dnnl_query_impl_info_str, 0, &name) ==
		    dnnl_success &&
	    strstr(name, "dw"))
		return;
	if (created == dnnl_success)
		cpu_onednn(l)->primitive_desc_destroy(*pd);
	*pd = NULL;
}

/* Creates the library's primitives; NULL for a pass without depthwise code. */
static void find_primitives(struct lowering *l, int n, const struct layer *layer,
			    const struct layouts *layouts, const struct chain *chain, bool has_bias)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct depthwise *d = &layer->d;
	struct node_work *work = l->nodes[n].work;
	const_dnnl_primitive_attr_t attributes = cpu_attributes(l, NULL);
	const_dnnl_memory_desc_t x = cpu_desc_of(l, &layouts->x), y = cpu_desc_of(l, &layouts->y);
	const_dnnl_memory_desc_t w = cpu_desc_of(l, &layouts->w);
	const_dnnl_memory_desc_t bias =
		has_bias ? cpu_row_major(l, DTYPE_F32, 1, &d->channels) : NULL;
	struct sliding_window g = cpu_window(l, &l->graph->nodes[n]);

	keep_special(l,
		     dnn->convolution_forward_primitive_desc_create(
			     &work->forward, dnn->engine,
			     l->training ? dnnl_forward_training : dnnl_forward_inference,
			     dnnl_convolution_direct, x, w, bias, y, g.strides, g.dilations,
			     g.before, g.after, cpu_attributes(l, chain)),
		     &work->forward);
	if (l->training && l->nodes[n].wants_dx)
		keep_special(l,
			     dnn->convolution_backward_data_primitive_desc_create(
				     &work->backward_data, dnn->engine, dnnl_convolution_direct, x,
				     w, y, g.strides, g.dilations, g.before, g.after, work->forward,
				     attributes),
			     &work->backward_data);
	if (l->training)
		keep_special(l,
			     dnn->convolution_backward_weights_primitive_desc_create(
				     &work->backward_weights, dnn->engine, dnnl_convolution_direct,
				     x, w, bias, y, g.strides, g.dilations, g.before, g.after,
				     work->forward, attributes),
			     &work->backward_weights);
}

/* Shortens a chain to the part that prony's own loops can compute: a folded batch normalisation and
 * a ReLU. */
static void shorten(const struct lowering *l, struct chain *chain)
{
	int keep = chain->batch_norm >= 0;

	if (keep < chain->count && l->graph->nodes[chain->nodes[keep]].op == OP_RELU)
		keep++;
	chain->count = keep;
	chain->sum = OPERAND_NONE;
}

static enum prony_status forward(struct lowering *l, int n, struct layer *layer,
				 const struct layouts *layouts, const struct chain *chain,
				 struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	const int64_t w[] = {layer->d.channels, 1, 1, layer->d.kernel[0], layer->d.kernel[1]};
	struct layout outside = layout_row_major(DTYPE_F32, 5, w);
	struct work *work;
	enum prony_status status;
	int weights, bias = OPERAND_NONE;

	status = lower_parameter(l, node->inputs[1], &layouts->w, &outside, err);
	if (status == PRONY_OK)
		status = lower_bias(l, n, chain, &bias, err);
	state->dst = chain->sum;
	if (status == PRONY_OK && chain->sum == OPERAND_NONE)
		status = program_operand(l->program, &layouts->y, REGION_PLANNED, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	weights = lower_find_parameter(l, node->inputs[1])->operand;
	if (state->work->forward)
		return cpu_primitive(
			l, node->name, "forward", state->work->forward,
			(const int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
			(const int[]){state->src, weights, bias, state->dst}, 4, err);
	layer->relu = chain->count > (chain->batch_norm >= 0);
	work = cpu_kernel(l, node->name, "forward", run_forward,
			  (const int[]){state->dst, state->src, weights, bias},
			  bias == OPERAND_NONE ? 3 : 4);
	work->elements = layer->work;
	work->detail = layer;
	return PRONY_OK;
}

enum prony_status cpu_depthwise(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct layer *layer = make_layer(l, n);
	struct chain chain = lower_chain(l, n, true, true);
	struct layouts layouts;
	bool has_bias =
		chain.batch_norm >= 0 || (node->input_count > 2 && node->inputs[2] != VALUE_NONE);
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK) /* the loops are fp32 */
		status = lower_typed(l, state->src, DTYPE_F32, node->name, &state->src, err);
	if (status == PRONY_OK)
		status = choose_layouts(l, layer, &state->src, &layouts, err);
	if (status != PRONY_OK)
		return status;
	if (chain.sum != OPERAND_NONE && !lower_same(l, lower_layout(l, chain.sum), &layouts.y))
		chain = lower_chain(l, n, true, false);
	find_primitives(l, n, layer, &layouts, &chain, has_bias);
	if (!state->work->forward)
		shorten(l, &chain);
	layer->loops = depthwise_pick(&layer->d, instruction_set_best());
	layer->parts = depthwise_parts(&layer->d, layer->loops, l->program->threads);
	l->macs += (int64_t)layer->work * MACS_OF_AN_ELEMENT;
	state->work->detail = layer;
	status = forward(l, n, layer, &layouts, &chain, err);
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = state->dst;
	lower_chain_absorb(l, &chain, state->dst);
	cpu_note(l, n, chain.nodes, chain.count);
	return PRONY_OK;
}

enum prony_status cpu_depthwise_grad_weight(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	const struct node_state *state = &l->nodes[node->differentiates];
	const struct layer *layer = state->work->detail;
	bool has_bias = node->output_count > 1 && node->outputs[1] != VALUE_NONE;
	struct work *work;
	int dy, partial;
	enum prony_status status = lower_as(l, l->values[node->inputs[1]].operand,
					    lower_layout(l, state->dst), node->name, &dy, err);

	if (status != PRONY_OK)
		return status;
	/* The data gradient, which follows, reads the same layout without another conversion. */
	l->values[node->inputs[1]].operand = dy;
	partial = program_bytes(l->program,
				depthwise_partial_bytes(&layer->d, layer->loops, layer->parts));
	work = cpu_kernel(
		l, forward->name, "weight gradient", run_weights,
		(const int[]){lower_find_parameter(l, forward->inputs[1])->gradient, partial,
			      state->src, dy,
			      has_bias ? lower_find_parameter(l, forward->inputs[2])->gradient : 0},
		has_bias ? 5 : 4);
	work->elements = layer->work;
	work->detail = layer;
	return PRONY_OK;
}

void cpu_depthwise_grad_input(struct lowering *l, int n, int dx, int dy)
{
	const struct node *forward = &l->graph->nodes[l->graph->nodes[n].differentiates];
	const struct layer *layer = l->nodes[l->graph->nodes[n].differentiates].work->detail;
	struct work *work = cpu_kernel(
		l, forward->name, "data gradient", run_data,
		(const int[]){dx, dy, lower_find_parameter(l, forward->inputs[1])->operand}, 3);

	work->elements = layer->work;
	work->detail = layer;
}
