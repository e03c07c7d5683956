#include "base/status.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *text;
	int exit_code;
} statuses[PRONY_STATUS_COUNT] = {
#define X(code, description, exit_number)                                                          \
	[PRONY_##code] = {.text = description, .exit_code = exit_number},
	PRONY_STATUSES(X)
#undef X
};

const char *prony_status_text(enum prony_status status)
{
	if ((unsigned)status >= PRONY_STATUS_COUNT)
		return "unknown status";
	return statuses[status].text;
}

int prony_status_exit(enum prony_status status)
{
	if ((unsigned)status >= PRONY_STATUS_COUNT)
		return statuses[PRONY_INTERNAL].exit_code;
	return statuses[status].exit_code;
}
