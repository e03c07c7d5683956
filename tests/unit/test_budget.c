/* Tests runs with a budget: parsing, when it is exceeded, which cell is next, and which processes
 * count meanwhile. */
#include "base/clock.h"
#include "frameworks/registry.h"
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

#define CELLS 5

/* A plan with a budget; cells of the same network are one comparison. */
struct staged {
	struct plan_cell planned[CELLS];
	struct plan plan;
	struct time_left left;
	struct budget budget;
};

static void begin(struct staged *s, const char *budget, const struct network *const *networks,
		  const struct framework *const *frameworks)
{
	static struct framework_location places[CELLS];
	*s = (struct staged){.plan = {.cells = s->planned, .count = CELLS}};
	for (size_t i = 0; i < CELLS; i++) {
		struct plan_cell *cell = &s->planned[i];
		places[i] = (struct framework_location){.framework = frameworks[i]};
		*cell = (struct plan_cell){
			.network = networks[i], .location = &places[i], .warm_up_steps = -1};
		cell_defaults(&cell->cell);
		snprintf(cell->cell.network, sizeof cell->cell.network, "%s", networks[i]->name);
		snprintf(cell->cell.framework, sizeof cell->cell.framework, "f%zu", i);
		cell->recipe.batch = 1;
	}
	assert_int_equal(budget_parse(budget, &s->budget, NULL), PRONY_OK);
	time_left_init(&s->left, &s->plan, &effort_table[0], 0, false, 1, 3600);
	budget_begin(&s->budget, &s->plan, &s->left, 3, SECOND);
}

static void end(struct staged *s)
{
	budget_release(&s->budget);
	time_left_release(&s->left);
}

static const struct framework builtin = {.kind = FRAMEWORK_BUILTIN},
			      python = {.kind = FRAMEWORK_PYTHON};
static const struct network small = {.name = "small", .macs = 1000},
			    large = {.name = "large", .macs = 1000000000};
static const struct network *const all_small[CELLS] = {&small, &small, &small, &small, &small};
static const struct framework *const all_builtin[CELLS] = {&builtin, &builtin, &builtin, &builtin,
							   &builtin};

TEST(no_budget_is_never_late)
{
	struct run_cell cells[CELLS] = {{.status = CELL_PENDING}};
	struct staged s;

	begin(&s, NULL, all_small, all_builtin);
	budget_spend(&s.budget, 0, 1000 * SECOND);
	assert_false(budget_late(&s.budget, 0));
	assert_false(budget_later(&s.budget, cells, CELLS, 0, 3));
	end(&s);
}

/* A process that would not end in time is not started. */
TEST(the_last_process_says_what_the_next_one_takes)
{
	struct staged s;

	begin(&s, "1h", all_small, all_builtin);
	budget_spend(&s.budget, 0, 3700 * SECOND);
	budget_spend(&s.budget, 1, 3000 * SECOND);
	assert_true(budget_late(&s.budget, 0));
	assert_false(budget_late(&s.budget, 1));
	/* Nor is one whose window alone is longer. */
	s.budget.deadline_ns -= 3600 * SECOND - SECOND / 2;
	assert_true(budget_late(&s.budget, 2));
	end(&s);
}

