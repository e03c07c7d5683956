/* Runs a table of exercises over an adapter. */
#include "framework_cases.h"

#include "exercise_networks.h"
#include "unit_test.h"

enum { CASES_MAX = 512, NAME_BYTES = 96 };

struct one {
	const struct adapter *adapter;
	const char *library;
	const struct network *network;
	const struct framework_case *row;
	char name[NAME_BYTES];
};

static struct one ones[CASES_MAX];
static size_t count;

static void run_one(void **state)
{
	const struct one *one = *state;

	assert_true(exercise_run(one->adapter, one->library, one->network, one->row->batch,
				 one->row->body));
}

static const struct network *find(const char *name)
{
	static const char prefix[] = "operator:";

	if (strcmp(name, "odd") == 0)
		return &exercise_network_odd;
	if (strcmp(name, "wide") == 0)
		return &exercise_network_wide;
	if (strncmp(name, prefix, strlen(prefix)) == 0)
		return exercise_find(name + strlen(prefix));
	return zoo_find(name, NULL);
}

static void add(const struct adapter *adapter, const char *library,
		const struct framework_case *row, const struct network *network)
{
	struct one *one = &ones[count];

	if (!network || count == CASES_MAX)
		abort();
	*one = (struct one){adapter, library, network, row, ""};
	snprintf(one->name, sizeof one->name, "%s %s %d", row->what, network->name,
		 (int)row->batch);
	count++;
	unit_test_add(
		(struct CMUnitTest){.name = one->name, .test_func = run_one, .initial_state = one});
}

static bool excepted(const struct framework_case *row, const char *name)
{
	for (size_t i = 0; i < COUNT(row->except) && row->except[i]; i++)
		if (strcmp(row->except[i], name) == 0)
			return true;
	return false;
}

int framework_cases_run(const struct adapter *adapter, const char *library,
			const struct framework_case *cases, size_t case_count, const char *filter)
{
	for (size_t i = 0; i < case_count; i++) {
		const struct framework_case *row = &cases[i];

		if (strcmp(row->network, OPERATORS) != 0) {
			add(adapter, library, row, find(row->network));
			continue;
		}
		for (int k = 0; k < EXERCISE_OPERATORS; k++)
			if (!excepted(row, exercise_operators[k].name))
				add(adapter, library, row, &exercise_operators[k]);
	}
	if (filter)
		cmocka_set_test_filter(filter);
	return unit_tests_run(NULL, NULL);
}

void even_lrn(struct graph *graph)
{
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].op == OP_LRN)
			graph->nodes[i].attributes.size = 4;
}

void dilated_pools(struct graph *graph)
{
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].op == OP_MAX_POOL)
			graph->nodes[i].attributes.dilations[0] = 2;
}

void dilated_convs(struct graph *graph)
{
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].op == OP_CONV)
			graph->nodes[i].attributes.dilations[0] = 2;
}

void shared_gates(struct graph *graph)
{
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].op == OP_LSTM)
			graph->nodes[i].inputs[2] = graph->nodes[i].inputs[1];
}

void constant_bias(struct graph *graph)
{
	graph->values[graph_find_value(graph, "rnn.bias")].kind = VALUE_STATE;
}

void framework_refuses(const struct adapter *adapter, const struct refusal *rows, size_t row_count)
{
	for (size_t i = 0; i < row_count; i++) {
		struct error why = ERROR_INIT;
		struct target target;
		struct recipe recipe;
		SCOPED(graph) graph;

		target_defaults(&target);
		recipe_defaults(&recipe);
		recipe.stage = rows[i].stage;
		recipe.precision = rows[i].precision;
		assert_int_equal(zoo_build(find(rows[i].network), 4, &graph, NULL), PRONY_OK);
		if (rows[i].change)
			rows[i].change(&graph);
		assert_int_equal(adapter->supports(&target, &graph, &recipe, &why),
				 PRONY_UNSUPPORTED);
		for (size_t k = 0; k < COUNT(rows[i].says) && rows[i].says[k]; k++)
			assert_has(why.text, rows[i].says[k]);
	}
}
