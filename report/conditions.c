/* Lines about the machine under the tables: what disturbed the run, warnings, environment
 * variables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/replicates.h"
#include "report/summary.h"
#include "report/summary_internal.h"
#include "samples/disturbance.h"

/* A clock that the power cap held down for less of the window is not worth a line. */
#define HELD_MIN 0.05

static void add_figures(struct disturbances *to, const double figures[DISTURBANCE_CAUSES])
{
	for (int k = 0; k < DISTURBANCE_CAUSES; k++)
		to->most[k] = fmax(to->most[k], figures[k]);
}

static struct disturbances no_disturbances(void)
{
	struct disturbances found = {.all = 0};
	for (int k = 0; k < DISTURBANCE_CAUSES; k++)
		found.most[k] = NAN;
	return found;
}

struct disturbances summary_disturbances(const struct stored_cell *cell)
{
	bool *disturbed = memory_alloc((cell->process_count + 1) * sizeof *disturbed);
	struct disturbances found = no_disturbances();

	found.all = cell->process_count;
	found.disturbed = replicates_flagged(cell, disturbed);
	for (size_t i = 0; i < cell->process_count; i++) {
		double figures[DISTURBANCE_CAUSES];
		if (!disturbed[i])
			continue;
		for (int k = 0; k < DISTURBANCE_CAUSES; k++)
			figures[k] =
				disturbance_figure(&cell->processes[i], &disturbance_causes[k]);
		found.causes |= disturbance_seen(&cell->processes[i]);
		add_figures(&found, figures);
	}
	free(disturbed);
	return found;
}

static bool has_own(unsigned causes)
{
	for (size_t i = 0; i < disturbance_cause_count; i++)
		if (causes >> i & 1 && !disturbance_causes[i].others)
			return true;
	return false;
}

/* Adds the effect of the causes. If no cause was stored (an older run), other programs were the
 * cause. */
static void name_effect(unsigned causes, struct strbuf *out)
{
	if (!causes || disturbance_by_others(causes))
		strbuf_puts(out, "; ranks use only undisturbed processes if a cell has three of "
				 "them, and half of all");
	if (has_own(causes))
		strbuf_puts(out, "; slowdowns that a framework may have caused itself count");
	strbuf_puts(out, ": ");
}

/* Adds the causes with their figures: ": other programs took up to 12 % of their cores, the host
 * ...". */
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

/* Adds the remedies: "end other work (prony doctor shows it), free memory and measure again". */
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
	strbuf_puts(out, *last ? ", then run again" : "run again (see prony doctor)");
}

bool summary_disturbance(const struct summary *summary, struct strbuf *out)
{
	struct disturbances found = no_disturbances();
	size_t cells = 0, measured = 0;

	for (size_t i = 0; i < summary->count; i++) {
		const struct disturbances *of_cell = &summary->rows[i].disturbances;
		/* A cell that has not ended, or has failed, has no figures that a disturbance could
		 * affect. */
		if (summary->rows[i].step.n == 0)
			continue;
		measured++;
		cells += of_cell->disturbed > 0;
		found.all += of_cell->all;
		found.disturbed += of_cell->disturbed;
		found.causes |= of_cell->causes;
		add_figures(&found, of_cell->most);
	}
	if (cells == 0)
		return false;
	strbuf_puts(out, !has_own(found.causes)		       ? "busy machine"
			 : disturbance_by_others(found.causes) ? "busy and slow machine"
							       : "slow machine");
	name_causes(&found, out);
	strbuf_printf(out, ", in %zu of %zu processes (%zu of %zu cells)", found.disturbed,
		      found.all, cells, measured);
	name_effect(found.causes, out);
	name_remedies(found.causes, out);
	return true;
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
			      i == 0 ? "warning: this machine may disturb the measurement: " : "; ",
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

bool summary_power_cap(const struct summary *summary, struct strbuf *out)
{
	double most = 0;
	size_t cells = 0, of = 0;

	for (size_t i = 0; i < summary->count; i++) {
		double held = summary->rows[i].costs.gpu_power_held;
		of += isfinite(held) ? 1 : 0;
		if (!(held > HELD_MIN))
			continue;
		most = fmax(most, held);
		cells++;
	}
	if (cells > 0)
		strbuf_printf(out,
			      "power cap: it held the GPU's clock down for up to %.0f %% of the "
			      "window, in %zu of %zu cells; there the power decides the speed",
			      100 * most, cells, of);
	return cells > 0;
}

/* Variables that select code or threads for some frameworks only, and whose default most users of
 * these frameworks keep. Sources: the manuals of OpenBLAS, OpenMP (GNU and LLVM), oneDNN, MKL,
 * TensorFlow, XLA, JAX and PyTorch. Variables that prony sets for every worker are not in the
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

/* ", NVIDIA A", ", 2 x NVIDIA A", or all names if they differ. */
static void add_gpus(const json_t *gpus, struct strbuf *out)
{
	size_t count = json_array_size(gpus), same = 0;
	const char *first = json_string_value(json_array_get(gpus, 0));
	json_t *gpu;
	size_t i;

	json_array_foreach(gpus, i, gpu) same +=
		first && json_is_string(gpu) && !strcmp(first, json_string_value(gpu));
	if (count > 1 && same == count) {
		strbuf_printf(out, ", %zu x %s", count, first);
		return;
	}
	json_array_foreach(gpus, i, gpu)
	{
		if (json_is_string(gpu))
			strbuf_printf(out, ", %s", json_string_value(gpu));
	}
}

bool machine_text(const json_t *environment, struct strbuf *out)
{
	const json_t *fixed = json_object_get(environment, "must_match");
	const char *model = json_string_or(fixed, "cpu_model", NULL);
	int64_t cores = json_int_or(fixed, "cores_usable", json_int_or(fixed, "cores", -1));
	int64_t gib = json_int_or(fixed, "memory_gib", -1);

	if (!model)
		return false;
	strbuf_puts(out, model);
	if (cores > 0)
		strbuf_printf(out, ", %lld core%s", (long long)cores, cores == 1 ? "" : "s");
	if (gib > 0)
		strbuf_printf(out, ", %lld GiB", (long long)gib);
	add_gpus(json_object_get(fixed, "gpus"), out);
	return true;
}

bool summary_machine(const struct summary *summary, struct strbuf *out)
{
	return machine_text(summary->environment, out);
}
