/* Attention and its gradients by cuDNN, which stores no scores. */
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cuda/attention_plan.h"
#include "adapters/native/cuda/cuda.h"
#include "base/memory.h"

/* A plan of a device, made once for all layers of the same sizes. */
struct attention_planned {
	struct attention_planned *next;
	struct attention_problem problem;
	struct cudnn_plan plan;
};

/* Arguments of both commands, in the program's arena. */
struct layer {
	struct attention_problem problem;
	float scale;
	int arrays[ATTENTION_ARRAYS]; /* operands; OPERAND_NONE: not of this command */
	const struct attention_planned *planned;
};

static const int64_t plain_order[] = {0, 1, 2, 3};

void cuda_attention_close(struct device *device)
{
	while (device->attentions) {
		struct attention_planned *first = device->attentions;

		device->attentions = first->next;
		cudnn_plan_release(&device->dnn, &first->plan);
		free(first);
	}
}

static enum prony_status plan_of(struct lowering *l, const char *name,
				 const struct attention_problem *problem,
				 const struct attention_planned **out, struct error *err)
{
	struct device *device = l->program->device;
	struct attention_planned *made = device->attentions;
	enum prony_status status;

	while (made && memcmp(&made->problem, problem, sizeof(*problem)) != 0)
		made = made->next;
	*out = made;
	if (made)
		return PRONY_OK;
	made = memory_alloc(sizeof(*made));
	memcpy(&made->problem, problem, sizeof(*problem));
	status = attention_plan_make(&device->dnn, device->dnn_handle, NULL, problem, name,
				     &made->plan, err);
	if (status != PRONY_OK) {
		free(made);
		return status;
	}
	made->next = device->attentions;
	device->attentions = made;
	*out = made;
	return PRONY_OK;
}

/* The layout in which heads lie side by side: Transposes before and after are views of it. */
static void pack(struct attention_problem *p, int i)
{
	bool of_keys =
		i == ATTENTION_K || i == ATTENTION_V || i == ATTENTION_DK || i == ATTENTION_DV;
	int64_t row = p->heads * p->width, rows = of_keys ? p->keys : p->queries;
	const int64_t strides[] = {rows * row, p->width, row, 1};

	memcpy(p->strides[i], strides, sizeof(strides));
}

static void describe(const struct lowering *l, const struct fused_attention *a,
		     struct attention_problem *p)
{
	const int64_t *q = l->graph->values[a->found.q].shape.dims;

	memset(p, 0, sizeof(*p));
	p->samples = q[0];
	p->heads = q[1];
	p->queries = q[2];
	p->keys = l->graph->values[a->found.v].shape.dims[2];
	p->width = q[3];
	p->type = l->data;
	p->causal = a->found.mask != VALUE_NONE;
	p->stats = a->gradient >= 0;
	if (l->training && l->recipe->dropout && a->found.dropout >= 0)
		p->ratio = l->graph->nodes[a->found.dropout].attributes.ratio;
	for (int i = 0; i < ATTENTION_TENSORS; i++)
		pack(p, i);
}

static const float *numbers(const struct lowering *l, int value)
{
	const struct tensor *tensor = tensor_find(l->weights, l->graph->values[value].name);

	return tensor ? tensor->data : NULL;
}

bool cuda_takes_attention(struct lowering *l, struct fused_attention *a, const char **why)
{
	const struct attention *found = &a->found;
	const float *mask = found->mask == VALUE_NONE ? NULL : numbers(l, found->mask);
	const struct attention_planned *planned;
	struct attention_problem p;
	struct error ignored = ERROR_INIT;
	const char *reason = NULL;
	enum prony_status status;

	describe(l, a, &p);
	if (l->data == DTYPE_F32)
		reason = "cuDNN's attention takes fp16 and bf16 only";
	else if (p.causal && !(mask && attention_mask_is_causal(mask, p.queries, p.keys)))
		reason = "its mask is not causal";
	if (reason) {
		*why = reason;
		return false;
	}
	status = plan_of(l, "attention", &p, &planned, &ignored);
	p.gradient = true;
	if (status == PRONY_OK && a->gradient >= 0)
		status = plan_of(l, "attention", &p, &planned, &ignored);
	if (status != PRONY_OK)
		*why = "cuDNN has no plan for it";
	return status == PRONY_OK;
}

static float scale_of(const struct lowering *l, const struct attention *found)
{
	float scale = 1;

	for (int i = 0; i < found->scale_count; i++) {
		const struct node *node = &l->graph->nodes[found->scales[i]];
		float x = *numbers(
			l, node->inputs[attention_scale_operand(l->graph, found->scales[i])]);

		scale = node->op == OP_DIV ? scale / x : scale * x;
	}
	return scale;
}

