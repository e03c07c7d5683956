#include "sensors/sampling.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sensors/meters.h"
#include "sensors/sensor.h"

/* Samples per series. When a series is full, every second sample is dropped and the rate is halved:
 * seventeen minutes at 4 Hz. */
enum { SAMPLES_MAX = 4096 };

/* Entries of the costs series: only profiles have more than two windows. */
enum { COSTS_MAX = 64 };

/* A sensor may take at most 1 / COST_FACTOR of a processor; otherwise it is sampled less often. */
#define COST_FACTOR 400

/* Polling interval while waiting for a value to change. */
#define STEPS_POLL_NS INT64_C(100000)

/* Below this share of a core a process computes nothing: it only wakes up at times. */
#define RESTS_BELOW 0.05

/* A counter step lies between two polls. If the polls are further apart than this part of the step
 * interval, several steps may have happened, and the interval is unreliable. */
#define STEPS_UNSURE_MAX (1.0 / 3)

/* Edge of a window. */
enum edge { EDGE_NONE, EDGE_BEGIN, EDGE_END };

/* A sensor with its samples. */
struct track {
	const struct sensor *sensor;
	struct sensor_handle handle;
	struct series series;
	int64_t period_ns, due_ns;
	int64_t cpu_ns;	 /* CPU time of its samples */
	int64_t step_ns; /* the shortest interval seen between two counter steps; RECORD_NONE: none
			  */
	bool open;
};

struct sampling {
	struct watched watched;
	struct track *tracks;
	size_t track_count;
	pthread_t thread;
	pthread_mutex_t mutex; /* protects all of this */
	pthread_cond_t changed;
	bool stop, in_window;
	int64_t cpu_ns;	     /* CPU time of the ended thread and of the marks */
	int64_t look_cpu_ns; /* CPU time of the readings that several sensors share
				(sensors/watched.h) */
	struct series costs; /* CPU time of the shared readings and of each open sensor, at marks
				and at both ends */
	int64_t missed;	     /* samples that were a period or more late */
};

static int64_t thread_cpu_ns(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time))
		return 0;
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void take(struct watched *watched, struct track *track)
{
	struct series *series = &track->series;
	int64_t now_ns = clock_monotonic_ns();

	if (series->count == SAMPLES_MAX) {
		series_thin_out(series);
		track->period_ns *= 2;
	}
	int64_t before = thread_cpu_ns();
	watched->now_ns = now_ns;
	track->sensor->sample(watched, &track->handle,
			      &series->values[series->count * series->channel_count]);
	series->times_ns[series->count++] = now_ns;
	/* For a large process tree some sensors take milliseconds. */
	int64_t cost = thread_cpu_ns() - before, rest = cost * COST_FACTOR;
	track->cpu_ns += cost;
	track->due_ns = now_ns + (rest > track->period_ns ? rest : track->period_ns);
}

static bool moved(const struct series *series)
{
	const double *last = &series->values[(series->count - 1) * series->channel_count];

	return isfinite(*last) && isfinite(*(last - series->channel_count)) &&
	       *last != *(last - series->channel_count);
}

/* For a sensor whose counters move in steps: replaces the sample by two samples at the instants at
 * which the first channel changed, so that the values there are exact and the time between them is
 * the interval between steps. A poll that came late cannot say when the counter changed: there may
 * have been several steps, or one long ago. Then wait for the next two steps. When no step is seen,
 * keep the last change, or the plain sample. */
static void take_steps(struct watched *watched, struct track *track)
{
	struct series *series = &track->series;
	int64_t looked_ns = series->times_ns[series->count - 1];
	int64_t first_ns = 0, first_unsure_ns = 0; /* instant of the previous step; 0: none yet */
	int64_t until = clock_monotonic_ns() + track->sensor->steps_ns;

	while (clock_monotonic_ns() < until) {
		clock_sleep_until_ns(clock_monotonic_ns() + STEPS_POLL_NS);
		take(watched, track);
		size_t last = series->count - 1, width = series->channel_count;
		int64_t now_ns = series->times_ns[last];
		/* Measure until after the reading, because the reading itself may be delayed. */
		int64_t unsure_ns = clock_monotonic_ns() - looked_ns;
		looked_ns = now_ns;
		if (last == 0 || !moved(series)) {
			series->count -= last > 0;
			continue;
		}
		double most = STEPS_UNSURE_MAX * (double)(now_ns - first_ns);
		if (first_ns > 0 && (double)first_unsure_ns <= most && (double)unsure_ns <= most) {
			if (track->step_ns == RECORD_NONE || now_ns - first_ns < track->step_ns)
				track->step_ns = now_ns - first_ns;
			return;
		}
		first_ns = now_ns;
		first_unsure_ns = unsure_ns;
		series->times_ns[last - 1] = now_ns;
		memcpy(&series->values[(last - 1) * width], &series->values[last * width],
		       width * sizeof *series->values);
		series->count--;
	}
}

