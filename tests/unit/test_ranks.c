/* A step of ranks that share a batch: their mean is what the gate's reference computes. */
#include "graph/batch.h"
#include "parity/reference.h"
#include "run/parts_of_ranks.h"
#include "unit_test.h"

enum { BATCH = 6, RANKS = 3, BATCHES = 2 };

/* A network that normalises by its batch. */
static void make_graph(struct graph *graph)
{
	struct error err = ERROR_INIT;
	struct builder b = {.graph = graph, .error = ERROR_INIT};

	graph_init(graph, "normalising");
	int x = build_input(&b, "input", DTYPE_F32, BATCH, 3, (const int64_t[]){2, 3, 3});
	x = build_batch_norm(&b, "norm1", build_conv(&b, "conv", x, 4, 3, 1, 1), 1e-3, 0.9);
	x = build_batch_norm(&b, "norm2", build_relu(&b, "relu", x), 1e-3, 0.9);
	x = build_linear(&b, "fc", build_flatten(&b, "flat", x), 5);
	check(build_finish(&b, x, 0, NULL, &err), &err);
}

/* Runs one step of a graph's copy with a backward pass. */
static void step(const struct graph *forward, const struct tensor_set *weights, struct batch batch,
		 struct graph *graph, struct reference *ref)
{
	struct error err = ERROR_INIT;
	struct recipe recipe;

	recipe_defaults(&recipe);
	recipe.optimiser = OPTIMISER_SGD;
	graph_copy_forward(forward, graph);
	check(graph_add_backward(graph, &err), &err);
	check(reference_init(ref, graph, weights, &err), &err);
	check(reference_feed(ref, batch, &err), &err);
	check(reference_step(ref, &recipe, false, &err), &err);
}

/* What a step of all ranks is, rank by rank: the mean of losses and weights, the states of rank 0.
 */
static void check_mean(const struct reference *whole, const struct reference *ranks)
{
	const struct graph *graph = whole->graph;
	double loss = 0;

	for (int r = 0; r < RANKS; r++)
		loss += reference_loss(&ranks[r]) / RANKS;
	assert_true(fabs(reference_loss(whole) - loss) < 1e-12);
	for (int i = 0; i < graph->value_count; i++) {
		bool state = graph->values[i].kind == VALUE_STATE;

		if (!state && graph->values[i].kind != VALUE_PARAMETER)
			continue;
		for (int64_t k = 0; k < shape_elements(&graph->values[i].shape); k++) {
			double mean = 0;

			for (int r = 0; r < RANKS; r++)
				mean += ranks[r].values[i][k] / RANKS;
			double wanted = state ? ranks[0].values[i][k] : mean;
			assert_true(fabs(whole->values[i][k] - wanted) < 1e-12);
		}
	}
}

TEST(the_mean_of_the_ranks_is_the_reference)
{
	struct error err = ERROR_INIT;
	SCOPED(graph) whole;
	SCOPED(arena) arena;
	struct tensor_set weights, inputs, labels;
	struct parts_of_ranks parts = {.recipe = {.batch = BATCH}};
	struct graph graphs[1 + RANKS];
	struct reference refs[1 + RANKS];

	make_graph(&whole);
	arena_init(&arena, 0);
	assert_true(graph_has_statistics(&whole));
	check(graph_initial_weights(&whole, 1, &arena, &weights, &err), &err);
	check(batches_draw(&whole, 1, 0, BATCHES, 0.5, &arena, &inputs, &labels, &err), &err);
	parts_leave_out_alike(&labels, RANKS);
	check(parts_of_ranks(&whole, &inputs, &labels, RANKS, &parts, &err), &err);
	assert_int_equal(parts.recipe.batch, BATCH / RANKS);
	assert_int_equal(graph_batch(&parts.graph), BATCH / RANKS);
	assert_int_equal(parts.inputs.count, BATCHES * RANKS);
	graph_set_ranks(&whole, RANKS);
	for (size_t batch = 0; batch < BATCHES; batch++) {
		step(&whole, &weights, batch_at(&whole, &inputs, &labels, batch), &graphs[RANKS],
		     &refs[RANKS]);
		for (size_t r = 0; r < RANKS; r++)
			step(&parts.graph, &weights,
			     batch_at(&parts.graph, &parts.inputs, &parts.labels,
				      batch * RANKS + r),
			     &graphs[r], &refs[r]);
		check_mean(&refs[RANKS], refs);
		for (int i = 0; i <= RANKS; i++) {
			reference_release(&refs[i]);
			graph_release(&graphs[i]);
		}
	}
	parts_of_ranks_release(&parts);
}
