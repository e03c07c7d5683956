/* The gate of model files that no graph expresses. They have no reference, so their engines are
 * compared with each other: each runs in its own process on the same inputs, then is judged against
 * the engines of other names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parity/agreement.h"
#include "parity/gate.h"
#include "run/model_work.h"
#include "run/schedule_internal.h"

/* The result of one cell. */
struct witness {
	size_t cell;
	enum cell_status status; /* CELL_OK: it ran */
	char reason[ERROR_TEXT_BYTES];
	struct tensor_set outputs[MODEL_BATCHES];
	struct tensor_set changes; /* of a quantised file; else empty */
	json_t *framework;
	char *log;
	struct arena arena;
};

static const char *name_of(const struct schedule *s, const struct witness *witness)
{
	return s->plan->cells[witness->cell].cell.name;
}

/* Runs the batch of one slot. */
static enum prony_status observe_slot(struct team *team, int slot, struct arena *arena,
				      struct tensor_set *outputs, struct error *why)
{
	struct client_window window;
	enum prony_status status = team_run(team, 1, SYNC_END, 1, slot, 0, &window, why);
	if (status == PRONY_OK)
		status = team_read_kept(team, "outputs", arena, outputs, why);
	if (status == PRONY_OK && !agreement_is_finite(outputs))
		status = error_set(why, PRONY_INVALID, "an output is not finite");
	return status;
}

/* An F64 scalar, 0, for each output. */
static void start_changes(const struct tensor_set *outputs, struct arena *arena,
			  struct tensor_set *changes)
{
	changes->tensors = arena_array(arena, outputs->count, sizeof(struct tensor));
	for (changes->count = 0; changes->count < outputs->count; changes->count++)
		changes->tensors[changes->count] =
			(struct tensor){arena_strdup(arena, outputs->tensors[changes->count].name),
					DTYPE_F64,
					{0},
					arena_array(arena, 1, sizeof(double))};
}

static enum prony_status observe(const struct launch *launch, struct team *team,
				 struct witness *out, struct error *why)
{
	int slots =
		model_work_is_quantised(launch->cell) ? launch->cell->recipe.slots : MODEL_BATCHES;
	enum prony_status status = PRONY_OK;
	launch_event(launch, EVENT_STAGE, "agreement");
	for (int i = 0; i < slots && status == PRONY_OK; i++) {
		struct tensor_set noisy, *outputs = i < MODEL_BATCHES ? &out->outputs[i] : &noisy;
		status = observe_slot(team, i, &out->arena, outputs, why);
		if (status != PRONY_OK || i < MODEL_BATCHES)
			continue;
		if (i == MODEL_BATCHES)
			start_changes(&noisy, &out->arena, &out->changes);
		agreement_note_changes(&noisy, &out->outputs[i % MODEL_BATCHES], &out->changes);
	}
	return status;
}

/* Runs one cell. The return value is an error only if the harness failed. */
static enum prony_status witness(struct schedule *s, struct witness *out, struct error *err)
{
	struct error why = ERROR_INIT;
	struct worker_facts facts = {0};
	struct client_end end = {0};
	struct team team = {.count = 0};
	struct launch launch;
	char *folder = NULL;
	enum prony_status status = schedule_launch(s, out->cell, false, 0, &launch, &folder, err);
	if (status != PRONY_OK) {
		free(folder);
		return status;
	}
	launch_event(&launch, EVENT_GATE_START, NULL);
	status = team_launch(&team, &launch, 16, INPUT_RESIDENT, &why);
	if (status == PRONY_OK)
		status = team_prepare(&team, &launch, &launch.cell->recipe, &facts, &why);
	if (status == PRONY_OK)
		status = observe(&launch, &team, out, &why);
	team_end(&team, &end);
	out->log = end.log;
	out->framework = json_incref(facts.details);
	worker_facts_release(&facts);
	free(folder);
	if (status == PRONY_INTERRUPTED)
		return error_set(err, PRONY_INTERRUPTED, "interrupted");
	out->status = status == PRONY_OK ? CELL_OK : cell_status_from(status);
	snprintf(out->reason, sizeof out->reason, "%s", why.text);
	return PRONY_OK;
}

/* The changes of a file's outputs are the largest of all engines, because a single one may not meet
 * a step of the last quantiser in so few batches. */
