/* Tests the words of the axes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cell/vocabulary.h"

static void words_round_trip(void **state)
{
	static const struct vocabulary *const all[] = {
#define X(name, words, prefix) &name##_vocabulary,
		VOCABULARIES(X)
#undef X
	};
	(void)state;
	for (size_t v = 0; v < sizeof all / sizeof *all; v++) {
		assert_true(all[v]->count > 1);
		for (int i = 0; i < all[v]->count; i++)
			assert_int_equal(vocabulary_find(all[v], vocabulary_word(all[v], i)), i);
		assert_string_equal(vocabulary_word(all[v], all[v]->count), "?");
		assert_string_equal(vocabulary_word(all[v], -1), "?");
		assert_int_equal(vocabulary_find(all[v], "?"), -1);
	}
}

static void words_and_aliases(void **state)
{
	enum stage stage = STAGE_LOAD;
	enum precision precision = PRECISION_TF32;

	(void)state;
	assert_true(stage_parse("eval", &stage));
	assert_int_equal(stage, STAGE_FORWARD);
	stage = STAGE_LOAD;
	assert_true(stage_parse("infer", &stage));
	assert_int_equal(stage, STAGE_FORWARD);
	stage = STAGE_TRAIN;
	assert_false(stage_parse("training", &stage));
	assert_false(stage_parse("", &stage));
	assert_false(stage_parse(NULL, &stage));
	assert_int_equal(stage, STAGE_TRAIN);
	assert_false(precision_parse("FP32", &precision));
	assert_int_equal(precision, PRECISION_TF32);
	assert_string_equal(stage_name(STAGE_FORWARD_BACKWARD), "forward-backward");
	assert_string_equal(sync_mode_name(SYNC_BLOCKS), "blocks");
	assert_string_equal(optimiser_name(OPTIMISER_RMSPROP), "rmsprop");
	assert_string_equal(input_mode_name((enum input_mode)99), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_round_trip),
		cmocka_unit_test(words_and_aliases),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
