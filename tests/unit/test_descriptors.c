/* Tests the grammar of framework descriptors, the registry that they make, and which descriptors
 * are refused. */
#include "frameworks/descriptor.h"
#include "frameworks/folders_internal.h"
#include "tests/fuzz/seed_corpus.h"
#include "unit_test.h"

#define HEAD "name: mine\nsummary: a worker\n"
#define MINE HEAD "worker: {command: [./mine]}\n"

struct fixture {
	char *folder, *path; /* path: the path of mine.yaml in the folder */
	struct arena arena;
	struct framework rows[DESCRIPTOR_BACKENDS_MAX];
	size_t count;
	struct error err;
};

static int set_up(void **state)
{
	struct fixture *f = memory_alloc(sizeof(*f));

	*f = (struct fixture){0};
	arena_init(&f->arena, 0);
	if (directory_make_temporary("prony-descriptor-", &f->folder, NULL) != PRONY_OK)
		return -1;
	f->path = path_join(f->folder, "mine.yaml");
	setenv("XDG_DATA_HOME", f->folder, 1);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	directory_remove(f->folder, NULL);
	arena_release(&f->arena);
	free(f->path);
	free(f->folder);
	free(f);
	return 0;
}

#define IN_HOME(name) TEST_ON(name, set_up, tear_down, struct fixture *f)

static enum prony_status read_text(struct fixture *f, const char *text, bool of_user)
{
	error_clear(&f->err);
	assert_int_equal(file_write_atomic(f->path, text, strlen(text), NULL), PRONY_OK);
	return descriptor_read(f->path, of_user, &f->arena, f->rows, &f->count, &f->err);
}

static void read_good(struct fixture *f, const char *text)
{
	if (read_text(f, text, true) != PRONY_OK)
		fail_msg("%s", f->err.text);
}

static void assert_words(const struct word_list *list, const char *joined, struct arena *arena)
{
	assert_string_equal(words_joined(list, arena), joined);
}

IN_HOME(every_key_is_read)
{
	read_good(f, HEAD "worker: {python: mine, module: [keras, numpy], distribution: keras,\n"
			  "  versions: ['3.12', '3.11'], lock: shared}\n"
			  "variables: {A: '1', B: '{threads}'}\n"
			  "options:\n"
			  "  nhwc: {help: its layout, word: channels_last}\n"
			  "  quiet: {help: says less, variables: {C: 'x'}, recomputes: true}\n"
			  "  plain: {help: as it is}\n"
			  "  records: {help: reads them, native-input: [lmdb]}\n"
			  "stages: [forward, train]\nprecisions: bf16\ndevices: [cpu, cuda]\n"
			  "cuda-newest: sm_86\n"
			  "loops: [step, fit]\n"
			  "repairs:\n"
			  "- {why: asks, symlink: lib/a.so, to: b.so}\n"
			  "- {why: reads, write-file: etc/a, text: \"x\\ny\\n\"}\n"
			  "- {why: loads, stub-library: lib/c.so, symbols: [f, g]}\n");
	const struct framework *row = &f->rows[0];
	assert_int_equal(f->count, 1);
	assert_int_equal(row->kind, FRAMEWORK_PYTHON);
	assert_string_equal(row->adapter, "mine");
	assert_string_equal(row->backend, "");
	assert_words(&row->modules, "keras,numpy", &f->arena);
	assert_words(&row->pythons, "3.12,3.11", &f->arena);
	assert_words(&row->variables, "A=1,B={threads}", &f->arena);
	assert_string_equal(row->lock, "shared");
	assert_int_equal(row->stages, 1u << STAGE_FORWARD | 1u << STAGE_TRAIN);
	assert_int_equal(row->precisions, 1u << PRECISION_BF16);
	assert_int_equal(row->loops, 1u << LOOP_STEP | 1u << LOOP_FIT);
	assert_int_equal(row->cuda_newest, 86);
	assert_true(row->devices == FRAMEWORK_CUDA && row->of_user && !row->any_option);
	assert_int_equal(row->option_count, 4);
	assert_string_equal(
		framework_option_words(row, "nhwc,plain,quiet,records,unknown", &f->arena),
		"channels_last,plain,unknown");
	assert_true(framework_option(row, "quiet", 5)->recomputes);
	assert_words(&framework_option(row, "records", 7)->native_input, "lmdb", &f->arena);
	assert_int_equal(row->repair_count, 3);
	assert_int_equal(row->repairs[1].kind, REPAIR_WRITE_FILE);
	assert_string_equal(row->repairs[1].text, "x\ny\n");
	assert_words(&row->repairs[2].symbols, "f,g", &f->arena);
}

