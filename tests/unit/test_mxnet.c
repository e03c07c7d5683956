/* MXNet's adapter against the float64 reference. Skipped where it is not installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/mxnet/mxnet.h"
#include "exercise_networks.h"
#include "framework_exercise.h"

#define LEAK_STEPS 3000
#define LEAK_PAGES 512 /* 2 MiB: below 700 bytes a step */

static const char *library;

static bool run(const char *network, int64_t batch, exercise_body *body)
{
	return exercise_run(&adapter_mxnet, library, zoo_find(network, NULL), batch, body);
}

static void test_forward(void **state)
{
	(void)state;
	assert_true(run("lenet", 8, exercise_forward));
	assert_true(run("lenet", 1, exercise_forward));
	assert_true(run("mlp", 8, exercise_forward));
	assert_true(
		exercise_run(&adapter_mxnet, library, &exercise_network_odd, 4, exercise_forward));
	assert_true(
		exercise_run(&adapter_mxnet, library, &exercise_network_wide, 4, exercise_forward));
}

/* The descriptor's options are variables. */
static enum prony_status with_variable(struct exercise *e, const char *name, const char *value,
				       struct error *err)
{
	char said[64];

	snprintf(said, sizeof(said), "%s=%s;", name, value);
	setenv(name, value, 1);
	enum prony_status status = exercise_forward(e, err);

	if (status == PRONY_OK &&
	    (!strstr(e->effective.settings, said) || !strstr(e->built.notes, "fused nodes: none")))
		status = error_set(err, PRONY_MISMATCH, "%s; %s", e->effective.settings,
				   e->built.notes);
	return status;
}

static enum prony_status without_subgraph(struct exercise *e, struct error *err)
{
	return with_variable(e, "MXNET_SUBGRAPH_BACKEND", "NONE", err);
}

static enum prony_status without_mkldnn(struct exercise *e, struct error *err)
{
	return with_variable(e, "MXNET_MKLDNN_ENABLED", "0", err);
}

static void test_options(void **state)
{
	(void)state;
	assert_true(run("lenet", 8, without_subgraph));
	assert_true(run("lenet", 8, without_mkldnn));
}

static void test_gradients(void **state)
{
	(void)state;
	assert_true(run("lenet", 8, exercise_gradients));
	assert_true(run("mlp", 8, exercise_gradients));
	assert_true(exercise_run(&adapter_mxnet, library, &exercise_network_odd, 4,
				 exercise_gradients));
	assert_true(exercise_run(&adapter_mxnet, library, &exercise_network_wide, 4,
				 exercise_gradients));
}

/* What MXNet's operators cannot say; a test below holds the reasons. */
static bool is_refused(const struct network *network)
{
	return strcmp(network->name, "channel_pads") == 0;
}

/* All of them, so that one failure does not hide the next. */
static void run_operators(exercise_body *body, bool training)
{
	const char *only = getenv("PRONY_TEST_ONLY");
	int failed = 0;

	for (int i = 0; i < EXERCISE_OPERATORS; i++) {
		const struct network *network = &exercise_operators[i];

		if (training && strncmp(network->name, "lrn", 3) == 0)
			continue;
		if (!is_refused(network) && (!only || strcmp(only, network->name) == 0))
			failed += !exercise_run(&adapter_mxnet, library, network, 4, body);
	}
	assert_int_equal(failed, 0);
}

static void test_operators_forward(void **state)
{
	(void)state;
	run_operators(exercise_forward, false);
}

static void test_operators_gradients(void **state)
{
	(void)state;
	run_operators(exercise_gradients, true);
}

static enum prony_status update_operators(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_SGD;
	e->recipe.learning_rate = 0.01;
	return exercise_updates(e, false, err);
}

static void test_operators_updates(void **state)
{
	(void)state;
	run_operators(update_operators, true);
}

static const struct network *find_operators(const char *name)
{
	for (int i = 0; i < EXERCISE_OPERATORS; i++) {
		if (strcmp(exercise_operators[i].name, name) == 0)
			return &exercise_operators[i];
	}
	return NULL;
}

/* The built-in ones, and a single sample. */
static void test_recurrent(void **state)
{
	(void)state;
	assert_true(run("lstm", 8, exercise_forward));
	assert_true(run("lstm", 8, exercise_gradients));
	assert_true(run("irnn", 2, exercise_forward));
	assert_true(run("irnn", 2, exercise_gradients));
	assert_true(exercise_run(&adapter_mxnet, library, find_operators("sequences"), 1,
				 exercise_gradients));
}

static enum prony_status update_sgd(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_SGD;
	e->recipe.weight_decay = 0.01;
	return exercise_updates(e, false, err);
}

static enum prony_status update_momentum(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_MOMENTUM;
	e->recipe.momentum = 0.9;
	return exercise_updates(e, false, err);
}

static enum prony_status update_rmsprop(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_RMSPROP;
	e->recipe.learning_rate = 0.001;
	return exercise_updates(e, true, err);
}

