/* Time series of sensors: the figures over a stretch of time. */
#include "samples/series.h"
#include "unit_test.h"

static struct series of(enum series_kind kind, int64_t *times, double *values, size_t count)
{
	return (struct series){.kind = kind,
			       .unit = "bytes",
			       .rate_unit = "cores",
			       .times_ns = times,
			       .values = values,
			       .channel_count = 1,
			       .count = count};
}

static void about(double got, double expected)
{
	if (isnan(expected) ? !isnan(got) : !(fabs(got - expected) <= 1e-9 * (1 + fabs(expected))))
		fail_msg("expected %g, got %g", expected, got);
}

static void expect(const struct series *series, int64_t begin, int64_t end, double mean,
		   double minimum, double maximum)
{
	struct series_range range = series_over(series, 0, begin, end);

	about(range.mean, mean);
	about(range.minimum, minimum);
	about(range.maximum, maximum);
}

TEST(gauges_are_weighted_by_time)
{
	int64_t times[] = {0, 10, 20, 100};
	double values[] = {1, 3, 3, 11};
	struct series gauge = of(SERIES_GAUGE, times, values, 4);

	expect(&gauge, INT64_MIN, INT64_MAX, (20 + 30 + 7 * 80) / 100.0, 1, 11);
	/* Linear between samples, cut at the ends. */
	expect(&gauge, 20, 60, 5, 3, 3);
	expect(&gauge, 40, 60, 6, 6, 6);
	expect(&gauge, 100, 100, 11, 11, 11);
	expect(&gauge, 200, 300, NAN, NAN, NAN);
	/* Time that the samples do not cover does not count as 0. */
	expect(&gauge, 60, 400, 9, 11, 11);
	gauge.count = 0;
	expect(&gauge, INT64_MIN, INT64_MAX, NAN, NAN, NAN);
	gauge.count = 1;
	expect(&gauge, INT64_MIN, INT64_MAX, 1, 1, 1);
}

TEST(what_was_not_read_is_no_zero)
{
	int64_t times[] = {0, 10, 20, 30, 40};
	double values[] = {2, 2, NAN, 8, 8};
	struct series gauge = of(SERIES_GAUGE, times, values, 5);
	double counted[] = {0, 10, NAN, 20, 30};
	struct series counter = of(SERIES_COUNTER, times, counted, 5);

	expect(&gauge, 0, 40, 5, 2, 8);
	/* A counter continues between readings: 10 in the 20 ns without a reading. */
	expect(&counter, 0, 40, 0.75, 0.5, 1);
	values[0] = values[1] = values[3] = values[4] = NAN;
	expect(&gauge, 0, 40, NAN, NAN, NAN);
}

TEST(counters_become_rates)
{
	int64_t times[] = {0, 10, 20, 30, 40};
	double values[] = {100, 110, 130, 5, 15};
	struct series counter = of(SERIES_COUNTER, times, values, 5);

	expect(&counter, 0, 20, 1.5, 1, 2);
	/* Reset between 20 and 30: that interval is unknown. */
	expect(&counter, 0, 40, 40 / 30.0, 1, 2);
	expect(&counter, 20, 30, NAN, NAN, NAN);
	/* The ends are interpolated. */
	expect(&counter, 5, 15, 1.5, 1, 2);
	counter.count = 1;
	expect(&counter, 0, 40, NAN, NAN, NAN);
}

TEST(balances_may_fall_a_little)
{
	int64_t times[] = {0, 10, 20, 30};
	double values[] = {0, 8, 4, 12};
	struct series balance = of(SERIES_BALANCE, times, values, 4);

	expect(&balance, 0, 30, 0.4, 0, 0.8);
	expect(&balance, 10, 20, 0, 0, 0);
}

TEST(equal_times_divide_by_nothing)
{
	int64_t times[] = {5, 5, 5};
	double values[] = {1, 2, 3};

	for (unsigned kind = 0; kind < SERIES_KIND_COUNT; kind++) {
		struct series series = of((enum series_kind)kind, times, values, 3);
		struct series_range range = series_over(&series, 0, 0, 10);
		assert_true(isnan(range.mean) == (kind != SERIES_GAUGE));
	}
}

TEST(thinning_keeps_the_first)
{
	int64_t times[] = {0, 10, 20, 30, 40};
	double values[] = {0, 100, 1, 101, 2, 102, 3, 103, 4, 104};
	struct series series = of(SERIES_COUNTER, times, values, 5);

	series.channel_count = 2;
	series_thin_out(&series);
	assert_int_equal(series.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(times[i], 20 * (int64_t)i);
		about(values[2 * i], 2 * (double)i);
		about(values[2 * i + 1], 100 + 2 * (double)i);
	}
	series_thin_out(&series);
	assert_int_equal(series.count, 2);
	assert_int_equal(times[1], 40);
}

TEST(words)
{
	struct series list[] = {{.sensor = "memory"}, {.sensor = "cpu"}};
	enum series_kind kind;

	for (unsigned i = 0; i < SERIES_KIND_COUNT; i++) {
		assert_true(series_kind_parse(series_kind_name((enum series_kind)i), &kind));
		assert_int_equal(kind, i);
	}
	assert_false(series_kind_parse("gauges", &kind));
	assert_false(series_kind_parse(NULL, &kind));
	assert_ptr_equal(series_find(list, 2, "cpu"), &list[1]);
	assert_null(series_find(list, 2, "gpu"));
	list[0] = of(SERIES_GAUGE, NULL, NULL, 0);
	assert_string_equal(series_shown_unit(&list[0]), "bytes");
	list[0].kind = SERIES_COUNTER;
	assert_string_equal(series_shown_unit(&list[0]), "cores");
}
