#include "adapters/onnxruntime/onnxruntime.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/onnx_engine.h"
#include "adapters/onnxruntime/ort_api.h"
#include "adapters/onnxruntime/ort_streams.h"
#include "adapters/reasons.h"
#include "base/loader.h"
#include "base/strbuf.h"
#include "onnx/onnx.h"

/* Each slot has logits of its own, so that several can be computed at once. */
struct ort_slot {
	struct ort_value *input;  /* over the memory that was fed */
	struct ort_value *output; /* over `logits` */
	float *logits;
};

struct ort_state {
	const struct ort_api *api;
	const struct ort_api_base *base;
	struct ort_env *env;
	struct ort_session_options *options;
	struct ort_memory_info *memory;
	struct ort_session *session;
	struct onnx_ends ends;
	struct ort_slot *slots;
	int slot_count, last_slot, threads;
	struct ort_streams *streams; /* NULL: the caller computes, with the session's own pool */
};

/* Turns a status of ONNX Runtime into ours and releases it. */
static enum prony_status check(const struct ort_api *api, struct ort_status *status,
			       const char *what, struct error *err)
{
	enum prony_status code = PRONY_INVALID;

	if (!status)
		return PRONY_OK;
	const char *text = api->get_error_message(status);
	if (api->get_error_code(status) == ORT_NOT_IMPLEMENTED)
		code = PRONY_UNSUPPORTED;
	else if (strstr(text, "bad_alloc") || strstr(text, "Failed to allocate memory"))
		code = PRONY_OUT_OF_MEMORY;
	error_set(err, code, "ONNX Runtime, %s: %s", what, text);
	api->release_status(status);
	return code;
}

static enum prony_status ort_probe(struct session *s, struct probe *found, struct error *err)
{
	struct ort_state *ort = s->private_data;
	const struct ort_api_base *(*get_api_base)(void) = NULL;
	const struct loader_symbol symbols[] = {LOADER_SYMBOL(get_api_base, "OrtGetApiBase")};
	void *library;
	enum prony_status status;

	if (!s->library)
		return error_set(err, PRONY_MISSING,
				 "no library named; set PRONY_ONNXRUNTIME_LIBRARY to the path of "
				 "libonnxruntime.so or run `prony framework install onnxruntime`");
	status = loader_open(s->library, &library, err);
	if (status == PRONY_OK)
		status = loader_resolve(library, s->library, symbols, 1, err);
	if (status != PRONY_OK)
		return status;

	const struct ort_api_base *base = get_api_base();
	const struct ort_api *api = base->get_api(ORT_API_WANTED);
	if (!api)
		return error_set(err, PRONY_UNSUPPORTED,
				 "ONNX Runtime %s in %s is too old: 1.%d or newer is needed",
				 base->get_version_string(), s->library, ORT_API_WANTED);
	ort->base = base;
	ort->api = api;
	*found = (struct probe){
		.library_count = 1,
		.stages = 1u << STAGE_FORWARD,
		.precisions = 1u << PRECISION_FP32,
		.devices = {"cpu"},
		.device_count = 1,
	};
	snprintf(found->version, sizeof(found->version), "%s", base->get_version_string());
	/* Its kernels (MLAS) are part of the library and have no version of their own. */
	snprintf(found->libraries[0].name, sizeof(found->libraries[0].name), "mlas");
	snprintf(found->libraries[0].version, sizeof(found->libraries[0].version), "%s",
		 base->get_version_string());
	return PRONY_OK;
}

/* What ONNX Runtime's kernels refuse (core/providers/cpu/nn). */
static void refuse_kernels(const struct graph *graph, struct strbuf *reasons)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (node->op == OP_LRN && node->attributes.size % 2 == 0)
			reasons_add(reasons, "LRN %s: an even size", node->name);
		if (node->op == OP_LRN && graph->values[node->inputs[0]].shape.rank != 4)
			reasons_add(reasons, "LRN %s: an input without height and width",
				    node->name);
	}
}

