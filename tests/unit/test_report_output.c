/* A stored run in every output form, compared with the files of tests/golden/report/.
 * PRONY_REFRESH_GOLDEN=1 rewrites them; read the difference before committing it. */
#include "report/compare.h"
#include "report/export.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/text.h"
#include "report_fixture.h"
#include "unit_test.h"

struct results {
	struct stored_run run;
	struct summary summary;
};

static int setup(void **state)
{
	struct results *results = calloc(1, sizeof *results);
	if (!results)
		return -1;
	report_fixture_init(&results->run, 0);
	summary_init(&results->summary, &results->run);
	*state = results;
	return 0;
}

static int teardown(void **state)
{
	struct results *results = *state;
	summary_release(&results->summary);
	stored_run_release(&results->run);
	free(results);
	return 0;
}

#define RESULTS_TEST(name) TEST_ON(name, NULL, NULL, struct results *results)

static bool starts_number(char c)
{
	return (c >= '0' && c <= '9') || c == '-';
}

/* Compares all but the last digits of numbers, because exp and log differ there between C
 * libraries. Returns the first difference, or NULL if there is none. */
static const char *first_difference(const char *ours, const char *golden)
{
	while (*ours || *golden) {
		if (starts_number(*ours) && starts_number(*golden)) {
			char *our_end, *golden_end;
			double a = strtod(ours, &our_end), b = strtod(golden, &golden_end);
			if (our_end != ours && fabs(a - b) <= 1e-12 * fabs(b)) {
				ours = our_end;
				golden = golden_end;
				continue;
			}
		}
		if (*ours != *golden)
			return ours;
		ours++;
		golden++;
	}
	return NULL;
}

static void compare_with_golden(const struct strbuf *text, const char *name)
{
	char path[4096];
	struct error err = ERROR_INIT;
	if (!getenv("PRONY_SOURCE"))
		fail_msg("PRONY_SOURCE has to name the source tree");
	snprintf(path, sizeof path, "%s/tests/golden/report/%s", getenv("PRONY_SOURCE"), name);
	if (getenv("PRONY_REFRESH_GOLDEN"))
		check(file_write_atomic(path, strbuf_text(text), text->length, &err), &err);
	char *golden = NULL;
	size_t length = 0;
	check(file_read(path, (size_t)1 << 20, &golden, &length, &err), &err);
	const char *difference = first_difference(strbuf_text(text), golden);
	if (difference)
		fail_msg("%s differs from here on: %.200s", path, difference);
	free(golden);
}

static void check_render(const struct summary *summary, bool colour, int width, const char *name)
{
	struct strbuf *text = test_strbuf();
	summary_render(summary, colour, width, text);
	compare_with_golden(text, name);
}

RESULTS_TEST(test_terminal)
{
	check_render(&results->summary, false, 120, "show.txt");
	check_render(&results->summary, true, 80, "show-colour-80.txt");
	check_render(&results->summary, false, 40, "show-40.txt");
}

/* Share of the peak and energy are columns if they are known and there is room. */
RESULTS_TEST(columns_that_are_known)
{
	static const struct {
		int width;
		bool costs;
	} cases[] = {{0, true}, {144, true}, {130, false}, {40, false}};
	struct stored_run without = results->run;
	SCOPED(summary) summary;
	struct strbuf text;
	for (size_t i = 0; i < COUNT(cases); i++) {
		strbuf_init(&text, 0);
		summary_render(&results->summary, false, cases[i].width, &text);
		assert_true(cases[i].costs == (strstr(strbuf_text(&text), "of peak") != NULL));
		assert_true(cases[i].costs == (strstr(strbuf_text(&text), "3.88 mJ") != NULL));
		strbuf_release(&text);
	}
	/* A machine with unmeasured ceilings has no share of the peak. */
	without.meta.environment = "{}";
	summary_init(&summary, &without);
	assert_true(isnan(summary.rows[0].costs.peak_share));
	assert_true(isfinite(figure_value(FIGURE_JOULES_PER_SAMPLE, &summary.rows[0]).value));
}

/* A package's counter includes other programs, so processes beside which they ran are left out. */
RESULTS_TEST(energy_is_that_of_processes_that_were_alone)
{
	SCOPED(stored_run) run;
	report_fixture_init(&run, 0);
	for (int left = 4; left >= 0; left -= 4) {
		SCOPED(summary) summary;
		for (size_t p = 0; p < run.cells[0].process_count; p++)
			run.cells[0].processes[p].foreign_elsewhere = (int)p < left ? 0 : 0.5;
		summary_init(&summary, &run);
		const struct summary_row *row = summary.rows;
		while (row->cell != &run.cells[0])
			row++;
		assert_int_equal(row->costs.joules_per_step.n, left);
		assert_int_equal(row->costs.watts.n, left);
		assert_true(isnan(figure_value(FIGURE_JOULES_FLOOR, row).value) == (left == 0));
	}
}

