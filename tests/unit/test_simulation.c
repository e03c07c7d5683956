/*
 * The protocol on simulated machines with known truth: how often its statements are wrong
 * (docs/measurement.md has these rates). Seeds are fixed; the bounds of rates are about four of
 * their standard errors to each side.
 *
 * The noise model: a process has its own factor (0.7 %), its steps are correlated (AR(1) of 0.8, 2
 * %), and one in a hundred takes a fifth longer. The estimand is the geometric mean of the step
 * time over processes, with each process's mean over its window.
 */
#include "stats/break_even.h"
#include "stats/diagnoses.h"
#include "stats/effort.h"
#include "stats/estimate.h"
#include "stats/noise.h"
#include "stats/order.h"
#include "unit_test.h"

#define PROCESS_SD 0.007
#define STEP_SD 0.02
#define CORRELATION 0.8
#define SPIKE_SHARE 0.01
#define SPIKE 0.2
#define STEPS 200
#define PROCESSES_MAX 40
#define TRUTH (1 + SPIKE_SHARE * SPIKE) /* mean of a step of 1 */

static void between(const char *what, double found, double low, double high)
{
	print_message("%s: %.1f %%\n", what, 100 * found);
	if (!(found >= low && found <= high))
		fail_msg("%s: %.4f is not between %g and %g", what, found, low, high);
}

/* Returns the mean of the steps of a process whose average is `level`. */
static double process_mean(struct random *random, double level)
{
	double factor = level * exp(PROCESS_SD * random_normal(random));
	double state = STEP_SD * random_normal(random), sum = 0;
	const double fresh = STEP_SD * sqrt(1 - CORRELATION * CORRELATION);

	for (int i = 0; i < STEPS; i++) {
		double spike = random_uniform(random) < SPIKE_SHARE ? SPIKE : 0;
		sum += factor * (1 + state + spike);
		state = CORRELATION * state + fresh * random_normal(random);
	}
	return sum / STEPS;
}

static bool claims(const struct contrast *contrast)
{
	return contrast->low > 1 || contrast->high < 1;
}

/* Two labels for the same contender. */
TEST(processes_are_the_replicates)
{
	enum { TRIALS = 4000, EACH = 5 };
	struct random random;
	int claimed = 0;

	random_init(&random, 1);
	for (int trial = 0; trial < TRIALS; trial++) {
		double means[2][EACH];
		struct contrast contrast;
		for (int side = 0; side < 2; side++)
			for (int i = 0; i < EACH; i++)
				means[side][i] = process_mean(&random, 1);
		contrast_welch(means[0], EACH, means[1], EACH, &contrast);
		claimed += claims(&contrast);
	}
	between("A/A, processes as replicates", (double)claimed / TRIALS, 0.032, 0.06);
}

/* The machine becomes 2 % slower during a run. */
TEST(rounds_withstand_drift)
{
	enum { TRIALS = 2000, ROUNDS = 8 };
	const double drift = 0.02;
	struct random random;
	int in_rounds = 0;

	random_init(&random, 2);
	for (int trial = 0; trial < TRIALS; trial++) {
		double means[2][ROUNDS];
		int64_t rounds[ROUNDS];
		struct contrast contrast;
		for (int i = 0; i < ROUNDS; i++) {
			bool first = random_below(&random, 2);
			rounds[i] = i;
			for (int side = 0; side < 2; side++) {
				double soon = (double)(2 * i + (side != first)) / (2 * ROUNDS);
				means[side][i] = process_mean(&random, 1 + drift * soon);
			}
		}
		const struct round_means a = {means[0], rounds, ROUNDS};
		const struct round_means b = {means[1], rounds, ROUNDS};
		contrast_of_rounds(&a, &b, &contrast);
		in_rounds += contrast.paired && claims(&contrast);
	}
	between("A/A under drift, in rounds", (double)in_rounds / TRIALS, 0.028, 0.068);
}

