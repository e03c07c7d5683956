#include "adapters/onnxruntime/onnxruntime.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "adapters/onnxruntime/ort_api.h"
#include "adapters/reasons.h"
#include "base/loader.h"
#include "base/strbuf.h"
#include "onnx/onnx.h"

struct ort_state {
	const struct ort_api *api;
	const struct ort_api_base *base;
	struct ort_env *env;
	struct ort_session_options *options;
	struct ort_memory_info *memory;
	struct ort_session *session;
	struct ort_value **inputs; /* one per slot, over the memory that was fed */
	struct ort_value *output;  /* over `logits` */
	int slots, threads;
	float *logits;
	size_t logits_bytes;
	struct shape logits_shape, input_shape;
	const char *input_name, *output_name; /* borrowed from the graph */
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

/* What evaluation has no use for, or what ONNX Runtime's kernels refuse (core/providers/cpu/nn). */
static void refuse_node(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	const char *name = operator_name(node->op);

	if (operator_row(node->op)->is_gradient)
		reasons_add(reasons, "operator %s (%s) is not one of ONNX", name, node->name);
	if (node->op == OP_LRN && node->attributes.size % 2 == 0)
		reasons_add(reasons, "LRN %s: an even size", node->name);
	if (node->op == OP_LRN && graph->values[node->inputs[0]].shape.rank != 4)
		reasons_add(reasons, "LRN %s: an input without height and width", node->name);
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *reader = &graph->nodes[i];

		for (int k = 0; k < reader->input_count; k++)
			for (int j = 1; j < node->output_count; j++)
				if (node->outputs[j] != VALUE_NONE &&
				    reader->inputs[k] == node->outputs[j])
					reasons_add(
						reasons,
						"output %d of %s %s, which evaluation leaves out",
						j, name, node->name);
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
	for (int i = 0; i < graph->forward_count; i++)
		refuse_node(graph, &graph->nodes[i], &reasons);
	return reasons_finish(&reasons, why);
}

static uint32_t mxcsr_now(void)
{
#if defined(__SSE__)
	return _mm_getcsr();
#else
	return 0;
#endif
}

static enum prony_status ort_open(struct session *s, const struct recipe *recipe,
				  struct effective *effective, struct error *err)
{
	struct ort_state *ort = s->private_data;
	const struct ort_api *api = ort->api;
	bool spinning = !target_has_option(&s->target, "nospin");
	enum prony_status status;

	if (!api)
		return error_set(err, PRONY_INTERNAL, "open before probe");
	status = check(api, api->create_env(ORT_LOGGING_ERROR, "prony", &ort->env),
		       "create environment", err);
	if (status == PRONY_OK)
		status = check(api, api->disable_telemetry_events(ort->env), "disable telemetry",
			       err);
	if (status == PRONY_OK)
		status = check(api, api->create_session_options(&ort->options), "create options",
			       err);
	if (status == PRONY_OK)
		status = check(api, api->set_graph_optimization_level(ort->options, ORT_ENABLE_ALL),
			       "set optimisation level", err);
	if (status == PRONY_OK)
		status = check(api, api->set_session_execution_mode(ort->options, ORT_SEQUENTIAL),
			       "set execution mode", err);
	if (status == PRONY_OK)
		status = check(api, api->set_intra_op_num_threads(ort->options, recipe->threads),
			       "set intra-op threads", err);
	if (status == PRONY_OK)
		status = check(api, api->set_inter_op_num_threads(ort->options, 1),
			       "set inter-op threads", err);
	if (status == PRONY_OK && !spinning)
		status = check(api,
			       api->add_session_config_entry(
				       ort->options, "session.intra_op.allow_spinning", "0"),
			       "switch spinning off", err);
	if (status == PRONY_OK)
		status = check(api,
			       api->create_cpu_memory_info(ORT_ARENA_ALLOCATOR, ORT_MEMORY_DEFAULT,
							   &ort->memory),
			       "describe memory", err);
	if (status != PRONY_OK)
		return status;

	ort->threads = recipe->threads;
	*effective = (struct effective){
		.device = "cpu",
		.precision = PRECISION_FP32,
		.threads = recipe->threads,
		.mxcsr = mxcsr_now(), /* Run computes on the calling thread and its pool */
	};
	snprintf(effective->settings, sizeof(effective->settings),
		 "graph_optimization_level=all;execution_mode=sequential;intra_op_threads=%d;"
		 "inter_op_threads=1;session.intra_op.allow_spinning=%s;telemetry=off",
		 recipe->threads, spinning ? "default" : "0");
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

static enum prony_status make_session(struct ort_state *ort, const struct graph *graph,
				      const struct tensor_set *weights, int *pool_threads,
				      struct error *err)
{
	void *model = NULL;
	size_t length = 0;
	enum prony_status status = onnx_export(graph, weights, &model, &length, err);

	if (status != PRONY_OK)
		return status;
	int before = count_tasks();
	status = check(ort->api,
		       ort->api->create_session_from_array(ort->env, model, length, ort->options,
							   &ort->session),
		       "create session", err);
	int after = count_tasks();
	free(model);
	/* The caller computes too, so that a pool of N starts N - 1 threads. */
	*pool_threads = before < 0 || after < 0 ? -1 : after - before + 1;
	return status;
}

static enum prony_status ort_build(struct session *s, struct graph *graph,
				   const struct recipe *recipe, const struct tensor_set *weights,
				   struct built *built, struct error *err)
{
	struct ort_state *ort = s->private_data;
	int pool_threads = -1;
	enum prony_status status = ort_supports(graph, recipe, err);

