#include "adapters/checks.h"

enum prony_status check_slot(int slot, int slots, struct error *err)
{
	if (slot >= 0 && slot < slots)
		return PRONY_OK;
	return error_set(err, PRONY_INTERNAL, "there is no slot %d (%d slots)", slot, slots);
}

enum prony_status check_batch(const struct graph *graph, struct batch batch, bool with_labels,
			      struct error *err)
{
	if (with_labels && batch.label_count == 0)
		return error_set(err, PRONY_BAD_INPUT, "the batch has no labels");
	return batch_check(graph, batch, err);
}

enum prony_status check_no_ignored(struct batch batch, struct error *err)
{
	for (int i = 0; i < batch.label_count; i++)
		for (int64_t k = 0; k < shape_elements(&batch.labels[i].shape); k++)
			if (((const int64_t *)batch.labels[i].data)[k] < 0)
				return error_set(err, PRONY_UNSUPPORTED,
						 "label %lld of the batch is negative (ignored), "
						 "and this adapter's loss cannot ignore labels",
						 (long long)k);
	return PRONY_OK;
}

bool check_takes_labels(const struct graph *graph)
{
	return graph->nodes[graph->values[graph->loss].producer].op == OP_SOFTMAX_CROSS_ENTROPY;
}

enum prony_status check_weight(const struct tensor_set *weights, const struct value *value,
			       const struct tensor **out, struct error *err)
{
	const struct tensor *tensor = tensor_find(weights, value->name);

	if (!tensor || tensor->dtype != DTYPE_F32 || !shape_equal(&tensor->shape, &value->shape))
		return error_set(err, PRONY_BAD_INPUT,
				 "the weights have no F32 tensor %s with the network's shape",
				 value->name);
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
			return error_set(err, PRONY_INTERNAL, "reading %s needs exactly one tensor",
					 readout_name(what));
		break;
	case READ_GRADIENTS:
		break;
	case READ_WEIGHTS:
	case READ_STATE:
		return PRONY_OK;
	case READ_OUTPUTS:
	case READ_COUNT:
		return error_set(err, PRONY_INTERNAL, "unknown readout %d", (int)what);
	}
	if (!stepped)
		return error_set(err, PRONY_INTERNAL, "%s cannot be read before the first step",
				 readout_name(what));
	return PRONY_OK;
}

enum prony_status check_read_shape(const struct tensor *out, const struct shape *shape,
				   struct error *err)
{
	if (out->dtype == DTYPE_F32 && shape_equal(&out->shape, shape))
		return PRONY_OK;
	return error_set(err, PRONY_INTERNAL, "%s can only be read as F32 in its own shape",
			 out->name ? out->name : "tensor");
}
