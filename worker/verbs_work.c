/* What the adapter is given to do: a graph, or a user's file as it is. */
#include <string.h>

#include "adapters/reasons.h"
#include "worker/verbs_internal.h"

static enum prony_status supports_file(const struct worker *w, struct error *why)
{
	const struct recipe *recipe = &w->bundle.recipe;
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	if (!w->adapter->files)
		reasons_add(&reasons, "%s reads no ONNX files", w->adapter->name);
	if (recipe->stage != STAGE_FORWARD)
		reasons_add(&reasons, "stage %s: a file as it is runs forward only",
			    stage_name(recipe->stage));
	reasons_add_recipe(&reasons, recipe, w->probe.precisions);
	return reasons_finish(&reasons, why);
}

/* Nothing of the network runs: batches arrive, and that is all. */
static enum prony_status supports_load(const struct worker *w, struct error *why)
{
	if (!(w->probe.stages & 1u << STAGE_LOAD))
		return error_set(why, PRONY_UNSUPPORTED, "stage load");
	if (w->bundle.recipe.input != INPUT_STREAM)
		return error_set(why, PRONY_UNSUPPORTED, "stage load: input %s loads nothing",
				 input_mode_name(w->bundle.recipe.input));
	return PRONY_OK;
}

enum prony_status verbs_supports(const struct worker *w, struct error *why)
{
	if (w->bundle.is_model)
		return supports_file(w, why);
	if (w->bundle.recipe.stage == STAGE_LOAD)
		return supports_load(w, why);
	return w->adapter->supports(&w->bundle.graph, &w->bundle.recipe, why);
}

enum prony_status verbs_build(struct worker *w, struct built *built, struct error *err)
{
	const struct bundle *bundle = &w->bundle;

	if (bundle->recipe.stage == STAGE_LOAD)
		return PRONY_OK;
	if (!bundle->is_model)
		return w->adapter->build(&w->session, &w->bundle.graph, &bundle->recipe,
					 &bundle->weights, built, err);
	enum prony_status status = supports_file(w, err);
	return status == PRONY_OK ? w->adapter->files->build(&w->session, &bundle->model,
							     &bundle->recipe, built, err)
				  : status;
}

enum prony_status verbs_feed(struct worker *w, int slot, int64_t batch, struct error *err)
{
	const struct bundle *bundle = &w->bundle;
	const struct tensor *labels = NULL;

	if (bundle->is_model)
		return w->adapter->files->feed(
			&w->session, slot,
			&bundle->inputs.tensors[(size_t)batch * bundle->model.inputs.count], err);
	if ((size_t)batch < bundle->labels.count)
		labels = &bundle->labels.tensors[batch];
	return w->adapter->feed(&w->session, slot, &bundle->inputs.tensors[batch], labels, err);
}

/* Their shapes are known only now, so that they are copied. */
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
