#include "run/gate_process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the states. Running statistics stay NULL if the framework cannot report them; caches are
 * the work of the stage. */
static enum prony_status read_state(struct team *team, bool needed, struct arena *arena,
				    const struct tensor_set **out, struct error *err)
{
	struct tensor_set *state = arena_alloc(arena, sizeof *state);
	enum prony_status status = team_read_kept(team, "state", arena, state, err);
	if (status == PRONY_UNSUPPORTED && !needed) {
		error_clear(err);
		return PRONY_OK;
	}
	if (status == PRONY_OK)
		*out = state;
	return status;
}

/*
 * Reads what the gate compares, step by step. Gradients and weights are valid until the next read.
 */
static enum prony_status observe(const struct launch *launch, struct team *team,
				 struct arena *arena, struct gate_observed *observed,
				 struct error *err)
{
	enum stage stage = launch->work->gate_recipe.stage;
	enum prony_status status = PRONY_OK;
	launch_event(launch, EVENT_STAGE, "steps");
	for (int i = 0; i < GATE_UPDATES && status == PRONY_OK; i++) {
		struct client_window window;
		struct tensor *logits = arena_alloc(arena, sizeof *logits);
		observed->loss[i] = NAN;
		status = team_run(team, 1, SYNC_END, 1, i, 0, &window, err);
		if (status == PRONY_OK)
			status = team_read_logits(team, arena, logits, err);
		if (status == PRONY_OK)
			observed->logits[i] = logits->data ? logits : NULL;
		if (status == PRONY_OK && stage != STAGE_FORWARD)
			status = team_read_loss(team, &observed->loss[i], err);
	}
	if (status == PRONY_OK && launch->work->gate.expected[0].state.count > 0)
		status = read_state(team, stage == STAGE_FORWARD, arena, &observed->state, err);
	if (status == PRONY_OK)
		status = team_check_weights(team, err);
	/* The largest read comes last and is compared in place, in shared memory. */
	struct tensor_set *last = arena_alloc(arena, sizeof *last);
	if (status == PRONY_OK && stage == STAGE_FORWARD_BACKWARD) {
		status = team_read(team, "gradients", arena, last, err);
		observed->gradients = last;
	} else if (status == PRONY_OK && stage == STAGE_TRAIN) {
		status = team_read(team, "weights", arena, last, err);
		observed->weights = last;
	}
	return status;
}

/* Compares with the answers of both ways in which ranks can normalise; the better fit is taken as
 * the framework's own. */
static enum prony_status compare(struct workload *work, const struct gate_observed *observed,
				 struct gate_outcome *out, struct error *why)
{
	struct gate_verdict global = {.passed = false};
	struct error of_global = ERROR_INIT;
	enum prony_status status =
		gate_compare(&work->gate, &work->gate_graph, &work->gate_recipe, &work->gate_labels,
			     observed, &out->arena, &out->verdict, why);
	if (work->gate_global.expected_count == 0)
		return status;
	out->verdict.batch_statistics = "rank";
	graph_set_ranks(&work->gate_graph, 1);
	enum prony_status other =
		gate_compare(&work->gate_global, &work->gate_graph, &work->gate_recipe,
			     &work->gate_labels, observed, &out->arena, &global, &of_global);
	graph_set_ranks(&work->gate_graph, work->ranks);
	if (!(global.worst_ratio < out->verdict.worst_ratio))
		return status;
	out->verdict = global;
	out->verdict.batch_statistics = "global";
	*why = of_global;
	return other;
}

static enum prony_status gate_process(const struct launch *launch, struct team *team,
				      struct gate_outcome *out, struct error *why)
{
	struct workload *work = launch->work;
	struct worker_facts facts = {0};
	struct arena arena;
	arena_init(&arena, 0);
	enum prony_status status = team_launch(team, launch, 16, INPUT_RESIDENT, why);
	if (status == PRONY_OK)
		status = team_prepare(team, launch, &work->gate_recipe, &facts, why);
	struct gate_observed observed = {.parameters = facts.parameters,
					 .macs = facts.macs < 0 ? -1 : facts.macs * work->ranks};
	if (status == PRONY_OK)
		status = observe(launch, team, &arena, &observed, why);
	out->compared = status == PRONY_OK;
	if (out->compared)
		status = compare(work, &observed, out, why);
	out->framework = json_incref(facts.details);
	worker_facts_release(&facts);
	arena_release(&arena);
	return status;
}

enum prony_status gate_process_run(const struct launch *launch, struct gate_outcome *out,
				   struct error *err)
{
	struct error why = ERROR_INIT;
	struct team team = {.count = 0};
	struct client_end end = {0};
	*out = (struct gate_outcome){.status = CELL_OK};
	arena_init(&out->arena, 0);
	launch_event(launch, EVENT_GATE_START, NULL);
	enum prony_status status = gate_process(launch, &team, out, &why);
	team_end(&team, &end);
	out->log = end.log;
	if (status == PRONY_INTERRUPTED)
		return error_set(err, PRONY_INTERRUPTED, "interrupted");
	if (status != PRONY_OK)
		out->status = cell_status_from(status);
	snprintf(out->reason, sizeof out->reason, "%s", why.text);
	return PRONY_OK;
}

void gate_outcome_release(struct gate_outcome *outcome)
{
	json_decref(outcome->framework);
	json_decref(outcome->equal_maxima);
	free(outcome->log);
	arena_release(&outcome->arena);
}

json_t *gate_outcome_evidence(const struct gate_outcome *outcome)
{
	if (!outcome->compared)
		return json_pack("{s:b, s:s}", "passed", 0, "error", outcome->reason);
	json_t *evidence = gate_verdict_to_json(&outcome->verdict);
	if (outcome->equal_maxima)
		json_object_set(evidence, "equal_maxima", outcome->equal_maxima);
	if (outcome->framework)
		json_object_set(evidence, "framework", outcome->framework);
	return evidence;
}

unsigned gate_flags(enum cell_status verdict, const json_t *evidence)
{
	if (verdict != CELL_OK)
		return 0;
	return (json_object_get(evidence, "agreement") ? CELL_FLAG_AGREEMENT : 0) |
	       (json_object_get(evidence, "equal_maxima") ? CELL_FLAG_EQUAL_MAXIMA : 0) |
	       (json_object_get(evidence, "coarse") ? CELL_FLAG_COARSE_GATE : 0);
}