/* The cell's own memory, its power, and its energy with an interval and the worst grade. */
RESULTS_TEST(figures_of_a_gpu)
{
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	struct strbuf *text = test_strbuf();
	report_fixture_init(&run, 0);
	for (size_t p = 0; p < run.cells[0].process_count; p++) {
		struct process_record *record = &run.cells[0].processes[p];
		record->gpu_memory_before = 500 * 0x1p20;
		record->gpu_memory_max_window = 2548 * 0x1p20;
		record->gpu_power_window = 300;
		record->gpu_energy_joules = 300 * (double)record->window_ns * 1e-9;
		snprintf(record->gpu_energy_grade, sizeof record->gpu_energy_grade,
			 p == 1 ? "C" : "B");
		record->gpu_power_held = 0.8;
	}
	summary_init(&summary, &run);
	const struct summary_row *row = summary.rows;
	while (row->cell != &run.cells[0])
		row++;
	struct figure_value energy = figure_value(FIGURE_GPU_JOULES_PER_SAMPLE, row);
	double batch = (double)row->cell->cell.batch;
	assert_true(figure_value(FIGURE_GPU_MEMORY, row).value == 2048 * 0x1p20);
	assert_true(fabs(energy.value / (300 * row->step.center * 1e-9 / batch) - 1) < 1e-6);
	assert_true(fabs(energy.half_width / row->step.half_width - 1) < 1e-4);
	assert_string_equal(row->costs.gpu_grade, "C");
	summary_render(&summary, false, 0, text);
	assert_non_null(strstr(strbuf_text(text), "2.00 GiB"));
	assert_non_null(strstr(strbuf_text(text), "300 W"));
	assert_non_null(strstr(strbuf_text(text),
			       "power cap: it held the GPU's clock down for up to 80 % of the "
			       "window, in 1 of 1 cells"));
	strbuf_clear(text);
	summary_render(&results->summary, false, 0, text);
	assert_null(strstr(strbuf_text(text), "GPU power"));
}

/* Only for sequences; the gate has the number of tokens of a sample. */
RESULTS_TEST(tokens_a_second)
{
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	struct strbuf *text = test_strbuf();
	report_fixture_init(&run, 0);
	json_object_set_new(run.cells[0].evidence, "tokens", json_integer(40));
	summary_init(&summary, &run);
	const struct summary_row *row = &summary.rows[0];
	double samples = figure_value(FIGURE_SAMPLES, row).value;
	struct figure_value tokens = figure_value(FIGURE_TOKENS, row);
	assert_true(fabs(tokens.value / (40 * samples) - 1) < 1e-12);
	assert_true(tokens.low < tokens.value && tokens.value < tokens.high);
	summary_render(&summary, false, 0, text);
	assert_has(strbuf_text(text), "  tokens  ");
	strbuf_clear(text);
	summary_render(&results->summary, false, 0, text);
	assert_lacks(strbuf_text(text), "tokens");
}

/* docs/exports.md names the member of each figure. */
TEST(figures_are_documented)
{
	const char *source = getenv("PRONY_SOURCE");
	struct error err = ERROR_INIT;
	char path[4096], *page = NULL;
	size_t length = 0;
	if (!source)
		fail_msg("PRONY_SOURCE has to name the source tree");
	snprintf(path, sizeof path, "%s/docs/exports.md", source);
	check(file_read(path, (size_t)1 << 20, &page, &length, &err), &err);
	for (int id = 0; id < FIGURE_COUNT; id++) {
		const char *dot = strrchr(figures[id].member, '.');
		char name[FIGURE_WORD_BYTES];
		snprintf(name, sizeof name, "`%s`", dot ? dot + 1 : figures[id].member);
		if (figures[id].json && !strstr(page, name))
			fail_msg("docs/exports.md lacks %s", name);
		for (int other = 0; other < id; other++)
			assert_string_not_equal(figures[other].word, figures[id].word);
	}
	free(page);
}

RESULTS_TEST(test_exports)
{
	static const struct {
		enum prony_status (*write)(const struct summary *summary, struct strbuf *out,
					   struct error *err);
		const char *name;
	} exports[] = {
		{export_csv_long, "long.csv"},
		{export_csv_wide, "wide.csv"},
		{export_csv_ms, "ms.csv"},
		{export_json, "run.json"},
		{export_jsonl, "run.jsonl"},
		{export_markdown, "run.md"},
		{export_csv_cells, "cells.csv"},
		{export_latex, "run.tex"},
		{export_bmf, "bmf.json"},
		{export_github, "github.json"},
		{export_openmetrics, "openmetrics.txt"},
	};
	for (size_t i = 0; i < COUNT(exports); i++) {
		struct strbuf text;
		struct error err = ERROR_INIT;
		strbuf_init(&text, 0);
		check(exports[i].write(&results->summary, &text, &err), &err);
		compare_with_golden(&text, exports[i].name);
		strbuf_release(&text);
		/* Too little room is an error, not a truncated file. */
		strbuf_init(&text, 100);
		assert_int_equal(exports[i].write(&results->summary, &text, &err), PRONY_IO);
		strbuf_release(&text);
	}
}

static const struct summary_row *find(const struct summary *summary, const char *framework,
				      enum stage stage)
{
	for (size_t i = 0; i < summary->count; i++)
		if (!strcmp(summary->rows[i].cell->cell.framework, framework) &&
		    summary->rows[i].cell->cell.stage == stage)
			return &summary->rows[i];
	fail_msg("no row for %s", framework);
	return NULL;
}

RESULTS_TEST(test_ranks)
{
	const struct summary *summary = &results->summary;
	assert_int_equal(summary->comparison_count, 2);
	assert_int_equal(summary->count, 10);
	/* 2.10 and 2.11 ms with a spread of one percent share a rank. */
	const struct summary_row *native = find(summary, "native", STAGE_FORWARD);
	const struct summary_row *mxnet = find(summary, "mxnet", STAGE_FORWARD);
	assert_int_equal(native->rank, 1);
	assert_int_equal(mxnet->rank, 1);
	assert_true(native->tied && mxnet->tied);
	const struct summary_row *third = find(summary, "onnxruntime", STAGE_FORWARD);
	assert_int_equal(third->rank, 3);
	assert_false(third->tied);
	assert_true(fabs(third->floor.ratio - 2.4 / 2.1) < 1e-9);
	assert_true(third->floor.low < third->floor.ratio &&
		    third->floor.ratio < third->floor.high);
	assert_true(fabs(native->floor.ratio - 1) < 1e-12);
	/* The gate counted 36,708,000 MACs for 16 samples; a batch has 64. */
	double step_s = native->step.center / 1e9;
	assert_true(fabs(figure_value(FIGURE_FLOPS, native).value * step_s /
				 (2 * 36708000.0 / 16 * 64) -
			 1) < 1e-9);
	native = find(summary, "native", STAGE_TRAIN);
	step_s = native->step.center / 1e9;
	assert_true(fabs(figure_value(FIGURE_FLOPS, native).value * step_s /
				 (6 * 36708000.0 / 16 * 64) -
			 1) < 1e-9);
	assert_true(fabs(figure_value(FIGURE_SAMPLES, native).value * step_s / 64 - 1) < 1e-12);
}