static enum prony_status run(struct program *program, const struct command *command,
			     struct error *err)
{
	const struct layer *layer = command->work->detail;
	void *data[ATTENTION_ARRAYS];

	for (int i = 0; i < ATTENTION_ARRAYS; i++)
		data[i] = cuda_data(program, command, i);
	return attention_plan_run(&program->device->dnn, program->device->dnn_handle,
				  &layer->problem, &layer->planned->plan, layer->scale, data,
				  cuda_workspace_data(program, command, ATTENTION_ARRAYS),
				  command->name, err);
}

static void append(struct lowering *l, const char *name, const struct layer *layer)
{
	struct work *work =
		cuda_call(l, name, layer->problem.gradient ? "gradient" : "attention", run, layer);
	int64_t bytes = layer->planned->plan.workspace;

	for (int i = 0; i < ATTENTION_ARRAYS; i++)
		cuda_operand(l, work, layer->arrays[i]);
	cuda_operand(l, work, bytes > 0 ? cuda_workspace(l, (size_t)bytes) : OPERAND_NONE);
}

/* The packed layout of array i; `order`: its dimensions in the order N H T d. */
static struct layout packed_layout(const struct attention_problem *p, int i, const int64_t *order)
{
	bool of_keys =
		i == ATTENTION_K || i == ATTENTION_V || i == ATTENTION_DK || i == ATTENTION_DV;
	const int64_t sizes[] = {p->samples, p->heads, of_keys ? p->keys : p->queries, p->width};
	struct attention_problem packed = *p;
	int64_t dims[4], strides[4];

	pack(&packed, i);
	for (int k = 0; k < 4; k++) {
		dims[order[k]] = sizes[k];
		strides[order[k]] = packed.strides[i][k];
	}
	return layout_strided(p->type, 4, dims, strides);
}

/* Whether cuDNN reads the operand where it lies: addresses of rows are multiples of what it was
 * told. */
static bool is_aligned(const struct lowering *l, int operand, const int64_t *order)
{
	const struct layout *own = lower_layout(l, operand);
	int64_t unit = PLAN_ALIGNMENT / (int64_t)dtype_bytes(own->type);

	for (int k = 0; k < 3; k++) {
		if (own->strides[order[k]] % unit != 0)
			return false;
	}
	return own->strides[order[3]] == 1 &&
	       program_shift(l->program, operand) % PLAN_ALIGNMENT == 0;
}

/* Finds an array that is read: where it lies, or packed. */
static enum prony_status find_rows(struct lowering *l, struct layer *layer, int i, int value,
				   const int64_t *order, bool packed, const char *name,
				   struct error *err)
{
	struct layout rows = packed_layout(&layer->problem, i, order);
	int *operand = &layer->arrays[i];
	const struct layout *own;
	enum prony_status status = lower_activation(l, value, name, operand, err);

	if (status == PRONY_OK && (packed || !is_aligned(l, *operand, order)))
		status = program_shift(l->program, *operand) % PLAN_ALIGNMENT != 0
				 ? lower_part(l, *operand, &rows, name, operand, err)
				 : lower_as(l, *operand, &rows, name, operand, err);
	if (status != PRONY_OK)
		return status;
	own = lower_layout(l, *operand);
	for (int k = 0; k < 4; k++)
		layer->problem.strides[i][k] = own->strides[order[k]];
	return PRONY_OK;
}

static enum prony_status make_rows(struct lowering *l, struct layer *layer, int i, int value,
				   const int64_t *order, struct error *err)
{
	struct layout rows = packed_layout(&layer->problem, i, order);
	enum prony_status status =
		program_operand(l->program, &rows, REGION_PLANNED, &layer->arrays[i], err);

	l->values[value].operand = layer->arrays[i];
	return status;
}

/* Finds the arrays that are read and their plan; packs them if there is none for where they lie. */
static enum prony_status find_all(struct lowering *l, const struct fused_attention *a,
				  struct layer *layer, bool packed, struct error *err)
{
	const int values[] = {a->found.q, a->found.k, a->found.v};
	const char *name = l->graph->nodes[a->forward].name;
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && !layer->problem.gradient && i < 3; i++)
		status = find_rows(l, layer, i, values[i],
				   i == ATTENTION_K ? a->found.key_order : plain_order, packed,
				   name, err);
	if (status == PRONY_OK && layer->problem.gradient)
		status = find_rows(l, layer, ATTENTION_DY, a->dy, plain_order, packed, name, err);
	if (status == PRONY_OK)
		status = plan_of(l, name, &layer->problem, &layer->planned, err);
	if (status != PRONY_UNSUPPORTED || packed)
		return status;
	error_clear(err);
	return find_all(l, a, layer, true, err);
}

