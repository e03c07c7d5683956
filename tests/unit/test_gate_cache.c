/* Tests the gate's cache between runs: an entry is found only if nothing changed; otherwise the
 * value is computed. */
#include "frameworks/registry.h"
#include "run/gate_cache.h"
#include "unit_test.h"
#include "zoo/zoo.h"

#define SEED 5

static char key_of_one[DIGEST_HEX_BYTES], key_of_two[DIGEST_HEX_BYTES];

static int enter(void **state)
{
	setenv("XDG_CACHE_HOME", test_folder(), 1);
	digest_bytes("one", 3, key_of_one);
	digest_bytes("two", 3, key_of_two);
	return test_folder_setup(state);
}

#define WITH_CACHE(name) TEST_WITH(name, enter, NULL)

static void put(const struct cache *cache, const char *key, char fill, size_t length)
{
	char *file = test_keep(malloc(CACHE_HEAD_BYTES + length));
	struct error err = ERROR_INIT;

	assert_non_null(file);
	memset(file + CACHE_HEAD_BYTES, fill, length);
	check(cache_write(cache, key, file, CACHE_HEAD_BYTES + length, &err), &err);
}

static bool has(const struct cache *cache, const char *key)
{
	struct cache_entry entry = {0};
	enum prony_status status = cache_read(cache, key, &entry, NULL);

	free(entry.file);
	return status == PRONY_OK;
}

static char *file_of(const struct cache *cache, const char *key)
{
	return path_join(cache->folder, key);
}

/* Changes one byte of a file. */
static void damage(const char *path, off_t place)
{
	int fd = open(path, O_RDWR);
	char byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, place), 1);
	byte = (char)(byte ^ 1);
	assert_int_equal(pwrite(fd, &byte, 1, place), 1);
	close(fd);
}

WITH_CACHE(an_entry_is_found_under_its_key_alone)
{
	struct cache cache;
	struct cache_entry entry;

	cache_open("test", 1 << 20, &cache);
	assert_false(has(&cache, key_of_one));
	put(&cache, key_of_one, 'x', 100);
	assert_int_equal(cache_read(&cache, key_of_one, &entry, NULL), PRONY_OK);
	assert_int_equal(entry.length, 100);
	assert_int_equal(entry.payload[99], 'x');
	free(entry.file);
	assert_false(has(&cache, key_of_two));
	/* Under another name the file does not match its key. */
	char *one = file_of(&cache, key_of_one), *two = file_of(&cache, key_of_two);
	assert_int_equal(rename(one, two), 0);
	assert_false(has(&cache, key_of_two));
	free(one);
	free(two);
	cache_close(&cache);
	assert_false(has(&cache, key_of_one));
}

WITH_CACHE(a_damaged_entry_is_none_and_goes)
{
	static const off_t places[] = {0, 20, 100, CACHE_HEAD_BYTES, CACHE_HEAD_BYTES + 99};
	struct cache cache;

	cache_open("test", 1 << 20, &cache);
	char *path = file_of(&cache, key_of_one);
	for (size_t i = 0; i < COUNT(places); i++) {
		put(&cache, key_of_one, 'x', 100);
		damage(path, places[i]);
		assert_false(has(&cache, key_of_one));
		assert_false(file_exists(path));
	}
	put(&cache, key_of_one, 'x', 100);
	assert_int_equal(truncate(path, CACHE_HEAD_BYTES + 50), 0);
	assert_false(has(&cache, key_of_one));
	put(&cache, key_of_one, 'x', 100);
	assert_int_equal(truncate(path, 10), 0);
	assert_false(has(&cache, key_of_one));
	assert_int_equal(symlink("/dev/zero", path) == 0 || unlink(path) == 0, 1);
	assert_false(has(&cache, key_of_one));
	free(path);
	cache_close(&cache);
}