	if (status == PRONY_OK)
		status = make_session(ort, graph, weights, &pool_threads, err);
	if (status != PRONY_OK)
		return status;
	if (pool_threads >= 0 && pool_threads != ort->threads)
		return error_set(err, PRONY_INVALID,
				 "ONNX Runtime computes with %d threads where %d were asked for",
				 pool_threads, ort->threads);

	ort->input_name = graph->values[graph->input].name;
	ort->output_name = graph->values[graph->logits].name;
	ort->input_shape = graph->values[graph->input].shape;
	ort->logits_shape = graph->values[graph->logits].shape;
	int64_t elements = shape_elements(&ort->logits_shape);
	if (elements <= 0 || (uint64_t)elements > SIZE_MAX / 2 / sizeof(float))
		return error_set(err, PRONY_BAD_INPUT, "logits %s have no usable shape",
				 ort->output_name);
	ort->logits_bytes = (size_t)elements * sizeof(float);
	size_t rounded_bytes = (ort->logits_bytes + 63) / 64 * 64;
	ort->logits = aligned_alloc(64, rounded_bytes);
	ort->slots = recipe->slots;
	ort->inputs = calloc((size_t)ort->slots, sizeof(ort->inputs[0]));
	if (!ort->logits || !ort->inputs)
		return error_set(err, PRONY_NOMEM, "no memory for the logits");
	memset(ort->logits, 0, rounded_bytes);
	status = check(ort->api,
		       ort->api->create_tensor_with_data(
			       ort->memory, ort->logits, ort->logits_bytes, ort->logits_shape.dims,
			       (size_t)ort->logits_shape.rank, ORT_ELEMENT_FLOAT, &ort->output),
		       "describe the logits", err);
	if (status != PRONY_OK)
		return status;

	/* A session tells neither its initialisers nor its optimised graph through the C interface.
	 */
	*built = (struct built){.parameters = -1, .macs = -1};
	snprintf(built->notes, sizeof(built->notes),
		 "weights are constants of the session: its optimiser may fold and pack them; "
		 "threads counted after session start: %d",
		 pool_threads);
	return PRONY_OK;
}

static enum prony_status ort_feed(struct session *s, int slot, const struct tensor *input,
				  const struct tensor *labels, struct error *err)
{
	struct ort_state *ort = s->private_data;
	struct ort_value *value = NULL;
	enum prony_status status;

	(void)labels; /* forward ends at the logits */
	if (slot < 0 || slot >= ort->slots)
		return error_set(err, PRONY_INTERNAL, "slot %d of %d", slot, ort->slots);
	if (input->dtype != DTYPE_F32 || !shape_equal(&input->shape, &ort->input_shape)) {
		char have[96], want[96];

		shape_text(&input->shape, have, sizeof(have));
		shape_text(&ort->input_shape, want, sizeof(want));
		return error_set(err, PRONY_BAD_INPUT, "input is %s %s, the network takes F32 %s",
				 dtype_name(input->dtype), have, want);
	}
	status = check(ort->api,
		       ort->api->create_tensor_with_data(
			       ort->memory, input->data, (size_t)tensor_bytes(input),
			       input->shape.dims, (size_t)input->shape.rank, ORT_ELEMENT_FLOAT,
			       &value),
		       "describe the batch", err);
	if (status != PRONY_OK)
		return status;
	ort->api->release_value(ort->inputs[slot]);
	ort->inputs[slot] = value;
	return PRONY_OK;
}

static enum prony_status ort_step(struct session *s, int slot, struct error *err)
{
	struct ort_state *ort = s->private_data;

	if (slot < 0 || slot >= ort->slots || !ort->inputs[slot])
		return error_set(err, PRONY_INTERNAL, "slot %d was not fed", slot);
	const struct ort_value *input = ort->inputs[slot];
	return check(ort->api,
		     ort->api->run(ort->session, NULL, &ort->input_name, &input, 1,
				   &ort->output_name, 1, &ort->output),
		     "run", err);
}

/* Run returns when the logits are there. */
static enum prony_status ort_sync(struct session *s, struct error *err)
{
	(void)s;
	(void)err;
	return PRONY_OK;
}

static enum prony_status ort_read(struct session *s, enum readout what, struct tensor_set *out,
				  struct error *err)
{
	struct ort_state *ort = s->private_data;

	if (what != READ_LOGITS)
		return error_set(err, PRONY_UNSUPPORTED,
				 "ONNX Runtime's session gives logits only, not %s",
				 readout_name(what));
	if (out->count != 1 || out->tensors[0].dtype != DTYPE_F32 ||
	    !shape_equal(&out->tensors[0].shape, &ort->logits_shape))
		return error_set(err, PRONY_INTERNAL,
				 "logits are read into one F32 tensor of "
				 "their own shape");
	memcpy(out->tensors[0].data, ort->logits, ort->logits_bytes);
	return PRONY_OK;
}

static void ort_close(struct session *s)
{
	struct ort_state *ort = s->private_data;
	const struct ort_api *api = ort->api;

	if (!api)
		return;
	for (int i = 0; ort->inputs && i < ort->slots; i++)
		api->release_value(ort->inputs[i]);
	free(ort->inputs);
	api->release_value(ort->output);
	free(ort->logits);
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
	.options = "nospin",
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