RESULTS_TEST(test_no_rank_without_parity)
{
	const struct summary_row *fake = find(&results->summary, "fake", STAGE_TRAIN);
	assert_int_equal(fake->rank, 0);
	assert_true(isnan(fake->step.center) && isnan(fake->floor.ratio));
	/* One good process does not make a crashed cell comparable. */
	const struct summary_row *crashed = find(&results->summary, "mxnet", STAGE_TRAIN);
	assert_int_equal(crashed->rank, 0);
	assert_true(isnan(crashed->step.center));

	/* "ok" without a passed gate must not be ranked, however it came into the store. */
	struct stored_cell *cell = &results->run.cells[1];
	struct summary summary;
	cell->gate = CELL_MISMATCH;
	summary_init(&summary, &results->run);
	const struct summary_row *native = find(&summary, "native", STAGE_TRAIN);
	assert_int_equal(native->rank, 0);
	assert_true(isnan(native->step.center));
	assert_has(summary_reason(native), "parity");
	assert_true(isnan(find(&summary, "pytorch", STAGE_TRAIN)->floor.ratio));
	summary_release(&summary);

	/* If the gate did not run at all, figures are shown but not ranked, as for the null
	 * adapter, which has no gate. */
	json_t *evidence = cell->evidence;
	cell->evidence = NULL;
	cell->gate = CELL_PENDING;
	summary_init(&summary, &results->run);
	native = find(&summary, "native", STAGE_TRAIN);
	assert_int_equal(native->rank, 0);
	assert_true(native->step.center > 0);
	assert_string_equal(summary_reason(native), "not ranked: the parity gate did not run");
	assert_true(isnan(find(&summary, "pytorch", STAGE_TRAIN)->floor.ratio));
	summary_release(&summary);
	cell->evidence = evidence;
	cell->gate = CELL_OK;
}

RESULTS_TEST(test_single_process)
{
	struct stored_cell *cell = &results->run.cells[1];
	struct summary summary;
	struct strbuf *text = test_strbuf();
	size_t count = cell->process_count;
	cell->process_count = 1;
	summary_init(&summary, &results->run);
	const struct summary_row *native = find(&summary, "native", STAGE_TRAIN);
	/* With one process, the spread between processes is unknown. */
	assert_int_equal(native->rank, 0);
	assert_true(native->comparable && native->rank_low == 1 && native->rank_high == 2);
	assert_true(isnan(native->step.half_width) && isnan(native->floor.low));
	assert_false(native->tied);
	assert_true(summary_undecided(&summary, native->comparison, text));
	assert_has(strbuf_text(text),
		   "; about 3 processes each would settle it: --repeat 3 (2 min)");
	strbuf_clear(text);
	summary_render(&summary, false, 120, text);
	assert_has(strbuf_text(text), "6.16 ms      -");
	summary_release(&summary);
	cell->process_count = count;
}

/* A cell that was stopped before it had enough processes shows its figure alone; one that had
 * enough is compared with the others. */
TEST(unfinished_cells_show_their_figures)
{
	struct results *results = *state;
	struct stored_cell *pytorch = &results->run.cells[0], *native = &results->run.cells[1];
	struct compare_side side = {.run = &results->run};
	struct compare_settings settings = {.threshold = NAN};
	struct compare compare;
	struct summary summary;
	struct strbuf *text = test_strbuf();
	struct error err = ERROR_INIT;
	char status[100];
	size_t count = pytorch->process_count;
	pytorch->status = native->status = CELL_PENDING;
	pytorch->process_count = 2;
	summary_init(&summary, &results->run);
	const struct summary_row *row = find(&summary, "pytorch", STAGE_TRAIN);
	assert_true(!row->comparable && row->step.n == 2 && row->step.center > 0);
	assert_true(isnan(row->step.half_width) && isnan(row->step.low));
	summary_status_text(&summary, row, status, sizeof status);
	assert_string_equal(status, "2 of 3 processes, no rank");
	row = find(&summary, "native", STAGE_TRAIN);
	assert_true(row->comparable && isfinite(row->step.half_width));
	/* pytorch may be faster. */
	assert_true(row->rank == 0 && row->rank_low == 1 && row->rank_high == 2);
	assert_null(summary_leader(&summary, row->comparison));
	summary_status_text(&summary, row, status, sizeof status);
	assert_string_equal(status, "not finished");
	summary_render(&summary, false, 0, text);
	assert_has(strbuf_text(text), "not finished: 2 of 10 cells, 1 of them with fewer than 3 "
				      "processes; to continue, run the same command with --resume");
	assert_has(strbuf_text(text), "no rank for native: other cells of the comparison have too "
				      "few processes");
	strbuf_clear(text);
	assert_int_equal(export_csv_cells(&summary, text, &err), PRONY_OK);
	assert_has(strbuf_text(text), ",,,2,"); /* no ranks */
	summary_release(&summary);
	compare_init(&compare, &side, &side, &settings);
	assert_true(!compare.rows[0].judged && compare.rows[1].judged);
	compare_release(&compare);
	pytorch->process_count = count;
	pytorch->status = native->status = CELL_OK;
}

