/* Cells and their spellings, the record of a process and its summary. */
#include "cell/cell.h"
#include "samples/record.h"
#include "unit_test.h"

TEST(statuses_and_flags_come_back)
{
	char text[CELL_FLAGS_BYTES], small[16];

	for (int i = 0; i < CELL_STATUS_COUNT; i++) {
		enum cell_status status = CELL_STATUS_COUNT;
		assert_true(cell_status_parse(cell_status_name((enum cell_status)i), &status));
		assert_int_equal(status, i);
	}
	enum cell_status kept = CELL_OK;
	assert_false(cell_status_parse("fine", &kept) || cell_status_parse(NULL, &kept));
	assert_int_equal(kept, CELL_OK);
	assert_string_equal(cell_status_name(CELL_STATUS_COUNT), "?");
	for (unsigned flags = 0; flags < 4096; flags++) {
		cell_flags_text(flags, text, sizeof text);
		assert_int_equal(cell_flags_parse(text), flags);
	}
	assert_string_equal(text,
			    "not-steady,not-converged,screening,few-steps,discovered,disturbed,"
			    "gate-only,agreement,fed-by-script,equal-maxima,coarse-gate,waits");
	cell_flags_text(63, small, sizeof small); /* whole words only */
	assert_string_equal(small, "not-steady");
	assert_int_equal(cell_flags_parse("unknown,screening,,screenin"), CELL_FLAG_SCREENING);
	assert_int_equal(cell_flags_parse(NULL), 0);
}

TEST(outcomes_become_statuses)
{
	assert_int_equal(cell_status_from(PRONY_OK), CELL_OK);
	assert_int_equal(cell_status_from(PRONY_PROTOCOL), CELL_CRASHED);
	assert_int_equal(cell_status_from(PRONY_CRASHED), CELL_CRASHED);
	assert_int_equal(cell_status_from(PRONY_INTERNAL), CELL_INVALID);
	assert_int_equal(cell_status_from(PRONY_NOMEM), CELL_OUT_OF_MEMORY);
	assert_int_equal(cell_status_from(PRONY_INTERRUPTED), CELL_PENDING);
	/* Only PRONY_OK gives the cell status ok; every failure is stored as another status. */
	for (int i = PRONY_OK + 1; i <= PRONY_STATUS_COUNT; i++)
		assert_int_not_equal(cell_status_from((enum prony_status)i), CELL_OK);
}

