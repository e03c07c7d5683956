#include "run/evaluation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "parity/reference.h"

#define EVALUATION_BATCH_MAX 256
#define EVALUATION_HELD_BYTES (INT64_C(1) << 31)

struct evaluation {
	const struct launch *launch;
	struct arena arena;
	struct graph graph; /* of the evaluation's batch */
	struct recipe recipe;
	struct batch_stream *stream;
	struct tensor input, label; /* of one batch */
	int64_t batches;
};

/* What was found in all samples. */
struct score {
	double loss; /* sum over labels */
	int64_t right, labels;
};

/* The largest batch that divides the number of samples, so that each is used once. */
static int64_t batch_of(int64_t samples)
{
	int64_t batch = samples < EVALUATION_BATCH_MAX ? samples : EVALUATION_BATCH_MAX;

	while (samples % batch)
		batch--;
	return batch;
}

static enum prony_status make_tensor(struct evaluation *e, int value, enum dtype dtype,
				     struct tensor *out, struct error *err)
{
	*out = (struct tensor){.name = e->graph.values[value].name,
			       .dtype = dtype,
			       .shape = e->graph.values[value].shape};
	out->data = arena_try_array(&e->arena, (size_t)shape_elements(&out->shape),
				    dtype_bytes(dtype), err);
	return out->data ? PRONY_OK : PRONY_NOMEM;
}

static enum prony_status open_samples(struct evaluation *e, int64_t batch, struct error *err)
{
	const struct plan_cell *cell = e->launch->cell;
	struct batch_request request;

	workload_request(cell, batch, e->launch->cell->recipe.seed, &request);
	request.training = false;
	enum prony_status status =
		batch_stream_open(cell->dataset, cell->data_folder, &request, &e->stream, err);
	return status == PRONY_OK ? batch_stream_hold(e->stream, EVALUATION_HELD_BYTES, err)
				  : status;
}

enum prony_status evaluation_open(const struct launch *launch, struct process_record *record,
				  struct evaluation **out, struct error *err)
{
	const struct plan_cell *cell = launch->cell;

	*out = NULL;
	if (!cell->until.goal)
		return PRONY_OK;
	record->seed = (int64_t)launch->cell->recipe.seed;
	until_text(&cell->until, record->target);
	int64_t samples = cell->dataset->evaluation_count, batch = batch_of(samples);
	struct evaluation *e = memory_alloc(sizeof *e);
	*e = (struct evaluation){
		.launch = launch, .recipe = cell->recipe, .batches = samples / batch};
	*out = e;
	arena_init(&e->arena, 0);
	e->recipe.stage = STAGE_FORWARD;
	enum prony_status status = network_build(cell->network, batch, &e->graph, err);
	if (status == PRONY_OK)
		status = make_tensor(e, graph_input(&e->graph, 0), DTYPE_F32, &e->input, err);
	if (status == PRONY_OK)
		status = make_tensor(e, graph_label(&e->graph, 0), DTYPE_I64, &e->label, err);
	return status == PRONY_OK ? open_samples(e, batch, err) : status;
}

/* The worker's weights and running statistics; states that no step changes are the work's. */
static enum prony_status read_weights(const struct evaluation *e, struct team *team,
				      struct arena *arena, struct tensor_set *out,
				      struct error *err)
{
	const struct tensor_set *own = &e->launch->work->weights;
	struct tensor_set weights = {.count = 0}, state = {.count = 0};
	enum prony_status status = team_read_kept(team, "weights", arena, &weights, err);

	if (status == PRONY_OK && graph_has_statistics(&e->graph))
		status = team_read_kept(team, "state", arena, &state, err);
	out->tensors = arena_array(arena, own->count + 1, sizeof *out->tensors);
	for (out->count = 0; status == PRONY_OK && out->count < own->count; out->count++) {
		const char *name = own->tensors[out->count].name;
		const struct tensor *read = tensor_find(&weights, name);

		if (!read)
			read = tensor_find(&state, name);
		out->tensors[out->count] = read ? *read : own->tensors[out->count];
	}
	return status;
}

