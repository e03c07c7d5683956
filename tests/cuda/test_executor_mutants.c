/* Mutants of the executor on the fake driver: a step without one of its commands, with two commands
 * in the wrong order, without one of the copies into or out of the device, or without one wait. The
 * tests of adapters reject each of them: so they would see such a mistake in the executor. */
#include "adapters/native/native.h"
#include "tests/cuda/fake_driver.h"
#include "tests/unit/framework_gate.h"
#include "tests/unit/unit_test.h"

enum { MUTANTS_MAX = 2000, LINE = 200 };

/* Exercises run in processes of their own, so that the fake driver counts from 0 in each. */
static void on_gpu(struct exercise *e, enum precision precision)
{
	snprintf(e->session.target.device, sizeof(e->session.target.device), "cuda:0");
	e->recipe.stage = STAGE_TRAIN;
	e->recipe.precision = precision;
}

/* No parameter begins as 0: memory of the device does, and a lost copy would be right. */
static enum prony_status gate(struct exercise *e, enum precision precision, struct error *err)
{
	for (size_t i = 0; i < e->weights.count; i++)
		for (int64_t k = 0; k < shape_elements(&e->weights.tensors[i].shape); k++)
			if (((float *)e->weights.tensors[i].data)[k] == 0)
				((float *)e->weights.tensors[i].data)[k] = 0.01f;
	on_gpu(e, precision);
	return exercise_gate(e, NULL, err);
}

static enum prony_status gate_fp32(struct exercise *e, struct error *err)
{
	return gate(e, PRECISION_FP32, err);
}

static enum prony_status gate_fp16(struct exercise *e, struct error *err)
{
	return gate(e, PRECISION_FP16, err);
}

/* Steps on the same batch draw other numbers. */
static enum prony_status draws(struct exercise *e, struct error *err)
{
	on_gpu(e, PRECISION_FP32);
	return exercise_dropout_on(e, err);
}

/* Nothing runs any more after sync, which timing relies on. */
static enum prony_status waits(struct exercise *e, struct error *err)
{
	on_gpu(e, PRECISION_FP32);
	TRY(exercise_open(e, err));
	for (int i = 0; i < 2 * EXERCISE_SLOTS; i++) {
		TRY(exercise_step(e, i % EXERCISE_SLOTS, err));
		if (fake_cuda_pending() > 0)
			return error_set(err, PRONY_MISMATCH, "step %d did not end", i);
	}
	return PRONY_OK;
}

struct mutant {
	char text[LINE], name[LINE]; /* "skip:3", "relu_f32" */
};

static bool passes(const char *network, exercise_body *body, const struct mutant *mutant)
{
	bool passed;

	if (mutant)
		setenv("FAKE_CUDA", mutant->text, 1);
	passed = exercise_run(&adapter_native, "", zoo_find(network, NULL), 4, body);
	unsetenv("FAKE_CUDA");
	return passed;
}

/* All mutants of that kind, by the trace of a right run. */
static size_t list_mutants(const char *network, exercise_body *body, const char *kind,
			   struct mutant *mutants)
{
	const char *path = test_path("trace");
	char word[LINE], name[LINE];
	size_t count = 0;
	long number;
	FILE *file;

	assert_true(passes(network, body, NULL)); /* which measures plans and keeps them */
	setenv("FAKE_CUDA_TRACE", path, 1);
	assert_true(passes(network, body, NULL));
	unsetenv("FAKE_CUDA_TRACE");
	file = fopen(path, "r");
	assert_non_null(file);
	while (fscanf(file, "%199s %ld %199s", word, &number, name) == 3) {
		if (strcmp(word, kind) != 0 || number < (long)count)
			continue; /* another kind, or another slot's capture of the same command */
		assert_int_equal(number, count);
		assert_true(count < MUTANTS_MAX);
		snprintf(mutants[count].text, LINE, "%.20s:%ld", word, number);
		snprintf(mutants[count++].name, LINE, "%s", name);
	}
	fclose(file);
	assert_int_equal(remove(path), 0);
	return count;
}

static bool among(const char *const *list, const char *name)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list != NULL;
}

/* Tries all mutants of that kind and returns how many are rejected; names those that live, but for
 * the list (NULL-terminated) of what makes no difference. */
static size_t reject(const char *network, exercise_body *body, const char *kind,
		     const char *const *same, size_t *alive)
{
	struct mutant *mutants = test_keep(calloc(MUTANTS_MAX, sizeof(*mutants)));
	size_t count = list_mutants(network, body, kind, mutants), rejected = 0;

	*alive = 0;
	for (size_t i = 0; i < count; i++) {
		if (!passes(network, body, &mutants[i])) {
			rejected++;
			continue;
		}
		if (among(same, mutants[i].name))
			continue;
		print_message("# %s lives: %s (%s)\n", network, mutants[i].text, mutants[i].name);
		(*alive)++;
	}
	return rejected;
}

static const char *const nothing[] = {NULL};

IN_FOLDER(test_commands)
{
	size_t alive;

	assert_true(reject("lenet", gate_fp32, "skip", nothing, &alive) > 20);
	assert_int_equal(alive, 0);
}

IN_FOLDER(test_commands_fp16)
{
	/* The scale grows after 2,000 steps. The gradient of the logits is converted twice, into
	 * the same memory; of the other conversions none may be missing. */
	static const char *const same[] = {"step_loss_scale", "copy_f32_to_f16", NULL};
	size_t alive;

	assert_true(reject("lenet", gate_fp16, "skip", same, &alive) >= 30);
	assert_int_equal(alive, 0);
}

IN_FOLDER(test_order)
{
	/* The gradient of a bias beside that of weights; the loss beside the first gradient. */
	static const char *const same[] = {
		"libcublasLt.so.13/column_sums_f32", "column_sums_f32/libcublasLt.so.13",
		"libcudnn.so.9/channel_parts_f32",   "channel_sums/libcudnn.so.9",
		"sum_loss/libcublasLt.so.13",	     NULL};
	size_t alive;

	assert_true(reject("lenet", gate_fp32, "swap", same, &alive) > 10);
	assert_int_equal(alive, 0);
}

IN_FOLDER(test_copies)
{
	size_t alive;

	assert_true(reject("lenet", gate_fp32, "copy", nothing, &alive) > 20);
	assert_int_equal(alive, 0);
}

/* Other waits are followed by one before the host needs what they wait for. */
IN_FOLDER(test_waits)
{
	enum { READS = 3 + 3 + 1 }; /* of logits, losses and all weights */
	size_t alive;

	assert_int_equal(reject("lenet", waits, "wait", nothing, &alive), 2 * EXERCISE_SLOTS);
	assert_true(reject("lenet", gate_fp32, "wait", nothing, &alive) >= READS);
}

/* The number of the step, from which masks are drawn, is in device memory. */
IN_FOLDER(test_step_number)
{
	struct mutant *mutants = test_keep(calloc(MUTANTS_MAX, sizeof(*mutants)));
	size_t count = list_mutants("mlp", draws, "skip", mutants), tried = 0;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(mutants[i].name, "advance_step") != 0)
			continue;
		assert_false(passes("mlp", draws, &mutants[i]));
		tried++;
	}
	assert_int_equal(tried, 1);
}