static void settle_changes(struct workload *work, const struct witness *all, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		const struct tensor_set *own = &all[k].changes;
		if (all[k].status != CELL_OK || own->count == 0)
			continue;
		if (work->changes.count == 0)
			start_changes(own, &work->arena, &work->changes);
		for (size_t i = 0; i < work->changes.count; i++) {
			double *change = work->changes.tensors[i].data;
			const struct tensor *found =
				tensor_find(own, work->changes.tensors[i].name);
			if (found)
				*change = fmax(*change, *(const double *)found->data);
		}
	}
}

static struct agreement compare(const struct witness *a, const struct witness *b,
				const struct tensor_set *changes)
{
	struct agreement worst = {.output = "", .bound = AGREEMENT_BOUND, .agrees = true};
	for (int i = 0; i < MODEL_BATCHES; i++) {
		struct agreement found = agreement_of(&a->outputs[i], &b->outputs[i], changes);
		if (i == 0 || found.value / found.bound > worst.value / worst.bound)
			worst = found;
	}
	return worst;
}

static json_t *figure(const char *with, const struct agreement *found)
{
	return json_pack("{s:s, s:s, s:o, s:f, s:b}", "with", with, "output", found->output,
			 "value", isfinite(found->value) ? json_real(found->value) : json_null(),
			 "bound", found->bound, "agrees", found->agrees);
}

/* Returns the worst figure in the format of a gate's evidence, for reports. */
static json_t *worst_figure(const char *against, const struct agreement *found)
{
	char what[CELL_WORD_BYTES + 32];
	snprintf(what, sizeof what, "agreement with %s", against);
	return json_pack("{s:s, s:s, s:o, s:f}", "what", what, "tensor", found->output, "value",
			 isfinite(found->value) ? json_real(found->value) : json_null(), "bound",
			 found->bound);
}

/* Whether an earlier witness has the same name as witness i. */
static bool seen_name(const struct schedule *s, const struct witness *all, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (all[k].status == CELL_OK &&
		    strcmp(name_of(s, &all[k]), name_of(s, &all[i])) == 0)
			return true;
	return false;
}

/* Returns the best agreement of `one` with any variant of engine `name`. */
static struct agreement with_engine(const struct schedule *s, const struct witness *all,
				    size_t count, const char *name, const struct witness *one)
{
	struct agreement best = {.output = "", .value = INFINITY, .bound = AGREEMENT_BOUND};
	for (size_t k = 0; k < count; k++) {
		if (all[k].status != CELL_OK || strcmp(name_of(s, &all[k]), name) != 0)
			continue;
		struct agreement found = compare(one, &all[k], &s->cells[one->cell].work->changes);
		if (!best.output[0] || found.value / found.bound < best.value / best.bound)
			best = found;
	}
	return best;
}

/* Judges a witness by the number of engines that agree with it; the variants of one engine count as
 * one. Of two engines both must agree; of more, an engine must be in the majority. *evidence: new
 * reference. */
static enum cell_status judge(const struct schedule *s, const struct witness *all, size_t count,
			      struct witness *one, json_t **evidence)
{
	struct agreement worst = {.output = "", .bound = AGREEMENT_BOUND};
	const char *against = NULL;
	size_t others = 0, agreeing = 0;
	json_t *rows = json_array();
	for (size_t k = 0; k < count; k++) {
		const char *name = name_of(s, &all[k]);
		if (all[k].status != CELL_OK || strcmp(name, name_of(s, one)) == 0 ||
		    seen_name(s, all, k))
			continue;
		struct agreement found = with_engine(s, all, count, name, one);
		others++;
		agreeing += found.agrees;
		json_array_append_new(rows, figure(name, &found));
		if (!against || found.value / found.bound > worst.value / worst.bound) {
			worst = found;
			against = name;
		}
	}
	bool good = others > 0 && 2 * (1 + agreeing) > 1 + others;
	*evidence = json_pack("{s:b, s:o}", "passed", good, "agreement", rows);
	if (against)
		json_object_set_new(*evidence, "worst", worst_figure(against, &worst));
	if (one->framework)
		json_object_set(*evidence, "framework", one->framework);
	if (good)
		return CELL_OK;
	if (others == 0) {
		snprintf(one->reason, sizeof one->reason,
			 "prony cannot compute this file itself, and no other engine ran it for "
			 "comparison: add one (-f onnxruntime,openvino)");
		return CELL_UNPROVEN;
	}
	snprintf(one->reason, sizeof one->reason,
		 "output %s differs by %.3g from that of %s (allowed: %.3g), and no majority shows "
		 "which is right",
		 worst.output, worst.value, against, worst.bound);
	return CELL_MISMATCH;
}

