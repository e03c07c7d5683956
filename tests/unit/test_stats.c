/* Estimates, intervals, steadiness and the stop rule. The expected numbers were computed with
 * mpmath at 40 digits, from the incomplete beta integral and by bisection: other methods than the
 * code's. */
#include "stats/effort.h"
#include "stats/estimate.h"
#include "stats/steady.h"
#include "unit_test.h"

#define SECOND_NS INT64_C(1000000000)

TEST(quantiles_are_exact)
{
	static const struct {
		double p, df, t;
	} rows[] = {
		{0.975, 1, 12.706204736174704646},
		{0.975, 2, 4.3026527297494638523},
		{0.975, 3, 3.1824463052837095927},
		{0.975, 4, 2.7764451051977943578},
		{0.975, 9, 2.2621571627982055426},
		{0.975, 39, 2.0226909200367611356},
		{0.975, 2.5, 3.5746548420036832185},
		{0.975, 1.0625, 11.069192540719666861},
		{0.995, 11, 3.1058065155392810071},
		{0.95, 7, 1.8945786050900073895},
		{0.75, 1, 1.0},
		{0.5000001, 5, 2.6343055241403089593e-7},
		{0.9999, 3, 22.203742273204182943},
		{0.999999, 10, 9.751995490940580178},
		{0.975, 1000, 1.962339080826408485},
		{0.975, 50000, 1.9600114310936801001},
		{0.975, 200000, 1.9599758459667685132},
		{0.975, 1e7, 1.9599642217672054904},
		{0.6, 0.5, 0.39797542678479068859},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		near(student_t_quantile(rows[i].p, rows[i].df), rows[i].t, 1e-9);
		near(student_t_quantile(1 - rows[i].p, rows[i].df), -rows[i].t, 1e-9);
	}
	assert_true(student_t_quantile(0.5, 3) == 0);
	assert_true(isnan(student_t_quantile(0, 3)));
	assert_true(isnan(student_t_quantile(1, 3)));
	assert_true(isnan(student_t_quantile(0.9, 0)));
	assert_true(isnan(student_t_quantile(NAN, 3)));
}

/* The two methods agree at the point where one replaces the other. */
TEST(quantiles_have_no_step)
{
	near(student_t_quantile(0.975, 99999.999), student_t_quantile(0.975, 100000.001), 1e-9);
	for (double df = 1; df < 200; df += 0.37) {
		double here = student_t_quantile(0.975, df);
		assert_true(here > student_t_quantile(0.975, df + 0.37));
	}
}

TEST(an_estimate_has_its_numbers)
{
	const double means[] = {1012000, 987000, 1033000, 1001000, 995000};
	struct estimate e;

	estimate_compute(means, COUNT(means), 0.01, false, &e);
	assert_int_equal(e.n, 5);
	near(e.center, 1005474.4261990805, 1e-6);
	near(e.low, 983690.57958907344, 1e-5);
	near(e.high, 1027740.6765069317, 1e-5);
	near(e.half_width, 0.022145019035464392, 1e-12);
	near(e.cv_between, 0.017640343153787935, 1e-12);
	near(e.mean, 1005600, 1e-6);
	near(e.sd, 17826.945896591485, 1e-6);
	near(e.median, 1001000, 0);
	near(e.mad, 1.4826 * 11000, 1e-9); /* distances 11000, 14000, 32000, 0, 6000 */
	near(e.min, 987000, 0);
	near(e.max, 1033000, 0);
	assert_int_equal(e.needed, 25);
	estimate_compute(means, COUNT(means), 0.03, false, &e);
	assert_int_equal(e.needed, 0);
	estimate_compute(means, COUNT(means), 0, false, &e);
	assert_int_equal(e.needed, 0);
}

TEST(few_processes_have_no_interval)
{
	const double two[] = {3.2e6, 3.4e6};
	struct estimate e;

	estimate_compute(two, 2, 0.02, false, &e);
	near(e.half_width, 0.46984128919289344, 1e-12);
	assert_int_equal(e.needed, 757);
	estimate_compute(two, 1, 0.02, false, &e);
	near(e.center, 3.2e6, 1e-6);
	near(e.mad, 0, 0);
	assert_true(isnan(e.low) && isnan(e.high) && isnan(e.half_width) && isnan(e.sd));
	assert_int_equal(e.needed, 0);
	estimate_compute(NULL, 0, 0.02, false, &e);
	assert_int_equal(e.n, 0);
	assert_true(isnan(e.center) && isnan(e.median) && isnan(e.mad) && isnan(e.min));
}

