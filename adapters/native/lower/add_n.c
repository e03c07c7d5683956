#include <string.h>

#include "adapters/native/kernels/add_n.h"
#include "adapters/native/lower/lower.h"

/*
 * Sums. What backward adds up for a value with several readers comes as one Add after the other,
 * with parts of joined gradients before and the gradient of a ReLU behind: whoever reads such a sum
 * computes it, all terms in one pass, each read once where it is.
 */

/* Parts begin and end where a block of channels does, whatever the layout. */
#define CHANNELS_TOGETHER 16

/* Channels from `start` on of a value, or all of it. */
struct term {
	int value;
	int64_t start;
	bool part;
};

struct sum {
	struct term terms[SUM_TERMS_MAX];
	int operands[SUM_TERMS_MAX];
	int count, parts;
};

static bool adds_equals(const struct lowering *l, int n)
{
	const struct node *node = &l->graph->nodes[n];

	return node->op == OP_ADD && shape_equal(&l->graph->values[node->inputs[0]].shape,
						 &l->graph->values[node->inputs[1]].shape);
}

static bool takes_channels(const struct lowering *l, int n)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *part = &l->graph->values[node->outputs[0]].shape;

	return node->op == OP_SLICE && part->rank == 4 && node->attributes.axis == 1 &&
	       node->attributes.step == 1 && node->attributes.start % CHANNELS_TOGETHER == 0 &&
	       part->dims[1] % CHANNELS_TOGETHER == 0;
}

/* Whether node r can compute `value` on the way. */
static bool computes(const struct lowering *l, int r, int value)
{
	const struct node *node = &l->graph->nodes[r];

	if (l->nodes[r].absorbed)
		return false;
	return adds_equals(l, r) ||
	       (node->op == OP_RELU_GRAD && node->inputs[0] == value && node->inputs[1] != value);
}

/* Whether every reader of a value takes channels of it. */
static bool only_parts_read(const struct lowering *l, int n, int value)
{
	int found = 0;

	for (int i = n + 1; i < l->graph->node_count; i++) {
		const struct node *node = &l->graph->nodes[i];

		for (int k = 0; l->nodes[i].needed && k < node->input_count; k++) {
			if (node->inputs[k] != value)
				continue;
			if (!takes_channels(l, i))
				return false;
			found++;
		}
	}
	return found > 0 && found == l->values[value].uses;
}

/* Somebody wants to see it. */
static bool is_result(const struct lowering *l, const bool *gradients, int value)
{
	return value == l->graph->logits || value == l->graph->loss || gradients[value];
}

/*
 * How many terms the whole chain of additions has to which each node belongs. One that is longer
 * than a pass stays as it is: each step frees what it has added, where a pass would keep the joined
 * gradients of many layers (DenseNet) for the sake of some of their channels.
 */
static void measure_chains(const struct lowering *l, int *total)
{
	const struct graph *graph = l->graph;

	for (int n = graph->forward_count; n < graph->node_count; n++) {
		const struct node *node = &graph->nodes[n];

		total[n] = 1;
		for (int k = 0; adds_equals(l, n) && k < 2; k++) {
			int producer = graph->values[node->inputs[k]].producer;

			if (producer >= graph->forward_count && adds_equals(l, producer))
				total[n] += total[producer] - 1;
			total[n] += k == 0;
		}
	}
	for (int n = graph->node_count - 1; n >= graph->forward_count; n--) {
		int value = graph->nodes[n].outputs[0], reader;

		if (value == VALUE_NONE || l->values[value].uses != 1)
			continue;
		reader = l->values[value].reader;
		if (adds_equals(l, reader))
			total[n] = total[reader];
	}
}

/* How many terms the nodes have so far that read `value`, one of them with all of `count`: false
 * where that is too many for one. */
static bool pass_on(const struct lowering *l, int n, int value, int *terms)
{
	int reader = l->values[value].reader;

	if (l->values[value].uses == 1 && computes(l, reader, value)) {
		if (terms[reader] - 1 + terms[n] > SUM_TERMS_MAX)
			return false;
		terms[reader] += terms[n] - 1;
		return true;
	}
	if (!adds_equals(l, n) || !only_parts_read(l, n, value))
		return false;
	for (int i = n + 1; i < l->graph->node_count; i++) {
		if (l->nodes[i].needed && l->graph->nodes[i].inputs[0] == value)
			terms[i] = terms[n];
	}
	return true;
}

/* What a node that is computed later reads must last until then. */
static void extend_lives(struct lowering *l, int *last)
{
	const struct graph *graph = l->graph;

	for (int n = graph->node_count - 1; n >= graph->forward_count; n--) {
		const struct node *node = &graph->nodes[n];

		if (!l->nodes[n].deferred)
			last[n] = n;
		for (int k = 0; l->nodes[n].needed && k < node->input_count; k++) {
			int value = node->inputs[k], producer;
			struct value_state *class;

			if (value == VALUE_NONE)
				continue;
			class = &l->values[l->values[value].class];
			if (class->last_use < last[n])
				class->last_use = last[n];
			producer = graph->values[value].producer;
			if (producer >= 0 && last[producer] < last[n])
				last[producer] = last[n];
		}
	}
}

