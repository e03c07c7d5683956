/* Recipes: what a bundle contains about the training. */
#include "bundle/recipe.h"
#include "unit_test.h"

TEST(recipes_survive_json)
{
	struct error err = ERROR_INIT;
	struct recipe recipe, back;
	json_t *json, *again;

	recipe_defaults(&recipe);
	assert_int_equal(recipe.slots, 8);
	assert_true(recipe.dropout && recipe.momentum == 0.9 && recipe.learning_rate == 0.01);
	recipe.stage = STAGE_FORWARD_BACKWARD;
	recipe.precision = PRECISION_BF16;
	recipe.optimiser = OPTIMISER_RMSPROP;
	recipe.input = INPUT_STREAM;
	recipe.batch = 128;
	recipe.threads = 4;
	recipe.weight_decay = 5e-4;
	recipe.dropout = false;
	json = recipe_to_json(&recipe);
	assert_null(json_object_get(json, "clip_norm")); /* older workers know no such member */
	json_decref(json);
	recipe.clip_norm = 0.25;
	recipe.seed = INT64_MAX;
	json = recipe_to_json(&recipe);
	assert_non_null(json);
	check(recipe_from_json(json, &back, &err), &err);
	again = recipe_to_json(&back);
	assert_true(json_equal(json, again));
	assert_int_equal(back.stage, STAGE_FORWARD_BACKWARD);
	assert_int_equal(back.batch, 128);
	assert_true(back.seed == INT64_MAX && back.weight_decay == 5e-4 && !back.dropout);
	assert_true(back.clip_norm == 0.25);
	json_decref(again);
	json_decref(json);
}

TEST(bad_recipes_are_refused)
{
	static const struct {
		const char *key, *json, *message;
	} cases[] = {
		{"batch", "0", "\"batch\" is 0"},
		{"batch", "\"64\"", "batch"},
		{"batch", "4294967296", "\"batch\" is 4294967296"},
		{"threads", "-1", "\"threads\" is -1"},
		{"slots", "100000", "\"slots\""},
		{"seed", "-1", "\"seed\""},
		{"stage", "\"sprint\"", "'sprint' is not known"},
		{"precision", "\"fp8\"", "'fp8' is not known"},
		{"optimiser", "null", "optimiser"},
		{"input", "\"tape\"", "'tape' is not known"},
		{"learning_rate", "-0.1", "\"learning_rate\""},
		{"learning_rate", "null", "learning_rate"},
		{"dropout", "1", "dropout"},
	};
	struct recipe recipe, back = {.batch = 77};

	recipe_defaults(&recipe);
	for (size_t i = 0; i < COUNT(cases); i++) {
		json_auto_t *json = recipe_to_json(&recipe);
		struct error err = ERROR_INIT;

		json_object_set_new(json, cases[i].key,
				    json_loads(cases[i].json, JSON_DECODE_ANY, NULL));
		assert_int_equal(recipe_from_json(json, &back, &err), PRONY_BAD_INPUT);
		if (strstr(err.text, cases[i].message) == NULL)
			fail_msg("'%s' lacks '%s'", err.text, cases[i].message);
		assert_int_equal(back.batch, 77);
	}
}