/* A wrong rule has to be noticed: epsilon large enough to tell inside the root from outside. */
static enum prony_status update_rmsprop_wrong(struct exercise *e, struct error *err)
{
	struct error mismatch = ERROR_INIT;

	e->recipe.optimiser = OPTIMISER_RMSPROP;
	e->recipe.learning_rate = 0.001;
	e->recipe.epsilon = 0.001;
	if (exercise_updates(e, false, &mismatch) != PRONY_MISMATCH)
		return error_set(err, PRONY_INTERNAL, "another update rule went unnoticed");
	return PRONY_OK;
}

static void test_updates(void **state)
{
	static exercise_body *const bodies[] = {update_sgd, update_momentum, update_rmsprop,
						update_rmsprop_wrong};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		assert_true(run("lenet", 8, bodies[i]));
		assert_true(run("mlp", 8, bodies[i]));
		/* Updated in pieces of one vector, of which a part must stay as it is. */
		assert_true(exercise_run(&adapter_mxnet, library, find_operators("lstm"), 4,
					 bodies[i]));
		assert_true(
			exercise_run(&adapter_mxnet, library, find_operators("rnn"), 4, bodies[i]));
	}
}

static enum prony_status check_reports(struct exercise *e, struct error *err)
{
	enum prony_status status;

	e->recipe.stage = STAGE_TRAIN;
	e->recipe.threads = 1; /* other than the cores at hand: open has to set it */
	status = exercise_open(e, err);
	if (status != PRONY_OK)
		return status;
	if (e->probe.version[0] != '1' || e->effective.threads != 1 ||
	    !strstr(e->effective.settings, "MXNET_SUBGRAPH_BACKEND=MKLDNN") ||
	    !strstr(e->effective.settings, "multi_sgd_mom_update"))
		return error_set(err, PRONY_MISMATCH, "version %s, %d threads, %s",
				 e->probe.version, e->effective.threads, e->effective.settings);
	if (e->built.parameters != graph_parameter_count(&e->graph) ||
	    e->built.macs != graph_macs(&e->graph))
		return error_set(err, PRONY_MISMATCH, "%lld parameters, %lld macs",
				 (long long)e->built.parameters, (long long)e->built.macs);
	((int64_t *)e->labels[0].data)[0] = 10;
	if (e->adapter->feed(&e->session, 0, &e->inputs[0], &e->labels[0], NULL) != PRONY_BAD_INPUT)
		return error_set(err, PRONY_MISMATCH, "label 10 of 10 classes was taken");
	if (e->adapter->feed(&e->session, 0, &e->labels[0], NULL, NULL) != PRONY_BAD_INPUT)
		return error_set(err, PRONY_MISMATCH, "labels were taken for an input");
	if (e->adapter->step(&e->session, EXERCISE_SLOTS, NULL) != PRONY_INTERNAL)
		return error_set(err, PRONY_MISMATCH, "a slot that is not there was stepped on");
	return PRONY_OK;
}

static void test_reports(void **state)
{
	(void)state;
	assert_true(run("lenet", 4, check_reports));
}

static enum prony_status loss_after_step(struct exercise *e, double *loss, struct error *err)
{
	struct tensor_set set;
	enum prony_status status = exercise_step(e, 0, err);

	if (status == PRONY_OK)
		status = exercise_read(e, READ_LOSS, &set, err);
	if (status == PRONY_OK)
		*loss = *(const double *)set.tensors[0].data;
	return status;
}

/* With dropout the same batch and weights give another loss each time, without always the same. */
static enum prony_status check_dropout(struct exercise *e, bool dropout, struct error *err)
{
	double first = 0, second = 0;
	enum prony_status status;

	e->recipe.stage = STAGE_FORWARD_BACKWARD;
	e->recipe.dropout = dropout;
	status = exercise_open(e, err);
	if (status == PRONY_OK)
		status = loss_after_step(e, &first, err);
	if (status == PRONY_OK)
		status = loss_after_step(e, &second, err);
	if (status == PRONY_OK && (first != second) != dropout)
		status = error_set(err, PRONY_MISMATCH, "losses %.9g and %.9g", first, second);
	return status;
}

static enum prony_status dropout_on(struct exercise *e, struct error *err)
{
	return check_dropout(e, true, err);
}

static enum prony_status dropout_off(struct exercise *e, struct error *err)
{
	return check_dropout(e, false, err);
}

static void test_dropout(void **state)
{
	(void)state;
	assert_true(run("mlp", 8, dropout_on));
	assert_true(run("mlp", 8, dropout_off));
}

/* Resident pages of this process. */
static long resident_pages(void)
{
	long size = 0, resident = -1;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%ld %ld", &size, &resident) != 2)
		resident = -1;
	if (file)
		fclose(file);
	return resident;
}

static enum prony_status check_leak(struct exercise *e, struct error *err)
{
	long before = 0, after;
	enum prony_status status;