static enum prony_status ort_supports(const struct graph *graph, const struct recipe *recipe,
				      struct error *why)
{
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	if (recipe->stage != STAGE_FORWARD)
		reasons_add(&reasons,
			    "stage %s: ONNX Runtime trains no more, its training packages ended "
			    "with 1.19.2; only forward is measured",
			    stage_name(recipe->stage));
	/* Where cores are shared, spinning changes the figure: without it is a variant. */
	reasons_add_recipe(&reasons, recipe, 1u << PRECISION_FP32);
	onnx_engine_refuse(graph, &reasons);
	refuse_kernels(graph, &reasons);
	return reasons_finish(&reasons, why);
}

/* Everything that has to be said before there is a session. */
static enum prony_status set_options(const struct ort_api *api, struct ort_session_options *options,
				     int intra_op_threads, bool spinning, struct error *err)
{
	enum prony_status status =
		check(api, api->set_graph_optimization_level(options, ORT_ENABLE_ALL),
		      "set optimisation level", err);

	if (status == PRONY_OK)
		status = check(api, api->set_session_execution_mode(options, ORT_SEQUENTIAL),
			       "set execution mode", err);
	if (status == PRONY_OK)
		status = check(api, api->set_intra_op_num_threads(options, intra_op_threads),
			       "set intra-op threads", err);
	if (status == PRONY_OK)
		status = check(api, api->set_inter_op_num_threads(options, 1),
			       "set inter-op threads", err);
	if (status == PRONY_OK && !spinning)
		status = check(api,
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
	/* Of the session; with streams each call computes on the stream that makes it. */
	ort->threads = throughput ? 1 : recipe->threads;
	status = check(api, api->create_env(ORT_LOGGING_ERROR, "prony", &ort->env),
		       "create environment", err);
	if (status == PRONY_OK)
		status = check(api, api->disable_telemetry_events(ort->env), "disable telemetry",
			       err);
	if (status == PRONY_OK)
		status = check(api, api->create_session_options(&ort->options), "create options",
			       err);
	if (status == PRONY_OK)
		status = set_options(api, ort->options, ort->threads, spinning, err);
	if (status == PRONY_OK)
		status = check(api,
			       api->create_cpu_memory_info(ORT_ARENA_ALLOCATOR, ORT_MEMORY_DEFAULT,
							   &ort->memory),
			       "describe memory", err);
	if (status != PRONY_OK)
		return status;
	*effective = (struct effective){
		.device = "cpu", .precision = PRECISION_FP32, .threads = recipe->threads};
	snprintf(effective->settings, sizeof(effective->settings),
		 "graph_optimization_level=all;execution_mode=sequential;intra_op_threads=%d;"
		 "inter_op_threads=1;streams=%d;session.intra_op.allow_spinning=%s;telemetry=off",
		 ort->threads, throughput ? recipe->threads : 1, spinning ? "default" : "0");
	return PRONY_OK;
}

/* Number of threads of this process; -1 where /proc does not say. */
static int count_tasks(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	if (!tasks)
		return -1;
	for (const struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks)) {
		if (entry->d_name[0] != '.')
			count++;
	}
	closedir(tasks);
	return count;
}

/* What took effect is counted: the caller computes too, so that a pool of N starts N - 1 threads.
 */
static enum prony_status make_session(struct ort_state *ort, const void *model, size_t length,
				      struct error *err)
{
	int before = count_tasks();
	enum prony_status status =
		check(ort->api,
		      ort->api->create_session_from_array(ort->env, model, length, ort->options,
							  &ort->session),
		      "create session", err);
	int threads = count_tasks() - before + 1;

	if (status == PRONY_OK && before >= 0 && threads != ort->threads)
		status = error_set(err, PRONY_INVALID,
				   "a session computes with %d threads where %d were asked for",
				   threads, ort->threads);
	return status;
}

static enum prony_status make_slots(struct ort_state *ort, int count, struct error *err)
{
	enum prony_status status = PRONY_OK;

	ort->slots = calloc((size_t)count, sizeof(ort->slots[0]));
	if (!ort->slots)
		return error_set(err, PRONY_NOMEM, "no memory for %d slots", count);
	ort->slot_count = count;
	for (int i = 0; i < count && status == PRONY_OK; i++) {
		struct ort_slot *slot = &ort->slots[i];

		status = onnx_engine_logits(&ort->ends, &slot->logits, err);
		if (status == PRONY_OK)
			status = check(ort->api,
				       ort->api->create_tensor_with_data(
					       ort->memory, slot->logits, ort->ends.logits_bytes,
					       ort->ends.logits_shape.dims,
					       (size_t)ort->ends.logits_shape.rank,
					       ORT_ELEMENT_FLOAT, &slot->output),
				       "describe the logits", err);
	}
	return status;
}

