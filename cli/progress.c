#include "cli/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "report/format.h"
#include "report/summary.h"

#define REFERENCE_LINE_NS INT64_C(10000000000)

void progress_init(struct progress *progress, const struct plan *plan, int expected, int done)
{
	const char *term = getenv("TERM");
	*progress = (struct progress){.plan = plan,
				      .expected = expected,
				      .done = done,
				      .started_ns = clock_monotonic_ns()};
	progress->live = isatty(STDERR_FILENO) && !(term && !strcmp(term, "dumb"));
}

static void clear_line(struct progress *progress)
{
	if (progress->live && progress->line[0])
		cli_live_line("");
}

void progress_say(struct progress *progress, const char *text)
{
	clear_line(progress);
	cli_say("%s\n", text);
	if (progress->live && progress->line[0])
		cli_live_line(progress->line);
}

/* "native lenet train b64 fp32 cpu" */
static void cell_title(const struct plan_cell *cell, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s %s %s b%lld %s %s", cell->cell.framework, cell->cell.network,
		 stage_name(cell->cell.stage), (long long)cell->cell.batch,
		 precision_name(cell->cell.precision), cell->cell.device);
}

/* Time left, from the processes done so far; "" while nothing is known. */
static void eta_text(const struct progress *progress, char *out, size_t bytes)
{
	out[0] = '\0';
	if (progress->done < 1 || progress->expected <= progress->done)
		return;
	double passed = (double)(clock_monotonic_ns() - progress->started_ns) * 1e-9;
	double left = passed / progress->done * (progress->expected - progress->done);
	snprintf(out, bytes, ", about %d:%02d left", (int)(left / 60), (int)left % 60);
}

static void estimate_text(const struct estimate *estimate, char *out, size_t bytes)
{
	char step[32], half_width[32];
	out[0] = '\0';
	if (!estimate || !estimate->n)
		return;
	format_duration(estimate->center, step, sizeof step);
	format_percent(estimate->half_width, half_width, sizeof half_width);
	if (isfinite(estimate->half_width))
		snprintf(out, bytes, "  %s +/- %s", step, half_width);
	else
		snprintf(out, bytes, "  %s", step);
}

static void show_live(struct progress *progress, const struct run_event *event,
		      const struct estimate *estimate)
{
	char title[200], figure[80], eta[64];
	cell_title(&progress->plan->cells[event->cell], title, sizeof title);
	estimate_text(estimate, figure, sizeof figure);
	eta_text(progress, eta, sizeof eta);
	snprintf(progress->line, sizeof progress->line, "[%d/%d] %.110s  round %d: %s%s%s",
		 progress->done, progress->expected, title, event->round + 1,
		 event->text ? event->text : "starting", figure, eta);
	cli_live_line(progress->line);
}

/* The reference of a large network takes a while: a line every ten seconds, elsewhere a live one.
 */
static void show_reference(struct progress *progress, const struct run_event *event,
			   const struct estimate *estimate)
{
	char text[48], title[200], line[300];
	int64_t now = clock_monotonic_ns();
	snprintf(text, sizeof text, "reference, %.0f %%", 100 * event->fraction);
	if (progress->live) {
		struct run_event shown = *event;
		shown.text = text;
		show_live(progress, &shown, estimate);
	} else if (now - progress->reference_ns >= REFERENCE_LINE_NS) {
		cell_title(&progress->plan->cells[event->cell], title, sizeof title);
		snprintf(line, sizeof line, "%s: %s", title, text);
		if (progress->reference_ns)
			progress_say(progress, line);
		progress->reference_ns = now;
	}
}

static void show_process_end(struct progress *progress, const struct run_event *event,
			     const struct estimate *estimate)
{
	char title[200], figure[80], line[700];
	cell_title(&progress->plan->cells[event->cell], title, sizeof title);
	progress->done++;
	if (progress->expected < progress->done)
		progress->expected = progress->done;
	estimate_text(estimate, figure, sizeof figure);
	const struct process_record *record = event->record;
	if (strcmp(record->status, "ok")) {
		snprintf(line, sizeof line, "[%d/%d] %s: %s: %.300s", progress->done,
			 progress->expected, title, record->status, record->error);
		progress_say(progress, line);
	} else if (!progress->live) {
		snprintf(line, sizeof line, "[%d/%d] %s  round %d%s", progress->done,
			 progress->expected, title, event->round + 1, figure);
		progress_say(progress, line);
	}
}

void progress_event(struct progress *progress, const struct run_event *event,
		    const struct estimate *estimate)
{
	char title[200], line[700];
	if (event->kind != EVENT_REFERENCE)
		progress->reference_ns = 0;
	switch (event->kind) {
	case EVENT_WAITING:
		snprintf(line, sizeof line, "another prony is measuring (%s): waiting for it",
			 event->text);
		progress_say(progress, line);
		return;
	case EVENT_REFERENCE:
		show_reference(progress, event, estimate);
		return;
	case EVENT_GATE_START:
		if (!progress->live) {
			cell_title(&progress->plan->cells[event->cell], title, sizeof title);
			snprintf(line, sizeof line, "parity: %s", title);
			progress_say(progress, line);
			return;
		}
		break;
	case EVENT_GATE_KEPT:
		if (!progress->live) {
			cell_title(&progress->plan->cells[event->cell], title, sizeof title);
			snprintf(line, sizeof line, "parity: %s: passed on %s (--gate repeats it)",
				 title, event->text);
			progress_say(progress, line);
		}
		return;
	case EVENT_PROCESS_END:
		show_process_end(progress, event, estimate);
		break;
	case EVENT_GATE_AGAIN:
		cell_title(&progress->plan->cells[event->cell], title, sizeof title);
		snprintf(line, sizeof line, "%s: %.300s; the gate is tried once more", title,
			 event->text);
		progress_say(progress, line);
		return;
	case EVENT_CELL_END:
		progress->done += progress->gates;
		if (event->text && event->text[0]) {
			cell_title(&progress->plan->cells[event->cell], title, sizeof title);
			snprintf(line, sizeof line, "%s: %.300s", title, event->text);
			progress_say(progress, line);
		}
		return;
	default:
		break;
	}
	if (progress->live)
		show_live(progress, event, estimate);
}

void progress_end(struct progress *progress)
{
	clear_line(progress);
	progress->line[0] = '\0';
}
