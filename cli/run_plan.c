#include "cli/run_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/run_needs.h"
#include "frameworks/registry.h"
#include "report/labels.h"
#include "report/text.h"

enum { INDENT = 2, NAMES_SHOWN = 4, REASONS_SHOWN = 2 };

static bool would_run(const struct plan_cell *cell)
{
	return cell->status == CELL_PENDING;
}

/* Writes the label without the framework; "" if the cells differ in nothing else. */
static void rest_of(const struct labels *labels, const struct plan_cell *cell, char *out)
{
	struct labels rest = *labels;
	bool any = false;

	rest.varies[AXIS_FRAMEWORK] = rest.partly[AXIS_FRAMEWORK] = false;
	for (int id = 0; id < AXIS_COUNT; id++)
		any |= rest.varies[id] || (rest.partly[id] && !axes[id].quiet);
	out[0] = '\0';
	if (any)
		label_text(&rest, &cell->cell, out, CELL_KEY_BYTES);
}

/* Returns the end of the cells from `first` that differ only in their framework, the innermost axis
 * of a plan. */
static size_t end_of_comparison(const struct plan *plan, const struct labels *labels, size_t first)
{
	char label[CELL_KEY_BYTES], other[CELL_KEY_BYTES];
	size_t end = first;

	rest_of(labels, &plan->cells[first], label);
	do {
		end++;
		if (end < plan->count)
			rest_of(labels, &plan->cells[end], other);
	} while (end < plan->count && !strcmp(label, other));
	return end;
}

/*
 * Adds "train: native, caffe, mxnet" for the cells that would run; adds nothing if there are none.
 */
static void add_comparison(const struct plan *plan, const struct labels *labels, size_t first,
			   size_t end, int width, struct strbuf *out)
{
	char label[CELL_KEY_BYTES];
	struct strbuf line;
	size_t named = 0;

	rest_of(labels, &plan->cells[first], label);
	strbuf_init(&line, 0);
	strbuf_printf(&line, "%s%s", label, *label ? ": " : "");
	for (size_t i = first; i < end; i++)
		if (would_run(&plan->cells[i]))
			strbuf_printf(&line, "%s%s", named++ ? ", " : "",
				      plan->cells[i].cell.framework);
	if (named > 0)
		text_wrap(strbuf_text(&line), INDENT, width, "", "", out);
	strbuf_release(&line);
}

/* The cells that cannot run for the same reason. */
struct obstacle {
	const struct plan_cell *cell; /* the first of these cells */
	size_t cells;
	const char *names[NAMES_SHOWN]; /* of frameworks; `more`: there are others */
	size_t named;
	bool more;
};

static struct obstacle *find_obstacle(struct obstacle *obstacles, size_t count,
				      const struct plan_cell *cell)
{
	for (size_t i = count; i > 0; i--)
		if (obstacles[i - 1].cell->status == cell->status &&
		    !strcmp(obstacles[i - 1].cell->reason, cell->reason))
			return &obstacles[i - 1];
	return NULL;
}

static void add_name(struct obstacle *obstacle, const char *name)
{
	for (size_t i = 0; i < obstacle->named; i++)
		if (!strcmp(obstacle->names[i], name))
			return;
	if (obstacle->named < NAMES_SHOWN)
		obstacle->names[obstacle->named++] = name;
	else
		obstacle->more = true;
}

static void add_obstacle(const struct obstacle *obstacle, const struct labels *labels, int width,
			 struct strbuf *out)
{
	const struct plan_cell *cell = obstacle->cell;
	char label[CELL_KEY_BYTES];
	struct strbuf line;

	strbuf_init(&line, 0);
	label_text(labels, &cell->cell, label, sizeof label);
	if (obstacle->cells == 1)
		strbuf_puts(&line, label);
	for (size_t i = 0; obstacle->cells > 1 && i < obstacle->named; i++)
		strbuf_printf(&line, "%s%s", i ? ", " : "", obstacle->names[i]);
	if (obstacle->cells > 1)
		strbuf_printf(&line, "%s (%zu cells)", obstacle->more ? " and others" : "",
			      obstacle->cells);
	strbuf_printf(&line, ": %s: %s%s%s", cell_status_name(cell->status), cell->reason,
		      cell->location->searched ? "; " : "",
		      cell->location->searched ? cell->location->searched : "");
	text_wrap(strbuf_text(&line), INDENT, width, "", "", out);
	strbuf_release(&line);
}