WITH_CACHE(what_was_not_used_for_longest_goes_first)
{
	struct cache cache;
	char keys[4][DIGEST_HEX_BYTES];

	cache_open("test", 4096, &cache);
	for (int i = 0; i < 4; i++) {
		struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};

		digest_bytes(&i, sizeof(i), keys[i]);
		if (i == 3)
			assert_true(has(&cache, keys[0])); /* used just now */
		put(&cache, keys[i], 'x', 1000);
		char *path = test_keep(file_of(&cache, keys[i]));
		if (i < 3)
			assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	}
	/* Three of 1,192 bytes fit into 4,096, four do not. */
	assert_true(has(&cache, keys[0]));
	assert_false(has(&cache, keys[1]));
	assert_true(has(&cache, keys[2]));
	assert_true(has(&cache, keys[3]));
	/* A file of more than half of the limit is not kept. */
	put(&cache, key_of_one, 'x', 2000);
	assert_false(has(&cache, key_of_one));
	cache_close(&cache);
}

static struct framework fake = {
	.name = "fake", .backend = "", .file = "", .kind = FRAMEWORK_BUILTIN};

static struct framework_location place; /* the place of the last cell made */

static struct plan_cell cell_of(const char *network, enum stage stage, enum optimiser optimiser)
{
	static const char *const argv[] = {"/nowhere/prony", "worker", NULL};
	static const char *const environment[] = {"OMP_NUM_THREADS=1", NULL};
	struct plan_cell cell = {.network = zoo_find(network, NULL),
				 .dataset = dataset_find("synthetic"),
				 .worker_argv = argv,
				 .worker_environment = environment,
				 .location = &place};

	place = (struct framework_location){
		.framework = &fake, .environment = "", .origin = ORIGIN_BUILTIN, .folder = ""};

	recipe_defaults(&cell.recipe);
	snprintf(cell.cell.framework, sizeof(cell.cell.framework), "fake");
	target_defaults(&cell.target);
	cell.recipe.stage = stage;
	cell.recipe.optimiser = optimiser;
	cell.recipe.batch = 8;
	return cell;
}

static void same_tensors(const struct tensor_set *a, const struct tensor_set *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_string_equal(a->tensors[i].name, b->tensors[i].name);
		assert_true(shape_equal(&a->tensors[i].shape, &b->tensors[i].shape));
		assert_memory_equal(a->tensors[i].data, b->tensors[i].data,
				    (size_t)tensor_bytes(&a->tensors[i]));
	}
}

static void same_doubles(const double *a, const double *b, size_t count)
{
	if (count > 0)
		assert_memory_equal(a, b, count * sizeof(*a));
}

static void same_answers(const struct gate_reference *a, const struct gate_reference *b)
{
	assert_int_equal(a->expected_count, b->expected_count);
	assert_int_equal(a->parameters, b->parameters);
	assert_int_equal(a->macs, b->macs);
	for (int i = 0; i < a->expected_count; i++) {
		const struct gate_expected *x = &a->expected[i], *y = &b->expected[i];
		size_t count = x->gradients.count + x->change.count;
		struct tensor_set p = {(struct tensor *)x->logits, GATE_UPDATES};
		struct tensor_set q = {(struct tensor *)y->logits, GATE_UPDATES};

		same_tensors(&p, &q);
		same_doubles(x->loss, y->loss, GATE_UPDATES);
		same_tensors(&x->gradients, &y->gradients);
		same_tensors(&x->change, &y->change);
		same_tensors(&x->state, &y->state);
		assert_int_equal(x->epsilon_inside, y->epsilon_inside);
		assert_int_equal(x->kinks, y->kinks);
		assert_int_equal(x->turned, y->turned);
		same_doubles(x->logits_slack, y->logits_slack, GATE_UPDATES);
		same_doubles(x->loss_slack, y->loss_slack, GATE_UPDATES);
		same_doubles(x->tensor_slack, y->tensor_slack, count);
		same_doubles(x->length_slack, y->length_slack, count);
		same_doubles(&x->whole_length_slack, &y->whole_length_slack, 1);
		same_doubles(x->state_slack, y->state_slack, x->state.count);
	}
}

