#include "adapters/openvino/openvino.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/openvino/openvino_internal.h"
#include "adapters/openvino/openvino_profile.h"
#include "adapters/probe.h"
#include "adapters/reasons.h"
#include "onnx/onnx.h"

/* prony's device words are OpenVINO's in lower case. */
static void device_word(const char *from, int (*letter)(int), char out[TARGET_WORD_BYTES])
{
	size_t i = 0;

	for (; from[i] && i + 1 < TARGET_WORD_BYTES; i++)
		out[i] = (char)letter((unsigned char)from[i]);
	out[i] = '\0';
}

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

static enum prony_status list_devices(const struct ov_state *ov, const char *library,
				      struct probe *found, struct error *err)
{
	struct ov_devices devices = {0};
	enum prony_status status =
		ov_check(&ov->api, ov->api.ov_core_get_available_devices(ov->core, &devices),
			 "list devices", err);

	if (status != PRONY_OK)
		return status;
	for (size_t i = 0; i < devices.count && found->device_count < ADAPTER_DEVICES_MAX; i++)
		device_word(devices.names[i], tolower, found->devices[found->device_count++]);
	ov->api.ov_available_devices_free(&devices);
	if (found->device_count == 0)
		return error_set(err, PRONY_MISSING,
				 "OpenVINO in %s finds no device; its plug-ins "
				 "(libopenvino_intel_cpu_plugin.so) must be in the same folder",
				 library);
	return PRONY_OK;
}

/* Precisions for which the device reports instructions; whether it can read such models is another
 * question. */
static enum prony_status ask_precisions(const struct ov_state *ov, struct probe *found,
					struct error *err)
{
	char *words = NULL;
	enum prony_status status =
		ov_check(&ov->api,
			 ov->api.ov_core_get_property(ov->core, ov->device,
						      "OPTIMIZATION_CAPABILITIES", &words),
			 "get capabilities", err);

	if (status != PRONY_OK)
		return status;
	if (has_word(words, "FP32"))
		found->precisions |= 1u << PRECISION_FP32;
	if (has_word(words, "FP16"))
		found->precisions |= 1u << PRECISION_FP16;
	if (has_word(words, "BF16"))
		found->precisions |= 1u << PRECISION_BF16;
	ov->api.ov_free(words);
	return PRONY_OK;
}

static enum prony_status ask_version(const struct ov_state *ov, struct probe *found,
				     struct error *err)
{
	struct ov_version version = {0};
	enum prony_status status = ov_check(&ov->api, ov->api.ov_get_openvino_version(&version),
					    "get its version", err);

	if (status != PRONY_OK)
		return status;
	/* "2026.4.1-21450-0a1b2c3d-releases/2026/4" */
	snprintf(found->version, sizeof(found->version), "%.*s", (int)strcspn(version.build, "-"),
		 version.build);
	/* Its kernels (a fork of oneDNN) are part of the plug-in and have no separate version. */
	probe_add_library(found, "build", version.build);
	probe_add_processor(found, "oneDNN and generated code by cpuid");
	ov->api.ov_version_free(&version);
	return PRONY_OK;
}

static bool found_device(const struct probe *found, const char *device)
{
	for (int i = 0; i < found->device_count; i++)
		if (strcmp(found->devices[i], device) == 0)
			return true;
	return false;
}

static enum prony_status ov_probe(struct session *s, struct probe *found, struct error *err)
{
	struct ov_state *ov = s->private_data;
	struct probe probe = {.stages = 1u << STAGE_FORWARD};
	enum prony_status status;

	status = probe_library_named(s, "openvino", "libopenvino_c.so", err);
	if (status == PRONY_OK)
		status = ov_api_load(&ov->api, s->library, err);
	if (status != PRONY_OK)
		return status;
	ov->loaded = true;
	ov->throughput = target_has_option(&s->target, "throughput");
	device_word(s->target.device, toupper, ov->device);
	status = ask_version(ov, &probe, err);
	if (status == PRONY_OK)
		status = ov_check(&ov->api, ov->api.ov_core_create(&ov->core), "create core", err);
	if (status == PRONY_OK)
		status = list_devices(ov, s->library, &probe, err);
	/* A device that does not exist is refused by the caller. */
	if (status == PRONY_OK && found_device(&probe, s->target.device))
		status = ask_precisions(ov, &probe, err);
	if (status == PRONY_OK)
		*found = probe;
	return status;
}

