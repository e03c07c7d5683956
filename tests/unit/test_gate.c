/*
 * The parity gate against a float32 executor that shares nothing with the reference: right ones in
 * any order of summation pass, and each mutant is rejected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "networks/zoo/zoo.h"
#include "parity/gate.h"
#include "tests/unit/executor_f32.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void check(enum prony_status status, const struct error *err)
{
	if (status != PRONY_OK)
		fail_msg("%s", err->text);
}

/* One gate: a network, its recipe, its batches, and what the reference expects. */
struct fixture {
	struct arena arena;
	struct graph forward, graph; /* without and with backward pass */
	struct recipe recipe;
	struct tensor_set weights, inputs, labels;
	struct gate_reference reference;
};

enum pictures { NOISE, STROKES }; /* synthetic input; images that are mostly exact zeros */

static void draw_stroke(struct random *random, float *picture)
{
	double row = 5 + 18 * random_uniform(random), column = 5 + 18 * random_uniform(random);
	double down = random_uniform(random) - 0.5, right = random_uniform(random) - 0.5;

	for (int i = 0; i < 14; i++) {
		int at = (int)(row + down * i) * 28 + (int)(column + right * i);

		picture[at] = (float)((double)(1 + random_below(random, 255)) / 255.0);
		if (at + 1 < 784)
			picture[at + 1] = picture[at];
	}
}

static void draw_batch(struct random *random, enum pictures pictures, struct tensor *x,
		       struct tensor *y)
{
	for (int64_t n = 0; n < y->shape.dims[0]; n++) {
		float *picture = (float *)x->data + n * 784;

		for (int i = 0; i < 784 && pictures == NOISE; i++)
			picture[i] = (float)random_uniform(random);
		for (int i = 0; i < 3 && pictures == STROKES; i++)
			draw_stroke(random, picture);
		((int64_t *)y->data)[n] = (int64_t)random_below(random, 10);
	}
}

static void fixture_init(struct fixture *f, const char *name, enum stage stage,
			 enum optimiser optimiser, enum pictures pictures, uint64_t seed)
{
	const struct network *network = zoo_find(name, NULL);
	struct error err = ERROR_INIT;
	struct recipe cell;
	struct random random;

	*f = (struct fixture){0};
	arena_init(&f->arena, 0);
	recipe_defaults(&cell);
	cell.stage = stage;
	cell.optimiser = optimiser;
	cell.rho = 0.9;
	cell.epsilon = 1e-7;
	cell.batch = 64;
	gate_recipe(&cell, network->gate_learning_rate, &f->recipe);
	check(zoo_build(network, f->recipe.batch, &f->forward, &err), &err);
	check(zoo_build(network, f->recipe.batch, &f->graph, &err), &err);
	check(graph_add_backward(&f->graph, &err), &err);
	check(graph_initial_weights(&f->forward, seed, &f->arena, &f->weights, &err), &err);
	f->inputs.tensors = arena_array(&f->arena, GATE_UPDATES, sizeof(struct tensor));
	f->labels.tensors = arena_array(&f->arena, GATE_UPDATES, sizeof(struct tensor));
	f->inputs.count = f->labels.count = GATE_UPDATES;
	random_init(&random, seed);
	for (int i = 0; i < GATE_UPDATES; i++) {
		struct tensor *x = &f->inputs.tensors[i], *y = &f->labels.tensors[i];

		check(tensor_new(&f->arena, "x", DTYPE_F32,
				 &f->forward.values[f->forward.input].shape, x, &err),
		      &err);
		check(tensor_new(&f->arena, "y", DTYPE_I64,
				 &f->forward.values[f->forward.label].shape, y, &err),
		      &err);
		draw_batch(&random, pictures, x, y);
	}
	check(gate_reference_init(&f->reference, &f->forward, &f->recipe, &f->weights, &f->inputs,
				  &f->labels, &err),
	      &err);
}

static void fixture_release(struct fixture *f)
{
	gate_reference_release(&f->reference);
	graph_release(&f->forward);
	graph_release(&f->graph);
	arena_release(&f->arena);
}

