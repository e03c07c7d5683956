/* The published figures: the contents of the file, messages about a broken file, and the figures
 * shown beside a run. */
#include "report/charts.h"
#include "report/published.h"
#include "report_fixture.h"
#include "unit_test.h"

#define HEADING                                                                                    \
	"suite\tsource\tyear\thardware\tframework\tnetwork\tdataset\tdevice\tprecision\tbatch\t"   \
	"stage\tmetric\tvalue\tspread\n"
#define ROW(batch, metric, value)                                                                  \
	"quickstart\tpaper\t2018\tan old machine\tpytorch\tlenet\tmnist\tcpu\tfp32\t" batch        \
	"\ttrain\t" metric "\t" value "\t\n"

static const struct published_row *find(const struct published *p, const char *framework,
					const char *network, const char *device, const char *metric)
{
	for (size_t i = 0; i < p->count; i++)
		if (!strcmp(p->rows[i].framework, framework) &&
		    !strcmp(p->rows[i].network, network) && !strcmp(p->rows[i].device, device) &&
		    !strcmp(p->rows[i].metric, metric))
			return &p->rows[i];
	fail_msg("no %s of %s %s on %s", metric, framework, network, device);
	return NULL;
}

TEST(ours_is_exact)
{
	SCOPED(published) p;
	struct error err = ERROR_INIT;
	size_t empty = 0;

	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	check(published_load(NULL, &p, &err), &err);
	/* Nine cases, five frameworks, five devices, three metrics, less the memory of GPUs on
	 * CPUs. */
	assert_int_equal(p.count, 9 * 5 * 5 * 3 - 9 * 5 + 25);
	const struct published_row *row =
		find(&p, "caffe", "lenet", "gpu-k20m-1", "images_per_second");
	assert_true(row->value == 19807 && isnan(row->spread));
	assert_string_equal(row->hardware, "Tesla K20m");
	assert_string_equal(row->year, "2018");
	assert_int_equal(row->batch, 64);
	assert_int_equal(find(&p, "mxnet", "resnet50", "cpu", "images_per_second")->batch, 8);
	row = find(&p, "tensorflow+nchw+xla", "vgg16", "gpu", "milliseconds_per_step");
	assert_true(row->value == 294.063);
	assert_true(fabs(published_samples_per_second(row) - 16 / 0.294063) < 1e-9);
	row = find(&p, "tensorflow", "alexnet-tf", "gpu", "seconds_per_step");
	assert_true(row->value == 0.131 && row->spread == 0.001);
	for (size_t i = 0; i < p.count; i++) {
		assert_false(!strcmp(p.rows[i].device, "cpu") &&
			     !strcmp(p.rows[i].metric, "gpu_memory_mib"));
		empty += isnan(p.rows[i].value) ? 1 : 0;
	}
	assert_int_equal(empty, 6 * 5 * 3 - 6);
}

TEST(broken_files_say_where)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"suite\tsource\n", ":1: needs the heading"},
		{"# x\n" HEADING "a\tb\n", ":3: needs 14 columns"},
		{HEADING ROW("64", "images_per_hour", "5"), ":2: metric: needs images_per_second"},
		{HEADING ROW("64", "images_per_second", "1e3"), ":2: value: needs a number"},
		{HEADING ROW("64", "images_per_second", "0"), ":2: value: needs a number"},
		{HEADING ROW("6.5", "images_per_second", "5"), ":2: batch: needs a whole number"},
		{HEADING ROW("", "images_per_second", "5"), ":2: batch: needs a whole number"},
	};
	char *folder, *path;

	assert_int_equal(directory_make_temporary("test-published-", &folder, NULL), PRONY_OK);
	path = test_keep(path_join(folder, "p.tsv"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct published p;
		struct error err = ERROR_INIT;

		file_write_atomic(path, rows[i].text, strlen(rows[i].text), NULL);
		expect_error(published_load(path, &p, &err), PRONY_BAD_INPUT, &err, rows[i].says);
	}
	directory_remove(folder, NULL);
	free(folder);
}

/* The library's two interfaces count as the same published framework; its options do not. */
TEST(tensorflow_is_both_of_its_interfaces)
{
	static const struct {
		const char *published, *ours;
		bool matches;
	} rows[] = {
		{"tensorflow", "tensorflow", true},
		{"tensorflow", "tensorflow-python", true},
		{"tensorflow+xla", "tensorflow-python+xla", true},
		{"tensorflow", "tensorflow-python+xla", false},
		{"tensorflow+nchw", "tensorflow-python", false},
		{"tensorflow", "tensorflow1", false},
		{"keras2:tensorflow", "tensorflow-python", false},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct published_row row = {.suite = "thesis",
					    .framework = rows[i].published,
					    .network = "lenet",
					    .stage = "train"};
		struct cell cell;

		cell_defaults(&cell);
		snprintf(cell.framework, sizeof cell.framework, "%s", rows[i].ours);
		snprintf(cell.network, sizeof cell.network, "lenet");
		cell.stage = STAGE_TRAIN;
		if (published_matches(&row, "thesis", &cell) != rows[i].matches)
			fail_msg("%s, %s", rows[i].published, rows[i].ours);
	}
}

