#include "run/timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/gpu.h"
#include "base/memory.h"
#include "base/process_tree.h"
#include "parity/agreement.h"
#include "parity/reference.h"
#include "run/evaluation.h"
#include "run/loss_series.h"
#include "run/streaming.h"
#include "run/window.h"
#include "samples/disturbance.h"
#include "sensors/meters.h"
#include "sensors/sampling.h"

#define WINDOW_FILLED 0.1 /* part of a window that may be missing */
#define BLOCKS_MAX 4096	  /* warm-up blocks that are kept for the test of steadiness */
#define CALIBRATION_NS INT64_C(20000000) /* steps for so long give the time of one */
#define CHUNK_NS INT64_C(1000000000)	 /* the test of steadiness runs once a second */

/* The state of one timed process. */
struct timing {
	const struct launch *launch;
	struct team *team;
	struct meters *meters; /* of the GPUs of the cell; NULL: none */
	struct sampling *sampling;
	struct prefetch *loader; /* the loader of arriving batches; NULL: they are resident */
	struct prefetch_figures loaded; /* after the last request */
	const struct recipe *recipe;
	struct process_record *record;
	int64_t steps_done;		 /* steps so far; they determine the next slot */
	int64_t last_batch;		 /* of the last step */
	double step_ns;			 /* of the last request */
	struct evaluation *evaluation;	 /* of a training until a target, else NULL */
	struct series losses;		 /* read in the window; empty if none were */
	int64_t timed_ns;		 /* of the window without reading losses */
	int64_t wait_ns, copy_ns;	 /* part of timed_ns: waiting for and copying batches */
	int64_t rank_ns[CLIENTS_MAX];	 /* the same for each rank, by its own records */
	int64_t rank_began[CLIENTS_MAX]; /* the window, for each rank */
	unsigned *flags;
};

/* Returns the time of the steps of a request. It includes the time between its blocks, as in an
 * ordinary loop. For a framework's own loop, prony's call overhead between epochs is not counted.
 */
static int64_t steps_took(const struct timing *t, const struct client_window *window)
{
	int64_t sum = 0;
	if (t->launch->cell->cell.loop != LOOP_FIT)
		return window->records[window->count - 1].end_ns - window->records[0].begin_ns;
	for (size_t i = 0; i < window->count; i++)
		sum += window->records[i].end_ns - window->records[i].begin_ns;
	return sum;
}

/* Returns the batch of a request's last step, counted from the first batch of all. Each epoch of a
 * framework's own loop begins with the request's first batch. */
static int64_t last_batch(const struct timing *t, const struct run_request *request)
{
	int64_t every = request->steps;
	if (t->launch->cell->cell.loop == LOOP_FIT && request->sync == SYNC_STEP)
		every = 1;
	else if (t->launch->cell->cell.loop == LOOP_FIT && request->sync == SYNC_BLOCKS)
		every = (request->steps - 1) % request->every + 1;
	return request->done + every - 1;
}

static enum prony_status run_steps(struct timing *t, int64_t steps, enum sync_mode sync,
				   int64_t every, struct client_window *window, struct error *err)
{
	double expected_ns = (double)steps * t->step_ns;
	int64_t patience =
		t->launch->settings->limits.request_timeout_ns + (int64_t)(4 * expected_ns);
	const struct run_request request = {.steps = steps,
					    .every = every,
					    .slot = t->steps_done % t->recipe->slots,
					    .timeout_ns = patience,
					    .done = t->steps_done,
					    .sync = sync};
	enum prony_status status =
		streaming_run(t->loader, t->team, &request, window, &t->loaded, err);
	if (status != PRONY_OK)
		return status;
	if (window->rested_ns > 0)
		*t->flags |= CELL_FLAG_WAITS;
	t->steps_done += steps;
	t->last_batch = last_batch(t, &request);
	t->step_ns = (double)steps_took(t, window) / (double)steps;
	return PRONY_OK;
}

