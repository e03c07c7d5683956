/* Profiles with OpenVINO's own counters: the model is compiled a second time with PERF_COUNT. The
 * CPU plug-in then keeps per node the total time of all runs in whole microseconds and their
 * number, and reports the truncated mean. The difference between the reports after and before the
 * steps gives the mean of the steps. */
#include "adapters/openvino/openvino_profile.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/openvino/openvino_names.h"
#include "base/strbuf.h"

/* Runs of the second network before profiling: the first run touches its memory. */
enum { WARM_RUNS = 1 };

enum prony_status ov_profile_keep(struct ov_state *ov, const void *model, size_t length,
				  const struct graph *graph, const struct recipe *recipe,
				  struct error *err)
{
	ov->profile.model = malloc(length ? length : 1);
	if (!ov->profile.model)
		return error_set(err, PRONY_NOMEM, "no memory for a copy of the model");
	memcpy(ov->profile.model, model, length);
	ov->profile.length = length;
	ov->profile.graph = graph;
	ov->profile.recipe = *recipe;
	return PRONY_OK;
}

/* Restores the network without counters. */
static void restore(struct ov_state *ov)
{
	struct ov_profile *profile = &ov->profile;

	if (!profile->plain)
		return;
	for (int i = 0; i < ov->slot_count; i++) {
		if (ov->slots[i].request)
			ov->api.ov_infer_request_free(ov->slots[i].request);
		ov->slots[i].request = profile->requests[i];
	}
	if (ov->compiled)
		ov->api.ov_compiled_model_free(ov->compiled);
	ov->compiled = profile->plain;
	profile->plain = NULL;
	free(profile->requests);
	profile->requests = NULL;
	free(profile->before);
	profile->before = NULL;
	ov_names_release(profile->names);
	profile->names = NULL;
}

void ov_profile_release(struct ov_state *ov)
{
	restore(ov);
	free(ov->profile.model);
	ov->profile = (struct ov_profile){.model = NULL};
}

/* A request over the slot's batch and logits. */
static enum prony_status fill_slot(struct ov_state *ov, struct ov_slot *slot, struct error *err)
{
	const struct ov_api *api = &ov->api;
	enum prony_status status = ov_check(
		api, api->ov_compiled_model_create_infer_request(ov->compiled, &slot->request),
		"create a request", err);

	for (size_t k = 0; status == PRONY_OK && k < ov->input_count; k++) {
		if (!slot->inputs[k]) /* never fed, so never stepped on */
			continue;
		status = ov_check(api,
				  ov->model ? api->ov_infer_request_set_tensor(
						      slot->request,
						      ov->model->inputs.tensors[k].name,
						      slot->inputs[k])
					    : api->ov_infer_request_set_input_tensor_by_index(
						      slot->request, k, slot->inputs[k]),
				  "set an input", err);
	}
	if (status == PRONY_OK && slot->output)
		status = ov_check(api,
				  api->ov_infer_request_set_output_tensor_by_index(slot->request, 0,
										   slot->output),
				  "set the output", err);
	return status == PRONY_OK ? ov_bind_caches(ov, slot->request, err) : status;
}

/* Replaces the first network by the second; `restore` undoes it, even half-done. */
static enum prony_status replace(struct ov_state *ov, struct error *err)
{
	struct ov_profile *profile = &ov->profile;

	profile->requests = calloc((size_t)ov->slot_count, sizeof(profile->requests[0]));
	if (!profile->requests)
		return error_set(err, PRONY_NOMEM, "no memory for %d requests", ov->slot_count);
	for (int i = 0; i < ov->slot_count; i++) {
		profile->requests[i] = ov->slots[i].request;
		ov->slots[i].request = NULL;
	}
	profile->plain = ov->compiled;
	ov->compiled = NULL;
	profile->counts = true;
	enum prony_status status =
		ov_compile(ov, profile->model, profile->length, &profile->recipe, err);
	profile->counts = false;
	for (int i = 0; status == PRONY_OK && i < ov->slot_count; i++)
		status = fill_slot(ov, &ov->slots[i], err);
	return status;
}

static enum prony_status ask(const struct ov_state *ov, struct ov_profiling_list *out,
			     struct error *err)
{
	return ov_check(
		&ov->api,
		ov->api.ov_infer_request_get_profiling_info(ov->slots[ov->last_slot].request, out),
		"get profiling info", err);
}

/* Records the nodes' times before the steps. */
static enum prony_status keep_before(struct ov_state *ov, struct error *err)
{
	struct ov_profile *profile = &ov->profile;
	struct ov_profiling_list list = {0};
	enum prony_status status = ask(ov, &list, err);

