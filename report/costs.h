/* Private to report/: what a cell's step costs, and how much of the machine it uses. */
#ifndef PRONY_REPORT_COSTS_H
#define PRONY_REPORT_COSTS_H

#include "report/summary.h"

/* Fills row->costs from its cell and row->flops_per_step; with NaN where the cell's figures may not
 * be shown. `environment`: the run's machine record, or NULL. */
void costs_fill(const json_t *environment, struct summary_row *row);

/* Adds why a cell's processes have no energy and so no power, as their null_reasons say it; false
 * where none does. */
bool costs_power_reason(const struct stored_cell *cell, struct strbuf *out);

#endif
