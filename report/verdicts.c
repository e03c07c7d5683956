/* What may stand under the table of a comparison, in the order in which it does. */
#include "report/summary.h"

summary_verdict *const summary_verdicts[] = {
	summary_floor_broken, summary_undecided, summary_gaps,
	summary_disagreement, summary_effective, summary_short_windows,
	summary_input,	      summary_diagnoses, summary_splits};
const size_t summary_verdict_count = sizeof summary_verdicts / sizeof *summary_verdicts;
