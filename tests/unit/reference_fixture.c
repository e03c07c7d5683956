#include "tests/unit/reference_fixture.h"

#include "unit_test.h"

#define STEP 1e-5 /* step of the central difference: its error is of the order of 1e-10 */

static void fill_normal(struct random *random, struct tensor *tensor)
{
	float *data = tensor->data;

	for (int64_t i = 0; i < shape_elements(&tensor->shape); i++)
		data[i] = (float)random_normal(random);
}

void rig_init(struct rig *rig, struct graph graph, bool own_weights, uint64_t seed)
{
	struct error err = ERROR_INIT;
	struct random random;

	*rig = (struct rig){.graph = graph};
	arena_init(&rig->arena, 0);
	random_init(&random, seed);
	check(graph_add_backward(&rig->graph, &err), &err);
	check(graph_initial_weights(&rig->graph, seed, &rig->arena, &rig->weights, &err), &err);
	for (size_t i = 0; !own_weights && i < rig->weights.count; i++) {
		int value = graph_find_value(&rig->graph, rig->weights.tensors[i].name);

		/* A running variance must stay positive. */
		if (rig->graph.values[value].kind == VALUE_PARAMETER)
			fill_normal(&random, &rig->weights.tensors[i]);
	}
	struct tensor_set inputs, labels;
	check(batches_draw(&rig->graph, seed, 0, 1, 0.2, &rig->arena, &inputs, &labels, &err),
	      &err);
	rig->x = inputs.tensors[0];
	rig->y = labels.tensors[0];
	recipe_defaults(&rig->recipe);
	rig->recipe.stage = STAGE_FORWARD_BACKWARD;
	check(reference_init(&rig->ref, &rig->graph, &rig->weights, &err), &err);
	check(reference_feed(&rig->ref, batch_at(&rig->graph, &inputs, &labels, 0), &err), &err);
}

void rig_release(struct rig *rig)
{
	reference_release(&rig->ref);
	graph_release(&rig->graph);
	arena_release(&rig->arena);
}

double run(struct rig *rig)
{
	struct error err = ERROR_INIT;

	rig->ref.step = 0;
	check(reference_step(&rig->ref, &rig->recipe, false, &err), &err);
	return reference_loss(&rig->ref);
}

double gradient_error(struct rig *rig, int64_t samples)
{
	double worst = 0;

	for (int p = 0; p < rig->graph.value_count; p++) {
		if (rig->graph.values[p].kind != VALUE_PARAMETER)
			continue;
		int64_t count = shape_elements(&rig->graph.values[p].shape);
		int64_t stride = samples > 0 && count > samples ? count / samples : 1;
		const double *computed = rig->ref.values[rig->graph.values[p].gradient];
		double *gradient = calloc((size_t)count, sizeof(*gradient));
		double *w = rig->ref.values[p], largest = 1e-3;

		run(rig);
		memcpy(gradient, computed, (size_t)count * sizeof(*gradient));
		for (int64_t i = 0; i < count; i++)
			largest = fmax(largest, fabs(gradient[i]));
		for (int64_t i = 0; i < count; i += stride) {
			double before = w[i];

			w[i] = before + STEP;
			double above = run(rig);
			w[i] = before - STEP;
			double below = run(rig);
			w[i] = before;
			double difference = (above - below) / (2 * STEP) - gradient[i];
			worst = fmax(worst, fabs(difference) / largest);
		}
		free(gradient);
	}
	return worst;
}
