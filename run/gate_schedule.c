/* Runs the gates of a run's cells and reports their verdicts. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "run/schedule_internal.h"

/* Reports a verdict with this evidence, and adds the number of tokens per sample and what a
 * decode step reads. If a gate is
 * repeated, its first flags are cleared. */
static enum prony_status report_gate(struct schedule *s, const struct run_event *event,
				     json_t *evidence, struct error *err)
{
	size_t cell = event->cell;
	const struct network *network = s->plan->cells[cell].network;
	int64_t tokens = network->stage == STAGE_DECODE ? 1 : network->tokens;

	if (tokens > 0)
		json_object_set_new(evidence, "tokens", json_integer(tokens));
	if (s->plan->cells[cell].network->tokens_max > 0)
		json_object_set_new(evidence, "sample_macs",
				    json_integer(s->plan->cells[cell].network->macs));
	if (network->weights_read > 0) {
		json_object_set_new(evidence, "weights_read", json_integer(network->weights_read));
		json_object_set_new(evidence, "caches_read", json_integer(network->caches_read));
	}
	s->cells[cell].flags = (s->cells[cell].flags & ~(unsigned)GATE_FLAGS) |
			       gate_flags(event->status, evidence);
	return run_emit(s->caller, event, err);
}

/* Takes over the verdict of an earlier run; *kept: whether there was one. */
static enum prony_status take_kept(struct schedule *s, size_t cell, const char *key, bool *kept,
				   struct error *err)
{
	struct kept_gate gate;
	/* With --keep-bundle the gate runs, so that its bundle is kept too. */
	*kept = !s->settings->repeat_gates && !s->settings->keep_bundle &&
		gate_cache_read(&s->gates, key, &gate);
	if (!*kept)
		return PRONY_OK;
	const struct run_event event = {.kind = EVENT_GATE_KEPT,
					.cell = cell,
					.text = json_string_or(gate.evidence, "cached", ""),
					.status = CELL_OK,
					.details = gate.evidence,
					.log = gate.log};
	s->cells[cell].gate_done = s->cells[cell].gate_kept = true;
	enum prony_status status = report_gate(s, &event, gate.evidence, err);
	if (status == PRONY_OK)
		status = emit_framework(s->caller, cell,
					json_object_get(gate.evidence, "framework"), err);
	kept_gate_release(&gate);
	return status;
}

/* Reports the outcome of a gate, and ends the cell unless it passed. */
static enum prony_status take_outcome(struct schedule *s, size_t cell,
				      const struct gate_outcome *outcome, struct error *err)
{
	json_t *evidence = gate_outcome_evidence(outcome);
	const struct run_event event = {.kind = EVENT_GATE_END,
					.cell = cell,
					.status = outcome->status,
					.details = evidence,
					.log = outcome->log ? outcome->log : ""};
	s->cells[cell].gate_done = true;
	s->cells[cell].gate_kept = false;
	enum prony_status status = report_gate(s, &event, evidence, err);
	json_decref(evidence);
	if (status == PRONY_OK && outcome->compared)
		status = emit_framework(s->caller, cell, outcome->framework, err);
	if (status != PRONY_OK)
		return status;
	return outcome->status == CELL_OK
		       ? PRONY_OK
		       : schedule_end_cell(s, cell, outcome->status, outcome->reason, err);
}

static enum prony_status try_gate(struct schedule *s, size_t cell, const struct launch *launch,
				  struct gate_outcome *out, struct error *err)
{
	for (int failures = 1;; failures++) {
		enum prony_status status = gate_process_run(launch, out, err);
		if (status != PRONY_OK || failures == FAILURES_MAX ||
		    !schedule_is_accident(out->status))
			return status;
		schedule_say(s, EVENT_GATE_AGAIN, cell, 0, out->reason);
		gate_outcome_release(out);
	}
}

/* Runs the second gate after a mismatch that a rule of the framework's gradients may explain. */
static enum prony_status run_second_gate(struct schedule *s, size_t cell,
					 const struct launch *first, struct second_gate *second,
					 struct gate_outcome *outcome, struct error *err)
{
	struct launch launch;
	struct gate_outcome again = {.status = CELL_PENDING};
	enum prony_status status = second_gate_init(s, first, second, &launch, err);
	if (status == PRONY_OK)
		status = try_gate(s, cell, &launch, &again, err);
	if (status == PRONY_OK && again.compared)
		second_gate_take(outcome, &again);
	else
		gate_outcome_release(&again);
	return status;
}

