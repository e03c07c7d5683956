/* Finds the learning rate of the parity gate. */
#include <math.h>

#include "parity/gate.h"
#include "parity/gate_internal.h"
#include "parity/reference_internal.h"

/* The loss must fall by the gradient's prediction times 1 -/+ this. If operands are rounded, an
 * overshooting update amplifies that rounding from update to update. RMSprop and AdamW turn the
 * small difference of two updated networks into updates of full size, so they must be closer
 * together, and closer still if batch normalisation amplifies that difference. */
#define BENT 0.5
#define BENT_ROUNDED 0.05
#define BENT_DIVIDED 0.05
#define BENT_DIVIDED_NORMALISED 0.002
#define RATE_STEP 10.0
#define RATES 5 /* down to 1e-7, where float32 weights hardly change */

/*
 * One step with the highest rate. The first update of every optimiser is proportional to the rate.
 */
struct first_update {
	struct reference reference;
	const struct tensor_set *weights; /* before the step, F32 */
	double **change;		  /* by value; NULL: no parameter */
	double loss, promised;		  /* before the step; predicted decrease */
};

/* Keeps the change of each parameter. */
static void keep_changes(struct first_update *first)
{
	const struct graph *graph = first->reference.graph;

	first->change = arena_array(&first->reference.arena, (size_t)graph->value_count,
				    sizeof(*first->change));
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		int64_t count;

		if (value->kind != VALUE_PARAMETER || value->gradient < 0)
			continue;
		const struct tensor *before = tensor_find(first->weights, value->name);
		const double *after = reference_value(&first->reference, i, &count);
		const double *gradient =
			reference_value(&first->reference, value->gradient, &count);

		first->change[i] =
			arena_array(&first->reference.arena, (size_t)count, sizeof(double));
		for (int64_t k = 0; k < count; k++) {
			first->change[i][k] = after[k] - gate_element(before, k);
			first->promised -= gradient[k] * first->change[i][k];
		}
	}
}

/* Computes the loss of the same batch after a share of the change. */
static enum prony_status loss_after(struct first_update *first, const struct recipe *recipe,
				    double share, double *loss, struct error *err)
{
	const struct graph *graph = first->reference.graph;

	for (int i = 0; i < graph->value_count; i++) {
		const struct tensor *before;

		if (!first->change[i])
			continue;
		before = tensor_find(first->weights, graph->values[i].name);
		for (int64_t k = 0; k < shape_elements(&graph->values[i].shape); k++)
			first->reference.values[i][k] =
				gate_element(before, k) + share * first->change[i][k];
	}
	enum prony_status status = reference_forward(&first->reference, recipe, true, err);
	*loss = reference_loss(&first->reference);
	return status;
}

/* Networks that normalise by the batch amplify rounding at any rate. */
static bool overshoots_rounded(const struct recipe *gate, const struct graph *graph)
{
	return parity_rounds_operands(gate->precision) && !graph_has_statistics(graph);
}

static double bent_at_most(const struct recipe *gate, const struct graph *graph)
{
	if (reference_divides(gate))
		return graph_has_statistics(graph) ? BENT_DIVIDED_NORMALISED : BENT_DIVIDED;
	return overshoots_rounded(gate, graph) ? BENT_ROUNDED : BENT;
}

bool gate_rate_is_open(const struct recipe *gate, const struct graph *graph, bool chosen)
{
	if (gate->stage != STAGE_TRAIN)
		return false;
	return !chosen || reference_divides(gate) || overshoots_rounded(gate, graph);
}

enum prony_status gate_settle_rate(struct recipe *gate, const struct graph *graph,
				   const struct tensor_set *weights, struct batch batch,
				   struct reference_control *control, struct error *err)
{
	struct first_update first = {.weights = weights};
	struct recipe plain = *gate;
	struct graph copy = {0};
	double share = 1, bent = bent_at_most(gate, graph);
	enum prony_status status;

	if (gate->stage != STAGE_TRAIN)
		return PRONY_OK;
	plain.clip_norm = 0; /* gate_settle_clip comes later */
	graph_copy_forward(graph, &copy);
	status = graph_add_backward(&copy, err);
	if (status == PRONY_OK)
		status = reference_init(&first.reference, &copy, weights, err);
	first.reference.frees = true;
	first.reference.control = control;
	if (status == PRONY_OK)
		status = reference_feed(&first.reference, batch, err);
	if (status == PRONY_OK)
		status = reference_step(&first.reference, &plain, false, err);
	if (status == PRONY_OK) {
		first.loss = reference_loss(&first.reference);
		keep_changes(&first);
	}
	for (int i = 0; i < RATES && status == PRONY_OK; i++, share /= RATE_STEP) {
		double loss;

		status = loss_after(&first, gate, share, &loss, err);
		if (status == PRONY_OK && (fabs(first.loss - loss - share * first.promised) <=
						   bent * share * fabs(first.promised) ||
					   i == RATES - 1)) {
			gate->learning_rate *= share;
			break;
		}
	}
	reference_release(&first.reference);
	graph_release(&copy);
	return status;
}
