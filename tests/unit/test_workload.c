/* The work of a cell: the recipe and data of its gate. */
#include "onnx/onnx.h"
#include "run/workload.h"
#include "unit_test.h"
#include "zoo/source.h"

#define SEED 5

/* Returns LeNet as a user's model file. */
static struct network_file *lenet_file(void)
{
	char path[] = "/tmp/prony-work-XXXXXX.onnx";
	struct error err = ERROR_INIT;
	struct network_file *file = NULL;
	SCOPED(graph) graph;
	struct tensor_set weights;
	SCOPED(arena) arena;
	void *bytes = NULL;
	size_t length = 0;

	arena_init(&arena, 0);
	check(zoo_build(zoo_find("lenet", NULL), 8, &graph, &err), &err);
	check(graph_initial_weights(&graph, SEED, &arena, &weights, &err), &err);
	check(onnx_export(&graph, &weights, &bytes, &length, &err), &err);
	int descriptor = mkstemps(path, 5);
	assert_true(descriptor >= 0);
	assert_int_equal(write(descriptor, bytes, length), length);
	close(descriptor);
	check(network_file_open(path, NULL, &file, &err), &err);
	unlink(path);
	free(bytes);
	return file;
}

/* Returns a cell of that network; its work depends on nothing else in it. */
static struct plan_cell cell_of(const struct network *network, enum stage stage,
				enum optimiser optimiser)
{
	struct plan_cell cell = {.network = network, .dataset = dataset_find("synthetic")};

	recipe_defaults(&cell.recipe);
	cell.recipe.stage = stage;
	cell.recipe.optimiser = optimiser;
	cell.recipe.batch = 8;
	assert_non_null(cell.dataset);
	return cell;
}

static double default_rate(const struct plan_cell *cell)
{
	struct recipe gate;

	gate_recipe(&cell->recipe, network_gate_rate(cell->network, cell->recipe.optimiser), &gate);
	return gate.learning_rate;
}

/* Returns the rate of the gate; `settled`, if not NULL: the rate that gate_settle_rate computes for
 * its batch. */
static double rate_of_gate(const struct plan_cell *cell, double *settled)
{
	struct error err = ERROR_INIT;
	SCOPED(workload) work;

	check(workload_init(&work, cell, SEED, &err), &err);
	check(workload_need_gate(&work, cell, SEED, NULL, &err), &err);
	if (settled) {
		struct recipe recipe = work.gate_recipe;

		recipe.learning_rate = default_rate(cell);
		check(gate_settle_rate(&recipe, &work.gate_graph, &work.weights,
				       (struct batch){&work.gate_inputs.tensors[0],
						      &work.gate_labels.tensors[0], 1, 1},
				       NULL, &err),
		      &err);
		*settled = recipe.learning_rate;
	}
	double rate = work.gate_recipe.learning_rate;
	assert_true(work.gate.expected_count > 0);
	return rate;
}

TEST(a_users_own_model_gets_a_rate_that_it_stands)
{
	struct network_file *file = lenet_file();
	struct plan_cell cell = cell_of(&file->network, STAGE_TRAIN, OPTIMISER_RMSPROP);
	double settled, rate = rate_of_gate(&cell, &settled);

	assert_true(rate == settled && rate < 0.5 * default_rate(&cell));
	cell = cell_of(&file->network, STAGE_FORWARD_BACKWARD, OPTIMISER_RMSPROP);
	assert_true(rate_of_gate(&cell, NULL) == default_rate(&cell));
	network_file_free(file);
}

TEST(a_network_of_the_zoo_keeps_the_rate_that_was_chosen)
{
	struct plan_cell cell = cell_of(zoo_find("lenet", NULL), STAGE_TRAIN, OPTIMISER_MOMENTUM);

	assert_true(rate_of_gate(&cell, NULL) == default_rate(&cell));
}

static struct graph graph_of(const char *network)
{
	struct error err = ERROR_INIT;
	struct graph graph;

	check(zoo_build(zoo_find(network, NULL), 8, &graph, &err), &err);
	return graph;
}

/* RMSprop turns small differences into steps of full size, so its rate is settled even if the user
 * set it. */
TEST(rmsprop_opens_the_rate_of_the_zoo)
{
	struct plan_cell cell = cell_of(zoo_find("lenet", NULL), STAGE_TRAIN, OPTIMISER_RMSPROP);
	struct recipe gate = {.stage = STAGE_TRAIN, .optimiser = OPTIMISER_RMSPROP};
	SCOPED(graph) graph = graph_of("lenet");
	double settled, rate = rate_of_gate(&cell, &settled);

	assert_true(rate == settled && rate < 0.5 * default_rate(&cell));
	assert_true(gate_rate_is_open(&gate, &graph, true));
	gate.optimiser = OPTIMISER_MOMENTUM;
	assert_false(gate_rate_is_open(&gate, &graph, true));
	assert_true(gate_rate_is_open(&gate, &graph, false));
	gate.stage = STAGE_FORWARD;
	assert_false(gate_rate_is_open(&gate, &graph, false));
}

