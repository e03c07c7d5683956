/* Gives the adapter its work: a graph, or a model file run unchanged. */
#include <inttypes.h>
#include <string.h>

#include "adapters/reasons.h"
#include "base/json.h"
#include "worker/verbs_internal.h"

static enum prony_status supports_file(const struct worker *w, struct error *why)
{
	const struct recipe *recipe = &w->bundle.recipe;
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	if (!w->adapter->files)
		reasons_add(&reasons, "%s does not read ONNX files", w->adapter->name);
	if (recipe->stage != STAGE_FORWARD)
		reasons_add(&reasons, "stage %s: unchanged model files only run forward",
			    stage_name(recipe->stage));
	reasons_add_recipe(&reasons, recipe, w->probe.precisions);
	return reasons_finish(&reasons, why);
}

/* Whether the stage load is supported, in which batches arrive and no network runs. */
static enum prony_status supports_load(const struct worker *w, struct error *why)
{
	if (w->bundle.has_data)
		return PRONY_OK;
	if (!(w->probe.stages & 1u << STAGE_LOAD))
		return error_set(why, PRONY_UNSUPPORTED, "stage load is not supported");
	if (w->bundle.recipe.input != INPUT_STREAM)
		return error_set(why, PRONY_UNSUPPORTED, "stage load: input %s reads no data",
				 input_mode_name(w->bundle.recipe.input));
	return PRONY_OK;
}

enum prony_status verbs_supports(const struct worker *w, struct error *why)
{
	if (w->bundle.is_model)
		return supports_file(w, why);
	enum prony_status status =
		w->bundle.recipe.stage == STAGE_LOAD
			? supports_load(w, why)
			: w->adapter->supports(&w->session.target, &w->bundle.graph,
					       &w->bundle.recipe, why);
	if (status != PRONY_OK || !w->bundle.has_data)
		return status;
	if (!w->adapter->loader)
		return error_set(why, PRONY_UNSUPPORTED,
				 "input native: prony uses no data loader of this framework");
	return w->adapter->loader->supports(&w->bundle.data, &w->bundle.graph, &w->bundle.recipe,
					    why);
}

static enum prony_status start_loader(struct worker *w, struct error *err)
{
	const struct bundle *bundle = &w->bundle;
	const struct adapter_loader *loader = w->adapter->loader;

	if (!loader)
		return error_set(err, PRONY_UNSUPPORTED, "input native: there is no data loader");
	w->own.only_load = bundle->recipe.stage == STAGE_LOAD;
	return loader->open(&w->session, &bundle->data, &bundle->graph, &bundle->recipe, err);
}

enum prony_status verbs_build(struct worker *w, struct built *built, struct error *err)
{
	const struct bundle *bundle = &w->bundle;

	enum prony_status status = PRONY_OK;
	w->session.weights_file = &bundle->weights_map;
	if (!bundle->is_model) {
		if (bundle->recipe.stage != STAGE_LOAD)
			status = w->adapter->build(&w->session, &w->bundle.graph, &bundle->recipe,
						   &bundle->weights, built, err);
		return status == PRONY_OK && bundle->has_data ? start_loader(w, err) : status;
	}
	status = supports_file(w, err);
	return status == PRONY_OK ? w->adapter->files->build(&w->session, &bundle->model,
							     &bundle->recipe, built, err)
				  : status;
}

enum prony_status verbs_feed(struct worker *w, int slot, int64_t batch, struct error *err)
{
	const struct bundle *bundle = &w->bundle;

	if (bundle->is_model)
		return w->adapter->files->feed(
			&w->session, slot,
			&bundle->inputs.tensors[(size_t)batch * bundle->model.inputs.count], err);
	return w->adapter->feed(
		&w->session, slot,
		batch_at(&bundle->graph, &bundle->inputs, &bundle->labels, (size_t)batch), err);
}

/* Their shapes are known only now, so they are copied. */
enum prony_status verbs_read_outputs(struct worker *w, struct arena *arena, void **image,
				     size_t *bytes, struct error *err)
{
	struct tensor_set outputs = {.count = 0}, copies;
	enum prony_status status = w->adapter->sync(&w->session, err);

	if (status == PRONY_OK)
		status = w->adapter->files->outputs(&w->session, arena, &outputs, err);
	status = verbs_adapter_result(w, status, "read", err);
	if (status != PRONY_OK)
		return status;
	copies.count = outputs.count;
	copies.tensors = arena_array(arena, outputs.count + 1, sizeof(struct tensor));
	memcpy(copies.tensors, outputs.tensors, outputs.count * sizeof(struct tensor));
	status = results_lay_out(&w->results, arena, &copies, image, bytes, err);
	for (size_t i = 0; status == PRONY_OK && i < outputs.count; i++)
		memcpy(copies.tensors[i].data, outputs.tensors[i].data,
		       (size_t)tensor_bytes(&outputs.tensors[i]));
	return status;
}

enum prony_status verbs_get_index(const json_t *request, const char *key, int64_t limit,
				  int64_t *out, struct error *err)
{
	int64_t value;
	enum prony_status status = json_get_int(request, key, &value, err);

	if (status != PRONY_OK)
		return status;
	if (value < 0 || value >= limit)
		return error_set(err, PRONY_PROTOCOL, "%s is %" PRId64 "; it must be 0 to %" PRId64,
				 key, value, limit - 1);
	*out = value;
	return PRONY_OK;
}

/* Checks that every slot that the steps will use holds a batch. */
static enum prony_status check_fed(const struct worker *w, const struct loop_plan *plan,
				   struct error *err)
{
	for (int64_t i = 0; !plan->ring && !plan->own && i < plan->steps && i < plan->slots; i++) {
		int slot = (int)((plan->slot + i) % plan->slots);

		if (!w->fed[slot])
			return error_set(err, PRONY_PROTOCOL, "slot %d was never fed", slot);
	}
	return PRONY_OK;
}

enum prony_status verbs_parse_steps(struct worker *w, const json_t *request, struct loop_plan *plan,
				    struct error *err)
{
	int64_t slot = 0;
	enum prony_status status = json_get_int(request, "steps", &plan->steps, err);

	if (status == PRONY_OK)
		status = verbs_get_index(request, "slot", w->bundle.recipe.slots, &slot, err);
	if (status != PRONY_OK)
		return status;
	if (plan->steps < 1)
		return error_set(err, PRONY_PROTOCOL, "steps must be at least 1, not %" PRId64,
				 plan->steps);
	plan->slot = (int)slot;
	plan->slots = w->bundle.recipe.slots;
	plan->ring = w->bundle.recipe.input == INPUT_STREAM ? &w->ring : NULL;
	plan->own = w->bundle.has_data ? &w->own : NULL;
	return check_fed(w, plan, err);
}