TEST(a_run_has_them_beside_it)
{
	static const char text[] = HEADING ROW("64", "images_per_second", "818")
		ROW("128", "images_per_second", "") ROW("64", "gpu_power_w", "31");
	struct published p;
	struct stored_run run;
	struct summary summary;
	struct strbuf *out = test_strbuf();
	char *folder, *path;

	assert_int_equal(directory_make_temporary("test-published-", &folder, NULL), PRONY_OK);
	path = test_keep(path_join(folder, "p.tsv"));
	file_write_atomic(path, text, strlen(text), NULL);
	assert_int_equal(published_load(path, &p, NULL), PRONY_OK);
	report_fixture_init(&run, 0);
	summary_init(&summary, &run);
	published_render(&p, &summary, false, 0, out);
	/*
	 * Of pytorch's two cells, the training one: 818 a second, and one that was not available.
	 */
	assert_has(strbuf_text(out), "818 /s");
	assert_has(strbuf_text(out), "not available");
	assert_has(strbuf_text(out), "2018");
	assert_has(strbuf_text(out), "an old machine");
	assert_lacks(strbuf_text(out), "forward");
	assert_lacks(strbuf_text(out), "31");
	/* A run of another suite has no published figures. */
	strbuf_clear(out);
	memcpy(run.meta.suite, "mine", 5);
	published_render(&p, &summary, false, 0, out);
	assert_int_equal(out->length, 0);
	summary_release(&summary);
	stored_run_release(&run);
	published_release(&p);
	directory_remove(folder, NULL);
	free(folder);
}

/* Returns the figure with that name; NULL if there is none. */
static const struct chart *chart_of(const struct charts *charts, const char *name)
{
	for (size_t i = 0; i < charts->count; i++)
		if (!strcmp(charts->items[i]->name, name))
			return charts->items[i];
	return NULL;
}

/* Returns the row with that label below that heading; NULL if there is none. */
static const struct chart_row *row_of(const struct chart *chart, const char *heading,
				      const char *label)
{
	const char *now = "";

	for (size_t i = 0; i < chart->row_count; i++) {
		const struct chart_row *row = &chart->rows[i];

		if (row->heading)
			now = row->label;
		if (!strcmp(now, heading) && !strcmp(row->label, label))
			return row;
	}
	return NULL;
}

/*
 * Speed, memory, power and speed-up of the study's LeNet, with our figures beside them, by device.
 */
TEST(a_study_has_charts_by_device)
{
	SCOPED(charts) charts = {.count = 0};
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;
	struct strbuf *text = test_strbuf();

	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	report_fixture_init(&run, 0);
	memcpy(run.meta.suite, "thesis", 7);
	summary_init(&summary, &run);
	charts_of_runs(&borrowed, 1, NULL, 0, &charts);
	const struct chart *speed = chart_of(&charts, "speed-by-device-lenet-mnist-sample");
	const struct chart *memory = chart_of(&charts, "memory-by-device-lenet-mnist-sample");
	const struct chart *power = chart_of(&charts, "power-by-device-lenet-mnist-sample");
	const struct chart *up = chart_of(&charts, "speed-up-by-device-lenet-mnist-sample");

	assert_true(speed && memory && power && up);
	const struct chart_row *row = row_of(speed, "cpu, here, batch 64", "pytorch");
	assert_true(row && isfinite(row->value) && row->low < row->value && !row->faint);
	row = row_of(speed, "2018, Tesla K20m, batch 64", "caffe");
	assert_true(row && row->value == 19807 && row->faint);
	/* GPU memory on a CPU has no value. Our memory figure there is main memory, and its label
	 * says so. */
	assert_null(row_of(memory, "2018, 2 x Xeon E5-2620 v2 (12 cores), batch 64", "caffe"));
	row = row_of(memory, "2018, Tesla K20m, batch 64", "caffe");
	assert_true(row && row->value == 140 * 0x1p20);
	assert_non_null(row_of(memory, "cpu, here, batch 64: main memory", "native"));
	row = row_of(power, "2018, 2 x Xeon E5-2620 v2 (12 cores), batch 64: its GPU, idle",
		     "caffe");
	assert_true(row && row->value == 33);
	row = row_of(up, "2018, Tesla K20m, batch 64", "caffe");
	assert_true(row && fabs(row->value - 19807.0 / 572) < 1e-9);
	chart_csv(speed, text);
	assert_has(strbuf_text(text), "\n\"2018, Tesla K20m, batch 64: caffe\",19807,");
	strbuf_clear(text);
	chart_svg(speed, CHART_WIDE, text);
	assert_lacks(strbuf_text(text), "nan");
	assert_has(strbuf_text(text), ">2018, Tesla K20m, batch 64<");
}

