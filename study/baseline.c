#include "study/baseline.h"

#include <stdlib.h>
#include <string.h>

#include "report/compare.h"

static bool has_common_cell(const struct stored_run *baseline, const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		char hash[CELL_HASH_BYTES];
		if (plan->cells[i].status != CELL_PENDING)
			continue;
		cell_hash(&plan->cells[i].cell, hash);
		for (size_t k = 0; k < baseline->cell_count; k++)
			if (!strcmp(hash, baseline->cells[k].hash))
				return true;
	}
	return false;
}

enum prony_status baseline_check(const struct stored_run *baseline, const char *name,
				 const struct plan *plan, const json_t *machine, bool force,
				 struct error *err)
{
	struct strbuf text;
	enum prony_status status = PRONY_OK;
	if (!has_common_cell(baseline, plan))
		return error_set(err, PRONY_BAD_INPUT,
				 "the baseline '%s' (run %lld) has none of the cells to run; "
				 "'prony log --run %s' lists its cells",
				 name, (long long)baseline->meta.id, name);
	strbuf_init(&text, 600);
	char *here = json_dumps(machine, JSON_COMPACT);
	if (!force && compare_machines(baseline->meta.environment, here, &text))
		status = error_set(err, PRONY_BAD_INPUT,
				   "the baseline '%s' is not comparable with this machine: %s; "
				   "--force compares anyway",
				   name, strbuf_text(&text));
	strbuf_release(&text);
	free(here);
	return status;
}