static void change_speed(struct stored_cell *cell, double factor)
{
	for (size_t i = 0; i < cell->process_count; i++)
		cell->processes[i].step_mean_ns *= factor;
}

/* A framework that is faster than native by more than the interval of their ratio is named. */
RESULTS_TEST(test_broken_floor)
{
	struct stored_cell *mxnet = &results->run.cells[5];
	struct summary summary;
	struct strbuf *text = test_strbuf();
	struct error err = ERROR_INIT;
	/* In the unchanged fixture, mxnet cannot be distinguished from native. */
	assert_false(summary_floor_broken(&results->summary, 1, text));
	assert_int_equal(text->length, 0);
	change_speed(mxnet, 0.8);
	summary_init(&summary, &results->run);
	assert_false(summary_floor_broken(&summary, 0, text));
	assert_true(summary_floor_broken(&summary, 1, text));
	assert_string_equal(strbuf_text(text),
			    "faster than native: mxnet (0.804x, 95 % interval 0.794x to 0.814x)");
	assert_true(summary_breaks_floor(find(&summary, "mxnet", STAGE_FORWARD)));
	assert_false(summary_breaks_floor(find(&summary, "native", STAGE_FORWARD)));
	assert_false(summary_breaks_floor(find(&summary, "pytorch", STAGE_FORWARD)));
	json_t *json = summary_cell_to_json(find(&summary, "mxnet", STAGE_FORWARD));
	assert_true(json_is_true(json_object_get(json_object_get(json, "floor"), "broken")));
	json_decref(json);
	strbuf_clear(text);
	summary_render(&summary, false, 120, text);
	assert_has(strbuf_text(text), "\nfaster than native: mxnet (0.804x, ");
	strbuf_clear(text);
	check(export_markdown(&summary, text, &err), &err);
	assert_has(strbuf_text(text), "\n\nfaster than native: mxnet (0.804x, ");
	summary_release(&summary);
	/* On a busy machine this claim is not made, and the tables say why. */
	struct stored_cell *native = &results->run.cells[7];
	native->flags |= CELL_FLAG_DISTURBED;
	for (size_t i = 0; i < native->process_count; i++)
		native->processes[i].foreign_share = 0.01;
	for (int i = 1; i <= 3; i++) {
		native->processes[i].foreign_share = i == 1 ? 0.512 : 0.1;
		snprintf(native->processes[i].flags, sizeof native->processes[i].flags,
			 "disturbed");
	}
	summary_init(&summary, &results->run);
	strbuf_clear(text);
	assert_false(summary_floor_broken(&summary, 1, text));
	assert_true(summary_disturbance(&summary, text));
	assert_has(strbuf_text(text), "busy machine: other programs took up to 51 % of their "
				      "cores, in 3 of 30 processes (1 of 6 cells); ranks use only");
	strbuf_clear(text);
	summary_render(&summary, false, 0, text);
	assert_has(strbuf_text(text), "\nbusy machine: ");
	strbuf_clear(text);
	check(export_markdown(&summary, text, &err), &err);
	assert_has(strbuf_text(text), "\n**busy machine: ");
	summary_release(&summary);
	/* If three of five processes were undisturbed, the figures are those of the three. */
	native->processes[3].flags[0] = '\0';
	native->processes[1].step_mean_ns *= 9;
	summary_init(&summary, &results->run);
	strbuf_clear(text);
	assert_true(summary_floor_broken(&summary, 1, text));
	const struct summary_row *row = find(&summary, "native", STAGE_FORWARD);
	assert_true(row->step.n == 3 && row->processes == 5 && !row->disturbed);
	char words[64];
	summary_status_text(&summary, row, words, sizeof words);
	assert_string_equal(words, "ok (disturbed 2 of 5: busy)");
	summary_release(&summary);
	/* A process counts as disturbed if it is unknown whether it was. */
	native->processes[3].foreign_share = NAN;
	summary_init(&summary, &results->run);
	row = find(&summary, "native", STAGE_FORWARD);
	assert_true(row->step.n == 5 && row->processes_disturbed == 3 && row->disturbed);
	summary_release(&summary);
	native->processes[3].foreign_share = 0.01;
	native->processes[1].step_mean_ns /= 9;
	/* An older run does not name its disturbed processes: all count as disturbed. */
	native->processes[1].flags[0] = native->processes[2].flags[0] = '\0';
	summary_init(&summary, &results->run);
	strbuf_clear(text);
	assert_false(summary_floor_broken(&summary, 1, text));
	assert_true(summary_disturbance(&summary, text));
	assert_has(strbuf_text(text), "in 5 of 30 processes (1 of 6 cells)");
	summary_release(&summary);
	native->flags &= ~(unsigned)CELL_FLAG_DISTURBED;
	for (size_t i = 0; i < native->process_count; i++)
		native->processes[i].foreign_share = NAN;
	/* With one process the uncertainty is unknown. */
	size_t count = mxnet->process_count;
	mxnet->process_count = 1;
	summary_init(&summary, &results->run);
	strbuf_clear(text);
	assert_false(summary_floor_broken(&summary, 1, text));
	summary_release(&summary);
	mxnet->process_count = count;
	change_speed(mxnet, 1 / 0.8);
}

