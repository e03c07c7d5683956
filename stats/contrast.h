/* Compares two sets of process means: the ratio B / A with its interval, a verdict against a
 * threshold, and the number of processes that would decide it (docs/results.md). */
#ifndef PRONY_STATS_CONTRAST_H
#define PRONY_STATS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>

/* X(id, word) */
#define VERDICTS(X)                                                                                \
	X(SAME, "SAME")	    /* the interval lies within the threshold */                           \
	X(FASTER, "FASTER") /* the interval lies below */                                          \
	X(SLOWER, "SLOWER") /* the interval lies above */                                          \
	X(INCONCLUSIVE, "INCONCLUSIVE")

enum verdict {
#define X(id, word) VERDICT_##id,
	VERDICTS(X)
#undef X
		VERDICT_COUNT
};

const char *verdict_word(enum verdict verdict);

/* The difference of logarithms of process means, B minus A. */
struct contrast {
	bool paired;	   /* paired by rounds; otherwise two independent sets */
	size_t na, nb;	   /* number of processes; equal when paired */
	double difference; /* mean; NaN when a side has no process */
	double error;	   /* its standard error; NaN when a side has fewer than two processes */
	double df;	   /* its degrees of freedom (Welch's when not paired) */
	double spread;	   /* standard error times the square root of n, for n processes of each */
	double df_each; /* degrees of freedom / (n - 1), for n processes of each; not for pairs */
	double ratio, low, high; /* B / A, and its 95 % t interval */
};

/* Mean and variance (NaN for one value) of the differences log x[i] - log y[i], or of log x when y
 * is NULL; n > 0. */
void log_moments(const double *x, const double *y, size_t n, double *mean, double *variance);

/* Ratio and interval of a difference of logarithms with its standard error (NaN: unknown) and
 * degrees of freedom; no spread, no number of processes. */
void contrast_from(double difference, double error, double df, struct contrast *out);

/* Pairs a[i] and b[i] of the same round; n positive finite process means of each. */
void contrast_paired(const double *a, const double *b, size_t n, struct contrast *out);
/* The same with a trimmed mean, without the lowest and the highest eighth of the ratios (nothing is
 * trimmed below eight rounds). Its error is that of the winsorised sample (Tukey and McLaughlin
 * 1963, Sankhya A 25; Yuen 1974, Biometrika 61). If the machine changes its speed between the two
 * processes of a round, that ratio shows the machine's change, not a difference of the contenders.
 */
void contrast_trimmed(const double *a, const double *b, size_t n, struct contrast *out);
/* Welch 1947, on logarithms, for sets measured at different times. */
void contrast_welch(const double *a, size_t na, const double *b, size_t nb, struct contrast *out);

/* The geometric mean of independent ratios as a contrast; contrasts without an interval are left
 * out. na and nb: their number. Degrees of freedom after Satterthwaite 1946. */
void contrast_mean(const struct contrast *contrasts, size_t count, struct contrast *out);

/* Degrees of freedom with n processes of each, or n rounds (trimmed), if the variances stayed the
 * same. */
double contrast_df(const struct contrast *contrast, size_t n);

/* threshold 0.01: a difference of up to 1 % in either direction counts as the same. */
enum verdict contrast_verdict(const struct contrast *contrast, double threshold);

/* Two-sided p of "B differs by no more than the threshold": below 0.05 when the interval lies
 * outside; NaN without an interval. */
double contrast_p(const struct contrast *contrast, double threshold);

/* An e-value against "B differs by no more than the threshold": its mean is at most 1 when that is
 * true, so the product over independent runs reaches 20 in at most one of 20 cases, however often
 * it is looked at (Ville's inequality). The likelihood ratio of t for effects that are normal with
 * 10 times the variance of a process. NaN without an interval. */
double contrast_e(const struct contrast *contrast, double threshold);

/* Half of the interval relative to the ratio; NaN without an interval. */
double contrast_half_width(const struct contrast *contrast);

/* When FASTER or SLOWER needs more than 95 % confidence. 99 % when half of the interval exceeds
 * `narrow` (0.01 = 1 %) of the ratio: then the threshold no longer protects against chance, and one
 * A/A pair in fifty would be called different (docs/measured/statistics.md). 99.9 % with fewer than
 * `few` processes: in one of a hundred cases three processes are ten times closer together than
 * they should be, and a 99 % interval does not cover that (docs/measured/statistics.md). */
struct strictness {
	double narrow;
	size_t few;
};

/* The strictness of verdicts: narrow is twice the threshold, at most 10 %; few is the minimum of
 * default effort. */
struct strictness verdict_strictness(double threshold);

/* False discovery rate for claims of a difference. */
#define CONTRAST_DISCOVERIES 0.05
#define CONTRAST_DISCOVERIES_STRICT 0.01
#define CONTRAST_DISCOVERIES_FEW 0.001
double contrast_discoveries(const struct contrast *contrast, const struct strictness *strictness);

/* contrast_verdict for a single comparison; FASTER and SLOWER with the strictness of verdicts. */
enum verdict contrast_claim(const struct contrast *contrast, double threshold);

/* Number of processes of each (or of pairs) with which 80 of 100 such comparisons give a verdict,
 * if difference and spread stayed the same. 0 when unknown, CONTRAST_NEEDED_MAX for that many or
 * more. */
#define CONTRAST_NEEDED_MAX 10000
size_t contrast_needed(const struct contrast *contrast, double threshold,
		       const struct strictness *strictness);

/* The smallest difference of logarithms that a comparison of n pairs (at least 2) calls SLOWER in
 * `share` of all cases, with the strictness of verdicts. `spread`: standard deviation of the
 * logarithms of single pairs' ratios. */
double contrast_finds(double spread, size_t n, double threshold, double share);

/* Benjamini and Hochberg 1995: adjusted[i] is the false discovery rate at which hypothesis i is
 * just rejected. NaNs are ignored and stay NaN. */
void adjust_for_many(const double *p, size_t count, double *adjusted);

#endif