	e->recipe.stage = STAGE_TRAIN;
	e->recipe.learning_rate = 1e-6;
	status = exercise_open(e, err);
	for (int i = 0; status == PRONY_OK && i < 2 * LEAK_STEPS; i++) {
		status = exercise_step(e, i % EXERCISE_SLOTS, err);
		if (i == LEAK_STEPS)
			before = resident_pages();
	}
	after = resident_pages();
	if (status == PRONY_OK && (before <= 0 || after - before > LEAK_PAGES))
		status = error_set(err, PRONY_MISMATCH, "%d steps took %ld pages", LEAK_STEPS,
				   after - before);
	return status;
}

static void test_leak(void **state)
{
	(void)state;
	assert_true(run("mlp", 1, check_leak));
}

static void test_wrong_weight(void **state)
{
	(void)state;
	assert_true(run("mlp", 4, exercise_wrong_weight));
}

static void test_refusals(void **state)
{
	struct recipe recipe;
	struct graph graph;
	struct error err = ERROR_INIT;

	(void)state;
	recipe_defaults(&recipe);
	recipe.precision = PRECISION_BF16;
	assert_int_equal(zoo_build(zoo_find("lenet", NULL), 4, &graph, NULL), PRONY_OK);
	for (int i = 0; i < graph.node_count; i++) {
		if (graph.nodes[i].op == OP_MAX_POOL)
			graph.nodes[i].attributes.dilations[0] = 2;
	}
	assert_int_equal(adapter_mxnet.supports(&graph, &recipe, &err), PRONY_UNSUPPORTED);
	assert_non_null(strstr(err.text, "bf16"));
	assert_non_null(strstr(err.text, "pool1"));
	assert_non_null(strstr(err.text, "pool2"));
	graph_release(&graph);
}

static const char *reason_of(const char *name, enum stage stage, struct error *err)
{
	struct recipe recipe;
	struct graph graph;
	enum prony_status status;

	*err = (struct error)ERROR_INIT;
	recipe_defaults(&recipe);
	recipe.stage = stage;
	assert_int_equal(zoo_build(find_operators(name), 4, &graph, NULL), PRONY_OK);
	status = adapter_mxnet.supports(&graph, &recipe, err);
	graph_release(&graph);
	return status == PRONY_OK ? "" : err->text;
}

/* What lies in a layer's vector cannot lie elsewhere, too. */
static void test_shared_weights(void **state)
{
	struct recipe recipe;
	struct graph graph;
	struct error err = ERROR_INIT;

	(void)state;
	recipe_defaults(&recipe);
	assert_int_equal(zoo_build(find_operators("lstm"), 4, &graph, NULL), PRONY_OK);
	for (int i = 0; i < graph.node_count; i++)
		if (graph.nodes[i].op == OP_LSTM)
			graph.nodes[i].inputs[2] = graph.nodes[i].inputs[1];
	assert_int_equal(adapter_mxnet.supports(&graph, &recipe, &err), PRONY_UNSUPPORTED);
	assert_non_null(strstr(err.text, "LSTM lstm: weights that another"));
	graph_release(&graph);
	assert_int_equal(zoo_build(find_operators("rnn"), 4, &graph, NULL), PRONY_OK);
	graph.values[graph_find_value(&graph, "rnn.bias")].kind = VALUE_STATE;
	err = (struct error)ERROR_INIT;
	assert_int_equal(adapter_mxnet.supports(&graph, &recipe, &err), PRONY_UNSUPPORTED);
	assert_non_null(strstr(err.text, "RNN rnn: weights that are not parameters"));
	graph_release(&graph);
}

static void test_refused_operators(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_non_null(strstr(reason_of("channel_pads", STAGE_TRAIN, &err), "Pad channels"));
	assert_non_null(strstr(reason_of("lrn", STAGE_TRAIN, &err), "measured: LRN lrn1"));
	assert_non_null(strstr(reason_of("lrn", STAGE_TRAIN, &err), "LRN lrn1, lrn2"));
	assert_string_equal(reason_of("lrn", STAGE_FORWARD, &err), "");
}

static void test_missing(void **state)
{
	void *data = calloc(1, adapter_mxnet.private_size);
	struct session session = {.library = "/nonexistent/libmxnet.so", .private_data = data};
	struct probe probe;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(adapter_mxnet.probe(&session, &probe, &err), PRONY_MISSING);
	assert_non_null(strstr(err.text, "/nonexistent/libmxnet.so"));
	adapter_mxnet.close(&session);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_refused_operators),
		cmocka_unit_test(test_shared_weights),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_operators_forward),
		cmocka_unit_test(test_operators_gradients),
		cmocka_unit_test(test_operators_updates),
		cmocka_unit_test(test_recurrent),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_updates),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_dropout),
		cmocka_unit_test(test_leak),
		cmocka_unit_test(test_wrong_weight),
	};

	library = exercise_library("PRONY_MXNET_LIBRARY", "mxnet/{,*/}mxnet/libmxnet.so");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