/* Causes in the machine itself are named like those from other programs, each with its remedy. */
RESULTS_TEST(test_slow_machine)
{
	struct stored_cell *native = &results->run.cells[7];
	struct process_record *process = &native->processes[1];
	struct summary summary;
	struct strbuf *text = test_strbuf();
	char words[64];
	native->flags |= CELL_FLAG_DISTURBED;
	snprintf(process->flags, sizeof process->flags, "disturbed");
	for (size_t i = 0; i < native->process_count; i++)
		native->processes[i].foreign_share = i == 1 ? 0.512 : 0.01;
	process->quota_share = 0.023;
	summary_init(&summary, &results->run);
	assert_true(summary_disturbance(&summary, text));
	assert_has(strbuf_text(text), "busy and slow machine: ");
	assert_has(strbuf_text(text),
		   "51 % of their cores, a control group's quota stopped them for up to "
		   "2.3 % of the time, in 1 of 30 processes");
	assert_has(strbuf_text(text), "; slowdowns that a framework may have caused itself count");
	assert_has(strbuf_text(text), ": close other programs (see prony doctor), give prony whole "
				      "cores (cpuset) instead of a quota, then run again");
	summary_status_text(&summary, find(&summary, "native", STAGE_FORWARD), words, sizeof words);
	assert_string_equal(words, "ok (disturbed 1 of 5: busy+quota)");
	assert_int_equal(find(&summary, "native", STAGE_FORWARD)->step.n, 4);
	summary_release(&summary);
	/* Causes that a framework may have produced itself leave no process out. */
	process->foreign_share = 0.01;
	summary_init(&summary, &results->run);
	strbuf_clear(text);
	assert_true(summary_disturbance(&summary, text));
	assert_has(strbuf_text(text), "slow machine: ");
	assert_lacks(strbuf_text(text), "ranks use only");
	summary_status_text(&summary, find(&summary, "native", STAGE_FORWARD), words, sizeof words);
	assert_string_equal(words, "ok (disturbed 1 of 5: quota)");
	assert_int_equal(find(&summary, "native", STAGE_FORWARD)->step.n, 5);
	native->flags &= ~(unsigned)CELL_FLAG_DISTURBED;
	process->flags[0] = '\0';
	process->quota_share = NAN;
	for (size_t i = 0; i < native->process_count; i++)
		native->processes[i].foreign_share = NAN;
	summary_release(&summary);
}

static void read_again(struct summary *summary, struct stored_run *run, const char *environment)
{
	summary_release(summary);
	run->meta.environment = environment;
	summary_init(summary, run);
}

TEST(a_machine_has_its_gpus)
{
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	static const struct {
		const char *environment, *text;
	} rows[] = {
		{"{\"must_match\": {\"cpu_model\": \"P\", \"cores\": 2, \"gpus\": [\"A\", \"A\"]}}",
		 "P, 2 cores, 2 x A"},
		{"{\"must_match\": {\"cpu_model\": \"P\", \"gpus\": [\"A\", \"B\"]}}", "P, A, B"},
		{"{\"must_match\": {\"cpu_model\": \"P\", \"gpus\": []}}", "P"},
	};

	report_fixture_init(&run, 0);
	summary_init(&summary, &run);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct strbuf *line = test_strbuf();

		read_again(&summary, &run, rows[i].environment);
		assert_true(summary_machine(&summary, line));
		assert_string_equal(strbuf_text(line), rows[i].text);
		strbuf_clear(line);
	}
}

/* Only environment variables that change a framework's speed are listed under the table. */
TEST(test_settings)
{
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	struct strbuf *text = test_strbuf();
	report_fixture_init(&run, 0);
	summary_init(&summary, &run);
	assert_false(summary_disturbance(&summary, text));
	read_again(&summary, &run,
		   "{\"should_match\": {\"environment\": {\"PYTHONHASHSEED\": \"1\"}}}");
	assert_false(summary_settings(&summary, text));
	assert_int_equal(text->length, 0);
	read_again(&summary, &run,
		   "{\"should_match\": {\"environment\": {\"OPENBLAS_CORETYPE\": \"Haswell\", "
		   "\"OMP_WAIT_POLICY\": \"passive\"}}}");
	assert_true(summary_settings(&summary, text));
	assert_string_equal(
		strbuf_text(text),
		"set in the environment: OPENBLAS_CORETYPE=Haswell, OMP_WAIT_POLICY=passive; it "
		"may slow down some frameworks and not others");
	strbuf_clear(text);
	assert_false(summary_findings(&summary, text));
	assert_int_equal(text->length, 0);
	read_again(&summary, &run,
		   "{\"informational\": {\"findings\": [{\"check\": \"governor\", \"value\": "
		   "\"powersave\", \"remedy\": \"set it\"}, {\"check\": \"steal\", \"value\": "
		   "\"8 % now\"}]}}");
	assert_true(summary_findings(&summary, text));
	assert_string_equal(strbuf_text(text), "warning: this machine may disturb the measurement: "
					       "governor powersave (set it); steal 8 % now");
}