/* Runs processes until the effort has enough; returns whether the interval misses the truth. */
static bool misses(struct random *random, const struct effort_row *effort, double process_sd,
		   size_t *used)
{
	double means[PROCESSES_MAX];
	size_t n = 0;
	bool capped;
	struct estimate estimate;

	while (effort_wants_more(effort, 0, means, n, (int)n, &capped)) {
		double more = sqrt(fmax(process_sd * process_sd - PROCESS_SD * PROCESS_SD, 0));
		means[n++] = process_mean(random, exp(more * random_normal(random)));
	}
	*used = n;
	estimate_compute(means, n, 0, effort->stop_half_width > 0, &estimate);
	return estimate.low > TRUTH || estimate.high < TRUTH;
}

static double coverage(uint64_t seed, const struct effort_row *effort, double process_sd,
		       int trials, double *processes)
{
	struct random random;
	size_t sum = 0, used;
	int missed = 0;

	random_init(&random, seed);
	for (int trial = 0; trial < trials; trial++) {
		missed += misses(&random, effort, process_sd, &used);
		sum += used;
	}
	*processes = (double)sum / trials;
	return 1 - (double)missed / trials;
}

TEST(intervals_cover_with_the_stop_rule)
{
	double used;

	between("coverage, default effort", coverage(3, &effort_table[1], PROCESS_SD, 10000, &used),
		0.943, 0.961);
	assert_true(used < 5.5);
	/* At this spread the interval is checked most often before the run stops. */
	between("coverage, default effort, processes 2 % apart",
		coverage(4, &effort_table[1], 0.02, 4000, &used), 0.938, 0.966);
	assert_true(used > 5.5 && used < 11);
	between("coverage, default effort, processes 3 % apart",
		coverage(7, &effort_table[1], 0.03, 10000, &used), 0.932, 0.95);
	between("coverage, rigorous effort, processes 2 % apart",
		coverage(5, &effort_table[2], 0.02, 4000, &used), 0.933, 0.962);
	assert_true(used > 12 && used < 30);
	between("coverage, quick effort", coverage(6, &effort_table[0], PROCESS_SD, 4000, &used),
		0.932, 0.962);
}

/* The product of the e-values of nightly runs is looked at after each of them. */
TEST(e_values_may_be_looked_at_after_each_run)
{
	enum { TRIALS = 3000, RUNS = 20, EACH = 7 };
	static const double slower[] = {0, 0.02};

	for (int paired = 0; paired < 2; paired++)
		for (size_t k = 0; k < COUNT(slower); k++) {
			struct random random;
			int reached = 0;

			random_init(&random, 20 + k);
			for (int trial = 0; trial < TRIALS; trial++) {
				double product = 1, most = 0;
				for (int run = 0; run < RUNS; run++) {
					double a[EACH], b[EACH];
					struct contrast contrast;
					for (int i = 0; i < EACH; i++) {
						a[i] = exp(0.01 * random_normal(&random));
						b[i] = (1 + slower[k]) *
						       exp(0.01 * random_normal(&random));
					}
					if (paired)
						contrast_paired(a, b, EACH, &contrast);
					else
						contrast_welch(a, EACH, b, EACH, &contrast);
					product *= contrast_e(&contrast, 0);
					most = fmax(most, product);
				}
				reached += most >= 20;
			}
			between(k ? "2 % slower: the product of e reaches 20"
				  : "equal: the product of e reaches 20",
				(double)reached / TRIALS, k ? 0.9 : 0, k ? 1 : 0.05);
		}
}

/* A compiled contender starts 9 s later and saves 2 of 8 ms a step: 4,500 later steps. */
TEST(break_even_intervals_cover)
{
	enum { TRIALS = 20000, EACH = 5 };
	static const double first[] = {1e9, 10e9}, step[] = {8e6, 6e6};
	struct random random;
	int covered = 0, known = 0;

	random_init(&random, 30);
	for (int trial = 0; trial < TRIALS; trial++) {
		double firsts[2][EACH], steps[2][EACH];
		struct starts starts[2];
		struct break_even found;
		for (int side = 0; side < 2; side++) {
			for (int i = 0; i < EACH; i++) {
				/* A fast process is fast in both. */
				double own = 0.01 * random_normal(&random);
				steps[side][i] = step[side] * (1 + own);
				firsts[side][i] =
					first[side] * (1 + own + 0.05 * random_normal(&random));
			}
			starts[side] = (struct starts){firsts[side], steps[side], EACH};
		}
		break_even_of(&starts[0], &starts[1], &found);
		known += isfinite(found.steps);
		covered += found.low <= 4501 && 4501 <= found.high;
		break_even_of(&starts[1], &starts[0], &found);
		assert_true(isnan(found.steps));
	}
	assert_int_equal(known, TRIALS);
	between("coverage of a break-even", (double)covered / TRIALS, 0.944, 0.958);
}

