#include "adapters/onnxruntime/onnxruntime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/onnxruntime/ort_profile.h"
#include "adapters/probe.h"
#include "adapters/reasons.h"
#include "base/loader.h"
#include "base/strbuf.h"
#include "onnx/onnx.h"

#define ORT_ATTENTION_SINCE 31 /* of 1.31 */

/* Without an explicit provider a session uses the CPU provider, which a build may lack. */
static enum prony_status find_providers(const struct ort_api *api, const char *library,
					struct probe *found, struct error *err)
{
	struct strbuf list;
	char **names = NULL;
	int count = 0;
	enum prony_status status =
		ort_check(api, api->get_available_providers(&names, &count), "list providers", err);

	if (status != PRONY_OK)
		return status;
	strbuf_init(&list, 0);
	for (int i = 0; i < count; i++) {
		strbuf_printf(&list, "%s%s", i > 0 ? "," : "", names[i]);
		if (strcmp(names[i], "CPUExecutionProvider") == 0)
			snprintf(found->devices[found->device_count++], sizeof(found->devices[0]),
				 "cpu");
	}
	probe_add_library(found, "providers", strbuf_text(&list));
	if (found->device_count == 0)
		status = error_set(err, PRONY_MISSING,
				   "%s has no execution provider for the CPU, only %s", library,
				   strbuf_text(&list));
	strbuf_release(&list);
	ort_check(api, api->release_available_providers(names, count), "free providers", NULL);
	return status;
}

static enum prony_status ort_probe(struct session *s, struct probe *found, struct error *err)
{
	struct ort_state *ort = s->private_data;
	const struct ort_api_base *(*get_api_base)(void) = NULL;
	const struct loader_symbol symbols[] = {LOADER_SYMBOL(get_api_base, "OrtGetApiBase")};
	void *library;
	enum prony_status status;

	status = probe_library_named(s, "onnxruntime", "libonnxruntime.so", err);
	if (status == PRONY_OK)
		status = loader_open(s->library, &library, err);
	if (status == PRONY_OK)
		status = loader_resolve(library, s->library, symbols, 1, err);
	if (status != PRONY_OK)
		return status;

	const struct ort_api_base *base = get_api_base();
	const struct ort_api *api = base->get_api(ORT_API_WANTED);
	if (!api)
		return error_set(err, PRONY_MISSING,
				 "ONNX Runtime %s in %s is too old: 1.%d or newer is needed",
				 base->get_version_string(), s->library, ORT_API_WANTED);
	ort->base = base;
	ort->api = api;
	*found = (struct probe){
		.stages = 1u << STAGE_FORWARD,
		.precisions = 1u << PRECISION_FP32,
	};
	snprintf(found->version, sizeof(found->version), "%s", base->get_version_string());
	/* Its kernels (MLAS) are part of the library and have no separate version. */
	probe_add_library(found, "mlas", base->get_version_string());
	probe_add_processor(found, "MLAS by cpuid");
	return find_providers(api, s->library, found, err);
}

/* Adds what ONNX Runtime's kernels refuse (core/providers/cpu/nn). */
static void refuse_kernels(const struct graph *graph, struct strbuf *reasons)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (node->op == OP_LRN && node->attributes.size % 2 == 0)
			reasons_add(reasons, "LRN %s: the size must be odd", node->name);
		if (node->op == OP_LRN && graph->values[node->inputs[0]].shape.rank != 4)
			reasons_add(reasons, "LRN %s: the input has no height and width",
				    node->name);
	}
}

static enum prony_status ort_supports(const struct target *target, const struct graph *graph,
				      const struct recipe *recipe, struct error *why)
{
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	if (recipe->stage != STAGE_FORWARD)
		reasons_add(&reasons,
			    "stage %s: only forward, because ONNX Runtime's training packages "
			    "ended with 1.19.2",
			    stage_name(recipe->stage));
	/* On shared cores spinning changes the result, so running without it is an option of its
	 * own. */
	reasons_add_recipe(&reasons, recipe, 1u << PRECISION_FP32);
	onnx_engine_refuse(target, graph, &reasons);
	refuse_kernels(graph, &reasons);
	return reasons_finish(&reasons, why);
}

