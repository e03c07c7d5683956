/* Matrix products of few rows, in evaluation. Their time is the time to read the weights from
 * memory: a plain loop on two threads reads the 151 MB of 9216 x 4096 in 4.5 ms. With 8 rows oneDNN
 * 3.2 takes 12 ms in its general gemm and 6.0 to 6.5 ms in its blocked kernels, and prony's loop
 * 5.2 ms. With 12 rows of 4096 x 4096 these times are 3.5, 4.6 and 2.0 ms. With 16 rows prony's
 * loop is no faster. */
#include "adapters/native/cpu/kernels/few_rows_gemm.h"

#include "adapters/native/cpu/cpu.h"

/* From this size on the weights do not stay in the caches from step to step. If they do, the
 * library's code is faster: by a tenth with 8 rows, by up to a third with one (8 MB). */
#define FEW_ROWS_BYTES ((int64_t)4 << 20)

/* The choice of threads counts elements: see depthwise.c. */
#define MACS_OF_AN_ELEMENT 8

/* Arguments of the command, in the program's arena. */
struct layer {
	struct few_rows s;
	const struct few_rows_loops *loops;
};

struct share {
	const struct layer *layer;
	float *y, *packed;
	const float *x, *w, *bias;
};

static void share_pack(void *data, size_t first, size_t end)
{
	const struct share *s = data;

	few_rows_pack(&s->layer->s, s->layer->loops, s->packed, s->x, first, end);
}

static void share_product(void *data, size_t first, size_t end)
{
	const struct share *s = data;

	few_rows_product(&s->layer->s, s->layer->loops, s->y, s->packed, s->w, s->bias, first, end);
}

/* Operands: y, packed rows, x, w and optionally the bias. */
static void run(struct program *program, const struct command *command)
{
	const struct layer *layer = command->work->detail;
	struct share share = {.layer = layer,
			      .y = cpu_data(program, command, 0),
			      .packed = cpu_data(program, command, 1),
			      .x = cpu_data(program, command, 2),
			      .w = cpu_data(program, command, 3),
			      .bias = cpu_optional(program, command, 4)};
	int64_t block = few_rows_block(layer->loops);
	int threads = cpu_threads(program, command->work->elements);

	onednn_split(&program->device->dnn, threads, (size_t)(layer->s.inner / layer->s.x.points),
		     share_pack, &share);
	onednn_split(&program->device->dnn, threads,
		     (size_t)((layer->s.outputs + block - 1) / block), share_product, &share);
}

/* Describes the position of a row's elements; false for layouts that the loop does not support. */
static bool describe(const struct layout *layout, struct few_rows_source *out)
{
	const int64_t *dims = layout->dims, *strides = layout->strides;
	struct few_rows_source x = {.points = 1};
	bool blocked = layout->blob != NULL;

	if (layout->rank < 2 || (blocked && layout->block == 0))
		return false;
	for (int i = layout->rank - 1; i >= 2; i--) {
		if (dims[i] == 1)
			continue;
		if (x.points == 1)
			x.point_stride = strides[i];
		else if (strides[i] != x.point_stride * x.points)
			return false;
		x.points *= dims[i];
	}
	x.row_stride = strides[0];
	x.block = blocked ? layout->block : dims[1];
	x.block_stride = blocked ? strides[1] : 0;
	x.channel_stride = blocked ? 1 : strides[1];
	*out = x;
	return true;
}

bool cpu_is_few_rows(const struct lowering *l, int n)
{
	const struct node *node = &l->graph->nodes[n];
	const int64_t *w = l->graph->values[node->inputs[1]].shape.dims;

	return !l->training && !lower_weights_are_shared(l, n) && l->data == DTYPE_F32 &&
	       l->graph->values[node->outputs[0]].shape.dims[0] <= FEW_ROWS_ROWS_MAX &&
	       w[0] * w[1] * (int64_t)sizeof(float) >= FEW_ROWS_BYTES;
}