/* Computes or reads the reference of a cell; checks that it is in the cache afterwards. */
static void answers_of(const struct plan_cell *cell, const struct cache *cache, uint64_t seed,
		       struct workload *work)
{
	struct error err = ERROR_INIT;

	check(workload_init(work, cell, seed, &err), &err);
	work->answers = cache;
	check(workload_need_gate(work, cell, seed, NULL, &err), &err);
	assert_true(has(cache, work->gate_key));
}

WITH_CACHE(kept_answers_are_those_computed)
{
	static const struct {
		const char *network;
		enum stage stage;
		enum optimiser optimiser;
	} cases[] = {{"mlp", STAGE_FORWARD, OPTIMISER_SGD},
		     {"mlp", STAGE_FORWARD_BACKWARD, OPTIMISER_SGD},
		     {"lenet", STAGE_TRAIN, OPTIMISER_MOMENTUM},
		     {"mlp", STAGE_TRAIN, OPTIMISER_RMSPROP}};
	struct cache cache;

	cache_open(ANSWERS_CACHE, ANSWERS_LIMIT_BYTES, &cache);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct plan_cell cell =
			cell_of(cases[i].network, cases[i].stage, cases[i].optimiser);
		SCOPED(workload) first, second, third;

		answers_of(&cell, &cache, SEED, &first);
		char *path = test_keep(file_of(&cache, first.gate_key));
		struct stat before, after;
		assert_int_equal(stat(path, &before), 0);
		answers_of(&cell, &cache, SEED, &second);
		assert_int_equal(stat(path, &after), 0);
		assert_int_equal(before.st_ino, after.st_ino); /* read, not written again */
		same_answers(&first.gate, &second.gate);
		assert_true(first.gate_recipe.learning_rate == second.gate_recipe.learning_rate);
		/* A damaged file is computed again. */
		damage(path, before.st_size / 2);
		answers_of(&cell, &cache, SEED, &third);
		same_answers(&first.gate, &third.gate);
	}
	cache_close(&cache);
}

WITH_CACHE(other_work_has_other_answers)
{
	struct plan_cell cells[] = {cell_of("mlp", STAGE_FORWARD, OPTIMISER_SGD),
				    cell_of("lenet", STAGE_FORWARD, OPTIMISER_SGD),
				    cell_of("mlp", STAGE_FORWARD_BACKWARD, OPTIMISER_SGD),
				    cell_of("mlp", STAGE_FORWARD, OPTIMISER_SGD),
				    cell_of("mlp", STAGE_FORWARD_BACKWARD, OPTIMISER_SGD),
				    cell_of("mlp", STAGE_FORWARD, OPTIMISER_SGD)};
	enum { CELLS = COUNT(cells) };
	char keys[CELLS][DIGEST_HEX_BYTES];
	struct error err = ERROR_INIT;

	cells[3].recipe.batch = 16;
	cells[4].recipe.precision = PRECISION_BF16;
	for (int i = 0; i < CELLS; i++) {
		SCOPED(workload) work;
		uint64_t seed = i == 5 ? SEED + 1 : SEED;

		check(workload_init(&work, &cells[i], seed, &err), &err);
		check(workload_need_gate_case(&work, &cells[i], seed, &err), &err);
		memcpy(keys[i], work.gate_key, sizeof(keys[i]));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(keys[i], keys[k]);
		/* Changes one weight, one pixel, one label. */
		struct answers_case of = {&work.gate_graph,  &work.gate_recipe, &work.weights,
					  &work.gate_inputs, &work.gate_labels, true};
		char *bytes[] = {of.weights->tensors[0].data, of.inputs->tensors[1].data,
				 of.labels->tensors[2].data};
		for (int k = 0; k < 3; k++) {
			char changed[DIGEST_HEX_BYTES];

			bytes[k][0] = (char)(bytes[k][0] ^ 1);
			answers_key("gate", &of, changed);
			assert_string_not_equal(changed, keys[i]);
			bytes[k][0] = (char)(bytes[k][0] ^ 1);
		}
		/* The number of cores does not matter. */
		char again[DIGEST_HEX_BYTES];
		struct recipe other = work.gate_recipe;
		other.threads = 7;
		of.recipe = &other;
		answers_key("gate", &of, again);
		assert_string_equal(again, keys[i]);
	}
}

