/* Tests every operator through JSON and into ONNX. */
#include "graph/graph_json.h"
#include "onnx/onnx.h"
#include "onnx/onnx.pb-c.h"
#include "tests/unit/operator_cases.h"
#include "unit_test.h"

static void build(const char *what, struct graph *graph)
{
	struct error err = ERROR_INIT;

	check(operator_case_build(operator_case_find(what), false, graph, &err), &err);
}

TEST(cases_use_every_operator)
{
	/* operator_case_build has the first; the second has no gradient (test_decode). */
	bool used[OP_COUNT] = {[OP_HALF_SQUARES] = true, [OP_TENSOR_SCATTER] = true};

	for (size_t i = 0; operator_case_at(i); i++) {
		const struct operator_case *c = operator_case_at(i);
		struct error err = ERROR_INIT;
		SCOPED(graph) graph;

		build(c->what, &graph);
		check(graph_add_backward(&graph, &err), &err);
		check(graph_check(&graph, &err), &err);
		for (int n = 0; n < graph.node_count; n++)
			used[graph.nodes[n].op] = true;
	}
	for (int op = 0; op < OP_MAX_POOL_GRAD; op++) {
		if (!used[op])
			fail_msg("no case has %s", operator_name((enum op)op));
	}
}

/* Calls visit for each function of the table at points between -4 and 4, and at its kinks. */
static void at_every_point(void (*visit)(const char *name, const struct elementwise *row,
					 const struct attributes *a, double x))
{
	for (int op = 0; op < OP_COUNT; op++) {
		const struct elementwise *row = operator_row((enum op)op)->elementwise;
		struct attributes a;

		if (!row)
			continue;
		operator_default_attributes((enum op)op, &a);
		for (double x = row->positive ? 0.0625 : -4; x <= 4; x += 0.0625)
			visit(operator_name((enum op)op), row, &a, x);
	}
}

static bool near_kink(const struct elementwise *row, const struct attributes *a, double x)
{
	double kinks[ELEMENTWISE_MAX_KINKS];
	int count = row->kinks ? row->kinks(a, kinks) : 0;

	for (int i = 0; i < count; i++) {
		if (fabs(x - kinks[i]) < 1e-3)
			return true;
	}
	return false;
}

static void check_slope(const char *name, const struct elementwise *row, const struct attributes *a,
			double x)
{
	double h = 1e-6, slope = row->slope(a, row->slope_of_output ? row->value(a, x) : x);
	double difference = (row->value(a, x + h) - row->value(a, x - h)) / (2 * h);

	/* ReLU's one kink is decided in the forward pass. */
	if (x == 0 && row->slope_of_output)
		return;
	if (!near_kink(row, a, x) && !(fabs(slope - difference) < 1e-6 * fmax(1, fabs(slope))))
		fail_msg("%s at %g: slope %g, difference %g", name, x, slope, difference);
}

TEST(slopes_are_those_of_the_values)
{
	at_every_point(check_slope);
}

static double step_value(const struct elementwise_step *step, const double *before)
{
	const struct attributes a = {.alpha = step->constant, .beta = step->beta};
	const struct operator_row *row = operator_row(step->op);
	double x = before[step->inputs[0]];

	if (row->elementwise)
		return row->elementwise->value(&a, x);
	return row->broadcast(x, step->inputs[1] == ELEMENTWISE_CONSTANT ? step->constant
									 : before[step->inputs[1]]);
}

static void check_steps(const char *name, const struct elementwise *row, const struct attributes *a,
			double x)
{
	struct elementwise_step steps[ELEMENTWISE_MAX_STEPS];
	double values[ELEMENTWISE_MAX_STEPS + 1] = {x};
	int count = row->decompose ? row->decompose(a, steps) : 0;

	for (int i = 0; i < count; i++)
		values[i + 1] = step_value(&steps[i], values);
	if (count > 0 && !(fabs(values[count] - row->value(a, x)) < 1e-14))
		fail_msg("%s at %g: %.17g, of its steps %.17g", name, x, row->value(a, x),
			 values[count]);
}

TEST(decompositions_compute_the_same)
{
	at_every_point(check_steps);
}

TEST(every_operator_survives_json)
{
	for (size_t i = 0; operator_case_at(i); i++) {
		const struct operator_case *c = operator_case_at(i);
		struct error err = ERROR_INIT;
		SCOPED(graph) graph, back;
		char digest[65], again[65];
		json_auto_t *json;

		build(c->what, &graph);
		json = graph_to_json(&graph);
		if (graph_from_json(json, &back, &err) != PRONY_OK)
			fail_msg("%s: %s", c->what, err.text);
		check(graph_digest(&graph, digest, &err), &err);
		check(graph_digest(&back, again, &err), &err);
		assert_string_equal(digest, again);
		check(graph_add_backward(&back, &err), &err);
	}
}

