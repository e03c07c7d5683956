/* Under the tables: what the figures depend on besides the frameworks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/labels.h"
#include "report/replicates.h"
#include "report/summary.h"
#include "report/summary_internal.h"
#include "samples/disturbance.h"

/* More cells than these are counted, not named. */
enum { NAMED_MAX = 4 };

/* What the machine did to the cells of a run. */
struct taken {
	size_t cells, measured; /* that were disturbed, of those with figures */
	size_t processes, all;	/* the same of processes */
	unsigned causes;	/* their bits (samples/disturbance.h) */
	double *most;		/* the largest figure of each cause */
	struct strbuf names;
};

/* Which of a cell's it were, numbered as in exports (replicate): "#2, #5 of 7". */
static const char *name_processes(const struct stored_cell *cell, const bool *disturbed,
				  size_t count, struct arena *arena)
{
	struct strbuf text;
	size_t named = 0;

	if (count == cell->process_count)
		return arena_printf(arena, "all %zu", count);
	strbuf_init(&text, 0);
	for (size_t i = 0; i < cell->process_count; i++)
		if (disturbed[i])
			strbuf_printf(&text, "%s#%lld", named++ ? ", " : "",
				      (long long)cell->processes[i].replicate);
	strbuf_printf(&text, " of %zu", cell->process_count);
	const char *kept = arena_strdup(arena, strbuf_text(&text));
	strbuf_release(&text);
	return kept;
}

void summary_take(struct arena *arena, const struct stored_cell *cell, struct summary_taken *taken)
{
	bool *disturbed = memory_alloc((cell->process_count + 1) * sizeof *disturbed);

	*taken = (struct summary_taken){.all = cell->process_count};
	taken->disturbed = replicates_flagged(cell, disturbed);
	if (taken->disturbed > 0) {
		double *most = arena_array(arena, disturbance_cause_count, sizeof *most);
		for (size_t k = 0; k < disturbance_cause_count; k++)
			most[k] = NAN;
		for (size_t i = 0; i < cell->process_count; i++) {
			const struct process_record *process = &cell->processes[i];
			if (!disturbed[i])
				continue;
			taken->causes |= disturbance_seen(process);
			for (size_t k = 0; k < disturbance_cause_count; k++)
				most[k] = fmax(most[k],
					       disturbance_figure(process, &disturbance_causes[k]));
		}
		taken->most = most;
		taken->which = name_processes(cell, disturbed, taken->disturbed, arena);
	}
	free(disturbed);
}

void summary_keep_taken(struct arena *arena, struct summary_taken *taken)
{
	if (taken->disturbed == 0)
		return;
	double *most = arena_array(arena, disturbance_cause_count, sizeof *most);
	memcpy(most, taken->most, disturbance_cause_count * sizeof *most);
	taken->most = most;
	taken->which = arena_strdup(arena, taken->which);
}

static void note_cell(const struct labels *labels, const struct summary_row *row,
		      struct taken *found)
{
	const struct summary_taken *taken = &row->taken;
	char label[CELL_KEY_BYTES];

	if (row->step.n == 0) /* it has not ended, or not well: no figures that could be spoilt */
		return;
	found->measured++;
	found->all += taken->all;
	if (taken->disturbed == 0)
		return;
	found->processes += taken->disturbed;
	found->causes |= taken->causes;
	for (size_t k = 0; k < disturbance_cause_count; k++)
		found->most[k] = fmax(found->most[k], taken->most[k]);
	if (found->cells++ < NAMED_MAX) {
		label_text(labels, &row->cell->cell, label, sizeof label);
		strbuf_printf(&found->names, "%s%s: %s", found->names.length ? "; " : "", label,
			      taken->which);
	}
}

static bool has_own(unsigned causes)
{
	for (size_t i = 0; i < disturbance_cause_count; i++)
		if (causes >> i & 1 && !disturbance_causes[i].others)
			return true;
	return false;
}

/* What comes of it. Where nothing was stored of a cause others were it (an older run). */
static void name_effect(unsigned causes, struct strbuf *out)
{
	if (has_own(causes))
		strbuf_puts(out, "; what a contender may have brought about itself counts all the "
				 "same");
	if (!causes || disturbance_by_others(causes))
		strbuf_puts(out,
			    "; a cell is ranked by its other processes where these are three "
			    "and half of all, else only where that cannot have changed its order, "
			    "and then not held against the floor");
	strbuf_puts(out, ": ");
}

/* ": other programs took up to 12 % of their cores, the host ..." */
static void name_causes(const struct taken *found, struct strbuf *out)
{
	const char *before = ": ";

	for (size_t i = 0; i < disturbance_cause_count; i++) {
		const struct disturbance_cause *cause = &disturbance_causes[i];
		double value = found->most[i] * cause->scale;
		if (!(found->causes >> i & 1))
			continue;
		strbuf_printf(out, "%s%s %.*f %s", before, cause->text, value < 10 ? 1 : 0, value,
			      cause->unit);
		before = ", ";
	}
}