/* Sets all options that must be set before the session is created. */
static enum prony_status set_options(const struct ort_api *api, struct ort_session_options *options,
				     int intra_op_threads, bool spinning, struct error *err)
{
	enum prony_status status =
		ort_check(api, api->set_graph_optimization_level(options, ORT_ENABLE_ALL),
			  "set optimisation level", err);

	if (status == PRONY_OK)
		status = ort_check(api, api->set_session_execution_mode(options, ORT_SEQUENTIAL),
				   "set execution mode", err);
	if (status == PRONY_OK)
		status = ort_check(api, api->set_intra_op_num_threads(options, intra_op_threads),
				   "set intra-op threads", err);
	if (status == PRONY_OK)
		status = ort_check(api, api->set_inter_op_num_threads(options, 1),
				   "set inter-op threads", err);
	if (status == PRONY_OK && !spinning)
		status = ort_check(api,
				   api->add_session_config_entry(
					   options, "session.intra_op.allow_spinning", "0"),
				   "switch spinning off", err);
	return status;
}

static enum prony_status ort_open(struct session *s, const struct recipe *recipe,
				  struct effective *effective, struct error *err)
{
	struct ort_state *ort = s->private_data;
	const struct ort_api *api = ort->api;
	bool spinning = !target_has_option(&s->target, "nospin");
	bool throughput = target_has_option(&s->target, "throughput");
	enum prony_status status;

	if (!api)
		return error_set(err, PRONY_INTERNAL, "open before probe");
	if (throughput && recipe->input == INPUT_STREAM)
		return error_set(err, PRONY_UNSUPPORTED,
				 "option throughput with --input stream: the next batch would "
				 "overwrite one that a running step still reads");
	/* Threads of the session; with streams each call computes on its own thread. */
	ort->threads = throughput ? 1 : recipe->threads;
	status = ort_check(api, api->create_env(ORT_LOGGING_ERROR, "prony", &ort->env),
			   "create environment", err);
	if (status == PRONY_OK)
		status = ort_check(api, api->disable_telemetry_events(ort->env),
				   "disable telemetry", err);
	if (status == PRONY_OK)
		status = ort_check(api, api->create_session_options(&ort->options),
				   "create options", err);
	if (status == PRONY_OK)
		status = set_options(api, ort->options, ort->threads, spinning, err);
	if (status == PRONY_OK)
		status = ort_check(api,
				   api->create_cpu_memory_info(ORT_ARENA_ALLOCATOR,
							       ORT_MEMORY_DEFAULT, &ort->memory),
				   "describe memory", err);
	if (status != PRONY_OK)
		return status;
	*effective = (struct effective){.precision = PRECISION_FP32, .threads = recipe->threads};
	snprintf(effective->device, sizeof(effective->device), "%s", s->target.device);
	snprintf(effective->settings, sizeof(effective->settings),
		 "graph_optimization_level=all;execution_mode=sequential;intra_op_threads=%d;"
		 "inter_op_threads=1;streams=%d;session.intra_op.allow_spinning=%s;telemetry=off",
		 ort->threads, throughput ? recipe->threads : 1, spinning ? "default" : "0");
	return PRONY_OK;
}

static enum prony_status wrap(const struct ort_state *ort, float *data, const struct shape *shape,
			      struct ort_value **out, struct error *err)
{
	return ort_check(ort->api,
			 ort->api->create_tensor_with_data(
				 ort->memory, data, (size_t)shape_elements(shape) * sizeof(float),
				 shape->dims, (size_t)shape->rank, ORT_ELEMENT_FLOAT, out),
			 "describe the logits or a cache", err);
}

/* The logits of a slot, and as inputs and outputs the caches of all: TensorScatter copies nothing
 * if both are the same memory. */
