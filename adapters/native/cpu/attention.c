/* Attention, and its gradients, as one loop over the heads of all samples. */
#include "adapters/native/cpu/kernels/attention.h"

#include "adapters/native/cpu/cpu.h"

/* The choice of threads counts elements: see depthwise.c. */
#define MACS_OF_AN_ELEMENT 8

/* The places of a head's rows in an array of N x H x T x d. */
struct places {
	int64_t sample, head, row;
};

/* Arguments of both commands, in the program's arena. */
struct layer {
	struct attention_head head;
	const struct attention_loops *loops;
	int64_t samples, heads;
	int in[5]; /* operands of q, k, v, y and dy */
	int out[3];
	int log_sums, mask, causal; /* OPERAND_NONE if there is none */
	int scale_count, scales[ATTENTION_MAX_SCALES];
	bool divides[ATTENTION_MAX_SCALES];
	int dropout; /* node, or -1 */
	double ratio;
};

/* The arrays of a command: those of `in`, then those of `out`. */
#define IN 5
#define ARRAYS 8

/* The command's data. */
struct call {
	const struct layer *layer;
	struct places places[ARRAYS];
	int threads;
	size_t scratch_floats; /* of a thread */
	bool gradient;
};

struct share {
	struct attention_head head;
	const struct call *call;
	unsigned char *data[ARRAYS];
	float *log_sums, *scratch;
};

static struct attention_rows rows_of(const struct share *s, int i, int64_t head)
{
	const struct places *at = &s->call->places[i];
	int64_t first =
		head / s->call->layer->heads * at->sample + head % s->call->layer->heads * at->head;

	if (!s->data[i])
		return (struct attention_rows){.data = NULL};
	return (struct attention_rows){
		.data = s->data[i] +
			(size_t)first * (s->head.bf16 ? sizeof(uint16_t) : sizeof(float)),
		.row = at->row};
}

static void run_head(const struct share *s, int64_t head, float *scratch)
{
	const struct layer *layer = s->call->layer;
	struct attention_head h = s->head;
	struct attention_rows in[ARRAYS];
	float *sums = s->log_sums ? s->log_sums + head * h.queries : NULL;

	h.first = (uint64_t)(head * h.queries * h.keys);
	for (int i = 0; i < ARRAYS; i++)
		in[i] = rows_of(s, i, head);
	if (s->call->gradient)
		attention_gradient(&h, layer->loops, in, sums, in + IN, scratch);
	else
		attention_forward(&h, layer->loops, in, sums, scratch);
}

static void share_heads(void *data, size_t first, size_t end)
{
	const struct share *s = data;
	int64_t count = s->call->layer->samples * s->call->layer->heads;

	for (size_t t = first; t < end; t++) {
		int64_t from = count * (int64_t)t / s->call->threads;
		int64_t to = count * (int64_t)(t + 1) / s->call->threads;

		for (int64_t head = from; head < to; head++)
			run_head(s, head, s->scratch + t * s->call->scratch_floats);
	}
}

static float scale_of(struct program *program, const struct layer *layer)
{
	float scale = 1;

	for (int i = 0; i < layer->scale_count; i++) {
		float x = *(const float *)program->operands[layer->scales[i]].data;

		scale = layer->divides[i] ? scale / x : scale * x;
	}
	return scale;
}

static void *data_of(struct program *program, int operand)
{
	return operand == OPERAND_NONE ? NULL : program->operands[operand].data;
}

static void run(struct program *program, const struct command *command)
{
	const struct call *call = command->work->detail;
	const struct layer *layer = call->layer;
	struct share s = {.head = layer->head,
			  .call = call,
			  .log_sums = data_of(program, layer->log_sums),
			  .scratch = cpu_data(program, command, 0)};

	for (int i = 0; i < ARRAYS; i++)
		s.data[i] = data_of(program, i < IN ? layer->in[i] : layer->out[i - IN]);
	s.head.scale = scale_of(program, layer);
	if (layer->mask != OPERAND_NONE) {
		s.head.causal = *(const bool *)data_of(program, layer->causal);
		s.head.mask = s.head.causal ? NULL : data_of(program, layer->mask);
	}
	s.head.drops = layer->dropout >= 0;
	if (s.head.drops)
		s.head.draw = dropout_draw_make(program->seed, program->step,
						(uint64_t)layer->dropout, layer->ratio);
	onednn_split(&program->device->dnn, call->threads, (size_t)call->threads, share_heads, &s);
}

