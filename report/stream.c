/* Reads a run one comparison at a time. */
#include "report/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/names.h"
#include "report/summary_internal.h"

/* The cells of a run, grouped by comparison. */
struct plan {
	struct names comparisons;
	struct numbered {
		size_t comparison;
		int64_t cell;
	} * cells;
	size_t count, capacity;
	/* Comparisons of several ranks, whose efficiency needs the cells of others. */
	struct scaled {
		size_t comparison;
		struct cell cell;
	} * scaled;
	size_t scaled_count, scaled_capacity;
};

static void plan_cell(void *context, int64_t id, const struct cell *cell)
{
	struct plan *plan = context;
	char key[SUMMARY_KEY_BYTES];
	size_t known = plan->comparisons.count;
	size_t number = names_add(&plan->comparisons, key, summary_comparison_key(cell, key));
	plan->cells = memory_grow(plan->cells, plan->count, &plan->capacity, sizeof *plan->cells);
	plan->cells[plan->count++] = (struct numbered){number, id};
	if (number < known || !scaling_base_key(cell, SCALING_STRONG, key))
		return;
	plan->scaled = memory_grow(plan->scaled, plan->scaled_count, &plan->scaled_capacity,
				   sizeof *plan->scaled);
	plan->scaled[plan->scaled_count++] = (struct scaled){number, *cell};
}

/* Appends the cells of one rank against which the comparison's efficiency is computed. */
static size_t add_bases(const struct plan *plan, size_t comparison, int64_t *cells, size_t count)
{
	char key[SUMMARY_KEY_BYTES];
	size_t at = 0;
	while (at < plan->scaled_count && plan->scaled[at].comparison != comparison)
		at++;
	for (int scaling = 0; scaling < SCALINGS && at < plan->scaled_count; scaling++) {
		size_t bytes = scaling_base_key(&plan->scaled[at].cell, (enum scaling)scaling, key);
		size_t base = names_find(&plan->comparisons, key, bytes);
		for (size_t i = 0; i < plan->count; i++)
			if (plan->cells[i].comparison == base)
				cells[count++] = plan->cells[i].cell;
	}
	return count;
}

/* Orders by comparison, then by insertion. */
static int compare_numbered(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	if (x->comparison != y->comparison)
		return x->comparison < y->comparison ? -1 : 1;
	return (x->cell > y->cell) - (x->cell < y->cell);
}

/* The first `own` cells are visited; the others serve their figures only. */
static enum prony_status visit_cells(struct store_reader *reader, const int64_t *cells,
				     size_t count, size_t own, stream_visit *visit, void *context,
				     struct error *err)
{
	struct stored_run run;
	struct summary summary;
	enum prony_status status = store_reader_load(reader, cells, count, &run, err);
	if (status != PRONY_OK)
		return status;
	summary_init(&summary, &run);
	summary.count = own;
	while (summary.comparison_count > 0 && summary.first[summary.comparison_count - 1] >= own)
		summary.comparison_count--;
	status = visit(context, &summary, &run, err);
	summary_release(&summary);
	stored_run_release(&run);
	return status;
}

enum prony_status stream_comparisons(struct store_reader *reader, stream_visit *visit,
				     void *context, struct error *err)
{
	struct plan plan = {.cells = NULL};
	enum prony_status status = store_reader_cells(reader, plan_cell, &plan, err);
	if (status == PRONY_OK && plan.count > 0)
		qsort(plan.cells, plan.count, sizeof *plan.cells, compare_numbered);
	int64_t *cells = memory_alloc((plan.count + 1) * sizeof *cells);
	if (status == PRONY_OK && plan.count == 0)
		status = visit_cells(reader, NULL, 0, 0, visit, context, err);
	for (size_t i = 0, next; i < plan.count && status == PRONY_OK; i = next) {
		size_t comparison = plan.cells[i].comparison;
		for (next = i; next < plan.count && plan.cells[next].comparison == comparison;
		     next++)
			cells[next - i] = plan.cells[next].cell;
		size_t all = add_bases(&plan, comparison, cells, next - i);
		status = visit_cells(reader, cells, all, next - i, visit, context, err);
	}
	free(cells);
	free(plan.scaled);
	free(plan.cells);
	names_release(&plan.comparisons);
	return status;
}

/* A run and its summary while cells are added. */
struct whole {
	struct stored_run run;
	struct summary summary;
	size_t keep, capacity;
};