IN_HOME(backends_are_rows_over_their_framework)
{
	/* The order of keys does not matter: backends come before the keys that they extend. */
	read_good(
		f,
		"backends:\n"
		"  jax: {module: jax, variables: {BACKEND: jax}, versions: '3.12', stages: train}\n"
		"  torch: {environment: shared, repairs: [{why: w, symlink: a, to: b}]}\n"
		"variables: {ALL: x}\n"
		"repairs: [{why: v, symlink: c, to: d}]\n" HEAD
		"worker: {python: mine.py, module: keras, versions: ['3.11']}\n");
	const struct framework *jax = &f->rows[0], *torch = &f->rows[1];
	assert_int_equal(f->count, 2);
	assert_string_equal(jax->adapter, arena_printf(&f->arena, "%s/mine.py", f->folder));
	assert_words(&jax->modules, "jax", &f->arena);
	assert_words(&torch->modules, "keras", &f->arena);
	assert_words(&jax->variables, "ALL=x,BACKEND=jax", &f->arena);
	assert_words(&torch->variables, "ALL=x", &f->arena);
	assert_words(&torch->pythons, "3.11", &f->arena);
	assert_int_equal(jax->stages, 1u << STAGE_TRAIN);
	assert_true(jax->repair_count == 1 && torch->repair_count == 2);
	assert_string_equal(torch->repairs[0].why, "v");
	assert_string_equal(framework_spelling(jax, "old", &f->arena), "mine@old:jax");
	assert_string_equal(framework_environment_name(jax, "old", &f->arena), "mine@old=jax");
	assert_string_equal(framework_environment_name(jax, "", &f->arena), "mine=jax");
	assert_string_equal(framework_environment_name(torch, "old", &f->arena), "mine@old");
	assert_string_equal(framework_variable("mine@old:jax", "PYTHON", &f->arena),
			    "PRONY_MINE_OLD_JAX_PYTHON");
}

IN_HOME(commands_and_variables_are_filled_in)
{
	struct framework_location place;
	const char *const *argv, *const *rows;

	read_good(f, HEAD "worker: {command: [sh, '{here}/m', '{threads}', '{\"a\": 1}']}\n"
			  "variables: {OMP_NUM_THREADS: '7', C: '{cache}'}\n"
			  "options: {fast: {help: h, variables: {C: '2'}}}\n");
	assert_int_equal(framework_locate(&f->rows[0], "", &f->arena, &place, NULL), PRONY_OK);
	assert_int_equal(place.origin, ORIGIN_NAMED);
	assert_int_equal(
		framework_worker_command(&place, "self", "fast", 2, &f->arena, &argv, &rows, NULL),
		PRONY_OK);
	assert_true(argv[0][0] == '/');
	assert_string_equal(argv[1], arena_printf(&f->arena, "%s/m", f->folder));
	assert_string_equal(argv[2], "2");
	assert_string_equal(argv[3], "{\"a\": 1}");
	assert_null(argv[4]);
	/* Later rows take precedence. */
	assert_string_equal(rows[0], "OMP_NUM_THREADS=2");
	assert_string_equal(rows[3], "OMP_NUM_THREADS=7");
	assert_string_equal(rows[4], arena_printf(&f->arena, "C=%s/prony/cache/mine", f->folder));
	assert_string_equal(rows[5], "C=2");
	assert_null(rows[6]);

	assert_int_equal(framework_locate(&f->rows[0], "env", &f->arena, &place, NULL), PRONY_OK);
	assert_has(place.reason, "has no environments");
	read_good(f, HEAD "worker: {command: [/nowhere/mine]}\n");
	assert_int_equal(framework_locate(&f->rows[0], "", &f->arena, &place, NULL), PRONY_OK);
	assert_has(place.reason, "the command /nowhere/mine is not a program");
}

