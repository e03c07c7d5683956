/* Computes the expected results of the parity gate with the reference. */
#include "parity/gate.h"

#include <math.h>
#include <string.h>

#include "parity/gate_internal.h"
#include "parity/reference_internal.h"

#define GATE_BATCH_MAX 16

/* At most this many close comparisons are tried each way: 16 answers. RMSprop has two places for
 * epsilon and needs a second run for each answer, so it tries fewer. */
#define KINKS_TRIED 4
#define KINKS_TRIED_RMSPROP 2
_Static_assert(1 << KINKS_TRIED <= GATE_MAX_ANSWERS && 2 << KINKS_TRIED_RMSPROP <= GATE_MAX_ANSWERS,
	       "every answer has room");
/* RMSprop moves every weight by about lr / sqrt(1 - rho), AdamW by lr, however small its gradient.
 * At 0.01 three updates replace the weights, and the result is large and chaotic. */
#define GATE_DIVIDED_RATE 0.001

void gate_recipe(const struct recipe *cell, double gate_learning_rate, struct recipe *out)
{
	*out = *cell;
	out->dropout = false;
	out->learning_rate = gate_learning_rate;
	if (reference_divides(out) && out->learning_rate > GATE_DIVIDED_RATE)
		out->learning_rate = GATE_DIVIDED_RATE;
	out->slots = GATE_UPDATES;
	out->input = INPUT_RESIDENT;
	if (out->batch > GATE_BATCH_MAX)
		out->batch = GATE_BATCH_MAX;
	if (out->batch < GATE_BATCH_MIN)
		out->batch = GATE_BATCH_MIN;
}

/* If the batch's own statistics normalise the network, rounding is amplified from layer to layer.
 * The amplification is measured (rounding_measure), and the run with all comparisons turned is
 * rounded by this many deviations. Twice its effect is then 4 deviations, the distance within which
 * comparisons count as close. */
#define ROUNDED_BY 2.0

/* The batches and settings that all answers share. */
struct gate_run {
	const struct graph *graph; /* with backward pass */
	const struct recipe *gate;
	const struct tensor_set *weights, *inputs, *labels;
	struct reference_control *control; /* may be NULL */
	bool divides, epsilon_inside;	   /* by the gradient's own size: RMSprop, AdamW */
	const double *deviation;	   /* by value, if rounding is measured; else NULL */
};

/* Copies a value of the interpreter, minus `before` (F32, may be NULL). */
static enum prony_status keep_value(const struct reference *ref, int value, const char *name,
				    const float *before, struct arena *arena, struct tensor *out,
				    struct error *err)
{
	const struct shape *shape = &ref->graph->values[value].shape;
	enum prony_status status = tensor_new(arena, name, DTYPE_F64, shape, out, err);
	int64_t count;

	if (status != PRONY_OK)
		return status;
	const double *from = reference_value(ref, value, &count);
	double *to = out->data;
	for (int64_t i = 0; i < count; i++)
		to[i] = from[i] - (before ? (double)before[i] : 0);
	return PRONY_OK;
}

/* Keeps the gradients (forward-backward) or the changes (train) of all parameters. */
static enum prony_status keep_parameters(const struct reference *ref, enum stage stage,
					 const struct tensor_set *weights, struct arena *arena,
					 struct gate_expected *out, struct error *err)
{
	const struct graph *graph = ref->graph;
	struct tensor_set *set = stage == STAGE_TRAIN ? &out->change : &out->gradients;
	enum prony_status status = PRONY_OK;

	if (stage == STAGE_FORWARD)
		return PRONY_OK;
	set->tensors = arena_array(arena, (size_t)graph->value_count, sizeof(struct tensor));
	for (int i = 0; status == PRONY_OK && i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		struct tensor *kept = &set->tensors[set->count];

		if (value->kind != VALUE_PARAMETER)
			continue;
		set->count++;
		if (stage == STAGE_TRAIN)
			status = keep_value(ref, i, value->name,
					    tensor_find(weights, value->name)->data, arena, kept,
					    err);
		else if (value->gradient >= 0)
			status = keep_value(ref, value->gradient, value->name, NULL, arena, kept,
					    err);
		else /* no gradient: nothing depends on it */
			status =
				tensor_new(arena, value->name, DTYPE_F64, &value->shape, kept, err);
	}
	out->tensor_slack = arena_array(arena, set->count, sizeof(double));
	out->length_slack = arena_array(arena, set->count, sizeof(double));
	return status;
}

