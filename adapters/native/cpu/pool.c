/* Pooling, and prony's own gradient of max pooling. */
#include "adapters/native/cpu/cpu.h"
#include "adapters/native/cpu/kernels/max_pool.h"

struct geometry {
	dnnl_alg_kind_t algorithm;
	dnnl_dims_t y;
	struct sliding_window window;
};

static struct geometry geometry_make(const struct lowering *l, const struct node *node)
{
	const int64_t *x = l->graph->values[node->inputs[0]].shape.dims;
	const int64_t *y = l->graph->values[node->outputs[0]].shape.dims;
	struct geometry g = {.y = {y[0], y[1], y[2], y[3]}};

	g.algorithm = node->op == OP_MAX_POOL		   ? dnnl_pooling_max
		      : node->attributes.count_include_pad ? dnnl_pooling_avg_include_padding
							   : dnnl_pooling_avg_exclude_padding;
	if (node->op == OP_GLOBAL_AVERAGE_POOL)
		g.window = (struct sliding_window){.kernel = {x[2], x[3]}, .strides = {1, 1}};
	else
		g.window = cpu_window(l, node);
	return g;
}

/* Creates the forward primitive in the input's layout, and its backward primitive over the same two
 * layouts. */
static enum prony_status create(struct lowering *l, int n, const struct geometry *g,
				struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct sliding_window *w = &g->window;
	struct node_state *state = &l->nodes[n];
	const_dnnl_memory_desc_t src = cpu_desc(l, state->src);
	const_dnnl_primitive_attr_t attributes = cpu_attributes(l, NULL);
	dnnl_status_t created = dnn->pooling_forward_primitive_desc_create(
		&state->work->forward, dnn->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, g->algorithm, src,
		cpu_any(l, lower_layout(l, state->src)->type, 4, g->y), w->strides, w->kernel,
		w->dilations, w->before, w->after, attributes);

	if (created == dnnl_success && l->training)
		created = dnn->pooling_backward_primitive_desc_create(
			&state->work->backward_data, dnn->engine, g->algorithm, src,
			dnn->primitive_desc_query_md(state->work->forward, dnnl_query_dst_md, 0),
			w->strides, w->kernel, w->dilations, w->before, w->after,
			state->work->forward, attributes);
	return onednn_check(created, "pooling", l->graph->nodes[n].name, err);
}

