/* The layers of the zoo's networks: together they do the network's work, and equal ones are equal.
 */
#include "graph/extract.h"
#include "unit_test.h"
#include "zoo/zoo.h"

enum { BATCH = 31 };

/* MACs of all layers; the numbers of layers, of distinct ones, and of those that cannot stand
 * alone. */
struct totals {
	int64_t macs;
	int layers, distinct, left_out;
};

static void add_layer(const struct graph *graph, const struct layer *layer, struct totals *totals,
		      char (*digests)[65])
{
	struct error err = ERROR_INIT;
	struct graph alone;
	int known = 0;

	totals->layers++;
	if (graph_extract(graph, layer, &alone, &err) != PRONY_OK) {
		assert_int_equal(err.code, PRONY_UNSUPPORTED);
		totals->left_out++;
		return;
	}
	totals->macs += graph_macs(&alone);
	check(graph_digest(&alone, digests[totals->distinct], &err), &err);
	while (strcmp(digests[known], digests[totals->distinct]) != 0)
		known++;
	totals->distinct += known == totals->distinct;
	graph_release(&alone);
}

static void split(const char *name, struct totals *totals)
{
	struct error err = ERROR_INIT;
	struct graph graph;

	*totals = (struct totals){0};
	check(zoo_build(zoo_find(name, NULL), BATCH, &graph, &err), &err);
	struct layer *layers = test_malloc((size_t)graph.forward_count * sizeof(*layers));
	char(*digests)[65] = test_malloc(((size_t)graph.forward_count + 1) * sizeof(*digests));
	int count = graph_layers(&graph, layers);
	for (int i = 0; i < count; i++)
		add_layer(&graph, &layers[i], totals, digests);
	assert_int_equal(totals->macs, graph_macs(&graph));
	test_free(digests);
	test_free(layers);
	graph_release(&graph);
}

TEST(layers_do_the_work_of_the_network)
{
	static const struct {
		const char *network;
		int layers, distinct, left_out;
	} rows[] = {
		/* conv, pool, conv, pool, linear with relu, linear */
		{"lenet", 6, 6, 0},
		/* 53 convolutions with their normalisation, 16 sums, 2 pools, a linear layer */
		{"resnet50", 72, 30, 0},
		/* 4 attentions are equal; the sum with the positions and their slice are no batch
		 */
		{"gpt2-bytes", 73, 15, 2},
		{"unet", 32, 28, 0},
		/* 12 attentions are equal; the class token reads nothing of the batch */
		{"vit-b16", 199, 14, 1},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct totals totals;
		split(rows[i].network, &totals);
		assert_int_equal(totals.layers, rows[i].layers);
		assert_int_equal(totals.distinct, rows[i].distinct);
		assert_int_equal(totals.left_out, rows[i].left_out);
	}
}
