/* Tests runs with a budget: parsing, when it is exceeded, which cell is next, and which processes
 * count meanwhile. */
#include "study/budget.h"
#include "study/counted.h"
#include "unit_test.h"

#define SECOND INT64_C(1000000000)

TEST(words_are_times)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} rows[] = {{"90", 90}, {"90s", 90}, {"30m", 1800}, {"30min", 1800}, {"1.5h", 5400}};
	static const char *const wrong[] = {"",	   "m",	  "0",	    "-5s", "5x",
					    "1e3", "inf", "99999h", "5 m"};
	struct budget budget;

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(budget_parse(rows[i].text, &budget, NULL), PRONY_OK);
		assert_int_equal(budget.length_ns, rows[i].seconds * SECOND);
	}
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct error err = ERROR_INIT;

		expect_error(budget_parse(wrong[i], &budget, &err), PRONY_USAGE, &err,
			     "write for example 90s, 30m or 1.5h");
	}
}

TEST(no_budget_is_never_late)
{
	struct run_cell cells[2] = {{.status = CELL_PENDING}, {.status = CELL_PENDING}};
	SCOPED(budget) budget;

	assert_int_equal(budget_parse(NULL, &budget, NULL), PRONY_OK);
	budget_begin(&budget, 2);
	budget_spend(&budget, 0, 1000 * SECOND);
	assert_false(budget_late(&budget, 0));
	assert_false(budget_later(&budget, cells, 2, 0, 3));
}

/* A process that would not end in time is not started. */
TEST(the_last_process_says_what_the_next_one_takes)
{
	SCOPED(budget) budget;

	assert_int_equal(budget_parse("1h", &budget, NULL), PRONY_OK);
	budget_begin(&budget, 2);
	budget_spend(&budget, 0, 3700 * SECOND);
	budget_spend(&budget, 1, 3000 * SECOND);
	assert_true(budget_late(&budget, 0));
	assert_false(budget_late(&budget, 1));
	budget.deadline_ns = 0;
	assert_true(budget_late(&budget, 1));
}

/* Adds a process that ended ok. */
static void add(struct run_cell *cell, double mean_ns, const char *flags, double foreign_share)
{
	SCOPED(process_record) record;

	process_record_init(&record);
	record.step_mean_ns = mean_ns;
	record.foreign_share = foreign_share;
	snprintf(record.flags, sizeof record.flags, "%s", flags);
	cell->flags |= cell_flags_parse(flags);
	run_cell_add(cell, &record);
	cell->tried++;
}

static void fill(struct run_cell *cell, double spread, size_t count)
{
	*cell = (struct run_cell){.status = CELL_PENDING};
	for (size_t i = 0; i < count; i++)
		add(cell, 1e6 * (1 + spread * ((double)i - 1)), "", 0);
}

/* Until each cell has three processes; then the cell with the widest interval is next; cells with
 * equal intervals take turns. */
TEST(the_widest_comes_first)
{
	static const double spreads[] = {0.10, 0.07, 0.02, 0.0, 0.0};
	static const size_t counts[] = {3, 3, 3, 3, 2};
	static const bool waits[] = {false, false, true, true, false};
	struct run_cell cells[COUNT(spreads)];
	SCOPED(budget) budget;

	assert_int_equal(budget_parse("1h", &budget, NULL), PRONY_OK);
	budget_begin(&budget, COUNT(spreads));
	for (size_t i = 0; i < COUNT(spreads); i++)
		fill(&cells[i], spreads[i], counts[i]);
	for (size_t i = 0; i < COUNT(spreads); i++)
		assert_int_equal(budget_later(&budget, cells, COUNT(spreads), i, 3), waits[i]);
	/* No cell waits for a cell that has ended. */
	cells[0].status = cells[1].status = CELL_OK;
	budget_spend(&budget, 0, SECOND);
	assert_false(budget_later(&budget, cells, COUNT(spreads), 2, 3));
	assert_true(budget_later(&budget, cells, COUNT(spreads), 3, 3));
	for (size_t i = 0; i < COUNT(spreads); i++)
		run_cell_release(&cells[i]);
}

/* Processes that the table leaves out do not end a cell, and their spread does not prolong it. */
TEST(those_that_were_disturbed_do_not_count)
{
	static const double quiet[] = {1.000e6, 1.004e6, 0.998e6, 1.001e6, 0.999e6};
	const struct effort_row *effort = &effort_table[1];
	SCOPED(run_cell) cell = {.status = CELL_PENDING};
	struct estimate estimate;
	bool open;

	for (int i = 0; i < 3; i++)
		add(&cell, quiet[i], "", 0.01);
	add(&cell, 1.8e6, "disturbed", 0.6);
	add(&cell, 1.5e6, "not-steady,disturbed", 0.4);
	counted_estimate(&cell, &estimate);
	assert_int_equal(estimate.n, 3);
	assert_true(counted_wants_more(&cell, effort, 0, &open));  /* five ran, three count */
	assert_false(counted_wants_more(&cell, effort, 5, &open)); /* five were requested */
	assert_true(counted_wants_more(&cell, &effort_table[0], 0, &open)); /* of eleven */
	/* It is unknown whether this process was disturbed; the cell has disturbed processes. */
	add(&cell, quiet[3], "", NAN);
	counted_estimate(&cell, &estimate);
	assert_int_equal(estimate.n, 3);
	add(&cell, quiet[3], "", 0.01);
	assert_true(counted_wants_more(&cell, effort, 0, &open));
	add(&cell, quiet[4], "", 0.01);
	counted_estimate(&cell, &estimate);
	assert_int_equal(estimate.n, 5);
	assert_true(estimate.half_width < 0.01);
	assert_false(counted_wants_more(&cell, effort, 0, &open));
	assert_false(open);
}

/* On a machine that is always busy, all processes count. If every second or third one is disturbed,
 * the cell ends as well. */
TEST(a_busy_machine_ends)
{
	const struct effort_row *effort = &effort_table[1];
	bool open = false;

	for (int period = 1; period <= 3; period++) {
		SCOPED(run_cell) cell = {.status = CELL_PENDING};
		while (counted_wants_more(&cell, effort, 0, &open)) {
			bool busy = cell.tried % period == 0;
			add(&cell, 1e6 * (1 + 0.2 * (cell.tried % 4)), busy ? "disturbed" : "",
			    busy ? 0.5 : 0);
			assert_true(cell.tried <= 2 * effort->processes_cap);
		}
		assert_true(cell.tried >= effort->processes_cap);
		assert_true(open);
	}
}
