#include "framework_gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parity/gate.h"

_Static_assert(EXERCISE_SLOTS == GATE_UPDATES, "a batch for each update");

bool exercise_has_precision(const struct adapter *adapter, const char *library,
			    enum precision precision)
{
	struct session session = {.library = library, .option = ""};
	struct error err = ERROR_INIT;
	struct probe probe = {0};
	bool has;

	target_defaults(&session.target);
	session.private_data = calloc(1, adapter->private_size);
	if (!session.private_data || adapter->probe(&session, &probe, &err) != PRONY_OK) {
		printf("# %s: %s\n", adapter->name, err.text);
		free(session.private_data);
		return false;
	}
	has = probe.precisions & 1u << precision;
	if (!has)
		printf("# SKIP %s on this machine (%s) has no %s\n", adapter->name,
		       probe.instruction_set, precision_name(precision));
	adapter->close(&session);
	free(session.private_data);
	return has;
}

/* Copies the values that exercise_read wrote into its own tensors. */
static enum prony_status observe(struct exercise *e, struct gate_observed *observed,
				 struct error *err)
{
	struct tensor_set set, *last = arena_alloc(&e->arena, sizeof(*last));

	for (int i = 0; i < GATE_UPDATES; i++) {
		observed->loss[i] = NAN;
		TRY(exercise_step(e, i, err));
		TRY(exercise_read(e, READ_LOGITS, &set, err));
		observed->logits[i] = set.tensors;
		if (e->recipe.stage != STAGE_FORWARD) {
			TRY(exercise_read(e, READ_LOSS, &set, err));
			observed->loss[i] = *(const double *)set.tensors[0].data;
		}
	}
	if (e->recipe.stage == STAGE_FORWARD_BACKWARD) {
		TRY(exercise_read(e, READ_GRADIENTS, last, err));
		observed->gradients = last;
	}
	if (e->recipe.stage == STAGE_TRAIN) {
		struct tensor_set *state = arena_alloc(&e->arena, sizeof(*state));

		TRY(exercise_read(e, READ_WEIGHTS, last, err));
		observed->weights = last;
		TRY(exercise_read(e, READ_STATE, state, err));
		observed->state = state;
	}
	return PRONY_OK;
}

static void freeze(struct exercise *e, const struct gate_observed *observed, const char *name)
{
	const struct tensor *weight = tensor_find(observed->weights, name);

	memcpy(weight->data, tensor_find(&e->weights, name)->data, (size_t)tensor_bytes(weight));
}

static enum prony_status judge(struct exercise *e, const struct gate_reference *ref,
			       const struct recipe *gate, const struct gate_observed *observed,
			       const struct gate_mutant *mutant, struct error *err)
{
	const struct tensor *labels = e->labels;
	struct tensor copies[GATE_UPDATES];
	struct tensor_set set = {.tensors = copies, .count = GATE_UPDATES};
	struct error why = ERROR_INIT;
	struct gate_verdict verdict;
	enum prony_status status;

	memcpy(copies, labels, sizeof(copies));
	status = gate_compare(ref, &e->graph, gate, &set, observed, &e->arena, &verdict, &why);
	if (!mutant)
		return status == PRONY_OK ? PRONY_OK : error_set(err, status, "%s", why.text);
	if (status == PRONY_MISMATCH)
		return PRONY_OK;
	return error_set(err, PRONY_INTERNAL, "%s went unnoticed", mutant->what);
}

enum prony_status exercise_gate(struct exercise *e, const struct gate_mutant *mutant,
				struct error *err)
{
	struct gate_observed observed = {.loss = {0}};
	struct gate_reference ref = {0};
	struct recipe gate = e->recipe;
	struct tensor_set inputs = {.tensors = e->inputs, .count = GATE_UPDATES};
	struct tensor_set labels = {.tensors = e->labels, .count = GATE_UPDATES};

	TRY(gate_reference_init(&ref, &e->graph, &gate, &e->weights, &inputs, &labels, NULL, err));
	if (mutant && mutant->rate > 0)
		e->recipe.learning_rate *= mutant->rate;
	if (mutant && mutant->no_momentum)
		e->recipe.optimiser = OPTIMISER_SGD;
	TRY(exercise_open(e, err));
	TRY(observe(e, &observed, err));
	observed.parameters = e->built.parameters;
	observed.macs = e->built.macs;
	if (mutant && mutant->still)
		freeze(e, &observed, mutant->still);
	TRY(judge(e, &ref, &gate, &observed, mutant, err));
	gate_reference_release(&ref);
	return PRONY_OK;
}
