#include "cli/progress.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "report/format.h"
#include "report/summary.h"

#define SECOND_NS INT64_C(1000000000)
/* The line is redrawn more often than its clock changes, so that a late redraw on a busy machine
 * still leaves no second without a change. */
#define TICK_NS (SECOND_NS / 4)
#define REFERENCE_LINE_NS (10 * SECOND_NS)
/* Without a terminal, a line is printed at least this often. */
#define QUIET_NS (60 * SECOND_NS)

static double seconds_since(int64_t then_ns, int64_t now_ns)
{
	return (double)(now_ns - then_ns) * 1e-9;
}

void progress_init(struct progress *progress, const struct plan *plan, struct time_left *left)
{
	*progress = (struct progress){.plan = plan, .left = left, .live = cli_is_live()};
	progress->started_ns = progress->said_ns = clock_monotonic_ns();
	pthread_mutex_init(&progress->lock, NULL);
}

void progress_cell_title(const struct plan_cell *cell, char *out, size_t bytes)
{
	bool usual = axis_is_default(&axes[AXIS_INPUT], &cell->cell);

	snprintf(out, bytes, "%s %s %s b%lld %s %s%s%s", cell->cell.framework, cell->cell.network,
		 stage_name(cell->cell.stage), (long long)cell->cell.batch,
		 precision_name(cell->cell.precision), cell->cell.device, usual ? "" : " ",
		 usual ? "" : input_mode_name(cell->cell.input));
}

