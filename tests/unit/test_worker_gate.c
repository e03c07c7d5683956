/* The fake adapter before the parity gate: right it passes, and each seeded mutant is rejected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adapters/fake/fake.h"
#include "base/random.h"
#include "parity/gate.h"
#include "zoo/zoo.h"

#define SEED 5

/* A cell at the gate: everything that both sides work with. */
struct trial {
	struct arena arena;
	struct graph graph;
	struct recipe gate;
	struct tensor_set weights, inputs, labels;
	struct gate_reference reference;
};

static void fill_batch(struct trial *t, size_t i)
{
	struct tensor *x = &t->inputs.tensors[i], *y = &t->labels.tensors[i];
	struct random random;

	random_init(&random, SEED + i);
	for (int64_t k = 0; k < shape_elements(&x->shape); k++)
		((float *)x->data)[k] = (float)random_uniform(&random);
	for (int64_t k = 0; k < shape_elements(&y->shape); k++)
		((int64_t *)y->data)[k] =
			(int64_t)random_below(&random, (uint64_t)graph_classes(&t->graph));
}

static struct tensor_set batches(struct trial *t, int value, const char *prefix)
{
	struct error err = ERROR_INIT;
	struct tensor_set set = {
		.tensors = arena_array(&t->arena, GATE_UPDATES, sizeof(struct tensor)),
		.count = GATE_UPDATES,
	};

	for (size_t i = 0; i < set.count; i++)
		assert_int_equal(tensor_new(&t->arena, arena_printf(&t->arena, "%s.%zu", prefix, i),
					    t->graph.values[value].dtype,
					    &t->graph.values[value].shape, &set.tensors[i], &err),
				 PRONY_OK);
	return set;
}

