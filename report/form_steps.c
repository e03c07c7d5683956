/* Prints the forms that list steps: TensorFlow's alexnet_benchmark and tf_cnn_benchmarks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/form_internal.h"
#include "report/names.h"
#include "report/summary.h"
#include "report/text.h"
#include "stats/estimate.h"

#define DISPLAY_EVERY 10 /* steps per printed line, in both */
#define RULE "----------------------------------------------------------------\n"

/* Returns the name of a run, "Forward across 100 steps": the original's names for its two runs, and
 * one for a third stage that it did not have. */
static const char *info_string(enum stage stage)
{
	return stage == STAGE_FORWARD		 ? "Forward"
	       : stage == STAGE_FORWARD_BACKWARD ? "Forward-backward"
						 : "Forward-backward and update";
}

/* Computes the mean and the standard deviation (divided by n) of numbers. */
static void moments(const double *x, size_t n, double *mean, double *deviation)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
	*mean = sum / (double)n;
	*deviation = sqrt(squares / (double)n);
}

void form_alexnet(const struct stored_cell *cell, const struct process_record *record,
		  const struct form_layers *layers, struct strbuf *out)
{
	double mean, deviation;

	layers->write(layers->context, &cell->cell, out);
	if (!form_has_steps(record, out))
		return;
	double *steps = memory_alloc(record->interval_count * sizeof *steps);
	for (size_t i = 0; i < record->interval_count; i++) {
		steps[i] = form_step(record, i);
		if (i % DISPLAY_EVERY == 0)
			strbuf_printf(out, "step %zu, duration = %.3f\n", i, steps[i]);
	}
	moments(steps, record->interval_count, &mean, &deviation);
	strbuf_printf(out, "%s across %zu steps, %.3f +/- %.3f sec / batch\n",
		      info_string(cell->cell.stage), record->interval_count, mean, deviation);
	free(steps);
}

/* Returns the loss read after the step that ended at that time; NaN if none was read. */
static double loss_at(const struct process_record *record, int64_t end_ns)
{
	const struct series *losses =
		series_find(record->series, record->series_count, SERIES_LOSS);

	for (size_t i = 0; losses && losses->channel_count == 1 && i < losses->count; i++)
		if (losses->times_ns[i] == end_ns)
			return losses->values[i];
	return NAN;
}

/* Adds a line of statistics over the steps so far. */
static void add_progress(const struct process_record *record, const double *speeds, double seconds,
			 double batch, size_t n, struct strbuf *out)
{
	double mean, deviation, loss = loss_at(record, record->intervals[n - 1].end_ns);

	moments(speeds, n, &mean, &deviation);
	/* The speed is that of the mean step, not the mean of the speeds. */
	strbuf_printf(out, "%zu\timages/sec: %.1f +/- %.1f (jitter = %.1f)", n,
		      batch * (double)n / seconds, deviation / sqrt((double)n), mad_of(speeds, n));
	if (isfinite(loss))
		strbuf_printf(out, "\t%.3f", loss);
	strbuf_putc(out, '\n');
}

void form_cnn(const struct stored_cell *cell, const struct process_record *record,
	      struct strbuf *out)
{
	double batch = (double)cell->cell.batch, seconds = 0;

	if (!form_has_steps(record, out))
		return;
	double *speeds = memory_alloc(record->interval_count * sizeof *speeds);
	strbuf_puts(out, "Done warm up\nStep\tImg/sec\ttotal_loss\n");
	for (size_t i = 0; i < record->interval_count; i++) {
		seconds += form_step(record, i);
		speeds[i] = batch / form_step(record, i);
		if (i == 0 || (i + 1) % DISPLAY_EVERY == 0)
			add_progress(record, speeds, seconds, batch, i + 1, out);
	}
	strbuf_printf(out, RULE "total images/sec: %.2f\n" RULE,
		      batch * (double)record->steps / seconds);
	free(speeds);
}

/* The cells of a run, numbered by table (all axes except network, batch and data set), by network
 * and by batch. */
struct grid {
	const struct stored_run *run;
	size_t *table, *network, *batch; /* per cell */
	size_t tables;
	bool *seen; /* per cell; scratch memory */
};