/* An update that overshoots amplifies the rounding of reduced precision. */
TEST(reduced_precision_opens_the_rate_of_the_zoo)
{
	static const enum precision reduced[] = {PRECISION_TF32, PRECISION_FP16, PRECISION_BF16};
	struct plan_cell cell = cell_of(zoo_find("lenet", NULL), STAGE_TRAIN, OPTIMISER_MOMENTUM);
	SCOPED(graph) plain = graph_of("lenet"), normalising = graph_of("resnet50-cifar");
	double settled;

	for (size_t i = 0; i < sizeof reduced / sizeof reduced[0]; i++) {
		struct recipe gate = {.stage = STAGE_TRAIN, .optimiser = OPTIMISER_SGD};

		gate.precision = reduced[i];
		assert_true(gate_rate_is_open(&gate, &plain, true));
		assert_false(gate_rate_is_open(&gate, &normalising, true));
		gate.stage = STAGE_FORWARD_BACKWARD;
		assert_false(gate_rate_is_open(&gate, &plain, true));
	}
	cell.recipe.precision = PRECISION_BF16;
	double rate = rate_of_gate(&cell, &settled);
	assert_true(rate == settled && rate < 0.5 * default_rate(&cell));
	graph_release(&normalising);
}

struct heard {
	int times;
	double last;
	bool forwards;
};

static void hear(void *context, double fraction)
{
	struct heard *heard = context;

	heard->times++;
	heard->forwards = heard->forwards && fraction >= heard->last && fraction < 1;
	heard->last = fraction;
}

/* Progress goes from 0 to nearly 1, for a gate without close comparisons and for one with dropout
 * masks. */
TEST(who_waits_hears_how_far_it_is)
{
	struct plan_cell cells[] = {
		cell_of(zoo_find("mlp", NULL), STAGE_FORWARD, OPTIMISER_SGD),
		cell_of(zoo_find("lenet", NULL), STAGE_FORWARD_BACKWARD, OPTIMISER_SGD),
		cell_of(zoo_find("lenet", NULL), STAGE_TRAIN, OPTIMISER_RMSPROP)};

	for (size_t i = 0; i < COUNT(cells); i++) {
		struct heard heard[2] = {{.forwards = true}, {.forwards = true}};
		struct reference_control control = {.progress = hear};
		struct error err = ERROR_INIT;
		SCOPED(workload) work;

		cells[i].recipe.dropout = true;
		check(workload_init(&work, &cells[i], SEED, &err), &err);
		control.context = &heard[0];
		check(workload_need_gate(&work, &cells[i], SEED, &control, &err), &err);
		control.context = &heard[1];
		check(workload_need_loss(&work, &cells[i], &control, &err), &err);
		for (int k = 0; k < 2; k++) {
			assert_true(heard[k].times >= 5);
			assert_true(heard[k].forwards);
			/* A gate may not need its second run. */
			assert_true(heard[k].last > (k == 0 ? 0.3 : 0.9));
		}
	}
}

/* The key of a kept proof does not need the pass over the prompt; the gate does. */
TEST(a_prompt_is_run_when_a_gate_needs_it)
{
	struct network step;
	struct error err = ERROR_INIT;
	double first[2];
	SCOPED(workload) work;

	check(network_at_stage(zoo_find("llama-tiny", NULL), STAGE_DECODE, &step, &err), &err);
	struct plan_cell cell = cell_of(&step, STAGE_FORWARD, OPTIMISER_SGD);
	cell.recipe.batch = 2;
	check(workload_init(&work, &cell, SEED, &err), &err);
	for (int i = 0; i < 2; i++) {
		check(workload_need_gate_case(&work, &cell, SEED, &err), &err);
		assert_null(work.prefix_logits[0].data);
		check(workload_need_gate(&work, &cell, SEED, NULL, &err), &err);
		first[i] = ((const double *)work.prefix_logits[0].data)[0];
		workload_drop_gate(&work);
	}
	assert_true(first[0] == first[1]);
}

TEST(settling_can_be_interrupted)
{
	struct network_file *file = lenet_file();
	struct plan_cell cell = cell_of(&file->network, STAGE_TRAIN, OPTIMISER_MOMENTUM);
	struct error err = ERROR_INIT;
	volatile int stop = 1;
	struct reference_control control = {.stop = &stop};
	struct workload work;

	check(workload_init(&work, &cell, SEED, &err), &err);
	assert_int_equal(workload_need_gate(&work, &cell, SEED, &control, &err), PRONY_INTERRUPTED);
	assert_false(work.has_gate);
	workload_release(&work);
	network_file_free(file);
}

/* The reference of a large network takes minutes, so it is not computed again for each way to run
 * the steps. */
TEST(who_runs_the_steps_makes_no_other_work)
{
	struct plan_cell cell = {.cell = {.framework = "native", .network = "lenet", .batch = 8}};
	char key[CELL_KEY_BYTES], other[CELL_KEY_BYTES];

	workload_key(&cell, key);
	snprintf(cell.cell.framework, sizeof cell.cell.framework, "keras3:jax");
	cell.cell.loop = LOOP_FIT;
	cell.cell.sync = SYNC_END;
	workload_key(&cell, other);
	assert_string_equal(other, key);
	cell.cell.stage = STAGE_TRAIN;
	workload_key(&cell, other);
	assert_string_not_equal(other, key);
}
