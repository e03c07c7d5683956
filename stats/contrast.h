/*
 * How much slower is B than A? The ratio of two sets of process means with an interval of its own,
 * a verdict against a threshold, and how many processes would bring one (docs/results.md).
 */
#ifndef PRONY_STATS_CONTRAST_H
#define PRONY_STATS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>

/* X(id, word) */
#define VERDICTS(X)                                                                                \
	X(SAME, "SAME")	    /* the interval lies within the threshold */                           \
	X(FASTER, "FASTER") /* it lies below */                                                    \
	X(SLOWER, "SLOWER") /* it lies above */                                                    \
	X(INCONCLUSIVE, "INCONCLUSIVE")

enum verdict {
#define X(id, word) VERDICT_##id,
	VERDICTS(X)
#undef X
		VERDICT_COUNT
};

const char *verdict_word(enum verdict verdict);

/* A difference of logarithms of process means, B's less A's. */
struct contrast {
	bool paired;	   /* by rounds; else two independent sets */
	size_t na, nb;	   /* processes that counted; equal where paired */
	double difference; /* mean; NaN without processes of either */
	double error;	   /* its standard error; NaN with less than two processes of either */
	double df;	   /* degrees of freedom of it (Welch's where not paired) */
	double spread;	   /* standard error times the square root of n, with n processes of each */
	double df_each;	   /* degrees of freedom / (n - 1), with n of each; not of paired ones */
	double ratio, low, high; /* B / A, and its 95 % t interval */
};

/* a[i] and b[i] of the same round; n positive finite process means of each. */
void contrast_paired(const double *a, const double *b, size_t n, struct contrast *out);
/*
 * The same by the trimmed mean, without the lowest and the highest eighth of the ratios (none of
 * fewer than eight); its error is that of the winsorised (Tukey and McLaughlin 1963, Sankhya A 25;
 * Yuen 1974, Biometrika 61). Where a machine changes its speed between the two processes of a few
 * rounds, these are as far off as its speeds are apart, and say nothing of the contenders.
 */
void contrast_trimmed(const double *a, const double *b, size_t n, struct contrast *out);
/* Welch 1947, on logarithms: sets that ran at different times. */
void contrast_welch(const double *a, size_t na, const double *b, size_t nb, struct contrast *out);

/* The geometric mean of independent ratios, as a contrast; those without an interval are left out.
 * na and nb: how many were taken. Degrees of freedom after Satterthwaite 1946. */
void contrast_mean(const struct contrast *contrasts, size_t count, struct contrast *out);

/* Degrees of freedom with n processes of each, or n rounds (trimmed), were variances as they were
 * found. */
double contrast_df(const struct contrast *contrast, size_t n);

/* threshold 0.01: what is not off by more than 1 % either way is the same. */
enum verdict contrast_verdict(const struct contrast *contrast, double threshold);

/* Two-sided p of "B is not off by more than the threshold": below 0.05 where the interval lies
 * outside; NaN without an interval. */
double contrast_p(const struct contrast *contrast, double threshold);

/* Half of the interval as a share of the ratio; NaN without one. */
double contrast_half_width(const struct contrast *contrast);

/*
 * When a claim of FASTER or SLOWER needs more than 95 %. 99 % where half the interval is more than
 * `narrow` of the ratio (0.01 = 1 %), so that what does not matter no longer keeps chance away: of
 * the same twice one pair in fifty would be called so (docs/measured/statistics.md). 99.9
 * % where there are fewer than `few` processes: in one case of a hundred three lie ten times as
 * close as they should, and the interval of 99 % is no wider than that
 * (docs/measured/statistics.md).
 */
struct strictness {
	double narrow;
	size_t few;
};

/* That of a verdict: twice the threshold, at most 10 %, and the least of default effort. */
struct strictness verdict_strictness(double threshold);

/* False discovery rate within which a difference is claimed. */
#define CONTRAST_DISCOVERIES 0.05
#define CONTRAST_DISCOVERIES_STRICT 0.01
#define CONTRAST_DISCOVERIES_FEW 0.001
double contrast_discoveries(const struct contrast *contrast, const struct strictness *strictness);

/* contrast_verdict of one comparison alone; FASTER and SLOWER only as strict as a verdict is. */
enum verdict contrast_claim(const struct contrast *contrast, double threshold);

/*
 * Processes of each (or pairs) with which a verdict comes in 80 of 100 such comparisons, were
 * difference and spread as they were found; 0 when unknown, CONTRAST_NEEDED_MAX for as many or
 * more.
 */
#define CONTRAST_NEEDED_MAX 10000
size_t contrast_needed(const struct contrast *contrast, double threshold,
		       const struct strictness *strictness);

/*
 * The smallest difference of logarithms that a comparison of n pairs (at least 2) calls SLOWER in
 * `share` of all cases (as strict as a verdict is), where the logarithms of single pairs' ratios
 * have the given standard deviation.
 */
double contrast_finds(double spread, size_t n, double threshold, double share);

/*
 * Benjamini and Hochberg 1995: adjusted[i] is the false discovery rate at which hypothesis i would
 * just be rejected. NaNs are no hypotheses and stay NaN.
 */
void adjust_for_many(const double *p, size_t count, double *adjusted);

#endif