static enum prony_status make_ends(struct ort_state *ort, struct ort_slot *slot, struct error *err)
{
	size_t fed = ort->input_count - (size_t)ort->ends.cache_count;
	enum prony_status status = onnx_engine_logits(&ort->ends, &slot->logits, err);

	if (status == PRONY_OK)
		status = wrap(ort, slot->logits, &ort->ends.logits_shape, &slot->outputs[0], err);
	for (int i = 0; status == PRONY_OK && i < ort->ends.cache_count; i++) {
		const struct tensor *state = ort->ends.caches[i].state;
		struct ort_value *past = NULL;

		status = wrap(ort, state->data, &state->shape, &past, err);
		slot->inputs[fed + (size_t)i] = past;
		if (status == PRONY_OK)
			status = wrap(ort, state->data, &state->shape, &slot->outputs[1 + i], err);
	}
	return status;
}

static enum prony_status name_ends(struct ort_state *ort, const struct graph *graph,
				   const struct tensor_set *weights, struct error *err)
{
	enum prony_status status =
		onnx_engine_ends(graph, weights, ONNX_CACHES_IN_PLACE, &ort->ends, err);

	if (status != PRONY_OK)
		return status;
	size_t fed = (size_t)graph_inputs(graph, NULL, 0), caches = (size_t)ort->ends.cache_count;

	ort->input_count = fed + caches;
	ort->output_count = 1 + caches;
	ort->input_names = calloc(ort->input_count, sizeof(char *));
	ort->output_names = calloc(ort->output_count, sizeof(char *));
	if (!ort->input_names || !ort->output_names)
		return error_set(err, PRONY_NOMEM, "no memory for the names of inputs");
	for (size_t i = 0; i < fed; i++)
		ort->input_names[i] = graph->values[graph_input(graph, (int)i)].name;
	ort->output_names[0] = ort->ends.output_name;
	for (size_t i = 0; i < caches; i++) {
		ort->input_names[fed + i] = ort->ends.caches[i].state->name;
		ort->output_names[1 + i] = ort->ends.caches[i].output_name;
	}
	return PRONY_OK;
}

/* Whether the release has the operator Attention as prony has run it. */
static bool has_attention(const struct ort_state *ort)
{
	int major = 0, minor = 0;

	return sscanf(ort->base->get_version_string(), "%d.%d", &major, &minor) == 2 &&
	       (major > 1 || minor >= ORT_ATTENTION_SINCE);
}

static enum prony_status ort_build(struct session *s, struct graph *graph,
				   const struct recipe *recipe, const struct tensor_set *weights,
				   struct built *built, struct error *err)
{
	struct ort_state *ort = s->private_data;
	struct onnx_form form = {.caches = ONNX_CACHES_IN_PLACE,
				 .fuse = has_attention(ort) &&
					 !target_has_option(&s->target, "explicit")};
	char attention[48] = "", *folder = NULL;
	void *model = NULL;
	size_t length = 0;
	enum prony_status status = ort_supports(&s->target, graph, recipe, err);

	if (status == PRONY_OK)
		status = name_ends(ort, graph, weights, err);
	if (status == PRONY_OK)
		status =
			onnx_engine_export(s, graph, weights, &form, &model, &length, &folder, err);
	if (status == PRONY_OK && folder)
		status = ort_set_data_folder(ort, folder, err);
	free(folder);
	if (status == PRONY_OK)
		status = ort_make_session(ort, model, length, err);
	if (status == PRONY_OK && s->profiled)
		status = ort_profile_keep(ort, model, length, err);
	free(model);
	if (status == PRONY_OK)
		status = ort_make_slots(s, recipe, err);
	for (int i = 0; status == PRONY_OK && i < ort->slot_count; i++)
		status = make_ends(ort, &ort->slots[i], err);
	if (status != PRONY_OK)
		return status;

