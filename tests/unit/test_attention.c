/* Tests where attention is found in a graph, and where it is not. */
#include "graph/attention.h"
#include "unit_test.h"
#include "zoo/zoo.h"

enum variant { PLAIN, SCALED_SCORES, MASKED, TURNED_AT_ONCE, READ_TWICE, OTHER_AXIS, VARIANTS };

/* softmax(...) v of x itself, 2 x 3 x 4 x 5, in one of the forms. */
static void build(struct graph *graph, enum variant variant)
{
	static const int64_t turn[2][4] = {{0, 1, 3, 2}, {0, 2, 3, 1}};
	struct builder b = {.graph = graph, .error = ERROR_INIT};
	int x, k, y, number;

	graph_init(graph, "attention");
	x = build_input(&b, "x", DTYPE_F32, 2, 3, (const int64_t[]){3, 4, 5});
	k = variant == TURNED_AT_ONCE
		    ? build_transpose(&b, "apart", x, (const int64_t[]){0, 2, 1, 3})
		    : x;
	k = build_transpose(&b, "turned", k, turn[variant == TURNED_AT_ONCE]);
	y = build_matmul(&b, "scores", x, k);
	number = build_state(&b, "number", 0, NULL, FILL_ONE);
	if (variant == SCALED_SCORES)
		y = build_mul(&b, "scaled", number, y);
	if (variant == MASKED)
		y = build_add(&b, "masked",
			      build_state(&b, "mask", 2, (const int64_t[]){4, 4}, FILL_CAUSAL), y);
	y = build_softmax(&b, "softmax", y, variant == OTHER_AXIS ? 2 : -1);
	if (variant == READ_TWICE)
		y = build_add(&b, "twice", y, y);
	y = build_matmul(&b, "mixed", build_dropout(&b, "drop", y, 0.5), x);
	assert_int_equal(build_finish(&b, build_flatten(&b, "flat", y), 0, NULL, &b.error),
			 PRONY_OK);
}

static int find(const struct graph *graph, struct attention *out)
{
	int found = 0;

	for (int i = 0; i < graph->forward_count; i++)
		found += graph_attention(graph, i, out) ? 1 : 0;
	return found;
}

static const char *name_of(const struct graph *graph, int node)
{
	return node < 0 ? "" : graph->nodes[node].name;
}

TEST(test_forms)
{
	static const int nodes[VARIANTS] = {5, 6, 6, 5, 0, 0};

	for (int variant = 0; variant < VARIANTS; variant++) {
		SCOPED(graph) graph;
		struct attention a;

		build(&graph, (enum variant)variant);
		assert_int_equal(find(&graph, &a), nodes[variant] > 0);
		if (nodes[variant] == 0)
			continue;
		assert_int_equal(a.node_count, nodes[variant]);
		assert_string_equal(name_of(&graph, a.dropout), "drop");
		assert_string_equal(name_of(&graph, a.nodes[a.node_count - 1]), "mixed");
		assert_int_equal(a.q, graph_find_value(&graph, "x"));
		assert_int_equal(a.v, a.q);
		assert_int_equal(
			a.k, graph_find_value(&graph, variant == TURNED_AT_ONCE ? "apart" : "x"));
		assert_int_equal(a.key_order[1], variant == TURNED_AT_ONCE ? 2 : 1);
		assert_int_equal(a.key_order[2], variant == TURNED_AT_ONCE ? 1 : 2);
		assert_int_equal(a.key_order[3], 3);
		assert_int_equal(a.mask, graph_find_value(&graph, "mask"));
		assert_int_equal(a.inner_scales, variant == SCALED_SCORES);
		assert_int_equal(a.scale_count, a.inner_scales);
		if (variant == SCALED_SCORES)
			assert_int_equal(attention_scale_operand(&graph, a.scales[0]), 0);
	}
}

/* Each block of the zoo's transformers has one, also in a graph with its backward pass. The scale
 * of q lies before q is split into heads. */
TEST(test_networks)
{
	static const char *const names[] = {"vit-small", "gpt2-bytes"};

	for (size_t i = 0; i < COUNT(names); i++) {
		SCOPED(graph) graph;
		struct error err = ERROR_INIT;
		struct attention a;

		check(zoo_build(zoo_find(names[i], NULL), 2, &graph, &err), &err);
		check(graph_add_backward(&graph, &err), &err);
		assert_int_equal(find(&graph, &a), 4);
		assert_string_equal(graph.values[a.q].name, "block3.query.heads");
		assert_string_equal(graph.values[a.k].name, "block3.key.heads");
		assert_string_equal(graph.values[a.v].name, "block3.value.heads");
		assert_string_equal(graph.values[a.output].name, "block3.mixed");
		assert_int_equal(a.scale_count, 1);
		assert_int_equal(a.inner_scales, 0);
		assert_string_equal(name_of(&graph, a.scales[0]), "block3.scaled");
		assert_int_equal(attention_scale_operand(&graph, a.scales[0]), 1);
		assert_int_equal(a.mask != VALUE_NONE, i == 1);
		assert_int_equal(a.dropout, -1);
	}
}

TEST(test_causal_masks)
{
	static const float causal[] = {0, -1e9F, -1e4F, 0, 0, -65504, 0, 0, 0};
	static const float masks[][4] = {{0, -1, 0, 0}, {0, -1e9F, -1e9F, 0}, {0, NAN, 0, 0}};

	assert_true(attention_mask_is_causal(causal, 3, 3));
	for (size_t i = 0; i < COUNT(masks); i++)
		assert_false(attention_mask_is_causal(masks[i], 2, 2));
}