/* `key`: the key under which a pass is kept; NULL: it is not kept. */
static enum prony_status run_gate(struct schedule *s, size_t cell, const char *key,
				  struct error *err)
{
	struct launch launch;
	struct gate_outcome outcome = {.status = CELL_PENDING};
	struct second_gate second = {.folder = NULL};
	char *folder = NULL;
	enum prony_status status =
		workload_need_gate(s->cells[cell].work, &s->plan->cells[cell], s->settings->seed,
				   schedule_control(s, cell), err);
	if (status == PRONY_OK)
		status = schedule_launch(s, cell, true, 0, &launch, &folder, err);
	if (status == PRONY_OK)
		status = try_gate(s, cell, &launch, &outcome, err);
	if (status == PRONY_OK && second_gate_may_help(&launch, &outcome))
		status = run_second_gate(s, cell, &launch, &second, &outcome, err);
	if (status == PRONY_OK && key)
		gate_cache_write(&s->gates, key, &outcome);
	if (status == PRONY_OK)
		status = take_outcome(s, cell, &outcome, err);
	gate_outcome_release(&outcome);
	second_gate_release(&second, s->settings->keep_bundle);
	if (folder && !s->settings->keep_bundle)
		directory_remove(folder, NULL);
	free(folder);
	return status;
}

/* `anew`: ignores a kept verdict. */
static enum prony_status gate_cell(struct schedule *s, size_t cell, bool anew, struct error *err)
{
	const struct plan_cell *planned = &s->plan->cells[cell];
	char key[DIGEST_HEX_BYTES];
	bool keepable = false, kept = false;
	schedule_say(s, EVENT_PREPARE, cell, 0, NULL);
	enum prony_status status = schedule_need_work(s, cell, err);
	if (status == PRONY_OK)
		status = workload_need_gate_case(s->cells[cell].work, planned, s->settings->seed,
						 err);
	if (status == PRONY_OK)
		keepable = gate_cache_key(&s->gates, planned, s->cells[cell].work, key);
	if (status == PRONY_OK && keepable && !anew)
		status = take_kept(s, cell, key, &kept, err);
	if (status == PRONY_OK && !kept)
		status = run_gate(s, cell, keepable ? key : NULL, err);
	return status;
}

enum prony_status schedule_doubt_kept(struct schedule *s, size_t cell, const json_t *details,
				      bool *doubted, struct error *err)
{
	struct kept_gate gate;
	char key[DIGEST_HEX_BYTES];
	*doubted = false;
	/* A process that ended before its hello has no description. */
	if (!s->cells[cell].gate_kept || !json_object_get(details, "name"))
		return PRONY_OK;
	enum prony_status status = workload_need_gate_case(
		s->cells[cell].work, &s->plan->cells[cell], s->settings->seed, err);
	if (status != PRONY_OK)
		return status;
	*doubted = !gate_cache_key(&s->gates, &s->plan->cells[cell], s->cells[cell].work, key) ||
		   !gate_cache_read(&s->gates, key, &gate);
	if (!*doubted) {
		*doubted = !gate_cache_agrees(gate.evidence, details);
		kept_gate_release(&gate);
	}
	s->cells[cell].gate_kept = false;
	return *doubted ? gate_cell(s, cell, true, err) : PRONY_OK;
}

/* Frees the reference's answers after their last cell; the answers of all networks would not fit
 * into memory. */
static void drop_gate_after(struct schedule *s, size_t done)
{
	char key[CELL_KEY_BYTES];
	if (!s->cells[done].work)
		return;
	for (size_t cell = 0; cell < s->plan->count; cell++) {
		workload_key(&s->plan->cells[cell], key);
		if (s->cells[cell].status == CELL_PENDING && !s->cells[cell].gate_done &&
		    !s->plan->cells[cell].ungated && !strcmp(s->cells[done].work->key, key))
			return;
	}
	workload_drop_gate(s->cells[done].work);
}

/* Ends a cell if only its gate was requested. */
static enum prony_status end_untimed(struct schedule *s, size_t cell, struct error *err)
{
	if (s->plan->cells[cell].ungated)
		return schedule_end_cell(s, cell, CELL_UNSUPPORTED,
					 "it computes nothing, so there is nothing to check", err);
	s->cells[cell].flags |= CELL_FLAG_GATE_ONLY;
	return schedule_end_cell(s, cell, CELL_OK, "", err);
}

static enum prony_status gate_or_end(struct schedule *s, size_t cell, struct error *err)
{
	enum run_choice choice;
	enum prony_status status = schedule_decide(s, cell, &choice, err);
	return status == PRONY_OK && choice <= RUN_LATER ? gate_cell(s, cell, false, err) : status;
}

enum prony_status schedule_gate(struct schedule *s, size_t cell, struct error *err)
{
	const struct run_cell *state = &s->cells[cell];
	enum prony_status status = PRONY_OK;
	if (state->status != CELL_PENDING)
		return PRONY_OK;
	if (!state->gate_done && !s->plan->cells[cell].ungated) {
		status = schedule_may_start(s, err);
		if (status == PRONY_OK)
			status = gate_or_end(s, cell, err);
		status = schedule_end_broken(s, cell, status, err);
		drop_gate_after(s, cell);
	}
	if (status == PRONY_OK && s->settings->gate_only && state->status == CELL_PENDING &&
	    (state->gate_done || s->plan->cells[cell].ungated))
		status = end_untimed(s, cell, err);
	return status;
}
