/* Suite files: the meaning of the grammar, and broken or hostile files, which must end in one clear
 * message. */
#include <time.h>

#include "base/strbuf.h"
#include "spec/spec.h"
#include "tests/fuzz/seed_corpus.h"
#include "unit_test.h"

/* Reads the text as the file "mine.yaml" into an initialised spec. */
static enum prony_status read_bytes(const char *text, size_t length, struct spec *spec,
				    struct error *err)
{
	char *path = test_path("mine.yaml");

	assert_int_equal(file_write_atomic(path, text, length, NULL), PRONY_OK);
	spec_init(spec);
	return spec_read_file(spec, path, err);
}

static enum prony_status read_text(const char *text, struct spec *spec, struct error *err)
{
	return read_bytes(text, strlen(text), spec, err);
}

static void assert_list(const struct spec_list *list, const char *expected)
{
	struct strbuf *text = test_strbuf();

	for (size_t i = 0; i < list->count; i++)
		strbuf_printf(text, "%s%s", i > 0 ? "," : "", list->words[i].text);
	assert_string_equal(strbuf_text(text), expected);
}

static const char everything[] = "# a comment\n"
				 "summary: what it is for\n"
				 "frameworks: [native, 'keras3:jax+xla']\n"
				 "networks:\n"
				 "  - lenet\n"
				 "  - mlp\n"
				 "datasets: mnist,synthetic\n"
				 "devices: [cpu, cpu:4, cuda:0+1]\n"
				 "precisions: [fp32, bf16]\n"
				 "batches: [1..4*2, 64]\n"
				 "stages: [forward, train]\n"
				 "inputs: resident\n"
				 "syncs: [end, step, blocks]\n"
				 "optimisers: sgd\n"
				 "effort: rigorous\n"
				 "steps: 20\n"
				 "warm-up-steps: 0\n"
				 "repeat: 3\n"
				 "dropout: false\n"
				 "learning-rate: 1e-3\n"
				 "momentum: 0.5\n"
				 "weight-decay: .0005\n"
				 "seed: 7\n"
				 "origin: a benchmark, 2018\n"
				 "loss-every: 10\n"
				 "samples: 1000\n"
				 "epochs: 4\n"
				 "precisions-instead: [bf16, fp32]\n"
				 "exclude:\n"
				 "  - {networks: mlp, stages: train}\n"
				 "  - frameworks: native\n"
				 "    batches: 1..4*2\n"
				 "override:\n"
				 "  - networks: mlp\n"
				 "    batch: 16\n"
				 "    steps: 5\n"
				 "    warm-up-steps: 1\n"
				 "    learning-rate: 0.1\n";

TEST(every_key_is_read)
{
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;

	check(read_text(everything, &spec, &err), &err);
	assert_string_equal(spec.suite, "mine");
	assert_string_equal(spec.summary, "what it is for");
	assert_list(&spec.axes[AXIS_FRAMEWORK], "native,keras3:jax+xla");
	assert_list(&spec.axes[AXIS_NETWORK], "lenet,mlp");
	assert_list(&spec.axes[AXIS_DATASET], "mnist,synthetic");
	assert_list(&spec.axes[AXIS_DEVICE], "cpu,cpu:4,cuda:0+1");
	assert_list(&spec.axes[AXIS_PRECISION], "fp32,bf16");
	assert_list(&spec.axes[AXIS_BATCH], "1,2,4,64");
	assert_list(&spec.axes[AXIS_STAGE], "forward,train");
	assert_list(&spec.axes[AXIS_INPUT], "resident");
	assert_list(&spec.axes[AXIS_SYNC], "end,step,blocks");
	assert_list(&spec.axes[AXIS_OPTIMISER], "sgd");
	assert_int_equal(spec.effort, EFFORT_RIGOROUS);
	assert_int_equal(spec.steps, 20);
	assert_int_equal(spec.warm_up_steps, 0);
	assert_int_equal(spec.repeat, 3);
	assert_list(&spec.axes[AXIS_DROPOUT], "off");
	assert_list(&spec.axes[AXIS_LEARNING_RATE], "0.001");
	assert_list(&spec.axes[AXIS_MOMENTUM], "0.5");
	assert_list(&spec.axes[AXIS_WEIGHT_DECAY], "0.0005");
	assert_int_equal(spec.seed, 7);
	assert_string_equal(spec.origin, "a benchmark, 2018");
	assert_int_equal(spec.loss_every, 10);
	assert_int_equal(spec.samples, 1000);
	assert_int_equal(spec.epochs, 4);
	assert_list(&spec.precisions_instead, "bf16,fp32");
	assert_false(spec.cells_explicit);
}