bool gate_keeps_state(const struct graph *graph, int value, enum stage stage)
{
	double momentum;

	if (graph->values[value].kind != VALUE_STATE)
		return false;
	return graph_state_present(graph, value) != VALUE_NONE ||
	       (stage == STAGE_TRAIN &&
		graph_state_statistic(graph, value, &momentum) != VALUE_NONE);
}

static enum prony_status keep_state(const struct reference *ref, enum stage stage,
				    struct arena *arena, struct gate_expected *out,
				    struct error *err)
{
	const struct graph *graph = ref->graph;
	enum prony_status status = PRONY_OK;

	out->state.tensors = arena_array(arena, (size_t)graph->value_count, sizeof(struct tensor));
	for (int i = 0; status == PRONY_OK && i < graph->value_count; i++)
		if (gate_keeps_state(graph, i, stage))
			status = keep_value(ref, i, graph->values[i].name, NULL, arena,
					    &out->state.tensors[out->state.count++], err);
	out->state_slack = arena_array(arena, out->state.count, sizeof(double));
	return status;
}

/* Runs the gate's steps once. */
static enum prony_status run_gate(const struct gate_run *run, struct kinks *kinks,
				  struct arena *arena, struct gate_expected *out, struct error *err)
{
	struct reference ref;
	struct gate_expected expected = {.epsilon_inside = run->epsilon_inside};
	enum prony_status status = reference_init(&ref, run->graph, run->weights, err);

	ref.frees = true;
	ref.control = run->control;
	for (size_t i = 0; status == PRONY_OK && i < GATE_UPDATES; i++) {
		status = reference_feed(&ref, batch_at(run->graph, run->inputs, run->labels, i),
					err);
		if (status == PRONY_OK)
			status = reference_step_kinks(&ref, run->gate, run->epsilon_inside, kinks,
						      err);
		if (status == PRONY_OK)
			status = keep_value(&ref, run->graph->logits, "logits", NULL, arena,
					    &expected.logits[i], err);
		if (status == PRONY_OK)
			expected.loss[i] = reference_loss(&ref);
	}
	if (status == PRONY_OK)
		status = keep_parameters(&ref, run->gate->stage, run->weights, arena, &expected,
					 err);
	if (status == PRONY_OK)
		status = keep_state(&ref, run->gate->stage, arena, &expected, err);
	if (status == PRONY_OK) {
		expected.kinks = kinks->count + kinks->update_count;
		*out = expected;
	}
	reference_release(&ref);
	return status;
}

/* Allocates the gradients of every update; they are as large as the parameters. */
static enum prony_status new_log(const struct graph *graph, struct arena *arena, float *const **out,
				 struct error *err)
{
	size_t values = (size_t)graph->value_count;
	float **log = arena_try_array(arena, GATE_UPDATES * values, sizeof(*log), err);

	for (size_t i = 0; log && i < GATE_UPDATES * values; i++) {
		const struct value *value = &graph->values[i % values];

		if (value->kind != VALUE_PARAMETER || value->gradient < 0)
			continue;
		log[i] = arena_try_array(arena, (size_t)shape_elements(&value->shape),
					 sizeof(**log), err);
		if (!log[i])
			return PRONY_NOMEM;
	}
	if (!log)
		return PRONY_NOMEM;
	*out = log;
	return PRONY_OK;
}

/* Computes how far the comparisons that are not tried one by one can move the figures of an answer.
 * Its own gradients are `exact` (NULL: updates are proportional to them). */
