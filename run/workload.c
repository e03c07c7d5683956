/* Makes the work of a cell: graphs, weights, batches, bundles and the reference's answers. */
#include "run/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "bundle/bundle.h"
#include "datasets/describe.h"
#include "datasets/text.h"
#include "parity/reference.h"
#include "run/model_work.h"
#include "run/parts_of_ranks.h"
#include "run/step_work.h"

/* The gate skips this many batches, so that it uses none of the timed processes' batches. */
enum { GATE_SKIPS = 64 };

/* Longer sequences are halved for the gate while its cost is great: a token's work stays the same,
 * but for the products of attention. */
#define GATE_TOKENS_MIN 32

/* Multiplications of an expected first loss, which may be a mean over many masks of dropout: ten
 * minutes on two cores. Above it the loss need only be a number. */
#define LOSS_MACS_MAX (INT64_C(1) << 43)

void workload_key(const struct plan_cell *cell, char key[CELL_KEY_BYTES])
{
	struct cell anonymous = cell->cell;
	snprintf(anonymous.framework, sizeof anonymous.framework, "-");
	/* The loop and the synchronisation do not change what is computed. */
	anonymous.loop = LOOP_STEP;
	anonymous.sync = SYNC_BLOCKS;
	cell_key(&anonymous, key);
}

double workload_reference_macs(const struct plan_cell *cell)
{
	/* Training runs twice (gate_cost); a pass backward is two forward. */
	int passes = cell->recipe.stage == STAGE_FORWARD ? 1 : 2 * 3;
	if (cell->ungated || network_is_as_it_is(cell->network))
		return 0;
	double macs = (double)cell->network->macs;
	if (cell->network->tokens_max > 0 && cell->network->tokens > GATE_TOKENS_MIN)
		macs *= (double)GATE_TOKENS_MIN / (double)cell->network->tokens;
	return macs * GATE_BATCH_MIN * GATE_UPDATES * passes;
}

/* Wraps the values (of the input's type) and classes of a data set as tensors of the one input and
 * the one label. */
static void wrap_batches(struct workload *work, const struct graph *graph, int count, void *x,
			 int64_t *y, struct tensor_set *inputs, struct tensor_set *labels)
{
	const struct value *input = &graph->values[graph_input(graph, 0)];
	const struct value *label = &graph->values[graph_label(graph, 0)];
	int64_t samples = shape_elements(&label->shape), elements = shape_elements(&input->shape);
	*inputs = (struct tensor_set){
		.tensors = arena_array(&work->arena, (size_t)count, sizeof(struct tensor)),
		.count = (size_t)count};
	*labels = *inputs;
	labels->tensors = arena_array(&work->arena, (size_t)count, sizeof(struct tensor));
	for (int i = 0; i < count; i++) {
		inputs->tensors[i] = (struct tensor){
			.name = arena_printf(&work->arena, BUNDLE_INPUT_ROLE ".%d", i),
			.dtype = input->dtype,
			.shape = input->shape,
			.data = (char *)x + i * elements * (int64_t)dtype_bytes(input->dtype)};
		labels->tensors[i] = (struct tensor){
			.name = arena_printf(&work->arena, BUNDLE_LABEL_ROLE ".%d", i),
			.dtype = DTYPE_I64,
			.shape = label->shape,
			.data = y + i * samples};
	}
}

void workload_request(const struct plan_cell *cell, int64_t batch, uint64_t seed,
		      struct batch_request *out)
{
	*out = (struct batch_request){
		.batch = batch,
		.rank = cell->network->inputs[0].rank,
		.classes = cell->network->classes,
		.training = cell->recipe.stage != STAGE_FORWARD,
		.seed = seed,
		.cold = cell->cell.input == INPUT_COLD,
	};
	memcpy(out->dims, cell->network->inputs[0].dims, sizeof out->dims);
}