/* Returns the labels of the last step's batch. */
static const int64_t *last_labels(const struct timing *t)
{
	int64_t last = t->last_batch;
	return t->loader ? prefetch_labels(t->loader, last)
			 : batch_at(&t->launch->work->graph, &t->launch->work->inputs,
				    &t->launch->work->labels, (size_t)(last % t->recipe->slots))
				   .labels[0]
				   .data;
}

/*
 * Computes a loss from the logits of the last step, in float64, because the stage forward has none.
 */
static enum prony_status forward_loss(struct timing *t, double *loss, struct error *err)
{
	struct arena arena;
	struct tensor_set set;
	arena_init(&arena, 0);
	enum prony_status status = team_read(t->team, "logits", &arena, &set, err);
	const struct tensor *logits = status == PRONY_OK ? tensor_find(&set, "logits") : NULL;
	const struct graph *graph = &t->launch->work->graph;
	if (status == PRONY_OK &&
	    (!logits || !shape_equal(&logits->shape, &graph->values[graph->logits].shape) ||
	     logits->dtype != DTYPE_F32))
		status = error_set(err, PRONY_PROTOCOL,
				   "the worker returned no F32 'logits' of the right shape");
	if (status == PRONY_OK) {
		int64_t count = shape_elements(&logits->shape);
		double *wide = arena_array(&arena, (size_t)count, sizeof *wide);
		for (int64_t i = 0; i < count; i++)
			wide[i] = (double)((const float *)logits->data)[i];
		*loss = reference_objective(graph, wide, last_labels(t));
	}
	arena_release(&arena);
	return status;
}

/* A model file run unchanged has no loss. Checks that its outputs are finite and that those of slot
 * 0 match what the engines agreed on. */
static enum prony_status check_outputs(struct timing *t, const struct tensor_set *expected,
				       const struct tensor_set *changes, struct error *err)
{
	struct arena arena;
	struct tensor_set outputs;
	arena_init(&arena, 0);
	enum prony_status status = team_read(t->team, "outputs", &arena, &outputs, err);
	if (status == PRONY_OK && !agreement_is_finite(&outputs))
		status = error_set(err, PRONY_INVALID, "an output is not finite");
	if (status == PRONY_OK && expected && expected->count > 0) {
		struct agreement found = agreement_of(expected, &outputs, changes);
		/* Each may be one bound away from the reference, so twice the bound is allowed. */
		if (found.value > 2 * found.bound)
			status = error_set(err, PRONY_INVALID,
					   "output %s of the first step differs by %.3g from that "
					   "of the gate, more than %.3g",
					   found.output, found.value, 2 * found.bound);
	}
	arena_release(&arena);
	return status;
}

/* Reads the loss of the last step, outside the timed region. */
static enum prony_status read_loss(struct timing *t, double *loss, struct error *err)
{
	if (t->recipe->stage == STAGE_FORWARD)
		return forward_loss(t, loss, err);
	return team_read_loss(t->team, loss, err);
}

/* Only the framework knows which data its own loader gave, so this only checks that the result is
 * finite. */
static enum prony_status check_finite(struct timing *t, double *loss, struct error *err)
{
	struct arena arena;
	struct tensor_set set = {.count = 0};
	bool finite = true;
	enum prony_status status = PRONY_OK;
	arena_init(&arena, 0);
	if (t->recipe->stage == STAGE_FORWARD) {
		status = team_read(t->team, "logits", &arena, &set, err);
		finite = status != PRONY_OK || agreement_is_finite(&set);
	} else {
		status = team_read_loss(t->team, loss, err);
		finite = status != PRONY_OK || isfinite(*loss);
	}
	arena_release(&arena);
	return finite ? status
		      : error_set(err, PRONY_INVALID,
				  t->recipe->stage == STAGE_FORWARD ? "a logit is not finite"
								    : "a loss is not finite");
}

/* Whether there is a loss to check: null computes nothing, and the outputs of an unchanged model
 * file have no known meaning. */
