/* What tables report about the limits of their figures: percentiles of steps, undisturbed steps,
 * effective settings, and the processes that a decision would take. */
#include "report/compare.h"
#include "report/export.h"
#include "report/figures.h"
#include "report_fixture.h"
#include "unit_test.h"

/* Indices of the fixture's forward cells, and the comparison of the forward stage. */
enum { MXNET = 5, PYTORCH = 6, NATIVE = 7, FORWARD = 1 };

static int setup(void **state)
{
	static struct stored_run run;
	report_fixture_init(&run, 0);
	*state = &run;
	return 0;
}

static int teardown(void **state)
{
	stored_run_release(*state);
	return 0;
}

#define STORED_TEST(name) TEST_ON(name, setup, teardown, struct stored_run *run)

static const struct summary_row *find(const struct summary *summary, const struct stored_cell *cell)
{
	for (size_t i = 0; i < summary->count; i++)
		if (summary->rows[i].cell == cell)
			return &summary->rows[i];
	fail_msg("no row");
	return NULL;
}

static void expect(const struct strbuf *text, const char *part)
{
	if (!strstr(strbuf_text(text), part))
		fail_msg("'%s' is not in: %s", part, strbuf_text(text));
}

static void wait_for_each_step(struct stored_cell *cell, int64_t steps)
{
	cell->cell.sync = SYNC_STEP;
	for (size_t i = 0; i < cell->process_count; i++) {
		struct process_record *record = &cell->processes[i];
		record->block_steps = 1;
		record->steps = steps;
		record->step_p90_ns = 1.1 * record->step_median_ns;
		record->step_p99_ns = 1.5 * record->step_median_ns;
	}
}

/* Percentiles are computed per process, then over processes like the step; only if ten steps lie
 * beyond them. */
STORED_TEST(percentiles_have_intervals)
{
	static const struct {
		int64_t steps;
		size_t known; /* percentiles */
	} cases[] = {{19, 0}, {20, 1}, {99, 1}, {100, 2}, {999, 2}, {1000, 3}};
	struct stored_cell *cell = &run->cells[NATIVE];
	struct summary summary;
	for (size_t i = 0; i < COUNT(cases); i++) {
		wait_for_each_step(cell, cases[i].steps);
		summary_init(&summary, run);
		const struct summary_row *row = find(&summary, cell);
		for (size_t which = 0; which < SUMMARY_LATENCIES; which++)
			assert_int_equal(row->latency[which].n,
					 which < cases[i].known ? cell->process_count : 0);
		summary_release(&summary);
	}
	summary_init(&summary, run);
	const struct summary_row *row = find(&summary, cell);
	assert_true(fabs(row->latency[2].center / (1.5 * row->step.center) - 1) < 1e-9);
	assert_true(fabs(row->latency[2].low / (1.5 * row->step.low) - 1) < 1e-9);
	summary_release(&summary);
	/* One window was too short. A percentile of the other windows only would be one of the
	 * faster processes. */
	cell->processes[2].steps = 500;
	summary_init(&summary, run);
	row = find(&summary, cell);
	assert_int_equal(row->latency[1].n, cell->process_count);
	assert_int_equal(row->latency[2].n, 0);
	struct strbuf *text = test_strbuf();
	assert_true(summary_short_windows(&summary, row->comparison, text));
	assert_string_equal(strbuf_text(text),
			    "no p99 for native: the windows have too few steps (--steps): p50 "
			    "needs 20, p90 needs 100, p99 needs 1000");
	json_t *json = summary_cell_to_json(row);
	const json_t *latency = json_object_get(json, "latency");
	assert_true(json_is_null(json_object_get(json_object_get(latency, "p99"), "center_ns")));
	assert_true(json_is_real(json_object_get(json_object_get(latency, "p90"), "half_width")));
	json_decref(json);
	summary_release(&summary);
	/* With SYNC_BLOCKS there are no percentiles, even if a block is one step. */
	cell->cell.sync = SYNC_BLOCKS;
	summary_init(&summary, run);
	assert_int_equal(find(&summary, cell)->latency[0].n, 0);
	assert_null(summary_more(&summary, FORWARD, SHOW_LATENCY));
	assert_false(summary_short_windows(&summary, FORWARD, text));
	summary_release(&summary);
}