/* What is different about a framework; zero: nothing. */
struct framework {
	const char *what;
	int operand_bits;
	uint64_t order_seed;
	int64_t chunk;
	bool epsilon_inside;
	const char *frozen;
	double rate_factor; /* 0: 1 */
	bool without_momentum;
	const char *swapped; /* a parameter, two of whose input channels change places */
	bool swapped_input;  /* two rows of every picture change places */
};

struct outcome {
	struct tensor logits[GATE_UPDATES];
	struct tensor_set gradients, weights;
	struct gate_observed observed;
};

static void swap_floats(float *a, float *b, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		float kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

/* Exchanges input channels 0 and 1 of the weights of a convolution or full layer. */
static void swap_channels(struct executor_f32 *ex, const char *name)
{
	int index = graph_find_value(ex->graph, name);
	const struct shape *shape = &ex->graph->values[index].shape;
	int64_t per_output = shape_elements(shape) / shape->dims[0];
	int64_t plane = per_output / shape->dims[1];

	assert_true(shape->dims[1] > 1);
	for (int64_t o = 0; o < shape->dims[0]; o++) {
		float *first = ex->values[index] + o * per_output;

		swap_floats(first, first + plane, plane);
	}
}

static struct tensor_set read_parameters(struct fixture *f, const struct executor_f32 *ex,
					 bool gradients)
{
	struct tensor_set set = {0};

	set.tensors = arena_array(&f->arena, (size_t)f->graph.value_count, sizeof(struct tensor));
	for (int i = 0; i < f->graph.value_count; i++) {
		struct error err = ERROR_INIT;
		const struct value *value = &f->graph.values[i];
		struct tensor *copy = &set.tensors[set.count];

		if (value->kind != VALUE_PARAMETER)
			continue;
		struct tensor view = executor_tensor(ex, gradients ? value->gradient : i);
		check(tensor_new(&f->arena, value->name, DTYPE_F32, &value->shape, copy, &err),
		      &err);
		memcpy(copy->data, view.data, (size_t)tensor_bytes(copy));
		set.count++;
	}
	return set;
}

/* Plays the framework through the gate, as a worker would answer. */
static void play(struct fixture *f, const struct framework *framework, struct outcome *out)
{
	struct error err = ERROR_INIT;
	struct recipe recipe = f->recipe;
	struct executor_f32 ex;

	*out = (struct outcome){
		.observed = {.parameters = graph_parameter_count(&f->forward), .macs = -1}};
	executor_init(&ex, &f->graph, &f->weights);
	ex.operand_bits = framework->operand_bits > 0 ? framework->operand_bits : 24;
	ex.order_seed = framework->order_seed;
	ex.chunk = framework->chunk;
	ex.epsilon_inside = framework->epsilon_inside;
	ex.frozen = framework->frozen;
	if (framework->rate_factor > 0)
		recipe.learning_rate *= framework->rate_factor;
	if (framework->without_momentum)
		recipe.momentum = 0;
	if (framework->swapped)
		swap_channels(&ex, framework->swapped);
	for (int i = 0; i < GATE_UPDATES; i++) {
		struct tensor x = f->inputs.tensors[i];
		float *pictures = x.data;

		for (int64_t n = 0; n < recipe.batch && framework->swapped_input; n++)
			swap_floats(pictures + n * 784 + 12 * 28, pictures + n * 784 + 15 * 28, 28);
		executor_step(&ex, &recipe, &x, &f->labels.tensors[i]);
		for (int64_t n = 0; n < recipe.batch && framework->swapped_input; n++)
			swap_floats(pictures + n * 784 + 12 * 28, pictures + n * 784 + 15 * 28, 28);
		struct tensor view = executor_tensor(&ex, f->graph.logits);
		check(tensor_new(&f->arena, "logits", DTYPE_F32, &view.shape, &out->logits[i],
				 &err),
		      &err);
		memcpy(out->logits[i].data, view.data, (size_t)tensor_bytes(&view));
		out->observed.logits[i] = &out->logits[i];
		out->observed.loss[i] =
			recipe.stage == STAGE_FORWARD ? NAN : (double)ex.values[f->graph.loss][0];
	}
	if (recipe.stage == STAGE_FORWARD_BACKWARD)
		out->gradients = read_parameters(f, &ex, true);
	if (recipe.stage == STAGE_TRAIN)
		out->weights = read_parameters(f, &ex, false);
	out->observed.gradients = &out->gradients;
	out->observed.weights = &out->weights;
	executor_release(&ex);
}

/* The gate's verdict; *ratio (may be NULL) gets the worst value in units of its bound. */
static enum prony_status judge(struct fixture *f, const struct outcome *outcome, double *ratio,
			       struct error *err)
{
	json_t *evidence = NULL;
	enum prony_status status = gate_compare(&f->reference, &f->forward, &f->recipe, &f->labels,
						&outcome->observed, &evidence, err);
	const json_t *worst = json_object_get(evidence, "worst");

	assert_int_equal(status == PRONY_OK, json_is_true(json_object_get(evidence, "passed")));
	if (ratio)
		*ratio = json_number_value(json_object_get(worst, "value")) /
			 json_number_value(json_object_get(worst, "bound"));
	json_decref(evidence);
	return status;
}

static enum prony_status verdict(struct fixture *f, const struct framework *framework,
				 double *ratio, struct error *err)
{
	struct outcome outcome;

	play(f, framework, &outcome);
	return judge(f, &outcome, ratio, err);
}

/* Ten orders of summation each, as different as ten libraries'. */
static const struct framework right[] = {
	{.what = "in sequence"},
	{.what = "in blocks of 4", .chunk = 4},
	{.what = "in blocks of 16", .chunk = 16},
	{.what = "in blocks of 64", .chunk = 64},
	{.what = "in blocks of 256", .chunk = 256},
	{.what = "shuffled", .order_seed = 1},
	{.what = "shuffled otherwise", .order_seed = 2},
	{.what = "shuffled, in blocks of 8", .order_seed = 3, .chunk = 8},
	{.what = "shuffled, in blocks of 32", .order_seed = 4, .chunk = 32},
	{.what = "shuffled, in blocks of 128", .order_seed = 5, .chunk = 128},
};

static void accept_all(struct fixture *f, bool epsilon_inside)
{
	for (size_t i = 0; i < COUNT(right); i++) {
		struct error err = ERROR_INIT;
		struct framework framework = right[i];
		double ratio;

		framework.epsilon_inside = epsilon_inside;
		if (verdict(f, &framework, &ratio, &err) != PRONY_OK)
			fail_msg("%s, %s: %s", f->forward.name, framework.what, err.text);
		/* The margin is part of the contract: half of the bound stays free. */
		if (!(ratio < 0.5))
			fail_msg("%s, %s: %.2f of the bound", f->forward.name, framework.what,
				 ratio);
	}
}

static void correct_training_passes_in_any_order(void **state)
{
	static const struct {
		const char *network;
		enum pictures pictures;
		uint64_t seed;
	} cases[] = {{"lenet", STROKES, 1}, {"lenet", STROKES, 2}, {"lenet", NOISE, 3},
		     {"mlp", STROKES, 1},   {"mlp", STROKES, 2},   {"mlp", NOISE, 3},
		     {"mlp", NOISE, 4}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fixture f;

		fixture_init(&f, cases[i].network, STAGE_TRAIN, OPTIMISER_MOMENTUM,
			     cases[i].pictures, cases[i].seed);
		accept_all(&f, false);
		fixture_release(&f);
	}
}

static void both_places_of_rmsprops_epsilon_pass(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct fixture f;

		fixture_init(&f, "mlp", STAGE_TRAIN, OPTIMISER_RMSPROP, i < 2 ? NOISE : STROKES, 5);
		accept_all(&f, i % 2 == 1);
		fixture_release(&f);
	}
}

