/* Operators with two operands, with ONNX's broadcasting, means, and copies of boxes. */
#include <string.h>

#include "adapters/bf16.h"
#include "adapters/native/cpu/cpu.h"
#include "adapters/native/cpu/kernels/broadcast_reduce.h"

struct share {
	const void *work;
	void *out;
	const void *a, *b;
};

static void share_walk(void *data, size_t first, size_t end)
{
	const struct share *share = data;

	broadcast_walk_run(share->work, share->out, share->a, share->b, (int64_t)first,
			   (int64_t)end);
}

static void share_sum(void *data, size_t first, size_t end)
{
	const struct share *share = data;

	reduce_sum_run(share->work, share->out, share->a, (int64_t)first, (int64_t)end);
}

static void run_walk(struct program *program, const struct command *command)
{
	const struct broadcast_walk *walk = command->work->detail;
	struct share share = {.work = walk,
			      .out = cpu_data(program, command, 0),
			      .a = cpu_data(program, command, 1)};

	if (walk->op != BROADCAST_SCALE)
		share.b = cpu_data(program, command, 2);
	onednn_split(&program->device->dnn, cpu_threads(program, command->work->elements),
		     (size_t)broadcast_walk_rows(walk), share_walk, &share);
}

static void run_sum(struct program *program, const struct command *command)
{
	const struct reduce_sum *sum = command->work->detail;
	struct share share = {.work = sum,
			      .out = cpu_data(program, command, 0),
			      .a = cpu_data(program, command, 1)};

	onednn_split(&program->device->dnn, cpu_threads(program, command->work->elements),
		     (size_t)reduce_sum_rows(sum), share_sum, &share);
}

/* Strides of an unblocked operand along the dimensions of `shape`, aligned at their ends; 0 in
 * dimensions where it is repeated. */
static void broadcast_strides(const struct lowering *l, int operand, const struct shape *shape,
			      int64_t *out)
{
	const struct layout *layout = lower_layout(l, operand);
	int lead = shape->rank - layout->rank;

	for (int i = 0; i < shape->rank; i++) {
		bool repeated = i < lead || layout->dims[i - lead] == 1;

		out[i] = repeated ? 0 : layout->strides[i - lead];
	}
}

static bool is_whole(const struct lowering *l, int operand, const struct shape *shape)
{
	return layout_has_dims(lower_layout(l, operand), shape->rank, shape->dims);
}

static const struct shape *at_least_a_vector(const struct shape *shape, struct shape *room)
{
	*room = (struct shape){.rank = 1, .dims = {1}};
	return shape->rank == 0 ? room : shape;
}

void cpu_copy_box(struct lowering *l, const char *name, int rank, const int64_t *dims, int from,
		  const struct box *source, int to, const struct box *target)
{
	struct broadcast_walk *walk = arena_alloc(&l->program->arena, sizeof(*walk));

	*walk = (struct broadcast_walk){.op = BROADCAST_SCALE,
					.bf16 = lower_layout(l, from)->type == DTYPE_BF16,
					.factor = 1,
					.rank = rank,
					.a_start = source->start,
					.out_start = target->start};
	for (int i = 0; i < rank; i++) {
		walk->dims[i] = dims[i];
		walk->a[i] = source->strides[i];
		walk->out[i] = target->strides[i];
	}
	broadcast_walk_simplify(walk);
	cpu_kernel(l, name, "", run_walk, (const int[]){to, from}, 2)->detail = walk;
}

static void run_fill(struct program *program, const struct command *command)
{
	const struct work *work = command->work;
	void *out = cpu_data(program, command, 0);
	uint16_t low = bf16_from_float((float)work->ratio);

	if (work->ratio == 0)
		memset(out, 0, program->operands[command->operands[0]].bytes);
	else if (work->bf16)
		for (size_t i = 0; i < work->elements; i++)
			((uint16_t *)out)[i] = low;
	else
		for (size_t i = 0; i < work->elements; i++)
			((float *)out)[i] = (float)work->ratio;
}

void cpu_fill(struct lowering *l, const char *name, int operand, double value)
{
	cpu_kernel(l, name, "fill", run_fill, &operand, 1)->ratio = value;
}

static enum broadcast_op broadcast_op_of(enum op op)
{
	return op == OP_ADD   ? BROADCAST_ADD
	       : op == OP_SUB ? BROADCAST_SUB
	       : op == OP_MUL ? BROADCAST_MUL
			      : BROADCAST_DIV;
}