/* A value whose rows of features are contiguous, as an array of rank 4. */
static enum prony_status find_rows(struct lowering *l, int value, const char *name, int *out,
				   struct error *err)
{
	const struct layout *own;
	struct layout rows;
	enum prony_status status = lower_activation(l, value, name, out, err);

	if (status != PRONY_OK)
		return status;
	own = lower_layout(l, *out);
	rows = layout_row_major(own->type, own->rank, own->dims);
	return !own->blob && own->strides[3] == 1 ? PRONY_OK
						  : lower_as(l, *out, &rows, name, out, err);
}

static enum prony_status make_rows(struct lowering *l, int value, int *out, struct error *err)
{
	struct layout layout = cpu_result_layout(l, value, l->data);
	const struct shape *shape = &l->graph->values[value].shape;

	if (layout.strides[3] != 1)
		layout = layout_row_major(l->data, shape->rank, shape->dims);
	return program_operand(l->program, &layout, REGION_PLANNED, out, err);
}

/* `order`: dimensions of the operand in the order N x H x T. */
static struct places places_of(const struct lowering *l, int operand, const int64_t *order)
{
	const int64_t *strides;

	if (operand == OPERAND_NONE)
		return (struct places){.row = 0};
	strides = lower_layout(l, operand)->strides;
	return (struct places){
		.sample = strides[order[0]], .head = strides[order[1]], .row = strides[order[2]]};
}

static void append(struct lowering *l, const struct fused_attention *a, struct layer *layer,
		   bool gradient)
{
	static const int64_t plain[] = {0, 1, 2};
	struct call *call = arena_alloc(&l->program->arena, sizeof(*call));
	const struct attention_head *h = &layer->head;
	int64_t count = layer->samples * layer->heads;
	int64_t macs = count * h->queries * h->keys * h->width;
	const int all[] = {layer->in[0],    layer->in[1],  layer->in[2],  layer->in[3],
			   layer->in[4],    layer->out[0], layer->out[1], layer->out[2],
			   layer->log_sums, layer->mask,   layer->causal};
	int operands[16 + ATTENTION_MAX_SCALES], used = 1;

	*call = (struct call){.layer = layer, .gradient = gradient};
	call->threads = cpu_threads(l->program, (size_t)(macs / MACS_OF_AN_ELEMENT));
	if (call->threads > count)
		call->threads = (int)count;
	call->scratch_floats = attention_scratch_floats(h, layer->loops, gradient);
	operands[0] = program_bytes(l->program,
				    (size_t)call->threads * call->scratch_floats * sizeof(float));
	for (int i = 0; i < ARRAYS; i++)
		call->places[i] = places_of(l, all[i], i % IN == 1 ? a->found.key_order : plain);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i] != OPERAND_NONE)
			operands[used++] = all[i];
	}
	for (int i = 0; i < layer->scale_count; i++)
		operands[used++] = layer->scales[i];
	cpu_kernel(l, l->graph->nodes[a->forward].name, gradient ? "gradient" : "attention", run,
		   operands, used)
		->detail = call;
}

/* Notes whether the mask that was loaded is causal. */
static void judge_mask(struct program *program, const struct parameter *mask)
{
	const struct operand *operand = &program->operands[mask->operand];
	const int64_t *dims = operand->layout.dims + operand->layout.rank - 2;

	*(bool *)program->operands[*(const int *)mask->prepare_detail].data =
		attention_mask_is_causal(operand->data, dims[0], dims[1]);
}

static enum prony_status find_mask(struct lowering *l, int value, struct layer *layer,
				   struct error *err)
{
	static const int64_t one = 1;
	struct layout flag = layout_row_major(DTYPE_I32, 1, &one);
	struct parameter *state = NULL;
	int *place;
	enum prony_status status = lower_data_operand(l, value, &layer->mask, err);

