/*
 * How long the processes to come will warm up, where each goes on until it is steady and no longer
 * than a cap: drawn from how long those did that have ended. A machine on which nothing becomes
 * steady sends all to the cap, a quiet one none, so that a few tell much about the others.
 */
#ifndef PRONY_STATS_WARM_UPS_H
#define PRONY_STATS_WARM_UPS_H

/* Seconds; the counts may be parts, for what earlier runs tell. */
struct warm_ups {
	double low, high;      /* shortest and longest, above 0 */
	double capped, steady; /* how many came to the cap, and how many became steady before */
	double logs, squares;  /* of the latter: sums of logarithms, and of their squares */
};

/* low <= high. */
void warm_ups_init(struct warm_ups *w, double low, double high);

/* One took so long; it weighs as much as `weight` that were seen (> 0). */
void warm_ups_learn(struct warm_ups *w, double seconds, double weight);

/* What may be true of the warm-ups to come, drawn from its posterior: the share that comes to the
 * cap (Beta, Jeffreys' prior), and where the others' logarithms lie and how far apart (normal and
 * scaled inverse chi squared; Gelman et al., Bayesian Data Analysis, 3.3). */
struct warm_up_draw {
	double capped;	       /* share, 0 to 1 */
	double centre, spread; /* mean and standard deviation of the others' logarithms */
	double mean;	       /* of all, seconds */
	double deviation; /* of one from that, seconds; either sign: the sum of n lies sqrt(n) of it
			     off */
	double place; /* 0 to 1, of the one that runs: of those that may still come, how long it is
		       */
};
/* Writes `count` draws; the same ones for the same warm-ups. */
void warm_ups_draw(const struct warm_ups *w, struct warm_up_draw *draws, int count);

/* So many processes together (n >= 0), seconds: of them so many are expected, where `each` is
 * expected of any process. So what is known of their cells is kept. */
double warm_ups_together(const struct warm_ups *w, const struct warm_up_draw *draw, double n,
			 double expected, double each);

/* When one ends that has lasted so long: seconds from its beginning. */
double warm_ups_end(const struct warm_ups *w, const struct warm_up_draw *draw, double lasted);

#endif