static bool would_not_run(const struct plan_cell *cell)
{
	return !would_run(cell);
}

/* Whether the framework is here but something else is missing. */
static bool lacks_something(const struct plan_cell *cell)
{
	return cell->status == CELL_MISSING && cell->location->origin != ORIGIN_NONE;
}

/* Groups the selected cells of the plan by their reasons; returns a new array, which the caller
 * frees. */
static struct obstacle *find_obstacles(const struct plan *plan,
				       bool (*meant)(const struct plan_cell *cell),
				       size_t *obstacle_count, size_t *cell_count)
{
	struct obstacle *obstacles = memory_alloc((plan->count + 1) * sizeof *obstacles);
	size_t count = 0, cells = 0;

	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_cell *cell = &plan->cells[i];
		if (!meant(cell))
			continue;
		struct obstacle *found = find_obstacle(obstacles, count, cell);
		if (!found) {
			found = &obstacles[count++];
			*found = (struct obstacle){.cell = cell};
		}
		found->cells++;
		cells++;
		add_name(found, cell->cell.framework);
	}
	*obstacle_count = count;
	*cell_count = cells;
	return obstacles;
}

static bool has_other_cause(const struct plan_cell *cell)
{
	return !would_run(cell) && !needs_something(cell);
}

static void add_obstacles(const struct plan *plan, const struct labels *labels, int width,
			  bool full, struct strbuf *out)
{
	size_t count, cells, all = 0;
	char head[100];
	struct obstacle *obstacles =
		find_obstacles(plan, full ? would_not_run : has_other_cause, &count, &cells);

	for (size_t i = 0; i < plan->count; i++)
		all += !would_run(&plan->cells[i]);
	if (all > 0) {
		snprintf(head, sizeof head, "%zu of %zu cells cannot run%s:", all, plan->count,
			 all > cells ? " (--full: all reasons)" : "");
		text_wrap(head, 0, width, "", "", out);
	}
	if (!full)
		needs_text(plan, width, out);
	for (size_t i = 0; i < count; i++)
		add_obstacle(&obstacles[i], labels, width, out);
	free(obstacles);
}

bool plan_lacks_text(const struct plan *plan, struct strbuf *out)
{
	size_t count, cells;
	struct obstacle *obstacles = find_obstacles(plan, lacks_something, &count, &cells);

	if (cells > 0)
		strbuf_printf(out, "%zu of %zu cells cannot run", cells, plan->count);
	for (size_t i = 0; i < count && i < REASONS_SHOWN; i++)
		strbuf_printf(out, "%s%s", i ? "; " : ": ", obstacles[i].cell->reason);
	if (count > REASONS_SHOWN)
		strbuf_puts(out, "; --dry-run shows the other reasons");
	free(obstacles);
	return cells > 0;
}

void plan_text(const struct plan *plan, int width, bool full, struct strbuf *out)
{
	const struct cell **cells = memory_alloc((plan->count + 1) * sizeof *cells);
	char common[CELL_KEY_BYTES] = "";

	for (size_t i = 0; i < plan->count; i++)
		cells[i] = &plan->cells[i].cell;
	struct labels labels = labels_of(cells, plan->count);
	if (plan->count > 0)
		label_common(&labels, cells[0], common, sizeof common);
	free(cells);
	text_wrap(common, 0, width, "", "", out);
	for (size_t i = 0, end; i < plan->count; i = end) {
		end = end_of_comparison(plan, &labels, i);
		add_comparison(plan, &labels, i, end, width, out);
	}
	add_obstacles(plan, &labels, width, full, out);
}

void plan_commands_text(const struct plan *plan, struct strbuf *out)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_cell *cell = &plan->cells[i];
		strbuf_printf(out, "%s  %s%s%s\n", cell->key,
			      would_run(cell) ? "would run" : cell_status_name(cell->status),
			      would_run(cell) ? "" : ": ", would_run(cell) ? "" : cell->reason);
		if (!cell->worker_argv)
			continue;
		strbuf_puts(out, "   ");
		for (const char *const *row = cell->worker_environment; row && *row; row++)
			strbuf_printf(out, " %s", *row);
		for (const char *const *word = cell->worker_argv; *word; word++)
			strbuf_printf(out, " %s", *word);
		strbuf_putc(out, '\n');
	}
}
