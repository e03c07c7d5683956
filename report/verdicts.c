/* The lines that may follow the table of a comparison, in their order. */
#include "report/summary.h"

/* One line for each diagnosis. */
#define X(id, word, title, unit, factor, remedy)                                                   \
	static bool diagnosis_##id(const struct summary *summary, size_t comparison,               \
				   struct strbuf *out)                                             \
	{                                                                                          \
		return summary_diagnosis(summary, comparison, DIAGNOSIS_##id, out);                \
	}
DIAGNOSES(X)
#undef X

summary_verdict *const summary_verdicts[] = {
	summary_floor_broken, summary_led,	 summary_undecided,	summary_gaps,
	summary_disagreement, summary_effective, summary_short_windows, summary_break_even,
	summary_target,	      summary_scaling,	 summary_input,
#define X(id, word, title, unit, factor, remedy) diagnosis_##id,
	DIAGNOSES(X)
#undef X
};
const size_t summary_verdict_count = sizeof summary_verdicts / sizeof *summary_verdicts;
