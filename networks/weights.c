#include "networks/graph.h"

#include <math.h>

#include "base/random.h"

static enum prony_status fill_tensor(const struct value *value, uint64_t seed, struct tensor *out,
				     struct arena *arena, struct error *err)
{
	const char *stream = arena_printf(arena, "weights/%s", value->name);
	int64_t count = shape_elements(&value->shape);
	bool he = value->fill == FILL_HE_NORMAL || value->fill == FILL_HE_UNIFORM;
	float *data = out->data;
	struct random random;
	double fan_in = (double)value->fan_in;

	if (he && value->fan_in < 1)
		return error_set(err, PRONY_BAD_INPUT,
				 "parameter '%s': its initial fill is not known, because the graph "
				 "was read from a file; its weights must come from one, too",
				 value->name);
	if (value->fill == FILL_IDENTITY &&
	    (value->shape.rank != 2 || value->shape.dims[0] != value->shape.dims[1]))
		return error_set(err, PRONY_BAD_INPUT, "parameter '%s' is not a square matrix",
				 value->name);
	random_init_named(&random, seed, stream);
	for (int64_t i = 0; i < count; i++) {
		switch (value->fill) {
		case FILL_ZERO:
			break;
		case FILL_ONE:
			data[i] = 1.0f;
			break;
		case FILL_HE_NORMAL:
			data[i] = (float)(random_normal(&random) * sqrt(2.0 / fan_in));
			break;
		case FILL_HE_UNIFORM:
			data[i] =
				(float)((2.0 * random_uniform(&random) - 1.0) * sqrt(6.0 / fan_in));
			break;
		case FILL_IDENTITY:
			data[i] = i % (value->shape.dims[1] + 1) == 0 ? 1.0f : 0.0f;
			break;
		}
	}
	return PRONY_OK;
}

static bool is_weight(const struct value *value)
{
	return value->kind == VALUE_PARAMETER || value->kind == VALUE_STATE;
}

enum prony_status graph_initial_weights(const struct graph *graph, uint64_t seed,
					struct arena *arena, struct tensor_set *out,
					struct error *err)
{
	struct tensor_set set = {.count = 0};

	for (int i = 0; i < graph->value_count; i++)
		set.count += is_weight(&graph->values[i]);
	set.tensors = arena_array(arena, set.count, sizeof(*set.tensors));
	set.count = 0;
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		struct tensor *tensor = &set.tensors[set.count];
		enum prony_status status;

		if (!is_weight(value))
			continue;
		status = tensor_new(arena, value->name, DTYPE_F32, &value->shape, tensor, err);
		if (status == PRONY_OK)
			status = fill_tensor(value, seed, tensor, arena, err);
		if (status != PRONY_OK)
			return status;
		set.count++;
	}
	*out = set;
	return PRONY_OK;
}