	/* The C interface gives access neither to a session's initializers nor to its optimised
	 * graph. */
	*built = (struct built){.parameters = -1, .macs = -1};
	if (form.attentions > 0)
		snprintf(attention, sizeof(attention), "attention: fused %d of %d; ", form.fused,
			 form.attentions);
	snprintf(built->notes, sizeof(built->notes),
		 "%sweights are constants, which the session may fold and pack", attention);
	return PRONY_OK;
}

static enum prony_status ort_sync(struct session *s, struct error *err)
{
	return ort_wait(s->private_data, err);
}

static enum prony_status ort_feed(struct session *s, int slot, struct batch batch,
				  struct error *err)
{
	static const enum ort_element_type types[DTYPE_COUNT] = {
		[DTYPE_F32] = ORT_ELEMENT_FLOAT, [DTYPE_F16] = ORT_ELEMENT_FLOAT16,
		[DTYPE_I64] = ORT_ELEMENT_INT64, [DTYPE_I32] = ORT_ELEMENT_INT32,
		[DTYPE_BOOL] = ORT_ELEMENT_BOOL,
	};
	struct ort_state *ort = s->private_data;
	enum prony_status status =
		onnx_engine_check_feed(&ort->ends, slot, ort->slot_count, batch, err);

	if (status == PRONY_OK)
		status = ort_sync(s, err);
	for (size_t i = 0; status == PRONY_OK && i < (size_t)batch.input_count; i++)
		status = ort_set_input(ort, slot, i, &batch.inputs[i], types[batch.inputs[i].dtype],
				       err);
	return status;
}

static enum prony_status ort_step(struct session *s, int slot, struct error *err)
{
	struct ort_state *ort = s->private_data;

	if (slot < 0 || slot >= ort->slot_count || !ort->slots[slot].inputs[0])
		return error_set(err, PRONY_INTERNAL, "slot %d was not fed", slot);
	ort->last_slot = slot;
	return ort->streams ? ort_streams_issue(ort->streams, slot, err)
			    : ort_compute(ort, slot, err);
}

static enum prony_status ort_read(struct session *s, enum readout what, struct tensor_set *out,
				  struct error *err)
{
	struct ort_state *ort = s->private_data;

	return onnx_engine_read(&ort->ends, "ONNX Runtime's session",
				ort->slots[ort->last_slot].logits, what, out, err);
}

static void ort_close(struct session *s)
{
	struct ort_state *ort = s->private_data;
	const struct ort_api *api = ort->api;

	if (!api)
		return;
	ort_streams_stop(ort->streams);
	ort_profile_release(ort);
	for (int i = 0; ort->slots && i < ort->slot_count; i++) {
		struct ort_slot *slot = &ort->slots[i];

		for (size_t k = 0; slot->inputs && k < ort->input_count; k++)
			api->release_value((struct ort_value *)(uintptr_t)slot->inputs[k]);
		for (size_t k = 0; slot->outputs && k < ort->output_count; k++)
			api->release_value(slot->outputs[k]);
		free((void *)(uintptr_t)slot->inputs);
		free(slot->outputs);
		free(slot->logits);
	}
	free(ort->slots);
	arena_release(&ort->ends.arena);
	free((void *)(uintptr_t)ort->input_names);
	free((void *)(uintptr_t)ort->output_names);
	api->release_session(ort->session);
	api->release_memory_info(ort->memory);
	api->release_session_options(ort->options);
	api->release_env(ort->env);
	*ort = (struct ort_state){0};
}

const struct adapter adapter_onnxruntime = {
	.abi = ADAPTER_ABI,
	.name = "onnxruntime",
	.summary = "ONNX Runtime through its C interface (forward)",
	.private_size = sizeof(struct ort_state),
	.options = "explicit,nospin,throughput",
	.probe = ort_probe,
	.supports = ort_supports,
	.open = ort_open,
	.build = ort_build,
	.feed = ort_feed,
	.step = ort_step,
	.sync = ort_sync,
	.read = ort_read,
	.close = ort_close,
	.files = &ort_files,
	.profile = &ort_adapter_profile,
};