static enum prony_status find_slack(const struct gate_run *run, struct kinks kinks,
				    float *const *exact, struct gate_expected *answer,
				    struct error *err)
{
	struct gate_expected other;
	struct arena scratch;
	enum prony_status status = PRONY_OK;

	arena_init(&scratch, 0);
	if (exact)
		status = new_log(run->graph, &scratch, &kinks.gradients, err);
	if (status == PRONY_OK)
		status = run_gate(run, &kinks, &scratch, &other, err);
	if (status == PRONY_OK)
		gate_set_slack(answer, &other);
	if (status == PRONY_OK && exact)
		gate_widen_by_updates(answer, run->graph,
				      &(struct gate_updates){run->gate, run->epsilon_inside,
							     run->graph->value_count, exact,
							     kinks.gradients});
	arena_release(&scratch);
	return status;
}

/* Moves to the next way to decide `met` comparisons, in the order of a depth-first walk: turning
 * one changes those after it. Returns false after the last. */
static bool next_decisions(bool *decisions, int64_t *decided, int64_t met)
{
	while (*decided < met)
		decisions[(*decided)++] = false;
	while (*decided > 0 && decisions[*decided - 1])
		(*decided)--;
	if (*decided == 0)
		return false;
	decisions[*decided - 1] = true;
	return true;
}

/* Updates of RMSprop and AdamW move the network further from the exact one than rounding alone. The
 * distance determines which comparisons after the updates are too close to call. Fills the list of
 * those comparisons. */
static enum prony_status find_amplified(const struct gate_run *run, struct kinks kinks,
					const struct gate_expected *answer,
					double amplified[GATE_UPDATES], struct error *err)
{
	struct kinks rounded = {.precision = kinks.precision, .rounding = ROUNDED_BY};
	struct gate_expected other;
	struct arena scratch;
	enum prony_status status;

	arena_init(&scratch, 0);
	status = run_gate(run, &rounded, &scratch, &other, err);
	if (status == PRONY_OK) {
		gate_amplification(answer, &other, amplified);
		arena_release(&scratch);
		arena_init(&scratch, 0);
		kinks.amplified = amplified;
		status = run_gate(run, &kinks, &scratch, &other, err);
	}
	arena_release(&scratch);
	return status;
}

/* Computes one answer, with slack for the comparisons that are not tried one by one. *met is the
 * number of comparisons that could be tried. */
static enum prony_status find_answer(const struct gate_run *run, const bool *decisions,
				     int64_t decided, int64_t tried, struct arena *arena,
				     struct gate_expected *answer, int64_t *met, struct error *err)
{
	bool measured = run->deviation, amplifies = gate_amplifies(run->gate, run->graph);
	double amplified[GATE_UPDATES];
	struct arena scratch;
	struct kink_list list = {0};
	struct kinks kinks = {.precision = run->gate->precision,
			      .decisions = decisions,
			      .decided = decided,
			      .deviation = run->deviation,
			      .kept = measured && !amplifies ? &list : NULL};

	enum prony_status status = PRONY_OK;

	arena_init(&scratch, 0);
	if (run->divides)
		status = new_log(run->graph, &scratch, &kinks.gradients, err);
	if (status == PRONY_OK)
		status = run_gate(run, &kinks, arena, answer, err);
	bool many = kinks.count > tried;

	if (amplifies && status == PRONY_OK)
		status = find_amplified(run,
					(struct kinks){.precision = kinks.precision,
						       .deviation = run->deviation,
						       .kept = &list},
					answer, amplified, err);
	if (amplifies)
		answer->kinks = list.count;
	for (int64_t i = 0; i < decided && status == PRONY_OK; i++)
		answer->turned += decisions[i];
	/* Evaluation has no derivatives, so its comparisons have no effect. */
	if (run->gate->stage != STAGE_FORWARD && (many || kinks.update_count > 0 || measured) &&
	    status == PRONY_OK)
		status = find_slack(run,
				    (struct kinks){.precision = kinks.precision,
						   .decisions = decisions,
						   .decided = decided,
						   .turn_all = many,
						   .turn_updates = true,
						   .rounding = measured ? ROUNDED_BY : 0,
						   .deviation = run->deviation,
						   .amplified = amplifies ? amplified : NULL,
						   .turned = measured ? &list : NULL},
				    kinks.gradients, answer, err);
	*met = many ? decided : kinks.count;
	kink_list_release(&list);
	arena_release(&scratch);
	return status;
}