/* An eighth of the batch, but at least two if there were two. */
TEST(a_screening_is_small)
{
	static const int64_t batches[][2] = {{1, 1},  {2, 2},  {3, 2},	  {16, 2},
					     {24, 3}, {32, 4}, {128, 16}, {1000, 125}};
	struct error err = ERROR_INIT;
	struct spec spec;

	check(read_text("networks: lenet\norigin: mine, 2020\nsteps: 100\n", &spec, &err), &err);
	assert_int_equal(spec_screened_batch(&spec, 128), 128);
	spec_screen(&spec);
	assert_int_equal(spec.steps, 3);
	assert_int_equal(spec.warm_up_steps, 1);
	assert_int_equal(spec.repeat, 3);
	for (size_t i = 0; i < COUNT(batches); i++)
		assert_int_equal(spec_screened_batch(&spec, batches[i][0]), batches[i][1]);
	spec_release(&spec);
	check(read_text("networks: mlp\norigin: mine, 2020\nsamples: 1000\nepochs: 4\n", &spec,
			&err),
	      &err);
	spec_screen(&spec);
	assert_int_equal(spec.samples, 128);
	assert_int_equal(spec.epochs, 2);
	assert_int_equal(spec.steps, 0);
	char *text = test_keep(spec_canonical(&spec));
	assert_has(text, "samples=128\nepochs=2\nbatch-divisor=8\nepochs-of=fit\n");
	spec_release(&spec);
}

/* Stored texts stay the same: these keys appear only in suites that use them. */
TEST(texts_of_other_suites_stay)
{
	static const char *const words[] = {"origin", "loss",	 "samples",
					    "epochs", "divisor", "instead"};
	struct error err = ERROR_INIT;
	struct spec spec;

	check(read_text("networks: lenet\n", &spec, &err), &err);
	char *text = spec_canonical(&spec);
	for (size_t i = 0; i < COUNT(words); i++)
		assert_lacks(text, words[i]);
	free(text);
	spec_release(&spec);
	check(read_text(everything, &spec, &err), &err);
	text = spec_canonical(&spec);
	assert_has(text, "\norigin=a benchmark, 2018\nloss-every=10\n"
			 "samples=1000\nepochs=4\nprecisions-instead=bf16,fp32\n");
	free(text);
	spec_release(&spec);
}

TEST(rules_are_read)
{
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;

	check(read_text(everything, &spec, &err), &err);
	assert_int_equal(spec.exclude_count, 2);
	assert_list(&spec.excludes[0].axes[AXIS_NETWORK], "mlp");
	assert_list(&spec.excludes[0].axes[AXIS_STAGE], "train");
	assert_list(&spec.excludes[0].axes[AXIS_FRAMEWORK], "");
	assert_list(&spec.excludes[1].axes[AXIS_BATCH], "1,2,4");
	assert_int_equal(spec.override_count, 1);
	assert_string_equal(spec.overrides[0].values[AXIS_BATCH], "16");
	assert_int_equal(spec.overrides[0].steps, 5);
	assert_int_equal(spec.overrides[0].warm_up_steps, 1);
	assert_string_equal(spec.overrides[0].values[AXIS_LEARNING_RATE], "0.1");
}