/* Rounding decides comparisons, which matter only where something is differentiated. */
WITH_CACHE(precisions_share_answers)
{
	static const struct {
		enum stage stage;
		enum precision a, b;
	} rows[] = {{STAGE_FORWARD, PRECISION_FP32, PRECISION_BF16},
		    {STAGE_FORWARD, PRECISION_TF32, PRECISION_FP32},
		    {STAGE_TRAIN, PRECISION_TF32, PRECISION_FP16}};
	struct cache cache;

	cache_open(ANSWERS_CACHE, ANSWERS_LIMIT_BYTES, &cache);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct plan_cell a = cell_of("mlp", rows[i].stage, OPTIMISER_SGD), b = a;
		SCOPED(workload) first, second, alone;

		a.recipe.precision = rows[i].a;
		b.recipe.precision = rows[i].b;
		answers_of(&a, &cache, SEED, &first);
		answers_of(&b, &cache, SEED, &second);
		assert_string_equal(first.gate_key, second.gate_key);
		assert_int_equal(second.gate_recipe.precision, rows[i].b);
		directory_remove(cache.folder, NULL);
		answers_of(&b, &cache, SEED, &alone);
		same_answers(&second.gate, &alone.gate);
	}
	cache_close(&cache);
}

/* What another machine computed. */
WITH_CACHE(a_shared_folder_is_read)
{
	struct cache cache;

	cache_open("test", 1 << 20, &cache);
	put(&cache, key_of_one, 'x', 100);
	char *shared = test_path("shared/cache");
	assert_int_equal(directory_make(shared, NULL), PRONY_OK);
	assert_int_equal(rename(cache.folder, test_path("shared/cache/test")), 0);
	assert_false(has(&cache, key_of_one));
	cache_close(&cache);
	setenv("PRONY_SHARED", test_path("shared"), 1);
	cache_open("test", 1 << 20, &cache);
	unsetenv("PRONY_SHARED");
	assert_true(has(&cache, key_of_one));
	assert_false(has(&cache, key_of_two));
	char *entry = test_keep(path_join(test_path("shared/cache/test"), key_of_one));
	damage(entry, 100);
	assert_false(has(&cache, key_of_one));
	assert_true(file_exists(entry));
	cache_close(&cache);
}

WITH_CACHE(a_kept_loss_is_the_one_computed)
{
	struct plan_cell cell = cell_of("mlp", STAGE_TRAIN, OPTIMISER_SGD);
	struct error err = ERROR_INIT;
	struct cache cache;
	double means[2];

	cache_open(ANSWERS_CACHE, ANSWERS_LIMIT_BYTES, &cache);
	for (int i = 0; i < 2; i++) {
		volatile int stop = i; /* a second computation would be stopped */
		struct reference_control control = {.stop = &stop};
		SCOPED(workload) work;

		cell.recipe.precision = i ? PRECISION_BF16 : PRECISION_FP32;
		check(workload_init(&work, &cell, SEED, &err), &err);
		work.answers = &cache;
		check(workload_need_loss(&work, &cell, &control, &err), &err);
		means[i] = work.loss_mean;
	}
	assert_true(means[0] == means[1] && means[0] > 0);
	cache_close(&cache);
}

/* A cache of verdicts, a cell and its workload. */
struct gates {
	struct gate_cache cache;
	struct plan_cell cell;
	struct workload work;
};

static void open_gates(struct gates *g)
{
	struct error err = ERROR_INIT;
	char *self = test_keep(path_self());

	g->cell = cell_of("mlp", STAGE_FORWARD, OPTIMISER_SGD);
	gate_cache_open(&g->cache, self);
	check(workload_init(&g->work, &g->cell, SEED, &err), &err);
	check(workload_need_gate_case(&g->work, &g->cell, SEED, &err), &err);
}

static void close_gates(struct gates *g)
{
	gate_cache_close(&g->cache);
	workload_release(&g->work);
}

