/* The native executor against the float64 reference. Skipped if oneDNN is not installed. */
#include "adapters/native/cpu/cpu.h"
#include "adapters/native/inspect.h"
#include "adapters/native/native.h"
#include "framework_exercise.h"
#include "framework_gate.h"
#include "unit_test.h"
#include "zoo/zoo.h"

static const char *library;
static int allocations; /* allocations of prony's own code: the linker wraps its calls */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	allocations++;
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	allocations++;
	return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	allocations++;
	return __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	allocations++;
	return __real_aligned_alloc(alignment, bytes);
}

static void run(const char *network, int64_t batch, exercise_body *body)
{
	assert_true(exercise_run(&adapter_native, library, zoo_find(network, NULL), batch, body));
}

/* Runs a test at the batches where layouts and loops change. */
static void run_everywhere(const char *network, exercise_body *body)
{
	static const int64_t batches[] = {1, 2, 5, 64};

	for (size_t i = 0; i < COUNT(batches); i++)
		run(network, batches[i], body);
}

/* Operators that the built-in networks lack: see framework_exercise.h. */
static void run_others(exercise_body *body)
{
	assert_true(exercise_run(&adapter_native, library, &exercise_network_odd, 4, body));
	assert_true(exercise_run(&adapter_native, library, &exercise_network_wide, 4, body));
}

static enum prony_status forward_one_thread(struct exercise *e, struct error *err)
{
	e->recipe.threads = 1;
	return exercise_forward(e, err);
}

TEST(forward_agrees)
{
	run_everywhere("lenet", exercise_forward);
	run_everywhere("mlp", exercise_forward);
	run_everywhere("tagger", exercise_forward);
	run_everywhere("lenet", forward_one_thread);
	run_others(exercise_forward);
}

static enum prony_status gradients_one_thread(struct exercise *e, struct error *err)
{
	e->recipe.threads = 1;
	return exercise_gradients(e, err);
}

TEST(gradients_agree)
{
	run_everywhere("lenet", exercise_gradients);
	run_everywhere("mlp", exercise_gradients);
	run_everywhere("tagger", exercise_gradients);
	run_everywhere("lenet", gradients_one_thread);
	run_others(exercise_gradients);
}

static enum prony_status update_momentum(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_MOMENTUM;
	e->recipe.weight_decay = 0.001;
	return exercise_updates(e, false, err);
}

static enum prony_status update_rmsprop(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_RMSPROP;
	e->recipe.learning_rate = 0.001;
	e->recipe.epsilon = 0.001; /* large enough to distinguish inside the root from outside */
	return exercise_updates(e, false, err);
}

static enum prony_status update_rmsprop_inside(struct exercise *e, struct error *err)
{
	struct error mismatch = ERROR_INIT;

	e->recipe.optimiser = OPTIMISER_RMSPROP;
	e->recipe.learning_rate = 0.001;
	e->recipe.epsilon = 0.001;
	if (exercise_updates(e, true, &mismatch) != PRONY_MISMATCH)
		return error_set(err, PRONY_INTERNAL, "another update rule went unnoticed");
	return PRONY_OK;
}

TEST(updates_agree)
{
	run_everywhere("lenet", exercise_update_sgd);
	run_everywhere("lenet", update_momentum);
	run_everywhere("mlp", update_momentum);
	run_everywhere("tagger", update_momentum);
	run_everywhere("mlp", update_rmsprop);
	run_everywhere("mlp", exercise_update_adamw);
	run_everywhere("tagger", exercise_update_adamw);
	run_everywhere("mlp", exercise_update_clipped);
	run_everywhere("tagger", exercise_update_clipped);
	run_others(update_momentum);
	run("mlp", 8, update_rmsprop_inside);
}

TEST(a_wrong_weight_is_noticed)
{
	run("lenet", 8, exercise_wrong_weight);
}

/* Returns whether command i repeats the work of an earlier one: the same weights in the same
 * layout. */
