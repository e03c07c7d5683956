/* Which file draws which kind of figure. */
#include "report/figure_internal.h"

void figure_svg(const struct figure *figure, int width, struct strbuf *out)
{
	if (figure->kind == FIGURE_LINES)
		lines_svg(figure, width, out);
	else
		bars_svg(figure, width, out);
}