static bool has_loss(const struct timing *t)
{
	bool known = t->recipe->input != INPUT_NATIVE || t->recipe->stage != STAGE_FORWARD;
	return known && !t->launch->cell->ungated && !t->launch->work->is_model;
}

static enum prony_status losses_read(struct timing *t, int64_t step, struct error *err)
{
	const struct process_record *record = t->record;
	double loss = NAN;
	enum prony_status status = read_loss(t, &loss, err);
	if (status == PRONY_OK && !isfinite(loss))
		status = error_set(err, PRONY_INVALID,
				   "the loss after step %lld of the window is not finite",
				   (long long)step);
	if (status == PRONY_OK)
		status = loss_series_add(&t->losses,
					 record->intervals[record->interval_count - 1].end_ns, loss,
					 err);
	return status;
}

static enum prony_status first_step(struct timing *t, struct error *err)
{
	struct client_window window;
	launch_event(t->launch, EVENT_STAGE, "first step");
	enum prony_status status = run_steps(t, 1, SYNC_END, 1, &window, err);
	if (status != PRONY_OK)
		return status;
	t->record->first_step_ns = window.records[0].end_ns - window.records[0].begin_ns;
	t->record->to_first_step_ns =
		window.records[0].end_ns - client_started_ns(t->team->clients[0]);
	if (t->launch->cell->ungated)
		return PRONY_OK;
	const struct workload *work = t->launch->work;
	if (work->is_model)
		return check_outputs(t, &work->outputs, &work->changes, err);
	if (t->recipe->input == INPUT_NATIVE)
		return check_finite(t, &t->record->loss_first, err);
	t->record->loss_expected = work->loss_mean;
	status = read_loss(t, &t->record->loss_first, err);
	if (status != PRONY_OK)
		return status;
	struct parity_bounds bounds = parity_bounds_for(&work->graph, t->recipe->precision);
	/* Which statistics its ranks use is known from the gate, which may have been kept. */
	if (!isnan(work->loss_global) && fabs(t->record->loss_first - work->loss_global) <
						 fabs(t->record->loss_first - work->loss_mean))
		t->record->loss_expected = work->loss_global;
	return gate_check_loss(t->record->loss_first, t->record->loss_expected,
			       work->loss_deviation, &bounds, err);
}

/*
 * Runs steps, doubling their number, until one request is long enough to know the time of a step.
 */
static enum prony_status calibrate(struct timing *t, struct error *err)
{
	struct client_window window;
	enum prony_status status = PRONY_OK;
	for (int64_t steps = 1; status == PRONY_OK;) {
		status = run_steps(t, steps, SYNC_END, 1, &window, err);
		if (status == PRONY_OK)
			t->record->warm_up_steps += steps;
		if (t->step_ns * (double)steps >= (double)CALIBRATION_NS)
			break;
		/*
		 * The last estimate may be wrong: at most ten times more (as in google/benchmark).
		 */
		double wanted = (double)CALIBRATION_NS / (t->step_ns > 1 ? t->step_ns : 1);
		int64_t next = at_least_one(wanted * 1.5);
		steps = next > 10 * steps ? 10 * steps : next > steps ? next : 2 * steps;
	}
	return status;
}

struct warm_up {
	struct step_record *blocks;
	int64_t *block_steps;
	size_t count;
};

static void keep_blocks(struct warm_up *warm, const struct client_window *window, int64_t every)
{
	for (size_t i = 0; i < window->count && warm->count < BLOCKS_MAX; i++) {
		warm->blocks[warm->count] = window->records[i];
		warm->block_steps[warm->count++] = every;
	}
}

