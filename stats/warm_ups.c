#include "stats/warm_ups.h"

#include <math.h>

#include "base/random.h"
#include "stats/estimate.h"
#include "stats/variates.h"

/* What is thought before any was seen weighs as much as so many of those: of their place, and of
 * how far they lie apart. */
#define PLACE_WEIGHT 0.5
#define SPREAD_WEIGHT 2
/* Those within so much of the cap have come to it. */
#define CAPPED 0.97
/* Student's t with so many degrees of freedom is the normal distribution. */
#define NORMAL_FREEDOM 1e7

void warm_ups_init(struct warm_ups *w, double low, double high)
{
	*w = (struct warm_ups){.low = low, .high = high};
}

void warm_ups_learn(struct warm_ups *w, double seconds, double weight)
{
	double within = fmin(fmax(seconds, w->low), w->high), log_of = log(within);

	if (within >= CAPPED * w->high) {
		w->capped += weight;
		return;
	}
	w->steady += weight;
	w->logs += weight * log_of;
	w->squares += weight * log_of * log_of;
}

/* Mean and deviation of one warm-up, if the draw is true. */
static void moments(const struct warm_ups *w, const struct warm_up_draw *draw, double *mean,
		    double *deviation)
{
	double variance = draw->spread * draw->spread;
	double steady = fmin(fmax(exp(draw->centre + variance / 2), w->low), w->high);
	double off = w->high - steady, others = 1 - draw->capped;

	*mean = draw->capped * w->high + others * steady;
	*deviation = sqrt(draw->capped * others * off * off +
			  others * steady * steady * expm1(variance));
}

void warm_ups_draw(const struct warm_ups *w, struct warm_up_draw *draws, int count)
{
	/* Before any was seen each is as likely as another, on a logarithmic scale. */
	double usual = log(sqrt(w->low * w->high)), wide = log(w->high / w->low);
	double known = w->steady + PLACE_WEIGHT, mean = w->steady > 0 ? w->logs / w->steady : usual;
	double centre = (w->logs + PLACE_WEIGHT * usual) / known;
	double squares = SPREAD_WEIGHT * wide * wide / 12 + fmax(w->squares - mean * w->logs, 0) +
			 PLACE_WEIGHT * w->steady / known * (mean - usual) * (mean - usual);
	struct random random;

	random_init_named(&random, 0, "warm-ups");
	for (int d = 0; d < count; d++) {
		struct warm_up_draw *draw = &draws[d];
		double freedom = SPREAD_WEIGHT + w->steady, mean_of, deviation;
		draw->capped = share_variate(&random, w->capped, w->steady);
		draw->spread = sqrt(squares / chi_squared_variate(&random, freedom));
		draw->spread = fmin(draw->spread, wide);
		draw->centre = centre + draw->spread / sqrt(known) * random_normal(&random);
		draw->place = random_uniform(&random);
		moments(w, draw, &mean_of, &deviation);
		draw->mean = mean_of;
		draw->deviation = deviation * random_normal(&random);
	}
}

double warm_ups_together(const struct warm_ups *w, const struct warm_up_draw *draw, double n,
			 double expected, double each)
{
	double all = expected + n * (draw->mean - each) + sqrt(n) * draw->deviation;

	return fmin(fmax(all, n * w->low), fmax(n * w->high, expected));
}

/* Share of the steady ones that lasts longer. */
static double longer(const struct warm_up_draw *draw, double seconds)
{
	return draw->spread > 0
		       ? 0.5 * erfc((log(seconds) - draw->centre) / (draw->spread * sqrt(2)))
		       : draw->centre > log(seconds);
}

double warm_ups_end(const struct warm_ups *w, const struct warm_up_draw *draw, double lasted)
{
	if (lasted >= w->high)
		return lasted;
	/* None ends before the shortest: until then nothing is known of this one. */
	double left = lasted > w->low ? longer(draw, lasted) : 1;
	/* The longer it has lasted, the likelier it is one of those that come to the cap. */
	double steady = (1 - draw->capped) * left, all = draw->capped + steady;
	double capped = all > 0 ? draw->capped / all : 1;
	if (draw->place < capped || !(left > 0))
		return w->high;
	double part = left * (1 - (draw->place - capped) / (1 - capped));
	double normal = part > 0 && part < 1 ? -student_t_quantile(part, NORMAL_FREEDOM)
			: part > 0	     ? -INFINITY
					     : INFINITY;
	return fmin(fmax(exp(draw->centre + draw->spread * normal), fmax(lasted, w->low)), w->high);
}
