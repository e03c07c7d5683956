/* Tests the parity gate on a network with tokens: two known mistakes of frameworks are rejected. */
#include "parity/gate.h"
#include "parity/reference.h"
#include "unit_test.h"
#include "zoo/zoo.h"

/* A simulated framework that computes as the reference does; tests then change its results. */
struct trial {
	struct arena arena;
	struct graph forward, graph;
	struct recipe recipe;
	struct tensor_set weights, inputs, labels;
	struct gate_reference expected;
	struct reference framework;
	struct tensor logits[GATE_UPDATES];
	struct tensor_set gradients;
	struct gate_observed observed;
};

static struct tensor copy_of(struct trial *t, const char *name, int value)
{
	struct error err = ERROR_INIT;
	struct tensor out;
	int64_t count;
	const double *from = reference_value(&t->framework, value, &count);

	check(tensor_new(&t->arena, name, DTYPE_F64, &t->graph.values[value].shape, &out, &err),
	      &err);
	memcpy(out.data, from, (size_t)count * sizeof(*from));
	return out;
}

static void run_framework(struct trial *t)
{
	struct error err = ERROR_INIT;
	int parameters[16], count = graph_parameters(&t->graph, parameters, 16);

	check(reference_init(&t->framework, &t->graph, &t->weights, &err), &err);
	for (size_t i = 0; i < GATE_UPDATES; i++) {
		check(reference_feed(&t->framework, batch_at(&t->graph, &t->inputs, &t->labels, i),
				     &err),
		      &err);
		check(reference_step(&t->framework, &t->recipe, false, &err), &err);
		t->logits[i] = copy_of(t, "logits", t->graph.logits);
		t->observed.logits[i] = &t->logits[i];
		t->observed.loss[i] = reference_loss(&t->framework);
	}
	t->gradients.tensors = arena_array(&t->arena, (size_t)count, sizeof(struct tensor));
	for (int i = 0; i < count; i++)
		t->gradients.tensors[t->gradients.count++] =
			copy_of(t, t->graph.values[parameters[i]].name,
				t->graph.values[parameters[i]].gradient);
	t->observed.gradients = &t->gradients;
}

static void trial_init(struct trial *t)
{
	const struct network *network = zoo_find("tagger", NULL);
	struct error err = ERROR_INIT;
	struct recipe cell;

	*t = (struct trial){.observed = {.parameters = -1, .macs = -1}};
	arena_init(&t->arena, 0);
	recipe_defaults(&cell);
	cell.stage = STAGE_FORWARD_BACKWARD;
	gate_recipe(&cell, network_gate_rate(network, cell.optimiser), &t->recipe);
	check(zoo_build(network, t->recipe.batch, &t->forward, &err), &err);
	check(zoo_build(network, t->recipe.batch, &t->graph, &err), &err);
	check(graph_add_backward(&t->graph, &err), &err);
	check(graph_initial_weights(&t->forward, 1, &t->arena, &t->weights, &err), &err);
	check(batches_draw(&t->forward, 1, 0, GATE_UPDATES, network->labels_ignored, &t->arena,
			   &t->inputs, &t->labels, &err),
	      &err);
	check(gate_reference_init(&t->expected, &t->forward, &t->recipe, &t->weights, &t->inputs,
				  &t->labels, NULL, &err),
	      &err);
	run_framework(t);
}

static void trial_release(struct trial *t)
{
	reference_release(&t->framework);
	gate_reference_release(&t->expected);
	graph_release(&t->forward);
	graph_release(&t->graph);
	arena_release(&t->arena);
}

static enum prony_status judge(struct trial *t, struct error *err)
{
	struct gate_verdict verdict = {.count = 0};

	return gate_compare(&t->expected, &t->forward, &t->recipe, &t->labels, &t->observed,
			    &t->arena, &verdict, err);
}

TEST(the_network_passes)
{
	struct error err = ERROR_INIT;
	SCOPED(trial) t;

	trial_init(&t);
	check(judge(&t, &err), &err);
}

static double share_of_valid(const struct tensor *labels)
{
	int64_t count = shape_elements(&labels->shape), valid = 0;

	for (int64_t i = 0; i < count; i++)
		valid += ((const int64_t *)labels->data)[i] >= 0;
	return (double)valid / (double)count;
}

/* As in frameworks that omit ignored labels from the sum but divide by the number of all labels. */
TEST(ignored_labels_in_the_divisor_are_found)
{
	struct error err = ERROR_INIT;
	SCOPED(trial) t;

	trial_init(&t);
	double share = share_of_valid(&t.labels.tensors[GATE_UPDATES - 1]);
	assert_true(share < 0.95);
	for (size_t i = 0; i < t.gradients.count; i++)
		for (int64_t k = 0; k < shape_elements(&t.gradients.tensors[i].shape); k++)
			((double *)t.gradients.tensors[i].data)[k] *= share;
	expect_error(judge(&t, &err), PRONY_MISMATCH, &err, "gradient");
	for (size_t i = 0; i < GATE_UPDATES; i++)
		t.observed.loss[i] *= share_of_valid(&t.labels.tensors[i]);
	assert_int_equal(judge(&t, &err), PRONY_MISMATCH);
}

/* A token that occurs several times in a batch: the gradient of its row is a sum. */
TEST(overwritten_rows_are_found)
{
	struct error err = ERROR_INIT;
	SCOPED(trial) t;
	int64_t count;

	trial_init(&t);
	const struct tensor *tokens = &t.inputs.tensors[2 * (GATE_UPDATES - 1)];
	int rows = t.graph.values[graph_find_value(&t.graph, "embed")].gradient;
	const double *from = reference_value(&t.framework, rows, &count);
	struct tensor *table = tensor_find(&t.gradients, "embed.weight");
	int64_t width = table->shape.dims[1];
	assert_string_equal(t.graph.values[graph_input(&t.graph, 0)].name, "tokens");
	for (int64_t i = 0; i < shape_elements(&tokens->shape); i++)
		memcpy((double *)table->data + ((const int64_t *)tokens->data)[i] * width,
		       from + i * width, (size_t)width * sizeof(*from));
	expect_error(judge(&t, &err), PRONY_MISMATCH, &err, "embed.weight");
}
