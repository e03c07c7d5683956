/* Runs the framework fake through everything that `prony run` does: two identical arms and arms
 * slowed down by known amounts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "cli/framework_word.h"
#include "cli/memory_limit.h"
#include "cli/run_options.h"
#include "cli/selftest_parts.h"
#include "diagnose/machine.h"
#include "plan/plan.h"
#include "run/run.h"

#define MILLISECOND_NS INT64_C(1000000)
#define TRIAL_WINDOW_MAX_NS (200 * MILLISECOND_NS)
#define TRIAL_WINDOW_MIN_NS (20 * MILLISECOND_NS)
#define TIMEOUT_NS (60000 * MILLISECOND_NS)
/* ROUNDS_KNOWN: rounds after which the step time is known. */
enum { CPUS_MAX_HERE = 1024, ROUNDS_KNOWN = 3, WORD_BYTES = 32 };

const double arm_slowdowns[ARM_COUNT] = {0, 0, 0.01, 0.02, 0.05};

/* A run of several arms in rounds until a deadline. */
struct trial {
	char words[ARM_COUNT][WORD_BYTES]; /* "fake+delay-us=12" */
	int count;
	int64_t deadline_ns, window_ns;
	size_t rounds_min, allowed; /* number of rounds that may start */
	double (*means_ns)[ARM_ROUNDS_MAX];
	size_t done[ARM_COUNT];
	int arm_of[ARM_COUNT]; /* one per cell of the plan */
	struct plan plan;
	struct run_cell cells[ARM_COUNT];
	char failure[256]; /* why a cell failed unexpectedly */
};

/* Finishes a started round in all arms; starts another one while there is time. */
static struct run_decision decide(void *context, size_t cell)
{
	struct trial *t = context;
	size_t begun = t->done[t->arm_of[cell]];

	if (begun >= t->allowed && t->allowed < ARM_ROUNDS_MAX &&
	    (t->allowed < t->rounds_min || clock_monotonic_ns() < t->deadline_ns))
		t->allowed++;
	return begun < t->allowed ? (struct run_decision){.choice = RUN_NOW}
				  : (struct run_decision){.choice = RUN_END, .status = CELL_OK};
}

static enum prony_status on_event(void *context, const struct run_event *event, struct error *err)
{
	struct trial *t = context;
	int arm = t->arm_of[event->cell];

	(void)err;
	if (event->kind == EVENT_PROCESS_END && t->done[arm] < ARM_ROUNDS_MAX)
		t->means_ns[arm][t->done[arm]++] =
			strcmp(event->record->status, "ok") ? NAN : event->record->step_mean_ns;
	if (event->kind == EVENT_CELL_END && event->status != CELL_OK && !*t->failure)
		snprintf(t->failure, sizeof t->failure, "%s: %s: %.200s",
			 t->plan.cells[event->cell].cell.framework, cell_status_name(event->status),
			 event->text ? event->text : "");
	return PRONY_OK;
}

/* Uses a small network and a data set that is always available. */
static enum prony_status make_spec(const struct trial *t, struct spec *spec, struct error *err)
{
	static const struct {
		enum axis_id axis;
		const char *word;
	} rest[] = {{AXIS_NETWORK, "mlp"},    {AXIS_DATASET, "synthetic"}, {AXIS_DEVICE, "cpu:1"},
		    {AXIS_BATCH, "8"},	      {AXIS_STAGE, "forward"},	   {AXIS_INPUT, "resident"},
		    {AXIS_PRECISION, "fp32"}, {AXIS_SYNC, "blocks"}};
	struct run_options options = RUN_OPTIONS_DEFAULT;

	options.quick = true;
	for (int i = 0; i < t->count; i++)
		options.axes[AXIS_FRAMEWORK].values[options.axes[AXIS_FRAMEWORK].count++] =
			t->words[i];
	for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
		struct option_list *list = &options.axes[rest[i].axis];
		list->values[list->count++] = rest[i].word;
	}
	return run_options_spec(&options, NULL, 0, spec, err);
}

static enum prony_status execute(struct trial *t, const struct spec *spec,
				 const struct registry *registry, const volatile int *stop,
				 struct error *err)
{
	char *self = path_self();
	int *cpus = memory_alloc(CPUS_MAX_HERE * sizeof *cpus);
	int cpu_count = machine_cores(cpus, CPUS_MAX_HERE);
	struct plan_settings planned = {.registry = registry, .self = self, .cores = cpu_count};
	struct run_settings settings = {
		.seed = spec->seed,
		.limits = {.warm_up_cap_ns = t->window_ns / 4,
			   .window_ns = t->window_ns,
			   .min_steps = 5,
			   .block_ns = t->window_ns / 10,
			   .window_max_ns = TIMEOUT_NS,
			   .few_steps = 3,
			   .request_timeout_ns = TIMEOUT_NS},
		.reference_bytes = memory_limit_reference(),
		.self = self,
		.cpus = cpus,
		.cpu_count = cpu_count,
		.cache = true,
		.stop = stop,
	};
	const struct run_caller caller = {.context = t, .decide = decide, .event = on_event};
	enum prony_status status = plan_expand(spec, &planned, &t->plan, err);

