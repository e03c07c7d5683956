/* Reports the progress of an installation and checks whether the user stopped it. */
#include <stdarg.h>
#include <stdio.h>

#include "frameworks/install_internal.h"

void install_say(const struct install *install, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	if (!install->sink || !install->sink->line)
		return;
	va_start(arguments, format);
	int used = snprintf(text, sizeof(text), "%s: ", install->spelling);
	vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
	va_end(arguments);
	install->sink->line(install->sink->context, text);
}

bool install_stopped(const struct install *install)
{
	return install->sink && install->sink->stop && *install->sink->stop;
}