static bool repeats(const struct program *program, int i)
{
	const struct command *command = &program->commands[i];

	for (int k = 0; k < i; k++) {
		const struct command *other = &program->commands[k];

		if (strstr(other->name, " reorder") && other->operands[0] == command->operands[0] &&
		    program->device->dnn.memory_desc_equal(
			    program->operands[other->operands[1]].description,
			    program->operands[command->operands[1]].description))
			return true;
	}
	return false;
}

/* Constant weights are in every layout that a step needs before the step begins. Weights that the
 * previous step changed are reordered into each layout once, after one update. */
static enum prony_status check_reorders(struct exercise *e, enum stage stage, struct error *err)
{
	const struct program *program = native_program(&e->session);
	int updates = 0;

	e->recipe.stage = stage;
	TRY(exercise_open(e, err));
	for (int i = 0; i < program->command_count; i++) {
		const struct command *command = &program->commands[i];

		updates += strstr(command->name, " update") != NULL;
		if (strstr(command->name, " reorder") &&
		    program->operands[program_root(program, command->operands[0])].region ==
			    REGION_PARAMETER &&
		    (stage != STAGE_TRAIN || repeats(program, i)))
			return error_set(err, PRONY_MISMATCH, "'%s' in each step", command->name);
	}
	if (updates != (stage == STAGE_TRAIN))
		return error_set(err, PRONY_MISMATCH, "%d updates", updates);
	return PRONY_OK;
}

static enum prony_status reorders_of_train(struct exercise *e, struct error *err)
{
	return check_reorders(e, STAGE_TRAIN, err);
}

static enum prony_status reorders_of_gradients(struct exercise *e, struct error *err)
{
	return check_reorders(e, STAGE_FORWARD_BACKWARD, err);
}

TEST(steps_reorder_no_weights_in_vain)
{
	static const struct {
		const char *network;
		int64_t batch;
	} rows[] = {{"lenet", 64}, {"cnn", 8}, {"lstm", 4}, {"irnn", 2}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		run(rows[i].network, rows[i].batch, reorders_of_train);
		run(rows[i].network, rows[i].batch, reorders_of_gradients);
	}
}

/* Returns the result of a body, or an error if the recurrent layer was not computed in that many
 * parts of the batch. */
static enum prony_status in_parts(struct exercise *e, enum prony_status status, int wanted,
				  struct error *err)
{
	const struct program *program = native_program(&e->session);
	int parts = 1;

	TRY(status);
	for (int i = 0; i < program->command_count; i++)
		if (program->commands[i].work->parts > parts)
			parts = program->commands[i].work->parts;
	if (parts != wanted)
		return error_set(err, PRONY_MISMATCH, "%d parts, not %d", parts, wanted);
	return PRONY_OK;
}

static enum prony_status forward_in_parts(struct exercise *e, struct error *err)
{
	return in_parts(e, exercise_forward(e, err), 2, err);
}

static enum prony_status gradients_in_parts(struct exercise *e, struct error *err)
{
	return in_parts(e, exercise_gradients(e, err), 2, err);
}

static enum prony_status updates_in_parts(struct exercise *e, struct error *err)
{
	return in_parts(e, update_momentum(e, err), 2, err);
}

static enum prony_status forward_as_a_whole(struct exercise *e, struct error *err)
{
	return in_parts(e, exercise_forward(e, err), 1, err);
}

TEST(each_thread_takes_its_rows_through_all_steps)
{
	static const char *const networks[] = {"lstm", "irnn"};

	for (int i = 0; i < 2; i++) {
		run(networks[i], 16, forward_in_parts);
		run(networks[i], 16, gradients_in_parts);
		run(networks[i], 16, updates_in_parts);
		run(networks[i], 15, forward_as_a_whole);
		run(networks[i], 4, gradients_in_parts);
	}
}

static enum prony_status check_allocations(struct exercise *e, struct error *err)
{
	int before;

	e->recipe.stage = STAGE_TRAIN;
	e->recipe.dropout = true;
	TRY(exercise_open(e, err));
	if (allocations == 0)
		return error_set(err, PRONY_INTERNAL, "allocations are not counted");
	before = allocations;
	for (int i = 0; i < 20; i++)
		TRY(exercise_step(e, i % EXERCISE_SLOTS, err));
	if (allocations != before)
		return error_set(err, PRONY_MISMATCH, "%d allocations in 20 steps",
				 allocations - before);
	return PRONY_OK;
}