	for (int i = 0; i < l->state_count; i++)
		state = l->states[i].value == value ? &l->states[i] : state;
	if (status != PRONY_OK || state->prepare) {
		layer->causal =
			status == PRONY_OK ? *(const int *)state->prepare_detail : OPERAND_NONE;
		return status;
	}
	place = arena_alloc(&l->program->arena, sizeof(*place));
	status = program_operand(l->program, &flag, REGION_LASTING, place, err);
	state->prepare = judge_mask;
	state->prepare_detail = place;
	layer->causal = *place;
	return status;
}

static enum prony_status find_scales(struct lowering *l, const struct attention *found,
				     struct layer *layer, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < found->scale_count; i++) {
		const struct node *node = &l->graph->nodes[found->scales[i]];

		layer->divides[i] = node->op == OP_DIV;
		status = lower_data_operand(
			l, node->inputs[attention_scale_operand(l->graph, found->scales[i])],
			&layer->scales[layer->scale_count++], err);
	}
	return status;
}

static const struct layer no_layer = {
	.in = {OPERAND_NONE, OPERAND_NONE, OPERAND_NONE, OPERAND_NONE, OPERAND_NONE},
	.out = {OPERAND_NONE, OPERAND_NONE, OPERAND_NONE},
	.log_sums = OPERAND_NONE,
	.mask = OPERAND_NONE,
	.causal = OPERAND_NONE,
	.dropout = -1,
};

/* Sizes, scales, mask and dropout. */
static enum prony_status describe(struct lowering *l, const struct attention *found,
				  struct layer *layer, struct error *err)
{
	const int64_t *q = l->graph->values[found->q].shape.dims;
	enum prony_status status = find_scales(l, found, layer, err);

	layer->samples = q[0];
	layer->heads = q[1];
	layer->loops = attention_pick(instruction_set_best());
	layer->head = (struct attention_head){
		.queries = q[2],
		.keys = l->graph->values[found->v].shape.dims[2],
		.width = q[3],
		.bf16 = l->data == DTYPE_BF16,
	};
	if (l->training && l->recipe->dropout && found->dropout >= 0) {
		layer->dropout = found->dropout;
		layer->ratio = l->graph->nodes[found->dropout].attributes.ratio;
	}
	return status == PRONY_OK && found->mask != VALUE_NONE
		       ? find_mask(l, found->mask, layer, err)
		       : status;
}

static enum prony_status forward(struct lowering *l, struct fused_attention *a, struct error *err)
{
	const int values[] = {a->found.q, a->found.k, a->found.v};
	const char *name = l->graph->nodes[a->forward].name;
	struct layer *layer = arena_alloc(&l->program->arena, sizeof(*layer));
	int64_t count;
	enum prony_status status;

	*layer = no_layer;
	status = describe(l, &a->found, layer, err);
	count = layer->samples * layer->heads * layer->head.queries;
	for (int i = 0; status == PRONY_OK && i < 3; i++)
		status = find_rows(l, values[i], name, &layer->in[i], err);
	if (status == PRONY_OK)
		status = make_rows(l, a->found.output, &layer->in[3], err);
	if (status == PRONY_OK && a->gradient >= 0)
		status = lower_new(l, DTYPE_F32, 1, &count, &layer->log_sums, err);
	if (status != PRONY_OK)
		return status;
	append(l, a, layer, false);
	a->detail = layer;
	l->nodes[a->forward].work->detail = layer;
	l->values[a->found.output].operand = layer->in[3];
	l->macs += 2 * count * layer->head.keys * layer->head.width;
	return PRONY_OK;
}

static enum prony_status gradient(struct lowering *l, struct fused_attention *a, struct error *err)
{
	const int results[] = {a->dq, a->dk, a->dv};
	struct layer *layer = a->detail;
	enum prony_status status =
		find_rows(l, a->dy, l->graph->nodes[a->forward].name, &layer->in[4], err);

	for (int i = 0; status == PRONY_OK && i < 3; i++) {
		status = make_rows(l, results[i], &layer->out[i], err);
		l->values[results[i]].operand = layer->out[i];
	}
	if (status == PRONY_OK)
		append(l, a, layer, true);
	return status;
}

enum prony_status cpu_attention(struct lowering *l, struct fused_attention *a, bool of_gradient,
				struct error *err)
{
	return of_gradient ? gradient(l, a, err) : forward(l, a, err);
}
