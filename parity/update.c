/* Parameter updates of the reference's optimisers. */
#include <assert.h>
#include <math.h>

#include "parity/reference_internal.h"

/* RMSprop divides the gradient by its own size, so near zero only its sign matters. */
static double turned(double gradient, double close, struct kinks *kinks)
{
	if (gradient == 0 || fabs(gradient) >= close)
		return gradient;
	kinks->update_count++;
	return kinks->turn_updates ? -gradient : gradient;
}

/* The gradient of a parameter below which its sign is uncertain: see reference_nodes. */
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

/* The update of one parameter. */
struct update {
	const struct recipe *recipe;
	bool epsilon_inside;
	const double *gradient;
	double *w, *moment, close;
	int64_t count;
	struct kinks *kinks; /* NULL: not requested */
	float *log;	     /* the gradients; NULL: not requested */
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
	bool checks_kinks = kinks && recipe->optimiser == OPTIMISER_RMSPROP;
	struct update u = {.recipe = recipe,
			   .epsilon_inside = epsilon_inside,
			   .gradient = ref->values[ref->graph->values[index].gradient],
			   .w = ref->values[index],
			   .moment = ref->moments[index],
			   .close = checks_kinks ? close_gradient(ref, recipe, index, kinks) : 0,
			   .count = count,
			   .kinks = checks_kinks ? kinks : NULL,
			   .log = checks_kinks ? log_of(ref, kinks, index) : NULL};
	int64_t parts = (count + KERNEL_PART - 1) / KERNEL_PART;

	/* Close comparisons are counted by one thread. */
	if (!checks_kinks)
		kernel_parts(parts, count, update_part, &u);
	for (int64_t part = 0; checks_kinks && part < parts; part++)
		update_part(&u, part);
}
