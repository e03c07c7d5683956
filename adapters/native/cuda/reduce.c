/* Sums over dimensions: ReduceMean, and the gradient of broadcasting. */
#include "adapters/native/cuda/walk.h"

/* How many blocks or threads are worth while, and the least number of terms for each. */
enum { BLOCKS = 1024, BLOCK_TERMS = 2048, THREADS = 65536, THREAD_TERMS = 32, SPLITS_MAX = 256 };

/* Appends the kernel: a block (`rows`) or a thread for each part. */
static void append(struct lowering *l, const char *name, bool rows, int y, int x,
		   const struct cuda_reduction *r)
{
	int64_t parts = (int64_t)r->output_count * r->splits;
	enum dtype type = lower_layout(l, x)->type;
	struct work *work = rows ? cuda_blocks(l, name, "", "reduce_rows", type, parts,
					       cuda_threads(r->term_count / r->splits))
				 : cuda_kernel(l, name, "", "reduce_columns", type, parts);

	cuda_operand(l, work, y);
	cuda_operand(l, work, x);
	cuda_struct(l, work, r, sizeof(*r));
}

/* Fills the walks of the reduction; *rows: whether the terms are neighbours in memory. */
static void describe(const struct layout *x, const bool *reduced, struct cuda_reduction *r,
		     bool *rows)
{
	int order[TENSOR_MAX_RANK];

	r->output_count = r->term_count = 1;
	for (int i = 0; i < x->rank; i++) {
		if (reduced[i])
			r->term_count *= (int)x->dims[i];
		else
			r->output_count *= (int)x->dims[i];
		if (!reduced[i])
			walk_push(&r->outputs, x->strides[i], NULL, 0, x->dims[i]);
	}
	walk_order(x, order);
	*rows = false;
	for (int i = 0; i < x->rank; i++) {
		if (reduced[order[i]])
			walk_push(&r->terms, x->strides[order[i]], NULL, 0, x->dims[order[i]]);
		if (x->dims[order[i]] > 1)
			*rows = reduced[order[i]];
	}
}

static int parts_of(const struct cuda_reduction *r, bool rows)
{
	int wanted = (rows ? BLOCKS : THREADS) / r->output_count;
	int possible = r->term_count / (rows ? BLOCK_TERMS : THREAD_TERMS);
	int splits = wanted < possible ? wanted : possible;

	return splits < 1 ? 1 : splits > SPLITS_MAX ? SPLITS_MAX : splits;
}

/* Appends the fp32 sum of operand `x` over the dimensions in `reduced`, times `factor`; the result
 * is row-major in `shape`. */
static enum prony_status append_sum(struct lowering *l, int n, int x, const bool *reduced,
				    double factor, const struct shape *shape, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct cuda_reduction r = {.splits = 1, .factor = (float)factor}, sums = r;
	bool rows;
	int y, parts;
	enum prony_status status = walk_check(node, lower_layout(l, x), err);

	if (status == PRONY_OK)
		status = lower_new(l, DTYPE_F32, shape->rank, shape->dims, &y, err);
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = y;
	describe(lower_layout(l, x), reduced, &r, &rows);
	r.splits = parts_of(&r, rows);
	if (r.splits == 1) {
		append(l, node->name, rows, y, x, &r);
		return PRONY_OK;
	}
	status = lower_new(l, DTYPE_F32, 2, (const int64_t[]){r.splits, r.output_count}, &parts,
			   err);
	if (status != PRONY_OK)
		return status;
	r.factor = 1;
	append(l, node->name, rows, parts, x, &r);
	sums.output_count = r.output_count;
	sums.term_count = r.splits;
	walk_push(&sums.outputs, 1, NULL, 0, r.output_count);
	walk_push(&sums.terms, r.output_count, NULL, 0, r.splits);
	append(l, node->name, false, y, parts, &sums);
	return PRONY_OK;
}

enum prony_status cuda_mean(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *y = &l->graph->values[node->outputs[0]].shape;
	const struct int_list *over = &node->attributes.ints;
	bool reduced[TENSOR_MAX_RANK] = {false};
	double count = 1;
	int x;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < over->count; i++) {
		reduced[over->items[i]] = true;
		count *= (double)lower_layout(l, x)->dims[over->items[i]];
	}
	l->nodes[n].src = x;
	return append_sum(l, n, x, reduced, 1 / count, y, err);
}

enum prony_status cuda_broadcast_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *from = &l->graph->values[node->inputs[0]].shape;
	const struct shape *to = &l->graph->values[node->outputs[0]].shape;
	bool reduced[TENSOR_MAX_RANK] = {false};
	int lead = from->rank - to->rank, dy;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &dy, err);

	for (int i = 0; i < from->rank; i++)
		reduced[i] = i < lead || (to->dims[i - lead] == 1 && from->dims[i] != 1);
	return status == PRONY_OK ? append_sum(l, n, dy, reduced, 1, to, err) : status;
}
