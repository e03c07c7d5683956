/* Tests what the parity gate detects in transformers, in fp32 and in bf16. The simulated framework
 * is the reference itself, rounded with other random numbers than the gate's, with one mistake. */
#include "parity/gate.h"
#include "parity/reference_internal.h"
#include "unit_test.h"
#include "zoo/zoo.h"

enum { BATCH = 4, TOKENS = 32 };

struct mutant {
	const char *what;
	double rate;		   /* factor of the learning rate; 0: 1 */
	const char *frozen;	   /* prefix of parameters that are not updated */
	bool heads, mask, epsilon; /* two heads swapped; no causal mask; epsilon x 10 */
	bool positions, gelu;	   /* shifted by one; the other form */
};

struct trial {
	struct arena arena;
	struct graph forward;
	struct recipe recipe;
	struct tensor_set weights, inputs, labels;
	struct gate_reference expected;
};

static void trial_init(struct trial *t, const char *name, enum precision precision,
		       enum optimiser optimiser)
{
	const struct network *network = zoo_find(name, NULL);
	struct error err = ERROR_INIT;
	struct network shorter = *network;
	struct recipe cell;

	*t = (struct trial){0};
	arena_init(&t->arena, 0);
	if (network->tokens_max > 0)
		check(network_at_length(network, TOKENS, &shorter, &err), &err);
	recipe_defaults(&cell);
	cell.optimiser = optimiser;
	cell.precision = precision;
	cell.weight_decay = optimiser == OPTIMISER_ADAMW ? 0.1 : 5e-4;
	if (optimiser == OPTIMISER_ADAMW)
		cell.epsilon = RECIPE_ADAMW_EPSILON;
	gate_recipe(&cell, network_gate_rate(network, optimiser), &t->recipe);
	t->recipe.batch = BATCH;
	check(zoo_build(&shorter, BATCH, &t->forward, &err), &err);
	check(graph_initial_weights(&t->forward, 1, &t->arena, &t->weights, &err), &err);
	check(batches_draw(&t->forward, 1, 0, GATE_UPDATES, 0, &t->arena, &t->inputs, &t->labels,
			   &err),
	      &err);
	if (gate_rate_is_open(&t->recipe, &t->forward, true))
		check(gate_settle_rate(&t->recipe, &t->forward, &t->weights,
				       batch_at(&t->forward, &t->inputs, &t->labels, 0), NULL,
				       &err),
		      &err);
	check(gate_reference_init(&t->expected, &t->forward, &t->recipe, &t->weights, &t->inputs,
				  &t->labels, NULL, &err),
	      &err);
}

static void trial_release(struct trial *t)
{
	gate_reference_release(&t->expected);
	graph_release(&t->forward);
	arena_release(&t->arena);
}

/* Mistakes of the program. */
static void spoil_graph(const struct mutant *m, struct graph *graph)
{
	for (int i = 0; i < graph->node_count; i++) {
		struct attributes *a = &graph->nodes[i].attributes;

		if (m->epsilon && graph->nodes[i].op == OP_LAYER_NORM)
			a->epsilon *= 10;
		if (m->gelu && graph->nodes[i].op == OP_GELU)
			a->approximate = !a->approximate;
	}
}

static void swap(double *a, double *b, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		double kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

/* Mistakes that are the same as other weights; `back` undoes them. */
static void spoil_weights(const struct mutant *m, struct reference *ref, bool back)
{
	const struct graph *graph = ref->graph;

	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		const struct shape *shape = &value->shape;
		int64_t width = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1, part;
		double *w = ref->values[i];

		if (m->heads && strcmp(value->name, "block1.project.weight") == 0)
			for (int64_t row = 0; row < shape->dims[0]; row++) {
				part = width / 4; /* both networks have 4 heads */
				swap(w + row * width, w + row * width + part, part);
			}
		if (m->positions && value->kind == VALUE_PARAMETER &&
		    strncmp(value->name, "position", 8) == 0)
			for (int64_t r = 1, rows = shape_elements(shape) / width; r < rows; r++) {
				int64_t at = back ? rows - r : r;

				swap(w + (at - 1) * width, w + at * width, width);
			}
		if (m->mask && strcmp(value->name, "causal") == 0)
			memset(w, 0, (size_t)shape_elements(shape) * sizeof(*w));
	}
}

static void thaw(const struct mutant *m, struct reference *ref, const struct tensor_set *weights)
{
	const struct graph *graph = ref->graph;

	for (int i = 0; m->frozen && i < graph->value_count; i++) {
		if (graph->values[i].kind != VALUE_PARAMETER ||
		    strncmp(graph->values[i].name, m->frozen, strlen(m->frozen)) != 0)
			continue;
		const struct tensor *before = tensor_find(weights, graph->values[i].name);
		for (int64_t k = 0; k < shape_elements(&before->shape); k++)
			ref->values[i][k] = (double)((const float *)before->data)[k];
	}
}

static struct tensor copy_of(struct trial *t, const struct reference *ref, const char *name, int i)
{
	struct error err = ERROR_INIT;
	struct tensor out;
	int64_t count;
	const double *from = reference_value(ref, i, &count);

