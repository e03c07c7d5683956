/* The length of the window of a timed process, which the steadiness test gets before the window
 * begins. */
#include "cli/framework_word.h"
#include "cli/run_options.h"
#include "plan/plan.h"
#include "run/run.h"
#include "run/window.h"
#include "unit_test.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

/* The limits of default effort. */
static const struct run_limits limits = {.window_ns = 10 * SECOND,
					 .min_steps = 20,
					 .window_block_ns = 100 * MS,
					 .window_max_ns = 120 * SECOND,
					 .few_steps = 3};

static const struct {
	enum sync_mode sync;
	int64_t fixed, epoch_steps, step_ns;
	int64_t steps, every;
	bool few;
	int64_t coming_ns;
	int64_t epoch_ns;
} rows[] = {
	/* The effort's window; whole blocks, and steps that do not divide it. */
	{SYNC_BLOCKS, 0, 0, 10 * MS, 1000, 10, false, 10 * SECOND, 0},
	{SYNC_BLOCKS, 0, 0, 90 * MS, 112, 2, false, 10080 * MS, 0},
	{SYNC_BLOCKS, 0, 0, 3 * MS, 3366, 34, false, 10098 * MS, 0},
	{SYNC_END, 0, 0, 3 * MS, 3334, 3334, false, 10002 * MS, 0},
	/* The effort's minimum number of steps, and the longest window. */
	{SYNC_BLOCKS, 0, 0, 2 * SECOND, 20, 1, false, 40 * SECOND, 0},
	{SYNC_STEP, 0, 0, 2 * SECOND, 20, 1, false, 40 * SECOND, 0},
	{SYNC_BLOCKS, 0, 0, 7 * SECOND, 17, 1, true, 119 * SECOND, 0},
	{SYNC_BLOCKS, 0, 0, 90 * SECOND, 3, 1, true, 270 * SECOND, 0},
	/* At most RECORDS_MAX records. */
	{SYNC_STEP, 0, 0, 1000, RECORDS_MAX, 1, false, 10 * SECOND, 0},
	{SYNC_STEP, 0, 0, 9900, 1010102, 1, false, 9900 * INT64_C(1010102), 0},
	/* A fixed number of steps, even if that takes longer than any window; never fewer than the
	 * effort's. */
	{SYNC_BLOCKS, 5000, 0, 10 * MS, 5000, 10, false, 50 * SECOND, 0},
	{SYNC_BLOCKS, 100, 0, 2 * SECOND, 100, 1, false, 200 * SECOND, 0},
	{SYNC_BLOCKS, 20, 0, 10 * MS, 20, 10, false, 10 * SECOND, 0},
	{SYNC_BLOCKS, 3000, 1000, 10 * MS, 3000, 1000, false, 30 * SECOND, 0},
	/* Epochs that may be cut. Short epochs are not cut. Others are cut to the allowed time, but
	 * to three steps at least, or to all steps if there are fewer. */
	{SYNC_BLOCKS, 32, 32, 900 * MS, 32, 32, false, 28800 * MS, 30 * SECOND},
	{SYNC_BLOCKS, 32, 32, 2 * SECOND, 15, 15, false, 30 * SECOND, 30 * SECOND},
	{SYNC_BLOCKS, 64, 32, 2 * SECOND, 30, 15, false, 60 * SECOND, 30 * SECOND},
	{SYNC_END, 32, 32, 2 * SECOND, 15, 15, false, 30 * SECOND, 30 * SECOND},
	{SYNC_BLOCKS, 32, 32, 13 * SECOND, 3, 3, false, 39 * SECOND, 30 * SECOND},
	{SYNC_BLOCKS, 2, 2, 40 * SECOND, 2, 2, false, 80 * SECOND, 30 * SECOND},
};

TEST(the_coming_window_is_the_one_that_is_measured)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct plan_cell cell = {.cell.sync = rows[i].sync,
					       .steps = rows[i].fixed,
					       .epoch_steps = rows[i].epoch_steps,
					       .epoch_ns = rows[i].epoch_ns};
		struct window_size size = window_size(&cell, &limits, (double)rows[i].step_ns);
		int64_t coming_ns = window_coming_ns(&cell, &limits, (double)rows[i].step_ns);
		if (size.steps != rows[i].steps || size.every != rows[i].every ||
		    size.few != rows[i].few || coming_ns != rows[i].coming_ns)
			fail_msg("row %zu: %lld steps, every %lld, %s, %lld ns", i,
				 (long long)size.steps, (long long)size.every,
				 size.few ? "few" : "enough", (long long)coming_ns);
	}
}

/* A run of one process of `null`. */
struct trial {
	struct plan plan;
	struct run_cell cell;
	bool done;
	int64_t steps, warm_up_steps;
	int64_t told_ns, window_ns; /* predicted for the steadiness test; measured */
	char status[64];
};

static struct run_decision decide(void *context, size_t cell)
{
	(void)cell;
	return (struct run_decision){.choice = ((struct trial *)context)->done ? RUN_END : RUN_NOW,
				     .status = CELL_OK};
}

