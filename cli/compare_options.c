#include "cli/compare_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum prony_status threshold_parse(const char *text, double *threshold, struct error *err)
{
	char *rest;
	if (!text) {
		*threshold = NAN;
		return PRONY_OK;
	}
	double value = strtod(text, &rest);
	bool percent = rest[strspn(rest, " ")] == '%';
	const char *end = percent ? rest + strspn(rest, " ") + 1 : rest;
	if (percent)
		value /= 100;
	if (rest == text || *end || !(value >= 0 && value < 1) || strpbrk(text, "xX"))
		return error_set(err, PRONY_USAGE,
				 "--threshold: '%s' is not a percentage below 100 %%, such as 5%%, "
				 "or a fraction below 1, such as 0.05",
				 text);
	*threshold = value;
	return PRONY_OK;
}

enum prony_status compare_allow(const struct compare *compare, bool force, struct error *err)
{
	struct strbuf text;
	enum prony_status status = PRONY_OK;
	if (compare->matched == 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "nothing to compare: no cell of A (%zu cells) matches one of B "
				 "(%zu cells); 'prony log --run RUN' lists a run's cells",
				 compare->only_a, compare->only_b);
	strbuf_init(&text, 600);
	if (!force && compare_obstacles(compare, &text))
		status = error_set(err, PRONY_BAD_INPUT,
				   "A and B are not comparable: %s; --force compares them anyway",
				   strbuf_text(&text));
	strbuf_release(&text);
	return status;
}

enum compare_exit compare_exit(const struct compare *compare)
{
	if (compare->verdicts[VERDICT_SLOWER])
		return COMPARE_EXIT_SLOWER;
	if (compare->broken)
		return COMPARE_EXIT_BROKEN;
	return compare->verdicts[VERDICT_INCONCLUSIVE] || !(compare->verdicts[VERDICT_SAME] +
							    compare->verdicts[VERDICT_FASTER])
		       ? COMPARE_EXIT_UNDECIDED
		       : COMPARE_EXIT_FINE;
}