enum prony_status cpu_pool(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct geometry g = geometry_make(l, node);
	enum prony_status status =
		lower_activation(l, node->inputs[0], node->name, &state->src, err);

	state->side = OPERAND_NONE;
	if (status == PRONY_OK)
		status = create(l, n, &g, err);
	if (status == PRONY_OK)
		status = cpu_operand(
			l, dnn->primitive_desc_query_md(state->work->forward, dnnl_query_dst_md, 0),
			&state->dst, err);
	if (status == PRONY_OK)
		status = cpu_workspace(l, state->work->forward, &state->side, err);
	if (status == PRONY_OK)
		status =
			cpu_primitive(l, node->name, "forward", state->work->forward,
				      (const int[]){DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE},
				      (const int[]){state->src, state->dst, state->side}, 3, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = state->dst;
	return status;
}

/* Arguments of the command for prony's own gradient, in the program's arena. */
struct gradient {
	struct max_pool pool;
	max_pool_gradient *run;
	size_t rows; /* rows of the input, in all planes */
};

struct share {
	const struct gradient *gradient;
	void *dx;
	const void *dy, *chosen;
};

static void share_gradient(void *data, size_t first, size_t end)
{
	const struct share *s = data;

	s->gradient->run(&s->gradient->pool, s->dx, s->dy, s->chosen, first, end);
}

/* Operands: dx, dy, workspace. */
static void run_gradient(struct program *program, const struct command *command)
{
	struct share s = {.gradient = command->work->detail,
			  .dx = cpu_data(program, command, 0),
			  .dy = cpu_data(program, command, 1),
			  .chosen = cpu_data(program, command, 2)};

	onednn_split(&program->device->dnn, cpu_threads(program, command->work->elements),
		     s.gradient->rows, share_gradient, &s);
}

/* The number of adjacent channels at each point of four dimensions: a block of them, or all. 0 for
 * other layouts. */
static int64_t point_channels(const struct layout *layout)
{
	struct layout last = layout_channels_last(layout->type, layout->rank, layout->dims);

	if (layout->rank != 4)
		return 0;
	if (!layout->blob)
		return layout_same_strides(layout, &last) ? layout->dims[1] : 0;
	return layout->block == 8 || layout->block == 16 ? layout->block : 0;
}

/* Prony's own gradient, or NULL if it does not support the layouts, the window or the workspace, or
 * is not faster: in bf16 the library needs 0.65 to 0.85 of prony's time for 3x3 windows with stride
 * 2. */
static struct gradient *make_gradient(struct lowering *l, const struct node *forward,
				      const struct node_state *state)
{
	const struct attributes *a = &forward->attributes;
	const int64_t *x = lower_layout(l, state->src)->dims;
	const int64_t *y = l->graph->values[forward->outputs[0]].shape.dims;
	int64_t channels = point_channels(lower_layout(l, state->src));
	struct max_pool_span *spans[2];
	struct gradient *gradient;

	if (forward->op != OP_MAX_POOL || state->side == OPERAND_NONE || channels == 0 ||
	    a->dilations[0] != 1 || a->dilations[1] != 1 ||
	    (l->data == DTYPE_BF16 && (a->strides[0] > 1 || a->strides[1] > 1)) ||
	    channels != point_channels(lower_layout(l, state->dst)) ||
	    lower_layout(l, state->side)->type != DTYPE_U8 ||
	    channels != point_channels(lower_layout(l, state->side)))
		return NULL;
	for (int i = 0; i < 2; i++) {
		spans[i] = arena_array(&l->program->arena, (size_t)x[2 + i],
				       sizeof(struct max_pool_span));
		max_pool_spans(x[2 + i], y[2 + i], a->kernel[i], a->strides[i], a->pads[i],
			       spans[i]);
	}
	gradient = arena_alloc(&l->program->arena, sizeof(*gradient));
	*gradient = (struct gradient){
		.pool = {.in = {x[2], x[3]},
			 .out = {y[2], y[3]},
			 .strides = {a->strides[0], a->strides[1]},
			 .channels = channels,
			 .kernel_width = a->kernel[1],
			 .rows = spans[0],
			 .columns = spans[1]},
		.run = max_pool_pick(channels, lower_layout(l, state->src)->type == DTYPE_BF16,
				     instruction_set_best()),
		.rows = layout_elements(lower_layout(l, state->src)) / (size_t)(x[3] * channels),
	};
	max_pool_find_inner(&gradient->pool, a->pads[1]);
	return gradient;
}

enum prony_status cpu_pool_grad(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct node_state *state = &l->nodes[node->differentiates];
	const_dnnl_primitive_desc_t pd = state->work->backward_data;
	const struct gradient *own = make_gradient(l, forward, state);
	int dy, dx;
	enum prony_status status = cpu_as(
		l, l->values[node->inputs[0]].operand,
		dnn->primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0), node->name, &dy, err);

	if (status == PRONY_OK)
		status = cpu_operand(l, dnn->primitive_desc_query_md(pd, dnnl_query_diff_src_md, 0),
				     &dx, err);
	if (status == PRONY_OK && own)
		cpu_kernel(l, forward->name, "gradient", run_gradient,
			   (const int[]){dx, dy, state->side}, 3)
			->detail = own;
	else if (status == PRONY_OK)
		status = cpu_primitive(
			l, forward->name, "gradient", pd,
			(const int[]){DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WORKSPACE},
			(const int[]){dx, dy, state->side}, 3, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = dx;
	return status;
}