/* Only compared cells count as checked. */
TEST(test_parity_counts)
{
	SCOPED(stored_run) run;
	struct summary summary;
	struct strbuf *text = test_strbuf();
	report_fixture_init(&run, 0);
	run.cells[0].gate = CELL_OUT_OF_MEMORY;
	run.cells[5].gate = CELL_UNSUPPORTED;
	summary_init(&summary, &run);
	summary_parity(&summary, text);
	assert_has(strbuf_text(text), "parity: 5 of 6 checked cells match the reference");
	assert_has(strbuf_text(text),
		   "; 1 did not match and is not ranked; 1 failed during the check; 3 not checked");
	summary_release(&summary);

	/* A proof whose tolerance is as large as the effect is counted separately. */
	json_object_set_new(run.cells[1].evidence, "coarse",
			    json_pack("{s:i, s:i}", "figures", 1, "of", 2));
	summary_init(&summary, &run);
	strbuf_clear(text);
	summary_parity(&summary, text);
	assert_has(strbuf_text(text), "; 1 of them within a coarse tolerance");
	summary_release(&summary);

	/* The stage load has nothing to prove. */
	run.cells[0].gate = CELL_OK;
	json_decref(run.cells[1].evidence);
	run.cells[1].evidence = NULL;
	run.cells[1].gate = CELL_PENDING;
	for (size_t i = 0; i < run.cell_count; i++)
		run.cells[i].cell.stage = i == 1 ? STAGE_LOAD : run.cells[i].cell.stage;
	summary_init(&summary, &run);
	strbuf_clear(text);
	summary_parity(&summary, text);
	assert_has(strbuf_text(text), "; 1 only loads batches");
	const struct summary_row *loads = find(&summary, "native", STAGE_LOAD);
	assert_int_equal(loads->rank, 0);
	assert_string_equal(summary_reason(loads), "not ranked: it only loads batches");
	/* Its time is in the spreadsheet layout nevertheless. */
	strbuf_clear(text);
	assert_int_equal(export_csv_wide(&summary, text, NULL), PRONY_OK);
	const char *row = strstr(strbuf_text(text), ",load,");
	assert_non_null(row);
	row = strstr(row, ",step,");
	assert_true(strcspn(row, "0123456789") < strcspn(row, "\n"));
	summary_release(&summary);
}

/* If many frameworks are not installed, one line lists them in text, Markdown and page; the exports
 * keep their cells. */
TEST(many_absent_frameworks_share_a_line)
{
	static const char *const absent[] = {"caffe", "theano", "keras2:cntk"};
	SCOPED(stored_run) run;
	struct summary summary;
	struct strbuf *text = test_strbuf();
	struct error err = ERROR_INIT;
	report_fixture_init(&run, 0);
	const struct stored_cell jax = run.cells[run.cell_count - 1];
	for (size_t more = 0; more <= 3; more++) {
		summary_init(&summary, &run);
		assert_int_equal(find(&summary, "jax", STAGE_FORWARD)->folded, more == 3);
		assert_int_equal(summary_absent(&summary, text), more == 3);
		summary_release(&summary);
		if (more == 3)
			break;
		struct stored_cell *cell = &run.cells[run.cell_count++];
		*cell = jax;
		snprintf(cell->cell.framework, sizeof cell->cell.framework, "%s", absent[more]);
		cell->reason = arena_printf(
			&run.arena,
			more ? "not installed: prony framework install %s (92 MB), or activate an "
			       "environment that has it"
			     : "not in /a, and PRONY_A is not set; install it: prony framework "
			       "install %s",
			absent[more]);
		/* The fixture releases only jax's. */
		cell->framework = cell->evidence = NULL;
	}
	assert_string_equal(strbuf_text(text),
			    "not on this machine: jax, caffe, theano, keras2:cntk (reasons: prony "
			    "list frameworks; to install: prony framework install NAME)");
	summary_init(&summary, &run);
	strbuf_clear(text);
	summary_render(&summary, false, 0, text);
	assert_lacks(strbuf_text(text), "framework install jax");
	assert_has(strbuf_text(text), "\nnot on this machine: jax, caffe, ");
	assert_has(strbuf_text(text), "; 1 not checked\n");
	strbuf_clear(text);
	check(export_markdown(&summary, text, &err), &err);
	assert_lacks(strbuf_text(text), "framework install jax");
	assert_has(strbuf_text(text), "**not on this machine: jax, caffe, ");
	json_t *json = summary_to_json(&summary);
	assert_int_equal(json_array_size(json_object_get(json, "cells")), run.cell_count);
	json_decref(json);
	/* A framework with a cell of another status stays in the table, and all stay if nothing
	 * else is there. */
	summary_release(&summary);
	run.cells[run.cell_count - 1].status = CELL_CRASHED;
	summary_init(&summary, &run);
	assert_false(find(&summary, "jax", STAGE_FORWARD)->folded);
	summary_release(&summary);
	/*
	 * A framework refused in one stage and missing in the other counts as not installed, too.
	 */
	run.cells[run.cell_count - 1].status = CELL_UNSUPPORTED;
	summary_init(&summary, &run);
	assert_false(find(&summary, "jax", STAGE_FORWARD)->folded);
	summary_release(&summary);
	run.cells[run.cell_count] = run.cells[run.cell_count - 1];
	run.cells[run.cell_count++].status = CELL_MISSING;
	summary_init(&summary, &run);
	assert_true(find(&summary, "jax", STAGE_FORWARD)->folded);
	/* The page contains only their names. */
	const struct summary *const summaries[] = {&summary};
	strbuf_clear(text);
	check(html_report(summaries, 1, NULL, 0, text, &err), &err);
	assert_has(strbuf_text(text), "not on this machine: jax, caffe, ");
	assert_lacks(strbuf_text(text), "value=\"jax\"");
	summary_release(&summary);
	for (size_t i = 0; i < run.cell_count; i++) {
		run.cells[i].status = CELL_MISSING;
		run.cells[i].reason = arena_printf(&run.arena, "prony framework install %s",
						   run.cells[i].cell.framework);
	}
	summary_init(&summary, &run);
	assert_false(find(&summary, "jax", STAGE_FORWARD)->folded);
	summary_release(&summary);
}

