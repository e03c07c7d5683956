#include "adapters/onnx_engine.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/checks.h"
#include "adapters/reasons.h"

static void refuse_node(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	const char *name = operator_name(node->op);

	if (operator_row(node->op)->is_gradient)
		reasons_add(reasons, "operator %s (%s) is not an ONNX operator", name, node->name);
	if (operator_row(node->op)->replaces_state)
		reasons_add(reasons, "operator %s (%s): the session keeps no caches between steps",
			    name, node->name);
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

void onnx_engine_refuse(const struct graph *graph, struct strbuf *reasons)
{
	for (int i = 0; i < graph->forward_count; i++)
		refuse_node(graph, &graph->nodes[i], reasons);
}

enum prony_status onnx_engine_ends(const struct graph *graph, struct onnx_ends *out,
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
	return PRONY_OK;
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

enum prony_status onnx_engine_read(const struct onnx_ends *ends, const char *engine,
				   const float *logits, enum readout what, struct tensor_set *out,
				   struct error *err)
{
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