/* Sequences of a text: the bytes are the only input, the labels those that follow. */
static enum prony_status make_text_batches(struct workload *work, const struct plan_cell *cell,
					   const struct graph *graph, int count,
					   struct batch_request *request, struct tensor_set *inputs,
					   struct tensor_set *labels, struct error *err)
{
	const struct value *input = &graph->values[graph_input(graph, 0)];
	int64_t elements = shape_elements(&input->shape);
	size_t all = (size_t)count * (size_t)elements;
	int64_t *x = arena_try_array(&work->arena, all, sizeof *x, err);
	int64_t *y = arena_try_array(&work->arena, all, sizeof *y, err);
	if (!x || !y)
		return PRONY_NOMEM;
	request->dims[0] = input->shape.dims[1];
	enum prony_status status =
		text_batches(cell->dataset, cell->data_folder, request, count, x, y, err);
	if (status == PRONY_OK)
		wrap_batches(work, graph, count, x, y, inputs, labels);
	return status;
}

static enum prony_status read_batches(struct workload *work, const struct plan_cell *cell,
				      const struct graph *graph, int count, int64_t first,
				      uint64_t seed, struct tensor_set *inputs,
				      struct tensor_set *labels, struct error *err)
{
	bool drawn = cell->cell.input == INPUT_SYNTHETIC;
	struct batch_request request;
	workload_request(cell, graph_batch(graph), seed, &request);
	request.first = first;
	if (!drawn && dataset_is_text(cell->dataset))
		return make_text_batches(work, cell, graph, count, &request, inputs, labels, err);
	if (!network_takes_data_sets(cell->network))
		return batches_draw(graph, seed, first, (size_t)count,
				    cell->network->labels_ignored, &work->arena, inputs, labels,
				    err);
	const struct dataset *dataset = drawn ? dataset_find("synthetic") : cell->dataset;
	const struct value *input = &graph->values[graph_input(graph, 0)];
	size_t samples = (size_t)count * (size_t)request.batch;
	size_t elements = (size_t)(shape_elements(&input->shape) / request.batch);
	float *x = arena_try_array(&work->arena, samples * elements, sizeof *x, err);
	int64_t *y = arena_try_array(&work->arena, samples, sizeof *y, err);
	if (!x || !y)
		return PRONY_NOMEM;
	struct batch_stream *stream = NULL;
	enum prony_status status = batch_stream_open(dataset, drawn ? NULL : cell->data_folder,
						     &request, &stream, err);
	if (status == PRONY_OK)
		status = batch_stream_next(stream, count, x, y, err);
	batch_stream_close(stream);
	if (status == PRONY_OK)
		wrap_batches(work, graph, count, x, y, inputs, labels);
	return status;
}

static enum prony_status make_batches(struct workload *work, const struct plan_cell *cell,
				      const struct graph *graph, int count, int64_t first,
				      uint64_t seed, struct tensor_set *inputs,
				      struct tensor_set *labels, struct error *err)
{
	enum prony_status status =
		read_batches(work, cell, graph, count, first, seed, inputs, labels, err);
	if (status == PRONY_OK && work->ranks > 1)
		parts_leave_out_alike(labels, work->ranks);
	return status == PRONY_OK
		       ? network_fill_inputs(cell->network, graph, first, seed, inputs, err)
		       : status;
}

/* Returns the number of batches that are written to the bundle: of a stream, only the first, for
 * its loss. */
static int resident_batches(const struct plan_cell *cell)
{
	return cell->recipe.input == INPUT_RESIDENT ? cell->recipe.slots : 1;
}

enum prony_status workload_init(struct workload *work, const struct plan_cell *cell, uint64_t seed,
				struct error *err)
{
	memset(work, 0, sizeof *work);
	/* Use half of the memory: the user may run other programs. */
	work->reference_bytes = memory_physical_bytes() / 2;
	arena_init(&work->arena, 0);
	workload_key(cell, work->key);
	work->ranks = cell->target.world_size > 1 ? cell->target.world_size : 1;
	work->loss_global = NAN;
	if (network_is_as_it_is(cell->network))
		return model_work_init(work, cell, seed, err);
	enum prony_status status =
		network_build(cell->network, cell->recipe.batch, &work->graph, err);
	if (status == PRONY_OK)
		status = network_weights(cell->network, &work->graph, seed, &work->arena,
					 &work->weights, err);
	if (status == PRONY_OK)
		status = make_batches(work, cell, &work->graph, resident_batches(cell), 0, seed,
				      &work->inputs, &work->labels, err);
	if (status == PRONY_OK)
		step_work_positions(cell->network, &work->graph, &work->inputs);
	graph_set_ranks(&work->graph, work->ranks);
	return status;
}

