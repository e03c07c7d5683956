/* Ticks of chart axes are round, minor marks lie between them, and titles tell a logarithmic axis.
 */
#include "report/chart_internal.h"
#include "unit_test.h"

/* Makes the scale of an axis in ms, from and to ms. */
static struct scale make_scale(bool logarithmic, double low, double high)
{
	struct chart_axis axis = {.title = "step", .measure = CHART_NS, .logarithmic = logarithmic};
	struct scale scale;
	scale_init(&scale, &axis, low * 1e6, high * 1e6, 0, 100);
	return scale;
}

/* The labels of the ticks, separated by spaces. */
static const char *labels(const struct scale *scale, size_t wanted)
{
	struct strbuf *text = test_strbuf();
	double ticks[SCALE_TICKS_MAX];
	char label[SCALE_LABEL_BYTES];
	size_t count = scale_ticks(scale, wanted, ticks);
	for (size_t i = 0; i < count; i++) {
		scale_label(scale, ticks[i], label);
		strbuf_printf(text, "%s%s", i > 0 ? " " : "", label);
	}
	return strbuf_text(text);
}

TEST(test_ticks)
{
	static const struct {
		bool logarithmic;
		double low, high;
		size_t wanted;
		const char *labels;
	} rows[] = {
		{false, 0, 17, 6, "0 5 10 15"},
		{false, 0, 20, 4, "0 5 10 15 20"},
		/* 1, 2 and 5 of each decade, or powers of ten if these are too many; the scale is a
		 * little longer than its values */
		{true, 3, 90, 6, "5 10 20 50 100"},
		{true, 1.5, 900, 6, "10 100 1000"},
		{true, 2, 9e5, 6, "100 10000 1e+06"},
		/* steps where a decade has fewer than three: the ends would be odd numbers */
		{true, 11.2, 19.3, 6, "12 14 16 18 20"},
		{true, 6.73, 19.6, 6, "10 15 20"},
		{true, 150, 700, 6, "200 400 600"},
		{true, 1.0021, 1.0049, 4, "1 1.05"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct scale scale = make_scale(rows[i].logarithmic, rows[i].low, rows[i].high);
		/* The unit of all rows is ms, so that a label is a number of the row. */
		scale.unit = 1e6;
		assert_string_equal(labels(&scale, rows[i].wanted), rows[i].labels);
	}
}

/* Minor ticks are those of each decade that a logarithmic axis of some length has, and no others.
 */
TEST(test_minor_ticks)
{
	double ticks[SCALE_MINOR_MAX];
	struct scale scale = make_scale(true, 10, 100);
	assert_int_equal(scale_minor_ticks(&scale, ticks), 11);
	assert_true(fabs(ticks[0] / 9e6 - 1) < 1e-9 && fabs(ticks[10] / 100e6 - 1) < 1e-9);
	scale = make_scale(true, 11, 14);
	assert_int_equal(scale_minor_ticks(&scale, ticks), 0);
	scale = make_scale(false, 0, 100);
	assert_int_equal(scale_minor_ticks(&scale, ticks), 0);
}

TEST(test_titles)
{
	struct chart_axis time = {.title = "step", .measure = CHART_NS, .logarithmic = true},
			  count = {.title = "batch", .measure = CHART_PLAIN, .logarithmic = true};
	struct scale scale;
	char title[64];
	scale_init(&scale, &time, 1e6, 9e6, 0, 100);
	scale_title(&scale, &time, title, sizeof title);
	assert_string_equal(title, "step (ms, log)");
	scale_init(&scale, &count, 1, 64, 0, 100);
	scale_title(&scale, &count, title, sizeof title);
	assert_string_equal(title, "batch (log)");
	/* Zero is on no logarithmic axis: the axis is linear, and its title does not lie. */
	scale_init(&scale, &time, NAN, 9e6, 0, 100);
	scale_title(&scale, &time, title, sizeof title);
	assert_string_equal(title, "step (ms)");
}
