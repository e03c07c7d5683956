/* The remaining time of a run: the events of an invented run, and the text shown meanwhile. */
#include "frameworks/registry.h"
#include "study/time_left.h"
#include "unit_test.h"

#define SECOND INT64_C(1000000000)
#define CELLS 2

static struct framework builtin = {.kind = FRAMEWORK_BUILTIN};
static struct framework_location place = {.framework = &builtin};
static struct network network = {.macs = 1000};

struct invented {
	struct plan_cell planned[CELLS];
	struct run_cell cells[CELLS];
	struct time_left left;
	int64_t now;
};

static void setup(struct invented *run, int effort, int repeat, bool gate_only, double budget)
{
	*run = (struct invented){.now = SECOND};
	for (int i = 0; i < CELLS; i++) {
		run->planned[i] = (struct plan_cell){
			.network = &network, .location = &place, .warm_up_steps = -1};
		run->planned[i].recipe.batch = 1;
	}
	struct plan plan = {.cells = run->planned, .count = CELLS};
	time_left_init(&run->left, &plan, &effort_table[effort], repeat, gate_only, 1, budget);
	time_left_begin(&run->left, run->cells, run->now);
}

static void event(struct invented *run, enum run_event_kind kind, size_t cell, const char *text)
{
	struct run_event event = {.kind = kind, .cell = cell, .text = text};
	if (kind == EVENT_PROCESS_END)
		run->cells[cell].mean_count = (size_t)++run->cells[cell].tried;
	if (kind == EVENT_CELL_END)
		run->cells[cell].status = CELL_OK;
	time_left_event(&run->left, &event, &run->cells[cell], run->now);
}

static void shows(const struct invented *run, const char *count, const char *left)
{
	char text[80];
	time_left_count(&run->left, text, sizeof text);
	assert_string_equal(text, count);
	time_left_text(&run->left, run->now, text, sizeof text);
	assert_string_equal(text, left);
}

static void process(struct invented *run, size_t cell, int seconds)
{
	event(run, EVENT_PREPARE, cell, NULL);
	event(run, EVENT_PROCESS_START, cell, NULL);
	event(run, EVENT_STAGE, cell, RUN_STAGE_MEASURING);
	run->now += seconds * SECOND;
	event(run, EVENT_PROCESS_END, cell, NULL);
}

TEST(a_run_is_estimated_by_what_its_processes_took)
{
	struct invented run;
	char text[80];

	setup(&run, 1, 0, false, 0);
	/* Per cell, 8.5 processes of 0.3 + 10 + 10 s, and its gate. */
	time_left_plan_text(&run.left, text, sizeof text);
	assert_string_equal(text, "10 to 24 processes, about 6 min");
	event(&run, EVENT_PREPARE, 0, NULL);
	run.now += SECOND;
	event(&run, EVENT_GATE_END, 0, NULL);
	event(&run, EVENT_GATE_KEPT, 1, NULL);
	shows(&run, "0 of 10 to 24", "about 6 min");
	/* Until the other cell has a process of its own, its processes are assumed to take as long:
	 * 7.5 and 8.5 of 100 s. */
	process(&run, 0, 100);
	shows(&run, "1 of 10 to 24", "about 27 min");
	process(&run, 1, 20);
	shows(&run, "2 of 10 to 24", "about 15 min");
	event(&run, EVENT_CELL_END, 0, NULL);
	shows(&run, "2 of 6 to 13", "about 3 min");
	event(&run, EVENT_CELL_END, 1, NULL);
	shows(&run, "2 of 2", "about 0 s");
	time_left_release(&run.left);
}

TEST(a_window_lasts_to_its_end_however_long_the_process_took)
{
	struct invented run;

	setup(&run, 1, 1, false, 0);
	process(&run, 0, 20);
	event(&run, EVENT_CELL_END, 0, NULL);
	event(&run, EVENT_PREPARE, 1, NULL);
	event(&run, EVENT_PROCESS_START, 1, NULL);
	run.now += 5 * SECOND;
	shows(&run, "1 of 2", "about 15 s");
	run.now += 60 * SECOND;
	shows(&run, "1 of 2", "about 10 s");
	event(&run, EVENT_STAGE, 1, RUN_STAGE_MEASURING);
	run.now += 7 * SECOND;
	shows(&run, "1 of 2", "about 3 s");
	time_left_release(&run.left);
}

TEST(a_reference_is_known_by_its_progress)
{
	struct invented run;
	struct run_event half = {.kind = EVENT_REFERENCE, .fraction = 0.5};

	setup(&run, 1, 0, true, 0);
	event(&run, EVENT_PREPARE, 0, NULL);
	time_left_event(&run.left, &(struct run_event){.kind = EVENT_REFERENCE}, run.cells,
			run.now);
	run.now += 40 * SECOND;
	time_left_event(&run.left, &half, run.cells, run.now);
	/*
	 * And two starts of 0.3 s; the time of the first one before the reference does not count.
	 */
	shows(&run, "0 of 2", "about 41 s");
	event(&run, EVENT_GATE_START, 0, NULL);
	run.now += 2 * SECOND;
	event(&run, EVENT_GATE_END, 0, NULL);
	event(&run, EVENT_CELL_END, 0, NULL);
	shows(&run, "1 of 2", "about 2 s");
	time_left_release(&run.left);
}

/* Cells of the same work share a reference; one that was computed tells the speed of the next. */
TEST(references_are_expected)
{
	struct invented run;
	char text[160];

	network.macs = 50000000000; /* at 8 samples and 3 updates, 120 s */
	setup(&run, 1, 0, true, 0);
	time_left_plan_text(&run.left, text, sizeof text);
	assert_string_equal(text, "2 gates to run, without timing, about 1 s and up to 2 min for "
				  "references");
	run.left.budget = 90;
	time_left_plan_text(&run.left, text, sizeof text);
	assert_has(text, " for references; --budget ends it after 90 s");
	run.left.budget = 0;
	shows(&run, "0 of 2", "about 2 min");
	run.left.cells[1].reference = 600e9; /* of another work, half of the first one's cost */
	run.left.cells[1].first = 1;
	event(&run, EVENT_PREPARE, 0, NULL);
	time_left_event(&run.left, &(struct run_event){.kind = EVENT_REFERENCE}, run.cells,
			run.now);
	run.now += 40 * SECOND;
	event(&run, EVENT_GATE_START, 0, NULL);
	shows(&run, "0 of 2", "about 21 s");
	/* A gate that is kept needs none. */
	event(&run, EVENT_GATE_KEPT, 1, NULL);
	event(&run, EVENT_CELL_END, 1, NULL);
	shows(&run, "1 of 2", "about 0 s");
	network.macs = 1000;
	time_left_release(&run.left);
}

TEST(a_budget_ends_it)
{
	struct invented run;

	setup(&run, 1, 0, false, 120);
	shows(&run, "0 of 10 to 24", "about 2 min");
	run.now += 100 * SECOND;
	shows(&run, "0 of 10 to 24", "about 20 s");
	time_left_release(&run.left);
}
