/* Tests the words of the axes. */
#include "cell/vocabulary.h"
#include "unit_test.h"

TEST(words_round_trip)
{
	static const struct vocabulary *const all[] = {
#define X(name, words, prefix) &name##_vocabulary,
		VOCABULARIES(X)
#undef X
	};
	for (size_t v = 0; v < COUNT(all); v++) {
		assert_true(all[v]->count > 1);
		for (int i = 0; i < all[v]->count; i++)
			assert_int_equal(vocabulary_find(all[v], vocabulary_word(all[v], i)), i);
		assert_string_equal(vocabulary_word(all[v], all[v]->count), "?");
		assert_string_equal(vocabulary_word(all[v], -1), "?");
		assert_int_equal(vocabulary_find(all[v], "?"), -1);
	}
}

TEST(words_and_aliases)
{
	enum stage stage = STAGE_LOAD;
	enum precision precision = PRECISION_TF32;

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
