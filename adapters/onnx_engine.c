#include "adapters/onnx_engine.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/checks.h"
#include "adapters/reasons.h"
#include "base/memory.h"
#include "graph/kernel.h"

static void refuse_node(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	const char *name = operator_name(node->op);

	if (operator_row(node->op)->is_gradient)
		reasons_add(reasons, "operator %s (%s) is not an ONNX operator", name, node->name);
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *reader = &graph->nodes[i];

		for (int k = 0; k < reader->input_count; k++)
			for (int j = 1; j < node->output_count; j++)
				if (node->outputs[j] != VALUE_NONE &&
				    reader->inputs[k] == node->outputs[j])
					reasons_add(
						reasons,
						"output %d of %s %s does not exist in evaluation",
						j, name, node->name);
	}
}

void onnx_engine_refuse(const struct target *target, const struct graph *graph,
			struct strbuf *reasons)
{
	bool caches = false;

	for (int i = 0; i < graph->forward_count; i++) {
		refuse_node(graph, &graph->nodes[i], reasons);
		caches = caches || operator_row(graph->nodes[i].op)->replaces_state;
	}
	if (caches && target_has_option(target, "throughput"))
		reasons_add(reasons, "option throughput: steps that run at once would write the "
				     "same caches");
}

enum prony_status onnx_engine_export(const struct session *s, const struct graph *graph,
				     const struct tensor_set *weights, struct onnx_form *form,
				     void **bytes, size_t *length, char **folder, struct error *err)
{
	const struct mapped_file *file = s->weights_file;
	const char *slash = file && file->path ? strrchr(file->path, '/') : NULL;
	enum prony_status status;

	form->most = s->message_max;
	if (slash) {
		form->data_file.name = slash + 1;
		form->data_file.bytes = file->bytes;
		form->data_file.length = file->length;
	}
	status = onnx_export_form(graph, weights, form, bytes, length, err);
	if (status == PRONY_OK && form->external)
		*folder = memory_printf("%.*s", (int)(slash - file->path), file->path);
	return status;
}

static enum prony_status keep_state(struct onnx_ends *ends, const struct value *value,
				    const struct tensor_set *weights, struct error *err)
{
	struct tensor *state = &ends->states.tensors[ends->states.count];
	const struct tensor *given;
	enum prony_status status = check_weight(weights, value, &given, err);

	if (status == PRONY_OK)
		status =
			tensor_new(&ends->arena, value->name, DTYPE_F32, &value->shape, state, err);
	if (status != PRONY_OK)
		return status;
	memcpy(state->data, given->data, (size_t)tensor_bytes(given));
	ends->states.count++;
	return PRONY_OK;
}

static enum prony_status add_cache(struct onnx_ends *ends, const struct node *scatter,
				   enum onnx_caches caches, struct error *err)
{
	const struct graph *graph = ends->graph;
	const struct value *output = &graph->values[onnx_cache_output(scatter, caches)];
	struct onnx_cache *cache = &ends->caches[ends->cache_count++];

	*cache = (struct onnx_cache){
		.scatter = scatter,
		.output_name = output->name,
		.state = tensor_find(&ends->states, graph->values[scatter->inputs[0]].name),
	};
	if (caches != ONNX_CACHES_READ)
		return PRONY_OK;
	return tensor_new(&ends->arena, output->name, DTYPE_F32, &output->shape, &cache->rows, err);
}

static enum prony_status add_caches(struct onnx_ends *ends, const struct tensor_set *weights,
				    enum onnx_caches caches, struct error *err)
{
	const struct graph *graph = ends->graph;
	enum prony_status status = PRONY_OK;
	size_t nodes = (size_t)graph->forward_count, values = (size_t)graph->value_count;
	bool any = false;

	for (size_t i = 0; i < nodes; i++)
		any = any || operator_row(graph->nodes[i].op)->replaces_state;
	if (!any)
		return PRONY_OK;
	ends->caches = arena_array(&ends->arena, nodes, sizeof(*ends->caches));
	ends->states.tensors = arena_array(&ends->arena, values, sizeof(*ends->states.tensors));
	for (size_t i = 0; status == PRONY_OK && i < values; i++)
		if (graph->values[i].kind == VALUE_STATE)
			status = keep_state(ends, &graph->values[i], weights, err);
	for (size_t i = 0; status == PRONY_OK && i < nodes; i++)
		if (operator_row(graph->nodes[i].op)->replaces_state)
			status = add_cache(ends, &graph->nodes[i], caches, err);
	return status;
}

