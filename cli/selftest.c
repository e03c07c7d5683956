/* `prony selftest`: the smallest difference that prony can detect on this machine, its own cost,
 * and the ceilings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process_tree.h"
#include "base/random.h"
#include "cli/ceilings.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/machine_lock.h"
#include "cli/selftest_parts.h"
#include "diagnose/machine.h"
#include "diagnose/measured.h"
#include "report/format.h"
#include "stats/contrast.h"
#include "stats/estimate.h"
#include "stats/noise.h"

#define SECOND_NS INT64_C(1000000000)
#define MILLISECOND_NS INT64_C(1000000)

enum { DRAWS = 2000, CLOCK_READS = 200000 };
/* Above this limit other programs dominate: with such a threshold every comparison would be SAME.
 * The result is reported but not stored. */
#define APART_MAX 0.1

struct selftest_options {
	const char *format;
	bool quick;
	long long seconds;
} selftest_options = {.format = "table"};

const struct option selftest_option_rows[] = {
	{FLAG_OPTION(struct selftest_options, quick, "quick",
		     "take 15 seconds instead of a minute, with wider intervals")},
	{INT_OPTION(struct selftest_options, seconds, "seconds", 1, 3600, "N",
		    "approximate duration; at least three rounds of all arms")},
	CLI_OPTION_FORMAT(struct selftest_options),
	{.name = NULL},
};

/* The cost of reading the clock, and its resolution. */
struct clock_figures {
	double read_ns;
	int64_t step_ns;
	bool process_clocks; /* clocks of other processes are readable, with ns resolution */
};

static void measure_clock(struct clock_figures *out)
{
	int64_t begin = clock_monotonic_ns(), last = begin, step = INT64_MAX;

	for (int i = 0; i < CLOCK_READS; i++) {
		int64_t now = clock_monotonic_ns();
		if (now > last && now - last < step)
			step = now - last;
		last = now;
	}
	out->read_ns = (double)(last - begin) / CLOCK_READS;
	out->step_ns = step;
	/* Process 1 belongs to another user, and its clock may still be readable. */
	struct timespec time;
	clockid_t clock;
	out->process_clocks =
		clock_getcpuclockid(getppid(), &clock) == 0 && clock_gettime(clock, &time) == 0;
}

/* Results over all arms. */
struct verdicts {
	struct noise noise;
	double covered; /* share of A/A intervals over NOISE_PAIRS pairs that contain 1 */
	double wrong;	/* share of those that report FASTER or SLOWER beyond the noise */
	struct contrast found[ARM_COUNT]; /* each arm against A, over all rounds */
	double detected[ARM_COUNT]; /* share of draws of NOISE_PAIRS pairs with an interval above 1
				     */
};

/* Draws NOISE_PAIRS distinct rounds. */
static void draw(struct random *random, const struct arms *arms, int arm, double *a, double *b)
{
	size_t order[ARM_ROUNDS_MAX];

	for (size_t i = 0; i < arms->rounds; i++)
		order[i] = i;
	random_shuffle(random, order, arms->rounds);
	for (size_t i = 0; i < NOISE_PAIRS; i++) {
		a[i] = arms->means_ns[ARM_A][order[i]];
		b[i] = arms->means_ns[arm][order[i]];
	}
}

static void judge_draws(const struct arms *arms, struct verdicts *out)
{
	struct random random;

	/* With so few rounds every draw would be the same. */
	if (arms->rounds <= NOISE_PAIRS) {
		out->covered = out->wrong = NAN;
		for (int arm = ARM_SAME; arm < ARM_COUNT; arm++)
			out->detected[arm] = NAN;
		return;
	}
	random_init(&random, 1);
	for (int arm = ARM_SAME; arm < ARM_COUNT; arm++) {
		int covered = 0, wrong = 0, above = 0;
		for (int i = 0; i < DRAWS; i++) {
			double a[NOISE_PAIRS], b[NOISE_PAIRS];
			struct contrast contrast;
			draw(&random, arms, arm, a, b);
			contrast_paired(a, b, NOISE_PAIRS, &contrast);
			enum verdict verdict = contrast_claim(&contrast, out->noise.apart);
			covered += contrast.low <= 1 && contrast.high >= 1;
			above += contrast.low > 1;
			wrong += verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER;
		}
		out->detected[arm] = (double)above / DRAWS;
		if (arm == ARM_SAME) {
			out->covered = (double)covered / DRAWS;
			out->wrong = (double)wrong / DRAWS;
		}
	}
}

static void judge_arms(const struct arms *arms, struct verdicts *out)
{
	noise_of(arms->means_ns[ARM_A], arms->means_ns[ARM_SAME], arms->rounds, &out->noise);
	for (int arm = ARM_SAME; arm < ARM_COUNT; arm++)
		contrast_trimmed(arms->means_ns[ARM_A], arms->means_ns[arm], arms->rounds,
				 &out->found[arm]);
	judge_draws(arms, out);
}