/* The source in a layout that the loop supports. */
static enum prony_status choose_source(struct lowering *l, int n, struct layer *layer,
				       struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	int *src = &l->nodes[n].src;
	struct layout rows = layout_row_major(DTYPE_F32, shape->rank, shape->dims);
	enum prony_status status;

	if (describe(lower_layout(l, *src), &layer->s.x))
		return PRONY_OK;
	status = lower_as(l, *src, &rows, node->name, src, err);
	if (status == PRONY_OK && !describe(lower_layout(l, *src), &layer->s.x))
		return error_set(err, PRONY_INTERNAL, "unknown layout of a product of few rows");
	return status;
}

/* Declares the weights: in memory in the loop's layout, outside in the graph's. */
static enum prony_status declare_weights(struct lowering *l, int n, const struct layer *layer,
					 struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const int64_t dims[] = {layer->s.outputs, layer->s.inner, 1, 1};
	bool transposed = node->attributes.trans_b;
	const int64_t strides[] = {transposed ? layer->s.inner : 1,
				   transposed ? 1 : layer->s.outputs, 1, 1};
	int64_t block = few_rows_block(layer->loops);
	dnnl_format_tag_t tag = block == 32   ? dnnl_Abcd32a
				: block == 16 ? dnnl_Abcd16a
					      : dnnl_Abcd8a;
	struct layout outside = layout_strided(DTYPE_F32, 4, dims, strides);
	struct layout layout = cpu_tagged(l, DTYPE_F32, 4, dims, tag);

	return lower_parameter(l, node->inputs[1], &layout, &outside, err);
}

static enum prony_status append(struct lowering *l, int n, const struct layer *layer,
				const struct chain *chain, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	const int64_t y[] = {layer->s.rows, layer->s.outputs};
	struct work *work;
	enum prony_status status = declare_weights(l, n, layer, err);
	int bias = OPERAND_NONE, packed;

	if (status == PRONY_OK)
		status = lower_bias(l, n, chain, &bias, err);
	if (status == PRONY_OK)
		status = lower_new(l, DTYPE_F32, 2, y, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	packed = program_bytes(l->program,
			       few_rows_packed_floats(&layer->s, layer->loops) * sizeof(float));
	work = cpu_kernel(l, node->name, "forward", run,
			  (const int[]){state->dst, packed, state->src,
					lower_find_parameter(l, node->inputs[1])->operand, bias},
			  bias == OPERAND_NONE ? 4 : 5);
	work->elements =
		(size_t)(layer->s.rows * layer->s.inner * layer->s.outputs) / MACS_OF_AN_ELEMENT;
	work->detail = layer;
	state->work->detail = layer;
	return PRONY_OK;
}

enum prony_status cpu_few_rows(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const int64_t *y = l->graph->values[node->outputs[0]].shape.dims;
	const int64_t *w = l->graph->values[node->inputs[1]].shape.dims;
	struct layer *layer = arena_alloc(&l->program->arena, sizeof(*layer));
	struct chain chain = lower_chain(l, n, false, false);
	enum prony_status status;

	if (chain.count > 0) /* ReLU is the only function that the loop can also compute */
		chain.count = l->graph->nodes[chain.nodes[0]].op == OP_RELU;
	*layer = (struct layer){.s = {.rows = y[0],
				      .inner = w[0] * w[1] / y[1],
				      .outputs = y[1],
				      .relu = chain.count > 0},
				.loops = few_rows_pick(instruction_set_best())};
	status = choose_source(l, n, layer, err);
	if (status == PRONY_OK)
		status = append(l, n, layer, &chain, err);
	if (status != PRONY_OK)
		return status;
	l->macs += layer->s.rows * layer->s.inner * layer->s.outputs;
	l->values[node->outputs[0]].operand = l->nodes[n].dst;
	lower_chain_absorb(l, &chain, l->nodes[n].dst);
	cpu_note(l, n, chain.nodes, chain.count);
	return PRONY_OK;
}