void lower_defer_sums(struct lowering *l)
{
	const struct graph *graph = l->graph;
	struct arena *arena = &l->program->arena;
	bool *gradients = arena_array(arena, (size_t)graph->value_count + 1, sizeof(bool));
	int *terms = arena_array(arena, (size_t)graph->node_count + 1, sizeof(int));
	int *last = arena_array(arena, (size_t)graph->node_count + 1, sizeof(int));
	int *total = arena_array(arena, (size_t)graph->node_count + 1, sizeof(int));

	for (int i = 0; i < graph->value_count; i++) {
		if (graph->values[i].kind == VALUE_PARAMETER && graph->values[i].gradient >= 0)
			gradients[graph->values[i].gradient] = true;
	}
	measure_chains(l, total);
	for (int n = graph->forward_count; n < graph->node_count; n++)
		terms[n] = graph->nodes[n].op == OP_ADD ? 2 : 1;
	for (int n = graph->forward_count; n < graph->node_count; n++) {
		int value = graph->nodes[n].outputs[0];

		if (l->nodes[n].needed && !l->nodes[n].absorbed && total[n] <= SUM_TERMS_MAX &&
		    (adds_equals(l, n) || takes_channels(l, n)) && !is_result(l, gradients, value))
			l->nodes[n].deferred = pass_on(l, n, value, terms);
	}
	extend_lives(l, last);
}

bool lower_is_deferred(const struct lowering *l, int value)
{
	int producer = l->graph->values[value].producer;

	return producer >= 0 && l->nodes[producer].deferred;
}

/* Adds what `value`, or channels of it, is the sum of. */
static void gather(const struct lowering *l, struct term term, struct sum *sum)
{
	const struct node *node;

	if (!lower_is_deferred(l, term.value)) {
		sum->terms[sum->count++] = term;
		sum->parts += term.part;
		return;
	}
	node = &l->graph->nodes[l->graph->values[term.value].producer];
	for (int k = 0; node->op == OP_ADD && k < 2; k++) {
		term.value = node->inputs[k];
		gather(l, term, sum);
	}
	if (node->op == OP_SLICE)
		gather(l,
		       (struct term){.value = node->inputs[0],
				     .start = term.start + node->attributes.start,
				     .part = true},
		       sum);
}

static struct sum sum_of(const struct lowering *l, const struct node *node)
{
	struct sum sum = {0};

	for (int k = 0; k < (node->op == OP_ADD ? 2 : 1); k++)
		gather(l,
		       (struct term){.value = node->inputs[k],
				     .start = node->op == OP_SLICE ? node->attributes.start : 0,
				     .part = node->op == OP_SLICE},
		       &sum);
	return sum;
}

/* The layout of the result: the mask's if there is one, else that of a term which is all of a
 * value, if there is one. */
static enum prony_status choose_layout(struct lowering *l, const struct node *node, int mask,
				       const struct sum *sum, dnnl_memory_desc_t *out,
				       struct error *err)
{
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	int model = sum->operands[0];

	for (int i = sum->count - 1; i >= 0; i--) {
		if (!sum->terms[i].part)
			model = sum->operands[i];
	}
	if (mask != OPERAND_NONE)
		model = mask;
	if (sum->parts > 0)
		return lower_like(l, l->program->operands[model].desc, shape->rank, shape->dims,
				  out, err);
	return onednn_check(l->dnn->memory_desc_clone(out, l->program->operands[model].desc),
			    "memory descriptor", node->name, err);
}

/* Brings every term into that layout, or into the one of which it is a part. */
static enum prony_status convert_terms(struct lowering *l, const struct node *node,
				       const_dnnl_memory_desc_t desc, struct sum *sum,
				       struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < sum->count; i++) {
		const struct shape *whole = &l->graph->values[sum->terms[i].value].shape;
		dnnl_memory_desc_t like = NULL;

		if (sum->terms[i].part)
			status = lower_like(l, desc, whole->rank, whole->dims, &like, err);
		if (status == PRONY_OK)
			status = lower_as(l, sum->operands[i], like ? like : desc, node->name,
					  &sum->operands[i], err);
		if (like)
			l->dnn->memory_desc_destroy(like);
	}
	return status;
}

/* Whether the result may go where term i is: nobody needs it any more, and nothing else that is
 * read lies there in another place. */
static bool may_hold_result(const struct lowering *l, int n, const struct sum *sum, int i, int mask)
{
	const struct program *program = l->program;
	int value = sum->terms[i].value, root = program_root(program, sum->operands[i]);

	if (sum->terms[i].part || (mask != OPERAND_NONE && program_root(program, mask) == root))
		return false;
	for (int k = 0; k < sum->count; k++) {
		if (sum->terms[k].part && program_root(program, sum->operands[k]) == root)
			return false;
	}
	return root != program_root(program, l->values[value].operand) ||
	       lower_may_overwrite(l, value, n);
}

