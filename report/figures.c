/* Computes the figures of a cell from its summary row, and formats them. */
#include "report/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	bool more_is_better;
} units[UNIT_COUNT] = {
	[UNIT_NS] = {"ns", false},	   [UNIT_BYTES] = {"bytes", false},
	[UNIT_PER_SECOND] = {"1/s", true}, [UNIT_FLOPS] = {"FLOP/s", true},
	[UNIT_RATIO] = {"", false},	   [UNIT_SHARE] = {"", true},
	[UNIT_JOULES] = {"J", false},	   [UNIT_WATTS] = {"W", false},
	[UNIT_CORES] = {"cores", false},
};

const struct figure figures[FIGURE_COUNT] = {
#define X(id, word_, member_, unit_, title_, label_, value, shown_, json_, csv_, help_)            \
	[FIGURE_##id] = {.word = word_,                                                            \
			 .member = member_,                                                        \
			 .title = title_,                                                          \
			 .label = label_,                                                          \
			 .help = help_,                                                            \
			 .unit = UNIT_##unit_,                                                     \
			 .shown = shown_,                                                          \
			 .json = json_,                                                            \
			 .csv = csv_},
	FIGURES(X)
#undef X
};

static struct figure_value ends_value(double value, double low, double high)
{
	return (struct figure_value){.value = value, .low = low, .high = high, .half_width = NAN};
}

static struct figure_value estimate_value(const struct estimate *estimate)
{
	return (struct figure_value){.value = estimate->center,
				     .low = estimate->low,
				     .high = estimate->high,
				     .half_width = estimate->half_width,
				     .processes = estimate->n};
}

/* Returns a part of an estimated quantity. */
static struct figure_value share_value(const struct estimate *estimate, double parts)
{
	struct figure_value share =
		ends_value(estimate->center / parts, estimate->low / parts, estimate->high / parts);
	share.half_width = estimate->half_width;
	share.processes = estimate->n;
	return share;
}

/* Returns a quantity per step as a rate per second; the ends of the step's interval are swapped. */
static struct figure_value rate_value(const struct estimate *step, double each)
{
	const double second_ns = 1e9;
	struct figure_value rate =
		ends_value(each / step->center * second_ns, each / step->high * second_ns,
			   each / step->low * second_ns);
	rate.half_width = step->half_width;
	return rate;
}

static bool is_native(const struct summary_row *row)
{
	return !strcmp(row->cell->cell.framework, "native");
}

static struct figure_value contrast_value(const struct contrast *contrast, enum order order,
					  bool itself)
{
	bool holds_1 = !(contrast->low > 1) && !(contrast->high < 1);
	char sign = order == ORDER_ALIKE     ? FIGURE_ALIKE
		    : order != ORDER_UNKNOWN ? 0
		    : holds_1		     ? FIGURE_ALIKE
					     : FIGURE_UNPROVED;
	return (struct figure_value){.value = contrast->ratio,
				     .low = contrast->low,
				     .high = contrast->high,
				     .half_width = contrast_half_width(contrast),
				     .sign = itself || isnan(contrast->ratio) ? (char)0 : sign,
				     .itself = itself};
}

struct figure_value figure_value(enum figure_id id, const struct summary_row *row)
{
	switch (id) {
#define VALUE(number) ends_value((number), NAN, NAN)
#define ENDS(number, low, high) ends_value((number), (low), (high))
#define ESTIMATE(estimate) estimate_value(&(estimate))
#define EACH(estimate, parts) share_value(&(estimate), (parts))
#define PER_STEP(each) rate_value(&row->step, (each))
#define CONTRAST(contrast, order, itself) contrast_value(&(contrast), (order), (itself))
#define X(name, word, member, unit, title, label, computed, ...)                                   \
	case FIGURE_##name:                                                                        \
		return computed;
		FIGURES(X)
#undef X
	case FIGURE_COUNT:
		break;
	}
	return ends_value(NAN, NAN, NAN);
}