/* Any broadcasting, with prony's own loop. */
static enum prony_status walk_binary(struct lowering *l, int n, int a, int b, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct shape room;
	const struct shape *shape =
		at_least_a_vector(&l->graph->values[node->outputs[0]].shape, &room);
	struct broadcast_walk *walk = arena_alloc(&l->program->arena, sizeof(*walk));
	struct work *work;
	int y;
	enum prony_status status = lower_unblocked(l, a, node->name, &a, err);

	if (status == PRONY_OK)
		status = lower_unblocked(l, b, node->name, &b, err);
	if (status == PRONY_OK)
		status = lower_typed(l, b, lower_layout(l, a)->type, node->name, &b, err);
	if (status == PRONY_OK)
		status = lower_shaped_like(l, shape, is_whole(l, a, shape) ? a : b, &y, err);
	if (status != PRONY_OK)
		return status;
	*walk = (struct broadcast_walk){.op = broadcast_op_of(node->op),
					.bf16 = lower_layout(l, y)->type == DTYPE_BF16,
					.rank = shape->rank};
	for (int i = 0; i < shape->rank; i++)
		walk->dims[i] = shape->dims[i];
	broadcast_strides(l, y, shape, walk->out);
	broadcast_strides(l, a, shape, walk->a);
	broadcast_strides(l, b, shape, walk->b);
	broadcast_walk_simplify(walk);
	work = cpu_kernel(l, node->name, "", run_walk, (const int[]){y, a, b}, 3);
	work->detail = walk;
	l->values[node->outputs[0]].operand = y;
	return PRONY_OK;
}

/* Describes the library's primitive, followed by node `relu` (-1: none). b may be repeated, a may
 * not. PRONY_UNSUPPORTED if there is only reference code. */
static enum prony_status describe(const struct lowering *l, const struct node *node, int a, int b,
				  int relu, dnnl_primitive_desc_t *out, struct error *err)
{
	static const dnnl_alg_kind_t algorithms[] = {dnnl_binary_add, dnnl_binary_sub,
						     dnnl_binary_mul, dnnl_binary_div};
	const struct onednn *dnn = cpu_onednn(l);
	const_dnnl_memory_desc_t desc = cpu_desc(l, a);
	struct chain chain = {.nodes = {relu}, .count = relu >= 0};
	dnnl_primitive_desc_t pd = NULL;
	enum prony_status status =
		onednn_check(dnn->binary_primitive_desc_create(
				     &pd, dnn->engine, algorithms[broadcast_op_of(node->op)], desc,
				     cpu_desc(l, b), desc, cpu_attributes(l, &chain)),
			     "elementwise operator", node->name, err);

	if (status != PRONY_OK)
		return status;
	if (cpu_grade(l, pd, 1) == 0) {
		dnn->primitive_desc_destroy(pd);
		return error_set(err, PRONY_UNSUPPORTED, "only reference code");
	}
	*out = pd;
	return PRONY_OK;
}

/* Appends the library's primitive over a and b. It overwrites a, which the node read as `value`, if
 * that is allowed. */
static enum prony_status library_binary(struct lowering *l, int n, int value, int a, int b,
					struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int relu = lower_fusable_relu(l, n), y;
	dnnl_primitive_desc_t pd = NULL;
	enum prony_status status = describe(l, node, a, b, relu, &pd, err);

	if (status != PRONY_OK)
		return status;
	status = lower_result(l, n, value, a, &y, err);
	if (status == PRONY_OK)
		status = cpu_primitive(l, node->name, "", pd,
				       (const int[]){DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_DST},
				       (const int[]){a, b, y}, 3, err);
	cpu_onednn(l)->primitive_desc_destroy(pd);
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = y;
	if (relu >= 0)
		lower_absorb(l, relu, y);
	return PRONY_OK;
}

enum prony_status cpu_binary(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int inputs[] = {node->inputs[0], node->inputs[1]}, a, b;
	bool equal =
		shape_equal(&l->graph->values[inputs[0]].shape, &l->graph->values[inputs[1]].shape);
	enum prony_status status = lower_value(l, inputs[0], node->name, &a, err);

	if (status == PRONY_OK)
		status = lower_value(l, inputs[1], node->name, &b, err);
	if (status == PRONY_OK && equal)
		status = lower_as(l, b, lower_layout(l, a), node->name, &b, err);
	if (status != PRONY_OK)
		return status;
	if (equal && node->op == OP_ADD && !lower_may_overwrite(l, n, inputs[0], a) &&
	    lower_may_overwrite(l, n, inputs[1], b)) {
		int kept = a;

		a = b;
		b = kept;
		inputs[0] = node->inputs[1];
	}
	if (lower_layout(l, b)->rank == lower_layout(l, a)->rank &&
	    is_whole(l, a, &l->graph->values[node->outputs[0]].shape) &&
	    library_binary(l, n, inputs[0], a, b, NULL) == PRONY_OK)
		return PRONY_OK;
	return walk_binary(l, n, a, b, err);
}

enum prony_status cpu_expand(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	struct box source = {0}, target = {0};
	int x, y;
	enum prony_status status = lower_activation(l, node->inputs[0], node->name, &x, err);

	if (status == PRONY_OK)
		status = lower_unblocked(l, x, node->name, &x, err);
	if (status == PRONY_OK)
		status = lower_new(l, lower_layout(l, x)->type, shape->rank, shape->dims, &y, err);
	if (status != PRONY_OK)
		return status;
	broadcast_strides(l, x, shape, source.strides);
	broadcast_strides(l, y, shape, target.strides);
	cpu_copy_box(l, node->name, shape->rank, shape->dims, x, &source, y, &target);
	l->values[node->outputs[0]].operand = y;
	return PRONY_OK;
}

