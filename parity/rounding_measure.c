/* Measures the effect of rounding on the values of a network with an exact and a rounded run. */
#include <math.h>

#include "parity/reference_internal.h"

/* ||a - b|| / ||b||; 0 if b is 0. */
static double distance(const double *a, const double *b, int64_t count)
{
	double differences = 0, squares = 0;

	for (int64_t i = 0; i < count; i++) {
		differences += (a[i] - b[i]) * (a[i] - b[i]);
		squares += b[i] * b[i];
	}
	return squares > 0 ? sqrt(differences / squares) : 0;
}

enum prony_status rounding_measure(const struct graph *forward, const struct recipe *recipe,
				   const struct tensor_set *weights, struct batch batch,
				   struct reference_control *control, double *deviation,
				   struct error *err)
{
	struct kinks kinks[2] = {{.precision = recipe->precision},
				 {.precision = recipe->precision, .rounding = 1}};
	struct reference both[2] = {0}; /* exact, rounded */
	enum prony_status status = PRONY_OK;

	for (int i = 0; i < 2 && status == PRONY_OK; i++) {
		status = reference_init(&both[i], forward, weights, err);
		both[i].frees = true;
		both[i].control = control;
		if (status == PRONY_OK)
			status = reference_feed(&both[i], batch, err);
	}
	for (int n = 0; n < forward->forward_count && status == PRONY_OK; n++) {
		for (int i = 0; i < 2 && status == PRONY_OK; i++)
			status = reference_nodes(&both[i], recipe, true, &kinks[i], n, n + 1, err);
		for (int k = 0; k < forward->nodes[n].output_count && status == PRONY_OK; k++) {
			int value = forward->nodes[n].outputs[k];

			/* Values that no later node reads are already freed. */
			if (value != VALUE_NONE && both[0].values[value])
				deviation[value] =
					distance(both[1].values[value], both[0].values[value],
						 shape_elements(&forward->values[value].shape));
		}
	}
	for (int i = 0; i < 2; i++)
		reference_release(&both[i]);
	return status;
}