/* The same for a counter that is slow to read and to move. The sample stays, and each step adds
 * one. Before a window a single step tells what the counter had been; after it, the value of the
 * sample is that of the last step in the window, which was an interval before the next step
 * (sensors/figures_gpu.c): wait for two. */
static void take_slow_steps(struct watched *watched, struct track *track, enum edge edge)
{
	struct series *series = &track->series;
	int64_t until = clock_monotonic_ns() + track->sensor->steps_ns;
	int64_t looked_ns = series->times_ns[series->count - 1];
	int64_t first_ns = 0, first_unsure_ns = 0;

	while (clock_monotonic_ns() < until) {
		clock_sleep_until_ns(clock_monotonic_ns() + STEPS_POLL_NS);
		take(watched, track);
		int64_t now_ns = series->times_ns[series->count - 1];
		int64_t unsure_ns = clock_monotonic_ns() - looked_ns;
		looked_ns = now_ns;
		if (!moved(series)) {
			series->count--;
			continue;
		}
		double most = STEPS_UNSURE_MAX * (double)(now_ns - first_ns);
		bool sure = first_ns > 0 && (double)first_unsure_ns <= most &&
			    (double)unsure_ns <= most;
		if (sure && (track->step_ns == RECORD_NONE || now_ns - first_ns < track->step_ns))
			track->step_ns = now_ns - first_ns;
		if (edge == EDGE_BEGIN || sure)
			return;
		first_ns = now_ns;
		first_unsure_ns = unsure_ns;
	}
}

/* Whether a sensor is paused, because reading it would disturb the measurement. */
static bool rests(const struct sampling *s, const struct track *track, enum edge edge)
{
	return (s->in_window && track->sensor->outside_windows) ||
	       (edge == EDGE_NONE && track->sensor->at_marks);
}

/* Samples the sensors that are due, or all. The mutex is held. At the end of a window the order is
 * reversed, so that the sensors last in the table are nearest to the window at both ends. */
static void sample(struct sampling *s, bool all, enum edge edge)
{
	bool nobody = s->watched.below_count == 0;
	/* A process first noticed inside the window would add what it had counted before. */
	if (edge == EDGE_BEGIN)
		s->watched.tree_due_ns = 0;
	int64_t before = thread_cpu_ns(), now = watched_look(&s->watched);

	s->look_cpu_ns += thread_cpu_ns() - before;
	/* The worker has just appeared. */
	all = all || (nobody && s->watched.below_count > 0);
	for (size_t i = 0; i < s->track_count; i++) {
		struct track *track = &s->tracks[edge == EDGE_END ? s->track_count - 1 - i : i];
		if (!track->open || rests(s, track, edge) || (!all && track->due_ns > now))
			continue;
		/* A paused sensor is not late. */
		if (track->due_ns > 0 && !track->sensor->outside_windows &&
		    !track->sensor->at_marks)
			s->missed += now - track->due_ns >= track->period_ns;
		take(&s->watched, track);
		if (edge != EDGE_NONE && track->sensor->at_marks && track->sensor->steps_ns > 0)
			take_slow_steps(&s->watched, track, edge);
		else if (edge != EDGE_NONE && track->sensor->steps_ns > 0)
			take_steps(&s->watched, track);
	}
}