/* Replaces one attribute of the node "tested" in the graph of a case. */
TEST(wrong_attributes_are_refused)
{
	static const struct {
		const char *what, *key, *with, *message;
	} cases[] = {
		{"Pad", "pads", "[0, 0, 0, 0]", "4 pads"},
		{"Pad", "pads", "[0, 0, 0, 0, 0, 0, 0, -1]", "must be 0 or more"},
		{"Pad", "pads", "[0, 0, 0, 0, 0, 0, 0, 3000000000]", "must be 0 or more"},
		{"Pad", "pads", "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]",
		 "at most 16 integers"},
		{"Pad", "pads", "3", "at most 16 integers"},
		{"Pad", "value", "\"0\"", "must be a number"},
		{"Slice", "step", "0", "only positive steps"},
		{"Slice", "axis", "4", "axis is 4"},
		{"Slice", "end", "-9223372036854775808", "the slice from"},
		{"Concat of channels", "axis", "-5", "axis is -5"},
		{"ReduceMean", "axes", "[1, -3]", "listed twice"},
		{"BatchNormalization", "epsilon", "0", "epsilon is 0"},
		{"BatchNormalization", "momentum", "1.5", "momentum is 1.5"},
		{"LRN", "size", "0", "size is 0"},
		{"LRN", "bias", "0", "bias is 0"},
		{"Clip, both ends", "min", "5", "min (5) is greater"},
		{"AveragePool", "pads", "[2, 0, 0, 0]", "smaller than the kernel"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error err = ERROR_INIT;
		struct graph graph, back;
		json_t *json, *node;
		size_t n;

		build(cases[i].what, &graph);
		json = graph_to_json(&graph);
		json_array_foreach(json_object_get(json, "nodes"), n, node)
		{
			if (strcmp(json_string_value(json_object_get(node, "name")), "tested") == 0)
				json_object_set_new(
					json_object_get(node, "attributes"), cases[i].key,
					json_loads(cases[i].with, JSON_DECODE_ANY, NULL));
		}
		expect_error(graph_from_json(json, &back, &err), PRONY_BAD_INPUT, &err,
			     cases[i].message);
		json_decref(json);
		graph_release(&graph);
	}
}

/* Prints type and default of an attribute as docs/operators.md writes them. */
static void print_attribute(const struct attribute_row *row, const struct attributes *defaults,
			    FILE *out)
{
	static const char *const types[] = {
		[ATTRIBUTE_INT] = "int",      [ATTRIBUTE_INTS2] = "int[2]",
		[ATTRIBUTE_INTS4] = "int[4]", [ATTRIBUTE_INTS] = "int[]",
		[ATTRIBUTE_REAL] = "real",    [ATTRIBUTE_BOOL] = "bool",
	};
	const void *member = (const char *)defaults + row->offset;
	const int64_t *ints = member;
	int count = row->kind == ATTRIBUTE_INTS2 ? 2 : row->kind == ATTRIBUTE_INTS4 ? 4 : 0;

	fprintf(out, "`%s: ", row->name);
	if (row->kind == ATTRIBUTE_WORD) {
		for (int i = 0; row->words[i]; i++)
			fprintf(out, "%s\"%s\"", i ? " or " : "", row->words[i]);
		fprintf(out, " = \"%s\"`", row->words[ints[0]]);
		return;
	}
	fprintf(out, "%s = ", types[row->kind]);
	if (row->kind == ATTRIBUTE_INT)
		fprintf(out, "%lld`", (long long)ints[0]);
	else if (row->kind == ATTRIBUTE_BOOL)
		fprintf(out, "%s`", *(const bool *)member ? "true" : "false");
	else if (row->kind == ATTRIBUTE_REAL)
		fprintf(out, "%.9g`", *(const double *)member);
	else {
		fputc('[', out);
		for (int i = 0; i < count; i++)
			fprintf(out, "%s%lld", i ? ", " : "", (long long)ints[i]);
		fputs("]`", out);
	}
}

/* Returns inputs, outputs and attributes of an operator as cells of the table; the caller frees the
 * text. */
static char *documented_cells(enum op op, const char *inputs, const char *outputs)
{
	struct attributes defaults;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	operator_default_attributes(op, &defaults);
	fprintf(out, "| %s | %s | ", inputs, outputs);
	for (const struct attribute_row *row = operator_row(op)->attributes; row->name; row++) {
		print_attribute(row, &defaults, out);
		fputs(row[1].name ? ", " : " ", out);
	}
	fputc('|', out);
	fclose(out);
	return text;
}

/* "x, w, b?" has two to three names. */
static void count_names(const char *cell, int *least, int *most)
{
	*most = *cell != '\0';
	*least = *most;
	for (const char *c = cell; *c; c++) {
		*most += *c == ',';
		*least += (*c == ',') - (*c == '?');
	}
}

static void check_documented(enum op op, const char *line)
{
	const struct operator_row *row = operator_row(op);
	char inputs[128] = "", outputs[128] = "", many[32];
	int least, most, wanted, given;
	char *cells;

	if (sscanf(line, "%*[^|]| %127[^|]| %127[^|]", inputs, outputs) != 2)
		fail_msg("no inputs and outputs in: %s", line);
	inputs[strcspn(inputs, "|") - 1] = outputs[strcspn(outputs, "|") - 1] = '\0';
	count_names(inputs, &least, &most);
	count_names(outputs, &wanted, &given);
	snprintf(many, sizeof(many), "%d to %d values", row->min_inputs, row->max_inputs);
	if ((least != row->min_inputs || most != row->max_inputs) && strcmp(inputs, many) != 0)
		fail_msg("%s takes %s, not: %s", operator_name(op), many, inputs);
	if (given != row->max_outputs)
		fail_msg("%s has %d outputs, not: %s", operator_name(op), row->max_outputs,
			 outputs);
	cells = documented_cells(op, inputs, outputs);
	if (strncmp(strchr(line, '|'), cells, strlen(cells)) != 0)
		fail_msg("docs/operators.md has to have, in the row of %s, %s", operator_name(op),
			 cells);
	free(cells);
}

/* docs/operators.md must describe every operator as a worker receives it. */
TEST(operators_are_documented)
{
	struct error err = ERROR_INIT;
	const char *source = getenv("PRONY_SOURCE"), *table;
	char *path, *text;
	size_t length;

	assert_non_null(source);
	path = test_keep(path_join(source, "docs/operators.md"));
	check(file_read(path, 1 << 20, &text, &length, &err), &err);
	table = strstr(text, "| operator | inputs | outputs | attributes | note |\n");
	assert_non_null(table);
	for (int op = 0; op < OP_COUNT; op++) {
		char quoted[64];
		const char *line = table;

		if (operator_row((enum op)op)->is_gradient)
			continue;
		snprintf(quoted, sizeof(quoted), "`%s`", operator_name((enum op)op));
		while ((line = strchr(line, '\n')) && *++line == '|') {
			const char *name = strstr(line, quoted);

			if (name && name < strchr(line + 1, '|'))
				break;
		}
		if (!line || *line != '|')
			fail_msg("%s is not in the table of %s", quoted, path);
		else
			check_documented((enum op)op, strchr(line + 1, '|') - 1);
	}
	free(text);
}

/* Two nodes that both update one running mean. */
TEST(statistics_have_no_other_users)
{
	struct error err = ERROR_INIT;
	struct graph graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct node *second;
	int x;

	graph_init(&graph, "shared");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){4});
	x = build_batch_norm(&b, "first", x, 1e-5, 0.9);
	x = build_batch_norm(&b, "second", x, 1e-5, 0.9);
	second = &graph.nodes[graph.node_count - 1];
	second->inputs[3] = graph.nodes[graph.node_count - 2].inputs[3];
	expect_error(build_finish(&b, build_linear(&b, "out", x, 3), 0, NULL, &err),
		     PRONY_BAD_INPUT, &err, "'first.mean' is also used elsewhere");
	graph_release(&graph);

	/* The batch's mean is used as data. */
	error_clear(&err);
	b = (struct builder){.graph = &graph, .error = ERROR_INIT};
	graph_init(&graph, "used");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){4});
	x = build_batch_norm(&b, "first", x, 1e-5, 0.9);
	x = build_add(&b, "sum", x, graph_find_value(&graph, "first.1"));
	expect_error(build_finish(&b, build_linear(&b, "out", x, 3), 0, NULL, &err),
		     PRONY_BAD_INPUT, &err, "'first.1' is used");
	graph_release(&graph);
}