void workload_drop_gate(struct workload *work)
{
	gate_reference_release(&work->gate);
	gate_reference_release(&work->gate_global);
	graph_release(&work->gate_graph);
	work->has_gate = work->has_gate_case = false;
	work->prefix_logits[0].data = NULL; /* the caches are drawn anew */
}

enum prony_status workload_share_files(struct workload *work, const char *folder, struct error *err)
{
	/* The folder may hold files of a run that was killed. */
	enum prony_status status = directory_remove(folder, err);
	if (status == PRONY_OK)
		status = directory_make(folder, err);
	if (status == PRONY_OK && !(work->files = strdup(folder)))
		status = error_set(err, PRONY_NOMEM, "no memory for a path");
	return status;
}

void workload_drop_files(struct workload *work)
{
	if (work->files)
		directory_remove(work->files, NULL);
	free(work->files);
	work->files = NULL;
}

void workload_release(struct workload *work)
{
	if (!work)
		return;
	workload_drop_files(work);
	workload_drop_gate(work);
	graph_release(&work->graph);
	free((void *)(uintptr_t)work->model.bytes);
	arena_release(&work->arena);
}

/* A smaller batch of which each rank still has two samples; 0 if there is none. */
static int64_t smaller_batch(const struct workload *work)
{
	int64_t batch = gate_smaller_batch(work->gate_recipe.batch);

	return work->ranks > 1 && (batch % work->ranks || batch < 2 * work->ranks) ? 0 : batch;
}

/* Uses the longest sequence whose reference is cheap, or else the shortest one; and the largest
 * batch whose reference fits into memory, or else the smallest one. */
static enum prony_status build_gate(struct workload *work, struct network *network,
				    struct error *err)
{
	struct recipe *recipe = &work->gate_recipe;
	bool chosen = !network->file;
	enum prony_status status = PRONY_OK;
	/* Of a prompt the reference runs the whole for a single decode step. */
	if (stage_has_cache(network->stage) && network->tokens > GATE_TOKENS_MIN)
		status = network_at_length(network, GATE_TOKENS_MIN, network, err);
	if (status == PRONY_OK)
		status = network_build(network, recipe->batch, &work->gate_graph, err);
	while (status == PRONY_OK && network->tokens_max > 0 &&
	       network->tokens / 2 >= GATE_TOKENS_MIN &&
	       !gate_is_cheap(&work->gate_graph, recipe, chosen)) {
		graph_release(&work->gate_graph);
		status = network_at_length(network, network->tokens / 2, network, err);
		if (status == PRONY_OK)
			status = network_build(network, recipe->batch, &work->gate_graph, err);
	}
	while (status == PRONY_OK && smaller_batch(work) > 0 &&
	       !gate_fits(&work->gate_graph, recipe, chosen, work->reference_bytes)) {
		recipe->batch = smaller_batch(work);
		graph_release(&work->gate_graph);
		status = network_build(network, recipe->batch, &work->gate_graph, err);
	}
	return status;
}

static struct answers_case gate_case(const struct workload *work, const struct plan_cell *cell)
{
	return (struct answers_case){.graph = &work->gate_graph,
				     .recipe = &work->gate_recipe,
				     .weights = &work->gate_weights,
				     .inputs = &work->gate_inputs,
				     .labels = &work->gate_labels,
				     .chosen = !cell->network->file};
}