/* Adds the labels of a batch that the largest logit of their row names; -1 is no label. */
static void count_right(const struct evaluation *e, const struct reference *ref,
			struct score *score)
{
	int64_t elements, rows = shape_elements(&e->label.shape);
	const double *logits = reference_value(ref, e->graph.logits, &elements);
	const int64_t *labels = e->label.data;
	int64_t classes = elements / rows, counted = 0;

	for (int64_t i = 0; i < rows; i++) {
		const double *row = logits + i * classes;
		int64_t best = 0;

		for (int64_t c = 1; c < classes; c++)
			best = row[c] > row[best] ? c : best;
		counted += labels[i] >= 0;
		score->right += labels[i] == best;
	}
	score->labels += counted;
	score->loss += reference_loss(ref) * (double)counted;
}

static enum prony_status compute(struct evaluation *e, struct team *team, struct score *score,
				 struct error *err)
{
	struct tensor_set weights;
	struct reference ref = {0};
	struct arena arena;
	const struct batch batch = {&e->input, &e->label, 1, 1};

	arena_init(&arena, 0);
	enum prony_status status = read_weights(e, team, &arena, &weights, err);
	if (status == PRONY_OK)
		status = reference_init(&ref, &e->graph, &weights, err);
	ref.frees = true;
	for (int64_t i = 0; status == PRONY_OK && i < e->batches; i++) {
		status = batch_stream_next(e->stream, 1, e->input.data, e->label.data, err);
		if (status == PRONY_OK)
			status = reference_feed(&ref, batch, err);
		if (status == PRONY_OK)
			status = reference_forward(&ref, &e->recipe, false, err);
		if (status == PRONY_OK)
			count_right(e, &ref, score);
	}
	reference_release(&ref);
	arena_release(&arena);
	return status;
}

/* Appends a value; nothing when there is no room for it. */
static void keep_value(struct process_record *record, double value)
{
	size_t used = strlen(record->target_curve), room = sizeof record->target_curve - used;

	if (snprintf(record->target_curve + used, room, used ? " %.4g" : "%.4g", value) >=
	    (int)room)
		record->target_curve[used] = '\0';
}

enum prony_status evaluation_run(struct evaluation *evaluation, struct team *team, int64_t steps,
				 struct process_record *record, struct error *err)
{
	const struct until *until = &evaluation->launch->cell->until;
	struct score score = {.loss = 0};
	enum prony_status status = compute(evaluation, team, &score, err);

	if (status != PRONY_OK)
		return status;
	double labels = (double)score.labels, loss = score.loss / labels;
	if (!isfinite(loss))
		return error_set(err, PRONY_INVALID,
				 "the loss of the evaluation after step %" PRId64 " is not finite",
				 steps);
	double value = until_value(until, (double)score.right / labels, loss);
	keep_value(record, value);
	if (until_reached(until, value))
		record->target_steps = steps;
	return PRONY_OK;
}

void evaluation_drop_figures(struct process_record *record)
{
	static const char reason[] = "window_cpu_cores, energy, power: evaluations lie between the "
				     "steps of the window";
	size_t used = strlen(record->null_reasons);

	record->window_cpu_cores = record->energy_joules = record->energy_dram_joules = NAN;
	record->energy_psys_joules = record->power_mean_window = NAN;
	record->gpu_energy_joules = record->gpu_power_window = record->gpu_power_sampled = NAN;
	snprintf(record->null_reasons + used, sizeof record->null_reasons - used, "%s%s",
		 used ? "; " : "", reason);
}

void evaluation_close(struct evaluation *evaluation)
{
	if (!evaluation)
		return;
	batch_stream_close(evaluation->stream);
	graph_release(&evaluation->graph);
	arena_release(&evaluation->arena);
	free(evaluation);
}