/* Intervals of the ratio of two equal contenders by the rounds of quick effort. */
struct rounds_told {
	double covered, wrong; /* shares: holds 1; gives a verdict */
	double half_width;     /* root mean square, of logarithms */
};

/*
 * Processes differ by 2 %; in a share of the rounds the machine changes its speed between the two.
 */
static void tell_rounds(uint64_t seed, double changed,
			void (*contrast_by)(const double *, const double *, size_t,
					    struct contrast *),
			struct rounds_told *out)
{
	enum { TRIALS = 8000 };
	const double speeds = log(1.37); /* ratio of the two: docs/measured/statistics.md */
	const size_t n = (size_t)effort_table[0].processes_start;
	struct random random;
	double squares = 0;
	int covered = 0, wrong = 0;

	random_init(&random, seed);
	for (int trial = 0; trial < TRIALS; trial++) {
		double a[PROCESSES_MAX], b[PROCESSES_MAX];
		struct contrast contrast;
		for (size_t i = 0; i < n; i++) {
			bool changes = random_uniform(&random) < changed;
			double moved = changes ? (random_uniform(&random) < 0.5 ? 1 : -1) : 0;
			a[i] = exp(0.014 * random_normal(&random));
			b[i] = exp(0.014 * random_normal(&random) + moved * speeds);
		}
		contrast_by(a, b, n, &contrast);
		covered += contrast.low <= 1 && contrast.high >= 1;
		enum verdict verdict = contrast_claim(&contrast, NOISE_MIN);
		wrong += verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER;
		double half_width = log(contrast.high / contrast.low) / 2;
		squares += half_width * half_width / TRIALS;
	}
	*out = (struct rounds_told){(double)covered / TRIALS, (double)wrong / TRIALS,
				    sqrt(squares)};
}

/* A machine with two speeds, as one was found. There, intervals by trimmed rounds are two thirds as
 * wide and have their nominal coverage. On a machine with one speed they lose a fifteenth. */
TEST(rounds_withstand_two_speeds)
{
	struct rounds_told plain, trimmed;

	tell_rounds(31, 0.065, contrast_paired, &plain);
	tell_rounds(31, 0.065, contrast_trimmed, &trimmed);
	between("two speeds: the interval of trimmed rounds holds 1", trimmed.covered, 0.945, 0.97);
	between("a wrong verdict", trimmed.wrong, 0, 0.003);
	between("its half width over that of all rounds", trimmed.half_width / plain.half_width,
		0.3, 0.7);
	tell_rounds(32, 0, contrast_paired, &plain);
	tell_rounds(32, 0, contrast_trimmed, &trimmed);
	between("one speed: the interval of trimmed rounds holds 1", trimmed.covered, 0.94, 0.96);
	between("a wrong verdict", trimmed.wrong, 0, 0.003);
	between("its half width over that of all rounds", trimmed.half_width / plain.half_width, 1,
		1.07);
}

/* Ranks of a quick table: equal contenders, and one with five times the step time. */
TEST(quick_ranks_hold)
{
	enum { TRIALS = 4000 };
	const size_t n = (size_t)effort_table[0].processes_start;
	struct random random;
	int64_t rounds[PROCESSES_MAX];
	int wrong = 0, ranked = 0, alike = 0;

	random_init(&random, 9);
	for (size_t i = 0; i < n; i++)
		rounds[i] = (int64_t)i;
	for (int trial = 0; trial < TRIALS; trial++) {
		double means[3][PROCESSES_MAX];
		struct contender contenders[3];
		struct contrast contrast;
		struct rank_range equals[2], far[2];
		for (int side = 0; side < 3; side++) {
			for (size_t i = 0; i < n; i++)
				means[side][i] =
					(side == 2 ? 5 : 1) * exp(0.4 * random_normal(&random));
			contenders[side] = (struct contender){.means = {means[side], rounds, n}};
		}
		enum order equal = order_pair(&contenders[0], &contenders[1], &contrast);
		alike += equal == ORDER_ALIKE;
		order_ranks(contenders, 2, 0, equals);
		wrong += equals[0].low > 1 || equals[1].low > 1;
		contenders[1] = contenders[2];
		order_ranks(contenders, 2, 0, far);
		ranked += far[0].rank == 1 && far[1].rank == 2;
	}
	/* If processes differ by 40 %, equal contenders are not ranked, and five times the step
	 * time is. */
	between("equal contenders ranked, noisy machine", (double)wrong / TRIALS, 0.003, 0.018);
	between("equal contenders called alike, noisy machine", (double)alike / TRIALS, 0, 0.01);
	between("five times as long ranked, noisy machine", (double)ranked / TRIALS, 0.98, 1);
}