static enum prony_status choose_result(struct lowering *l, int n, const struct sum *sum, int mask,
				       const_dnnl_memory_desc_t desc, int *out, struct error *err)
{
	for (int i = 0; i < sum->count; i++) {
		if (may_hold_result(l, n, sum, i, mask)) {
			*out = sum->operands[i];
			return PRONY_OK;
		}
	}
	return program_operand(l->program, desc, REGION_PLANNED, out, err);
}

/* Where channels from `start` on of an operand lie, in rows of those of `desc`. */
static void lay_out(const struct lowering *l, struct sum_rows *rows, int k, int operand,
		    int64_t start, const_dnnl_memory_desc_t desc)
{
	const dnnl_dims_t *strides = NULL;
	const int64_t *dims = lower_dims(l, desc);
	int blocks = 0;

	l->dnn->memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks);
	l->dnn->memory_desc_query(l->program->operands[operand].desc, dnnl_query_strides, &strides);
	if (blocks == 0 && (*strides)[1] == 1 && dims[2] * dims[3] > 1) { /* channels last */
		rows->inner = (size_t)dims[1];
		rows->strides[k] = (size_t)(*strides)[dims[3] > 1 ? 3 : 2];
		rows->starts[k] = (size_t)start;
	} else {
		rows->inner = (size_t)(dims[1] * dims[2] * dims[3]);
		rows->strides[k] = (size_t)(*strides)[0];
		rows->starts[k] = (size_t)(start * dims[2] * dims[3]);
	}
}

struct share {
	const struct sum_rows *rows;
	void *arrays[SUM_ARRAYS_MAX];
};

static void share_sum(void *data, size_t first, size_t end)
{
	const struct share *share = data;

	sum_rows_run(share->rows, share->arrays, first, end);
}

static void run_sum(struct program *program, const struct command *command)
{
	struct share share = {.rows = command->detail};

	for (int i = 0; i < command->operand_count; i++)
		share.arrays[i] = lower_data(program, command, i);
	onednn_parallel(program->dnn, lower_threads(program, command->elements), command->elements,
			share_sum, &share);
}

static void append(struct lowering *l, const struct node *node, const struct sum *sum, int y,
		   int mask, enum sum_then then)
{
	const_dnnl_memory_desc_t desc = l->program->operands[y].desc;
	struct sum_rows *rows = arena_alloc(&l->program->arena, sizeof(*rows));
	int operands[SUM_ARRAYS_MAX] = {y}, count = 1;
	struct command *command;

	*rows = (struct sum_rows){.then = then,
				  .count = sum->count,
				  .bf16 = lower_type(l, y) == dnnl_bf16,
				  .inner = lower_elements(l, y)};
	rows->loop = sum_pick(rows->bf16, instruction_set_best());
	for (int i = 0; i < sum->count; i++)
		operands[count++] = sum->operands[i];
	if (mask != OPERAND_NONE)
		operands[count++] = mask;
	for (int i = 0; sum->parts > 0 && i < count; i++) {
		bool term = i > 0 && i <= sum->count;

		lay_out(l, rows, i, operands[i], term ? sum->terms[i - 1].start : 0, desc);
	}
	command = lower_command(l, node->name, node->op == OP_SLICE ? "part" : "", run_sum,
				operands, count);
	command->detail = rows;
}

/* Its terms and, for the gradient of a ReLU, the mask. */
static enum prony_status find_operands(struct lowering *l, const struct node *node, struct sum *sum,
				       int *mask, struct error *err)
{
	enum prony_status status = PRONY_OK;

	*mask = OPERAND_NONE;
	if (node->op == OP_RELU_GRAD) {
		*mask = l->values[node->inputs[1]].operand;
		if (sum->parts > 0)
			status = lower_value(l, node->inputs[1], node->name, mask, err);
	}
	for (int i = 0; status == PRONY_OK && i < sum->count; i++)
		status = lower_value(l, sum->terms[i].value, node->name, &sum->operands[i], err);
	return status;
}

enum prony_status lower_sum(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct sum sum = sum_of(l, node);
	int relu = node->op == OP_ADD ? lower_fusable_relu(l, n) : -1, mask, y;
	enum sum_then then = relu >= 0			? SUM_RELU
			     : node->op == OP_RELU_GRAD ? SUM_RELU_GRAD
							: SUM_ONLY;
	dnnl_memory_desc_t desc = NULL;
	enum prony_status status = find_operands(l, node, &sum, &mask, err);

	if (status == PRONY_OK)
		status = choose_layout(l, node, mask, &sum, &desc, err);
	if (status == PRONY_OK)
		status = convert_terms(l, node, desc, &sum, err);
	if (status == PRONY_OK && mask != OPERAND_NONE)
		status = lower_as(l, mask, desc, node->name, &mask, err);
	if (status == PRONY_OK)
		status = choose_result(l, n, &sum, mask, desc, &y, err);
	if (desc)
		l->dnn->memory_desc_destroy(desc);
	if (status != PRONY_OK)
		return status;
	append(l, node, &sum, y, mask, then);
	l->values[node->outputs[0]].operand = y;
	if (relu >= 0) {
		l->values[l->graph->nodes[relu].outputs[0]].operand = y;
		l->nodes[relu].absorbed = true;
		l->nodes[relu].dst = y;
	}
	return PRONY_OK;
}
