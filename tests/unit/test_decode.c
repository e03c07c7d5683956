/* Tests steps with key-value caches: the same numbers as the whole prefix, and mistakes that the
 * gate finds. */
#include "parity/gate.h"
#include "parity/prefix.h"
#include "unit_test.h"
#include "zoo/zoo.h"

enum { PROMPT = 5, BATCH = 2 };

/* Decode steps of a network, caches in F64 out of the whole prefix; and the gate over them. */
struct trial {
	struct arena arena;
	struct graph whole, step;
	struct tensor_set weights, inputs, labels, whole_inputs, whole_labels;
	struct tensor rows[GATE_UPDATES];
	struct recipe recipe;
};

static void build_step(const char *name, int64_t tokens, enum stage stage, struct graph *out)
{
	struct error err = ERROR_INIT;

	check(zoo_build_step(zoo_find(name, NULL), BATCH, tokens, stage, out, &err), &err);
	check(graph_check(out, &err), &err);
}

/* Converts the weights of the step to `dtype`. */
static void convert(struct trial *t, enum dtype dtype)
{
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < t->weights.count; i++) {
		struct tensor *tensor = &t->weights.tensors[i], wide;

		if (dtype != DTYPE_F64)
			continue;
		check(tensor_new(&t->arena, tensor->name, dtype, &tensor->shape, &wide, &err),
		      &err);
		for (int64_t k = 0; k < shape_elements(&tensor->shape); k++)
			((double *)wide.data)[k] = (double)((const float *)tensor->data)[k];
		*tensor = wide;
	}
}

static void continue_prompt(struct trial *t)
{
	const int64_t *tokens = t->whole_inputs.tensors[0].data;

	for (int i = 0; i < GATE_UPDATES; i++)
		for (int n = 0; n < BATCH; n++) {
			((int64_t *)t->inputs.tensors[2 * i].data)[n] =
				tokens[n * (PROMPT + GATE_UPDATES) + PROMPT + i];
			((int64_t *)t->inputs.tensors[2 * i + 1].data)[n] = PROMPT + i;
		}
}

static void trial_init(struct trial *t, const char *name, enum dtype dtype)
{
	struct tensor_set weights;
	struct error err = ERROR_INIT;
	struct reference whole;

	*t = (struct trial){0};
	arena_init(&t->arena, 0);
	recipe_defaults(&t->recipe);
	t->recipe.stage = STAGE_FORWARD;
	t->recipe.dropout = false;
	build_step(name, PROMPT + GATE_UPDATES, STAGE_FORWARD, &t->whole);
	build_step(name, PROMPT, STAGE_DECODE, &t->step);
	check(graph_initial_weights(&t->whole, 1, &t->arena, &weights, &err), &err);
	check(graph_weights_like(&t->step, &weights, 1, &t->arena, &t->weights, &err), &err);
	convert(t, dtype);
	check(batches_draw(&t->whole, 1, 0, 1, 0, &t->arena, &t->whole_inputs, &t->whole_labels,
			   &err),
	      &err);
	check(batches_draw(&t->step, 1, 0, GATE_UPDATES, 0, &t->arena, &t->inputs, &t->labels,
			   &err),
	      &err);
	continue_prompt(t);
	check(reference_init(&whole, &t->whole, &weights, &err), &err);
	check(reference_feed(&whole, batch_at(&t->whole, &t->whole_inputs, &t->whole_labels, 0),
			     &err),
	      &err);
	check(reference_forward(&whole, &t->recipe, false, &err), &err);
	check(prefix_fill_caches(&whole, &t->step, PROMPT, &t->weights, &err), &err);
	for (int i = 0; i < GATE_UPDATES; i++)
		check(prefix_logits(&whole, PROMPT + i, &t->arena, &t->rows[i], &err), &err);
	reference_release(&whole);
}

static void trial_release(struct trial *t)
{
	graph_release(&t->whole);
	graph_release(&t->step);
	arena_release(&t->arena);
}

static struct tensor value_of(struct trial *t, const struct reference *ref, int value)
{
	struct error err = ERROR_INIT;
	struct tensor out;
	int64_t count;
	const double *from = reference_value(ref, value, &count);

	check(tensor_new(&t->arena, ref->graph->values[value].name, DTYPE_F64,
			 &ref->graph->values[value].shape, &out, &err),
	      &err);
	memcpy(out.data, from, (size_t)count * sizeof(*from));
	return out;
}

static void steps_agree(const char *name)
{
	struct error err = ERROR_INIT;
	struct reference ref;
	SCOPED(trial) t;

	trial_init(&t, name, DTYPE_F64);
	check(reference_init(&ref, &t.step, &t.weights, &err), &err);
	for (size_t i = 0; i < GATE_UPDATES; i++) {
		check(reference_feed(&ref, batch_at(&t.step, &t.inputs, &t.labels, i), &err), &err);
		check(reference_step(&ref, &t.recipe, false, &err), &err);
		struct tensor logits = value_of(&t, &ref, t.step.logits);
		assert_true(prefix_distance(&t.rows[i], &logits) < 1e-12);
	}
	reference_release(&ref);
}