void figure_format(enum figure_unit unit, double value, double half_width, char out[FORMAT_BYTES])
{
	switch (unit) {
	case UNIT_NS:
		format_duration_within(value, half_width, out, FORMAT_BYTES);
		return;
	case UNIT_BYTES:
		format_bytes(value, out, FORMAT_BYTES);
		return;
	case UNIT_PER_SECOND:
		format_rate(value, half_width, out, FORMAT_BYTES);
		return;
	case UNIT_FLOPS:
		format_flops(value, half_width, out, FORMAT_BYTES);
		return;
	case UNIT_RATIO:
		format_ratio_within(value, half_width, out, FORMAT_BYTES);
		return;
	case UNIT_SHARE:
		format_percent(value, out, FORMAT_BYTES);
		return;
	case UNIT_JOULES:
		format_energy(value, out, FORMAT_BYTES);
		return;
	case UNIT_WATTS:
		snprintf(out, FORMAT_BYTES, isfinite(value) ? "%.3g W" : "-", value);
		return;
	case UNIT_CORES:
	case UNIT_COUNT:
		snprintf(out, FORMAT_BYTES, isfinite(value) ? "%.2f" : "-", value);
		return;
	}
}

void figure_text(enum figure_id id, const struct summary_row *row, char out[FORMAT_BYTES])
{
	struct figure_value known = figure_value(id, row);
	char number[FORMAT_BYTES], sign[] = {known.sign, '\0'};
	figure_format(figures[id].unit, known.value, known.itself ? NAN : known.half_width, number);
	snprintf(out, FORMAT_BYTES, "%s%.*s", sign, FORMAT_BYTES - 2, number);
}

void figure_width_text(enum figure_id id, const struct summary_row *row, char out[FORMAT_BYTES])
{
	struct figure_value known = figure_value(id, row);
	format_percent(known.itself ? NAN : known.half_width, out, FORMAT_BYTES);
}

void figure_interval_text(enum figure_id id, const struct summary_row *row,
			  char out[FIGURE_INTERVAL_BYTES])
{
	struct figure_value known = figure_value(id, row);
	char low[FORMAT_BYTES], high[FORMAT_BYTES];
	/* Its ends keep two digits at any width, and all of a ratio's: they show whether it
	 * holds 1.
	 */
	double half_width = figures[id].unit == UNIT_RATIO ? NAN : fmin(known.half_width, 0.5);
	*out = '\0';
	if (known.itself || !isfinite(known.half_width))
		return;
	figure_format(figures[id].unit, known.low, half_width, low);
	figure_format(figures[id].unit, known.high, half_width, high);
	snprintf(out, FIGURE_INTERVAL_BYTES, "%s to %s", low, high);
}

const char *figure_unit_name(enum figure_unit unit)
{
	return units[unit].name;
}

bool figure_more_is_better(enum figure_unit unit)
{
	return units[unit].more_is_better;
}

void figure_part_word(const char *word, enum figure_part part, char out[FIGURE_WORD_BYTES])
{
	static const char *const names[PART_COUNT] = {"", "low", "high", "half_width", "processes"};
	const char *dot = strrchr(word, '.'), *own = dot ? dot + 1 : word;
	const char *middle = strstr(own, "center"), *rest = middle ? middle + 6 : NULL;
	if (!middle && (middle = strstr(own, "ratio")))
		rest = middle + 5;
	bool other_unit = part == PART_HALF_WIDTH || part == PART_PROCESSES; /* its unit differs */
	if (part == PART_VALUE)
		snprintf(out, FIGURE_WORD_BYTES, "%s", word);
	else if (middle)
		snprintf(out, FIGURE_WORD_BYTES, "%.*s%s%s", (int)(middle - word), word,
			 names[part], other_unit ? "" : rest);
	else
		snprintf(out, FIGURE_WORD_BYTES, "%s_%s", word, names[part]);
}

double figure_part_of(const struct figure_value *value, enum figure_part part)
{
	const double parts[PART_COUNT] = {value->value, value->low, value->high, value->half_width,
					  (double)value->processes};
	return parts[part];
}