static bool judge(void *context, const struct step_record *blocks, const int64_t *block_steps,
		  size_t count, int64_t window_ns)
{
	(void)blocks, (void)block_steps, (void)count;
	((struct trial *)context)->told_ns = window_ns;
	return true;
}

static enum prony_status keep_process(void *context, const struct run_event *event,
				      struct error *err)
{
	struct trial *trial = context;

	(void)err;
	if (event->kind != EVENT_PROCESS_END)
		return PRONY_OK;
	trial->done = true;
	trial->window_ns = event->record->window_ns;
	trial->steps = event->record->steps;
	trial->warm_up_steps = event->record->warm_up_steps;
	snprintf(trial->status, sizeof trial->status, "%.60s", event->record->status);
	return PRONY_OK;
}

/* epoch_ns: if set, `steps` are an epoch, with another epoch before it. */
static void run_trial(struct trial *trial, int64_t steps, int64_t min_steps, int64_t epoch_ns)
{
	static const int cpus[] = {0};
	const char *self = getenv("PRONY");
	struct error err = ERROR_INIT;
	SCOPED(registry) registry = {.count = 0};
	struct run_options options = RUN_OPTIONS_DEFAULT;
	SCOPED(spec) spec;

	*trial = (struct trial){.done = false};
	options.axes[AXIS_FRAMEWORK].values[options.axes[AXIS_FRAMEWORK].count++] = "null";
	options.axes[AXIS_NETWORK].values[options.axes[AXIS_NETWORK].count++] = "mlp";
	options.axes[AXIS_DATASET].values[options.axes[AXIS_DATASET].count++] = "synthetic";
	options.axes[AXIS_DEVICE].values[options.axes[AXIS_DEVICE].count++] = "cpu:1";
	options.axes[AXIS_BATCH].values[options.axes[AXIS_BATCH].count++] = "8";
	options.axes[AXIS_STAGE].values[options.axes[AXIS_STAGE].count++] = "forward";
	spec_init(&spec);
	check(cli_registry(&registry, &err), &err);
	check(run_options_spec(&options, NULL, 0, &spec, &err), &err);
	const struct plan_settings planned = {.registry = &registry, .self = self, .cores = 1};
	check(plan_expand(&spec, &planned, &trial->plan, &err), &err);
	assert_int_equal(trial->plan.count, 1);
	trial->plan.cells[0].steps = steps;
	if (epoch_ns > 0) {
		trial->plan.cells[0].epoch_steps = steps;
		trial->plan.cells[0].warm_up_steps = steps - 1;
		trial->plan.cells[0].epoch_ns = epoch_ns;
	}
	const struct run_settings settings = {.limits = {.warm_up_cap_ns = 60 * SECOND,
							 .window_ns = 20 * MS,
							 .min_steps = min_steps,
							 .test_steadiness = true,
							 .block_ns = 10 * MS,
							 .window_block_ns = 10 * MS,
							 .window_max_ns = 120 * SECOND,
							 .few_steps = 3,
							 .request_timeout_ns = 60 * SECOND},
					      .self = self,
					      .cpus = cpus,
					      .cpu_count = 1};
	const struct run_caller caller = {
		.context = trial, .decide = decide, .steady = judge, .event = keep_process};
	check(run_execute(&trial->plan, &trial->cell, &settings, &caller, &err), &err);
	assert_string_equal(trial->status, "ok");
	run_cell_release(&trial->cell);
	plan_release(&trial->plan);
}

/* Steps of `null` take nanoseconds, so the windows given by a number of steps are long ones here.
 * On a busy machine they may take several times longer than predicted. */
TEST(the_steadiness_test_is_told)
{
	static const struct {
		int64_t fixed, least;
	} windows[] = {{0, 3}, {0, 300000000}, {300000000, 3}};
	struct trial trial;

	for (size_t i = 0; i < COUNT(windows); i++) {
		run_trial(&trial, windows[i].fixed, windows[i].least, 0);
		if (i > 0)
			assert_true(trial.window_ns > 150 * MS);
		if (trial.told_ns < trial.window_ns / 5 || trial.told_ns > 5 * trial.window_ns)
			fail_msg("window %zu: told %lld ns, measured %lld ns", i,
				 (long long)trial.told_ns, (long long)trial.window_ns);
	}
}

/* The first step of the first epoch is not counted as warm-up. */
TEST(long_epochs_are_cut)
{
	static const struct {
		int64_t epoch, epoch_ns, steps, warm_up;
	} epochs[] = {{32, 60 * SECOND, 32, 31}, {32, 1, 3, 2}, {3, 1, 3, 2}, {2, 1, 2, 1}};
	struct trial trial;

	for (size_t i = 0; i < COUNT(epochs); i++) {
		run_trial(&trial, epochs[i].epoch, 3, epochs[i].epoch_ns);
		assert_int_equal(trial.steps, epochs[i].steps);
		assert_int_equal(trial.warm_up_steps, epochs[i].warm_up);
	}
}
