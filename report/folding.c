/* Lines under the tables that name frameworks without rows, and networks whose file may lack
 * layers. Replaces the rows of frameworks that are not installed by one such line if there are
 * many. */
#include <string.h>

#include "report/names.h"
#include "report/summary.h"
#include "report/summary_internal.h"

/* Up to this many frameworks keep their rows, because a user who requested a framework by name
 * needs the reason. */
enum { ROWS_KEPT = 3 };

void summary_fold(struct summary *summary)
{
	struct names names = {.count = 0};
	bool *here = arena_array(&summary->arena, summary->count + 1, sizeof *here);
	bool *missing = arena_array(&summary->arena, summary->count + 1, sizeof *missing);
	size_t absent = 0;
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		size_t name = names_add(&names, cell->cell.framework, strlen(cell->cell.framework));
		/* If a device or data is missing, the reader needs the reason. */
		bool absent_here = cell->status == CELL_MISSING &&
				   cell_not_installed(&cell->cell, cell->reason);
		missing[name] = missing[name] || absent_here;
		/* An unsupported stage is refused whether the framework is installed or not. */
		here[name] = here[name] || (!absent_here && cell->status != CELL_UNSUPPORTED);
	}
	for (size_t name = 0; name < names.count; name++) {
		here[name] = here[name] || !missing[name];
		absent += !here[name];
	}
	/* If no framework is here, the reasons are the only content, so they stay. */
	bool many = absent > ROWS_KEPT && absent < names.count;
	for (size_t i = 0; many && i < summary->count; i++) {
		struct summary_row *row = &summary->rows[i];
		const char *framework = row->cell->cell.framework;
		row->folded = !here[names_find(&names, framework, strlen(framework))];
	}
	names_release(&names);
}

bool summary_exports(const struct summary *summary, struct strbuf *out)
{
	struct names said = {.count = 0};
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		const char *network = cell->cell.network;
		size_t known = said.count;
		if (!(cell->flags & CELL_FLAG_NO_NORMALISATION) ||
		    names_add(&said, network, strlen(network)) < known)
			continue;
		strbuf_printf(out, "%s%s",
			      known ? ", "
				    : "warning: no normalisation beside the convolutions of ",
			      network);
	}
	bool any = said.count > 0;
	if (any)
		strbuf_puts(out, "; PyTorch's exporter drops BatchNorm and Dropout unless told "
				 "otherwise. If your model has them, another network was trained: "
				 "export it again with " CELL_PYTORCH_EXPORT);
	names_release(&said);
	return any;
}

bool summary_absent(const struct summary *summary, struct strbuf *out)
{
	struct names listed = {.count = 0};
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		const char *framework = row->cell->cell.framework;
		size_t known = listed.count;
		if (!row->folded || names_add(&listed, framework, strlen(framework)) < known)
			continue;
		strbuf_printf(out, "%s%s", known ? ", " : "not on this machine: ", framework);
	}
	bool any = listed.count > 0;
	if (any)
		strbuf_puts(out, " (reasons: prony list frameworks; to install: prony framework "
				 "install NAME)");
	names_release(&listed);
	return any;
}