/* References and gates get half of the budget; what they may not begin, they say before. */
TEST(half_is_for_measuring)
{
	char why[RUN_REASON_BYTES];
	int64_t until_ns, now = clock_monotonic_ns();
	struct staged s;

	begin(&s, "100s", all_small, all_builtin);
	assert_true(budget_affords(&s.budget, 0, 40, &until_ns, why));
	assert_true(until_ns >= now + 49 * SECOND && until_ns <= now + 51 * SECOND);
	/* 60 s later, of which one process took 50: 10 of 50 s are spent. */
	s.budget.deadline_ns -= 60 * SECOND;
	budget_spend(&s.budget, 1, 50 * SECOND);
	assert_true(budget_affords(&s.budget, 0, 38, &until_ns, why));
	assert_false(budget_affords(&s.budget, 0, 48, &until_ns, why));
	assert_has(why, "need about 48 s, but --budget has 3");
	assert_has(why, "(half of it is for measuring); --budget 1");
	assert_true(budget_late(&s.budget, 0));
	assert_false(budget_late(&s.budget, 2));
	/* Of 40 s, those of the cell's own process are not for its gate. */
	assert_false(budget_affords(&s.budget, 1, 1, &until_ns, why));
	end(&s);
	begin(&s, NULL, all_small, all_builtin);
	assert_true(budget_affords(&s.budget, 0, 1e9, &until_ns, why));
	assert_int_equal(until_ns, 0);
	end(&s);
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

/* When each cell has three processes, the cell with the widest interval is next; cells with equal
 * intervals take turns. */
TEST(the_widest_comes_first)
{
	static const double spreads[CELLS] = {0.10, 0.07, 0.02, 0.0, 0.0};
	struct run_cell cells[CELLS];
	struct staged s;

	begin(&s, "1h", all_small, all_builtin);
	for (size_t i = 0; i < CELLS; i++)
		fill(&cells[i], spreads[i], 3);
	for (size_t i = 0; i < CELLS; i++)
		assert_int_equal(budget_later(&s.budget, cells, CELLS, i, 3), i >= 2);
	/* No cell waits for a cell that has ended. */
	cells[0].status = cells[1].status = CELL_OK;
	budget_look_again(&s.budget);
	assert_false(budget_later(&s.budget, cells, CELLS, 2, 3));
	assert_true(budget_later(&s.budget, cells, CELLS, 3, 3));
	for (size_t i = 0; i < CELLS; i++)
		run_cell_release(&cells[i]);
	end(&s);
}

/* A comparison waits for those that cost less. */
TEST(the_cheapest_comes_first)
{
	static const struct network *const networks[CELLS] = {&large, &large, &small, &small,
							      &small};
	static const struct framework *const frameworks[CELLS] = {&builtin, &python, &builtin,
								  &python, &builtin};
	struct run_cell cells[CELLS];
	struct staged s;
	size_t round[] = {3, 2, 4};

	begin(&s, "1h", networks, frameworks);
	for (size_t i = 0; i < CELLS; i++)
		fill(&cells[i], 0, 0);
	for (size_t i = 0; i < CELLS; i++)
		assert_int_equal(budget_later(&s.budget, cells, CELLS, i, 3), i < 2);
	/* The first time, cells that start faster are first in their round. */
	budget_order(&s.budget, cells, round, COUNT(round));
	assert_true(round[0] == 2 && round[1] == 4 && round[2] == 3);
	/* Each cell gets one before a cell gets another; only the first time there is an order. */
	for (size_t i = 2; i < CELLS; i++)
		fill(&cells[i], 0.1, 1);
	size_t random[] = {3, 2, 4};
	budget_order(&s.budget, cells, random, COUNT(random));
	assert_true(random[0] == 3 && random[1] == 2 && random[2] == 4);
	budget_look_again(&s.budget);
	for (size_t i = 0; i < CELLS; i++)
		assert_int_equal(budget_later(&s.budget, cells, CELLS, i, 3), i >= 2);
	add(&cells[0], 1e6, "", 0);
	add(&cells[1], 1e6, "", 0);
	budget_look_again(&s.budget);
	for (size_t i = 0; i < CELLS; i++)
		assert_int_equal(budget_later(&s.budget, cells, CELLS, i, 3), i < 2);
	/* Nothing waits for cells that have no time left. */
	budget_spend(&s.budget, 0, 3700 * SECOND);
	budget_spend(&s.budget, 1, 3700 * SECOND);
	budget_look_again(&s.budget);
	assert_false(budget_later(&s.budget, cells, CELLS, 2, 3));
	for (size_t i = 0; i < CELLS; i++)
		run_cell_release(&cells[i]);
	end(&s);
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
	counted_estimate(&cell, true, &estimate);
	assert_int_equal(estimate.n, 3);
	assert_true(counted_wants_more(&cell, effort, 0, &open));  /* five ran, three count */
	assert_false(counted_wants_more(&cell, effort, 5, &open)); /* five were requested */
	assert_true(counted_wants_more(&cell, &effort_table[0], 0, &open)); /* of eleven */
	/* It is unknown whether this process was disturbed; the cell has disturbed processes. */
	add(&cell, quiet[3], "", NAN);
	counted_estimate(&cell, true, &estimate);
	assert_int_equal(estimate.n, 3);
	add(&cell, quiet[3], "", 0.01);
	assert_true(counted_wants_more(&cell, effort, 0, &open));
	add(&cell, quiet[4], "", 0.01);
	counted_estimate(&cell, true, &estimate);
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