static void evaluation_and_gradients_pass_in_any_order(void **state)
{
	static const enum stage stages[] = {STAGE_FORWARD, STAGE_FORWARD_BACKWARD};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct fixture f;

		fixture_init(&f, i < 2 ? "lenet" : "mlp", stages[i % 2], OPTIMISER_MOMENTUM,
			     STROKES, 6);
		accept_all(&f, false);
		fixture_release(&f);
	}
}

/* The mutant is rejected, and not by a hair. */
static void reject(struct fixture *f, const struct framework *mutant)
{
	struct error err = ERROR_INIT;
	double ratio;

	if (verdict(f, mutant, &ratio, &err) != PRONY_MISMATCH)
		fail_msg("%s: %s of %s passes", f->forward.name, mutant->what,
			 mutant->frozen ? mutant->frozen : "the whole");
	if (!(ratio > 10))
		fail_msg("%s: %s is only %.2g times over the bound", f->forward.name, mutant->what,
			 ratio);
}

/* Freezes each parameter, and each layer ("conv1." names weight and bias). */
static void reject_frozen(struct fixture *f)
{
	for (int i = 0; i < f->graph.value_count; i++) {
		const struct value *value = &f->graph.values[i];
		char layer[64];

		if (value->kind != VALUE_PARAMETER)
			continue;
		reject(f, &(struct framework){.what = "no gradient", .frozen = value->name});
		if (!strstr(value->name, ".weight"))
			continue;
		snprintf(layer, sizeof(layer), "%s", value->name);
		*(strchr(layer, '.') + 1) = '\0';
		reject(f, &(struct framework){.what = "frozen layer", .frozen = layer});
	}
}

