/* Lines under the tables on the machine: what disturbed the run, warnings, environment variables.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/replicates.h"
#include "report/summary.h"
#include "report/summary_internal.h"
#include "samples/disturbance.h"

/* What the machine did to the cells of a run. */
struct disturbances {
	size_t cells, measured; /* that were disturbed, of those with figures */
	size_t processes, all;	/* the same of processes */
	unsigned causes;	/* their bits (samples/disturbance.h) */
	double *most;		/* the largest figure of each cause */
};

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
}

static void add_row(const struct summary_row *row, struct disturbances *found)
{
	const struct summary_taken *taken = &row->taken;

	if (row->step.n == 0) /* it has not ended, or not well: no figures that could be spoilt */
		return;
	found->measured++;
	found->all += taken->all;
	if (taken->disturbed == 0)
		return;
	found->cells++;
	found->processes += taken->disturbed;
	found->causes |= taken->causes;
	for (size_t k = 0; k < disturbance_cause_count; k++)
		found->most[k] = fmax(found->most[k], taken->most[k]);
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
	if (!causes || disturbance_by_others(causes))
		strbuf_puts(out, "; ranks leave out what others disturbed where at least three, "
				 "and half, of a cell's processes remain");
	if (has_own(causes))
		strbuf_puts(out, "; what a framework may have caused itself counts");
	strbuf_puts(out, ": ");
}

/* ": other programs took up to 12 % of their cores, the host ..." */
static void name_causes(const struct disturbances *found, struct strbuf *out)
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
	struct disturbances found = {.cells = 0};

	found.most = memory_alloc(disturbance_cause_count * sizeof *found.most);
	for (size_t i = 0; i < disturbance_cause_count; i++)
		found.most[i] = NAN;
	for (size_t i = 0; i < summary->count; i++)
		add_row(&summary->rows[i], &found);
	if (found.cells > 0) {
		strbuf_puts(out, !has_own(found.causes)		       ? "busy machine"
				 : disturbance_by_others(found.causes) ? "busy and slow machine"
								       : "slow machine");
		name_causes(&found, out);
		strbuf_printf(out, ", in %zu of %zu processes (%zu of %zu cells)", found.processes,
			      found.all, found.cells, found.measured);
		name_effect(found.causes, out);
		name_remedies(found.causes, out);
	}
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
		strbuf_printf(out, "%s%s %s",
			      i == 0 ? "warning: this machine may spoil the figures: " : "; ",
			      json_string_or(row, "check", "?"), json_string_or(row, "value", "?"));
		if (remedies && *remedy)
			strbuf_printf(out, " (%s)", remedy);
	}
	return json_array_size(found) > 0;
}

bool summary_findings(const struct summary *summary, struct strbuf *out)
{
	return conditions_found(summary->environment, true, out);
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
	json_t *set = json_object_get(json_object_get(summary->environment, "should_match"),
				      "environment");
	json_t *value;
	const char *name;
	bool first = true;
	json_object_foreach(set, name, value)
	{
		if (!is_decisive(name) || !json_is_string(value))
			continue;
		strbuf_printf(out, "%s%s=%s", first ? "set in the environment: " : ", ", name,
			      json_string_value(value));
		first = false;
	}
	if (!first)
		strbuf_puts(out, "; it may slow down some frameworks and not others");
	return !first;
}