static void clock_text(double seconds, char *out, size_t bytes)
{
	int whole = (int)fmin(seconds, 1e8);
	if (whole >= 3600)
		snprintf(out, bytes, "%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
	else
		snprintf(out, bytes, "%d:%02d", whole / 60, whole % 60);
}

static void estimate_text(const struct estimate *estimate, char *out, size_t bytes)
{
	char step[32], half_width[32];
	out[0] = '\0';
	if (!estimate || !estimate->n)
		return;
	format_duration_within(estimate->center, estimate->half_width, step, sizeof step);
	format_percent(estimate->half_width, half_width, sizeof half_width);
	if (isfinite(estimate->half_width))
		snprintf(out, bytes, "  %s +/- %s", step, half_width);
	else
		snprintf(out, bytes, "  %s", step);
}

/* The changing parts come first: a narrow terminal cuts off the rest. */
static void live_text(struct progress *p)
{
	static const char beats[][3] = {"| ", "/ ", "- ", "\\ "};
	const char *beat = p->live ? beats[p->beat % (sizeof beats / sizeof *beats)] : "";
	int64_t now = clock_monotonic_ns();
	char passed[24], left[80], count[60], stage[120], title[200];
	clock_text(seconds_since(p->started_ns, now), passed, sizeof passed);
	time_left_text(p->left, now, left, sizeof left);
	time_left_count(p->left, count, sizeof count);
	if (!p->stage[0]) {
		snprintf(p->line, sizeof p->line, "%s%s  starting", beat, passed);
		return;
	}
	if (p->reference)
		snprintf(stage, sizeof stage, "reference, %.0f %%", 100 * p->fraction);
	else if (p->in_gate)
		snprintf(stage, sizeof stage, "parity: %s, %.0f s", p->stage,
			 floor(seconds_since(p->stage_ns, now)));
	else
		snprintf(stage, sizeof stage, "round %d: %s, %.0f s", p->round + 1, p->stage,
			 floor(seconds_since(p->stage_ns, now)));
	progress_cell_title(&p->plan->cells[p->cell], title, sizeof title);
	snprintf(p->line, sizeof p->line, "%s%s  %s left (%s %s)  %s  %.110s%s", beat, passed, left,
		 count, p->left->gate_only ? "gates" : "processes", stage, title,
		 p->figure_cell == p->cell ? p->figure : "");
}

static void show(struct progress *p)
{
	live_text(p);
	cli_live_line(p->line);
}

static void say(struct progress *p, const char *text)
{
	bool shown = p->live && p->line[0];
	if (shown)
		cli_live_line("");
	cli_say("%s\n", text);
	p->said_ns = clock_monotonic_ns();
	if (shown)
		cli_live_line(p->line);
}

void progress_say(struct progress *progress, const char *text)
{
	pthread_mutex_lock(&progress->lock);
	say(progress, text);
	pthread_mutex_unlock(&progress->lock);
}

/*
 * The thread that redraws the line four times a second, whatever the program waits for or computes.
 */
static void *tick(void *context)
{
	struct progress *p = context;
	struct timespec next;
	clock_gettime(CLOCK_MONOTONIC, &next);
	pthread_mutex_lock(&p->lock);
	while (!p->over) {
		next.tv_nsec += TICK_NS;
		next.tv_sec += next.tv_nsec / SECOND_NS;
		next.tv_nsec %= SECOND_NS;
		p->beat++;
		while (!p->over && pthread_cond_timedwait(&p->ended, &p->lock, &next) != ETIMEDOUT)
			continue;
		if (p->over)
			break;
		if (p->live) {
			show(p);
		} else if (clock_monotonic_ns() - p->said_ns >= QUIET_NS) {
			live_text(p);
			say(p, p->line);
		}
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

void progress_start(struct progress *progress)
{
	pthread_condattr_t monotonic;
	sigset_t all, before;
	progress->started_ns = clock_monotonic_ns();
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&progress->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	/* Signals must reach the main thread, whose waits they end. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	/* Without the thread, only events change the line. */
	progress->ticks = pthread_create(&progress->ticker, NULL, tick, progress) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_end(struct progress *progress)
{
	if (progress->ticks) {
		pthread_mutex_lock(&progress->lock);
		progress->over = true;
		pthread_cond_signal(&progress->ended);
		pthread_mutex_unlock(&progress->lock);
		pthread_join(progress->ticker, NULL);
		pthread_cond_destroy(&progress->ended);
		progress->ticks = false;
	}
	if (progress->live && progress->line[0])
		cli_live_line("");
	progress->line[0] = '\0';
}

/*
 * The reference of a large network takes long: without a terminal, prints a line every ten seconds.
 */
static void on_reference(struct progress *p, const struct run_event *event, int64_t now)
{
	char title[200], line[300];
	p->fraction = event->fraction;
	if (!p->reference) {
		p->reference = true;
		p->said_ns = now;
	} else if (!p->live && now - p->said_ns >= REFERENCE_LINE_NS) {
		progress_cell_title(&p->plan->cells[event->cell], title, sizeof title);
		snprintf(line, sizeof line, "%s: reference, %.0f %%", title, 100 * event->fraction);
		say(p, line);
	}
}

static void say_of_cell(struct progress *p, size_t cell, const char *text)
{
	char title[200], line[700];
	progress_cell_title(&p->plan->cells[cell], title, sizeof title);
	snprintf(line, sizeof line, "%s: %.400s", title, text);
	say(p, line);
}

static void say_process(struct progress *p, const struct run_event *event, const char *figure)
{
	const struct process_record *record = event->record;
	char title[200], count[60], line[700];
	bool good = strcmp(record->status, "ok") == 0;
	if (good && p->live)
		return;
	progress_cell_title(&p->plan->cells[event->cell], title, sizeof title);
	time_left_count(p->left, count, sizeof count);
	if (good)
		snprintf(line, sizeof line, "[%s] %s  round %d%s", count, title, event->round + 1,
			 figure);
	else
		snprintf(line, sizeof line, "[%s] %s: %s: %.300s", count, title, record->status,
			 record->error);
	say(p, line);
}

static void say_cell_end(struct progress *p, const struct run_event *event,
			 const struct estimate *estimate, const char *figure)
{
	char text[160];
	if (event->text && event->text[0]) {
		say_of_cell(p, event->cell, event->text);
	} else if (p->live) {
		/* Without a terminal, the line of its last process has shown it. */
		if (estimate && estimate->n)
			snprintf(text, sizeof text, "ok%s, %zu process%s", figure, estimate->n,
				 estimate->n == 1 ? "" : "es");
		else
			snprintf(text, sizeof text, "ok");
		say_of_cell(p, event->cell, text);
	}
}

static void note_stage(struct progress *p, const struct run_event *event, const char *stage,
		       int64_t now)
{
	p->cell = event->cell;
	p->round = event->round;
	snprintf(p->stage, sizeof p->stage, "%s", stage);
	p->stage_ns = now;
}

static void show_event(struct progress *p, const struct run_event *event,
		       const struct estimate *estimate, int64_t now)
{
	char text[160];
	switch (event->kind) {
	case EVENT_REFERENCE:
		on_reference(p, event, now);
		break;
	case EVENT_PREPARE:
		note_stage(p, event, "preparing", now);
		p->in_gate = p->left->cells[event->cell].gate;
		break;
	case EVENT_GATE_START:
		if (!p->live) {
			char title[200], line[300];
			progress_cell_title(&p->plan->cells[event->cell], title, sizeof title);
			snprintf(line, sizeof line, "parity: %s", title);
			say(p, line);
		}
		note_stage(p, event, "starting", now);
		p->in_gate = true;
		break;
	case EVENT_GATE_KEPT:
		if (!p->live) {
			char title[200], line[400];
			progress_cell_title(&p->plan->cells[event->cell], title, sizeof title);
			snprintf(line, sizeof line,
				 "parity: %s: passed on %.60s (to repeat: --gate)", title,
				 event->text);
			say(p, line);
		}
		break;
	case EVENT_GATE_AGAIN:
		snprintf(text, sizeof text, "%.100s; the gate runs once more", event->text);
		say_of_cell(p, event->cell, text);
		break;
	case EVENT_GATE_LATE:
		say_of_cell(p, event->cell, event->text);
		break;
	case EVENT_PROCESS_START:
		note_stage(p, event, "starting", now);
		p->in_gate = false;
		break;
	case EVENT_STAGE:
		note_stage(p, event, event->text, now);
		break;
	case EVENT_PROCESS_END:
		say_process(p, event, p->figure);
		break;
	case EVENT_CELL_END:
		say_cell_end(p, event, estimate, p->figure);
		break;
	case EVENT_FRAMEWORK:
	case EVENT_GATE_END:
		break;
	}
}

void progress_event(struct progress *progress, const struct run_event *event,
		    const struct run_cell *cell, const struct estimate *estimate)
{
	int64_t now = clock_monotonic_ns();
	pthread_mutex_lock(&progress->lock);
	time_left_event(progress->left, event, cell, now);
	progress->reference &= event->kind == EVENT_REFERENCE;
	estimate_text(estimate, progress->figure, sizeof progress->figure);
	progress->figure_cell = event->cell;
	show_event(progress, event, estimate, now);
	if (progress->live)
		show(progress);
	pthread_mutex_unlock(&progress->lock);
}
