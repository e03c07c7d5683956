/* The second table of `show --full`: what a cell makes of the machine, and its undisturbed step. */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "report/format.h"
#include "report/summary.h"

static const struct table_column columns[] = {
	{"framework", "framework", TABLE_LEFT},
	{"FLOP/s", "flops_per_second", TABLE_RIGHT},
	{"of peak", "peak_share", TABLE_RIGHT},
	{"undisturbed", "undisturbed_ns", TABLE_RIGHT},
	{"+/-", "undisturbed_half_width", TABLE_RIGHT},
	{"vs native", "undisturbed_floor_ratio", TABLE_RIGHT},
	{"+/-", "undisturbed_floor_half_width", TABLE_RIGHT},
};

static bool is_known(const struct summary_row *row)
{
	return isfinite(row->flops) || row->undisturbed.n > 0;
}

static void add_row(const struct summary_row *row, struct table *table)
{
	char text[FORMAT_BYTES];
	const struct estimate *undisturbed = &row->undisturbed;
	double width = contrast_half_width(&row->floor_undisturbed);
	table_row(table);
	table_cell(table, row->cell->cell.framework, NULL);
	format_flops(row->flops, text, sizeof text);
	table_cell(table, text, json_number(row->flops));
	format_percent(row->costs.peak_share, text, sizeof text);
	table_cell(table, text, json_number(row->costs.peak_share));
	format_duration_within(undisturbed->center, undisturbed->half_width, text, sizeof text);
	table_cell(table, text, json_number(undisturbed->center));
	format_percent(undisturbed->half_width, text, sizeof text);
	table_cell(table, text, json_number(undisturbed->half_width));
	summary_undisturbed_text(row, text, sizeof text);
	table_cell(table, text, json_number(row->floor_undisturbed.ratio));
	format_percent(width > 0 ? width : NAN, text, sizeof text);
	table_cell(table, text, json_number(width));
}

struct table *summary_details(const struct summary *summary, size_t comparison)
{
	struct table *table = NULL;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		if (!is_known(&summary->rows[i]))
			continue;
		table = table ? table : table_new(columns, sizeof columns / sizeof *columns);
		add_row(&summary->rows[i], table);
	}
	return table;
}