/* Runs blocks until the caller finds the process steady, or until the cap. */
static enum prony_status warm_by_blocks(struct timing *t, struct warm_up *warm, struct error *err)
{
	const struct run_limits *limits = &t->launch->settings->limits;
	int64_t start = clock_monotonic_ns(), deadline = start + limits->warm_up_cap_ns;
	bool steady = !limits->test_steadiness;
	enum prony_status status = calibrate(t, err);
	for (int64_t now; status == PRONY_OK && (now = clock_monotonic_ns()) < deadline;) {
		int64_t left = deadline - now, chunk = left < CHUNK_NS ? left : CHUNK_NS;
		int64_t block = limits->block_ns;
		/* Without a test of steadiness the warm-up ends exactly at its cap. */
		if (!limits->test_steadiness && left < block)
			block = left;
		int64_t every = at_least_one(ceil((double)block / t->step_ns));
		int64_t blocks = at_least_one((double)chunk / ((double)every * t->step_ns));
		if (blocks > RECORDS_MAX)
			blocks = RECORDS_MAX;
		struct client_window window;
		status = run_steps(t, every * blocks, SYNC_BLOCKS, every, &window, err);
		if (status != PRONY_OK)
			break;
		t->record->warm_up_steps += every * blocks;
		keep_blocks(warm, &window, every);
		if (limits->test_steadiness &&
		    t->launch->caller->steady(
			    t->launch->caller->context, warm->blocks, warm->block_steps,
			    warm->count, window_coming_ns(t->launch->cell, limits, t->step_ns))) {
			steady = true;
			break;
		}
	}
	if (!steady)
		*t->flags |= CELL_FLAG_NOT_STEADY;
	return status;
}

static enum prony_status warm_by_steps(struct timing *t, int64_t steps, struct error *err)
{
	struct client_window window;
	t->record->warm_up_steps += steps;
	return run_steps(t, steps, SYNC_END, 1, &window, err);
}

/* Runs the rest of an epoch after its first step. A few steps after the first show whether the
 * epoch must be shortened. */
static enum prony_status warm_by_epoch(struct timing *t, int64_t steps, struct error *err)
{
	const struct plan_cell *cell = t->launch->cell;
	const struct run_limits *limits = &t->launch->settings->limits;
	int64_t few = limits->few_steps - 1;
	if (cell->epoch_ns <= 0 || steps <= few)
		return warm_by_steps(t, steps, err);
	enum prony_status status = warm_by_steps(t, few, err);
	int64_t left = window_epoch(cell, limits, t->step_ns) - 1 - few;
	return status == PRONY_OK && left > 0 ? warm_by_steps(t, left, err) : status;
}

static enum prony_status warm_up(struct timing *t, struct error *err)
{
	int64_t fixed = t->launch->cell->warm_up_steps, start = clock_monotonic_ns();
	enum prony_status status = PRONY_OK;
	launch_event(t->launch, EVENT_STAGE, "warm-up");
	t->record->warm_up_steps = 0;
	if (fixed > 0) {
		status = warm_by_epoch(t, fixed, err);
	} else if (fixed < 0) {
		struct warm_up warm = {.blocks = calloc(BLOCKS_MAX, sizeof *warm.blocks),
				       .block_steps = calloc(BLOCKS_MAX, sizeof *warm.block_steps)};
		status = warm.blocks && warm.block_steps
				 ? warm_by_blocks(t, &warm, err)
				 : error_set(err, PRONY_NOMEM, "no memory for warm-up blocks");
		free(warm.blocks);
		free(warm.block_steps);
	}
	t->record->warm_up_ns = clock_monotonic_ns() - start;
	return status;
}

/* Appends the records of a request to those of the process. */
static enum prony_status keep_intervals(struct process_record *record,
					const struct client_window *window, struct error *err)
{
	size_t count = record->interval_count + window->count;
	struct step_record *rows = realloc(record->intervals, count * sizeof *rows);
	if (!rows)
		return error_set(err, PRONY_NOMEM, "no memory for %zu step records", count);
	memcpy(rows + record->interval_count, window->records, window->count * sizeof *rows);
	record->intervals = rows;
	record->interval_count = count;
	return PRONY_OK;
}

/* Steps until the loss is read again: after the first step, then every `loss_every` steps. */
static int64_t until_loss(const struct timing *t, int64_t done, int64_t steps)
{
	int64_t each = t->launch->cell->loss_every;
	int64_t next = done == 0 ? 1 : (done / each + 1) * each;
	return (next < steps ? next : steps) - done;
}