/* Compared with the reference, such an average is 9 % off at the edge. */
static void refuse_overhang(const struct graph *graph, struct strbuf *reasons)
{
	for (int n = 0; n < graph->forward_count; n++) {
		const struct node *node = &graph->nodes[n];
		const struct attributes *a = &node->attributes;
		const struct shape *x, *y;

		if (node->op != OP_AVERAGE_POOL || !a->ceil_mode || !a->count_include_pad)
			continue;
		x = &graph->values[node->inputs[0]].shape;
		y = &graph->values[node->outputs[0]].shape;
		for (int i = 0; i < 2; i++) {
			int64_t reach = (y->dims[2 + i] - 1) * a->strides[i] + a->kernel[i];

			if (reach <= x->dims[2 + i] + a->pads[i] + a->pads[2 + i])
				continue;
			reasons_add(reasons,
				    "AveragePool %s: count_include_pad with a window that extends "
				    "beyond the padding, where OpenVINO computes another mean",
				    node->name);
			break;
		}
	}
}

static void refuse_caches(const struct graph *graph, struct strbuf *reasons)
{
	for (int n = 0; n < graph->forward_count; n++) {
		const struct node *node = &graph->nodes[n];
		const char *refusal = NULL;

		if (operator_row(node->op)->replaces_state)
			refusal = onnx_cache_refusal(graph, node);
		if (refusal)
			reasons_add(reasons, "%s %s: OpenVINO has no such operator, and %s",
				    operator_name(node->op), node->name, refusal);
	}
}

static enum prony_status ov_supports(const struct target *target, const struct graph *graph,
				     const struct recipe *recipe, struct error *why)
{
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	if (recipe->stage != STAGE_FORWARD)
		reasons_add(&reasons, "stage %s: only forward, because OpenVINO does not train",
			    stage_name(recipe->stage));
	reasons_add_recipe(&reasons, recipe,
			   1u << PRECISION_FP32 | 1u << PRECISION_FP16 | 1u << PRECISION_BF16);
	onnx_engine_refuse(target, graph, &reasons);
	refuse_overhang(graph, &reasons);
	refuse_caches(graph, &reasons);
	return reasons_finish(&reasons, why);
}

static enum prony_status ov_open(struct session *s, const struct recipe *recipe,
				 struct effective *effective, struct error *err)
{
	struct ov_state *ov = s->private_data;

	if (!ov->core)
		return error_set(err, PRONY_INTERNAL, "open before probe");
	if (target_has_option(&s->target, "throughput") && recipe->input == INPUT_STREAM)
		return error_set(err, PRONY_UNSUPPORTED,
				 "option throughput with --input stream: the next batch would "
				 "overwrite one that a running step still reads");
	/* These are the requested settings; build reads back those of the compiled network and
	 * fails if they differ. */
	*effective = (struct effective){.precision = recipe->precision, .threads = recipe->threads};
	snprintf(effective->device, sizeof(effective->device), "%s", s->target.device);
	const struct ov_properties p = ov_properties_for(ov, recipe);
	size_t length = 0;
	for (int i = 0; i < OV_PROPERTIES; i++)
		length += (size_t)snprintf(effective->settings + length,
					   sizeof(effective->settings) - length, "%s%s=%s",
					   i > 0 ? ";" : "", p.key[i], p.value[i]);
	return PRONY_OK;
}

static enum prony_status port_type(const struct ov_state *ov,
				   int (*get)(const struct ov_compiled *, size_t,
					      struct ov_port **),
				   size_t index, int *type, struct error *err)
{
	struct ov_port *port = NULL;
	enum prony_status status = ov_check(&ov->api, get(ov->compiled, index, &port),
					    "find its input or output", err);

	if (status == PRONY_OK)
		status = ov_check(&ov->api, ov->api.ov_port_get_element_type(port, type),
				  "get an element type", err);
	if (port)
		ov->api.ov_output_const_port_free(port);
	return status;
}

static enum prony_status port_types(struct ov_state *ov, size_t inputs, struct error *err)
{
	enum prony_status status =
		port_type(ov, ov->api.ov_compiled_model_output_by_index, 0, &ov->output_type, err);

	ov->input_types = calloc(inputs, sizeof(*ov->input_types));
	if (!ov->input_types)
		return error_set(err, PRONY_NOMEM, "no memory for the types of inputs");
	ov->input_count = inputs;
	for (size_t i = 0; status == PRONY_OK && i < inputs; i++)
		status = port_type(ov, ov->api.ov_compiled_model_input_by_index, i,
				   &ov->input_types[i], err);
	return status;
}

/* A cache is an input unless nothing reads it. */
static bool is_read(const struct graph *graph, const struct onnx_cache *cache)
{
	return graph_forward_readers(graph, cache->scatter->outputs[0]) > 0;
}