/* Computes all answers for one place of epsilon. */
static enum prony_status find_answers(const struct gate_run *run, struct gate_reference *ref,
				      struct error *err)
{
	bool decisions[KINKS_TRIED] = {false}, more = true;
	int64_t decided = 0, tried = run->divides ? KINKS_TRIED_RMSPROP : KINKS_TRIED;

	/* The figures have slack for their rounding already, so no comparison is tried alone. */
	if (run->deviation)
		tried = 0;
	while (more && ref->expected_count < GATE_MAX_ANSWERS) {
		int64_t met = 0;
		enum prony_status status =
			find_answer(run, decisions, decided, tried, &ref->arena,
				    &ref->expected[ref->expected_count], &met, err);

		if (status != PRONY_OK)
			return status;
		ref->expected_count++;
		more = run->gate->stage != STAGE_FORWARD &&
		       next_decisions(decisions, &decided, met);
	}
	return PRONY_OK;
}

/* The graph of *out has a backward pass and begins with the same values. */
static enum prony_status measure(const struct graph *graph, const struct recipe *gate,
				 const struct tensor_set *weights, const struct tensor_set *inputs,
				 const struct tensor_set *labels, struct reference_control *control,
				 struct arena *arena, double **out, struct error *err)
{
	*out = arena_array(arena, (size_t)graph->value_count, sizeof(double));
	return rounding_measure(graph, gate, weights, batch_at(graph, inputs, labels, 0), control,
				*out, err);
}

enum prony_status gate_reference_init(struct gate_reference *out, const struct graph *graph,
				      const struct recipe *gate, const struct tensor_set *weights,
				      const struct tensor_set *inputs,
				      const struct tensor_set *labels,
				      struct reference_control *control, struct error *err)
{
	struct recipe of = *gate;
	struct graph copy = {0};
	double *deviation = NULL;
	enum prony_status status;
	bool places = gate->stage == STAGE_TRAIN && gate->optimiser == OPTIMISER_RMSPROP;

	*out = (struct gate_reference){.parameters = graph_parameter_count(graph),
				       .macs = graph_macs(graph),
				       .weights = *weights};
	arena_init(&out->arena, 0);
	if (inputs->count < GATE_UPDATES)
		return error_set(err, PRONY_INTERNAL, "the gate needs %d batches, but got %zu",
				 GATE_UPDATES, inputs->count);
	if (gate->dropout)
		return error_set(err, PRONY_INTERNAL, "the gate must run without dropout");
	for (size_t i = 0; i < weights->count; i++)
		if (weights->tensors[i].dtype != DTYPE_F32)
			return error_set(err, PRONY_BAD_INPUT, "%.80s must be F32",
					 weights->tensors[i].name);
	of.precision = gate_reference_precision(gate);
	graph_copy_forward(graph, &copy);
	status = gate->stage != STAGE_FORWARD ? graph_add_backward(&copy, err) : PRONY_OK;
	if (status == PRONY_OK && gate_measures_rounding(gate, graph))
		status = measure(graph, gate, weights, inputs, labels, control, &out->arena,
				 &deviation, err);
	for (int i = 0; status == PRONY_OK && i < (places ? 2 : 1); i++) {
		struct gate_run run = {
			&copy,	&of,	  weights, inputs, labels, control, reference_divides(gate),
			i == 1, deviation};

		status = find_answers(&run, out, err);
	}
	graph_release(&copy);
	return status;
}

void gate_reference_release(struct gate_reference *ref)
{
	if (!ref)
		return;
	arena_release(&ref->arena);
	*ref = (struct gate_reference){0};
}