STORED_TEST(percentiles_stand_under_the_table)
{
	SCOPED(summary) summary;
	struct strbuf *text = test_strbuf();
	struct error err = ERROR_INIT;
	for (size_t i = MXNET; i <= NATIVE + 1; i++)
		wait_for_each_step(&run->cells[i], 1000);
	run->cells[NATIVE + 2].cell.sync = SYNC_STEP;
	summary_init(&summary, run);
	summary_render(&summary, false, 80, text);
	expect(text, "\nframework        p50    +/-      p90    +/-      p99    +/-\n"
		     "native       2.10 ms  1.2 %  2.31 ms  1.2 %  3.15 ms  1.2 %\n");
	strbuf_clear(text);
	check(export_markdown(&summary, text, &err), &err);
	expect(text, "| native | 2.10 ms | 1.2 % | 2.31 ms | 1.2 % | 3.15 ms | 1.2 % |\n");
	strbuf_clear(text);
	check(export_csv_cells(&summary, text, &err), &err);
	expect(text, ",latency_p99_center_ns,latency_p99_low_ns,latency_p99_high_ns,");
}

static void set_undisturbed(struct stored_cell *cell, double factor)
{
	for (size_t i = 0; i < cell->process_count; i++)
		cell->processes[i].step_undisturbed_ns = cell->processes[i].step_mean_ns * factor;
}

/* The ratio of undisturbed steps has its own interval; the report says if it contradicts the ratio
 * of steps. */
STORED_TEST(undisturbed_steps_have_a_ratio)
{
	struct summary summary;
	struct strbuf *text = test_strbuf();
	set_undisturbed(&run->cells[NATIVE], 0.95);
	summary_init(&summary, run);
	assert_true(isnan(find(&summary, &run->cells[MXNET])->floor_undisturbed.ratio));
	assert_false(summary_disagreement(&summary, FORWARD, text));
	summary_release(&summary);
	set_undisturbed(&run->cells[MXNET], 0.95);
	set_undisturbed(&run->cells[PYTORCH], 0.60);
	summary_init(&summary, run);
	const struct summary_row *row = find(&summary, &run->cells[MXNET]);
	assert_true(fabs(row->floor_undisturbed.ratio / row->floor.ratio - 1) < 1e-9);
	assert_int_equal(row->undisturbed_order, ORDER_ALIKE);
	row = find(&summary, &run->cells[PYTORCH]);
	assert_int_equal(row->floor_order, ORDER_SLOWER);
	assert_int_equal(row->undisturbed_order, ORDER_FASTER);
	assert_int_equal(row->rank, 4);
	assert_true(summary_disagreement(&summary, FORWARD, text));
	assert_string_equal(strbuf_text(text),
			    "typical and undisturbed steps disagree: pytorch is 1.48x native by "
			    "typical steps and 0.932x (95 % interval 0.912x to 0.953x) by "
			    "undisturbed ones; ranks use the typical step");
	json_t *json = summary_cell_to_json(row);
	const json_t *floor = json_object_get(json_object_get(json, "undisturbed"), "floor");
	assert_string_equal(json_string_value(json_object_get(floor, "order")), "faster");
	json_decref(json);
	/* Its figures are in the second table of --full, within 80 columns. */
	summary.full = true;
	strbuf_clear(text);
	summary_render(&summary, false, 80, text);
	expect(text, "\nframework    undisturbed    +/-  undisturbed ratio    +/-        FLOP/s  "
		     "of peak\n");
	expect(text, "\npytorch          1.86 ms  1.2 %             0.932x  2.2 %  94.7 GFLOP/s   "
		     "  47 %\n");
	summary_release(&summary);
}

