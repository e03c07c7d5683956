/* A graph with a changed batch equals the graph that is built for that batch. */
#include "graph/rebatch.h"
#include "tests/unit/onnx_fixture.h"
#include "unit_test.h"
#include "zoo/zoo.h"

/* Fails unless `graph` for `batch` samples is `expected`; releases neither. */
static void expect_graph(const struct graph *graph, int64_t batch, const struct graph *expected)
{
	struct error err = ERROR_INIT;
	char found[65], wanted[65];
	SCOPED(graph) other;

	if (graph_rebatch(graph, batch, &other, &err) != PRONY_OK ||
	    graph_check(&other, &err) != PRONY_OK ||
	    graph_digest(&other, found, &err) != PRONY_OK ||
	    graph_digest(expected, wanted, &err) != PRONY_OK)
		fail_msg("%s: %s", graph->name, err.text);
	if (strcmp(found, wanted) != 0)
		fail_msg("%s: batch %lld is another graph when it is built", graph->name,
			 (long long)batch);
}

TEST(every_network_of_the_zoo)
{
	for (size_t i = 0; i < zoo_network_count; i++) {
		struct error err = ERROR_INIT;
		SCOPED(graph) one, six;

		check(zoo_build(zoo_networks[i], 1, &one, &err), &err);
		check(zoo_build(zoo_networks[i], 6, &six, &err), &err);
		expect_graph(&one, 6, &six);
		expect_graph(&six, 1, &one);
	}
}

/* The batch passes through a Concat, a Flatten, reshapes that name it, a transpose and a Split. */
static void build_file(int64_t in_file, int64_t batch, struct graph *out)
{
	struct error err = ERROR_INIT;
	SCOPED(onnx_fixture) f;

	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(in_file, 4, 3, 3));
	fixture_node(&f, "Concat", "x,x", "twice");
	fixture_int(&f, "axis", 1);
	fixture_ints(&f, "groups", 5, (const int64_t[]){in_file, 2, 4, 3, 3});
	fixture_node(&f, "Reshape", "twice,groups", "grouped");
	fixture_node(&f, "Transpose", "grouped", "turned");
	fixture_list(&f, "perm", DIMS(2, 1, 0, 3, 4));
	fixture_ints(&f, "rows", 3, (const int64_t[]){4, 2 * in_file, 9});
	fixture_node(&f, "Reshape", "turned,rows", "rowed");
	fixture_node(&f, "Split", "rowed", "first,second");
	fixture_int(&f, "axis", 1);
	fixture_node(&f, "Transpose", "second", "back");
	fixture_list(&f, "perm", DIMS(1, 0, 2));
	fixture_node(&f, "Flatten", "back", "flat");
	fixture_floats(&f, "w", DIMS(36, 5));
	fixture_node(&f, "Gemm", "flat,w", "y");
	fixture_output(&f, "y");
	check(fixture_build(&f, batch, out, NULL, &err), &err);
}

TEST(a_file_that_fixes_its_batch)
{
	static const int64_t batches[] = {2, 3, 8};

	for (size_t i = 0; i < COUNT(batches); i++) {
		SCOPED(graph) expected, changed;
		struct error err = ERROR_INIT;
		char found[65], wanted[65];

		build_file(batches[i], batches[i], &expected);
		build_file(5, batches[i], &changed);
		check(graph_samples_apart(&changed, &err), &err);
		check(graph_digest(&expected, wanted, &err), &err);
		check(graph_digest(&changed, found, &err), &err);
		assert_string_equal(found, wanted);
	}
}

TEST(a_batch_that_is_too_large_is_refused)
{
	struct error err = ERROR_INIT;
	struct graph graph, out;

	check(zoo_build(zoo_networks[0], 1, &graph, &err), &err);
	assert_int_equal(graph_rebatch(&graph, INT64_MAX / 2, &out, &err), PRONY_BAD_INPUT);
	assert_int_equal(graph_rebatch(&graph, 0, &out, &err), PRONY_BAD_INPUT);
	graph_release(&graph);
}