static void open_costs(struct sampling *s)
{
	struct series *costs = &s->costs;

	*costs = (struct series){
		.sensor = "sampling", .unit = "ns", .rate_unit = "cores", .kind = SERIES_COUNTER};
	costs->channels = memory_alloc((s->track_count + 1) * sizeof *costs->channels);
	costs->times_ns = memory_alloc(COSTS_MAX * sizeof *costs->times_ns);
	costs->values = memory_alloc(COSTS_MAX * (s->track_count + 1) * sizeof *costs->values);
	snprintf(costs->channels[costs->channel_count++], SERIES_WORD_BYTES, "looking");
	for (size_t i = 0; i < s->track_count; i++)
		if (s->tracks[i].open)
			snprintf(costs->channels[costs->channel_count++], SERIES_WORD_BYTES, "%s",
				 s->tracks[i].sensor->name);
}

static void note_costs(struct sampling *s)
{
	struct series *costs = &s->costs;

	if (costs->count == COSTS_MAX)
		series_thin_out(costs);
	double *values = &costs->values[costs->count * costs->channel_count];
	costs->times_ns[costs->count++] = clock_monotonic_ns();
	*values++ = (double)s->look_cpu_ns;
	for (size_t i = 0; i < s->track_count; i++)
		if (s->tracks[i].open)
			*values++ = (double)s->tracks[i].cpu_ns;
}

/* The next wake-up of the thread, also before the worker exists. Paused sensors wait for the next
 * mark. */
static int64_t next_due(const struct sampling *s)
{
	int64_t next = s->watched.below_count == 0 && s->watched.guard > 0 ? s->watched.tree_due_ns
									   : INT64_MAX;

	for (size_t i = 0; i < s->track_count; i++) {
		const struct track *track = &s->tracks[i];
		if (track->open && !rests(s, track, EDGE_NONE) && track->due_ns < next)
			next = track->due_ns;
	}
	return next;
}

static void *run(void *context)
{
	struct sampling *s = context;

	pthread_mutex_lock(&s->mutex);
	while (!s->stop) {
		int64_t due = next_due(s);
		struct timespec until = {.tv_sec = (time_t)(due / 1000000000),
					 .tv_nsec = (long)(due % 1000000000)};
		int woken = due == INT64_MAX
				    ? pthread_cond_wait(&s->changed, &s->mutex)
				    : pthread_cond_timedwait(&s->changed, &s->mutex, &until);
		if (woken == ETIMEDOUT && !s->stop)
			sample(s, false, EDGE_NONE);
	}
	s->cpu_ns += thread_cpu_ns();
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

static void open_track(const struct watched *watched, struct track *track)
{
	const struct sensor *sensor = track->sensor;
	struct series *series = &track->series;
	size_t width;

	snprintf(series->sensor, sizeof series->sensor, "%s", sensor->name);
	snprintf(series->unit, sizeof series->unit, "%s", sensor->unit);
	snprintf(series->rate_unit, sizeof series->rate_unit, "%s", sensor->rate_unit);
	series->kind = sensor->kind;
	track->open = sensor->probe(watched, series->absent);
	if (!track->open)
		return;
	sensor_open(sensor, watched, &track->handle);
	width = track->handle.channel_count;
	series->channel_count = width;
	series->channels =
		memory_realloc(track->handle.channels, width * sizeof *track->handle.channels);
	track->handle.channels = NULL;
	series->times_ns = memory_alloc(SAMPLES_MAX * sizeof *series->times_ns);
	series->values = memory_alloc(SAMPLES_MAX * width * sizeof *series->values);
	track->period_ns = sensor->period_ns;
}

/* Signals go to the main thread. */
static int start_thread(struct sampling *s)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int code = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

static void release(struct sampling *s)
{
	for (size_t i = 0; i < s->track_count; i++) {
		struct track *track = &s->tracks[i];
		if (track->open)
			sensor_close(track->sensor, &track->handle);
		series_release(&track->series);
	}
	series_release(&s->costs);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mutex);
	free(s->tracks);
	free(s);
}

enum prony_status sampling_start(int root_fd, pid_t guard, const int *cpus, int cpu_count,
				 struct meters *meters, struct sampling **out, struct error *err)
{
	struct sampling *s = memory_alloc(sizeof *s);
	pthread_condattr_t attributes;
	int64_t before = thread_cpu_ns();