static enum prony_status check_allocations_bf16(struct exercise *e, struct error *err)
{
	e->recipe.precision = PRECISION_BF16;
	return check_allocations(e, err);
}

TEST(steps_allocate_nothing)
{
	run("lenet", 64, check_allocations);
	run("mlp", 64, check_allocations);
	run("tagger", 64, check_allocations);
	run("lstm", 16, check_allocations);
	if (exercise_has_precision(&adapter_native, library, PRECISION_BF16))
		run("lenet", 64, check_allocations_bf16);
}

static enum prony_status check_reports(struct exercise *e, struct error *err)
{
	e->recipe.stage = STAGE_TRAIN;
	e->recipe.threads = 1;
	TRY(exercise_open(e, err));
	if (e->probe.library_count != 1 || e->probe.libraries[0].version[0] != '3' ||
	    e->probe.instruction_set[0] == '\0' || e->effective.threads != 1 ||
	    e->effective.mxcsr == 0 || !strstr(e->effective.settings, "fpmath=strict") ||
	    !strstr(e->built.notes, "conv1=") || !strstr(e->built.notes, "ip1+Relu="))
		return error_set(err, PRONY_MISMATCH, "%s; %s; %s", e->probe.libraries[0].version,
				 e->effective.settings, e->built.notes);
	return exercise_trainer(e, err);
}

TEST(reports_what_it_did)
{
	run("lenet", 4, check_reports);
}

/* If the library has only reference code for a layer in the layouts that it would choose, the
 * executor takes other layouts, on any processor. `native_avx2` is this test with the library
 * limited to AVX2. */
static enum prony_status check_no_reference_code(struct exercise *e, struct error *err)
{
	e->recipe.stage = STAGE_TRAIN;
	TRY(exercise_open(e, err));
	if (strstr(e->built.notes, "ref"))
		return error_set(err, PRONY_MISMATCH, "%s", e->built.notes);
	return exercise_trainer(e, err);
}

TEST(nothing_is_reference_code)
{
	run_everywhere("lenet", check_no_reference_code);
	run("cnn", 4, check_no_reference_code);
	run("alexnet-cifar", 4, check_no_reference_code);
	run("googlenet-cifar", 4, check_no_reference_code);
}

/* Dropout masks differ in each step and have the right mean. */
static enum prony_status check_dropout(struct exercise *e, struct error *err)
{
	enum { STEPS = 64 };
	double loss = 0, sum = 0, first = 0;

	e->recipe.stage = STAGE_FORWARD_BACKWARD;
	e->recipe.dropout = true;
	TRY(exercise_open(e, err));
	for (int i = 0; i < STEPS; i++) {
		TRY(exercise_loss_of_step(e, &loss, err));
		sum += loss;
		if (i == 0)
			first = loss;
		else if (loss == first)
			return error_set(err, PRONY_MISMATCH, "step %d has the first mask", i);
	}
	/* The loss of an untrained network: above log(10), but not ten times as large. */
	if (!(sum / STEPS > 2 && sum / STEPS < 5))
		return error_set(err, PRONY_MISMATCH, "mean loss %g", sum / STEPS);
	return PRONY_OK;
}

TEST(dropout_draws_new_masks)
{
	run("mlp", 64, check_dropout);
}

static enum prony_status gate_bf16(struct exercise *e, const struct gate_mutant *mutant,
				   struct error *err)
{
	e->recipe.precision = PRECISION_BF16;
	e->recipe.learning_rate = 0.01; /* the network's rate in the gate */
	TRY(exercise_gate(e, mutant, err));
	if (e->effective.precision != PRECISION_BF16 ||
	    !strstr(e->built.notes, "bf16 in 4 of 4 products; "))
		return error_set(err, PRONY_MISMATCH, "%s", e->built.notes);
	return PRONY_OK;
}

static enum prony_status train_bf16(struct exercise *e, struct error *err)
{
	e->recipe.stage = STAGE_TRAIN;
	return gate_bf16(e, NULL, err);
}