/* A machine whose processes differ by `sd`, and the statements about default effort on it. */
struct told {
	double floor;	 /* mean floor of self-tests of FLOOR_ROUNDS */
	double found[2]; /* twice the floor is SLOWER: threshold 1 %, and `apart` */
	double wrong;	 /* equal cells are FASTER or SLOWER, threshold 1 % */
	double opposite; /* +2 % is FASTER, threshold 1 % */
};

/* Two cells of one run, B slower by `slowdown`; each stops by its own rule. */
static void compare_cells(struct random *random, double sd, double slowdown, struct contrast *out)
{
	double means[2][PROCESSES_MAX];
	int64_t rounds[PROCESSES_MAX];
	size_t n[2] = {0, 0};
	bool capped;

	for (int side = 0; side < 2; side++)
		while (effort_wants_more(&effort_table[1], 0, means[side], n[side], (int)n[side],
					 &capped))
			means[side][n[side]++] =
				(1 + side * slowdown) * exp(sd * random_normal(random));
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		rounds[i] = (int64_t)i;
	const struct round_means a = {means[0], rounds, n[0]}, b = {means[1], rounds, n[1]};
	contrast_of_rounds(&a, &b, out);
}

static void tell(uint64_t seed, double sd, struct told *out)
{
	enum { TRIALS = 3000, FLOOR_ROUNDS = 15 };
	struct random random;
	struct contrast contrast;
	struct told sum = {.floor = 0};

	random_init(&random, seed);
	for (int trial = 0; trial < TRIALS; trial++) {
		double a[FLOOR_ROUNDS], b[FLOOR_ROUNDS];
		struct noise noise;
		for (int i = 0; i < FLOOR_ROUNDS; i++) {
			a[i] = exp(sd * random_normal(&random));
			b[i] = exp(sd * random_normal(&random));
		}
		noise_of(a, b, FLOOR_ROUNDS, &noise);
		sum.floor += noise.floor;
		compare_cells(&random, sd, 2 * noise.floor, &contrast);
		sum.found[0] += contrast_claim(&contrast, NOISE_MIN) == VERDICT_SLOWER;
		sum.found[1] += contrast_claim(&contrast, noise.apart) == VERDICT_SLOWER;
		compare_cells(&random, sd, 0, &contrast);
		enum verdict same = contrast_claim(&contrast, NOISE_MIN);
		sum.wrong += same == VERDICT_SLOWER || same == VERDICT_FASTER;
		compare_cells(&random, sd, 0.02, &contrast);
		sum.opposite += contrast_claim(&contrast, NOISE_MIN) == VERDICT_FASTER;
	}
	*out = (struct told){sum.floor / TRIALS,
			     {sum.found[0] / TRIALS, sum.found[1] / TRIALS},
			     sum.wrong / TRIALS,
			     sum.opposite / TRIALS};
}

/* Default effort finds a slowdown of twice the floor that the self-test prints, however much
 * processes differ. Equal cells get no verdict, and +2 % is never FASTER. */
TEST(twice_the_floor_is_found)
{
	static const double spreads[] = {0.003, 0.005, 0.007, 0.01, 0.015, 0.03};

	for (size_t i = 0; i < COUNT(spreads); i++) {
		struct told told;
		tell(10 + i, spreads[i], &told);
		print_message("processes %.1f %% apart: floor %.2f %%, wrong %.2f %%\n",
			      100 * spreads[i], 100 * told.floor, 100 * told.wrong);
		between("twice the floor is SLOWER, threshold 1 %", told.found[0], 0.885, 1);
		between("twice the floor is SLOWER, threshold the noise", told.found[1], 0.885, 1);
		assert_true(told.wrong <= 0.01);
		assert_true(told.opposite <= 0.001);
	}
}