TEST(order_statistics)
{
	const double x[] = {9, 1, 3, 7};

	near(median_of(x, 4), 5, 0);
	near(median_of(x, 3), 3, 0);
	near(percentile_of(x, 4, 0.25), 2.5, 1e-15); /* R: quantile(x, 0.25, type = 7) */
	near(percentile_of(x, 4, 0.9), 8.4, 1e-15);
	near(percentile_of(x, 4, 0), 1, 0);
	near(percentile_of(x, 4, 1), 9, 0);
	near(mad_of(x, 4), 1.4826 * 3, 1e-12);
	assert_true(isnan(median_of(x, 0)) && isnan(mad_of(x, 0)) && isnan(percentile_of(x, 0, 1)));
	assert_true(x[0] == 9 && x[3] == 7);
}

#define BLOCKS 400
struct warm_up {
	struct step_record blocks[BLOCKS];
	int64_t steps[BLOCKS];
	size_t count;
};

static struct warm_up *warm_make(void)
{
	return test_keep(calloc(1, sizeof(struct warm_up)));
}

/* Adds a block of steps that take step_ns each. */
static void add_block(struct warm_up *warm, double step_ns, int64_t steps)
{
	int64_t begin = warm->count ? warm->blocks[warm->count - 1].end_ns : 77 * SECOND_NS;

	warm->blocks[warm->count] = (struct step_record){
		.begin_ns = begin, .end_ns = begin + (int64_t)(step_ns * (double)steps)};
	warm->steps[warm->count++] = steps;
}

static bool steady(const struct warm_up *warm)
{
	return steady_reached(warm->blocks, warm->steps, warm->count, 10 * SECOND_NS);
}

TEST(flat_is_steady_after_ten_seconds)
{
	struct warm_up *warm = warm_make();

	assert_false(steady(warm));
	for (int i = 0; i < 39; i++) {
		add_block(warm, 1e7, 25);
		assert_false(steady(warm)); /* the trailing half is shorter than 5 s */
	}
	add_block(warm, 1e7, 25);
	assert_true(steady(warm));
	warm->steps[3] = 0;
	assert_false(steady(warm));
}

TEST(few_blocks_are_not_steady)
{
	struct warm_up *warm = warm_make();

	for (int i = 0; i < 7; i++)
		add_block(warm, 4e9, 1);
	assert_false(steady(warm)); /* 3 blocks in the half */
	add_block(warm, 4e9, 1);
	assert_false(steady(warm)); /* 4 blocks, but 8 steps */
	add_block(warm, 4e9, 1);
	add_block(warm, 4e9, 1);
	assert_true(steady(warm));
}

/* A drift of 2 % within the coming window is the limit: exact slopes on both sides of it. */
TEST(drift_decides)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		for (int i = 0; i < 2; i++) {
			struct warm_up *warm = warm_make();
			double over_window = i ? 0.0195 : 0.0205;
			for (int k = 0; k < 80; k++) {
				/* Centred on the trailing half, so that its mean is 1e7. */
				double t = 0.25 * k - 15;
				add_block(warm, 1e7 * (1 + sign * over_window / 10 * t), 25);
			}
			assert_int_equal(steady(warm), i);
		}
	}
}

static bool steady_over(const struct warm_up *warm, double window_s)
{
	return steady_reached(warm->blocks, warm->steps, warm->count,
			      (int64_t)(window_s * (double)SECOND_NS));
}

/* The drift is that of the coming window: each slope is steady up to some window length. The
 * uncertainty of the line grows with the length, too. */
TEST(the_coming_window_decides)
{
	struct warm_up *warm = warm_make();

	for (double slope = 0.0007; slope < 0.03; slope *= 3) {
		double longest = 0.02 / slope;
		warm->count = 0;
		for (int k = 0; k < 80; k++)
			add_block(warm, 1e7 * (1 + slope * (0.25 * k - 15)), 25);
		assert_true(steady_over(warm, 0.97 * longest));
		assert_false(steady_over(warm, 1.03 * longest));
	}
	/* Without a slope, but 2 % up and down: its standard error is 0.11 % a second. */
	warm->count = 0;
	for (int k = 0; k < 80; k++)
		add_block(warm, 1e7 * (k % 2 ? 1.02 : 0.98), 25);
	assert_true(steady_over(warm, 7));
	assert_false(steady_over(warm, 13));
}

/* Remaining bias of a window after the verdict: 400 processes that settle exponentially. */
TEST(verdicts_leave_little_bias)
{
	struct warm_up *warm = warm_make();
	struct random random;
	double sum = 0, worst = 0;
	int reached = 0;

	random_init(&random, 11);
	for (int i = 0; i < 400; i++) {
		double excess = 3 * random_uniform(&random);
		double constant = 0.5 + 9.5 * random_uniform(&random), t = 0;
		bool done = false;
		warm->count = 0;
		while (!done && t < 60 && warm->count < BLOCKS) {
			double step = 1 + excess * exp(-t / constant);
			add_block(warm, 1e7 * step * (1 + 0.004 * random_normal(&random)), 25);
			t = (double)(warm->blocks[warm->count - 1].end_ns - 77 * SECOND_NS) / 1e9;
			/* Checked once a second, like in the parent. */
			done = warm->count % 4 == 0 && steady(warm);
		}
		if (!done) {
			/* These are flagged: after 60 s they were still far from steady. */
			assert_true(excess * exp(-30 / constant) > 0.02);
			continue;
		}
		reached++;
		assert_true(t >= 10);
		/* The mean of the transient over the next 10 s. */
		double bias =
			excess * constant / 10 * exp(-t / constant) * (1 - exp(-10 / constant));
		sum += bias;
		worst = bias > worst ? bias : worst;
	}
	assert_true(reached > 360);
	assert_true(sum / reached < 0.005);
	assert_true(worst < 0.016);
}