static void every_mutant_of_training_is_rejected(void **state)
{
	static const struct framework mutants[] = {
		{.what = "no momentum", .without_momentum = true},
		{.what = "learning rate x 1.01", .rate_factor = 1.01},
		{.what = "learning rate x 0.99", .rate_factor = 0.99},
		{.what = "tf32 for fp32", .operand_bits = 11},
		{.what = "tf32, shuffled", .operand_bits = 11, .order_seed = 9},
		{.what = "bf16 for fp32", .operand_bits = 8},
		{.what = "swapped rows of the input", .swapped_input = true},
	};
	static const struct {
		const char *network, *inner;
		enum pictures pictures;
	} cases[] = {{"lenet", "conv2.weight", STROKES},
		     {"mlp", "fc2.weight", STROKES},
		     {"mlp", "fc2.weight", NOISE}};

	(void)state;
	for (size_t c = 0; c < COUNT(cases); c++) {
		struct fixture f;

		fixture_init(&f, cases[c].network, STAGE_TRAIN, OPTIMISER_MOMENTUM,
			     cases[c].pictures, 1);
		for (size_t i = 0; i < COUNT(mutants); i++)
			reject(&f, &mutants[i]);
		reject(&f,
		       &(struct framework){.what = "swapped channels", .swapped = cases[c].inner});
		reject_frozen(&f);
		fixture_release(&f);
	}
}

static void mutants_of_rmsprop_are_rejected(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, "mlp", STAGE_TRAIN, OPTIMISER_RMSPROP, STROKES, 5);
	for (int inside = 0; inside < 2; inside++) {
		reject(&f, &(struct framework){.what = "learning rate x 1.01",
					       .rate_factor = 1.01,
					       .epsilon_inside = inside == 1});
		reject(&f, &(struct framework){.what = "tf32 for fp32",
					       .operand_bits = 11,
					       .epsilon_inside = inside == 1});
	}
	reject_frozen(&f);
	fixture_release(&f);
}

static void mutants_without_update_are_rejected(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct fixture f;

		fixture_init(&f, i ? "mlp" : "lenet", STAGE_FORWARD_BACKWARD, OPTIMISER_MOMENTUM,
			     STROKES, 6);
		reject(&f, &(struct framework){.what = "tf32 for fp32", .operand_bits = 11});
		reject_frozen(&f);
		fixture_release(&f);
		fixture_init(&f, i ? "mlp" : "lenet", STAGE_FORWARD, OPTIMISER_MOMENTUM, STROKES,
			     6);
		reject(&f, &(struct framework){.what = "tf32 for fp32", .operand_bits = 11});
		reject(&f, &(struct framework){.what = "swapped input", .swapped_input = true});
		fixture_release(&f);
	}
}