static enum prony_status compute(void *context, int slot, struct error *err)
{
	struct ort_state *ort = context;
	const struct ort_value *input = ort->slots[slot].input;

	return check(ort->api,
		     ort->api->run(ort->session, NULL, &ort->ends.input_name, &input, 1,
				   &ort->ends.output_name, 1, &ort->slots[slot].output),
		     "run", err);
}

static enum prony_status ort_build(struct session *s, struct graph *graph,
				   const struct recipe *recipe, const struct tensor_set *weights,
				   struct built *built, struct error *err)
{
	struct ort_state *ort = s->private_data;
	void *model = NULL;
	size_t length = 0;
	enum prony_status status = ort_supports(graph, recipe, err);

	if (status == PRONY_OK)
		status = onnx_engine_ends(graph, &ort->ends, err);
	if (status == PRONY_OK)
		status = onnx_export(graph, weights, &model, &length, err);
	if (status == PRONY_OK)
		status = make_session(ort, model, length, err);
	free(model);
	if (status == PRONY_OK)
		status = make_slots(ort, recipe->slots, err);
	if (status == PRONY_OK && target_has_option(&s->target, "throughput"))
		status = ort_streams_start(recipe->threads, recipe->slots, compute, ort,
					   &ort->streams, err);
	if (status != PRONY_OK)
		return status;

	/* A session tells neither its initialisers nor its optimised graph through the C interface.
	 */
	*built = (struct built){.parameters = -1, .macs = -1};
	snprintf(built->notes, sizeof(built->notes),
		 "weights are constants of the session: its optimiser may fold and pack them");
	return PRONY_OK;
}

/* Returns when the logits are there, or with streams when all that was issued is done. */
static enum prony_status ort_sync(struct session *s, struct error *err)
{
	struct ort_state *ort = s->private_data;

	return ort->streams ? ort_streams_wait(ort->streams, err) : PRONY_OK;
}

static enum prony_status ort_feed(struct session *s, int slot, const struct tensor *input,
				  const struct tensor *labels, struct error *err)
{
	struct ort_state *ort = s->private_data;
	struct ort_value *value = NULL;
	enum prony_status status =
		onnx_engine_check_feed(&ort->ends, slot, ort->slot_count, input, err);

	(void)labels; /* forward ends at the logits */
	if (status == PRONY_OK)
		status = ort_sync(s, err);
	if (status == PRONY_OK)
		status = check(ort->api,
			       ort->api->create_tensor_with_data(
				       ort->memory, input->data, (size_t)tensor_bytes(input),
				       input->shape.dims, (size_t)input->shape.rank,
				       ORT_ELEMENT_FLOAT, &value),
			       "describe the batch", err);
	if (status != PRONY_OK)
		return status;
	ort->api->release_value(ort->slots[slot].input);
	ort->slots[slot].input = value;
	return PRONY_OK;
}

static enum prony_status ort_step(struct session *s, int slot, struct error *err)
{
	struct ort_state *ort = s->private_data;

	if (slot < 0 || slot >= ort->slot_count || !ort->slots[slot].input)
		return error_set(err, PRONY_INTERNAL, "slot %d was not fed", slot);
	ort->last_slot = slot;
	return ort->streams ? ort_streams_issue(ort->streams, slot, err) : compute(ort, slot, err);
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
	for (int i = 0; ort->slots && i < ort->slot_count; i++) {
		api->release_value(ort->slots[i].input);
		api->release_value(ort->slots[i].output);
		free(ort->slots[i].logits);
	}
	free(ort->slots);
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
	.options = "nospin,throughput",
	.probe = ort_probe,
	.supports = ort_supports,
	.open = ort_open,
	.build = ort_build,
	.feed = ort_feed,
	.step = ort_step,
	.sync = ort_sync,
	.read = ort_read,
	.close = ort_close,
};
