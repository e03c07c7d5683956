/* Default recipe, and recipes to and from JSON. */
#include "bundle/recipe.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/json.h"

#define RECIPE_MAX_SLOTS 4096
#define RECIPE_MAX_THREADS 65536

void recipe_defaults(struct recipe *recipe)
{
	*recipe = (struct recipe){
		.threads = 1,
		.stage = STAGE_TRAIN,
		.precision = PRECISION_FP32,
		.batch = 64,
		.slots = 8,
		.input = INPUT_RESIDENT,
		.optimiser = OPTIMISER_MOMENTUM,
		.learning_rate = 0.01,
		.momentum = 0.9,
		.rho = 0.9,
		.epsilon = 1e-7,
		.beta1 = 0.9,
		.beta2 = 0.999,
		.dropout = true,
	};
}

/* One row serves both directions, writing and reading. */
static const struct {
	const char *key;
	size_t offset;
	bool later; /* recipes of older versions lack it: the default */
} reals[] = {
	{"rho", offsetof(struct recipe, rho), false},
	{"epsilon", offsetof(struct recipe, epsilon), false},
	{"beta1", offsetof(struct recipe, beta1), true},
	{"beta2", offsetof(struct recipe, beta2), true},
};

/* The rows of cell/axes.h that are stored unchanged. */
static const struct {
	enum axis_id axis;
	size_t offset;
} shared[] = {
#define SAME(id, member) {AXIS_##id, offsetof(struct recipe, member)},
#define OWN(id, member)
#define X(id, member, type, enumeration, recipe, ...) recipe(id, member)
	CELL_AXES(X)
#undef X
#undef SAME
#undef OWN
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

json_t *recipe_to_json(const struct recipe *recipe)
{
	json_t *json;

	assert(recipe->seed <= INT64_MAX); /* JSON libraries read signed 64-bit integers */
	json = json_pack("{s:i, s:i, s:I}", "threads", recipe->threads, "slots", recipe->slots,
			 "seed", (json_int_t)recipe->seed);
	for (size_t i = 0; i < COUNT(shared); i++) {
		const struct axis *axis = &axes[shared[i].axis];
		const void *value = (const char *)recipe + shared[i].offset;
		char text[CELL_WORD_BYTES];

		axis_text(axis, value, text);
		/* Older recipes lack it. */
		if (axis->texts != AXIS_LATER || strcmp(text, axis->initial) != 0)
			json_object_set_new(json, axis->name, axis_to_json(axis, value));
	}
	for (size_t i = 0; i < COUNT(reals); i++)
		json_object_set_new(
			json, reals[i].key,
			json_number(*(const double *)((const char *)recipe + reals[i].offset)));
	return json;
}

static enum prony_status read_int(const json_t *json, const char *key, int64_t min, int64_t max,
				  int64_t *out, struct error *err)
{
	enum prony_status status = json_get_int(json, key, out, err);

	if (status == PRONY_OK && (*out < min || *out > max))
		return error_set(err, PRONY_BAD_INPUT, "\"%s\" is %lld; it must be %lld to %lld",
				 key, (long long)*out, (long long)min, (long long)max);
	return status;
}

static enum prony_status read_shared(const json_t *json, struct recipe *recipe, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < COUNT(shared) && status == PRONY_OK; i++) {
		const struct axis *axis = &axes[shared[i].axis];

		if (axis->texts != AXIS_LATER || json_object_get(json, axis->name))
			status = axis_from_json(axis, json, (char *)recipe + shared[i].offset, err);
	}
	return status;
}

static enum prony_status read_numbers(const json_t *json, struct recipe *recipe, struct error *err)
{
	int64_t threads, slots, seed;

	if (read_int(json, "threads", 1, RECIPE_MAX_THREADS, &threads, err) != PRONY_OK ||
	    read_int(json, "slots", 1, RECIPE_MAX_SLOTS, &slots, err) != PRONY_OK ||
	    read_int(json, "seed", 0, INT64_MAX, &seed, err) != PRONY_OK)
		return err->code;
	recipe->threads = (int)threads;
	recipe->slots = (int)slots;
	recipe->seed = (uint64_t)seed;
	for (size_t i = 0; i < COUNT(reals); i++) {
		double *out = (double *)(void *)((char *)recipe + reals[i].offset);

		if (reals[i].later && !json_object_get(json, reals[i].key))
			continue;
		if (json_get_real(json, reals[i].key, out, err) != PRONY_OK)
			return err->code;
		if (!isfinite(*out) || *out < 0)
			return error_set(err, PRONY_BAD_INPUT,
					 "\"%s\" is %g; it must be at least 0", reals[i].key, *out);
	}
	return PRONY_OK;
}

enum prony_status recipe_from_json(const json_t *json, struct recipe *out, struct error *err)
{
	struct error local = ERROR_INIT;
	struct recipe recipe;

	recipe_defaults(&recipe);
	if (!json_is_object(json))
		error_set(&local, PRONY_BAD_INPUT, "it must be an object");
	if (local.code == PRONY_OK)
		read_shared(json, &recipe, &local);
	if (local.code == PRONY_OK)
		read_numbers(json, &recipe, &local);
	if (local.code != PRONY_OK)
		return error_set(err, local.code, "recipe: %s", local.text);
	*out = recipe;
	return PRONY_OK;
}