/* Runs steps of the window in one request. */
static enum prony_status timed_request(struct timing *t, int64_t steps, int64_t every,
				       struct error *err)
{
	struct client_window window;
	enum prony_status status =
		run_steps(t, steps, t->launch->cell->cell.sync, every, &window, err);
	if (status != PRONY_OK)
		return status;
	for (size_t i = 0; i < t->team->count; i++) {
		if (t->timed_ns == 0)
			t->rank_began[i] = t->team->members[i].began_ns;
		t->rank_ns[i] += t->team->members[i].took_ns;
	}
	t->timed_ns += steps_took(t, &window);
	t->wait_ns += window.wait_ns;
	t->copy_ns += window.copy_ns;
	return keep_intervals(t->record, &window, err);
}

/* Runs a window in one request, or in several if losses are read between them. */
static enum prony_status run_window(struct timing *t, int64_t steps, int64_t every,
				    struct error *err)
{
	const struct plan_cell *cell = t->launch->cell;
	bool losses = cell->loss_every > 0 && every == 1 && has_loss(t);
	enum prony_status status = PRONY_OK;
	for (int64_t done = 0; done < steps && status == PRONY_OK;) {
		int64_t chunk = losses ? until_loss(t, done, steps) : steps;
		status = timed_request(t, chunk, every, err);
		done += chunk;
		if (status == PRONY_OK && losses)
			status = losses_read(t, done, err);
	}
	return status;
}

/* Trains until an evaluation reaches the target, in place of a window of a given length. *steps:
 * those behind the first step. */
static enum prony_status train_until(struct timing *t, int64_t every, int64_t *steps,
				     struct error *err)
{
	const struct plan_cell *cell = t->launch->cell;
	enum prony_status status = PRONY_OK;
	for (*steps = 0; *steps < cell->steps && t->record->target_steps == RECORD_NONE;) {
		status = timed_request(t, cell->until.every, every, err);
		*steps += cell->until.every;
		if (status == PRONY_OK)
			status = evaluation_run(t->evaluation, t->team, 1 + *steps, t->record, err);
		if (status != PRONY_OK)
			break;
	}
	return status;
}

/* Returns how many more steps fill the window; 0: it is full. Without a warm-up the number of steps
 * was computed from the first, slow step. */
static int64_t steps_left(const struct timing *t, int64_t every)
{
	const struct plan_cell *cell = t->launch->cell;
	double window = (double)t->launch->settings->limits.window_ns;
	double left = window - (double)t->timed_ns;
	int64_t room = RECORDS_MAX - (int64_t)t->record->interval_count;
	if (cell->steps > 0 || cell->warm_up_steps != 0 || cell->loss_every > 0 ||
	    left < WINDOW_FILLED * window || room < 1)
		return 0;
	int64_t blocks = at_least_one(left / ((double)every * t->step_ns));
	return (blocks < room ? blocks : room) * every;
}

static enum prony_status measure_window(struct timing *t, struct error *err)
{
	struct process_record *record = t->record;
	const struct prefetch_figures before = t->loaded;
	const struct window_size size =
		window_size(t->launch->cell, &t->launch->settings->limits, t->step_ns);
	int64_t steps = size.steps, every = size.every;
	if (size.few)
		*t->flags |= CELL_FLAG_FEW_STEPS;
	launch_event(t->launch, EVENT_STAGE, RUN_STAGE_MEASURING);
	sampling_mark(t->sampling, true);
	enum prony_status status = t->evaluation ? train_until(t, every, &steps, err)
						 : run_window(t, steps, every, err);
	for (int64_t left; status == PRONY_OK && (left = steps_left(t, every)) > 0; steps += left)
		status = run_window(t, left, every, err);
	sampling_mark(t->sampling, false);
	if (status != PRONY_OK)
		return status;
	record->block_steps = every;
	record->steps = steps;
	status = process_record_summarise(record, t->timed_ns, err);
	if (status == PRONY_OK)
		record->window_begin_ns = record->intervals[0].begin_ns;
	if (t->recipe->input != INPUT_RESIDENT) {
		record->input_wait_ns = (double)t->wait_ns / (double)steps;
		record->input_copy_ns = (double)t->copy_ns / (double)steps;
	}
	if (t->loader)
		streaming_keep(record, &before, &t->loaded, steps, t->flags);
	return status;
}