static enum prony_status gradients_bf16(struct exercise *e, struct error *err)
{
	e->recipe.stage = STAGE_FORWARD_BACKWARD;
	return gate_bf16(e, NULL, err);
}

static enum prony_status forward_bf16(struct exercise *e, struct error *err)
{
	e->recipe.stage = STAGE_FORWARD;
	return gate_bf16(e, NULL, err);
}

static enum prony_status frozen_bf16(struct exercise *e, struct error *err)
{
	const struct gate_mutant mutant = {.what = "a frozen layer", .still = "conv2.weight"};

	e->recipe.stage = STAGE_TRAIN;
	return gate_bf16(e, &mutant, err);
}

static enum prony_status no_momentum_bf16(struct exercise *e, struct error *err)
{
	const struct gate_mutant mutant = {.what = "no momentum", .no_momentum = true};

	e->recipe.stage = STAGE_TRAIN;
	return gate_bf16(e, &mutant, err);
}

static enum prony_status rate_bf16(struct exercise *e, struct error *err)
{
	const struct gate_mutant mutant = {.what = "another learning rate", .rate = 1.1};

	e->recipe.stage = STAGE_TRAIN;
	return gate_bf16(e, &mutant, err);
}

TEST(passes_the_gate_in_bf16)
{
	static exercise_body *const bodies[] = {forward_bf16, gradients_bf16,	train_bf16,
						frozen_bf16,  no_momentum_bf16, rate_bf16};

	if (!exercise_has_precision(&adapter_native, library, PRECISION_BF16))
		skip();
	for (size_t i = 0; i < COUNT(bodies); i++)
		run("lenet", 8, bodies[i]);
}

/* Reads back the weights that were given, not their bf16 copies. */
static enum prony_status check_read_back(struct exercise *e, struct error *err)
{
	struct tensor_set read;

	e->recipe.precision = PRECISION_BF16;
	e->recipe.stage = STAGE_FORWARD;
	TRY(exercise_open(e, err));
	TRY(exercise_read(e, READ_WEIGHTS, &read, err));
	for (size_t i = 0; i < read.count; i++) {
		const struct tensor *given = tensor_find(&e->weights, read.tensors[i].name);

		if (memcmp(given->data, read.tensors[i].data, (size_t)tensor_bytes(given)) != 0)
			return error_set(err, PRONY_MISMATCH, "'%s' is not what was given",
					 given->name);
	}
	return PRONY_OK;
}

TEST(weights_are_read_back_in_fp32)
{
	if (!exercise_has_precision(&adapter_native, library, PRECISION_BF16))
		skip();
	run("lenet", 8, check_read_back);
}

TEST(refuses_what_it_cannot)
{
	SCOPED(graph) graph;
	struct builder builder = {.graph = &graph, .error = ERROR_INIT};
	struct error why = ERROR_INIT;
	struct target target;
	struct recipe recipe;
	int x, y;

	target_defaults(&target);
	recipe_defaults(&recipe);
	recipe.precision = PRECISION_TF32;
	recipe.stage = STAGE_LOAD;
	graph_init(&graph, "shared");
	x = build_input(&builder, "input", DTYPE_F32, 2, 1, (const int64_t[]){4});
	y = build_parameter(&builder, "shared.weight", 2, (const int64_t[]){4, 4}, FILL_HE_NORMAL,
			    4);
	for (int i = 0; i < 2; i++) {
		const struct attributes attributes = {.alpha = 1, .beta = 1};

		x = build_node(&builder, OP_GEMM, i ? "second" : "first", (const int[]){x, y}, 2,
			       &attributes);
	}
	assert_int_equal(build_finish(&builder, x, 0, NULL, NULL), PRONY_OK);
	assert_int_equal(adapter_native.supports(&target, &graph, &recipe, &why),
			 PRONY_UNSUPPORTED);
	assert_has(why.text, "tf32: only fp32, bf16");
	assert_has(why.text, "shared.weight");
	assert_has(why.text, "loader");
}

/* An argument selects tests by name. */
int main(int argc, char **argv)
{
	library = exercise_library("PRONY_NATIVE_LIBRARY", "native/*/data/lib/libdnnl.so.3*");
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return unit_tests_run(NULL, NULL);
}