/* A framework without a device or data is installed, and the reader needs its reason. */
TEST(what_lacks_a_device_keeps_its_reason)
{
	static const char *const reasons[] = {
		"no GPU cuda:0 on this machine",
		"data set imagenet is not here: prony data fetch imagenet",
		"this needs the package lmdb: prony framework install NAME makes prony's own again",
		"not in /a, and PRONY_A is not set; install it: prony framework install caffe33",
	};
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	struct strbuf *text = test_strbuf();
	struct error err = ERROR_INIT;
	const struct summary *const summaries[] = {&summary};
	report_fixture_init(&run, 0);
	const struct stored_cell jax = run.cells[run.cell_count - 1];
	assert_true(cell_not_installed(&jax.cell, jax.reason));
	for (size_t i = 0; i < COUNT(reasons); i++) {
		struct stored_cell *cell = &run.cells[run.cell_count++];
		*cell = jax;
		snprintf(cell->cell.framework, sizeof cell->cell.framework, "%s%zu",
			 i == 3 ? "caffe" : "mine", i);
		cell->reason = reasons[i];
		cell->framework = cell->evidence = NULL;
		assert_false(cell_not_installed(&cell->cell, cell->reason));
	}
	summary_init(&summary, &run);
	assert_false(summary_absent(&summary, text));
	for (size_t i = 0; i < summary.count; i++)
		assert_false(summary.rows[i].folded);
	summary_render(&summary, false, 0, text);
	assert_has(strbuf_text(text), reasons[0]);
	strbuf_clear(text);
	check(html_report(summaries, 1, NULL, 0, text, &err), &err);
	assert_has(strbuf_text(text), ">Not installed: jax.<");
	assert_has(strbuf_text(text), "for these reasons</a>: mine0, mine1, mine2, caffe3.<");
	assert_has(strbuf_text(text), reasons[0]);
}

TEST(test_empty_run)
{
	struct stored_run run = {.meta = {.effort = "quick", .finished_wall_ns = RECORD_NONE}};
	SCOPED(summary) summary;
	struct strbuf *text = test_strbuf();
	struct error err = ERROR_INIT;
	summary_init(&summary, &run);
	summary_render(&summary, false, 0, text);
	assert_has(strbuf_text(text), "unfinished");
	assert_has(strbuf_text(text), "parity: no cell was checked");
	check(export_csv_wide(&summary, text, &err), &err);
	check(export_jsonl(&summary, text, &err), &err);
}

/* Texts that a spreadsheet would compute as formulas, and texts that it would not. */
TEST(formulas_are_text)
{
	static const struct {
		const char *text, *field;
	} rows[] = {
		{"=1+1", "\"'=1+1\""},
		{"+cmd|' /C calc'!A0", "\"'+cmd|' /C calc'!A0\""},
		{"-2+3+cmd", "\"'-2+3+cmd\""},
		{"@SUM(A1)", "\"'@SUM(A1)\""},
		{"\t=1", "\"'\t=1\""},
		{"\rx", "\"'\rx\""},
		{"  =\"a\"", "\"'  =\"\"a\"\"\""},
		{"-1.5e-3", "-1.5e-3"},
		{"+7", "+7"},
		{"-", "\"'-\""},
		{"a=1", "a=1"},
		{"", ""},
		{"1,5", "\"1,5\""},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct strbuf *out = test_strbuf();
		text_csv(rows[i].text, out);
		assert_string_equal(strbuf_text(out), rows[i].field);
	}
}

/* The page keeps prony's own colours and no other escape sequence. */
TEST(a_page_keeps_its_colours_only)
{
	char *page = text_page(TEXT_BOLD "a" TEXT_PLAIN "\n\033[2Jb\033]0;x\007\xc2\x9b"
					 "2J\r");
	assert_string_equal(page, "\033[1ma\033[0m\n\xef\xbf\xbd[2Jb\xef\xbf\xbd]0;x\xef\xbf\xbd"
				  "\xef\xbf\xbd"
				  "2J ");
	free(page);
	json_auto_t *json = json_pack("[s]", "\033 \xc2\x9b \xe2\x80\xae \xc3\xbc");
	char *text = test_keep(text_of_json(json, JSON_COMPACT));
	assert_string_equal(text, "[\"\\u001B \\u009b \\u202e \xc3\xbc\"]");
	json_auto_t *back = json_loads(text, 0, NULL);
	assert_true(json_equal(json, back));
}

/* Scatters the processes of a cell; their geometric mean stays about the same. */
static void scatter(struct stored_cell *cell, double factor)
{
	const double spread[] = {factor, 1 / factor, factor, 1 / factor, 1};
	for (size_t i = 0; i < cell->process_count; i++)
		cell->processes[i].step_mean_ns *= spread[i];
}

