/* Finds the norm at which the parity gate clips gradients. */
#include <float.h>
#include <math.h>

#include "parity/gate.h"
#include "parity/reference.h"

/* The gate's norm in units of the largest one. Within these limits it is the geometric mean of the
 * smallest and the largest norm. At 0.5 a missing clip doubles an update; at 0.9 it is still seen
 * if all norms are nearly equal. */
#define CLIP_SHARE_MIN 0.5
#define CLIP_SHARE_MAX 0.9

enum prony_status gate_settle_clip(struct recipe *gate, const struct graph *graph,
				   const struct tensor_set *weights,
				   const struct tensor_set *inputs, const struct tensor_set *labels,
				   struct reference_control *control, struct error *err)
{
	struct recipe measured = *gate;
	struct reference reference = {0};
	struct graph copy = {0};
	double least = INFINITY, most = 0;
	enum prony_status status;

	if (gate->stage != STAGE_TRAIN || gate->clip_norm <= 0)
		return PRONY_OK;
	measured.clip_norm = DBL_MAX; /* measures the norms and scales nothing */
	graph_copy_forward(graph, &copy);
	status = graph_add_backward(&copy, err);
	if (status == PRONY_OK)
		status = reference_init(&reference, &copy, weights, err);
	reference.frees = true;
	reference.control = control;
	for (size_t i = 0; i < GATE_UPDATES && status == PRONY_OK; i++) {
		status = reference_feed(&reference, batch_at(&copy, inputs, labels, i), err);
		if (status == PRONY_OK)
			status = reference_step(&reference, &measured, false, err);
		least = fmin(least, reference.norm);
		most = fmax(most, reference.norm);
	}
	if (status == PRONY_OK && most > 0)
		gate->clip_norm =
			most * fmin(fmax(sqrt(least / most), CLIP_SHARE_MIN), CLIP_SHARE_MAX);
	reference_release(&reference);
	graph_release(&copy);
	return status;
}