static void trial_init(struct trial *t, const char *name, const struct recipe *cell)
{
	const struct network *network = zoo_find(name, NULL);
	struct error err = ERROR_INIT;

	memset(t, 0, sizeof *t);
	arena_init(&t->arena, 0);
	gate_recipe(cell, network_gate_rate(network, cell->optimiser), &t->gate);
	if (zoo_build(network, t->gate.batch, &t->graph, &err) != PRONY_OK ||
	    graph_initial_weights(&t->graph, SEED, &t->arena, &t->weights, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	t->inputs = batches(t, graph_input(&t->graph, 0), "x");
	t->labels = batches(t, graph_label(&t->graph, 0), "y");
	for (size_t i = 0; i < GATE_UPDATES; i++)
		fill_batch(t, i);
	if (gate_reference_init(&t->reference, &t->graph, &t->gate, &t->weights, &t->inputs,
				&t->labels, NULL, &err) != PRONY_OK)
		fail_msg("%s", err.text);
}

static void trial_release(struct trial *t)
{
	gate_reference_release(&t->reference);
	graph_release(&t->graph);
	arena_release(&t->arena);
}

static void read_into(struct session *s, enum readout what, struct tensor_set *set)
{
	struct error err = ERROR_INIT;

	if (adapter_fake.read(s, what, set, &err) != PRONY_OK)
		fail_msg("%s", err.text);
}

static void read_logits_and_loss(struct trial *t, struct session *s, struct tensor *logits,
				 double *loss)
{
	const struct shape scalar = {.rank = 0};
	struct error err = ERROR_INIT;
	struct tensor tensor;
	struct tensor_set set = {.tensors = logits, .count = 1};

	tensor_new(&t->arena, "logits", DTYPE_F32, &t->graph.values[t->graph.logits].shape, logits,
		   &err);
	read_into(s, READ_LOGITS, &set);
	*loss = NAN;
	if (t->gate.stage == STAGE_FORWARD)
		return;
	tensor_new(&t->arena, "loss", DTYPE_F64, &scalar, &tensor, &err);
	set.tensors = &tensor;
	read_into(s, READ_LOSS, &set);
	*loss = *(const double *)tensor.data;
}

static struct tensor_set read_parameters(struct trial *t, struct session *s, enum readout what)
{
	int indices[64], count = graph_parameters(&t->graph, indices, 64);
	struct error err = ERROR_INIT;
	struct tensor_set set = {
		.tensors = arena_array(&t->arena, (size_t)count, sizeof(struct tensor)),
		.count = (size_t)count,
	};

	for (int i = 0; i < count; i++)
		tensor_new(&t->arena, t->graph.values[indices[i]].name, DTYPE_F32,
			   &t->graph.values[indices[i]].shape, &set.tensors[i], &err);
	read_into(s, what, &set);
	return set;
}

/* A session of the fake adapter with options, opened, built and fed. */
static void open_fake(struct trial *t, struct graph *graph, const char *options, struct session *s,
		      struct built *built)
{
	struct error err = ERROR_INIT;
	struct probe probe;
	struct effective effective;

	*s = (struct session){
		.option = options,
		.private_data = arena_alloc(&t->arena, adapter_fake.private_size),
	};
	if (adapter_fake.probe(s, &probe, &err) != PRONY_OK ||
	    adapter_fake.open(s, &t->gate, &effective, &err) != PRONY_OK ||
	    adapter_fake.build(s, graph, &t->gate, &t->weights, built, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	for (int i = 0; i < GATE_UPDATES; i++)
		if (adapter_fake.feed(s, i,
				      batch_of_one(&t->inputs.tensors[i], &t->labels.tensors[i]),
				      &err) != PRONY_OK)
			fail_msg("%s", err.text);
}

/* What the gate says to the fake adapter with these options. */
static enum prony_status judge(struct trial *t, const char *network, const char *options,
			       struct error *err)
{
	struct tensor logits[GATE_UPDATES];
	struct tensor_set weights, gradients;
	struct gate_observed observed = {.parameters = -1, .macs = -1};
	struct session s;
	struct graph graph;
	struct built built;
	struct gate_verdict verdict = {.count = 0};

	assert_int_equal(zoo_build(zoo_find(network, NULL), t->gate.batch, &graph, err), PRONY_OK);
	open_fake(t, &graph, options, &s, &built);
	for (int i = 0; i < GATE_UPDATES; i++) {
		assert_int_equal(adapter_fake.step(&s, i, err), PRONY_OK);
		read_logits_and_loss(t, &s, &logits[i], &observed.loss[i]);
		observed.logits[i] = &logits[i];
	}
	if (t->gate.stage != STAGE_FORWARD) {
		gradients = read_parameters(t, &s, READ_GRADIENTS);
		observed.gradients = &gradients;
	}
	weights = read_parameters(t, &s, READ_WEIGHTS);
	observed.weights = &weights;
	observed.parameters = built.parameters;
	observed.macs = built.macs;
	enum prony_status status = gate_compare(&t->reference, &t->graph, &t->gate, &t->labels,
						&observed, &t->arena, &verdict, err);
	assert_true(verdict.count > 0);
	adapter_fake.close(&s);
	graph_release(&graph);
	return status;
}

static struct recipe cell_recipe(enum stage stage, enum optimiser optimiser)
{
	struct recipe cell;

	recipe_defaults(&cell);
	cell.stage = stage;
	cell.optimiser = optimiser;
	cell.batch = GATE_BATCH_MIN; /* as small as the gate allows: sanitizers are slow */
	return cell;
}

static void passes(const char *network, enum stage stage, enum optimiser optimiser)
{
	struct recipe cell = cell_recipe(stage, optimiser);
	struct error err = ERROR_INIT;
	struct trial trial;

	trial_init(&trial, network, &cell);
	if (judge(&trial, network, "", &err) != PRONY_OK)
		fail_msg("%s %s %s: %s", network, stage_name(stage), optimiser_name(optimiser),
			 err.text);
	trial_release(&trial);
}

static void a_correct_executor_passes(void **state)
{
	static const char *const networks[] = {"lenet", "mlp"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		passes(networks[i], STAGE_FORWARD, OPTIMISER_SGD);
		passes(networks[i], STAGE_FORWARD_BACKWARD, OPTIMISER_SGD);
		for (int optimiser = 0; optimiser < OPTIMISER_COUNT; optimiser++)
			passes(networks[i], STAGE_TRAIN, (enum optimiser)optimiser);
	}
}

static void rejects(const char *network, enum stage stage, enum optimiser optimiser,
		    const char *const *mutants)
{
	struct recipe cell = cell_recipe(stage, optimiser);
	struct trial trial;

	trial_init(&trial, network, &cell);
	for (size_t i = 0; mutants[i]; i++) {
		struct error err = ERROR_INIT;
		enum prony_status status = judge(&trial, network, mutants[i], &err);

		if (status != PRONY_MISMATCH)
			fail_msg("%s %s %s with %s: %s", network, stage_name(stage),
				 optimiser_name(optimiser), mutants[i], prony_status_text(status));
		assert_true(err.text[0] != '\0');
	}
	trial_release(&trial);
}

static void each_mutant_is_rejected(void **state)
{
	static const char *const forward[] = {"tf32", "swapped-channels", "wrong-logits", NULL};
	static const char *const backward[] = {
		"tf32", "swapped-channels", "wrong-logits", "no-bias-gradient", "nan-loss", NULL,
	};
	static const char *const train[] = {
		"no-momentum", "lr-scale=1.01", "lr-scale=0.99", "no-bias-gradient",
		"tf32",	       "frozen-layer",	"wrong-logits",	 "swapped-channels",
		NULL,
	};
	static const char *const rmsprop[] = {"lr-scale=1.01", "frozen-layer", "tf32", NULL};

	(void)state;
	rejects("lenet", STAGE_FORWARD, OPTIMISER_SGD, forward);
	rejects("lenet", STAGE_FORWARD_BACKWARD, OPTIMISER_SGD, backward);
	rejects("lenet", STAGE_TRAIN, OPTIMISER_RMSPROP, rmsprop);
	rejects("lenet", STAGE_TRAIN, OPTIMISER_MOMENTUM, train);
	rejects("mlp", STAGE_TRAIN, OPTIMISER_MOMENTUM, train);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_correct_executor_passes),
		cmocka_unit_test(each_mutant_is_rejected),
	};

	return cmocka_run_group_tests_name("worker_gate", tests, NULL, NULL);
}