/* The weights once, and the caches of 64 samples; in fp32. */
STORED_TEST(what_a_decode_step_reads)
{
	SCOPED(summary) summary;
	struct strbuf *text = test_strbuf();

	json_object_set_new(run->cells[0].evidence, "weights_read", json_integer(1000000));
	json_object_set_new(run->cells[0].evidence, "caches_read", json_integer(1000));
	run->meta.environment = "{\"informational\": {\"measured\": {\"ceilings\": {\"cores\": 1, "
				"\"bandwidth\": {\"one\": 1e10, \"all\": 1e10}}}}}";
	summary_init(&summary, run);
	const struct summary_row *row = &summary.rows[0];
	double share = figure_value(FIGURE_BANDWIDTH_SHARE, row).value;
	assert_true(figure_value(FIGURE_READ, row).value == 4 * 1064000.0);
	assert_true(fabs(share * row->step.center * 10 / (4 * 1064000.0) - 1) < 1e-12);
	summary_render(&summary, false, 0, text);
	expect(text, "  of bandwidth");
}

/* The requested threads and precision against the observed ones. */
STORED_TEST(what_took_effect_is_said)
{
	struct stored_cell *cell = &run->cells[MXNET];
	SCOPED(summary) summary;
	struct strbuf *text = test_strbuf();
	summary_init(&summary, run);
	assert_false(summary_effective(&summary, FORWARD, text));
	for (size_t i = 0; i < cell->process_count; i++)
		cell->processes[i].cores_used = 1;
	/* With few samples of threads, processor time shows that there were two, or nothing. */
	assert_false(summary_effective(&summary, FORWARD, text));
	for (size_t i = 0; i < cell->process_count; i++)
		cell->processes[i].window_cpu_cores = NAN;
	assert_false(summary_effective(&summary, FORWARD, text));
	for (size_t i = 0; i < cell->process_count; i++)
		cell->processes[i].window_cpu_cores = 1.02;
	json_object_set_new(run->cells[PYTORCH].evidence, "precision_proved", json_string("bf16"));
	assert_true(summary_effective(&summary, FORWARD, text));
	assert_string_equal(
		strbuf_text(text),
		"mxnet was asked for 2 threads, but never ran on more than 1 processor at once; "
		"pytorch was asked for fp32, but by its logits it computes in bf16");
	/* On a GPU, the processor only issues the work. */
	snprintf(cell->cell.device, sizeof cell->cell.device, "cuda:0");
	strbuf_clear(text);
	assert_true(summary_effective(&summary, FORWARD, text));
	assert_lacks(strbuf_text(text), "mxnet");
	snprintf(cell->cell.device, sizeof cell->cell.device, "cpu");
	/* Beside other programs, it could not use more processors. */
	for (size_t i = 0; i < cell->process_count; i++)
		snprintf(cell->processes[i].flags, sizeof cell->processes[i].flags, "disturbed");
	strbuf_clear(text);
	assert_true(summary_effective(&summary, FORWARD, text));
	assert_lacks(strbuf_text(text), "mxnet");
	for (size_t i = 0; i < cell->process_count; i++) {
		*cell->processes[i].flags = '\0';
		cell->processes[i].cores_used = 4;
	}
	strbuf_clear(text);
	assert_true(summary_effective(&summary, FORWARD, text));
	expect(text, "mxnet was asked for 2 threads, but ran on 4 processors; ");
}

/* Eleven processes with a step of that many ms, except `slow`, which takes 37 % longer; `wobble`
 * makes cells differ. */
static void measure_in_rounds(struct stored_run *run, struct stored_cell *cell, double step_ms,
			      double wobble, int slow)
{
	enum { ROUNDS = 11 };
	struct process_record *first = cell->processes;
	struct process_record *records = arena_array(&run->arena, ROUNDS, sizeof *records);

	for (int i = 0; i < ROUNDS; i++) {
		double off = 1 + wobble * ((i * 7 % ROUNDS) - ROUNDS / 2) / ROUNDS;
		if (i < (int)cell->process_count)
			records[i] = first[i];
		else
			process_record_init(&records[i]);
		records[i].replicate = records[i].round = i;
		snprintf(records[i].status, sizeof records[i].status, "ok");
		records[i].step_mean_ns = step_ms * 1e6 * off * (i == slow ? 1.37 : 1);
		records[i].steps = 1000;
		records[i].window_ns = (int64_t)(records[i].step_mean_ns * 1000);
	}
	cell->processes = records;
	cell->process_count = ROUNDS;
}

/* The machine was slow in one round, while the faster one ran. Its mean step is longer, but it is
 * still first, in its rank and in the table. */
