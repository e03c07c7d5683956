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
	double *w, *moment, *square, close, decay;
	double clip;	 /* factor of the gradient */
	double scale[2]; /* of AdamW's bias corrections */
	int64_t count;
	struct kinks *kinks; /* NULL: not requested */
	float *log;	     /* the gradients; NULL: not requested */
};

static void update_rmsprop(const struct update *u, int64_t i, double g)
{
	const struct recipe *recipe = u->recipe;
	double *moment = &u->moment[i];

	if (u->kinks)
		g = turned(g, u->close, u->kinks);
	*moment = recipe->rho * *moment + (1 - recipe->rho) * g * g;
	u->w[i] -= recipe->learning_rate * g /
		   (u->epsilon_inside ? sqrt(*moment + recipe->epsilon)
				      : sqrt(*moment) + recipe->epsilon);
}

/* Loshchilov and Hutter 2019 (arXiv 1711.05101), as in PyTorch: decay only where a parameter has
 * two or more dimensions, which leaves out biases and the factors of normalisations. */
static void update_adamw(const struct update *u, int64_t i, double g)
{
	const struct recipe *recipe = u->recipe;

	u->moment[i] = recipe->beta1 * u->moment[i] + (1 - recipe->beta1) * g;
	u->square[i] = recipe->beta2 * u->square[i] + (1 - recipe->beta2) * g * g;
	u->w[i] -= recipe->learning_rate * u->decay * u->w[i];
	u->w[i] -= recipe->learning_rate * u->moment[i] * u->scale[0] /
		   (sqrt(u->square[i] * u->scale[1]) + recipe->epsilon);
}

static void update_part(void *context, int64_t part)
{
	const struct update *u = context;
	const struct recipe *recipe = u->recipe;
	int64_t first = part * KERNEL_PART, end = first + KERNEL_PART;

	for (int64_t i = first; i < end && i < u->count; i++) {
		double g = u->clip * u->gradient[i];

		if (recipe->optimiser != OPTIMISER_ADAMW)
			g += recipe->weight_decay * u->w[i];
		if (u->log)
			u->log[i] = (float)g;
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
		case OPTIMISER_ADAMW:
			update_adamw(u, i, g);
			break;
		case OPTIMISER_COUNT:
			assert(false);
		}
	}
}

static float *log_of(const struct reference *ref, const struct kinks *kinks, int index)
{
	return kinks && kinks->gradients
		       ? kinks->gradients[ref->step * ref->graph->value_count + index]
		       : NULL;
}

enum prony_status reference_need_squares(struct reference *ref, struct error *err)
{
	const struct graph *graph = ref->graph;

	if (ref->squares)
		return PRONY_OK;
	ref->squares = arena_try_array(&ref->arena, (size_t)graph->value_count + 1,
				       sizeof(*ref->squares), err);
	for (int i = 0; ref->squares && i < graph->value_count; i++) {
		int64_t elements = shape_elements(&graph->values[i].shape);

		if (graph->values[i].kind != VALUE_PARAMETER || graph->values[i].gradient < 0)
			continue;
		ref->squares[i] =
			arena_try_array(&ref->arena, (size_t)elements + 1, sizeof(double), err);
		if (!ref->squares[i])
			return PRONY_NOMEM;
	}
	return ref->squares ? PRONY_OK : PRONY_NOMEM;
}

double reference_clip(struct reference *ref, const struct recipe *recipe)
{
	const double epsilon = 1e-6; /* PyTorch's */
	const struct graph *graph = ref->graph;
	double squares = 0;

	if (recipe->clip_norm <= 0)
		return 1;
	for (int i = 0; i < graph->value_count; i++) {
		int gradient = graph->values[i].gradient;

		if (graph->values[i].kind != VALUE_PARAMETER || gradient < 0)
			continue;
		for (int64_t k = 0; k < shape_elements(&graph->values[i].shape); k++)
			squares += ref->values[gradient][k] * ref->values[gradient][k];
	}
	ref->norm = sqrt(squares);
	return fmin(1, recipe->clip_norm / (ref->norm + epsilon));
}

void reference_update(struct reference *ref, const struct recipe *recipe, double clip,
		      bool epsilon_inside, struct kinks *kinks, int index)
{
	int64_t count = shape_elements(&ref->graph->values[index].shape);
	double updates = (double)ref->step + 1;
	bool checks_kinks = kinks && recipe->optimiser == OPTIMISER_RMSPROP;
	struct update u = {
		.recipe = recipe,
		.epsilon_inside = epsilon_inside,
		.gradient = ref->values[ref->graph->values[index].gradient],
		.w = ref->values[index],
		.moment = ref->moments[index],
		.square = ref->squares ? ref->squares[index] : NULL,
		.clip = clip,
		.decay = ref->graph->values[index].shape.rank >= 2 ? recipe->weight_decay : 0,
		.scale = {1 / (1 - pow(recipe->beta1, updates)),
			  1 / (1 - pow(recipe->beta2, updates))},
		.close = checks_kinks ? clip * close_gradient(ref, recipe, index, kinks) : 0,
		.count = count,
		.kinks = checks_kinks ? kinks : NULL,
		.log = log_of(ref, kinks, index)};
	int64_t parts = (count + KERNEL_PART - 1) / KERNEL_PART;

	/* Close comparisons are counted by one thread. */
	if (!checks_kinks)
		kernel_parts(parts, count, update_part, &u);
	for (int64_t part = 0; checks_kinks && part < parts; part++)
		update_part(&u, part);
}