/* If a wide interval contains 1, the report only says what would decide it. */
RESULTS_TEST(test_undecided)
{
	struct stored_cell *mxnet = &results->run.cells[5], *pytorch = &results->run.cells[6];
	struct summary summary;
	struct strbuf *text = test_strbuf();
	assert_false(summary_undecided(&results->summary, 1, text));
	scatter(mxnet, 1.5);
	change_speed(pytorch, 5);
	summary_init(&summary, &results->run);
	const struct summary_row *noisy = find(&summary, "mxnet", STAGE_FORWARD);
	const struct summary_row *native = find(&summary, "native", STAGE_FORWARD);
	const struct summary_row *last = find(&summary, "pytorch", STAGE_FORWARD);
	assert_true(noisy->comparable && noisy->rank == 0 && !noisy->tied);
	assert_true(noisy->rank_low == 1 && noisy->rank_high == 3);
	assert_true(native->rank == 0 && native->rank_low == 1 && native->rank_high == 2);
	assert_int_equal(noisy->floor_order, ORDER_UNKNOWN);
	assert_true(noisy->processes_to_rank > 5);
	/* A step of five times the length is slower, whatever the noise of the others. */
	assert_true(last->rank == 4 && last->rank_low == 4);
	assert_false(summary_floor_broken(&summary, 1, text));
	assert_false(summary_undecided(&summary, 0, text));
	assert_true(summary_undecided(&summary, 1, text));
	char expected[200];
	snprintf(
		expected, sizeof expected,
		"no rank for native, mxnet, onnxruntime: wide intervals of their ratios contain 1; "
		"about %zu processes each would settle it: --repeat %zu (",
		noisy->processes_to_rank, noisy->processes_to_rank);
	assert_has(strbuf_text(text), expected);
	json_t *json = summary_cell_to_json(noisy);
	assert_true(json_is_null(json_object_get(json, "rank")));
	assert_int_equal(json_integer_value(json_object_get(json, "rank_high")), 3);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(json, "floor"), "order")),
		"unknown");
	json_decref(json);
	strbuf_clear(text);
	summary_render(&summary, false, 120, text);
	assert_has(strbuf_text(text), "\n1-3  mxnet 1.9.1");
	assert_has(strbuf_text(text), "\n  4  pytorch 2.15.0");
	assert_has(strbuf_text(text), "\nno rank for native, mxnet");
	summary_release(&summary);
	/* Disturbed processes: the report says how many undisturbed ones would suffice; five times
	 * the length is slower nevertheless. */
	noisy = NULL;
	scatter(mxnet, 1 / 1.5);
	for (size_t i = 0; i < mxnet->process_count; i++)
		mxnet->processes[i].foreign_share = 0.5;
	mxnet->flags |= CELL_FLAG_DISTURBED;
	summary_init(&summary, &results->run);
	noisy = find(&summary, "mxnet", STAGE_FORWARD);
	/* A contender that is faster although others took half of its time is faster. */
	assert_true(noisy->rank == 0 && noisy->rank_high == 2 && noisy->processes_to_rank == 3);
	assert_int_equal(find(&summary, "pytorch", STAGE_FORWARD)->rank, 4);
	strbuf_clear(text);
	assert_true(summary_undecided(&summary, 1, text));
	assert_has(strbuf_text(text),
		   ": other programs used the machine, so the order is not proved; "
		   "close them and run again (prony doctor); about 3 processes each "
		   "would settle it then: --repeat 3 (3 min)");
	/* A number of hundreds would come from the spread that other programs cause. */
	for (size_t i = 0; i < summary.count; i++)
		if (summary.rows[i].processes_to_rank > 0)
			summary.rows[i].processes_to_rank = 350;
	strbuf_clear(text);
	assert_true(summary_undecided(&summary, 1, text));
	assert_has(strbuf_text(text), "close them and run again");
	assert_lacks(strbuf_text(text), "--repeat");
	summary_release(&summary);
	mxnet->flags &= ~(unsigned)CELL_FLAG_DISTURBED;
	for (size_t i = 0; i < mxnet->process_count; i++)
		mxnet->processes[i].foreign_share = NAN;
	change_speed(pytorch, 1 / 5.0);
}

static void set_gap(struct stored_cell *cell, double gap)
{
	for (size_t i = 0; i < cell->process_count; i++)
		cell->processes[i].step_undisturbed_ns =
			cell->processes[i].step_mean_ns / (1 + gap + 0.002 * (double)i);
}

/* A pause of one contender only is its own; a pause of all is the machine's. */
RESULTS_TEST(test_gaps)
{
	struct summary summary;
	struct strbuf *text = test_strbuf();
	const size_t forward[] = {5, 6, 7, 8};
	assert_false(summary_gaps(&results->summary, 1, text));
	for (size_t i = 0; i < 4; i++)
		set_gap(&results->run.cells[forward[i]], forward[i] == 6 ? 0.15 : 0.01);
	summary_init(&summary, &results->run);
	assert_true(summary_gaps(&summary, 1, text));
	assert_string_equal(strbuf_text(text),
			    "pytorch has pauses of its own: its typical step is 15 % above its "
			    "undisturbed one, for the others at most 2 %");
	const struct summary_row *row = find(&summary, "pytorch", STAGE_FORWARD);
	assert_int_equal(row->undisturbed.n, 5);
	assert_true(fabs(row->undisturbed.center * (1 + row->gap) / row->step.center - 1) < 1e-9);
	assert_true(row->gap_low < row->gap && row->gap < row->gap_high);
	json_t *json = summary_cell_to_json(row);
	assert_true(json_number_value(
			    json_object_get(json_object_get(json, "undisturbed"), "gap")) > 0.14);
	json_decref(json);
	summary_release(&summary);
	for (size_t i = 0; i < 4; i++)
		set_gap(&results->run.cells[forward[i]], 0.12 + 0.1 * (double)(i % 2));
	strbuf_clear(text);
	summary_init(&summary, &results->run);
	assert_true(summary_gaps(&summary, 1, text));
	summary_release(&summary);
	for (size_t i = 0; i < 4; i++)
		set_gap(&results->run.cells[forward[i]], 0.12);
	strbuf_clear(text);
	summary_init(&summary, &results->run);
	assert_true(summary_gaps(&summary, 1, text));
	assert_has(
		strbuf_text(text),
		"the machine delays all frameworks at times: typical steps are 12 to 12 % above");
	summary_release(&summary);
	for (size_t i = 0; i < 4; i++)
		for (size_t p = 0; p < 5; p++)
			results->run.cells[forward[i]].processes[p].step_undisturbed_ns = NAN;
}

/* The shortest decimal that reads back as the same number. */
TEST(test_exact_numbers)
{
	struct strbuf *text = test_strbuf();
	format_real(0.1, text);
	strbuf_putc(text, ' ');
	format_real(0.30000000000000004, text);
	strbuf_putc(text, ' ');
	format_real(1.0 / 3, text);
	format_real(NAN, text);
	assert_string_equal(text->text, "0.1 0.30000000000000004 0.3333333333333333");
}

int main(void)
{
	return unit_tests_run(setup, teardown);
}