/* Asked for, tf32 and bf16 pass, and bf16 is not tf32. */
static void lower_precisions_have_their_own_bounds(void **state)
{
	static const struct {
		enum precision precision;
		int bits;
		enum prony_status expected;
	} cases[] = {{PRECISION_TF32, 11, PRONY_OK},
		     {PRECISION_TF32, 8, PRONY_MISMATCH},
		     {PRECISION_BF16, 8, PRONY_OK},
		     {PRECISION_BF16, 24, PRONY_OK},
		     {PRECISION_BF16, 5, PRONY_MISMATCH}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error err = ERROR_INIT;
		struct fixture f;

		fixture_init(&f, "mlp", STAGE_TRAIN, OPTIMISER_MOMENTUM, STROKES, 8);
		gate_reference_release(&f.reference);
		f.recipe.precision = cases[i].precision;
		check(gate_reference_init(&f.reference, &f.forward, &f.recipe, &f.weights,
					  &f.inputs, &f.labels, &err),
		      &err);
		enum prony_status status =
			verdict(&f, &(struct framework){.operand_bits = cases[i].bits}, NULL, &err);
		if (status != cases[i].expected)
			fail_msg("%d bits as %s: %s", cases[i].bits,
				 precision_name(cases[i].precision), err.text);
		fixture_release(&f);
	}
}

/*
 * A network at the edge: the input of one ReLU is one rounding away from zero, so that which side
 * it falls on is a matter of the order of summation. Both sides must pass, a third thing must not.
 */
static void a_comparison_too_close_to_call_passes_either_way(void **state)
{
	struct error err = ERROR_INIT;
	struct fixture f;

	(void)state;
	fixture_init(&f, "mlp", STAGE_TRAIN, OPTIMISER_MOMENTUM, NOISE, 12);
	gate_reference_release(&f.reference);
	/* The bias of unit 0 takes its pre-activation for sample 0 to just above or below zero. */
	const float *w = tensor_find(&f.weights, "fc1.weight")->data;
	float *bias = tensor_find(&f.weights, "fc1.bias")->data;
	const float *x = f.inputs.tensors[0].data;
	double sum = 0, sides[2][2];
	struct outcome outcomes[2];
	for (int i = 0; i < 784; i++)
		sum += (double)w[i] * (double)x[i];
	bias[0] = (float)-sum;
	check(gate_reference_init(&f.reference, &f.forward, &f.recipe, &f.weights, &f.inputs,
				  &f.labels, &err),
	      &err);
	assert_true(f.reference.expected_count >= 2);
	for (int side = 0; side < 2; side++) {
		float kept = bias[0];

		/* The framework's own rounding, pushed to one side. */
		bias[0] += side ? 2e-6f : -2e-6f;
		play(&f, &(struct framework){.what = "at the edge"}, &outcomes[side]);
		bias[0] = kept;
		/* What it trained from was the bias that it was given. */
		((float *)tensor_find(&outcomes[side].weights, "fc1.bias")->data)[0] -=
			side ? 2e-6f : -2e-6f;
		if (judge(&f, &outcomes[side], &sides[side][0], &err) != PRONY_OK)
			fail_msg("side %d: %s", side, err.text);
	}
	/* The two sides do differ by more than the bound: one answer alone would not do. */
	f.reference.expected_count = 1;
	int rejected = 0;
	for (int side = 0; side < 2; side++)
		rejected += judge(&f, &outcomes[side], NULL, NULL) == PRONY_MISMATCH;
	assert_int_equal(rejected, 1);
	fixture_release(&f);
}