static size_t table_key(const struct cell *cell, char key[SUMMARY_KEY_BYTES])
{
	struct cell same = *cell;

	memset(same.network, 0, sizeof same.network);
	memset(same.dataset, 0, sizeof same.dataset);
	same.batch = 1;
	size_t used = summary_comparison_key(&same, key);
	/* The comparison key does not include the framework. */
	size_t length = strlen(cell->framework) + 1;
	memcpy(key + used, cell->framework, length);
	return used + length;
}

static void grid_init(struct grid *grid, const struct stored_run *run)
{
	struct names tables = {.count = 0}, networks = {.count = 0}, batches = {.count = 0};
	char key[SUMMARY_KEY_BYTES + CELL_WORD_BYTES];
	size_t room = (run->cell_count + 1) * sizeof(size_t);

	*grid = (struct grid){.run = run,
			      .table = memory_alloc(room),
			      .network = memory_alloc(room),
			      .batch = memory_alloc(room),
			      .seen = memory_alloc(run->cell_count + 1)};
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct cell *cell = &run->cells[i].cell;

		grid->table[i] = names_add(&tables, key, table_key(cell, key));
		grid->network[i] = names_add(&networks, cell->network, strlen(cell->network));
		grid->batch[i] = names_add(&batches, &cell->batch, sizeof cell->batch);
	}
	grid->tables = tables.count;
	names_release(&tables);
	names_release(&networks);
	names_release(&batches);
}

static void grid_release(struct grid *grid)
{
	free(grid->table);
	free(grid->network);
	free(grid->batch);
	free(grid->seen);
}

/* Finds the first cell of the table for each distinct number in `of`; returns their number. */
static size_t grid_first(struct grid *grid, size_t table, const size_t *of, size_t *cells)
{
	size_t count = 0;

	memset(grid->seen, 0, grid->run->cell_count + 1);
	for (size_t i = 0; i < grid->run->cell_count; i++) {
		if (grid->table[i] != table || grid->seen[of[i]])
			continue;
		grid->seen[of[i]] = true;
		cells[count++] = i;
	}
	return count;
}

static void add_speed(const struct grid *grid, size_t network, size_t batch, struct strbuf *out)
{
	for (size_t i = 0; i < grid->run->cell_count; i++) {
		double speed;

		if (grid->table[i] != grid->table[network] ||
		    grid->network[i] != grid->network[network] ||
		    grid->batch[i] != grid->batch[batch])
			continue;
		speed = form_total_speed(&grid->run->cells[i]);
		if (isnan(speed))
			strbuf_printf(out, " %s |", cell_status_name(grid->run->cells[i].status));
		else
			strbuf_printf(out, " %.2f |", speed);
		return;
	}
	strbuf_puts(out, "  |");
}

static void add_table(struct grid *grid, size_t table, struct strbuf *out)
{
	size_t room = (grid->run->cell_count + 1) * sizeof(size_t);
	size_t *columns = memory_alloc(room), *rows = memory_alloc(room);
	size_t column_count = grid_first(grid, table, grid->network, columns);
	size_t row_count = grid_first(grid, table, grid->batch, rows);
	const struct cell *first = &grid->run->cells[columns[0]].cell;

	strbuf_printf(out, "\n%s, %s, %s, images/sec:\n\n| batch |", first->framework,
		      first->device, precision_name(first->precision));
	for (size_t c = 0; c < column_count; c++) {
		strbuf_putc(out, ' ');
		text_markdown(grid->run->cells[columns[c]].cell.network, out);
		strbuf_puts(out, " |");
	}
	strbuf_puts(out, "\n| --- |");
	for (size_t c = 0; c < column_count; c++)
		strbuf_puts(out, " --- |");
	for (size_t r = 0; r < row_count; r++) {
		strbuf_printf(out, "\n| %lld |", (long long)grid->run->cells[rows[r]].cell.batch);
		for (size_t c = 0; c < column_count; c++)
			add_speed(grid, columns[c], rows[r], out);
	}
	strbuf_putc(out, '\n');
	free(columns);
	free(rows);
}

void form_cnn_tables(const struct stored_run *run, struct strbuf *out)
{
	struct grid grid;

	grid_init(&grid, run);
	for (size_t table = 0; table < grid.tables; table++)
		add_table(&grid, table, out);
	grid_release(&grid);
}