static enum prony_status make_caches(struct ov_state *ov, struct error *err)
{
	size_t count = (size_t)ov->ends.cache_count;
	enum prony_status status = PRONY_OK;

	ov->pasts = calloc(count ? count : 1, sizeof(*ov->pasts));
	ov->rows = calloc(count ? count : 1, sizeof(*ov->rows));
	if (!ov->pasts || !ov->rows)
		return error_set(err, PRONY_NOMEM, "no memory for caches");
	for (size_t i = 0; status == PRONY_OK && i < count; i++) {
		const struct onnx_cache *cache = &ov->ends.caches[i];

		if (is_read(ov->ends.graph, cache))
			status = ov_wrap(ov, ov->output_type, &cache->state->shape,
					 cache->state->data, (size_t)tensor_bytes(cache->state),
					 &ov->pasts[i], err);
		if (status == PRONY_OK)
			status = ov_wrap(ov, ov->output_type, &cache->rows.shape, cache->rows.data,
					 (size_t)tensor_bytes(&cache->rows), &ov->rows[i], err);
	}
	return status;
}

static enum prony_status make_ends(struct ov_state *ov, struct ov_slot *slot, struct error *err)
{
	enum prony_status status = onnx_engine_logits(&ov->ends, &slot->logits, err);

	if (status == PRONY_OK)
		status = ov_wrap(ov, ov->output_type, &ov->ends.logits_shape, slot->logits,
				 ov->ends.logits_bytes, &slot->output, err);
	if (status == PRONY_OK)
		status = ov_check(&ov->api,
				  ov->api.ov_infer_request_set_output_tensor_by_index(
					  slot->request, 0, slot->output),
				  "set the output", err);
	slot->fed = calloc(ov->input_count, sizeof(*slot->fed));
	if (status == PRONY_OK && !slot->fed)
		status = error_set(err, PRONY_NOMEM, "no memory for a slot");
	return status == PRONY_OK ? ov_bind_caches(ov, slot->request, err) : status;
}

static enum prony_status ov_build(struct session *s, struct graph *graph,
				  const struct recipe *recipe, const struct tensor_set *weights,
				  struct built *built, struct error *err)
{
	struct ov_state *ov = s->private_data;
	/* Its compiler fuses separate operators of attention better than the node Attention. */
	struct onnx_form form = {.caches = ONNX_CACHES_READ};
	void *bytes = NULL;
	size_t length = 0;
	enum prony_status status = ov_supports(&s->target, graph, recipe, err);

	if (status == PRONY_OK)
		status = onnx_engine_ends(graph, weights, ONNX_CACHES_READ, &ov->ends, err);
	if (status == PRONY_OK)
		status = onnx_engine_export(s, graph, weights, &form, &bytes, &length, &ov->folder,
					    err);
	if (status == PRONY_OK)
		status = ov_compile(ov, bytes, length, recipe, err);
	if (status == PRONY_OK && s->profiled)
		status = ov_profile_keep(ov, bytes, length, graph, recipe, err);
	free(bytes);
	if (status == PRONY_OK)
		status = port_types(ov, (size_t)graph_inputs(graph, NULL, 0), err);
	if (status == PRONY_OK)
		status = ov_make_slots(ov, recipe, err);
	if (status == PRONY_OK)
		status = make_caches(ov, err);
	for (int i = 0; status == PRONY_OK && i < ov->slot_count; i++)
		status = make_ends(ov, &ov->slots[i], err);
	if (status != PRONY_OK)
		return status;
	*built = (struct built){.parameters = -1, .macs = -1};
	ov_describe(ov, built);
	return PRONY_OK;
}

static enum prony_status feed_input(struct ov_state *ov, struct ov_slot *slot, size_t index,
				    const struct tensor *input, struct error *err)
{
	struct ov_tensor *tensor = NULL;
	enum prony_status status = ov_wrap(ov, ov->input_types[index], &input->shape, input->data,
					   (size_t)tensor_bytes(input), &tensor, err);

	if (status != PRONY_OK)
		return status;
	status = ov_check(
		&ov->api,
		ov->api.ov_infer_request_set_input_tensor_by_index(slot->request, index, tensor),
		"set an input", err);
	if (status != PRONY_OK) {
		ov->api.ov_tensor_free(tensor);
		return status;
	}
	if (slot->inputs[index])
		ov->api.ov_tensor_free(slot->inputs[index]);
	slot->inputs[index] = tensor;
	slot->fed[index] = input->data;
	return PRONY_OK;
}