static enum prony_status last_loss(struct timing *t, struct error *err)
{
	if (t->launch->cell->ungated)
		return PRONY_OK;
	if (t->launch->work->is_model)
		return check_outputs(t, NULL, NULL, err);
	if (t->recipe->input == INPUT_NATIVE)
		return check_finite(t, &t->record->loss_last, err);
	enum prony_status status = read_loss(t, &t->record->loss_last, err);
	if (status == PRONY_OK && !isfinite(t->record->loss_last))
		status = error_set(err, PRONY_INVALID, "the loss after the window is not finite");
	return status;
}

static void keep_facts(struct process_record *record, const struct plan_cell *planned,
		       const struct worker_facts *facts)
{
	record->spawn_ns = facts->spawn_ns;
	record->import_ns = facts->import_ns;
	record->open_ns = facts->open_ns;
	record->build_ns = facts->build_ns;
	record->feed_ns = facts->feed_ns;
	record->threads = facts->threads * planned->target.world_size;
	record->mxcsr = facts->mxcsr;
	/* A file that is run unchanged keeps its own precision. */
	snprintf(record->precision, sizeof record->precision, "%s",
		 planned->cell.precision != planned->recipe.precision
			 ? precision_name(planned->cell.precision)
			 : facts->precision);
}

static int64_t worker_rested_ns(void *context, int64_t from_ns, int64_t to_ns)
{
	return sampling_rested_ns(context, from_ns, to_ns);
}

/* Starts measuring the workers' rest. The work of another device cannot be seen on the worker's
 * processors. */
static void watch_rest(const struct timing *t)
{
	if (device_is_cpu(t->launch->cell->cell.device))
		team_watch_rest(t->team, worker_rested_ns, t->sampling);
}

static enum prony_status timed_process(struct timing *t, json_t **details, struct error *why)
{
	const struct launch *launch = t->launch;
	struct worker_facts facts = {0};
	enum prony_status status = streaming_open(launch, &t->loader, why);
	/* The memory in use before the worker is read here. */
	if (status == PRONY_OK)
		t->meters = meters_open(PROCESS_HERE, launch->cell->cell.device, gpu_uuid);
	if (status == PRONY_OK)
		status = team_launch(t->team, launch, (size_t)RECORDS_MAX, t->recipe->input, why);
	if (status == PRONY_OK)
		status = sampling_start(PROCESS_HERE, client_guard(t->team->clients[0]),
					launch->cpus, launch->cpu_count, t->meters, &t->sampling,
					why);
	for (size_t i = 1; i < t->team->count && status == PRONY_OK; i++)
		sampling_also(t->sampling, client_guard(t->team->clients[i]));
	if (status == PRONY_OK)
		watch_rest(t);
	if (status == PRONY_OK)
		status = team_prepare(t->team, launch, t->recipe, &facts, why);
	if (facts.details) {
		keep_facts(t->record, t->launch->cell, &facts);
		*details = json_incref(facts.details);
	}
	worker_facts_release(&facts);
	if (status == PRONY_OK)
		status = streaming_start(launch, t->team, t->loader, why);
	if (status == PRONY_OK && t->loader)
		sampling_prony_too(t->sampling);
	if (status == PRONY_OK)
		status = first_step(t, why);
	if (status == PRONY_OK)
		status = warm_up(t, why);
	if (status == PRONY_OK)
		status = evaluation_open(launch, t->record, &t->evaluation, why);
	if (status == PRONY_OK)
		status = measure_window(t, why);
	if (status == PRONY_OK)
		status = last_loss(t, why);
	return status;
}

