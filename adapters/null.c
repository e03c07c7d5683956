#include "adapters/null.h"

#include <stdio.h>
#include <string.h>

struct null {
	struct arena arena;
	struct tensor_set weights; /* the given weights, returned by read */
};

static enum prony_status null_probe(struct session *s, struct probe *found, struct error *err)
{
	(void)s, (void)err;
	*found = (struct probe){
		.version = PRONY_VERSION,
		.stages = (1u << STAGE_PREFILL) - 1,
		.precisions = (1u << PRECISION_ASKED) - 1,
		.devices = {"cpu"},
		.device_count = 1,
	};
	return PRONY_OK;
}

static enum prony_status null_supports(const struct target *target, const struct graph *graph,
				       const struct recipe *recipe, struct error *why)
{
	(void)target;
	(void)graph, (void)recipe, (void)why;
	return PRONY_OK;
}

static enum prony_status null_open(struct session *s, const struct recipe *recipe,
				   struct effective *effective, struct error *err)
{
	(void)err;
	*effective = (struct effective){.precision = recipe->precision, .threads = recipe->threads};
	snprintf(effective->device, sizeof effective->device, "%s", s->target.device);
	return PRONY_OK;
}

static enum prony_status null_build(struct session *s, struct graph *graph,
				    const struct recipe *recipe, const struct tensor_set *weights,
				    struct built *built, struct error *err)
{
	struct null *null = s->private_data;

	(void)graph, (void)recipe;
	arena_init(&null->arena, 0);
	null->weights.tensors =
		arena_array(&null->arena, weights->count, sizeof *null->weights.tensors);
	for (size_t i = 0; i < weights->count; i++) {
		const struct tensor *given = &weights->tensors[i];
		struct tensor *kept = &null->weights.tensors[null->weights.count++];
		enum prony_status status =
			tensor_new(&null->arena, arena_strdup(&null->arena, given->name),
				   given->dtype, &given->shape, kept, err);

		if (status != PRONY_OK)
			return status;
		memcpy(kept->data, given->data, (size_t)tensor_bytes(given));
	}
	/* null has no layers to count. */
	*built = (struct built){.parameters = -1, .macs = -1};
	return PRONY_OK;
}

static enum prony_status null_feed(struct session *s, int slot, struct batch batch,
				   struct error *err)
{
	(void)s, (void)slot, (void)batch, (void)err;
	return PRONY_OK;
}

static enum prony_status null_step(struct session *s, int slot, struct error *err)
{
	(void)s, (void)slot, (void)err;
	return PRONY_OK;
}

static enum prony_status null_sync(struct session *s, struct error *err)
{
	(void)s, (void)err;
	return PRONY_OK;
}

/* Returns weights and states as given, otherwise zeros. */
static enum prony_status null_read(struct session *s, enum readout what, struct tensor_set *out,
				   struct error *err)
{
	const struct null *null = s->private_data;

	for (size_t i = 0; i < out->count; i++) {
		struct tensor *tensor = &out->tensors[i];
		const struct tensor *given = what == READ_WEIGHTS || what == READ_STATE
						     ? tensor_find(&null->weights, tensor->name)
						     : NULL;

		if (given && tensor_bytes(given) != tensor_bytes(tensor))
			return error_set(err, PRONY_INTERNAL,
					 "%s does not have the size of the tensor that was loaded",
					 tensor->name);
		if (given)
			memcpy(tensor->data, given->data, (size_t)tensor_bytes(tensor));
		else
			memset(tensor->data, 0, (size_t)tensor_bytes(tensor));
	}
	return PRONY_OK;
}

static void null_close(struct session *s)
{
	struct null *null = s->private_data;

	arena_release(&null->arena);
}

const struct adapter adapter_null = {
	.abi = ADAPTER_ABI,
	.name = "null",
	.summary = "computes nothing: measures prony's own overhead",
	.collectives = "nothing",
	.options = "",
	.private_size = sizeof(struct null),
	.probe = null_probe,
	.supports = null_supports,
	.open = null_open,
	.build = null_build,
	.feed = null_feed,
	.step = null_step,
	.sync = null_sync,
	.read = null_read,
	.close = null_close,
};