/* Returns the model of a case; the caller frees it with onnx__model_proto__free_unpacked. */
static Onnx__ModelProto *export(const char *what)
{
	struct error err = ERROR_INIT;
	struct tensor_set weights;
	Onnx__ModelProto *model;
	SCOPED(arena) arena;
	SCOPED(graph) graph;
	size_t length = 0;
	void *bytes = NULL;

	arena_init(&arena, 0);
	build(what, &graph);
	if (graph_initial_weights(&graph, 1, &arena, &weights, &err) != PRONY_OK ||
	    onnx_export(&graph, &weights, &bytes, &length, &err) != PRONY_OK)
		fail_msg("%s: %s", what, err.text);
	model = onnx__model_proto__unpack(NULL, length, bytes);
	assert_non_null(model);
	free(bytes);
	return model;
}

static const Onnx__NodeProto *node_of(const Onnx__ModelProto *model, const char *name)
{
	for (size_t i = 0; i < model->graph->n_node; i++) {
		if (strcmp(model->graph->node[i]->name, name) == 0)
			return model->graph->node[i];
	}
	fail_msg("no node %s", name);
	return NULL;
}

static const Onnx__TensorProto *initializer_of(const Onnx__ModelProto *model, const char *name)
{
	for (size_t i = 0; i < model->graph->n_initializer; i++) {
		if (strcmp(model->graph->initializer[i]->name, name) == 0)
			return model->graph->initializer[i];
	}
	fail_msg("no initializer %s", name);
	return NULL;
}

