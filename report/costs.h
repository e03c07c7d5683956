/* The costs of a cell's step and its use of the machine's peak; private to report/. */
#ifndef PRONY_REPORT_COSTS_H
#define PRONY_REPORT_COSTS_H

#include "report/summary.h"

/* Fills row->costs from its cell, row->flops_per_step and the processes that count; NaN if the
 * cell's figures may not be shown. `environment`: the run's machine record, or NULL. */
void costs_fill(const json_t *environment, const struct run_meta *meta,
		const struct replicates *replicates, struct summary_row *row);

/* Adds why a cell's processes have no energy and so no power, from their null_reasons; false if
 * none gives a reason. */
bool costs_power_reason(const struct stored_cell *cell, struct strbuf *out);

#endif