static void what_is_missing_or_broken_is_a_mismatch(void **state)
{
	struct error err = ERROR_INIT;
	struct outcome outcome;
	struct fixture f;

	(void)state;
	fixture_init(&f, "mlp", STAGE_TRAIN, OPTIMISER_MOMENTUM, STROKES, 1);
	play(&f, &(struct framework){.what = "right"}, &outcome);
	check(judge(&f, &outcome, NULL, &err), &err);

	outcome.observed.parameters--;
	assert_int_equal(judge(&f, &outcome, NULL, &err), PRONY_MISMATCH);
	assert_non_null(strstr(err.text, "parameters"));
	error_clear(&err);
	outcome.observed.parameters = -1;
	check(judge(&f, &outcome, NULL, &err), &err);
	outcome.observed.macs = f.reference.macs + 1;
	assert_int_equal(judge(&f, &outcome, NULL, NULL), PRONY_MISMATCH);
	outcome.observed.macs = f.reference.macs;
	check(judge(&f, &outcome, NULL, &err), &err);

	outcome.observed.logits[1] = NULL;
	assert_int_equal(judge(&f, &outcome, NULL, &err), PRONY_MISMATCH);
	assert_non_null(strstr(err.text, "logits of step 2: missing"));
	error_clear(&err);
	outcome.observed.logits[1] = &outcome.logits[1];
	outcome.logits[1].shape.dims[1] = 3;
	assert_int_equal(judge(&f, &outcome, NULL, NULL), PRONY_MISMATCH);
	outcome.logits[1].shape.dims[1] = 10;
	float *logits = outcome.logits[2].data, kept = logits[7];
	logits[7] = NAN;
	assert_int_equal(judge(&f, &outcome, NULL, NULL), PRONY_MISMATCH);
	logits[7] = kept;
	outcome.observed.loss[0] = NAN;
	assert_int_equal(judge(&f, &outcome, NULL, NULL), PRONY_MISMATCH);
	outcome.observed.loss[0] = f.reference.expected[0].loss[0];
	check(judge(&f, &outcome, NULL, &err), &err);

	outcome.weights.count--;
	assert_int_equal(judge(&f, &outcome, NULL, &err), PRONY_MISMATCH);
	assert_non_null(strstr(err.text, "change of fc3.bias: missing"));
	error_clear(&err);
	outcome.weights.count++;
	float *w = outcome.weights.tensors[0].data;
	w[3] = INFINITY;
	assert_int_equal(judge(&f, &outcome, NULL, &err), PRONY_MISMATCH);
	outcome.observed.weights = NULL;
	assert_int_equal(judge(&f, &outcome, NULL, NULL), PRONY_MISMATCH);
	fixture_release(&f);
}

static void evidence_names_every_figure(void **state)
{
	struct error err = ERROR_INIT;
	json_t *evidence, *row;
	struct outcome outcome;
	struct fixture f;
	size_t i, tensors = 0;

	(void)state;
	fixture_init(&f, "mlp", STAGE_TRAIN, OPTIMISER_MOMENTUM, STROKES, 1);
	play(&f, &(struct framework){.frozen = "fc2.bias"}, &outcome);
	assert_int_equal(gate_compare(&f.reference, &f.forward, &f.recipe, &f.labels,
				      &outcome.observed, &evidence, &err),
			 PRONY_MISMATCH);
	assert_non_null(strstr(err.text, "fc2.bias"));
	json_array_foreach(json_object_get(evidence, "checks"), i, row)
	{
		assert_true(json_is_string(json_object_get(row, "what")));
		assert_true(json_is_number(json_object_get(row, "value")));
		assert_true(json_is_number(json_object_get(row, "bound")));
		tensors += json_is_string(json_object_get(row, "tensor"));
	}
	/* The parameters' number, logits and loss of 3 steps, 6 tensors. */
	assert_int_equal(i, 1 + 3 + 3 + 6);
	assert_int_equal(tensors, 6);
	assert_int_equal(json_integer_value(json_object_get(evidence, "gate_batch")), 16);
	assert_int_equal(json_integer_value(json_object_get(evidence, "parameters")), 669706);
	assert_true(json_is_null(json_object_get(evidence, "macs")));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(evidence, "worst"), "tensor")),
		"fc2.bias");
	json_decref(evidence);
	fixture_release(&f);
}