/* Doubles the room, so that the memory abandoned in the arena is no more than that in use. */
static void make_room(struct whole *whole, size_t cells)
{
	struct arena *arena = &whole->run.arena;
	if (whole->summary.count + cells <= whole->capacity)
		return;
	size_t capacity = 2 * whole->capacity + cells + 64;
	struct stored_cell *grown = arena_array(arena, capacity, sizeof *grown);
	struct summary_row *rows = arena_array(arena, capacity, sizeof *rows);
	size_t *first = arena_array(arena, capacity + 1, sizeof *first);
	if (whole->summary.count > 0) {
		memcpy(grown, whole->run.cells, whole->summary.count * sizeof *grown);
		memcpy(rows, whole->summary.rows, whole->summary.count * sizeof *rows);
		memcpy(first, whole->summary.first,
		       (whole->summary.comparison_count + 1) * sizeof *first);
	}
	whole->run.cells = grown;
	whole->summary.rows = rows;
	whole->summary.first = first;
	whole->capacity = capacity;
}

/* Moves a cell out of its run, with or without its processes. */
static void take_cell(struct arena *arena, struct stored_cell *from, bool with_processes,
		      struct stored_cell *to)
{
	*to = *from;
	to->reason = arena_strdup(arena, from->reason);
	to->gate_log = "";
	to->processes = NULL;
	to->process_count = 0;
	from->framework = from->evidence = NULL;
	if (!with_processes || from->process_count == 0)
		return;
	to->processes = arena_array(arena, from->process_count, sizeof *to->processes);
	memcpy(to->processes, from->processes, from->process_count * sizeof *to->processes);
	to->process_count = from->process_count;
	from->process_count = 0;
}

static void take_parts(struct arena *arena, struct run_meta *meta)
{
	const struct run_part *from = meta->parts;
	meta->parts = arena_array(arena, meta->part_count + 1, sizeof *meta->parts);
	for (size_t i = 0; i < meta->part_count; i++) {
		meta->parts[i] = from[i];
		meta->parts[i].environment = arena_strdup(arena, from[i].environment);
	}
}

static enum prony_status take_comparison(void *context, struct summary *part,
					 struct stored_run *run, struct error *err)
{
	struct whole *whole = context;
	struct summary *summary = &whole->summary;
	size_t comparison = summary->comparison_count;
	(void)err;
	if (comparison == 0) {
		whole->run.meta = run->meta;
		whole->run.meta.spec = arena_strdup(&whole->run.arena, run->meta.spec);
		whole->run.meta.command = arena_strdup(&whole->run.arena, run->meta.command);
		whole->run.meta.environment =
			arena_strdup(&whole->run.arena, run->meta.environment);
		whole->run.meta.tags =
			arena_strdup(&whole->run.arena, run->meta.tags ? run->meta.tags : "");
		take_parts(&whole->run.arena, &whole->run.meta);
	}
	if (part->count == 0)
		return PRONY_OK;
	make_room(whole, part->count);
	for (size_t i = 0; i < part->count; i++) {
		struct stored_cell *from = &run->cells[part->rows[i].cell - run->cells];
		summary->rows[summary->count] = part->rows[i];
		summary->rows[summary->count].comparison = comparison;
		summary->rows[summary->count].folded = false;
		take_cell(&whole->run.arena, from, comparison < whole->keep,
			  &whole->run.cells[summary->count]);
		whole->run.cell_count = ++summary->count;
	}
	summary->first[++summary->comparison_count] = summary->count;
	return PRONY_OK;
}

enum prony_status stream_summary(struct store_reader *reader, size_t keep, struct stored_run *run,
				 struct summary *summary, struct error *err)
{
	struct whole whole = {.keep = keep};
	arena_init(&whole.run.arena, 0);
	arena_init(&whole.summary.arena, 0);
	make_room(&whole, 1);
	enum prony_status status = stream_comparisons(reader, take_comparison, &whole, err);
	if (status != PRONY_OK) {
		summary_release(&whole.summary);
		stored_run_release(&whole.run);
		return status;
	}
	*run = whole.run;
	*summary = whole.summary;
	summary->run = run;
	for (size_t i = 0; i < summary->count; i++)
		summary->rows[i].cell = &run->cells[i];
	summary_fold(summary);
	return PRONY_OK;
}