STORED_TEST(rows_stand_by_rank)
{
	SCOPED(summary) summary;

	measure_in_rounds(run, &run->cells[NATIVE], 1.00, 0.002, 4);
	measure_in_rounds(run, &run->cells[PYTORCH], 1.02, 0.003, -1);
	summary_init(&summary, run);
	const struct summary_row *native = find(&summary, &run->cells[NATIVE]);
	const struct summary_row *pytorch = find(&summary, &run->cells[PYTORCH]);
	assert_true(native->step.center > 1.005 * pytorch->step.center);
	assert_true(pytorch->floor.low > 1 && fabs(pytorch->floor.ratio - 1.02) < 0.003);
	assert_int_equal(native->rank, 1);
	assert_int_equal(pytorch->rank, 2);
	assert_true(native < pytorch);
	assert_ptr_equal(native, &summary.rows[summary.first[FORWARD]]);
	/*
	 * The others are ordered by their steps as before; those that cannot be compared are last.
	 */
	for (size_t i = summary.first[FORWARD] + 1; i < summary.first[FORWARD + 1]; i++)
		assert_true(!summary.rows[i].comparable || summary.rows[i - 1].comparable);
}

int main(void)
{
	return unit_tests_run(NULL, NULL);
}

/* native's cell becomes that of one rank, pytorch's that of two. */
STORED_TEST(ranks_have_an_efficiency)
{
	struct stored_cell *one_rank = &run->cells[NATIVE], *two_ranks = &run->cells[PYTORCH];
	struct strbuf *text = test_strbuf();

	two_ranks->cell = one_rank->cell;
	snprintf(one_rank->cell.device, sizeof one_rank->cell.device, "cpu:1");
	snprintf(two_ranks->cell.device, sizeof two_ranks->cell.device, "cpu:1x2");
	for (int strong = 1; strong >= 0; strong--) {
		SCOPED(summary) summary;
		one_rank->cell.batch = two_ranks->cell.batch / (strong ? 1 : 2);
		summary_init(&summary, run);
		const struct summary_row *one = find(&summary, one_rank);
		const struct summary_row *two = find(&summary, two_ranks);
		const struct contrast *of_two = two->efficiency, *of_one = one->efficiency;
		const int own = strong ? SCALING_STRONG : SCALING_WEAK;
		double wanted = one->step.center / two->step.center / (strong ? 2 : 1);
		assert_true(fabs(of_two[own].ratio / wanted - 1) < 1e-9);
		assert_true(of_two[own].low < wanted && wanted < of_two[own].high);
		assert_true(isnan(of_two[!own].ratio) && isnan(of_one[own].ratio));
		strbuf_clear(text);
		assert_true(summary_scaling(&summary, two->comparison, text));
		expect(text,
		       strong ? "the same batch: native " : "the same batch of a rank: native ");
	}
}

STORED_TEST(global_statistics_are_another_comparison)
{
	struct stored_cell *own = &run->cells[NATIVE], *global = &run->cells[PYTORCH];
	char a[SUMMARY_KEY_BYTES], b[SUMMARY_KEY_BYTES];

	global->cell = own->cell;
	size_t bytes = summary_cell_key(own, a);
	assert_true(bytes == summary_cell_key(global, b) && !memcmp(a, b, bytes));
	json_object_set_new(global->evidence, "batch_statistics", json_string("global"));
	assert_true(bytes != summary_cell_key(global, b));
	SCOPED(summary) summary;
	summary_init(&summary, run);
	assert_true(find(&summary, own)->comparison != find(&summary, global)->comparison);
}

STORED_TEST(a_break_even_has_readable_numbers)
{
	SCOPED(summary) summary;
	struct strbuf *text = test_strbuf();

	summary_init(&summary, run);
	struct summary_row *row = (struct summary_row *)find(&summary, &run->cells[NATIVE]);
	row->overtakes = &run->cells[PYTORCH];
	row->break_even = (struct break_even){12345.6, 1, 987654};
	assert_true(summary_break_even(&summary, row->comparison, text));
	expect(text, "native overtakes pytorch after 12300 steps (1 to 988000)");
}