static void the_gates_recipe(void **state)
{
	struct recipe cell, gate;

	(void)state;
	recipe_defaults(&cell);
	cell.batch = 1;
	gate_recipe(&cell, 0.001, &gate);
	assert_int_equal(gate.batch, GATE_BATCH_MIN);
	assert_int_equal(gate.slots, GATE_UPDATES);
	assert_false(gate.dropout);
	assert_true(gate.learning_rate == 0.001);
	cell.batch = 12;
	gate_recipe(&cell, 0.001, &gate);
	assert_int_equal(gate.batch, 12);
	cell.batch = 512;
	cell.input = INPUT_STREAM;
	gate_recipe(&cell, 0.01, &gate);
	assert_int_equal(gate.batch, 16);
	assert_int_equal(gate.input, INPUT_RESIDENT);
	assert_true(gate.learning_rate == 0.01);
}

static void the_first_loss_of_a_timed_process(void **state)
{
	struct error err = ERROR_INIT;
	double mean, deviation, evaluated, none;
	struct parity_bounds bounds;
	struct fixture f;

	(void)state;
	fixture_init(&f, "mlp", STAGE_TRAIN, OPTIMISER_MOMENTUM, STROKES, 1);
	bounds = parity_bounds_for(&f.forward, PRECISION_FP32);
	struct tensor *x = &f.inputs.tensors[0], *y = &f.labels.tensors[0];
	check(gate_expected_loss(&f.forward, &f.recipe, &f.weights, x, y, &evaluated, &none, &err),
	      &err);
	assert_true(evaluated == f.reference.expected[0].loss[0] && none == 0);
	f.recipe.dropout = true;
	check(gate_expected_loss(&f.forward, &f.recipe, &f.weights, x, y, &mean, &deviation, &err),
	      &err);
	assert_true(deviation > 0 && deviation < 1 && fabs(mean - evaluated) < 5 * deviation + 0.2);

	check(gate_check_loss(evaluated * (1 + 1e-6), evaluated, 0, &bounds, &err), &err);
	assert_int_equal(gate_check_loss(evaluated + 0.01, evaluated, 0, &bounds, &err),
			 PRONY_INVALID);
	error_clear(&err);
	check(gate_check_loss(mean + 4.9 * deviation, mean, deviation, &bounds, &err), &err);
	assert_int_equal(gate_check_loss(mean - 5.5 * deviation, mean, deviation, &bounds, &err),
			 PRONY_INVALID);
	error_clear(&err);
	assert_int_equal(gate_check_loss(NAN, mean, deviation, &bounds, &err), PRONY_INVALID);
	assert_int_equal(gate_check_loss(INFINITY, mean, deviation, &bounds, NULL), PRONY_INVALID);
	assert_int_equal(gate_check_loss(1, NAN, deviation, &bounds, NULL), PRONY_INVALID);
	error_clear(&err);
	assert_int_equal(gate_expected_loss(&f.forward, &f.recipe, &f.weights, x, NULL, &mean,
					    &deviation, &err),
			 PRONY_BAD_INPUT);
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_gates_recipe),
		cmocka_unit_test(correct_training_passes_in_any_order),
		cmocka_unit_test(both_places_of_rmsprops_epsilon_pass),
		cmocka_unit_test(evaluation_and_gradients_pass_in_any_order),
		cmocka_unit_test(every_mutant_of_training_is_rejected),
		cmocka_unit_test(mutants_of_rmsprop_are_rejected),
		cmocka_unit_test(mutants_without_update_are_rejected),
		cmocka_unit_test(lower_precisions_have_their_own_bounds),
		cmocka_unit_test(a_comparison_too_close_to_call_passes_either_way),
		cmocka_unit_test(what_is_missing_or_broken_is_a_mismatch),
		cmocka_unit_test(evidence_names_every_figure),
		cmocka_unit_test(the_first_loss_of_a_timed_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