/* "end other work (prony doctor shows it), free memory and measure again" */
static void name_remedies(unsigned causes, struct strbuf *out)
{
	const char *last = "";

	for (size_t i = 0; i < disturbance_cause_count; i++) {
		const char *remedy = disturbance_causes[i].remedy;
		if (!(causes >> i & 1) || !strcmp(remedy, last))
			continue;
		strbuf_printf(out, "%s%s", *last ? ", " : "", remedy);
		last = remedy;
	}
	strbuf_puts(out, *last ? " and measure again" : "measure again (prony doctor helps)");
}

bool summary_disturbance(const struct summary *summary, struct strbuf *out)
{
	struct taken found = {.cells = 0};
	const struct cell **cells = memory_alloc((summary->count + 1) * sizeof *cells);

	for (size_t i = 0; i < summary->count; i++)
		cells[i] = &summary->rows[i].cell->cell;
	struct labels labels = labels_of(cells, summary->count);
	free(cells);
	strbuf_init(&found.names, 0);
	found.most = memory_alloc(disturbance_cause_count * sizeof *found.most);
	for (size_t i = 0; i < disturbance_cause_count; i++)
		found.most[i] = NAN;
	for (size_t i = 0; i < summary->count; i++)
		note_cell(&labels, &summary->rows[i], &found);
	if (found.cells > 0) {
		strbuf_printf(out,
			      "the machine was %s while %zu of %zu cells %s measured, in %zu "
			      "of %zu processes",
			      !has_own(found.causes)		    ? "busy"
			      : disturbance_by_others(found.causes) ? "busy or slow"
								    : "slow",
			      found.cells, found.measured, found.cells == 1 ? "was" : "were",
			      found.processes, found.all);
		if (found.cells <= NAMED_MAX)
			strbuf_printf(out, " (processes %s)", strbuf_text(&found.names));
		name_causes(&found, out);
		name_effect(found.causes, out);
		name_remedies(found.causes, out);
	}
	strbuf_release(&found.names);
	free(found.most);
	return found.cells > 0;
}

bool conditions_found(const json_t *record, bool remedies, struct strbuf *out)
{
	const json_t *found = json_object_get(json_object_get(record, "informational"), "findings");
	const json_t *row;
	size_t i;

	json_array_foreach(found, i, row)
	{
		const char *remedy = json_string_or(row, "remedy", "");
		strbuf_printf(out, "%s%s: %s",
			      i == 0 ? "before the run this machine was not as it should be: "
				     : "; ",
			      json_string_or(row, "check", "?"), json_string_or(row, "value", "?"));
		if (remedies && *remedy)
			strbuf_printf(out, " (%s)", remedy);
	}
	return json_array_size(found) > 0;
}

/* The record of the run's machine; NULL: there is none. New reference. */
static json_t *record_of(const struct summary *summary)
{
	struct error ignored = ERROR_INIT;
	const char *text = summary->run->meta.environment;
	json_t *record = NULL;

	if (text)
		json_parse(text, strlen(text), "environment", &record, &ignored);
	return record;
}

bool summary_findings(const struct summary *summary, struct strbuf *out)
{
	json_t *record = record_of(summary);
	bool found = conditions_found(record, true, out);

	json_decref(record);
	return found;
}

/* Variables that choose code or threads for some frameworks only, and whose default is what users
 * of these frameworks have. Sources: the manuals of OpenBLAS, OpenMP (GNU and LLVM), oneDNN, MKL,
 * TensorFlow, XLA, JAX and PyTorch. Those that prony replaces for every worker do not stand in the
 * record (cli/run_job.c). */
static const char *const decisive[] = {
	"OPENBLAS_CORETYPE",
	"OMP_",
	"GOMP_",
	"KMP_",
	"MKL_",
	"ONEDNN_",
	"DNNL_",
	"XLA_FLAGS",
	"TF_ENABLE_ONEDNN",
	"TF_ONEDNN_",
	"TF_MKL_",
	"TF_XLA_",
	"JAX_",
	"PYTORCH_",
	"MXNET_",
	"TORCH_",
	"LD_PRELOAD",
	"MALLOC_",
	"GLIBC_TUNABLES",
	"OPENBLAS_",
	"ORT_",
	"OV_",
	"TBB_",
};

static bool is_decisive(const char *name)
{
	for (size_t i = 0; i < sizeof decisive / sizeof *decisive; i++)
		if (!strncmp(name, decisive[i], strlen(decisive[i])))
			return true;
	return false;
}

bool summary_settings(const struct summary *summary, struct strbuf *out)
{
	json_t *record = record_of(summary), *value;
	const char *name;
	bool first = true;
	json_t *set = json_object_get(json_object_get(record, "should_match"), "environment");
	json_object_foreach(set, name, value)
	{
		if (!is_decisive(name) || !json_is_string(value))
			continue;
		strbuf_printf(out, "%s%s=%s", first ? "set in the environment: " : ", ", name,
			      json_string_value(value));
		first = false;
	}
	json_decref(record);
	if (!first)
		strbuf_puts(out, "; it may slow down some of the frameworks and not the others");
	return !first;
}