	if (status == PRONY_OK) {
		for (size_t i = 0; i < t->plan.count && i < ARM_COUNT; i++)
			for (int arm = 0; arm < t->count; arm++)
				if (!strcmp(t->plan.cells[i].cell.framework, t->words[arm]))
					t->arm_of[i] = arm;
		status = run_execute(&t->plan, t->cells, &settings, &caller, err);
		for (size_t i = 0; i < t->plan.count && i < ARM_COUNT; i++)
			run_cell_release(&t->cells[i]);
		plan_release(&t->plan);
	}
	free(cpus);
	free(self);
	if (status == PRONY_OK && *t->failure)
		status = error_set(err, PRONY_CRASHED, "a cell of the self-test failed: %s",
				   t->failure);
	return status;
}

static enum prony_status run_trial(struct trial *t, const volatile int *stop, struct error *err)
{
	struct registry registry = {.count = 0};
	struct spec spec;
	enum prony_status status = cli_registry(&registry, err);

	spec_init(&spec);
	if (status == PRONY_OK)
		status = make_spec(t, &spec, err);
	if (status == PRONY_OK)
		status = execute(t, &spec, &registry, stop, err);
	spec_release(&spec);
	registry_release(&registry);
	return status;
}

/*
 * Keeps rounds in which every process succeeded, and the amounts added relative to A's mean step.
 */
static void keep_whole_rounds(const struct trial *t, struct arms *out)
{
	double logs = 0;

	out->rounds = 0;
	for (size_t round = 0; round < t->done[ARM_A]; round++) {
		bool whole = true;
		for (int arm = 0; arm < ARM_COUNT; arm++)
			whole = whole && round < t->done[arm] && t->means_ns[arm][round] > 0;
		for (int arm = 0; whole && arm < ARM_COUNT; arm++)
			out->means_ns[arm][out->rounds] = t->means_ns[arm][round];
		logs += whole ? log(t->means_ns[ARM_A][round]) : 0;
		out->rounds += whole;
	}
	for (int arm = 0; arm < ARM_COUNT; arm++)
		out->injected[arm] /= exp(logs / (double)out->rounds);
}

/* The shortest step of some processes, to which the delays are relative. */
static enum prony_status known_step(double (*means_ns)[ARM_ROUNDS_MAX], int64_t window_ns,
				    const volatile int *stop, double *step_ns, struct error *err)
{
	struct trial *t = memory_alloc(sizeof *t);

	*t = (struct trial){.count = 1,
			    .window_ns = window_ns,
			    .rounds_min = ROUNDS_KNOWN,
			    .means_ns = means_ns};
	snprintf(t->words[ARM_A], WORD_BYTES, "fake");
	enum prony_status status = run_trial(t, stop, err);
	*step_ns = INFINITY;
	for (size_t i = 0; i < t->done[ARM_A]; i++)
		*step_ns = fmin(*step_ns,
				means_ns[ARM_A][i]); /* fmin of a number and NaN is the number */
	if (status == PRONY_OK && !isfinite(*step_ns))
		status = error_set(err, PRONY_CRASHED, "no process of the self-test succeeded");
	free(t);
	return status;
}

enum prony_status arms_measure(int64_t limit_ns, const volatile int *stop, struct arms *out,
			       struct error *err)
{
	double(*means_ns)[ARM_ROUNDS_MAX] = memory_alloc(sizeof out->means_ns);
	int64_t deadline_ns = clock_monotonic_ns() + limit_ns;
	/* A process takes about twice its window plus a fixed time; many processes are better than
	 * long ones. */
	int64_t window_ns = limit_ns / 40;
	window_ns = window_ns > TRIAL_WINDOW_MAX_NS ? TRIAL_WINDOW_MAX_NS : window_ns;
	window_ns = window_ns < TRIAL_WINDOW_MIN_NS ? TRIAL_WINDOW_MIN_NS : window_ns;
	struct trial *t = memory_alloc(sizeof *t);
	double step_ns = NAN;
	enum prony_status status = known_step(means_ns, window_ns, stop, &step_ns, err);

	*t = (struct trial){.count = ARM_COUNT,
			    .rounds_min = ROUNDS_KNOWN,
			    .deadline_ns = deadline_ns,
			    .window_ns = window_ns,
			    .means_ns = means_ns};
	snprintf(t->words[ARM_A], WORD_BYTES, "fake");
	for (int arm = ARM_SAME; arm < ARM_COUNT && status == PRONY_OK; arm++) {
		long us = lround(arm_slowdowns[arm] * step_ns / 1e3);
		snprintf(t->words[arm], WORD_BYTES, "fake+delay-us=%ld", us);
		out->injected[arm] = (double)us * 1e3;
	}
	out->injected[ARM_A] = 0;
	if (status == PRONY_OK)
		status = run_trial(t, stop, err);
	if (status == PRONY_OK)
		keep_whole_rounds(t, out);
	free(t);
	free(means_ns);
	return status;
}