/* Decode steps and the forward pass of the whole prefix are one function of the tokens. */
TEST(decode_steps_are_the_whole_prefix)
{
	steps_agree("gpt2-bytes");
	steps_agree("llama-tiny");
}

/* Prefill writes the caches with which decode begins. */
TEST(prefill_fills_the_caches)
{
	struct error err = ERROR_INIT;
	SCOPED(trial) t;
	SCOPED(graph) prefill;
	struct tensor_set weights;
	struct reference ref;
	struct tensor prompt;

	trial_init(&t, "gpt2-bytes", DTYPE_F64);
	build_step("gpt2-bytes", PROMPT, STAGE_PREFILL, &prefill);
	check(graph_weights_like(&prefill, &t.weights, 1, &t.arena, &weights, &err), &err);
	check(tensor_new(&t.arena, "tokens", DTYPE_I64, &prefill.values[0].shape, &prompt, &err),
	      &err);
	for (int n = 0; n < BATCH; n++)
		memcpy((int64_t *)prompt.data + n * PROMPT,
		       (const int64_t *)t.whole_inputs.tensors[0].data +
			       n * (PROMPT + GATE_UPDATES),
		       PROMPT * sizeof(int64_t));
	check(reference_init(&ref, &prefill, &weights, &err), &err);
	check(reference_feed(&ref, (struct batch){.inputs = &prompt, .input_count = 1}, &err),
	      &err);
	check(reference_step(&ref, &t.recipe, false, &err), &err);
	for (int i = 0; i < prefill.value_count; i++) {
		const struct tensor *decode = tensor_find(&t.weights, prefill.values[i].name);

		if (graph_state_present(&prefill, i) == VALUE_NONE)
			continue;
		struct tensor filled = value_of(&t, &ref, i);
		assert_true(prefix_distance(decode, &filled) < 1e-12);
	}
	reference_release(&ref);
}

/* What a framework returns that computes `graph`; with `forgets`, its caches begin anew. */
static enum prony_status judge(struct trial *t, const struct graph *graph,
			       const struct tensor_set *inputs, bool forgets, struct error *err)
{
	struct gate_observed observed = {.parameters = -1, .macs = -1};
	struct tensor logits[GATE_UPDATES];
	struct tensor_set state = {
		.tensors = arena_array(&t->arena, (size_t)graph->value_count, sizeof(*logits))};
	struct gate_reference expected;
	struct gate_verdict verdict = {.count = 0};
	struct reference ref;

	check(gate_reference_init(&expected, &t->step, &t->recipe, &t->weights, &t->inputs,
				  &t->labels, NULL, err),
	      err);
	check(reference_init(&ref, graph, &t->weights, err), err);
	for (size_t i = 0; i < GATE_UPDATES; i++) {
		if (forgets && i > 0) {
			reference_release(&ref);
			check(reference_init(&ref, graph, &t->weights, err), err);
		}
		check(reference_feed(&ref, batch_at(graph, inputs, &t->labels, i), err), err);
		check(reference_step(&ref, &t->recipe, false, err), err);
		logits[i] = value_of(t, &ref, graph->logits);
		observed.logits[i] = &logits[i];
		observed.loss[i] = reference_loss(&ref);
	}
	for (int i = 0; i < graph->value_count; i++)
		if (graph_state_present(graph, i) != VALUE_NONE)
			state.tensors[state.count++] = value_of(t, &ref, i);
	observed.state = &state;
	enum prony_status status = gate_compare(&expected, &t->step, &t->recipe, &t->labels,
						&observed, &t->arena, &verdict, err);
	gate_reference_release(&expected);
	reference_release(&ref);
	return status;
}

TEST(the_gate_finds_wrong_caches)
{
	struct error err = ERROR_INIT;
	SCOPED(trial) t;
	struct tensor_set wrong;

	trial_init(&t, "gpt2-bytes", DTYPE_F32);
	check(judge(&t, &t.step, &t.inputs, false, &err), &err);
	expect_error(judge(&t, &t.step, &t.inputs, true, &err), PRONY_MISMATCH, &err, "");

	/* Each token one position too late: another row of positions, mask and cache. */
	wrong = t.inputs;
	wrong.tensors = arena_array(&t.arena, wrong.count, sizeof(*wrong.tensors));
	memcpy(wrong.tensors, t.inputs.tensors, wrong.count * sizeof(*wrong.tensors));
	for (size_t i = 1; i < wrong.count; i += 2) {
		check(tensor_new(&t.arena, "position", DTYPE_I64, &t.inputs.tensors[i].shape,
				 &wrong.tensors[i], &err),
		      &err);
		for (int n = 0; n < BATCH; n++)
			((int64_t *)wrong.tensors[i].data)[n] = PROMPT + (int64_t)i / 2 + 1;
	}
	expect_error(judge(&t, &t.step, &wrong, false, &err), PRONY_MISMATCH, &err, "");
}