enum prony_status workload_need_gate_case(struct workload *work, const struct plan_cell *cell,
					  uint64_t seed, struct error *err)
{
	if (work->has_gate_case)
		return PRONY_OK;
	gate_recipe(&cell->recipe, network_gate_rate(cell->network, cell->recipe.optimiser),
		    &work->gate_recipe);
	struct network network = *cell->network;
	int64_t ranks = work->ranks, parts = (work->gate_recipe.batch + ranks - 1) / ranks;
	/* One sample has no variance. */
	if (ranks > 1)
		work->gate_recipe.batch = ranks * (parts > 2 ? parts : 2);
	enum prony_status status = build_gate(work, &network, err);
	graph_set_ranks(&work->gate_graph, work->ranks);
	work->gate_weights = work->weights;
	/* The mask of another length is another tensor, as are the caches of the gate. */
	if (status == PRONY_OK &&
	    (network.tokens != cell->network->tokens || stage_has_cache(network.stage)))
		status = graph_weights_like(&work->gate_graph, &work->weights, seed, &work->arena,
					    &work->gate_weights, err);
	if (status == PRONY_OK)
		status =
			make_batches(work, cell, &work->gate_graph, work->gate_recipe.slots,
				     GATE_SKIPS, seed, &work->gate_inputs, &work->gate_labels, err);
	work->gate_network = network;
	work->gate_seed = seed;
	if (status == PRONY_OK && network.stage == STAGE_DECODE)
		status = step_work_gate(work, err);
	if (status == PRONY_OK) {
		struct answers_case of = gate_case(work, cell);
		/* The caches are not filled yet: they follow from the rest (step_work_prefix). */
		answers_key(network.stage == STAGE_DECODE ? "gate behind a prompt" : "gate", &of,
			    work->gate_key);
	}
	work->has_gate_case = status == PRONY_OK;
	if (!work->has_gate_case)
		graph_release(&work->gate_graph);
	return status;
}

/* Whether a reference of so many multiplications may be computed; 0 of a gate whose answers are
 * there.
 */
static enum prony_status may_begin(struct reference_control *control, int64_t cost,
				   struct error *err)
{
	if (!control)
		return PRONY_OK;
	control->expected = (double)cost;
	control->done = 0;
	if (control->may_begin && !control->may_begin(control->context, control->expected))
		return error_set(err, PRONY_INTERRUPTED, "no time is left for a reference");
	return PRONY_OK;
}

static enum prony_status compute_gate(struct workload *work, const struct plan_cell *cell,
				      struct reference_control *control, struct error *err)
{
	enum prony_status status = may_begin(
		control, gate_cost(&work->gate_graph, &work->gate_recipe, !cell->network->file),
		err);
	if (status == PRONY_OK &&
	    gate_rate_is_open(&work->gate_recipe, &work->gate_graph, !cell->network->file))
		status = gate_settle_rate(
			&work->gate_recipe, &work->gate_graph, &work->gate_weights,
			batch_at(&work->gate_graph, &work->gate_inputs, &work->gate_labels, 0),
			control, err);
	if (status == PRONY_OK)
		status =
			gate_settle_clip(&work->gate_recipe, &work->gate_graph, &work->gate_weights,
					 &work->gate_inputs, &work->gate_labels, control, err);
	if (status == PRONY_OK)
		status = gate_reference_init(&work->gate, &work->gate_graph, &work->gate_recipe,
					     &work->gate_weights, &work->gate_inputs,
					     &work->gate_labels, control, err);
	if (status == PRONY_OK)
		status = step_work_check(work, err);
	return status;
}

static enum prony_status need_own(struct workload *work, const struct plan_cell *cell,
				  struct reference_control *control, struct error *err)
{
	struct error why = ERROR_INIT;
	if (work->has_gate)
		return may_begin(control, 0, err);
	struct answers_case of = gate_case(work, cell);
	work->has_gate =
		work->answers && answers_read(work->answers, work->gate_key, &of, &work->gate,
					      &work->gate_recipe, &why) == PRONY_OK;
	if (work->has_gate)
		return may_begin(control, 0, err);
	enum prony_status status = compute_gate(work, cell, control, err);
	work->has_gate = status == PRONY_OK;
	if (!work->has_gate)
		gate_reference_release(&work->gate);
	if (work->has_gate && work->answers)
		answers_write(work->answers, work->gate_key, &work->gate, &work->gate_recipe, &why);
	return status;
}