/* Faults in the processes of a simulated cell; all values are relative. */
struct fault {
	double apart;		   /* additional standard deviation of processes; not a fault */
	double first, every_other; /* the first process; every second process */
	double moved;		   /* processes from the fifth on */
	double page_faults;	   /* per step, in every second process */
	double shorter;		   /* all processes */
};

/* The number of diagnosed processes, with steps of 10 ms. */
enum { DIAGNOSED = 7 };

static void diagnose_made_up(struct random *random, const struct fault *fault,
			     struct diagnoses *out)
{
	const double step_ns = 1e7;
	struct diagnosed_process processes[DIAGNOSED];

	for (int i = 0; i < DIAGNOSED; i++) {
		double level = step_ns * exp(fault->apart * random_normal(random)) *
			       (1 + (i == 0 ? fault->first : 0)) *
			       (1 + (i >= 4 ? fault->moved : 0)) *
			       (1 + (i % 2 ? fault->every_other : 0)) * (1 - fault->shorter);
		double mean = process_mean(random, level);
		processes[i] =
			(struct diagnosed_process){i + 1, mean, i % 2 ? fault->page_faults : 0};
	}
	diagnose(processes, DIAGNOSED, out);
}

/* Computes how often each diagnosis is raised; the rate of any diagnosis is at DIAGNOSIS_COUNT. */
static void how_often(uint64_t seed, const struct fault *fault, int trials,
		      double rates[DIAGNOSIS_COUNT + 1])
{
	struct random random;

	random_init(&random, seed);
	for (int id = 0; id <= DIAGNOSIS_COUNT; id++)
		rates[id] = 0;
	for (int trial = 0; trial < trials; trial++) {
		struct diagnoses found;
		bool any = false;
		diagnose_made_up(&random, fault, &found);
		for (int id = 0; id < DIAGNOSIS_COUNT; id++) {
			rates[id] += isnan(found.values[id]) ? 0 : 1;
			any |= !isnan(found.values[id]);
		}
		rates[DIAGNOSIS_COUNT] += any ? 1 : 0;
	}
	for (int id = 0; id <= DIAGNOSIS_COUNT; id++)
		rates[id] /= trials;
}

/* Noise without structure rarely raises a diagnosis, and each fault raises its own. */
TEST(faults_are_diagnosed)
{
	static const struct {
		struct fault fault;
		enum diagnosis_id id;
	} rows[] = {
		{{.first = 0.1}, DIAGNOSIS_FIRST_SLOWEST},
		{{.every_other = 0.21}, DIAGNOSIS_TWO_SPEEDS},
		{{.moved = 0.08}, DIAGNOSIS_TWO_SPEEDS},
		{{.page_faults = 1000}, DIAGNOSIS_PAGE_FAULTS},
		{{.shorter = 0.95}, DIAGNOSIS_SHORT_STEP},
	};
	double rates[DIAGNOSIS_COUNT + 1];

	how_often(20, &(struct fault){0}, 2000, rates);
	for (int id = 0; id < DIAGNOSIS_COUNT; id++)
		print_message("no fault: %s %.2f %%\n", diagnosis_word((enum diagnosis_id)id),
			      100 * rates[id]);
	between("no fault, anything diagnosed", rates[DIAGNOSIS_COUNT], 0, 0.01);
	/* If processes differ by 5 %, the minimum effect sizes no longer exclude chance. */
	how_often(19, &(struct fault){.apart = 0.05}, 2000, rates);
	between("5 % apart, first-slowest", rates[DIAGNOSIS_FIRST_SLOWEST], 0, 0.011);
	between("5 % apart, two-speeds", rates[DIAGNOSIS_TWO_SPEEDS], 0, 0.015);
	for (size_t i = 0; i < COUNT(rows); i++) {
		how_often(21 + i, &rows[i].fault, 250, rates);
		between(diagnosis_word(rows[i].id), rates[rows[i].id], 0.9, 1);
	}
}