	*s = (struct sampling){.track_count = sensor_count + (meters ? gpu_sensor_count : 0)};
	s->tracks = memory_alloc(s->track_count * sizeof *s->tracks);
	pthread_mutex_init(&s->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	watched_init(&s->watched, root_fd, getpid(), guard);
	watched_bind(&s->watched, cpus, cpu_count);
	s->watched.meters = meters;
	watched_look(&s->watched);
	for (size_t i = 0; i < s->track_count; i++) {
		size_t gpu = s->track_count - sensor_count; /* those of GPUs come first */
		s->tracks[i] = (struct track){
			.sensor = i < gpu ? gpu_sensors[i] : sensors[i - gpu],
			.step_ns = RECORD_NONE,
		};
		open_track(&s->watched, &s->tracks[i]);
	}
	open_costs(s);
	note_costs(s);
	s->cpu_ns = thread_cpu_ns() - before;
	int code = start_thread(s);
	if (code) {
		release(s);
		return error_errno(err, PRONY_INTERNAL, code, "cannot start the sensors' thread");
	}
	*out = s;
	return PRONY_OK;
}

void sampling_also(struct sampling *s, pid_t guard)
{
	pthread_mutex_lock(&s->mutex);
	if (s->watched.other_count < WATCHED_OTHERS_MAX)
		s->watched.others[s->watched.other_count++] = guard;
	pthread_mutex_unlock(&s->mutex);
}

void sampling_prony_too(struct sampling *s)
{
	pthread_mutex_lock(&s->mutex);
	s->watched.cores.prony_too = true;
	pthread_mutex_unlock(&s->mutex);
}

void sampling_mark(struct sampling *s, bool in_window)
{
	int64_t before = thread_cpu_ns();

	pthread_mutex_lock(&s->mutex);
	/* The cost of the marks themselves lies outside the window. */
	if (in_window)
		s->in_window = true;
	else
		note_costs(s);
	sample(s, true, in_window ? EDGE_BEGIN : EDGE_END);
	if (in_window)
		note_costs(s);
	s->in_window = in_window;
	s->cpu_ns += thread_cpu_ns() - before;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

static int64_t rested_between(const struct series *series, int64_t from_ns, int64_t to_ns)
{
	int64_t rested = 0;

	for (size_t i = 1; i < series->count; i++) {
		int64_t begin = series->times_ns[i - 1], end = series->times_ns[i];
		double used = series->values[i] - series->values[i - 1];
		if (begin >= from_ns && end <= to_ns && used >= 0 &&
		    used < RESTS_BELOW * (double)(end - begin))
			rested += end - begin;
	}
	return rested;
}

int64_t sampling_rested_ns(struct sampling *s, int64_t from_ns, int64_t to_ns)
{
	int64_t rested = 0;

	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < s->track_count; i++)
		if (s->tracks[i].open && s->tracks[i].sensor == &sensor_worker_cpu)
			rested = rested_between(&s->tracks[i].series, from_ns, to_ns);
	pthread_mutex_unlock(&s->mutex);
	return rested;
}

void sampling_stop(struct sampling *s, struct process_record *record)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	s->stop = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->mutex);
	pthread_join(s->thread, NULL);
	record->sampling_cpu_ns = s->cpu_ns;
	record->sampling_missed = s->missed;
	note_costs(s);
	if (s->watched.meters && s->watched.meters->count > 0) {
		snprintf(record->gpu_source, sizeof record->gpu_source, "%s",
			 s->watched.meters->source->name);
		record->gpu_memory_before = s->watched.meters->memory_before;
	}
	record->series_count = s->track_count + 1;
	record->series = memory_alloc(record->series_count * sizeof *record->series);
	for (size_t i = 0; i < s->track_count; i++) {
		/* Only energy counters move in steps: of the processor's packages, and of GPUs. */
		if (s->tracks[i].sensor == &sensor_rapl)
			record->energy_update_ns = s->tracks[i].step_ns;
		else if (s->tracks[i].sensor->steps_ns > 0)
			record->gpu_update_ns = s->tracks[i].step_ns;
		record->series[i] = s->tracks[i].series;
		s->tracks[i].series = (struct series){.count = 0};
	}
	record->series[s->track_count] = s->costs;
	s->costs = (struct series){.count = 0};
	release(s);
}