static const struct {
	const char *text;
	int line; /* 0: the message is about the whole file */
	const char *message;
} bad[] = {
	{"", 1, "the file is empty; a framework descriptor needs at least"},
	{"- a\n", 1, "a framework descriptor must be a mapping"},
	{"summary: x\n", 1, "the key name is missing; write name: mine"},
	{"name: mine\n", 1, "the key summary is missing"},
	{HEAD, 1, "the key worker is missing"},
	{"name: other\nsummary: x\n", 0, "must be the file name; rename"},
	{"name: Mine\nsummary: x\n", 0, "invalid name"},
	{"name: mine@x\n", 0, "invalid name"},
	{MINE "sumary: x\n", 4, "unknown key \"sumary\"; did you mean summary?"},
	{HEAD "worker: {comand: [x]}\n", 3,
	 "unknown key \"comand\" in worker; did you mean command?"},
	{HEAD "worker: mine\n", 3, "worker must be a mapping, not \"mine\""},
	{HEAD "worker: {}\n", 3, "worker must be a mapping"},
	{HEAD "worker: {command: ./mine -x}\n", 3, "command must be a list of words"},
	{HEAD "worker: {command: []}\n", 3, "command must be a list"},
	{HEAD "worker: {command: [[a]]}\n", 3, "command must be a list of words, not"},
	{HEAD "worker: {command: [a, '{thread}']}\n", 3,
	 "unknown placeholder {thread} (did you mean {threads}?)"},
	{HEAD "worker: {python: native, command: [x]}\n", 3,
	 "has 2 of adapter, python and command"},
	{HEAD "worker: {adapter: native}\n", 3, "adapter: is only for prony's own frameworks"},
	{MINE "stages: \"train\\0x\"\n", 4, "\"train\" is followed by a NUL"},
	{MINE "\"floor\\0x\": true\n", 4, "is followed by a NUL"},
	{HEAD "worker: {module: x}\n", 3, "has 0 of adapter, python and command"},
	{HEAD "worker: {command: [x], library: a}\n", 3, "library is only for adapter"},
	{HEAD "worker: {command: [x], module: a}\n", 3, "module and versions are only for python"},
	{HEAD "worker: {python: x}\n", 3, "has no module"},
	{MINE "stages: [fly]\n", 4, "stages must be one or more of forward"},
	{MINE "precisions: fp31\n", 4, "precisions must be one or more of fp32"},
	{MINE "loops: often\n", 4, "loops must be step, fit or both"},
	{MINE "devices: [gpu]\n", 4,
	 "devices must be one or more of cpu, cuda and any, not \"gpu\""},
	{MINE "lacks: [adam]\n", 4, "lacks must be a list of stages and optimisers, not"},
	{MINE "cuda-newest: 8.6\n", 4, "cuda-newest must be sm_ and two or three digits, not"},
	{MINE "variables: x\n", 4, "variables must be a mapping of names"},
	{MINE "variables: {1A: x}\n", 4, "invalid variable name \"1A\""},
	{MINE "variables: {A: [x]}\n", 4,
	 "variables must be a mapping of names to texts, not a list"},
	{MINE "variables: {A: '{here'}\nfloor: true\n", 5, "floor is only for prony's own"},
	{MINE "floor: true\n", 4, "floor is only for prony's own descriptors; remove it"},
	{MINE "options: all\n", 4, "options must be a mapping"},
	{MINE "options: {a: {word: b}}\n", 4, "option a has no help"},
	{MINE "options: {A B: {help: b}}\n", 4, "invalid name"},
	{MINE "options: {a+b: {help: b}}\n", 4, "invalid name"},
	{MINE "options: {a: {halp: b}}\n", 4,
	 "unknown key \"halp\" in options; did you mean help?"},
	{MINE "backends: {}\n", 4, "backends must be a mapping"},
	{MINE "backends: {Jax: {environment: own}}\n", 4, "invalid name"},
	{MINE "backends: {jax: {environment: mine}}\n", 4, "environment must be own or shared"},
	{MINE "backends: {jax: {module: x}}\n", 4, "module and versions are only for python"},
	{MINE "backends: {jax: {name: x}}\n", 4, "unknown key \"name\" in backends"},
	{MINE "repairs: x\n", 4, "repairs must be a list of steps"},
	{MINE "repairs: [x]\n", 4, "repairs must be a mapping"},
	{MINE "repairs: [{symlink: a, to: b}]\n", 4, "has no reason"},
	{MINE "repairs: [{why: a}]\n", 4, "each step must have symlink and to"},
	{MINE "repairs: [{why: a, symlink: b}]\n", 4, "each step must have symlink and to"},
	{MINE "repairs: [{why: a, symlink: b, text: c}]\n", 4,
	 "each step must have symlink and to"},
	{MINE "repairs: [{why: a, symlink: b, write-file: c, to: d}]\n", 4, "each step must have"},
	{MINE "repairs: [{why: a, stub-library: b, to: c}]\n", 4, "each step must have"},
	{MINE "repairs: [{why: a, symlink: ../b, to: c}]\n", 4, "is outside the environment"},
	{MINE "repairs: [{why: a, symlink: /b, to: c}]\n", 4, "is outside the environment"},
};

IN_HOME(what_is_wrong_is_named)
{
	for (size_t i = 0; i < COUNT(bad); i++) {
		char place[32];

		if (read_text(f, bad[i].text, true) != PRONY_BAD_INPUT)
			fail_msg("taken: %s", bad[i].text);
		snprintf(place, sizeof(place), "/mine.yaml:%d: ", bad[i].line);
		if (!strstr(f->err.text, bad[i].line ? place : "/mine.yaml: ") ||
		    !strstr(f->err.text, bad[i].message))
			fail_msg("'%s%s' is not in: %s", place, bad[i].message, f->err.text);
	}
	/* A descriptor of the tree may set this key. */
	assert_int_equal(read_text(f, MINE "floor: true\n", false), PRONY_OK);
	assert_true(f->rows[0].floor);
}

