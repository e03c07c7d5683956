/* Computes and checks the expected first loss of a timed process. */
#include <math.h>

#include "graph/rebatch.h"
#include "parity/gate.h"
#include "parity/gate_internal.h"
#include "parity/reference_internal.h"

#define DROPOUT_MASKS 32
#define DROPOUT_DEVIATIONS 5.0

int64_t gate_loss_parts(const struct graph *graph, enum stage stage, int64_t reference_bytes)
{
	int64_t batch = graph_batch(graph), bytes;
	int64_t weights = graph_parameter_count(graph) * (int64_t)sizeof(double);

	/* float64 takes twice the estimate for fp32. The interpreter also keeps moments of the
	 * weights. */
	if (__builtin_mul_overflow(graph_memory_estimate(graph, false), 2, &bytes) ||
	    bytes > INT64_MAX - weights)
		return 0;
	if (bytes + weights <= reference_bytes)
		return 1;
	if ((stage != STAGE_FORWARD && graph_has_statistics(graph)) ||
	    graph_samples_apart(graph, NULL) != PRONY_OK)
		return 0;
	for (int64_t parts = 2; parts <= batch; parts++)
		if (batch % parts == 0 &&
		    2 * weights + (bytes - weights) / parts <= reference_bytes)
			return parts;
	return 0;
}

/* The losses of a batch, one per mask, while its parts are added up. */
struct losses {
	const struct recipe *recipe;
	bool masks;
	double sums[DROPOUT_MASKS]; /* without masks only the first is used */
};

/* Part `part` of tensors whose first dimension is a multiple of the graph's. */
static void part_of(const struct tensor *whole, int count, const struct graph *graph, int64_t part,
		    struct tensor *out)
{
	for (int i = 0; i < count; i++) {
		out[i] = whole[i];
		out[i].shape.dims[0] = graph_batch(graph);
		out[i].data = (char *)whole[i].data + part * tensor_bytes(&out[i]);
	}
}

static struct batch batch_part(const struct graph *graph, struct batch whole, int64_t part,
			       struct arena *arena)
{
	struct tensor *inputs = arena_array(arena, (size_t)whole.input_count, sizeof(*inputs));
	struct tensor *labels = arena_array(arena, (size_t)whole.label_count, sizeof(*labels));

	part_of(whole.inputs, whole.input_count, graph, part, inputs);
	part_of(whole.labels, whole.label_count, graph, part, labels);
	whole.inputs = inputs;
	whole.labels = labels;
	return whole;
}

/* Returns the divisor of a batch's loss: the number of valid labels if the loss reads labels. */
static double divisor_of(const struct graph *graph, struct batch batch)
{
	double valid = 0;

	if (operator_row(graph->nodes[graph->forward_count - 1].op)->sums_batch)
		return 1;
	for (int i = 0; i < batch.label_count; i++)
		for (int64_t k = 0; k < shape_elements(&batch.labels[i].shape); k++)
			valid += ((const int64_t *)batch.labels[i].data)[k] >= 0;
	return valid;
}

static enum prony_status add_part(struct reference *ref, struct batch batch, struct losses *losses,
				  struct error *err)
{
	double divisor = divisor_of(ref->graph, batch);
	enum prony_status status;

	/* Every label of this part is ignored: it adds nothing. */
	if (batch.label_count > 0 && divisor == 0)
		return PRONY_OK;
	status = reference_feed(ref, batch, err);
	if (status == PRONY_OK)
		status = reference_forward(ref, losses->recipe,
					   losses->recipe->stage != STAGE_FORWARD, err);
	if (status == PRONY_OK && isnan(reference_loss(ref)) && !ref->has_labels)
		return error_set(err, PRONY_BAD_INPUT, "the loss needs labels");
	if (status == PRONY_OK && !losses->masks)
		losses->sums[0] += divisor * reference_loss(ref);
	for (int i = 0; status == PRONY_OK && losses->masks && i < DROPOUT_MASKS; i++) {
		status = reference_redraw(ref, losses->recipe, err);
		if (status == PRONY_OK)
			losses->sums[i] += divisor * reference_loss(ref);
	}
	return status;
}

/* Computes the loss of a batch: the sum of each part's loss times its divisor, over the divisor of
 * the whole. */
static void conclude(const struct losses *losses, double divisor, double *mean, double *deviation)
{
	int count = losses->masks ? DROPOUT_MASKS : 1;
	double sum = 0, squares = 0;

	for (int i = 0; i < count; i++)
		sum += losses->sums[i] / divisor;
	*mean = sum / count;
	for (int i = 0; i < count; i++)
		squares += pow(losses->sums[i] / divisor - *mean, 2);
	*deviation = count > 1 ? sqrt(squares / (count - 1)) : 0;
}

static bool draws_masks(const struct graph *graph, const struct recipe *recipe)
{
	return recipe->dropout && graph_has_dropout(graph) && recipe->stage != STAGE_FORWARD;
}

/* Returns the multiplications of gate_expected_loss. Only the nodes from the first dropout on run
 * again for each mask. */
int64_t gate_loss_cost(const struct graph *graph, const struct recipe *recipe)
{
	bool masks = draws_masks(graph, recipe), again = false;
	int64_t cost = 0;

	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		const struct operator_row *row = operator_row(node->op);

		again = again || row->is_random;
		if (row->macs)
			cost += row->macs(graph, node) * (masks && again ? 1 + DROPOUT_MASKS : 1);
	}
	return cost;
}

enum prony_status gate_expected_loss(const struct graph *graph, const struct recipe *recipe,
				     const struct tensor_set *weights, struct batch batch,
				     struct reference_control *control, double *mean,
				     double *deviation, struct error *err)
{
	struct losses losses = {.recipe = recipe, .masks = draws_masks(graph, recipe)};
	struct reference ref;
	enum prony_status status = reference_init(&ref, graph, weights, err);
	int64_t samples = batch.inputs[0].shape.dims[0], parts = samples / graph_batch(graph);

	ref.frees = true;
	ref.control = control;
	if (status == PRONY_OK && (parts < 1 || samples % graph_batch(graph) != 0))
		status = error_set(err, PRONY_INTERNAL,
				   "%lld samples are not a whole number of batches",
				   (long long)samples);
	for (int64_t part = 0; status == PRONY_OK && part < parts; part++)
		status = add_part(&ref, batch_part(graph, batch, part, &ref.arena), &losses, err);
	if (status == PRONY_OK)
		conclude(&losses, divisor_of(graph, batch), mean, deviation);
	reference_release(&ref);
	return status;
}

enum prony_status gate_check_loss(double loss, double mean, double deviation,
				  const struct parity_bounds *bounds, struct error *err)
{
	double allowed = bounds->timed_loss * fmax(1, fabs(mean)) + DROPOUT_DEVIATIONS * deviation;

	if (!isfinite(loss))
		return error_set(err, PRONY_INVALID, "the first loss is %g", loss);
	if (isinf(deviation))
		return PRONY_OK;
	/* Not "larger than": a NaN of the reference must not pass. */
	if (fabs(loss - mean) <= allowed)
		return PRONY_OK;
	return error_set(err, PRONY_INVALID,
			 "the first loss is %.9g; the reference has %.9g. They differ by %.3g; at "
			 "most %.3g is allowed",
			 loss, mean, fabs(loss - mean), allowed);
}
