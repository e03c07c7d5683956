/* The second gate, for frameworks with another rule for the gradient of equal maxima. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "run/schedule_internal.h"

#define DRAWS 8

/*
 * Returns the reported rule for the gradient of equal maxima, if it differs from prony's; else "".
 */
static const char *rule_of(const struct gate_outcome *outcome)
{
	const char *rule =
		json_string_or(json_object_get(outcome->framework, "settings"), "equal_maxima", "");
	return strcmp(rule, "first") ? rule : "";
}

/* Whether everything before the first gradient is right; a rule of gradients cannot explain errors
 * there. */
static bool first_pass_is_right(const struct gate_verdict *verdict)
{
	for (size_t i = 0; i < verdict->count; i++)
		if (verdict->checks[i].step == 0 && !verdict->checks[i].passed)
			return false;
	return true;
}

static bool has_max_pool(const struct graph *graph)
{
	for (int i = 0; i < graph->node_count; i++)
		if (graph->nodes[i].op == OP_MAX_POOL)
			return true;
	return false;
}

bool second_gate_may_help(const struct launch *launch, const struct gate_outcome *outcome)
{
	const struct plan_cell *planned = launch->cell;
	return outcome->status == CELL_MISMATCH && outcome->compared && *rule_of(outcome) &&
	       planned->recipe.stage != STAGE_FORWARD && has_max_pool(&launch->work->graph) &&
	       first_pass_is_right(&outcome->verdict) && planned->cell.input != INPUT_SYNTHETIC &&
	       planned->dataset != dataset_find("synthetic");
}

/* Whether maxima are so nearly equal that the reference computes both choices. The framework's
 * float32 may see them as equal, which matches neither answer. */
static bool has_near_ties(const struct workload *work)
{
	const struct recipe *recipe = &work->gate_recipe;
	bool places = recipe->stage == STAGE_TRAIN && recipe->optimiser == OPTIMISER_RMSPROP;
	return work->gate.expected_count > (places ? 2 : 1);
}

/* Computes the answers on random pixels, drawn again until no maxima are nearly equal; uses the
 * last draw. */
static enum prony_status draw(struct schedule *s, const struct launch *first,
			      struct second_gate *second, struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (uint64_t seed = s->settings->seed; status == PRONY_OK; seed++) {
		status = workload_init(&second->work, &second->cell, seed, err);
		second->work.reference_bytes = first->work->reference_bytes;
		second->work.answers = first->work->answers;
		if (status == PRONY_OK)
			status = workload_need_gate(&second->work, &second->cell, seed,
						    schedule_control(s, first->index), err);
		if (status != PRONY_OK || seed == s->settings->seed + DRAWS - 1 ||
		    !has_near_ties(&second->work))
			break;
		workload_release(&second->work);
		second->work = (struct workload){.answers = NULL};
	}
	return status;
}

enum prony_status second_gate_init(struct schedule *s, const struct launch *first,
				   struct second_gate *second, struct launch *launch,
				   struct error *err)
{
	schedule_say(s, EVENT_GATE_AGAIN, first->index, 0,
		     "its max-pool handles equal maxima differently; repeating the check on pixels "
		     "without equal values");
	second->cell = *first->cell;
	second->cell.cell.input = INPUT_SYNTHETIC;
	if (second->cell.recipe.batch > GATE_BATCH_MIN)
		second->cell.recipe.batch = GATE_BATCH_MIN;
	if (asprintf(&second->folder, "%s-untied", first->folder) < 0) {
		second->folder = NULL;
		return error_set(err, PRONY_NOMEM, "no memory for a path");
	}
	enum prony_status status = draw(s, first, second, err);
	if (status == PRONY_OK)
		status = workload_write_bundle(&second->work, &second->cell, true, second->folder,
					       err);
	*launch = *first;
	launch->cell = &second->cell;
	launch->work = &second->work;
	launch->folder = second->folder;
	return status;
}

void second_gate_take(struct gate_outcome *outcome, struct gate_outcome *again)
{
	json_t *worst = gate_check_to_json(&outcome->verdict.checks[outcome->verdict.worst]);
	again->equal_maxima = json_pack("{s:s, s:o}", "rule", rule_of(outcome), "data", worst);
	gate_outcome_release(outcome);
	*outcome = *again;
}

void second_gate_release(struct second_gate *second, bool keep_bundle)
{
	workload_release(&second->work);
	if (second->folder && !keep_bundle)
		directory_remove(second->folder, NULL);
	free(second->folder);
}