/* Each word stores its line, because only later code may know what is wrong with it. */
TEST(words_know_their_line)
{
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;

	check(read_text(everything, &spec, &err), &err);
	assert_has(spec.axes[AXIS_NETWORK].words[1].origin, "/mine.yaml:6: networks");
	assert_has(spec.axes[AXIS_FRAMEWORK].words[0].origin, "/mine.yaml:3: frameworks");
}

TEST(anchors_may_be_used)
{
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;

	check(read_text("networks: &nets [lenet, mlp]\n"
			"exclude:\n"
			"  - {networks: *nets, stages: forward}\n",
			&spec, &err),
	      &err);
	assert_list(&spec.excludes[0].axes[AXIS_NETWORK], "lenet,mlp");
}

struct broken {
	const char *text;
	int line;
	const char *words[3]; /* parts of the message */
};

static const struct broken broken_files[] = {
	{"", 1, {"empty", "networks: lenet"}},
	{"# nothing\n", 1, {"empty"}},
	{"---\n", 2, {"nothing"}},
	{"- lenet\n", 1, {"a list", "mapping"}},
	{"lenet\n", 1, {"\"lenet\"", "mapping"}},
	{"networks: lenet\nframeworkz: native\n", 2, {"frameworkz", "did you mean frameworks?"}},
	{"network: lenet\n", 1, {"network", "did you mean networks?"}},
	{"networks: lenet\n\n\nsomething: 1\n", 4, {"something", "Known: frameworks, networks"}},
	{"warm-up: 1\n", 1, {"warm-up-steps"}},
	{"networks:\n", 1, {"networks", "nothing"}},
	{"networks: ~\n", 1, {"networks", "nothing"}},
	{"networks: []\n", 1, {"networks", "the list is empty"}},
	{"networks: {lenet: 1}\n", 1, {"networks", "a mapping", "[one, another]"}},
	{"networks: [[lenet]]\n", 1, {"networks", "a list"}},
	{"networks:\n  - lenet\n  - {a: b}\n", 3, {"networks", "a mapping"}},
	{"networks: [lenet, '']\n", 1, {"networks", "needs a word"}},
	{"networks: lenet,,mlp\n", 1, {"networks", "empty word"}},
	{"batches: many\n", 1, {"batches", "many", "16,32"}},
	{"batches: [16, 1.5]\n", 1, {"batches", "1.5"}},
	{"batches: 0\n", 1, {"batches", "\"0\""}},
	{"batches: {a: 1}\n", 1, {"batches", "[16, 32]"}},
	{"networks: lenet\nrepeat: many\n", 2, {"repeat", "\"many\"", "write repeat: 3"}},
	{"repeat: '3'\n", 1, {"repeat", "\"3\" in quotes"}},
	{"repeat: 0\n", 1, {"repeat", "from 1 to 10000"}},
	{"repeat: 10001\n", 1, {"repeat", "from 1 to 10000"}},
	{"repeat: -1\n", 1, {"repeat"}},
	{"repeat: 1e3\n", 1, {"repeat"}},
	{"repeat: 99999999999999999999999\n", 1, {"repeat"}},
	{"repeat: [3]\n", 1, {"repeat", "a list"}},
	{"repeat: {a: 1}\n", 1, {"repeat", "a mapping"}},
	{"repeat:\n", 1, {"repeat", "nothing"}},
	{"learning-rate: 0\n", 1, {"learning-rate", "from 1e-12 to"}},
	{"learning-rate: nan\n", 1, {"learning-rate"}},
	{"learning-rate: inf\n", 1, {"learning-rate"}},
	{"learning-rate: 0x1p3\n", 1, {"learning-rate"}},
	{"learning-rate: 1e999\n", 1, {"learning-rate"}},
	{"learning-rate: 1e\n", 1, {"learning-rate"}},
	{"momentum: 1.5\n", 1, {"momentum", "from 0 to 1"}},
	{"dropout: maybe\n", 1, {"dropout", "true or false"}},
	{"dropout: yes\n", 1, {"dropout", "true or false"}},
	{"dropouts: [on, maybe]\n", 1, {"dropouts", "true or false", "\"maybe\""}},
	{"learning-rates: [0.1, 0]\n", 1, {"learning-rates", "from 1e-12 to", "\"0\""}},
	{"learning-rate: [0.1]\n", 1, {"learning-rate", "a list"}},
	{"learning-rate: '0.1'\n", 1, {"learning-rate", "in quotes"}},
	{"networks: lenet\norigin: \"a\\nb\"\n", 2, {"origin: needs one line"}},
	{"networks: lenet\nepochs: 4\n", 1, {"epochs: needs samples, too"}},
	{"samples: 10\n", 1, {"samples: needs epochs, too"}},
	{"samples: 10\nepochs: 1\n", 2, {"epochs: needs a whole number from 2", "epochs: 4"}},
	{"networks: lenet\nloss-every: 0\n", 2, {"loss-every: needs a whole number from 1"}},
	{"networks: lenet\nprecisions-instead: []\n", 2, {"precisions-instead: the list is empty"}},
	{"precision-instead: fp32\n", 1, {"did you mean precisions-instead?"}},
	{"lerning-rate: 0.1\n", 1, {"lerning-rate", "did you mean learning-rate?"}},
	{"effort: hasty\n", 1, {"effort", "quick, default or rigorous"}},
	{"steps: 0\n", 1, {"steps", "from 1"}},
	{"seed: -1\n", 1, {"seed"}},
	{"summary: [a]\n", 1, {"summary", "a line of text"}},
	{"exclude: {networks: lenet}\n", 1, {"exclude", "list of mappings"}},
	{"exclude: lenet\n", 1, {"exclude", "\"lenet\""}},
	{"exclude:\n  - lenet\n", 2, {"exclude", "mapping of axes"}},
	{"exclude:\n  - {}\n", 2, {"exclude", "selects no cells"}},
	{"exclude:\n  - network: lenet\n", 2, {"in exclude", "did you mean networks?"}},
	{"exclude:\n  - networks: lenet\n    batch: 3\n", 3, {"batch", "in exclude", "batches"}},
	{"override:\n  - networks: lenet\n", 2, {"override", "changes nothing"}},
	{"override:\n  - batch: 3\n", 2, {"override", "selects no cells"}},
	{"override:\n  - networks: lenet\n    repeat: 3\n", 3, {"repeat", "in override"}},
	{"override:\n  - networks: lenet\n    batch: x\n", 3, {"batch", "\"x\""}},
	{"networks: lenet\nstages: train\nnetworks: mlp\n",
	 3,
	 {"networks", "line 1", "remove one"}},
	{"exclude:\n  - networks: mlp\n    networks: mlp\n", 3, {"networks", "line 2"}},
	{"[a]: b\n", 1, {"a key must be a word", "a list"}},
	{"networks: !lenet mlp\n", 1, {"tag", "!lenet"}},
	{"networks: !!python/object:os.system [x]\n", 1, {"tag", "python"}},
	{"networks: !!int 3\n", 1, {"tag"}},
	{"networks: [lenet\nframeworks: native\n", 2, {"docs/suites.md"}},
	{"networks: lenet\n\tstages: train\n", 2, {"docs/suites.md"}},
	{"networks: \"lenet\n", 2, {"quoted scalar"}},
	{"networks: *nothing\n", 1, {"undefined alias"}},
	{"a: b: c\n", 1, {"not allowed"}},
	{"networks: lenet\n---\nnetworks: mlp\n", 2, {"second document"}},
	{"networks: lenet\n...\n%YAML 3.0\n---\n", 3, {"incompatible"}},
	{"networks: \x01\n", 1, {"control characters"}},
	{"stages: train\nnetworks: \xff\xfe\n", 2, {"UTF-8"}},
	{"networks: &a [*a]\n", 1, {"networks", "a list"}},
	{"exclude: &a [*a]\n", 1, {"exclude", "a list"}},
	{"<<: {networks: lenet}\n", 1, {"<<"}},
};