enum prony_status onnx_engine_ends(const struct graph *graph, const struct tensor_set *weights,
				   enum onnx_caches caches, struct onnx_ends *out,
				   struct error *err)
{
	const struct value *logits = &graph->values[graph->logits];
	int64_t elements = shape_elements(&logits->shape);

	if (elements <= 0 || (uint64_t)elements > SIZE_MAX / 2 / sizeof(float))
		return error_set(err, PRONY_BAD_INPUT, "the logits %s are empty or too large",
				 logits->name);
	*out = (struct onnx_ends){
		.graph = graph,
		.output_name = logits->name,
		.logits_shape = logits->shape,
		.logits_bytes = (size_t)elements * sizeof(float),
	};
	arena_init(&out->arena, 0);
	return add_caches(out, weights, caches, err);
}

static void write_rows(const struct onnx_cache *cache, const int64_t *positions)
{
	int64_t axis = cache->scatter->attributes.axis, samples = cache->rows.shape.dims[0];
	struct axis_split whole = split_axis(&cache->state->shape, axis);
	struct axis_split rows = split_axis(&cache->rows.shape, axis);
	int64_t block = rows.size * rows.inner;
	float *to = cache->state->data;
	const float *from = cache->rows.data;

	for (int64_t i = 0; i < whole.outer; i++) {
		int64_t at = positions ? positions[i / (whole.outer / samples)] : 0;

		memcpy(to + (i * whole.size + at) * whole.inner, from + i * block,
		       (size_t)block * sizeof(*to));
	}
}

void onnx_engine_write_rows(const struct onnx_ends *ends, const void *const *fed)
{
	for (int i = 0; i < ends->cache_count; i++) {
		const struct node *scatter = ends->caches[i].scatter;
		const int64_t *positions = NULL;

		for (int k = 0; scatter->input_count > 2 && !positions; k++)
			if (graph_input(ends->graph, k) == scatter->inputs[2])
				positions = fed[k];
		write_rows(&ends->caches[i], positions);
	}
}

enum prony_status onnx_engine_logits(const struct onnx_ends *ends, float **out, struct error *err)
{
	size_t bytes = (ends->logits_bytes + 63) / 64 * 64;
	float *logits = aligned_alloc(64, bytes);

	if (!logits)
		return error_set(err, PRONY_NOMEM, "no memory for the logits");
	memset(logits, 0, bytes);
	*out = logits;
	return PRONY_OK;
}

enum prony_status onnx_engine_check_feed(const struct onnx_ends *ends, int slot, int slots,
					 struct batch batch, struct error *err)
{
	enum prony_status status = check_slot(slot, slots, err);

	/* Forward ends at the logits, so labels are not needed. */
	return status == PRONY_OK ? check_batch(ends->graph, batch, false, err) : status;
}

static enum prony_status read_states(const struct onnx_ends *ends, struct tensor_set *out,
				     struct error *err)
{
	for (size_t i = 0; i < out->count; i++) {
		const struct tensor *state = tensor_find(&ends->states, out->tensors[i].name);

		if (!state)
			return error_set(err, PRONY_INTERNAL, "there is no state '%s'",
					 out->tensors[i].name);
		enum prony_status status = check_read_shape(&out->tensors[i], &state->shape, err);
		if (status != PRONY_OK)
			return status;
		memcpy(out->tensors[i].data, state->data, (size_t)tensor_bytes(state));
	}
	return PRONY_OK;
}

enum prony_status onnx_engine_read(const struct onnx_ends *ends, const char *engine,
				   const float *logits, enum readout what, struct tensor_set *out,
				   struct error *err)
{
	if (what == READ_STATE && ends->cache_count > 0)
		return read_states(ends, out, err);
	if (what != READ_LOGITS)
		return error_set(err, PRONY_UNSUPPORTED, "%s computes only logits, not %s", engine,
				 readout_name(what));
	if (out->count != 1 || out->tensors[0].dtype != DTYPE_F32 ||
	    !shape_equal(&out->tensors[0].shape, &ends->logits_shape))
		return error_set(err, PRONY_INTERNAL,
				 "logits can only be read into one F32 tensor of their shape");
	memcpy(out->tensors[0].data, logits, ends->logits_bytes);
	return PRONY_OK;
}