	check(tensor_new(&t->arena, name, DTYPE_F64, &ref->graph->values[i].shape, &out, &err),
	      &err);
	memcpy(out.data, from, (size_t)count * sizeof(*from));
	return out;
}

/* Returns the worst figure in units of its bound. */
static double judge(struct trial *t, const struct mutant *m)
{
	struct error err = ERROR_INIT;
	struct graph graph = {0};
	struct reference ref;
	struct recipe recipe = t->recipe;
	struct tensor logits[GATE_UPDATES];
	struct tensor_set weights = {0};
	struct gate_observed observed = {.parameters = -1, .macs = -1, .weights = &weights};
	struct gate_verdict verdict = {0};
	bool adamw = recipe.optimiser == OPTIMISER_ADAMW;

	recipe.learning_rate *= m->rate > 0 ? m->rate : 1;
	graph_copy_forward(&t->forward, &graph);
	spoil_graph(m, &graph);
	check(graph_add_backward(&graph, &err), &err);
	check(reference_init(&ref, &graph, &t->weights, &err), &err);
	spoil_weights(m, &ref, false);
	ref.step = adamw ? 0 : 1000; /* other random numbers; AdamW counts its updates */
	for (size_t i = 0; i < GATE_UPDATES; i++) {
		struct kinks kinks = {.precision = recipe.precision, .rounding = adamw ? 0 : 1};

		check(reference_feed(&ref, batch_at(&graph, &t->inputs, &t->labels, i), &err),
		      &err);
		check(reference_step_kinks(&ref, &recipe, false, &kinks, &err), &err);
		thaw(m, &ref, &t->weights);
		logits[i] = copy_of(t, &ref, "logits", graph.logits);
		observed.logits[i] = &logits[i];
		observed.loss[i] = reference_loss(&ref);
	}
	spoil_weights(m, &ref, true);
	weights.tensors = arena_array(&t->arena, (size_t)graph.value_count, sizeof(struct tensor));
	for (int i = 0; i < graph.value_count; i++)
		if (graph.values[i].kind == VALUE_PARAMETER)
			weights.tensors[weights.count++] =
				copy_of(t, &ref, graph.values[i].name, i);
	enum prony_status status = gate_compare(&t->expected, &t->forward, &t->recipe, &t->labels,
						&observed, &t->arena, &verdict, &err);
	reference_release(&ref);
	graph_release(&graph);
	assert_int_equal(status == PRONY_OK, verdict.passed);
	assert_int_equal(verdict.passed, verdict.worst_ratio <= 1);
	return verdict.worst_ratio;
}

/* docs/parity.md, "What it detects", has the figures. `least`: for gpt2-bytes and vit-small, with
 * momentum in fp32, with AdamW in fp32, with momentum in bf16; 0: not detected. */
static const struct {
	struct mutant mutant;
	double least[2][3];
} mutants[] = {
	{{.what = "learning rate x 1.01", .rate = 1.01}, {{100, 50, 1.4}, {50, 50, 1}}},
	{{.what = "a layer frozen", .frozen = "block1.mlp1."}, {{100, 100, 10}, {100, 100, 5}}},
	{{.what = "no gradient of a bias", .frozen = "block1.mlp1.bias"},
	 {{100, 100, 10}, {100, 100, 5}}},
	{{.what = "two heads swapped", .heads = true}, {{100, 100, 30}, {100, 100, 15}}},
	{{.what = "no causal mask", .mask = true}, {{100, 100, 30}, {0, 0, 0}}},
	{{.what = "positions shifted by one", .positions = true}, {{100, 100, 30}, {100, 100, 5}}},
	{{.what = "epsilon x 10", .epsilon = true}, {{100, 100, 5}, {1, 0, 0}}},
	{{.what = "GELU's other form", .gelu = true}, {{15, 100, 0}, {15, 30, 0}}},
};

TEST(mutants_of_transformers_are_rejected)
{
	static const char *const names[] = {"gpt2-bytes", "vit-small"};
	static const struct {
		enum precision precision;
		enum optimiser optimiser;
	} kinds[] = {{PRECISION_FP32, OPTIMISER_MOMENTUM},
		     {PRECISION_FP32, OPTIMISER_ADAMW},
		     {PRECISION_BF16, OPTIMISER_MOMENTUM}};

	for (size_t n = 0; n < COUNT(names); n++) {
		for (size_t k = 0; k < COUNT(kinds); k++) {
			SCOPED(trial) t;

			trial_init(&t, names[n], kinds[k].precision, kinds[k].optimiser);
			double right = judge(&t, &(struct mutant){0});
			if (!(right < 0.5))
				fail_msg("%s, kind %zu: %.2g for a right one", names[n], k, right);
			for (size_t i = 0; i < COUNT(mutants); i++) {
				double ratio = judge(&t, &mutants[i].mutant);

				if (!(ratio >= mutants[i].least[n][k]))
					fail_msg("%s, kind %zu, %s: only %.2g bounds", names[n], k,
						 mutants[i].mutant.what, ratio);
			}
		}
	}
}