TEST(frameworks_are_canonical)
{
	static const struct {
		const char *spelling, *canonical, *name, *environment, *backend, *options;
	} rows[] = {
		{"native", "native", "native", "", "", ""},
		{"pytorch@1.13+channels_last", "pytorch@1.13+channels_last", "pytorch", "1.13", "",
		 "channels_last"},
		{"keras3:jax", "keras3:jax", "keras3", "", "jax", ""},
		{"tensorflow+xla+nhwc+xla", "tensorflow+nhwc+xla", "tensorflow", "", "",
		 "nhwc,xla"},
		{"keras2@Old_1:cntk+b+a", "keras2@Old_1:cntk+a+b", "keras2", "Old_1", "cntk",
		 "a,b"},
		{"fake+crash-at=build+after=3", "fake+after=3+crash-at=build", "fake", "", "",
		 "after=3,crash-at=build"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		struct cell cell = {.network = "kept"};
		check(cell_parse_framework(rows[i].spelling, &cell, &err), &err);
		assert_string_equal(cell.framework, rows[i].canonical);
		assert_string_equal(cell.name, rows[i].name);
		assert_string_equal(cell.environment, rows[i].environment);
		assert_string_equal(cell.backend, rows[i].backend);
		assert_string_equal(cell.options, rows[i].options);
		assert_string_equal(cell.network, "kept");
		/* The canonical spelling parses to the same cell. */
		struct cell again = {.network = "kept"};
		check(cell_parse_framework(cell.framework, &again, &err), &err);
		assert_memory_equal(&cell, &again, sizeof cell);
	}
}

TEST(bad_frameworks_are_explained)
{
	static const char *const bad[] = {
		"",
		"@1",
		"a@",
		"a:",
		"a+",
		"a++b",
		"A",
		"a b",
		"a@1@2",
		"a:b:c",
		"a+x:y",
		"a:b@c",
		"a\nb",
		"-f",
		"a+-x",
		"a+=1",
		"a/../b",
		"a@../b",
		"a+\xff",
		"a;reboot",
		"\xc3\xbc",
		"a+x,y",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct error err = ERROR_INIT;
		struct cell cell = {.framework = "as it was"};
		if (cell_parse_framework(bad[i], &cell, &err) != PRONY_USAGE)
			fail_msg("'%s' was taken", bad[i]);
		assert_has(err.text, "NAME[@ENV][:BACKEND][+OPTION...]");
		assert_string_equal(cell.framework, "as it was");
	}
	/* The longest name, and the most options. */
	struct error err = ERROR_INIT;
	struct cell cell;
	check(cell_parse_framework(
		      "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t+u+v+w+x+y+z+1+2+3+4+5+6", &cell,
		      &err),
	      &err);
	assert_int_equal(strlen(cell.framework), CELL_WORD_BYTES - 1);
	assert_int_equal(strlen(cell.options), CELL_WORD_BYTES - 3);
}

TEST(devices)
{
	static const struct {
		const char *word;
		struct device device;
	} good[] = {{"cpu", {DEVICE_CPU, 0, 0, {0}, 1}},
		    {"cpu:1x2", {DEVICE_CPU, 1, 0, {0}, 2}},
		    {"cpu:12x64", {DEVICE_CPU, 12, 0, {0}, 64}},
		    {"cpu:4", {DEVICE_CPU, 4, 0, {0}, 1}},
		    {"cpu:256", {DEVICE_CPU, 256, 0, {0}, 1}},
		    {"cuda:0", {DEVICE_CUDA, 0, 1, {0}, 1}},
		    {"cuda:0+12+1", {DEVICE_CUDA, 0, 3, {0, 12, 1}, 1}},
		    {"gpu", {DEVICE_OTHER, 0, 0, {0}, 1}},
		    {"gpu.1", {DEVICE_OTHER, 0, 0, {0}, 1}},
		    {"tpu:0", {DEVICE_OTHER, 0, 0, {0}, 1}},
		    {"npu", {DEVICE_OTHER, 0, 0, {0}, 1}},
		    {"rocm:3", {DEVICE_OTHER, 0, 0, {0}, 1}},
		    {"iree_vm", {DEVICE_OTHER, 0, 0, {0}, 1}}};
	static const char *const bad[] = {
		"",	    "CPU",	"cpu:",
		"cpu:0",    "cpu:04",	"cpu:-1",
		"cpu:4 ",   "cpu:1+2",	"cpu:70000",
		"cuda",	    "cuda:",	"cuda:x",
		"cuda:0+",  "cuda:0+0", "cuda:0,1",
		"cuda:64",  "gpu:x",	"cpu:99999999999999999999",
		"cdua:0",   "cuda.0",	"cuad:0",
		"cuda0",    "cup",	"cpus",
		"cpu4",	    "cpi",	"gpu:",
		"gpu.",	    "gpu:01",	"gpu:0+1",
		"cpu:x2",   "cpu:2x",	"cpu:2x1",
		"cpu:2x02", "cpu:1x65", "cpu:1x2x2",
		"tpu:64",   "0:cpu",	"_gpu",
		"GPU.0",    "gpu 0",	"-gpu",
	};
	static const struct {
		const char *slip, *meant;
	} near[] = {{"cdua:0", "cuda"}, {"cuda0", "cuda"}, {"cpus", "cpu"}, {"cup", "cpu"}};

	for (size_t i = 0; i < COUNT(good); i++) {
		struct error err = ERROR_INIT;
		struct device device;
		check(device_parse(good[i].word, &device, &err), &err);
		assert_int_equal(device.kind, good[i].device.kind);
		assert_int_equal(device.cores, good[i].device.cores);
		assert_int_equal(device.count, good[i].device.count);
		assert_int_equal(device.ranks, good[i].device.ranks);
		for (int k = 0; k < device.count; k++)
			assert_int_equal(device.indices[k], good[i].device.indices[k]);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct error err = ERROR_INIT;
		struct device device;
		if (device_parse(bad[i], &device, &err) != PRONY_USAGE)
			fail_msg("'%s' was taken", bad[i]);
		assert_has(err.text, "cuda:0+1");
	}
	for (size_t i = 0; i < COUNT(near); i++) {
		struct error err = ERROR_INIT;
		char words[32];
		struct device device;
		snprintf(words, sizeof words, "did you mean %s?", near[i].meant);
		expect_error(device_parse(near[i].slip, &device, &err), PRONY_USAGE, &err, words);
	}
}

/* Keys are stored, so this one may never change. */
TEST(keys_are_golden)
{
	struct cell cell;
	char key[CELL_KEY_BYTES], hash[CELL_HASH_BYTES], other[CELL_HASH_BYTES];
	struct error err = ERROR_INIT;

	cell_defaults(&cell);
	snprintf(cell.dataset, sizeof cell.dataset, "mnist-sample");
	check(cell_parse_framework("tensorflow+xla+nhwc", &cell, &err), &err);
	cell_key(&cell, key);
	assert_string_equal(key, "framework=tensorflow+nhwc+xla network=lenet dataset=mnist-sample "
				 "device=cpu precision=fp32 batch=64 stage=train input=resident "
				 "sync=blocks optimiser=momentum dropout=on");
	cell_hash(&cell, hash);
	assert_string_equal(hash, "eb5b2a5fea67e40e"); /* sha256sum of the key */
	cell.batch = 65;
	cell_hash(&cell, other);
	assert_string_not_equal(hash, other);
	/* Without an update there is no optimiser. */
	cell.stage = STAGE_FORWARD;
	cell_hash(&cell, hash);
	cell.optimiser = OPTIMISER_SGD;
	cell_hash(&cell, other);
	assert_string_equal(hash, other);
}

/* The longest possible words fit. */
TEST(keys_fit)
{
	struct cell cell;
	char key[CELL_KEY_BYTES];

	cell_defaults(&cell);
	cell.batch = INT64_MIN;
	cell.precision = PRECISION_BF16;
	cell.stage = STAGE_FORWARD_BACKWARD;
	memset(cell.framework, 'f', CELL_WORD_BYTES - 1);
	memset(cell.network, 'n', CELL_WORD_BYTES - 1);
	memset(cell.dataset, 'd', CELL_WORD_BYTES - 1);
	memset(cell.device, 'D', CELL_WORD_BYTES - 1);
	cell_key(&cell, key);
	assert_has(key, " dropout=on");
	cell.stage = STAGE_TRAIN;
	cell.learning_rate = cell.momentum = cell.weight_decay = -1.7976931348623157e+308;
	cell_key(&cell, key);
	assert_has(key, " weight_decay=-1.7976931348623157e+308");
}

static struct process_record windowed(const int64_t (*rows)[2], size_t count, int64_t block_steps)
{
	struct process_record record;

	process_record_init(&record);
	record.intervals = memory_alloc(count * sizeof *record.intervals);
	record.interval_count = count;
	record.block_steps = block_steps;
	for (size_t i = 0; i < count; i++)
		record.intervals[i] =
			(struct step_record){.begin_ns = rows[i][0], .end_ns = rows[i][1]};
	return record;
}

/* Summarises a window that is measured from end to end. */
static enum prony_status summarise(struct process_record *record, struct error *err)
{
	size_t n = record->interval_count;
	int64_t whole_ns = n > 0 ? (int64_t)((uint64_t)record->intervals[n - 1].end_ns -
					     (uint64_t)record->intervals[0].begin_ns)
				 : 0;
	return process_record_summarise(record, whole_ns, err);
}

TEST(a_window_is_summarised)
{
	static const int64_t rows[][2] = {{1000, 1100}, {1110, 1190}, {1190, 1310}, {1310, 1400}};
	SCOPED(process_record) record = windowed(rows, 4, 10);
	struct error err = ERROR_INIT;

	check(summarise(&record, &err), &err);
	assert_int_equal(record.steps, 40);
	assert_int_equal(record.blocks, 4);
	assert_int_equal(record.window_ns, 400);
	assert_true(record.step_mean_ns == 10);
	assert_true(record.step_median_ns == 9.5); /* 10, 8, 12, 9 */
	assert_true(record.step_min_ns == 8);
	assert_true(record.step_max_ns == 12);
	assert_true(fabs(record.step_sd_ns - sqrt(8.75 / 3)) < 1e-12);
	assert_true(isnan(record.step_p90_ns) && isnan(record.step_p99_ns));
}

/* If each step was synchronised, percentiles give the length of the slow ones. */
TEST(latencies_have_percentiles)
{
	int64_t rows[101][2];

	for (int i = 0; i < 101; i++) {
		rows[i][0] = 1000 * i;
		rows[i][1] = rows[i][0] + 1 + (i * 37) % 101; /* 1 to 101 in another order */
	}
	struct process_record record = windowed((const int64_t(*)[2])rows, 101, 1);
	struct error err = ERROR_INIT;

	check(summarise(&record, &err), &err);
	assert_true(record.step_median_ns == 51);
	assert_true(record.step_p90_ns == 91 && record.step_p99_ns == 100);
	process_record_release(&record);
	record = windowed((const int64_t(*)[2])rows, 2, 1); /* 1 and 38 */
	check(summarise(&record, &err), &err);
	assert_true(fabs(record.step_p90_ns - 34.3) < 1e-9);
	process_record_release(&record);
}

/* Returns a record of `count` intervals of `block_steps` steps; every fourth is `slow` times as
 * long. */
static struct process_record regular(size_t count, int64_t length_ns, int64_t block_steps,
				     double slow)
{
	struct process_record record;
	int64_t now = 1000;

	process_record_init(&record);
	record.intervals = memory_alloc(count * sizeof *record.intervals);
	record.interval_count = count;
	record.block_steps = block_steps;
	for (size_t i = 0; i < count; i++) {
		int64_t end = now + (i % 4 == 3 ? (int64_t)((double)length_ns * slow) : length_ns);
		record.intervals[i] = (struct step_record){.begin_ns = now, .end_ns = end};
		now = end;
	}
	return record;
}

/* The time of an undisturbed step is computed from blocks, not from single steps, and only if there
 * are enough. */
TEST(undisturbed_steps_are_a_low_quantile_of_blocks)
{
	enum { ms = 1000000 };
	struct error err = ERROR_INIT;
	struct process_record record = regular(20, 100 * ms, 10, 3);

	check(summarise(&record, &err), &err);
	assert_true(record.step_undisturbed_ns == 10.0 * ms);
	assert_true(record.step_mean_ns == 15.0 * ms);
	process_record_release(&record);
	record = regular(19, 100 * ms, 10, 3);
	check(summarise(&record, &err), &err);
	assert_true(isnan(record.step_undisturbed_ns));
	process_record_release(&record);
	/* The last block may have fewer steps, so it does not count. */
	record = regular(21, 100 * ms, 10, 3);
	record.steps = 203;
	check(summarise(&record, &err), &err);
	assert_true(record.step_undisturbed_ns == 10.0 * ms);
	process_record_release(&record);
	/* Steps of 5 ms, a quarter of them 15 ms: each block of 0.1 s has some of both. */
	record = regular(400, 5 * ms, 1, 3);
	check(summarise(&record, &err), &err);
	assert_true(fabs(record.step_undisturbed_ns / (7.5 * ms) - 1) < 0.15);
	assert_true(record.step_min_ns == 5.0 * ms);
	process_record_release(&record);
	record = regular(100, 5 * ms, 1, 3); /* eight blocks */
	check(summarise(&record, &err), &err);
	assert_true(isnan(record.step_undisturbed_ns));
	process_record_release(&record);
	record = regular(30, 0, 1, 1);
	record.intervals[29].end_ns++;
	check(summarise(&record, &err), &err);
	assert_true(isnan(record.step_undisturbed_ns));
	process_record_release(&record);
}

/* A fixed number of steps may leave a shorter last block. */
TEST(a_short_last_block_counts_its_steps)
{
	static const int64_t rows[][2] = {{0, 100}, {100, 200}, {200, 230}};
	SCOPED(process_record) record = windowed(rows, 3, 10);
	struct error err = ERROR_INIT;

	record.steps = 23;
	check(summarise(&record, &err), &err);
	assert_int_equal(record.steps, 23);
	assert_true(record.step_mean_ns == 10 && record.step_min_ns == 10);
	assert_true(record.step_max_ns == 10 && record.step_sd_ns == 0);
	record.steps = 20;
	assert_int_equal(summarise(&record, &err), PRONY_INVALID);
	record.steps = 31;
	assert_int_equal(summarise(&record, NULL), PRONY_INVALID);
}

TEST(one_interval_has_no_deviation)
{
	static const int64_t rows[][2] = {{5, 1005}};
	SCOPED(process_record) record = windowed(rows, 1, 100);
	struct error err = ERROR_INIT;

	check(summarise(&record, &err), &err);
	assert_true(record.step_mean_ns == 10 && record.step_median_ns == 10);
	assert_true(isnan(record.step_sd_ns));
}

TEST(impossible_windows_are_refused)
{
	static const int64_t rows[][2][2] = {
		{{10, 20}, {19, 30}}, /* overlap */
		{{10, 9}, {20, 30}},  /* backwards */
		{{10, 20}, {20, 15}},
		{{10, 10}, {10, 10}}, /* no length */
		{{INT64_MIN, INT64_MAX}, {INT64_MAX, INT64_MAX}},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		SCOPED(process_record) record = windowed(rows[i], 2, 1);
		struct error err = ERROR_INIT;
		assert_int_equal(summarise(&record, &err), PRONY_INVALID);
		assert_true(record.window_ns == RECORD_NONE && isnan(record.step_mean_ns));
		record.block_steps = INT64_MAX;
		assert_int_equal(summarise(&record, NULL), PRONY_INVALID);
		record.block_steps = RECORD_NONE;
		assert_int_equal(summarise(&record, NULL), PRONY_INVALID);
	}
	SCOPED(process_record) empty;
	process_record_init(&empty);
	assert_int_equal(summarise(&empty, NULL), PRONY_INVALID);
	process_record_release(NULL);
}

/* Names become SQL columns and CSV headings; every number has its unit. */
TEST(fields_are_described)
{
	for (size_t i = 0; i < process_field_count; i++) {
		const struct record_field *field = &process_fields[i];
		size_t length = strlen(field->name);
		assert_int_equal(strspn(field->name, "abcdefghijklmnopqrstuvwxyz_0123456789"),
				 length);
		assert_true(strlen(field->doc) > 5);
		if (length > 3 && !strcmp(field->name + length - 3, "_ns"))
			assert_string_equal(field->unit, "ns");
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(field->name, process_fields[k].name);
	}
}

/* docs/store.md has the table of the fields, row by row. */
TEST(fields_are_documented)
{
	static const char *const types[] = {[FIELD_TYPE_INT] = "INTEGER",
					    [FIELD_TYPE_REAL] = "REAL",
					    [FIELD_TYPE_TEXT] = "TEXT"};
	const char *source = getenv("PRONY_SOURCE");
	struct error err = ERROR_INIT;
	char *text = NULL;
	size_t length = 0;

	if (!source)
		skip();
	char *path = test_keep(path_join(source, "docs/store.md"));
	check(file_read(path, 1 << 20, &text, &length, &err), &err);
	const char *place = strstr(text, "| field | type | unit | what it is |\n");
	assert_non_null(place);
	place = strchr(strchr(place, '\n') + 1, '\n') + 1;
	for (size_t i = 0; i < process_field_count; i++) {
		const struct record_field *field = &process_fields[i];
		char *row = test_text("| `%s` | %s | %s | %s |\n", field->name, types[field->type],
				      *field->unit ? field->unit : "-", field->doc);
		if (strncmp(place, row, strlen(row)))
			fail_msg("docs/store.md lacks, in its place, the row %s", row);
		place += strlen(row);
	}
	assert_int_equal(*place, '\n');
	free(text);
}
