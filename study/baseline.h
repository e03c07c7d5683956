/* Checks whether a run can be compared with an earlier one, its baseline. */
#ifndef PRONY_STUDY_BASELINE_H
#define PRONY_STUDY_BASELINE_H

#include <jansson.h>

#include "plan/plan.h"
#include "store/store.h"

/* Checks before any measurement that the two have a cell in common and, unless `force`, are of the
 * same machine. `name`: of the baseline, for messages. PRONY_BAD_INPUT. */
enum prony_status baseline_check(const struct stored_run *baseline, const char *name,
				 const struct plan *plan, const json_t *machine, bool force,
				 struct error *err);

#endif
