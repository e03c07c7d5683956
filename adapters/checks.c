#include "adapters/checks.h"

enum prony_status check_slot(int slot, int slots, struct error *err)
{
	if (slot >= 0 && slot < slots)
		return PRONY_OK;
	return error_set(err, PRONY_INTERNAL, "slot %d of %d", slot, slots);
}

enum prony_status check_input(const struct shape *want, const struct tensor *input,
			      struct error *err)
{
	char have_text[96], want_text[96];

	if (input->dtype == DTYPE_F32 && shape_equal(&input->shape, want))
		return PRONY_OK;
	shape_text(&input->shape, have_text, sizeof(have_text));
	shape_text(want, want_text, sizeof(want_text));
	return error_set(err, PRONY_BAD_INPUT, "input is %s %s, the network takes F32 %s",
			 dtype_name(input->dtype), have_text, want_text);
}

bool check_takes_labels(const struct graph *graph)
{
	return graph->nodes[graph->values[graph->loss].producer].op == OP_SOFTMAX_CROSS_ENTROPY;
}

enum prony_status check_labels(const struct graph *graph, const struct tensor *labels,
			       struct error *err)
{
	int64_t batch = graph_batch(graph), classes = graph_classes(graph);

	if (!labels || labels->dtype != DTYPE_I64 || shape_elements(&labels->shape) != batch)
		return error_set(err, PRONY_BAD_INPUT, "labels are not %lld I64", (long long)batch);
	for (int64_t i = 0; i < batch; i++) {
		int64_t label = ((const int64_t *)labels->data)[i];

		if (label < 0 || label >= classes)
			return error_set(err, PRONY_BAD_INPUT,
					 "label %lld of sample %lld is not in 0..%lld",
					 (long long)label, (long long)i, (long long)classes - 1);
	}
	return PRONY_OK;
}

enum prony_status check_weight(const struct tensor_set *weights, const struct value *value,
			       const struct tensor **out, struct error *err)
{
	const struct tensor *tensor = tensor_find(weights, value->name);

	if (!tensor || tensor->dtype != DTYPE_F32 || !shape_equal(&tensor->shape, &value->shape))
		return error_set(err, PRONY_BAD_INPUT,
				 "weights lack %s as F32 in the shape of the network", value->name);
	*out = tensor;
	return PRONY_OK;
}

enum prony_status check_readout(enum readout what, bool stepped, const struct tensor_set *out,
				struct error *err)
{
	switch (what) {
	case READ_LOGITS:
	case READ_LOSS:
		if (out->count != 1)
			return error_set(err, PRONY_INTERNAL, "%s are read into one tensor",
					 readout_name(what));
		break;
	case READ_GRADIENTS:
		break;
	case READ_WEIGHTS:
	case READ_STATE:
		return PRONY_OK;
	case READ_OUTPUTS:
	case READ_COUNT:
		return error_set(err, PRONY_INTERNAL, "readout %d", (int)what);
	}
	if (!stepped)
		return error_set(err, PRONY_INTERNAL, "read of %s before the first step",
				 readout_name(what));
	return PRONY_OK;
}

enum prony_status check_read_shape(const struct tensor *out, const struct shape *shape,
				   struct error *err)
{
	if (out->dtype == DTYPE_F32 && shape_equal(&out->shape, shape))
		return PRONY_OK;
	return error_set(err, PRONY_INTERNAL, "%s is not read as F32 of its own shape",
			 out->name ? out->name : "tensor");
}