TEST(efforts_are_those_of_the_protocol)
{
	assert_int_equal(effort_table[0].processes_cap, 11);
	assert_int_equal(effort_table[1].processes_start, 5);
	assert_int_equal(effort_table[1].processes_cap, 12);
	assert_int_equal(effort_table[2].processes_start, 10);
	assert_int_equal(effort_table[2].processes_cap, 40);
	for (size_t i = 0; i < 3; i++) {
		assert_true(effort_table[i].processes_start >= OK_PROCESSES_MIN);
		assert_true(effort_table[i].window_ns <= WINDOW_MAX_NS);
	}
}

/* mpmath, by quadrature over the chi-square distribution. */
TEST(shifted_tails_are_exact)
{
	near(student_t_upper_shifted(2.7764451051977944, 4, 4.4, 0, INFINITY), 0.900498247913664,
	     1e-6);
	near(student_t_upper_shifted(2.3060041352041667, 8, 3.7, 0, INFINITY), 0.89811413664718,
	     1e-6);
	near(student_t_upper_shifted(2.2, 11, 0.5, 0, INFINITY), 0.0666603662454472, 1e-6);
	near(student_t_upper_shifted(-1, 3, 1, 0, INFINITY), 0.964023429238765, 1e-6);
	near(student_t_upper_shifted(2.5, 40, 0, 0, INFINITY), student_t_upper(2.5, 40), 1e-6);
	near(student_t_upper_shifted(1, 1, 0, 0, INFINITY), 0.25, 1e-6);
	near(student_t_upper_shifted(2, 1e7, 3, 0, INFINITY), 0.84134474606854293, 1e-6);
	assert_true(isnan(student_t_upper_shifted(1, 0.5, 0, 0, INFINITY)));
}

TEST(it_stops_when_narrow_enough)
{
	const double narrow[] = {100, 101, 100, 100.5, 100.2};
	const double wide[] = {100, 110, 90, 105, 95, 120, 80, 101, 99, 100, 130, 70, 100};
	const struct effort_row *normal = &effort_table[1];
	bool flag = true;

	assert_true(effort_wants_more(normal, 0, narrow, 4, 4, &flag));
	assert_false(flag);
	assert_false(effort_wants_more(normal, 0, narrow, 5, 5, &flag));
	assert_false(flag);
	assert_true(effort_wants_more(normal, 0, wide, 5, 5, &flag));
	assert_true(effort_wants_more(normal, 0, wide, 11, 11, &flag));
	assert_false(flag);
	assert_false(effort_wants_more(normal, 0, wide, 12, 12, &flag));
	assert_true(flag);
	/* Quick effort never checks the interval. */
	assert_true(effort_wants_more(&effort_table[0], 0, wide, 10, 10, &flag));
	assert_false(effort_wants_more(&effort_table[0], 0, wide, 11, 11, &flag));
	assert_false(flag);
}

TEST(failures_are_made_up_for_but_not_for_ever)
{
	const double wide[] = {100, 110, 90, 105, 95, 120, 80};
	bool flag = true;

	assert_true(effort_wants_more(&effort_table[0], 0, wide, 2, 3, &flag));
	assert_true(effort_wants_more(&effort_table[0], 0, wide, 2, 21, &flag));
	assert_false(effort_wants_more(&effort_table[0], 0, wide, 2, 22, &flag));
	assert_false(effort_wants_more(&effort_table[1], 0, wide, 7, 24, &flag));
	assert_true(flag);
}

TEST(a_suite_fixes_the_number)
{
	const double wide[] = {100, 180, 90};
	bool flag = true;

	assert_true(effort_wants_more(&effort_table[1], 2, wide, 1, 1, &flag));
	assert_false(effort_wants_more(&effort_table[1], 2, wide, 2, 2, &flag));
	assert_false(flag);
	assert_true(effort_wants_more(&effort_table[0], 50, wide, 3, 3, &flag));
	assert_true(effort_wants_more(&effort_table[1], 1, NULL, 0, 1, &flag));
	assert_false(effort_wants_more(&effort_table[1], 1, NULL, 0, 2, &flag));
}