static json_t *delay_to_json(const struct arms *arms, const struct verdicts *v, int arm)
{
	const struct contrast *found = &v->found[arm];
	const struct strictness strictness = verdict_strictness(v->noise.apart);
	double true_ratio = 1 + arms->injected[arm];

	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:b, s:b, s:o, s:I}", "injected",
			 json_number(arms->injected[arm]), "ratio", json_number(found->ratio),
			 "low", json_number(found->low), "high", json_number(found->high),
			 "verdict", verdict_word(contrast_claim(found, v->noise.apart)), "found",
			 found->low > 1, "contains_injected",
			 found->low <= true_ratio && found->high >= true_ratio, "found_by_5_pairs",
			 json_number(v->detected[arm]), "pairs_needed",
			 (json_int_t)contrast_needed(found, v->noise.apart, &strictness));
}

static json_t *noise_to_json(const struct arms *arms, const struct verdicts *v)
{
	json_t *delays = json_array();

	for (int arm = ARM_1; arm < ARM_COUNT; arm++)
		json_array_append_new(delays, delay_to_json(arms, v, arm));
	return json_pack(
		"{s:o, s:o, s:b, s:i, s:I, s:o, s:{s:o, s:o, s:o, s:o, s:o}, s:o}", "floor",
		json_number(v->noise.floor), "apart", json_number(v->noise.apart), "kept",
		v->noise.apart <= APART_MAX, "pairs", NOISE_PAIRS, "rounds",
		(json_int_t)arms->rounds, "spread", json_number(v->noise.spread), "same", "ratio",
		json_number(v->found[ARM_SAME].ratio), "low", json_number(v->found[ARM_SAME].low),
		"high", json_number(v->found[ARM_SAME].high), "intervals_with_1",
		json_number(v->covered), "wrong_verdicts", json_number(v->wrong), "delays", delays);
}

static json_t *to_json(const struct clock_figures *clock, const struct observer *observer,
		       const json_t *noise, const json_t *ceilings)
{
	return json_pack(
		"{s:{s:o, s:I, s:b}, s:{s:o, s:I, s:I, s:o, s:o, s:o}, s:O, s:O}", "clock",
		"read_ns", json_number(clock->read_ns), "step_ns", (json_int_t)clock->step_ns,
		"process_clocks", clock->process_clocks, "observer", "share_of_core",
		json_number(observer->share), "start_ns", (json_int_t)observer->start_ns, "pairs",
		(json_int_t)observer->pairs, "slowdown", json_number(observer->slowdown), "low",
		json_number(observer->slowdown_low), "high", json_number(observer->slowdown_high),
		"noise", noise, "ceilings", ceilings);
}

static void print_delays(const struct arms *arms, const struct verdicts *v)
{
	static const struct table_column columns[] = {
		{"injected", "injected", TABLE_RIGHT},
		{"found", "ratio", TABLE_RIGHT},
		{"95 % interval", "interval", TABLE_LEFT},
		{"verdict", "verdict", TABLE_LEFT},
		{"by 5 pairs", "found_by_5_pairs", TABLE_RIGHT}};
	struct table *table = table_new(columns, sizeof columns / sizeof columns[0]);

	for (int arm = ARM_SAME; arm < ARM_COUNT; arm++) {
		const struct contrast *found = &v->found[arm];
		char text[64];
		table_row(table);
		snprintf(text, sizeof text, "%.2f %%", 100 * arms->injected[arm]);
		table_cell(table, text, NULL);
		snprintf(text, sizeof text, "%+.2f %%", 100 * (found->ratio - 1));
		table_cell(table, text, NULL);
		snprintf(text, sizeof text, "%+.2f to %+.2f %%", 100 * (found->low - 1),
			 100 * (found->high - 1));
		table_cell(table, text, NULL);
		table_cell(table, verdict_word(contrast_claim(found, v->noise.apart)), NULL);
		snprintf(text, sizeof text, isnan(v->detected[arm]) ? "-" : "%.0f %%",
			 100 * v->detected[arm]);
		table_cell(table, text, NULL);
	}
	cli_print_table(table, "table");
	table_free(table);
}

