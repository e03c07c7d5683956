/* Lines about frameworks that did not run as requested: threads, cores, precision; and what sums
 * the gradients of several ranks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "report/summary.h"

/* Processor time above the requested cores by less than this is ignored: it covers the start and
 * end of the window, and threads that wait now and then. */
#define CORES_MORE 0.5
#define CORES_FEWER 0.1

/* The largest figures of the cell's undisturbed processes: processors at one instant, and processor
 * time / time; NaN if not measured. Threads: as requested; a process confirms them before it is
 * timed. */
struct used {
	double processors, cores, threads;
};

static struct used find_used(const struct stored_cell *cell)
{
	struct used most = {NAN, NAN, NAN};
	for (size_t i = 0; i < cell->process_count; i++) {
		const struct process_record *record = &cell->processes[i];
		/* Beside other programs, threads get fewer processors. */
		if (strcmp(record->status, cell_status_name(CELL_OK)) != 0 ||
		    process_disturbance(record) == DISTURBANCE_SEEN)
			continue;
		most.processors = fmax(most.processors, record->cores_used);
		most.cores = fmax(most.cores, record->window_cpu_cores);
		if (record->threads > 0)
			most.threads = (double)record->threads;
	}
	return most;
}

/* Adds a framework that used fewer or more cores than requested. Threads are sampled rarely, so
 * processor time must agree. A framework on another device needs one thread only. */
static bool says_cores(const struct summary_row *row, const char *before, struct strbuf *out)
{
	if (!device_is_cpu(row->cell->cell.device))
		return false;
	struct used used = find_used(row->cell);
	bool fewer = used.processors < used.threads && used.cores <= used.processors + CORES_FEWER;
	bool more = used.processors > used.threads || used.cores > used.threads + CORES_MORE;
	if (!fewer && !more)
		return false;
	strbuf_printf(out, "%s%s was asked for %.0f thread%s, but ", before,
		      row->cell->cell.framework, used.threads, used.threads > 1 ? "s" : "");
	if (fewer)
		strbuf_printf(out, "never ran on more than %.0f processor%s at once",
			      used.processors, used.processors > 1 ? "s" : "");
	else
		strbuf_printf(out, "ran on %.0f processors",
			      ceil(fmax(used.processors, used.cores)));
	return true;
}

static bool says_precision(const struct summary_row *row, const char *before, struct strbuf *out)
{
	const char *asked = precision_name(row->cell->cell.precision);
	const char *proved = json_string_or(row->cell->evidence, "precision_proved", asked);
	if (!strcmp(asked, proved))
		return false;
	strbuf_printf(out, "%s%s was asked for %s, but by its logits it computes in %s", before,
		      row->cell->cell.framework, asked, proved);
	return true;
}

/* Adds what sums the gradients of ranks, without which their step cannot be judged. */
static bool says_ranks(const struct summary_row *row, const char *before, struct strbuf *out)
{
	const char *sums = json_string_or(row->cell->framework, "collectives", "");
	if (!*sums)
		return false;
	strbuf_printf(out, "%s%s sums gradients by %s", before, row->cell->cell.framework, sums);
	if (summary_is_global(row->cell))
		strbuf_puts(out, " and normalises by the statistics of all ranks, so it is not "
				 "compared with those that use their own");
	return true;
}

bool summary_effective(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	bool said = false;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (row->step.n == 0)
			continue;
		said |= says_cores(row, said ? "; " : "", out);
		said |= says_precision(row, said ? "; " : "", out);
		said |= says_ranks(row, said ? "; " : "", out);
	}
	return said;
}
