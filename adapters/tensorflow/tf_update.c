/* The end of a training step: optimiser updates, running statistics, gradients. */
#include "adapters/tensorflow/tf_model.h"

/* Returns the gradient of a variable from the backward pass, in fp32; of several ranks, its
 * average.
 */
static struct tf_output gradient_of(struct tf_model *model, const struct tf_variable *variable)
{
	int gradient = model->graph->values[variable->owner].gradient;

	struct tf_output own = tf_cast(&model->t.e, model->t.values[gradient], TF_TYPE_FLOAT);
	int64_t key = variable - model->weights.variables + 1; /* the same on all ranks */

	if (model->ranks == 1)
		return own;
	return tf_op(&model->t.e, "CollectiveReduce", TF_IN(own),
		     TF_WITH(TF_INT("group_size", model->ranks), TF_INT("group_key", 1),
			     TF_INT("instance_key", key), TF_TEXT("merge_op", "Add"),
			     TF_TEXT("final_op", "Div"),
			     tf_ints("subdiv_offsets", &(const int64_t){0}, 1)));
}

static struct tf_output number(struct tf_emit *e, double value)
{
	const float single = (float)value;

	return tf_constant(e, TF_TYPE_FLOAT, &(struct shape){.rank = 0}, &single);
}

/* What the updates have in common. */
struct updates {
	const struct recipe *recipe;
	struct tf_operation **targets, **start; /* `start` initialises the optimiser's variables */
	int *target_count, *start_count;
	struct tf_output rate, epsilon; /* of AdamW in this step */
};

/* Creates an optimiser variable, initially zero. */
static struct tf_output slot_of(struct tf_emit *e, const struct shape *shape, struct updates *u)
{
	struct tf_output handle = tf_resource(e, TF_TYPE_FLOAT, shape);
	struct tf_output zeros = tf_op(e, "Fill", TF_IN(tf_dims(e, shape), number(e, 0)), NULL);

	u->start[(*u->start_count)++] = tf_assign(e, handle, zeros);
	return handle;
}

/* Returns 1 - beta^t in step t, as a running mean of ones, which loses no digits if beta is near 1.
 */
static struct tf_output correction(struct tf_emit *e, double beta, struct updates *u)
{
	struct tf_output handle = slot_of(e, &(struct shape){.rank = 0}, u);
	struct tf_output old = tf_read(e, handle, TF_TYPE_FLOAT);
	struct tf_output new = tf_binary(e, "AddV2", tf_scale(e, old, beta), number(e, 1 - beta));

	u->targets[(*u->target_count)++] = tf_assign(e, handle, new);
	return new;
}

/* The fused operation does not correct its epsilon for bias. */
static void correct_adamw(struct tf_emit *e, struct updates *u)
{
	struct tf_output mean = correction(e, u->recipe->beta1, u);
	struct tf_output root = tf_unary(e, "Sqrt", correction(e, u->recipe->beta2, u));

	u->rate = tf_scale(e, tf_binary(e, "RealDiv", root, mean), u->recipe->learning_rate);
	u->epsilon = tf_scale(e, root, u->recipe->epsilon);
}

/* Decays the variable in place when its gradient is known, then updates it. */
static struct tf_operation *update_adamw(struct tf_emit *e, const struct tf_variable *variable,
					 int rank, struct tf_output gradient, struct updates *u)
{
	const struct recipe *recipe = u->recipe;
	double decay = recipe->learning_rate * recipe->weight_decay;
	struct tf_output first = slot_of(e, &variable->shape, u);
	struct tf_output second = slot_of(e, &variable->shape, u);
	struct tf_output none = number(e, 0);
	struct tf_operation *end;

	if (decay != 0 && rank >= 2) {
		e->after = gradient.operation;
		e->after = tf_binary(e, "AssignSubVariableOp", variable->handle,
				     tf_scale(e, variable->read, decay))
				   .operation;
	}
	end = tf_op(e, "ResourceApplyAdam",
		    TF_IN(variable->handle, first, second, none, none, u->rate,
			  number(e, recipe->beta1), number(e, recipe->beta2), u->epsilon, gradient),
		    NULL)
		      .operation;
	e->after = NULL;
	return end;
}

/* Uses the fused optimiser operations of tf.compat.v1.train. They keep the learning rate outside
 * the momentum, as prony's definition does (Keras's fused operation has it inside), and RMSprop's
 * epsilon inside the root. */
static struct tf_operation *update(struct tf_emit *e, const struct tf_variable *variable, int rank,
				   struct tf_output gradient, struct updates *u)
{
	const struct recipe *recipe = u->recipe;
	struct tf_output rate = number(e, recipe->learning_rate), slot, other;

	switch (recipe->optimiser) {
	case OPTIMISER_SGD:
		return tf_op(e, "ResourceApplyGradientDescent",
			     TF_IN(variable->handle, rate, gradient), NULL)
			.operation;
	case OPTIMISER_MOMENTUM:
		slot = slot_of(e, &variable->shape, u);
		return tf_op(e, "ResourceApplyMomentum",
			     TF_IN(variable->handle, slot, rate, gradient,
				   number(e, recipe->momentum)),
			     NULL)
			.operation;
	case OPTIMISER_RMSPROP:
		slot = slot_of(e, &variable->shape, u);
		other = slot_of(e, &variable->shape, u);
		return tf_op(e, "ResourceApplyRMSProp",
			     TF_IN(variable->handle, slot, other, rate, number(e, recipe->rho),
				   number(e, 0), number(e, recipe->epsilon), gradient),
			     NULL)
			.operation;
	case OPTIMISER_ADAMW:
		return update_adamw(e, variable, rank, gradient, u);
	case OPTIMISER_COUNT:
		break;
	}
	error_set(&e->error, PRONY_INTERNAL, "unknown optimiser %d", (int)recipe->optimiser);
	return NULL;
}