static void print_text(const struct clock_figures *clock, const struct observer *observer,
		       const struct arms *arms, const struct verdicts *v, const json_t *ceilings)
{
	char apart[32], floor[32], effect[32];

	cli_out("clock: a reading takes %.0f ns, the resolution is %lld ns; CPU clocks of "
		"processes %s\n",
		clock->read_ns, (long long)clock->step_ns,
		clock->process_clocks ? "are exact" : "count only ticks of 10 ms");
	if (observer->slowdown_low <= 1 && observer->slowdown_high >= 1)
		snprintf(effect, sizeof effect, "not measurable here");
	else
		snprintf(effect, sizeof effect, "%+.2f %%", 100 * (observer->slowdown - 1));
	cli_out("sensors: %.2g %% of one core, %.1f ms at the start of a process; effect on work "
		"with all cores: %s (95 %%: %+.2f to %+.2f %%, %zu pairs)\n\n",
		100 * observer->share, (double)observer->start_ns * 1e-6, effect,
		100 * (observer->slowdown_low - 1), 100 * (observer->slowdown_high - 1),
		observer->pairs);
	cli_out("the framework fake compared with itself, unchanged and slowed down, %zu rounds:\n",
		arms->rounds);
	print_delays(arms, v);
	if (isnan(v->covered))
		cli_out("by 5 pairs: needs more than %d rounds (--seconds N)\n\n", NOISE_PAIRS);
	else
		cli_out("by 5 pairs: share of %d random draws of 5 rounds whose interval is above "
			"1. Without a delay,\n"
			"%.0f %% of the intervals contain 1, and %.1f %% of the verdicts are "
			"wrong.\n\n",
			DRAWS, 100 * v->covered, 100 * v->wrong);
	format_percent(v->noise.apart, apart, sizeof apart);
	format_percent(v->noise.floor, floor, sizeof floor);
	cli_out("noise: %s (95 of 100 comparisons of two equal programs over 5 pairs differ by "
		"less;\n"
		"comparisons use it as threshold)\n"
		"noise floor: %s (with 5 pairs, the minimum of the default effort, %.0f of 100 "
		"comparisons\n"
		"find a slowdown of twice this size)\n\n",
		apart, floor, 100 * NOISE_FOUND);
	if (v->noise.apart > APART_MAX)
		cli_out("This noise is too large to be the machine's own, so it is not stored: "
			"close other programs (see prony doctor) and run again.\n\n");
	ceilings_print(ceilings);
}

/* How the time is divided. */
struct budget {
	int64_t ceilings_each_ns, observer_ns, arms_ns;
};

static struct budget share_out(const struct selftest_options *options)
{
	int64_t seconds = options->seconds ? options->seconds : options->quick ? 15 : 60;
	int64_t whole = seconds * SECOND_NS;

	return (struct budget){.ceilings_each_ns =
				       seconds < 30 ? 20 * MILLISECOND_NS : 200 * MILLISECOND_NS,
			       .observer_ns = whole / 5,
			       .arms_ns = whole * 3 / 5};
}

int command_selftest(const struct cli_call *call, struct error *err)
{
	const struct selftest_options *options = &selftest_options;
	struct budget budget = share_out(options);
	struct clock_figures clock;
	struct observer observer = {0};
	struct verdicts verdicts;
	struct arms *arms = memory_alloc(sizeof *arms);
	json_t *record = machine_record(""), *noise = NULL;
	const json_t *ceilings = NULL;
	int lock = -1;

	(void)call;
	catch_signals();
	/* Take the lock for the whole test. */
	enum prony_status status = machine_lock(&stop_wanted, &lock, err);
	if (status == PRONY_OK) {
		measure_clock(&clock);
		cli_say("prony: measuring the cost of the sensors, then rounds of fake, then the "
			"peak\n");
		status = observer_measure(machine_cores(NULL, 0), budget.observer_ns, &observer,
					  err);
	}
	if (status == PRONY_OK && !stop_wanted)
		status = arms_measure(budget.arms_ns, &stop_wanted, arms, err);
	if (status == PRONY_OK && stop_wanted)
		status = error_set(err, PRONY_INTERRUPTED, "interrupted");
	if (status == PRONY_OK && arms->rounds < 2)
		status = error_set(err, PRONY_CRASHED, "fewer than two rounds succeeded");
	if (status == PRONY_OK) {
		judge_arms(arms, &verdicts);
		noise = noise_to_json(arms, &verdicts);
		if (verdicts.noise.apart <= APART_MAX)
			status = measured_keep(record, "noise", noise, err);
	}
	if (status == PRONY_OK)
		status = ceilings_renew(record, budget.ceilings_each_ns, &ceilings, err);
	if (lock >= 0)
		close(lock);
	if (status == PRONY_OK && strcmp(options->format, "json") == 0) {
		json_t *json = to_json(&clock, &observer, noise, ceilings);
		cli_print_json(json);
		json_decref(json);
	} else if (status == PRONY_OK) {
		print_text(&clock, &observer, arms, &verdicts, ceilings);
	}
	json_decref(noise);
	json_decref(record);
	free(arms);
	return 0;
}