/* The framework's identity is remembered by its name; this test changes the framework under the
 * same name, so it clears the memory first. */
static void key_of(struct gates *g, char key[DIGEST_HEX_BYTES])
{
	g->cache.framework[0] = '\0';
	assert_true(gate_cache_key(&g->cache, &g->cell, &g->work, key));
}

static void write_file(const char *path, const char *text)
{
	assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), PRONY_OK);
}

WITH_CACHE(every_part_of_the_key_counts)
{
	static const char *const other_argv[] = {"/nowhere/prony", "worker", "--more", NULL};
	static const char *const other_rows[] = {"OMP_NUM_THREADS=2", NULL};
	char keys[16][DIGEST_HEX_BYTES], again[DIGEST_HEX_BYTES];
	int count = 0;
	struct gates g;

	open_gates(&g);
	struct plan_cell plain = g.cell;
	key_of(&g, keys[count++]);
	key_of(&g, again);
	assert_string_equal(again, keys[0]);
	setenv("TERM", "something", 1); /* idle */
	key_of(&g, again);
	assert_string_equal(again, keys[0]);

	g.cell.worker_argv = other_argv; /* worker */
	key_of(&g, keys[count++]);
	g.cell = plain;
	g.cell.worker_environment = other_rows; /* variables: applied, inherited */
	key_of(&g, keys[count++]);
	g.cell = plain;
	setenv("MKL_CBWR", "COMPATIBLE", 1);
	key_of(&g, keys[count++]);
	unsetenv("MKL_CBWR");
	g.cell.recipe.precision = PRECISION_BF16;
	key_of(&g, keys[count++]);
	g.cell = plain;
	g.cell.recipe.threads = 2; /* cell */
	key_of(&g, keys[count++]);
	g.cell = plain;
	snprintf(g.cell.target.options, sizeof(g.cell.target.options), "tf32");
	key_of(&g, keys[count++]);
	g.cell = plain;
	struct framework other = fake; /* descriptor */
	char *descriptor = test_path("fake.yaml");
	write_file(descriptor, "variables: [A=1]");
	other.file = descriptor;
	place.framework = &other;
	key_of(&g, keys[count++]);
	write_file(descriptor, "variables: [A=2]");
	key_of(&g, keys[count++]);
	place.framework = &fake;
	g.cell = plain;
	g.cache.program[0] ^= 1; /* program */
	key_of(&g, keys[count++]);
	g.cache.program[0] ^= 1;
	g.cache.machine[0] ^= 1; /* machine */
	key_of(&g, keys[count++]);
	g.cache.machine[0] ^= 1;
	g.work.gate_key[0] ^= 1; /* work */
	key_of(&g, keys[count++]);
	g.work.gate_key[0] ^= 1;
	key_of(&g, again);
	assert_string_equal(again, keys[0]);
	for (int i = 0; i < count; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(keys[i], keys[k]);
	close_gates(&g);
}

WITH_CACHE(files_of_worker_and_framework_count)
{
	char keys[5][DIGEST_HEX_BYTES], again[DIGEST_HEX_BYTES];
	struct gates g;

	open_gates(&g);
	char *worker = test_path("python/worker.py");
	char *module = test_path("python/adapters/one.py");
	char *library = test_path("framework/lib/one.so");
	char *compiled = test_path("framework/__pycache__/one.pyc");
	char *home = test_path("framework");
	for (char *const *path = (char *[]){worker, module, library, compiled, NULL}; *path;
	     path++) {
		char *parent = test_keep(strdup(*path));
		*strrchr(parent, '/') = '\0';
		assert_int_equal(directory_make(parent, NULL), PRONY_OK);
		write_file(*path, "1");
	}
	g.cell.worker_argv = (const char *const[]){"/usr/bin/python3", worker, NULL};
	place.origin = ORIGIN_INSTALLED;
	place.folder = home;
	key_of(&g, keys[0]);
	write_file(compiled, "12"); /* Python writes these files by itself */
	key_of(&g, again);
	assert_string_equal(again, keys[0]);
	write_file(worker, "12");
	key_of(&g, keys[1]);
	write_file(module, "12");
	key_of(&g, keys[2]);
	write_file(library, "12");
	key_of(&g, keys[3]);
	unlink(library);
	key_of(&g, keys[4]);
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(keys[i], keys[k]);
	close_gates(&g);
}

WITH_CACHE(what_we_did_not_install_is_never_kept)
{
	static const enum framework_origin others[] = {ORIGIN_NONE, ORIGIN_NAMED,
						       ORIGIN_DISCOVERED};
	char key[DIGEST_HEX_BYTES];
	struct gates g;

	open_gates(&g);
	for (size_t i = 0; i < COUNT(others); i++) {
		place.origin = others[i];
		g.cache.framework[0] = '\0';
		assert_false(gate_cache_key(&g.cache, &g.cell, &g.work, key));
	}
	place.origin = ORIGIN_BUILTIN;
	g.cache.framework[0] = '\0';
	assert_true(gate_cache_key(&g.cache, &g.cell, &g.work, key));
	struct framework foreign[] = {fake, fake};
	foreign[0].of_user = true;
	foreign[1].kind = FRAMEWORK_COMMAND;
	for (int i = 0; i < 2; i++) {
		place.framework = &foreign[i];
		g.cache.framework[0] = '\0';
		assert_false(gate_cache_key(&g.cache, &g.cell, &g.work, key));
	}
	place.framework = &fake;
	g.cache.framework[0] = '\0';
	snprintf(g.cell.target.device, sizeof(g.cell.target.device), "cuda:0");
	assert_false(gate_cache_key(&g.cache, &g.cell, &g.work, key));
	/* A GPU counts with its driver. */
	char other[DIGEST_HEX_BYTES];
	g.cell.gpu = "NVIDIA H200, sm_90, driver 1";
	assert_true(gate_cache_key(&g.cache, &g.cell, &g.work, key));
	g.cell.gpu = "NVIDIA H200, sm_90, driver 2";
	assert_true(gate_cache_key(&g.cache, &g.cell, &g.work, other));
	assert_string_not_equal(key, other);
	close_gates(&g);
	gate_cache_open(&g.cache, "/nowhere/prony");
	assert_null(g.cache.cache.folder);
	gate_cache_close(&g.cache);
}

WITH_CACHE(only_a_pass_is_kept)
{
	struct gate_outcome outcome = {
		.status = CELL_MISMATCH,
		.compared = true,
		.framework = json_pack("{s:s, s:s}", "name", "fake", "version", "1")};
	struct kept_gate kept;
	struct gates g;

	open_gates(&g);
	assert_false(gate_cache_read(&g.cache, key_of_one, &kept));
	gate_cache_write(&g.cache, key_of_one, &outcome);
	assert_false(gate_cache_read(&g.cache, key_of_one, &kept));
	outcome.status = CELL_OK;
	outcome.log = memory_strdup("what it printed");
	gate_cache_write(&g.cache, key_of_one, &outcome);
	assert_true(gate_cache_read(&g.cache, key_of_one, &kept));
	assert_string_equal(kept.log, "what it printed");
	assert_int_equal(strlen(json_string_or(kept.evidence, "cached", "")),
			 strlen("2026-11-22T05:00:00Z"));

	json_t *says = json_pack("{s:s, s:s, s:s}", "name", "fake", "version", "1", "notes", "x");
	assert_true(gate_cache_agrees(kept.evidence, says));
	json_object_set_new(says, "version", json_string("2"));
	assert_false(gate_cache_agrees(kept.evidence, says));
	json_object_set_new(says, "version", json_string("1"));
	json_object_set_new(says, "libraries", json_pack("{s:s}", "blas", "3"));
	assert_false(gate_cache_agrees(kept.evidence, says));
	kept_gate_release(&kept);
	json_decref(says);
	gate_outcome_release(&outcome);
	close_gates(&g);
}

int main(void)
{
	return unit_tests_run(NULL, NULL);
}
