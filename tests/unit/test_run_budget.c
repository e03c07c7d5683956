/* A run with a budget: its words, when it is late, whose turn it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "cli/run_budget.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND INT64_C(1000000000)

static void words_are_times(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} rows[] = {{"90", 90}, {"90s", 90}, {"30m", 1800}, {"30min", 1800}, {"1.5h", 5400}};
	static const char *const wrong[] = {"",	   "m",	  "0",	    "-5s", "5x",
					    "1e3", "inf", "99999h", "5 m"};
	struct budget budget;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(budget_parse(rows[i].text, &budget, NULL), PRONY_OK);
		assert_int_equal(budget.length_ns, rows[i].seconds * SECOND);
	}
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct error err = ERROR_INIT;

		assert_int_equal(budget_parse(wrong[i], &budget, &err), PRONY_USAGE);
		assert_non_null(strstr(err.text, "write 90s, 30m or 1.5h"));
	}
}

static void no_budget_is_never_late(void **state)
{
	struct run_cell cells[2] = {{.status = CELL_PENDING}, {.status = CELL_PENDING}};
	struct budget budget;

	(void)state;
	assert_int_equal(budget_parse(NULL, &budget, NULL), PRONY_OK);
	budget_begin(&budget, 2);
	budget_spend(&budget, 0, 1000 * SECOND);
	assert_null(budget_late(&budget, 0));
	assert_false(budget_later(&budget, cells, 2, 0, 3));
	budget_release(&budget);
}

/* What would not end in time does not begin. */
static void the_last_process_says_what_the_next_one_takes(void **state)
{
	struct budget budget;

	(void)state;
	assert_int_equal(budget_parse("1h", &budget, NULL), PRONY_OK);
	budget_begin(&budget, 2);
	budget_spend(&budget, 0, 3700 * SECOND);
	budget_spend(&budget, 1, 3000 * SECOND);
	assert_string_equal(budget_late(&budget, 0), "the budget of 1h is spent");
	assert_null(budget_late(&budget, 1));
	budget.deadline_ns = 0;
	assert_non_null(budget_late(&budget, 1));
	budget_release(&budget);
}

static void fill(struct run_cell *cell, double spread, size_t count)
{
	*cell = (struct run_cell){.status = CELL_PENDING};
	for (size_t i = 0; i < count; i++)
		run_cell_add_mean(cell, 1e6 * (1 + spread * ((double)i - 1)));
}

/* Until each has three; then where intervals are widest, and in turn where they are alike. */
static void the_widest_comes_first(void **state)
{
	static const double spreads[] = {0.10, 0.07, 0.02, 0.0, 0.0};
	static const size_t counts[] = {3, 3, 3, 3, 2};
	static const bool waits[] = {false, false, true, true, false};
	struct run_cell cells[COUNT(spreads)];
	struct budget budget;

	(void)state;
	assert_int_equal(budget_parse("1h", &budget, NULL), PRONY_OK);
	budget_begin(&budget, COUNT(spreads));
	for (size_t i = 0; i < COUNT(spreads); i++)
		fill(&cells[i], spreads[i], counts[i]);
	for (size_t i = 0; i < COUNT(spreads); i++)
		assert_int_equal(budget_later(&budget, cells, COUNT(spreads), i, 3), waits[i]);
	/* Nobody waits for a cell that has ended. */
	cells[0].status = cells[1].status = CELL_OK;
	budget_spend(&budget, 0, SECOND);
	assert_false(budget_later(&budget, cells, COUNT(spreads), 2, 3));
	assert_true(budget_later(&budget, cells, COUNT(spreads), 3, 3));
	for (size_t i = 0; i < COUNT(spreads); i++)
		run_cell_release(&cells[i]);
	budget_release(&budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_times),
		cmocka_unit_test(no_budget_is_never_late),
		cmocka_unit_test(the_last_process_says_what_the_next_one_takes),
		cmocka_unit_test(the_widest_comes_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