static enum prony_status settle(struct schedule *s, const struct witness *all, size_t count,
				struct witness *one, struct error *err)
{
	json_t *evidence = NULL;
	struct run_cell *state = &s->cells[one->cell];
	enum cell_status verdict = one->status;
	if (verdict == CELL_OK)
		verdict = judge(s, all, count, one, &evidence);
	else
		evidence = json_pack("{s:b, s:s}", "passed", 0, "error", one->reason);
	const struct run_event event = {.kind = EVENT_GATE_END,
					.cell = one->cell,
					.status = verdict,
					.details = evidence,
					.log = one->log ? one->log : ""};
	state->flags |= gate_flags(verdict, evidence);
	state->gate_done = true;
	enum prony_status status = run_emit(s->caller, &event, err);
	json_decref(evidence);
	if (status == PRONY_OK)
		status = emit_framework(s->caller, one->cell, one->framework, err);
	if (status != PRONY_OK)
		return status;
	return verdict == CELL_OK ? PRONY_OK
				  : schedule_end_cell(s, one->cell, verdict, one->reason, err);
}

/* Keeps the outputs with which the first step of the timed processes is compared. */
static void keep_outputs(struct workload *work, const struct tensor_set *outputs)
{
	work->outputs.count = outputs->count;
	work->outputs.tensors = arena_array(&work->arena, outputs->count, sizeof(struct tensor));
	for (size_t i = 0; i < outputs->count; i++) {
		const struct tensor *from = &outputs->tensors[i];
		struct tensor *to = &work->outputs.tensors[i];
		if (tensor_new(&work->arena, arena_strdup(&work->arena, from->name), from->dtype,
			       &from->shape, to, NULL) == PRONY_OK)
			memcpy(to->data, from->data, (size_t)tensor_bytes(from));
	}
}

/* Judges all cells of one file, which were run independently. */
static enum prony_status agree_on(struct schedule *s, struct witness *all, size_t count,
				  struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		status = schedule_may_start(s, err);
		if (status == PRONY_OK)
			status = witness(s, &all[i], err);
	}
	if (count > 0)
		settle_changes(s->cells[all[0].cell].work, all, count);
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		struct workload *work = s->cells[all[i].cell].work;
		status = settle(s, all, count, &all[i], err);
		if (status == PRONY_OK && s->cells[all[i].cell].status == CELL_PENDING &&
		    work->outputs.count == 0)
			keep_outputs(work, &all[i].outputs[0]);
	}
	return status;
}

/* Collects the pending cells of a file. If one has not been judged, it collects all, because the
 * outputs of an earlier run are not kept. */
static size_t gather(const struct schedule *s, const struct workload *work, struct witness *all)
{
	size_t count = 0;
	bool open = false;
	for (size_t cell = 0; cell < s->plan->count; cell++) {
		if (s->cells[cell].work != work || s->cells[cell].status != CELL_PENDING)
			continue;
		open |= !s->cells[cell].gate_done;
		all[count] = (struct witness){.cell = cell};
		arena_init(&all[count++].arena, 0);
	}
	if (open)
		return count;
	for (size_t i = 0; i < count; i++)
		arena_release(&all[i].arena);
	return 0;
}

enum prony_status gate_agreement(struct schedule *s, struct error *err)
{
	struct witness *all = calloc(s->plan->count ? s->plan->count : 1, sizeof *all);
	enum prony_status status =
		all ? PRONY_OK : error_set(err, PRONY_NOMEM, "no memory for the cells of a file");
	for (size_t cell = 0; cell < s->plan->count && status == PRONY_OK; cell++)
		if (s->cells[cell].status == CELL_PENDING &&
		    network_is_as_it_is(s->plan->cells[cell].network))
			status = schedule_need_work(s, cell, err);
	for (size_t i = 0; i < s->work_count && status == PRONY_OK; i++) {
		if (!s->works[i]->is_model)
			continue;
		size_t count = gather(s, s->works[i], all);
		status = agree_on(s, all, count, err);
		for (size_t k = 0; k < count; k++) {
			json_decref(all[k].framework);
			free(all[k].log);
			arena_release(&all[k].arena);
		}
	}
	free(all);
	return status;
}
