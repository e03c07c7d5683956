/* The end of a training step: optimiser updates, running statistics, gradients. */
#include "adapters/tensorflow/tf_model.h"

/* Returns the gradient of a variable from the backward pass, in fp32. */
static struct tf_output gradient_of(struct tf_model *model, const struct tf_variable *variable)
{
	int gradient = model->graph->values[variable->owner].gradient;

	return tf_cast(&model->t.e, model->t.values[gradient], TF_TYPE_FLOAT);
}

/* Creates an optimiser variable, initially zero. */
static struct tf_output slot_of(struct tf_emit *e, const struct tf_variable *variable,
				struct tf_operation **start, int *start_count)
{
	struct tf_output handle = tf_resource(e, TF_TYPE_FLOAT, &variable->shape);
	struct tf_output zeros =
		tf_binary(e, "Fill", tf_dims(e, &variable->shape), tf_number(e, variable->read, 0));

	start[(*start_count)++] = tf_assign(e, handle, zeros);
	return handle;
}

/* Uses the fused optimiser operations of tf.compat.v1.train. They keep the learning rate outside
 * the momentum, as prony's definition does (Keras's fused operation has it inside), and RMSprop's
 * epsilon inside the root. */
static struct tf_operation *update(struct tf_emit *e, const struct recipe *recipe,
				   const struct tf_variable *variable, struct tf_output gradient,
				   struct tf_operation **start, int *start_count)
{
	struct tf_output rate = tf_number(e, variable->read, recipe->learning_rate), slot, other;

	switch (recipe->optimiser) {
	case OPTIMISER_SGD:
		return tf_op(e, "ResourceApplyGradientDescent",
			     TF_IN(variable->handle, rate, gradient), NULL)
			.operation;
	case OPTIMISER_MOMENTUM:
		slot = slot_of(e, variable, start, start_count);
		return tf_op(e, "ResourceApplyMomentum",
			     TF_IN(variable->handle, slot, rate, gradient,
				   tf_number(e, rate, recipe->momentum)),
			     NULL)
			.operation;
	case OPTIMISER_RMSPROP:
		slot = slot_of(e, variable, start, start_count);
		other = slot_of(e, variable, start, start_count);
		return tf_op(e, "ResourceApplyRMSProp",
			     TF_IN(variable->handle, slot, other, rate,
				   tf_number(e, rate, recipe->rho), tf_number(e, rate, 0),
				   tf_number(e, rate, recipe->epsilon), gradient),
			     NULL)
			.operation;
	case OPTIMISER_ADAMW:
	case OPTIMISER_COUNT:
		break;
	}
	error_set(&e->error, PRONY_INTERNAL, "unknown optimiser %d", (int)recipe->optimiser);
	return NULL;
}

void tf_updates_build(struct tf_model *model, const struct recipe *recipe,
		      struct tf_operation **targets, int *target_count, struct tf_operation **start,
		      int *start_count)
{
	struct tf_emit *e = &model->t.e;

	for (int i = 0; i < model->weights.variable_count; i++) {
		const struct tf_variable *variable = &model->weights.variables[i];
		struct tf_output gradient;

		if (!variable->trained)
			continue;
		e->scope = model->graph->values[variable->owner].name;
		gradient = gradient_of(model, variable);
		if (recipe->weight_decay != 0)
			gradient = tf_binary(e, "AddV2", gradient,
					     tf_scale(e, variable->read, recipe->weight_decay));
		targets[(*target_count)++] =
			update(e, recipe, variable, gradient, start, start_count);
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