static void put(struct fixture *f, const char *name, const char *text)
{
	char *folder = test_keep(path_join(f->folder, "prony/frameworks")),
	     *path = test_keep(path_join(folder, name));

	assert_int_equal(directory_make(folder, NULL), PRONY_OK);
	assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), PRONY_OK);
}

IN_HOME(the_users_stand_behind_the_trees)
{
	struct registry registry;
	struct error err = ERROR_INIT;

	setenv("XDG_CONFIG_HOME", f->folder, 1);
	put(f, "mine.yaml", MINE);
	put(f, "mine.yaml~", "not read");
	put(f, ".hidden.yaml", "not read");
	check(registry_load(&registry, &err), &err);
	assert_string_equal(registry.rows[0].name, "native");
	assert_string_equal(registry.rows[registry.count - 1].name, "mine");
	assert_int_equal(registry.note_count, 0);
	assert_non_null(framework_find(&registry, "mine", ""));
	assert_null(framework_find(&registry, "mine", "jax"));

	check(registry_add_worker(&registry, "fast= 'a b'/\"c\\\"d\"  e\\ f ", &err), &err);
	const struct framework *fast = framework_find(&registry, "fast", "");
	assert_int_equal(fast->command.count, 2);
	assert_string_equal(fast->command.words[0], "a b/c\"d");
	assert_string_equal(fast->command.words[1], "e f");
	expect_error(registry_add_worker(&registry, "mine=x", &err), PRONY_USAGE, &err,
		     "mine is already used by");
	registry_release(&registry);

	/* A name that the tree uses: the message names both files. */
	put(f, "mxnet.yaml", "name: mxnet\nsummary: x\nworker: {command: [x]}\n");
	assert_int_equal(registry_load(&registry, NULL), PRONY_OK);
	assert_int_equal(registry.note_count, 1);
	assert_has(registry.notes[0],
		   "prony/frameworks/mxnet.yaml: the name mxnet is already used by");
	assert_has(registry.notes[0], "frameworks/descriptors/mxnet.yaml");
	assert_null(framework_find(&registry, "mxnet", NULL)->broken);
	registry_release(&registry);
	unsetenv("XDG_CONFIG_HOME");
}

/* A broken descriptor gives a row with the reason why it cannot be used; the other rows are
 * unchanged. */
IN_HOME(a_broken_one_harms_no_other)
{
	struct registry registry;
	struct framework_location place;

	setenv("XDG_CONFIG_HOME", f->folder, 1);
	put(f, "fine.yaml", "name: fine\nsummary: x\nworker: {command: [sh]}\n");
	put(f, "mine.yaml", MINE "sumary: x\n");
	put(f, "Not A Name.yaml", "[");
	assert_int_equal(registry_load(&registry, NULL), PRONY_OK);
	assert_int_equal(registry.note_count, 2);
	assert_has(registry.notes[1], "mine.yaml:4: unknown key \"sumary\"");
	const struct framework *mine = framework_find(&registry, "mine", NULL);
	assert_has(mine->broken, "mine.yaml:4: unknown key");
	assert_int_equal(framework_locate(mine, "", &f->arena, &place, NULL), PRONY_OK);
	assert_int_equal(place.origin, ORIGIN_NONE);
	assert_string_equal(place.reason, mine->broken);
	struct install_item item = {.framework = mine, .environment = "", .error = ERROR_INIT};
	assert_int_equal(framework_install_many(&item, 1, 1, NULL), PRONY_BAD_INPUT);
	assert_int_equal(framework_remove(mine, "", NULL), PRONY_BAD_INPUT);
	const struct framework *fine = framework_find(&registry, "fine", NULL);
	assert_int_equal(framework_locate(fine, "", &f->arena, &place, NULL), PRONY_OK);
	assert_int_equal(place.origin, ORIGIN_NAMED);
	registry_release(&registry);
	unsetenv("XDG_CONFIG_HOME");
}

/* root starts no program from a file that another user wrote. */
IN_HOME(roots_rights_are_guarded)
{
	struct registry registry;

	if (geteuid() != 0)
		skip();
	setenv("XDG_CONFIG_HOME", f->folder, 1);
	put(f, "mine.yaml", MINE);
	char *path = test_keep(path_join(f->folder, "prony/frameworks/mine.yaml"));
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(registry_load(&registry, NULL), PRONY_OK);
	assert_null(framework_find(&registry, "mine", NULL));
	assert_int_equal(registry.note_count, 1);
	assert_has(registry.notes[0], path);
	registry_release(&registry);
	unsetenv("XDG_CONFIG_HOME");
}

IN_HOME(the_corpus_of_the_fuzz_target_does_no_harm)
{
	assert_true(corpus_run("descriptor", NULL) >= 8);
}