/* Appends the fp32 sum of operand `x` (unblocked) over the dimensions in `reduced`, times `factor`;
 * the result is row-major in `shape`. */
static enum prony_status append_sum(struct lowering *l, int n, int x, const bool *reduced,
				    double factor, const struct shape *shape, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct layout *layout = lower_layout(l, x);
	struct reduce_sum *sum = arena_alloc(&l->program->arena, sizeof(*sum));
	int64_t stride = 1;
	struct work *work;
	int y, rank = layout->rank;
	enum prony_status status = lower_new(l, DTYPE_F32, shape->rank, shape->dims, &y, err);

	if (status != PRONY_OK)
		return status;
	*sum = (struct reduce_sum){.factor = (float)factor,
				   .bf16 = lower_layout(l, x)->type == DTYPE_BF16};
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < rank; i++) {
			if (reduced[i] != (pass == 1))
				continue;
			sum->dims[sum->rank] = layout->dims[i];
			sum->a[sum->rank++] = layout->strides[i];
		}
		if (pass == 0)
			sum->kept = sum->rank;
	}
	for (int i = sum->kept - 1; i >= 0; i--) {
		sum->out[i] = stride;
		stride *= sum->dims[i];
	}
	reduce_sum_simplify(sum);
	work = cpu_kernel(l, node->name, "", run_sum, (const int[]){y, x}, 2);
	work->detail = sum;
	work->elements = layout_elements(lower_layout(l, x));
	l->values[node->outputs[0]].operand = y;
	return PRONY_OK;
}

/* Finds the axes of a ReduceMean; returns the number of input elements per output element. */
static int64_t reduced_axes(const struct node *node, const struct shape *x, bool *out)
{
	int64_t count = 1;

	for (int i = 0; i < x->rank; i++)
		out[i] = false;
	for (int i = 0; i < node->attributes.ints.count; i++) {
		out[node->attributes.ints.items[i]] = true;
		count *= x->dims[node->attributes.ints.items[i]];
	}
	return count;
}

enum prony_status cpu_mean(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	bool reduced[TENSOR_MAX_RANK];
	int64_t count = reduced_axes(node, &l->graph->values[node->inputs[0]].shape, reduced);
	int x;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status == PRONY_OK)
		status = lower_unblocked(l, x, node->name, &x, err);
	if (status != PRONY_OK)
		return status;
	l->nodes[n].src = x;
	return append_sum(l, n, x, reduced, 1.0 / (double)count,
			  &l->graph->values[node->outputs[0]].shape, err);
}

enum prony_status cpu_mean_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct shape room;
	const struct shape *x = at_least_a_vector(&l->graph->values[node->outputs[0]].shape, &room);
	struct broadcast_walk *walk = arena_alloc(&l->program->arena, sizeof(*walk));
	bool reduced[TENSOR_MAX_RANK];
	int64_t count = reduced_axes(node, x, reduced);
	int dy, dx, next = 0;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_unblocked(l, dy, node->name, &dy, err);
	if (status == PRONY_OK)
		status = lower_shaped_like(l, x, l->nodes[node->differentiates].src, &dx, err);
	if (status == PRONY_OK)
		status = lower_typed(l, dy, lower_layout(l, dx)->type, node->name, &dy, err);
	if (status != PRONY_OK)
		return status;
	*walk = (struct broadcast_walk){.op = BROADCAST_SCALE,
					.bf16 = lower_layout(l, dx)->type == DTYPE_BF16,
					.factor = (float)(1.0 / (double)count),
					.rank = x->rank};
	for (int i = 0; i < x->rank; i++) {
		walk->dims[i] = x->dims[i];
		if (!reduced[i])
			walk->a[i] = lower_layout(l, dy)->strides[next];
		if (!reduced[i] || node->attributes.keep_dims)
			next++;
	}
	broadcast_strides(l, dx, x, walk->out);
	broadcast_walk_simplify(walk);
	cpu_kernel(l, node->name, "", run_walk, (const int[]){dx, dy}, 2)->detail = walk;
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}

enum prony_status cpu_broadcast_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *from = &l->graph->values[node->inputs[0]].shape;
	const struct shape *to = &l->graph->values[node->outputs[0]].shape;
	bool reduced[TENSOR_MAX_RANK];
	int lead = from->rank - to->rank, dy;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_unblocked(l, dy, node->name, &dy, err);
	for (int i = 0; i < from->rank; i++)
		reduced[i] = i < lead || (to->dims[i - lead] == 1 && from->dims[i] != 1);
	return status == PRONY_OK ? append_sum(l, n, dy, reduced, 1, to, err) : status;
}
