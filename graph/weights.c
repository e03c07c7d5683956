/* Fills the parameters and states of a graph from a seed. */
#include "graph/graph.h"

#include <math.h>

#include "base/random.h"

/* Su et al. 2021, arXiv 2104.09864, with feature j turned together with feature j + d/2. */
static double rotary_angle(const struct value *value, int64_t i)
{
	int64_t columns = value->shape.dims[1], pair = i % columns % (columns / 2);

	return (double)(i / columns) *
	       pow((double)value->fan_in, -2.0 * (double)pair / (double)columns);
}

static double draw(struct random *random, const struct value *value, int64_t i)
{
	double fan_in = (double)value->fan_in;

	switch (value->fill) {
	case FILL_ZERO:
		return 0;
	case FILL_ONE:
		return 1;
	case FILL_HE_NORMAL:
		return random_normal(random) * sqrt(2.0 / fan_in);
	case FILL_HE_UNIFORM:
		return (2.0 * random_uniform(random) - 1.0) * sqrt(6.0 / fan_in);
	case FILL_IDENTITY:
		return i % (value->shape.dims[1] + 1) == 0;
	case FILL_NORMAL:
		return random_normal(random);
	case FILL_RUNNING_MEAN:
		return 0.1 * random_normal(random);
	case FILL_RUNNING_VARIANCE:
		return 0.8 + 0.45 * random_uniform(random);
	case FILL_CAUSAL: {
		int64_t columns = value->shape.dims[value->shape.rank - 1];

		/* Finite: -inf would give NaN where a whole row is masked. */
		return i % columns > i / columns % columns ? -1e9 : 0;
	}
	case FILL_ROTARY_COSINE:
		return cos(rotary_angle(value, i));
	case FILL_ROTARY_SINE:
		return sin(rotary_angle(value, i));
	}
	return 0;
}

static enum prony_status fill_tensor(const struct value *value, uint64_t seed, struct tensor *out,
				     struct arena *arena, struct error *err)
{
	const char *stream = arena_printf(arena, "weights/%s", value->name);
	int64_t count = shape_elements(&value->shape);
	bool he = value->fill == FILL_HE_NORMAL || value->fill == FILL_HE_UNIFORM;
	float *data = out->data;
	struct random random;

	if (he && value->fan_in < 1)
		return error_set(err, PRONY_BAD_INPUT,
				 "parameter '%s': its initial values are unknown, because the "
				 "graph was read from a file; read its weights from a file, too",
				 value->name);
	if (value->fill == FILL_IDENTITY &&
	    (value->shape.rank != 2 || value->shape.dims[0] != value->shape.dims[1]))
		return error_set(err, PRONY_BAD_INPUT,
				 "parameter '%s' must be a square matrix to start as the identity",
				 value->name);
	random_init_named(&random, seed, stream);
	for (int64_t i = 0; i < count; i++)
		data[i] = (float)(draw(&random, value, i) * value->fill_scale);
	return PRONY_OK;
}

static bool is_weight(const struct value *value)
{
	return value->kind == VALUE_PARAMETER || value->kind == VALUE_STATE;
}

enum prony_status graph_weights_like(const struct graph *graph, const struct tensor_set *given,
				     uint64_t seed, struct arena *arena, struct tensor_set *out,
				     struct error *err)
{
	struct tensor_set set = {.count = 0};

	for (int i = 0; i < graph->value_count; i++)
		set.count += is_weight(&graph->values[i]);
	set.tensors = arena_array(arena, set.count, sizeof(*set.tensors));
	set.count = 0;
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		const struct tensor *known;
		struct tensor *tensor = &set.tensors[set.count];
		enum prony_status status = PRONY_OK;

		if (!is_weight(value))
			continue;
		known = value->kind == VALUE_PARAMETER ? tensor_find(given, value->name) : NULL;
		if (known)
			*tensor = *known;
		else
			status = tensor_new(arena, value->name, DTYPE_F32, &value->shape, tensor,
					    err);
		if (status == PRONY_OK && !known)
			status = fill_tensor(value, seed, tensor, arena, err);
		if (status != PRONY_OK)
			return status;
		set.count++;
	}
	*out = set;
	return PRONY_OK;
}

enum prony_status graph_initial_weights(const struct graph *graph, uint64_t seed,
					struct arena *arena, struct tensor_set *out,
					struct error *err)
{
	return graph_weights_like(graph, &(struct tensor_set){.count = 0}, seed, arena, out, err);
}