/* Without the mask, a token attends to the rows behind it, which hold arbitrary numbers. */
TEST(the_gate_finds_a_missing_mask)
{
	struct error err = ERROR_INIT;
	SCOPED(trial) t;
	SCOPED(graph) unmasked;
	int removed = 0;

	trial_init(&t, "gpt2-bytes", DTYPE_F32);
	build_step("gpt2-bytes", PROMPT, STAGE_DECODE, &unmasked);
	for (int i = 0; i < unmasked.node_count; i++) {
		struct node *node = &unmasked.nodes[i];

		if (node->op != OP_SOFTMAX)
			continue;
		node->inputs[0] =
			unmasked.nodes[unmasked.values[node->inputs[0]].producer].inputs[0];
		removed++;
	}
	assert_int_equal(removed, 4);
	expect_error(judge(&t, &unmasked, &t.inputs, false, &err), PRONY_MISMATCH, &err, "");
}

/* A query that writes beside its own row, and one that leaves the cache as it was. */
TEST(the_gate_finds_a_cache_that_is_not_written)
{
	struct error err = ERROR_INIT;
	SCOPED(trial) t;
	SCOPED(graph) stale;
	struct error why = ERROR_INIT;

	trial_init(&t, "gpt2-bytes", DTYPE_F32);
	build_step("gpt2-bytes", PROMPT, STAGE_DECODE, &stale);
	for (int i = 0; i < stale.node_count; i++)
		for (int k = 0; k < stale.nodes[i].input_count; k++) {
			int value = stale.nodes[i].inputs[k];
			int producer = value == VALUE_NONE ? -1 : stale.values[value].producer;

			if (producer >= 0 && stale.nodes[producer].op == OP_TENSOR_SCATTER)
				stale.nodes[i].inputs[k] = stale.nodes[producer].inputs[0];
		}
	expect_error(judge(&t, &stale, &t.inputs, false, &err), PRONY_MISMATCH, &err, "");
	/* Such a graph is no valid one. */
	expect_error(graph_check(&stale, &why), PRONY_BAD_INPUT, &why, "also used elsewhere");
}

TEST(networks_without_caches_have_no_steps)
{
	struct error err = ERROR_INIT;
	struct network step;

	expect_error(network_at_stage(zoo_find("lenet", NULL), STAGE_DECODE, &step, &err),
		     PRONY_UNSUPPORTED, &err, "no language model");
	expect_error(network_at_stage(zoo_find("gpt2", NULL), STAGE_DECODE, &step, &err),
		     PRONY_UNSUPPORTED, &err, "--sequence 1016");
}

/* The table of positions is not read whole, the tied table is; keys and values of 12 blocks. */
TEST(a_decode_step_reads_weights_and_caches)
{
	const struct network *network = zoo_find("gpt2", NULL);
	struct error err = ERROR_INIT;
	struct network step;

	check(network_at_length(network, 128, &step, &err), &err);
	assert_int_equal(step.weights_read, 0);
	check(network_at_stage(&step, STAGE_DECODE, &step, &err), &err);
	assert_int_equal(step.weights_read, network->parameters - 1024 * 768);
	assert_int_equal(step.caches_read, 2 * 12 * 768 * 129);
}

static int write_beyond(struct builder *b, int64_t rows, enum weight_fill fill)
{
	int x = build_input(b, "x", DTYPE_F32, BATCH, 2, (const int64_t[]){rows, 3});
	int index = build_input(b, "index", DTYPE_I64, BATCH, 0, NULL);
	int past = build_state(b, "past", 3, (const int64_t[]){BATCH, 4, 3}, fill);

	return build_node(b, OP_TENSOR_SCATTER, "written", (const int[]){past, x, index}, 3, NULL);
}

TEST(rows_must_fit_into_the_cache)
{
	struct error err = ERROR_INIT;
	struct graph graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};

	graph_init(&graph, "scatter");
	int y = write_beyond(&b, 2, FILL_ZERO);
	check(build_finish_half_squares(&b, build_flatten(&b, "flat", y), &err), &err);
	assert_int_equal(graph_index_bound(&graph, graph_find_value(&graph, "index")), 3);
	graph_release(&graph);
	graph_init(&graph, "scatter");
	write_beyond(&b, 5, FILL_ZERO);
	expect_error(b.error.code, PRONY_BAD_INPUT, &b.error, "fewer rows on axis 1");
	graph_release(&graph);
}