/* In opset 17 these attributes are inputs. */
TEST(some_attributes_become_constants)
{
	static const char *const names[] = {"turned", "tested.start", "tested.end", "tested.axis",
					    "tested.step"};
	Onnx__ModelProto *model = export("Slice");
	const Onnx__NodeProto *slice = node_of(model, "tested");
	const Onnx__TensorProto *end = initializer_of(model, "tested.end");
	int64_t value;

	assert_int_equal(slice->n_input, 5);
	assert_int_equal(slice->n_attribute, 0);
	for (int i = 1; i < 5; i++)
		assert_string_equal(slice->input[i], names[i]);
	assert_int_equal(end->data_type, ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
	assert_int_equal(end->n_dims, 1);
	memcpy(&value, end->raw_data.data, sizeof(value));
	assert_int_equal(value, 5); /* -1 of 6 */
	onnx__model_proto__free_unpacked(model, NULL);

	model = export("Clip");
	assert_int_equal(initializer_of(model, "tested.max")->n_dims, 0);
	assert_int_equal(initializer_of(model, "tested.max")->data_type,
			 ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
	onnx__model_proto__free_unpacked(model, NULL);
}

TEST(batch_norm_is_written_for_evaluation)
{
	Onnx__ModelProto *model = export("BatchNormalization");
	const Onnx__NodeProto *node = node_of(model, "tested");

	assert_int_equal(node->n_input, 5);
	assert_int_equal(node->n_output, 1);
	initializer_of(model, "tested.mean");
	onnx__model_proto__free_unpacked(model, NULL);
}

TEST(recurrent_layers_are_written_as_onnx_has_them)
{
	Onnx__ModelProto *model = export("LSTM");
	const Onnx__NodeProto *node = node_of(model, "tested");
	const Onnx__TensorProto *bias = initializer_of(model, "tested.B");

	assert_string_equal(node_of(model, "tested.time_first")->op_type, "Transpose");
	assert_string_equal(node->output[0], "");
	assert_int_equal(initializer_of(model, "tested.W")->n_dims, 3);
	assert_int_equal(bias->n_dims, 2);
	assert_int_equal(bias->dims[1], 24);
	assert_int_equal(bias->raw_data.len, 24 * sizeof(float));
	onnx__model_proto__free_unpacked(model, NULL);

	model = export("RNN");
	node = node_of(model, "tested");
	assert_int_equal(node->n_attribute, 3);
	assert_string_equal(node->attribute[2]->name, "activations");
	assert_int_equal(node->attribute[2]->n_strings, 1);
	assert_memory_equal(node->attribute[2]->strings[0].data, "Relu", 4);
	onnx__model_proto__free_unpacked(model, NULL);

	/* One bias of h's recurrent product comes last. */
	model = export("GRU, linear before reset, every state");
	node = node_of(model, "tested");
	assert_int_equal(node->n_output, 1);
	assert_string_equal(node_of(model, "tested.batch_first")->op_type, "Transpose");
	assert_string_equal(node->attribute[2]->name, "linear_before_reset");
	assert_int_equal(node->attribute[2]->i, 1);
	assert_int_equal(initializer_of(model, "tested.B")->dims[1], 18);
	onnx__model_proto__free_unpacked(model, NULL);

	model = export("LSTM, every state, last time first");
	assert_memory_equal(node_of(model, "tested")->attribute[1]->s.data, "reverse", 7);
	onnx__model_proto__free_unpacked(model, NULL);
}
