#include "conformance/check.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

void check_figure_text(const json_t *figure, char text[CHECK_FIGURE_BYTES])
{
	const char *tensor = json_string_or(figure, "tensor", NULL);
	const char *reason = json_string_or(figure, "reason", NULL);
	const json_t *ratio = json_object_get(figure, "ratio");
	int64_t step = json_int_or(figure, "step", -1);
	char place[32] = "", times[64] = "";
	if (step >= 0)
		snprintf(place, sizeof place, " of step %lld", (long long)step + 1);
	if (ratio)
		snprintf(times, sizeof times, ", %.2f times the reference's",
			 json_number_value(ratio));
	size_t used = (size_t)snprintf(text, CHECK_FIGURE_BYTES, "%.40s%s%s%.120s",
				       json_string_or(figure, "what", "?"), place,
				       tensor ? " of " : "", tensor ? tensor : "");
	if (reason)
		snprintf(text + used, CHECK_FIGURE_BYTES - used, ": %.120s", reason);
	else
		snprintf(text + used, CHECK_FIGURE_BYTES - used,
			 " differs from the reference by %.3g, allowed %.3g%s",
			 json_number_value(json_object_get(figure, "value")),
			 json_number_value(json_object_get(figure, "bound")), times);
}
