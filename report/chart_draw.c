/* Calls the drawing function for each kind of chart. */
#include "report/chart_internal.h"

void chart_svg(const struct chart *chart, int width, struct strbuf *out)
{
	if (chart->kind == CHART_LINES)
		lines_svg(chart, width, out);
	else
		bars_svg(chart, width, out);
}