/* Answers that are kept, or else computed; their rate is settled. */
static enum prony_status find_global(struct workload *work, const struct plan_cell *cell,
				     struct reference_control *control, struct error *err)
{
	struct answers_case of = gate_case(work, cell);
	char key[DIGEST_HEX_BYTES];
	struct recipe settled;
	struct error why = ERROR_INIT;

	answers_key("gate of ranks", &of, key);
	if (work->answers &&
	    answers_read(work->answers, key, &of, &work->gate_global, &settled, &why) == PRONY_OK)
		return PRONY_OK;
	enum prony_status status = may_begin(
		control, gate_cost(&work->gate_graph, &work->gate_recipe, !cell->network->file),
		err);
	if (status == PRONY_OK)
		status = gate_reference_init(&work->gate_global, &work->gate_graph,
					     &work->gate_recipe, &work->gate_weights,
					     &work->gate_inputs, &work->gate_labels, control, err);
	if (status == PRONY_OK && work->answers)
		answers_write(work->answers, key, &work->gate_global, &work->gate_recipe, &why);
	return status;
}

/* Computes the answers of the second way in which ranks can normalise. */
static enum prony_status need_global(struct workload *work, const struct plan_cell *cell,
				     struct reference_control *control, struct error *err)
{
	if (work->ranks == 1 || work->gate_global.expected_count > 0 ||
	    !graph_has_statistics(&work->gate_graph))
		return PRONY_OK;
	graph_set_ranks(&work->gate_graph, 1);
	enum prony_status status = find_global(work, cell, control, err);
	graph_set_ranks(&work->gate_graph, work->ranks);
	if (status != PRONY_OK)
		gate_reference_release(&work->gate_global);
	return status;
}

enum prony_status workload_need_gate(struct workload *work, const struct plan_cell *cell,
				     uint64_t seed, struct reference_control *control,
				     struct error *err)
{
	enum prony_status status = workload_need_gate_case(work, cell, seed, err);
	if (status == PRONY_OK)
		status = step_work_prefix(work, err);
	if (status == PRONY_OK)
		status = need_own(work, cell, control, err);
	return status == PRONY_OK ? need_global(work, cell, control, err) : status;
}

static enum prony_status compute_loss(struct workload *work, const struct plan_cell *cell,
				      int64_t parts, struct reference_control *control,
				      struct error *err)
{
	struct graph part = {0};
	enum prony_status status = PRONY_OK;
	if (parts > 1)
		status =
			network_build(cell->network, graph_batch(&work->graph) / parts, &part, err);
	if (status == PRONY_OK)
		status = may_begin(control, gate_loss_cost(&work->graph, &cell->recipe), err);
	struct batch first = batch_at(&work->graph, &work->inputs, &work->labels, 0);
	if (status == PRONY_OK)
		status = gate_expected_loss(parts > 1 ? &part : &work->graph, &cell->recipe,
					    &work->weights, first, control, &work->loss_mean,
					    &work->loss_deviation, err);
	graph_release(&part);
	return status;
}

/* Computes the loss of the second way in which ranks can normalise. */
static enum prony_status compute_loss_global(struct workload *work, const struct plan_cell *cell,
					     struct reference_control *control, struct error *err)
{
	struct batch first = batch_at(&work->graph, &work->inputs, &work->labels, 0);
	double deviation;

	if (work->ranks == 1 || !graph_has_statistics(&work->graph) || isnan(work->loss_mean))
		return PRONY_OK;
	graph_set_ranks(&work->graph, 1);
	enum prony_status status =
		gate_expected_loss(&work->graph, &cell->recipe, &work->weights, first, control,
				   &work->loss_global, &deviation, err);
	graph_set_ranks(&work->graph, work->ranks);
	return status;
}