/* A cell on a GPU has memory and power of the GPU beside the published ones; what was not measured
 * has its reason. */
TEST(a_study_has_memory_and_power_of_gpus)
{
	SCOPED(charts) charts = {.count = 0};
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;

	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	report_fixture_init(&run, 0);
	memcpy(run.meta.suite, "thesis", 7);
	for (size_t i = 0; i < run.cell_count; i++) {
		snprintf(run.cells[i].cell.device, CELL_WORD_BYTES, "cuda:0");
		for (size_t p = 0; p < run.cells[i].process_count; p++) {
			struct process_record *record = &run.cells[i].processes[p];
			record->gpu_memory_before = 100 * 0x1p20;
			record->gpu_memory_max_window = 400 * 0x1p20;
			snprintf(record->null_reasons, sizeof record->null_reasons,
				 "gpu_energy_joules: nvml refuses it: Not Supported; x: y");
		}
	}
	summary_init(&summary, &run);
	charts_of_runs(&borrowed, 1, NULL, 0, &charts);
	const struct chart *memory = chart_of(&charts, "memory-by-device-lenet-mnist-sample");
	const struct chart *power = chart_of(&charts, "power-by-device-lenet-mnist-sample");
	const char *heading =
		"cuda:0, here, batch 64: not measured, nvml refuses it: Not Supported";
	const struct chart_row *row = row_of(memory, "cuda:0, here, batch 64", "pytorch");

	assert_true(row && row->value == 300 * 0x1p20);
	assert_non_null(row_of(power, heading, heading));
}

/* If no counter measured the power, the study's chart gives the reason that the processes gave. */
TEST(power_that_is_not_there_has_its_reason)
{
	SCOPED(charts) charts = {.count = 0};
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;

	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	report_fixture_init(&run, 0);
	memcpy(run.meta.suite, "thesis", 7);
	for (size_t i = 0; i < run.cell_count; i++)
		for (size_t p = 0; p < run.cells[i].process_count; p++) {
			struct process_record *record = &run.cells[i].processes[p];
			record->power_mean_run = NAN;
			snprintf(record->null_reasons, sizeof record->null_reasons,
				 "cpu_cores: too short; energy_joules, energy_dram_joules: no "
				 "powercap; x: y");
		}
	summary_init(&summary, &run);
	charts_of_runs(&borrowed, 1, NULL, 0, &charts);
	const struct chart *power = chart_of(&charts, "power-by-device-lenet-mnist-sample");
	const char *heading = "cpu, here, batch 64: not measured, no powercap";

	assert_non_null(power);
	assert_non_null(row_of(power, heading, heading));
}

/* A suite without devices to compare has one figure per comparison, with headings of year and
 * hardware. */
TEST(others_have_them_below_their_hardware)
{
	SCOPED(charts) charts = {.count = 0};
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;
	const struct chart *chart = NULL;

	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	report_fixture_init(&run, 0);
	memcpy(run.meta.suite, "cnn", 4);
	for (size_t i = 0; i < run.cell_count; i++) {
		memcpy(run.cells[i].cell.network, "alexnet", 8);
		if (!strcmp(run.cells[i].cell.framework, "pytorch"))
			memcpy(run.cells[i].cell.framework, "tensorflow", 11);
	}
	summary_init(&summary, &run);
	charts_of_runs(&borrowed, 1, NULL, 0, &charts);
	for (size_t i = 0; i < charts.count && !chart; i++)
		if (!strncmp(charts.items[i]->name, "published-speeds-alexnet", 24))
			chart = charts.items[i];
	assert_non_null(chart);
	assert_true(chart->rows[0].heading);
	assert_non_null(row_of(chart, "here", "native"));
	const struct chart_row *row =
		row_of(chart, "2018, GeForce GTX 1050 Ti; AMD FX-6300; CUDA 9.1, batch 16, fp16",
		       "tensorflow");
	assert_true(row && row->faint && row->value > 0);
	assert_null(chart_of(&charts, "speed-by-device-alexnet-mnist-sample"));
}