/* States that no command reads are loaded and read back like others. */
static enum prony_status declare(struct lowering *l, const struct attention *found,
				 struct error *err)
{
	enum prony_status status = PRONY_OK;
	int unused;

	if (found->mask != VALUE_NONE)
		status = lower_data_operand(l, found->mask, &unused, err);
	for (int i = 0; status == PRONY_OK && i < found->scale_count; i++) {
		const struct node *node = &l->graph->nodes[found->scales[i]];
		int state = attention_scale_operand(l->graph, found->scales[i]);

		status = lower_data_operand(l, node->inputs[state], &unused, err);
	}
	return status;
}

/* Draws the numbers from which cuDNN draws the mask of this step. */
static void append_seed(struct lowering *l, const struct fused_attention *a, struct layer *layer)
{
	struct work *work;
	int step = cuda_step_number(l);

	layer->arrays[ATTENTION_SEED] = program_bytes(l->program, sizeof(int64_t));
	layer->arrays[ATTENTION_OFFSET] = program_bytes(l->program, sizeof(int64_t));
	work = cuda_kernel(l, l->graph->nodes[a->found.dropout].name, "seed", "attention_seed",
			   DTYPE_COUNT, 1);
	cuda_operand(l, work, layer->arrays[ATTENTION_SEED]);
	cuda_operand(l, work, layer->arrays[ATTENTION_OFFSET]);
	cuda_operand(l, work, step);
	cuda_long(l, work, (int64_t)l->program->seed);
	cuda_long(l, work, a->found.dropout);
}

static enum prony_status forward(struct lowering *l, struct fused_attention *a, struct error *err)
{
	struct layer *layer = arena_alloc(&l->program->arena, sizeof(*layer));
	struct attention_problem *p = &layer->problem;
	int64_t rows;
	enum prony_status status;

	describe(l, a, p);
	layer->scale = scale_of(l, &a->found);
	for (int i = 0; i < ATTENTION_ARRAYS; i++)
		layer->arrays[i] = OPERAND_NONE;
	rows = p->samples * p->heads * p->queries;
	status = declare(l, &a->found, err);
	if (status == PRONY_OK)
		status = find_all(l, a, layer, false, err);
	if (status == PRONY_OK)
		status = make_rows(l, layer, ATTENTION_Y, a->found.output, plain_order, err);
	if (status == PRONY_OK && p->stats)
		status = lower_new(l, DTYPE_F32, 1, &rows, &layer->arrays[ATTENTION_STATS], err);
	if (status != PRONY_OK)
		return status;
	if (p->ratio > 0)
		append_seed(l, a, layer);
	append(l, l->graph->nodes[a->forward].name, layer);
	a->detail = layer;
	l->macs += 2 * rows * p->keys * p->width;
	return PRONY_OK;
}

static enum prony_status gradient(struct lowering *l, struct fused_attention *a, struct error *err)
{
	const char *name = l->graph->nodes[a->forward].name;
	struct layer *layer = arena_alloc(&l->program->arena, sizeof(*layer));
	const struct attention_problem *p = &layer->problem;
	int64_t rows;
	enum prony_status status;

	*layer = *(const struct layer *)a->detail;
	layer->problem.gradient = true;
	rows = p->samples * p->heads * p->queries;
	status = find_all(l, a, layer, false, err);
	if (status == PRONY_OK)
		status = make_rows(l, layer, ATTENTION_DQ, a->dq, plain_order, err);
	if (status == PRONY_OK)
		status = make_rows(l, layer, ATTENTION_DK, a->dk, a->found.key_order, err);
	if (status == PRONY_OK)
		status = make_rows(l, layer, ATTENTION_DV, a->dv, plain_order, err);
	if (status == PRONY_OK)
		status = lower_new(l, DTYPE_F32, 1, &rows, &layer->arrays[ATTENTION_ROW_SUMS], err);
	rows *= p->width;
	if (status == PRONY_OK)
		status = lower_new(l, DTYPE_F32, 1, &rows, &layer->arrays[ATTENTION_DQ_SUMS], err);
	if (status != PRONY_OK)
		return status;
	cuda_fill(l, name, layer->arrays[ATTENTION_DQ_SUMS], 0);
	append(l, name, layer);
	return PRONY_OK;
}

enum prony_status cuda_attention(struct lowering *l, struct fused_attention *a, bool of_gradient,
				 struct error *err)
{
	return of_gradient ? gradient(l, a, err) : forward(l, a, err);
}
