/* Updates of the reference: what an optimiser does to one parameter. */
#include <assert.h>
#include <math.h>

#include "parity/kernels_internal.h"

/* RMSprop divides the gradient by its own size: next to zero only the sign is left of it. */
static double turned(double gradient, double close, struct kinks *kinks)
{
	if (gradient == 0 || fabs(gradient) >= close)
		return gradient;
	kinks->update_count++;
	return kinks->turn_updates ? -gradient : gradient;
}

/* What is too close to zero for the gradient of a parameter: see reference_nodes. */
static double close_gradient(const struct reference *ref, const struct recipe *recipe,
			     int parameter, const struct kinks *kinks)
{
	const struct graph *graph = ref->graph;
	int gradient = graph->values[parameter].gradient;
	struct accumulation sum = {0};

	for (int i = 0; i <= graph->values[gradient].producer; i++)
		reference_deepen(&sum, graph, &graph->nodes[i]);
	return reference_closeness(ref, recipe) * accumulation_rounding(&sum, kinks->precision) *
	       kernel_rms(ref->values[gradient], shape_elements(&graph->values[gradient].shape));
}

/* One parameter's update. */
struct update {
	const struct recipe *recipe;
	bool epsilon_inside;
	const double *gradient;
	double *w, *moment, close;
	int64_t count;
	struct kinks *kinks; /* NULL: not asked for */
	float *log;	     /* of the gradients; NULL: not asked for */
};

static void update_rmsprop(const struct update *u, int64_t i, double g)
{
	const struct recipe *recipe = u->recipe;
	double *moment = &u->moment[i];

	if (u->log)
		u->log[i] = (float)g;
	if (u->kinks)
		g = turned(g, u->close, u->kinks);
	*moment = recipe->rho * *moment + (1 - recipe->rho) * g * g;
	u->w[i] -= recipe->learning_rate * g /
		   (u->epsilon_inside ? sqrt(*moment + recipe->epsilon)
				      : sqrt(*moment) + recipe->epsilon);
}

static void update_part(void *context, int64_t part)
{
	const struct update *u = context;
	const struct recipe *recipe = u->recipe;
	int64_t first = part * KERNEL_PART, end = first + KERNEL_PART;

	for (int64_t i = first; i < end && i < u->count; i++) {
		double g = u->gradient[i] + recipe->weight_decay * u->w[i];

		switch (recipe->optimiser) {
		case OPTIMISER_SGD:
			u->w[i] -= recipe->learning_rate * g;
			break;
		case OPTIMISER_MOMENTUM:
			u->moment[i] = recipe->momentum * u->moment[i] + g;
			u->w[i] -= recipe->learning_rate * u->moment[i];
			break;
		case OPTIMISER_RMSPROP:
			update_rmsprop(u, i, g);
			break;
		case OPTIMISER_COUNT:
			assert(false);
		}
	}
}

static float *log_of(const struct reference *ref, const struct kinks *kinks, int index)
{
	return kinks->gradients ? kinks->gradients[ref->step * ref->graph->value_count + index]
				: NULL;
}

void reference_update(struct reference *ref, const struct recipe *recipe, bool epsilon_inside,
		      struct kinks *kinks, int index)
{
	int64_t count = shape_elements(&ref->graph->values[index].shape);
	bool watch = kinks && recipe->optimiser == OPTIMISER_RMSPROP;
	struct update u = {.recipe = recipe,
			   .epsilon_inside = epsilon_inside,
			   .gradient = ref->values[ref->graph->values[index].gradient],
			   .w = ref->values[index],
			   .moment = ref->moments[index],
			   .close = watch ? close_gradient(ref, recipe, index, kinks) : 0,
			   .count = count,
			   .kinks = watch ? kinks : NULL,
			   .log = watch ? log_of(ref, kinks, index) : NULL};
	int64_t parts = (count + KERNEL_PART - 1) / KERNEL_PART;

	/* What is too close to call is counted by one thread. */
	if (!watch)
		kernel_parts(parts, count, update_part, &u);
	for (int64_t part = 0; watch && part < parts; part++)
		update_part(&u, part);
}