static void assert_message(const struct broken *row, const struct error *err)
{
	char place[64];

	snprintf(place, sizeof(place), "/mine.yaml:%d: ", row->line);
	if (!strstr(err->text, place))
		fail_msg("%s: no line %d in: %s", row->text, row->line, err->text);
	for (size_t i = 0; i < COUNT(row->words) && row->words[i]; i++)
		if (!strstr(err->text, row->words[i]))
			fail_msg("%s: no \"%s\" in: %s", row->text, row->words[i], err->text);
	if (strchr(err->text, '\n'))
		fail_msg("%s: several lines", row->text);
}

TEST(broken_files_get_one_message)
{
	for (size_t i = 0; i < COUNT(broken_files); i++) {
		struct error err = ERROR_INIT;
		SCOPED(spec) spec;
		enum prony_status status = read_text(broken_files[i].text, &spec, &err);

		if (status != PRONY_BAD_INPUT)
			fail_msg("%s: status %d: %s", broken_files[i].text, status, err.text);
		assert_message(&broken_files[i], &err);
		assert_list(&spec.axes[AXIS_NETWORK], "");
		assert_int_equal(spec.exclude_count, 0);
		assert_string_equal(spec.suite, "");
	}
}

/* A file that is too large, too deep or too wide soon ends in a message. */
static void hostile(const char *before, const char *repeated, size_t times, const char *after,
		    const char *word)
{
	struct error err = ERROR_INIT;
	struct strbuf *text = test_strbuf();
	SCOPED(spec) spec;
	clock_t begin = clock();

	strbuf_puts(text, before);
	for (size_t i = 0; i < times; i++)
		strbuf_printf(text, repeated, (int)i);
	strbuf_puts(text, after);
	enum prony_status status = read_bytes(text->text, text->length, &spec, &err);
	if (status != PRONY_BAD_INPUT || !strstr(err.text, word))
		fail_msg("%s: status %d: %s", repeated, status, err.text);
	assert_has(err.text, "mine.yaml");
	/* Generous for a sanitizer on a slow machine: quadratic work takes minutes. This is the
	 * process's own time, because others may use the processor meanwhile. */
	assert_true(clock() - begin < 5 * CLOCKS_PER_SEC);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

TEST(hostile_files_are_bounded)
{
	hostile("", "# %d\n", 100000, "", "limit of 65536 bytes");
	hostile("networks: ", "[", 60000, "", "nested more than 16");
	hostile("networks: ", "{a: ", 15000, "", "nested more than");
	hostile("networks: ", "[a, ", 16000, "", "nested more than");
	hostile("", "[[a]: ", 10000, "", "nested more than");
	hostile("networks: ", "? ", 30000, "", "");
	hostile("networks: ", "- ", 30000, "", "");
	hostile("", "k%d: 1\n", 5000, "", "5000 keys");
	hostile("exclude:\n", "- {networks: lenet}\n", 257, "", "257 rules");
	hostile("networks: [", "&a%d x, ", 6000, "y]\nbatches: 0\n", "\"0\"");
	hostile("networks: [", "*a%d, ", 6000, "y]\n", "undefined alias");
	hostile("networks: ", "lenet", 100, "\n", "longer than 200 letters");
	hostile("batches: [", "1..4000+1, ", 4, "1]\n", "more than 4096 numbers");
}

/* 256 rules of the same 1000 words: a few thousand bytes that expand to a quarter of a million
 * words. */
TEST(aliases_cannot_multiply)
{
	struct error err = ERROR_INIT;
	struct strbuf *text = test_strbuf();
	SCOPED(spec) spec;

	strbuf_puts(text, "networks: &bomb [");
	for (int i = 0; i < 1000; i++)
		strbuf_puts(text, "lenet, ");
	strbuf_puts(text, "mlp]\nexclude:\n");
	for (int i = 0; i < 256; i++)
		strbuf_puts(text, "  - {networks: *bomb}\n");
	expect_error(read_bytes(text->text, text->length, &spec, &err), PRONY_BAD_INPUT, &err,
		     "more than 32768 words");
}

#pragma GCC diagnostic pop

TEST(files_that_cannot_be_read_are_named)
{
	char *absent = test_path("absent.yaml");
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;

	spec_init(&spec);
	expect_error(spec_read_file(&spec, absent, &err), PRONY_BAD_INPUT, &err, "absent.yaml");
	expect_error(spec_read_file(&spec, test_folder(), &err), PRONY_BAD_INPUT, &err,
		     test_folder());
}

/* The installed files are examples that users copy, so they must be right. */
TEST(built_in_suites_are_right)
{
	const char *const *names = NULL;
	size_t count = 0;
	SCOPED(arena) arena;
	bool quickstart = false;

	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	arena_init(&arena, 0);
	assert_int_equal(spec_list_suites(&arena, &names, &count, NULL), PRONY_OK);
	for (size_t i = 0; i < count; i++) {
		struct error err = ERROR_INIT;
		SCOPED(spec) spec;
		char *path = NULL;

		check(spec_find_suite(names[i], &path, &err), &err);
		spec_init(&spec);
		check(spec_read_file(&spec, path, &err), &err);
		assert_string_equal(spec.suite, names[i]);
		assert_true(strlen(spec.summary) > 0);
		quickstart |= strcmp(names[i], "quickstart") == 0;
		free(path);
	}
	assert_true(quickstart);
}

TEST(suites_are_found_by_name_or_path)
{
	struct error err = ERROR_INIT;
	char *path = NULL;

	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	check(spec_find_suite("mine.yaml", &path, &err), &err);
	assert_string_equal(path, "mine.yaml");
	free(path);
	check(spec_find_suite("/somewhere/mine", &path, &err), &err);
	assert_string_equal(path, "/somewhere/mine");
	free(path);
	path = NULL;
	assert_int_equal(spec_find_suite("quickstrat", &path, &err), PRONY_BAD_INPUT);
	assert_null(path);
	assert_has(err.text, "did you mean quickstart?");
	error_clear(&err);
	assert_int_equal(spec_find_suite("..", &path, &err), PRONY_BAD_INPUT);
	error_clear(&err);
	assert_int_equal(spec_find_suite("", &path, &err), PRONY_BAD_INPUT);
}

/* The fuzzer's initial files, and the files that it found. */
TEST(corpus_is_survived)
{
	assert_true(corpus_run("suite", NULL) >= 8);
}

/* The document has each key that a message offers, and the built-in suites. */
TEST(document_has_every_key)
{
	char *path = test_keep(path_join(getenv("PRONY_SOURCE"), "docs/suites.md")), *text = NULL;
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;
	size_t length = 0, keys = 0;

	assert_int_equal(file_read(path, 1 << 20, &text, &length, NULL), PRONY_OK);
	assert_int_equal(read_text("zzzzzzzzzzzzz: 1\n", &spec, &err), PRONY_BAD_INPUT);
	const char *known = strstr(err.text, "Known: ");
	assert_non_null(known);
	for (known += strlen("Known: "); *known; keys++) {
		char key[64];
		size_t size = strcspn(known, ",");

		snprintf(key, sizeof(key), "`%.*s`", (int)size, known);
		if (!strstr(text, key))
			fail_msg("docs/suites.md does not tell of %s", key);
		known += size + strspn(known + size, ", ");
	}
	assert_true(keys > 20);
	free(text);
}