/* Returns the gradients of the trained variables, by variable, clipped by their common norm as
 * tf.clip_by_global_norm does, but with PyTorch's 1e-6 behind the norm. */
static struct tf_output *clipped_gradients(struct tf_model *model, double limit)
{
	struct tf_emit *e = &model->t.e;
	size_t count = (size_t)model->weights.variable_count;
	struct tf_output *gradients = arena_array(model->t.arena, count, sizeof(gradients[0]));
	struct tf_output *halves = arena_array(model->t.arena, count, sizeof(halves[0])), norm;
	int trained = 0;

	for (size_t i = 0; i < count; i++) {
		const struct tf_variable *variable = &model->weights.variables[i];

		if (!variable->trained)
			continue;
		e->scope = model->graph->values[variable->owner].name;
		gradients[i] = gradient_of(model, variable);
		if (limit > 0)
			halves[trained++] = tf_unary(e, "L2Loss", gradients[i]);
	}
	e->scope = NULL;
	if (trained == 0)
		return gradients;
	norm = tf_op_list(e, "AddN", halves, trained, NULL, 0, NULL);
	norm = tf_unary(e, "Sqrt", tf_scale(e, norm, 2));
	norm = tf_binary(e, "AddV2", norm, number(e, 1e-6));
	norm = tf_binary(e, "Minimum", number(e, 1),
			 tf_binary(e, "RealDiv", number(e, limit), norm));
	for (size_t i = 0; i < count; i++)
		if (model->weights.variables[i].trained)
			gradients[i] = tf_binary(e, "Mul", gradients[i], norm);
	return gradients;
}

void tf_updates_build(struct tf_model *model, const struct recipe *recipe,
		      struct tf_operation **targets, int *target_count, struct tf_operation **start,
		      int *start_count)
{
	struct tf_emit *e = &model->t.e;
	struct updates u = {.recipe = recipe,
			    .targets = targets,
			    .start = start,
			    .target_count = target_count,
			    .start_count = start_count};
	bool adamw = recipe->optimiser == OPTIMISER_ADAMW;
	struct tf_output *gradients = clipped_gradients(model, recipe->clip_norm);

	e->scope = NULL;
	if (adamw)
		correct_adamw(e, &u);
	for (int i = 0; i < model->weights.variable_count; i++) {
		const struct tf_variable *variable = &model->weights.variables[i];
		const struct value *owner = &model->graph->values[variable->owner];
		struct tf_output gradient;

		if (!variable->trained)
			continue;
		e->scope = owner->name;
		gradient = gradients[i];
		if (recipe->weight_decay != 0 && !adamw)
			gradient = tf_binary(e, "AddV2", gradient,
					     tf_scale(e, variable->read, recipe->weight_decay));
		targets[(*target_count)++] = update(e, variable, owner->shape.rank, gradient, &u);
	}
}

void tf_gradients_build(struct tf_model *model, struct tf_operation **targets, int *count)
{
	struct tf_emit *e = &model->t.e;

	for (int i = 0; i < model->weights.variable_count; i++) {
		struct tf_variable *variable = &model->weights.variables[i];

		if (!variable->trained)
			continue;
		e->scope = model->graph->values[variable->owner].name;
		variable->gradient = tf_resource(e, TF_TYPE_FLOAT, &variable->shape);
		targets[(*count)++] =
			tf_assign(e, variable->gradient, gradient_of(model, variable));
	}
}

/* FusedBatchNorm returns the variance with divisor n - 1 for the running statistics; prony's has
 * divisor n. */
static double variance_factor(const struct graph *graph, const struct node *norm, int state)
{
	const struct shape *x = &graph->values[norm->inputs[0]].shape;
	double n = (double)shape_elements(x) / (double)x->dims[1];

	return norm->inputs[4] == state && n > 1 ? (n - 1) / n : 1;
}

void tf_statistics_build(struct tf_model *model, struct tf_operation **targets, int *count)
{
	struct tf_emit *e = &model->t.e;
	const struct graph *graph = model->graph;

	for (int i = 0; i < model->weights.weight_count; i++) {
		int state = model->weights.weights[i].value;
		const struct tf_variable *variable =
			&model->weights.variables[model->weights.weights[i].variable];
		double momentum, factor;
		int statistic = graph->values[state].kind == VALUE_STATE
					? graph_state_statistic(graph, state, &momentum)
					: VALUE_NONE;

		if (statistic == VALUE_NONE)
			continue;
		e->scope = graph->values[state].name;
		factor = variance_factor(graph, &graph->nodes[graph->values[statistic].producer],
					 state);
		targets[(*count)++] =
			tf_assign(e, variable->handle,
				  tf_binary(e, "AddV2", tf_scale(e, variable->read, momentum),
					    tf_scale(e, model->t.values[statistic],
						     (1 - momentum) * factor)));
	}
}