static int64_t known(int64_t value)
{
	return value >= 0 ? value : RECORD_NONE;
}

/* Keeps what each of several ranks did; their team has ended. */
static void keep_ranks(const struct timing *t, int ranks)
{
	struct process_record *record = t->record;
	double slowest = 0, fastest = INFINITY;
	if (ranks < 2)
		return;
	record->ranks = ranks;
	record->rank_records = memory_alloc((size_t)ranks * sizeof *record->rank_records);
	record->rank_count = (size_t)ranks;
	for (int i = 0; i < ranks; i++) {
		const struct team_member *member = &t->team->members[i];
		bool measured = record->steps > 0;
		record->rank_records[i] =
			(struct rank_record){.begin_ns = measured ? t->rank_began[i] : RECORD_NONE,
					     .length_ns = measured ? t->rank_ns[i] : RECORD_NONE,
					     .rss_bytes = known(member->rss_peak_bytes),
					     .user_ns = known(member->user_ns),
					     .system_ns = known(member->system_ns)};
		slowest = fmax(slowest, (double)t->rank_ns[i]);
		fastest = fmin(fastest, (double)t->rank_ns[i]);
		if (member->rss_peak_bytes > record->rank_rss_max)
			record->rank_rss_max = member->rss_peak_bytes;
	}
	if (record->steps > 0)
		record->rank_skew_ns = (slowest - fastest) / (double)record->steps;
}

enum prony_status timing_run(const struct launch *launch, struct process_record *record,
			     unsigned *flags, json_t **details, struct error *err)
{
	struct error why = ERROR_INIT;
	struct team team = {.count = 0};
	struct client_end end;
	unsigned own = 0;
	struct timing t = {.launch = launch,
			   .team = &team,
			   .recipe = &launch->cell->recipe,
			   .record = record,
			   .flags = &own};
	record->replicate = launch->replicate;
	record->round = launch->round;
	record->started_wall_ns = clock_wall_ns();
	int64_t start = clock_monotonic_ns();
	launch_event(launch, EVENT_PROCESS_START, NULL);
	enum prony_status status = timed_process(&t, details, &why);
	/* Must precede the end of the worker: afterwards its processes cannot be read. */
	sampling_stop(t.sampling, record);
	meters_close(t.meters);
	team_watch_rest(&team, NULL, NULL); /* rest is measured by t.sampling, which has stopped */
	sampling_figures(record);
	if (t.evaluation)
		evaluation_drop_figures(record);
	loss_series_keep(&t.losses, record);
	if (disturbance_seen(record))
		own |= CELL_FLAG_DISTURBED;
	prefetch_close(t.loader);
	evaluation_close(t.evaluation);
	team_end(&team, &end);
	record->total_ns = clock_monotonic_ns() - start;
	if (status == PRONY_OK && !end.clean)
		status = error_set(&why, PRONY_CRASHED,
				   "it ended with an error after the measurement: %s", end.how);
	record->log = end.log;
	record->rss_peak_bytes = end.rss_peak_bytes >= 0 ? end.rss_peak_bytes : RECORD_NONE;
	record->cpu_user_ns = end.user_ns >= 0 ? end.user_ns : RECORD_NONE;
	record->cpu_system_ns = end.system_ns >= 0 ? end.system_ns : RECORD_NONE;
	keep_ranks(&t, launch->work->ranks);
	if (status == PRONY_INTERRUPTED)
		return error_set(err, PRONY_INTERRUPTED, "interrupted");
	enum cell_status ended = status == PRONY_OK ? CELL_OK : cell_status_from(status);
	snprintf(record->status, sizeof record->status, "%s", cell_status_name(ended));
	snprintf(record->error, sizeof record->error, "%s", why.text);
	cell_flags_text(own, record->flags, sizeof record->flags);
	*flags |= own;
	return PRONY_OK;
}