/* Runs one step. Its rows are a small part of what it read of the caches. */
static enum prony_status infer(struct ov_state *ov, struct ov_slot *slot, struct error *err)
{
	enum prony_status status =
		ov_check(&ov->api, ov->api.ov_infer_request_infer(slot->request), "infer", err);

	if (status == PRONY_OK)
		onnx_engine_write_rows(&ov->ends, slot->fed);
	return status;
}

static enum prony_status ov_feed(struct session *s, int slot, struct batch batch, struct error *err)
{
	struct ov_state *ov = s->private_data;
	enum prony_status status =
		onnx_engine_check_feed(&ov->ends, slot, ov->slot_count, batch, err);

	if (status == PRONY_OK)
		status = ov_finish(ov, &ov->slots[slot], err);
	for (size_t i = 0; status == PRONY_OK && i < ov->input_count; i++)
		status = feed_input(ov, &ov->slots[slot], i, &batch.inputs[i], err);
	return status;
}

static enum prony_status ov_step(struct session *s, int slot, struct error *err)
{
	struct ov_state *ov = s->private_data;

	if (slot < 0 || slot >= ov->slot_count || !ov->slots[slot].inputs[0])
		return error_set(err, PRONY_INTERNAL, "slot %d was not fed", slot);
	struct ov_slot *at = &ov->slots[slot];
	ov->last_slot = slot;
	if (!ov->throughput)
		return infer(ov, at, err);
	/* The slot's last step is the oldest in flight, because there are as many requests as
	 * slots. */
	enum prony_status status = ov_finish(ov, at, err);
	if (status == PRONY_OK)
		status = ov_check(&ov->api, ov->api.ov_infer_request_start_async(at->request),
				  "start", err);
	at->started = status == PRONY_OK;
	return status;
}

static enum prony_status ov_sync(struct session *s, struct error *err)
{
	struct ov_state *ov = s->private_data;
	enum prony_status status = PRONY_OK;

	for (int i = 0; i < ov->slot_count && status == PRONY_OK; i++)
		status = ov_finish(ov, &ov->slots[i], err);
	return status;
}

static enum prony_status ov_read(struct session *s, enum readout what, struct tensor_set *out,
				 struct error *err)
{
	struct ov_state *ov = s->private_data;

	return onnx_engine_read(&ov->ends, "OpenVINO", ov->slots[ov->last_slot].logits, what, out,
				err);
}

static void ov_close(struct session *s)
{
	struct ov_state *ov = s->private_data;
	const struct ov_api *api = &ov->api;

	if (!ov->loaded)
		return;
	ov_profile_release(ov);
	for (int i = 0; ov->slots && i < ov->slot_count; i++) {
		struct ov_slot *slot = &ov->slots[i];

		ov_finish(ov, slot, NULL);
		if (slot->request)
			api->ov_infer_request_free(slot->request);
		for (size_t k = 0; slot->inputs && k < ov->input_count; k++)
			if (slot->inputs[k])
				api->ov_tensor_free(slot->inputs[k]);
		free(slot->inputs);
		if (slot->output)
			api->ov_tensor_free(slot->output);
		free((void *)(uintptr_t)slot->fed);
		free(slot->logits);
	}
	free(ov->slots);
	for (int i = 0; ov->rows && i < ov->ends.cache_count; i++) {
		if (ov->pasts[i])
			api->ov_tensor_free(ov->pasts[i]);
		if (ov->rows[i])
			api->ov_tensor_free(ov->rows[i]);
	}
	free(ov->pasts);
	free(ov->rows);
	arena_release(&ov->ends.arena);
	free(ov->input_types);
	for (size_t i = 0; ov->outputs && i < ov->model->outputs.count; i++)
		if (ov->outputs[i])
			api->ov_tensor_free(ov->outputs[i]);
	free(ov->outputs);
	if (ov->compiled)
		api->ov_compiled_model_free(ov->compiled);
	if (ov->core)
		api->ov_core_free(ov->core);
	free(ov->folder);
	*ov = (struct ov_state){0};
}

const struct adapter adapter_openvino = {
	.abi = ADAPTER_ABI,
	.name = "openvino",
	.summary = "OpenVINO through its C interface (forward)",
	.private_size = sizeof(struct ov_state),
	.options = "throughput",
	.probe = ov_probe,
	.supports = ov_supports,
	.open = ov_open,
	.build = ov_build,
	.feed = ov_feed,
	.step = ov_step,
	.sync = ov_sync,
	.read = ov_read,
	.close = ov_close,
	.files = &ov_files,
	.profile = &ov_adapter_profile,
};
