/* Axes from the command line, ranges, defaults, and the canonical text that --resume compares. */
#include "base/strbuf.h"
#include "spec/spec.h"
#include "unit_test.h"

/* "16,32,64" */
static char *joined(const struct spec_list *list)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	for (size_t i = 0; i < list->count; i++)
		strbuf_printf(&text, "%s%s", i > 0 ? "," : "", list->words[i].text);
	return strbuf_take(&text);
}

static void assert_list(const struct spec_list *list, const char *expected)
{
	char *text = test_keep(joined(list));

	assert_string_equal(text, expected);
}

TEST(numbers_expand)
{
	static const struct {
		const char *text, *expected;
	} rows[] = {
		{"64", "64"},
		{"16,32,64", "16,32,64"},
		{"1..64*2", "1,2,4,8,16,32,64"},
		{"b64,8", "64,8"},
		{"16..64+16", "16,32,48,64"},
		{"1..100*10", "1,10,100"},
		{"3..20*3", "3,9"},
		{"5..5+1", "5"},
		{"16..70+16", "16,32,48,64"},
		{"1,2..8*2,100", "1,2,4,8,100"},
		{"16777216", "16777216"},
		{"8388608..16777216*2", "8388608,16777216"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		struct spec_list list = {0};
		SCOPED(spec) spec;

		spec_init(&spec);
		if (spec_expand_numbers(&spec, rows[i].text, "-b", &list, &err) != PRONY_OK)
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_list(&list, rows[i].expected);
	}
}

TEST(broken_numbers_are_refused)
{
	static const char *const rows[] = {
		"",
		"0",
		"-1",
		"1.5",
		"x",
		"16,",
		",16",
		"16,,3",
		"1..",
		"1..64",
		"1..64*",
		"1..64*1",
		"1..64*0",
		"1..64+0",
		"64..1*2",
		"1..64-2",
		"1...64*2",
		" 1",
		"1 ",
		"16777217",
		"9999999999999",
		"+4",
		"0x10",
		"1e3",
		"1..64*2x",
		"1..5000+1",
		"1..2..3*2",
		"1..16777216+1",
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		struct spec_list list = {0};
		SCOPED(spec) spec;

		spec_init(&spec);
		assert_int_equal(spec_expand_numbers(&spec, rows[i], "-b", &list, &err),
				 PRONY_USAGE);
		assert_memory_equal(err.text, "-b: ", 4);
		assert_int_equal(list.count, 0);
	}
}

TEST(suites_and_options_have_their_own_exit_codes)
{
	struct error err = ERROR_INIT;
	struct spec_list list = {0};
	SCOPED(spec) spec;

	spec_init(&spec);
	expect_error(spec_expand_numbers(&spec, "many", "a.yaml:3: batches", &list, &err),
		     PRONY_BAD_INPUT, &err, "a.yaml:3: batches: \"many\"");
	assert_int_equal(prony_status_exit(PRONY_BAD_INPUT), 65);
	assert_int_equal(prony_status_exit(PRONY_USAGE), 64);
}

TEST(values_split_at_commas)
{
	static const char *const values[] = {"native,mxnet", "pytorch+compile"};
	static const char *const batches[] = {"1..4*2", "64,128"};
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;

	spec_init(&spec);
	check(spec_set_axis(&spec, AXIS_FRAMEWORK, values, 2, "-f", &err), &err);
	check(spec_set_axis(&spec, AXIS_BATCH, batches, 2, "-b", &err), &err);
	assert_list(&spec.axes[AXIS_FRAMEWORK], "native,mxnet,pytorch+compile");
	assert_list(&spec.axes[AXIS_BATCH], "1,2,4,64,128");
	assert_true(spec.cells_explicit);
	assert_string_equal(spec.axes[AXIS_FRAMEWORK].words[2].origin, "-f");
}

TEST(all_is_not_asked_for_by_name)
{
	static const char *const values[] = {"all,fake"};
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;

	spec_init(&spec);
	check(spec_set_axis(&spec, AXIS_FRAMEWORK, values, 1, "-f", &err), &err);
	assert_false(spec.cells_explicit);
}

TEST(broken_lists_leave_the_axis)
{
	static const char *const good[] = {"native"}, *const bad[] = {"mxnet,,pytorch"};
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;

	spec_init(&spec);
	check(spec_set_axis(&spec, AXIS_FRAMEWORK, good, 1, "-f", &err), &err);
	expect_error(spec_set_axis(&spec, AXIS_FRAMEWORK, bad, 1, "-f", &err), PRONY_USAGE, &err,
		     "empty word");
	assert_list(&spec.axes[AXIS_FRAMEWORK], "native");
}

TEST(defaults_fill_what_is_empty)
{
	static const char *const values[] = {"forward"};
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;

	spec_init(&spec);
	check(spec_set_axis(&spec, AXIS_STAGE, values, 1, "-s", &err), &err);
	spec_complete(&spec);
	assert_list(&spec.axes[AXIS_FRAMEWORK], "all");
	assert_list(&spec.axes[AXIS_NETWORK], "lenet");
	assert_list(&spec.axes[AXIS_DATASET], "");
	assert_list(&spec.axes[AXIS_DEVICE], "cpu");
	assert_list(&spec.axes[AXIS_PRECISION], "fp32");
	assert_list(&spec.axes[AXIS_BATCH], "64");
	assert_list(&spec.axes[AXIS_STAGE], "forward");
	assert_list(&spec.axes[AXIS_INPUT], "resident");
	assert_list(&spec.axes[AXIS_SYNC], "blocks");
	assert_list(&spec.axes[AXIS_OPTIMISER], "momentum");
	assert_list(&spec.axes[AXIS_DROPOUT], "on");
	assert_list(&spec.axes[AXIS_LEARNING_RATE], "0.001");
	assert_false(spec.cells_explicit);
}

/*
 * Stores are searched by this text, so the text of the first version's features may never change.
 */
TEST(canonical_text_is_golden)
{
	static const char *const rates[] = {"0.01,0.1"}, *const off[] = {"false"};
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;
	char *text;

	spec_init(&spec);
	spec_complete(&spec);
	text = spec_canonical(&spec);
	assert_string_equal(
		text, "suite=\nframeworks=all\nnetworks=lenet\ndevices=cpu\nprecisions=fp32\n"
		      "batches=64\nstages=train\ninputs=resident\nsyncs=blocks\n"
		      "optimisers=momentum\neffort=default\nsteps=0\nwarm-up-steps=-1\nrepeat=0\n"
		      "statistic=geometric\ndropout=on\nlearning-rate=0.001\n"
		      "momentum=0.90000000000000002\nweight-decay=0\nseed=1\n");
	free(text);
	check(spec_set_axis(&spec, AXIS_LEARNING_RATE, rates, 1, "--learning-rate", &err), &err);
	check(spec_set_axis(&spec, AXIS_DROPOUT, off, 1, "--dropout", &err), &err);
	text = spec_canonical(&spec);
	assert_has(text, "\ndropout=off\n"
			 "learning-rate=0.01,0.10000000000000001\n");
	free(text);
}

/* Each change of what runs changes the text; the origin of a word does not. */
TEST(canonical_text_tells_runs_apart)
{
	static const char *const two[] = {"native,mxnet"}, *const split[] = {"native", "mxnet"};
	struct error err = ERROR_INIT;
	SCOPED(spec) a, b;
	char *first, *second;

	spec_init(&a);
	spec_init(&b);
	spec_set_axis(&a, AXIS_FRAMEWORK, two, 1, "-f", &err);
	spec_set_axis(&b, AXIS_FRAMEWORK, split, 2, "--frameworks", &err);
	first = test_keep(spec_canonical(&a));
	second = spec_canonical(&b);
	assert_string_equal(first, second);
	free(second);

#define CHANGED(member, value)                                                                     \
	do {                                                                                       \
		struct spec changed = b;                                                           \
		changed.member = (value);                                                          \
		second = spec_canonical(&changed);                                                 \
		assert_string_not_equal(first, second);                                            \
		free(second);                                                                      \
	} while (0)
	CHANGED(effort, EFFORT_QUICK);
	CHANGED(steps, 10);
	CHANGED(warm_up_steps, 0);
	CHANGED(repeat, 3);
	for (int id = AXIS_NETWORK; id < AXIS_COUNT; id++) {
		static struct spec_word other = {"other", "test"};

		CHANGED(axes[id], ((struct spec_list){.words = &other, .count = 1}));
	}
	CHANGED(seed, 2);
	CHANGED(suite, "other");
#undef CHANGED
}

TEST(effort_has_words)
{
	enum effort effort = EFFORT_DEFAULT;

	assert_true(effort_parse("rigorous", &effort));
	assert_int_equal(effort, EFFORT_RIGOROUS);
	assert_false(effort_parse("hasty", &effort));
	assert_false(effort_parse(NULL, &effort));
	assert_int_equal(effort, EFFORT_RIGOROUS);
	assert_string_equal(effort_name(EFFORT_QUICK), "quick");
}
