/* Exercises that check what adapter.h promises of every adapter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exercise_networks.h"
#include "framework_exercise.h"

const struct network *exercise_find(const char *name)
{
	for (int i = 0; i < EXERCISE_OPERATORS; i++)
		if (strcmp(exercise_operators[i].name, name) == 0)
			return &exercise_operators[i];
	return NULL;
}

enum prony_status exercise_update_sgd(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_SGD;
	e->recipe.weight_decay = 0.01;
	return exercise_updates(e, false, err);
}

enum prony_status exercise_update_momentum(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_MOMENTUM;
	e->recipe.momentum = 0.9;
	return exercise_updates(e, false, err);
}

enum prony_status exercise_update_rmsprop(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_RMSPROP;
	e->recipe.learning_rate = 0.001;
	return exercise_updates(e, true, err);
}

enum prony_status exercise_update_adamw(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_ADAMW;
	e->recipe.weight_decay = 0.1;
	e->recipe.learning_rate = 0.001;
	e->recipe.epsilon = 1e-4; /* so large that rounding decides no sign */
	return exercise_updates(e, false, err);
}

enum prony_status exercise_update_clipped(struct exercise *e, struct error *err)
{
	/* The norm of the gradients is above it in every exercise. */
	e->recipe.clip_norm = 0.01;
	e->recipe.learning_rate = 1;
	e->recipe.optimiser = OPTIMISER_SGD;
	return exercise_updates(e, false, err);
}

enum prony_status exercise_update_rmsprop_wrong(struct exercise *e, struct error *err)
{
	struct error mismatch = ERROR_INIT;

	e->recipe.optimiser = OPTIMISER_RMSPROP;
	e->recipe.learning_rate = 0.001;
	e->recipe.epsilon = 0.001;
	if (exercise_updates(e, false, &mismatch) != PRONY_MISMATCH)
		return error_set(err, PRONY_INTERNAL, "another update rule went unnoticed");
	return PRONY_OK;
}

/* Applies to an adapter in any stage. */
static enum prony_status refuses_other_inputs(struct exercise *e, struct error *err)
{
	if (e->adapter->feed(&e->session, 0, (struct batch){&e->labels[0], NULL, 1, 0}, NULL) !=
	    PRONY_BAD_INPUT)
		return error_set(err, PRONY_MISMATCH, "labels were taken for an input");
	if (e->adapter->step(&e->session, EXERCISE_SLOTS, NULL) != PRONY_INTERNAL)
		return error_set(err, PRONY_MISMATCH, "a slot that is not there was stepped on");
	return PRONY_OK;
}

enum prony_status exercise_trainer(struct exercise *e, struct error *err)
{
	if (e->built.parameters != graph_parameter_count(&e->graph) ||
	    e->built.macs != graph_macs(&e->graph))
		return error_set(err, PRONY_MISMATCH, "%lld parameters, %lld macs",
				 (long long)e->built.parameters, (long long)e->built.macs);
	((int64_t *)e->labels[0].data)[0] = 10;
	if (e->adapter->feed(&e->session, 0, (struct batch){&e->inputs[0], &e->labels[0], 1, 1},
			     NULL) != PRONY_BAD_INPUT)
		return error_set(err, PRONY_MISMATCH, "label 10 of 10 classes was taken");
	return refuses_other_inputs(e, err);
}

enum prony_status exercise_inference(struct exercise *e, struct error *err)
{
	struct tensor_set loss;

	TRY(refuses_other_inputs(e, err));
	if (exercise_read(e, READ_LOSS, &loss, NULL) != PRONY_UNSUPPORTED)
		return error_set(err, PRONY_MISMATCH, "a loss was read");
	return PRONY_OK;
}

enum prony_status exercise_loss_of_step(struct exercise *e, double *loss, struct error *err)
{
	struct tensor_set set;

	TRY(exercise_step(e, 0, err));
	TRY(exercise_read(e, READ_LOSS, &set, err));
	*loss = *(const double *)set.tensors[0].data;
	return PRONY_OK;
}

static enum prony_status check_dropout(struct exercise *e, bool dropout, struct error *err)
{
	double first = 0, second = 0;

	e->recipe.stage = STAGE_FORWARD_BACKWARD;
	e->recipe.dropout = dropout;
	TRY(exercise_open(e, err));
	TRY(exercise_loss_of_step(e, &first, err));
	TRY(exercise_loss_of_step(e, &second, err));
	if ((first != second) != dropout)
		return error_set(err, PRONY_MISMATCH, "losses %.9g and %.9g", first, second);
	return PRONY_OK;
}

enum prony_status exercise_dropout_on(struct exercise *e, struct error *err)
{
	return check_dropout(e, true, err);
}

enum prony_status exercise_dropout_off(struct exercise *e, struct error *err)
{
	return check_dropout(e, false, err);
}
