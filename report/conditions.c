/* Under the tables: what the figures depend on besides the frameworks. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/summary.h"

/* Largest share among the processes of a cell; 0 when none was read. */
static double worst_share(const struct stored_cell *cell, bool steal)
{
	double worst = 0;
	for (size_t i = 0; i < cell->process_count; i++) {
		const struct process_record *process = &cell->processes[i];
		double share = steal ? process->steal_share : process->foreign_share;
		if (share > worst)
			worst = share;
	}
	return worst;
}

bool summary_disturbance(const struct summary *summary, struct strbuf *out)
{
	size_t disturbed = 0, measured = 0;
	double foreign = 0, steal = 0;
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		measured += summary->rows[i].step.n > 0;
		if (!(cell->flags & CELL_FLAG_DISTURBED))
			continue;
		disturbed++;
		foreign = fmax(foreign, worst_share(cell, false));
		steal = fmax(steal, worst_share(cell, true));
	}
	if (disturbed == 0)
		return false;
	strbuf_printf(out,
		      "the machine was busy while %zu of %zu cells were measured: other "
		      "programs took up to %.0f %% of it",
		      disturbed, measured, 100 * foreign);
	if (steal >= 0.01)
		strbuf_printf(out, ", its host up to %.0f %%", 100 * steal);
	strbuf_puts(out, "; such cells are ranked only where that cannot have changed their order, "
			 "and not held against the floor: end other work (prony doctor shows it) "
			 "and measure again");
	return true;
}

/* Variables that choose code or threads for some frameworks only, and whose default is what users
 * of these frameworks have. Sources: the manuals of OpenBLAS, OpenMP (GNU and LLVM), oneDNN, MKL,
 * TensorFlow and XLA. */
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
	"TF_XLA_",
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
	struct error ignored = ERROR_INIT;
	const char *text = summary->run->meta.environment, *name;
	json_t *record = NULL, *value;
	bool first = true;
	if (text && json_parse(text, strlen(text), "environment", &record, &ignored) != PRONY_OK)
		return false;
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