	if (status != PRONY_OK)
		return status;
	profile->before = calloc(list.count ? list.count : 1, sizeof(profile->before[0]));
	profile->node_count = list.count;
	for (size_t i = 0; profile->before && i < list.count; i++)
		profile->before[i] = list.nodes[i].real_us * WARM_RUNS;
	ov->api.ov_profiling_info_list_free(&list);
	return profile->before
		       ? PRONY_OK
		       : error_set(err, PRONY_NOMEM, "no memory for the times of the nodes");
}

static enum prony_status profile_begin(struct session *s, int64_t steps, int64_t (*now_ns)(void),
				       struct error *err)
{
	struct ov_state *ov = s->private_data;
	enum prony_status status = PRONY_OK;

	(void)steps, (void)now_ns;
	if (ov->throughput)
		return error_set(err, PRONY_UNSUPPORTED,
				 "with +throughput several steps run at once; profile without it");
	if (strcmp(ov->device, "CPU") != 0)
		return error_set(err, PRONY_UNSUPPORTED,
				 "only OpenVINO's CPU plug-in can be profiled: it is not known "
				 "whether the times of %s are of one step or of all",
				 ov->device);
	if (!ov->profile.model)
		return error_set(err, PRONY_INTERNAL,
				 "the model's bytes were not kept for a profile");
	status = replace(ov, err);
	for (int i = 0; status == PRONY_OK && i < WARM_RUNS; i++)
		status = ov_check(&ov->api,
				  ov->api.ov_infer_request_infer(ov->slots[ov->last_slot].request),
				  "infer", err);
	if (status == PRONY_OK)
		status = keep_before(ov, err);
	if (status == PRONY_OK && ov->profile.graph && ov->api.encrypts)
		status = ov_names_ask(&ov->api, ov->compiled, &ov->profile.names, err);
	if (status != PRONY_OK)
		restore(ov);
	return status;
}

/* Nodes that the plug-in fused follow in the list with an empty kernel. */
static bool is_fused(const struct ov_profiling *node)
{
	return node->status != OV_NODE_EXECUTED && !strcmp(node->executed_as, "undef");
}

/* The graph node of a compiled node, if known, and the names of all its parts: "conv1 + conv1.bn +
 * conv1.relu". */
static void describe(const struct ov_state *ov, const struct ov_profiling_list *list, size_t at,
		     struct arena *arena, struct profile_event *event)
{
	const struct ov_profile *profile = &ov->profile;
	struct strbuf text;
	int node = -1;

	if (profile->names)
		node = ov_names_find(profile->names, profile->graph, list->nodes[at].name, arena,
				     &event->name);
	if (node >= 0)
		event->layer = profile->graph->nodes[node].name;
	strbuf_init(&text, 0);
	strbuf_puts(&text, event->name);
	for (size_t i = at + 1; i < list->count && is_fused(&list->nodes[i]); i++)
		strbuf_printf(&text, " + %s", list->nodes[i].name);
	event->name = arena_strdup(arena, strbuf_text(&text));
	strbuf_release(&text);
}

/* Every step gets the mean, because single steps are not reported. */
static enum prony_status add_node(const struct ov_state *ov, const struct ov_profiling_list *list,
				  size_t at, int64_t steps, struct profile_log *log,
				  struct error *err)
{
	const struct ov_profiling *node = &list->nodes[at];
	int64_t took_us = node->real_us * (WARM_RUNS + steps) - ov->profile.before[at];
	struct profile_event each = {.name = node->name,
				     .kind = node->type,
				     .pass = "forward",
				     .begin_ns = PROFILE_UNPLACED,
				     .duration_ns = took_us > 0 ? took_us * 1000 / steps : 0};
	enum prony_status status = PRONY_OK;

	describe(ov, list, at, &log->arena, &each);
	for (; status == PRONY_OK && each.step < steps; each.step++)
		status = profile_log_add(log, &each, err);
	return status;
}

static enum prony_status profile_end(struct session *s, const int64_t *instants, int64_t steps,
				     struct profile_log *log, struct error *err)
{
	struct ov_state *ov = s->private_data;
	struct ov_profiling_list list = {0};
	enum prony_status status = ask(ov, &list, err);

	(void)instants;
	if (status == PRONY_OK && list.count != ov->profile.node_count)
		status = error_set(err, PRONY_INVALID,
				   "OpenVINO's profile has %zu nodes, but %zu before the steps",
				   list.count, ov->profile.node_count);
	for (size_t i = 0; status == PRONY_OK && i < list.count; i++)
		if (list.nodes[i].status == OV_NODE_EXECUTED)
			status = add_node(ov, &list, i, steps, log, err);
	if (list.nodes)
		ov->api.ov_profiling_info_list_free(&list);
	restore(ov);
	return status;
}

const struct adapter_profile ov_adapter_profile = {.begin = profile_begin, .end = profile_end};