enum prony_status workload_need_loss(struct workload *work, const struct plan_cell *cell,
				     struct reference_control *control, struct error *err)
{
	if (work->has_loss_expectation || work->is_model)
		return PRONY_OK;
	int64_t parts = gate_loss_parts(&work->graph, cell->recipe.stage, work->reference_bytes);
	if (parts == 0 || gate_loss_cost(&work->graph, &cell->recipe) > LOSS_MACS_MAX) {
		work->loss_mean = NAN;
		work->loss_deviation = INFINITY;
		work->has_loss_expectation = true;
		return PRONY_OK;
	}
	struct batch first = batch_at(&work->graph, &work->inputs, &work->labels, 0);
	struct tensor_set inputs = {work->inputs.tensors, (size_t)first.input_count};
	struct tensor_set labels = {work->labels.tensors, (size_t)first.label_count};
	struct answers_case of = {&work->graph, &cell->recipe, &work->weights,
				  &inputs,	&labels,       true};
	struct error why = ERROR_INIT;
	if (work->answers) {
		answers_key("loss", &of, work->loss_key);
		work->has_loss_expectation =
			answers_read_loss(work->answers, work->loss_key, &work->loss_mean,
					  &work->loss_deviation, &why) == PRONY_OK;
	}
	enum prony_status status = compute_loss_global(work, cell, control, err);
	if (status != PRONY_OK || work->has_loss_expectation)
		return status;
	status = compute_loss(work, cell, parts, control, err);
	work->has_loss_expectation = status == PRONY_OK;
	if (work->has_loss_expectation && work->answers)
		answers_write_loss(work->answers, work->loss_key, work->loss_mean,
				   work->loss_deviation, &why);
	return status;
}

enum prony_status workload_write_bundle(const struct workload *work, const struct plan_cell *cell,
					bool gate, const char *folder, struct error *err)
{
	if (work->is_model)
		return model_work_write_bundle(work, cell, folder, err);
	enum prony_status status = directory_make(folder, err);
	if (status != PRONY_OK)
		return status;
	bool own = gate && work->gate_weights.tensors != work->weights.tensors;
	char *weights = work->files ? path_join(work->files, own ? "gate-" BUNDLE_WEIGHTS_FILE
								 : BUNDLE_WEIGHTS_FILE)
				    : NULL;
	char *input = work->files ? path_join(work->files,
					      gate ? "gate-" BUNDLE_INPUT_FILE : BUNDLE_INPUT_FILE)
				  : NULL;
	struct parts_of_ranks parts = {.recipe = gate ? work->gate_recipe : cell->recipe};
	if (work->ranks > 1)
		status = parts_of_ranks(gate ? &work->gate_graph : &work->graph,
					gate ? &work->gate_inputs : &work->inputs,
					gate ? &work->gate_labels : &work->labels, work->ranks,
					&parts, err);
	bool split = work->ranks > 1, native = !gate && cell->recipe.input == INPUT_NATIVE;
	struct bundle_shared shared = {
		.weights = weights,
		.input = input,
		.data = native ? dataset_to_json(cell->dataset, cell->data_folder,
						 cell->recipe.stage != STAGE_FORWARD,
						 &cell->converted)
			       : NULL};
	json_t *about =
		json_pack("{s:s, s:s, s:b}", "key", cell->key, "hash", cell->hash, "gate", gate);
	const struct graph *graph = gate ? &work->gate_graph : &work->graph;
	const struct tensor_set *inputs = gate ? &work->gate_inputs : &work->inputs;
	const struct tensor_set *labels = gate ? &work->gate_labels : &work->labels;
	if (status == PRONY_OK)
		status = bundle_write(folder, &parts.recipe, split ? &parts.graph : graph,
				      gate ? &work->gate_weights : &work->weights,
				      split ? &parts.inputs : inputs,
				      split ? &parts.labels : labels, &shared, about, err);
	parts_of_ranks_release(&parts);
	json_decref(about);
	json_decref(shared.data);
	free(weights);
	free(input);
	return status;
}
