#include "stats/warm_ups.h"

#include <math.h>

#include "base/random.h"
#include "stats/variates.h"

/* What is thought before any was seen weighs as much as so many of those. */
#define PRIOR_WEIGHT 0.5
/* Those within so much of the cap have come to it. */
#define CAPPED 0.97

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

void warm_ups_draw(const struct warm_ups *w, struct warm_up_draw *draws, int count)
{
	double usual = log(sqrt(w->low * w->high)), wide = log(w->high / w->low);
	double known = w->steady + PRIOR_WEIGHT;
	double centre = (w->logs + PRIOR_WEIGHT * usual) / known;
	double own = w->steady > 0 ? w->squares - w->logs * w->logs / w->steady : 0;
	/* Before any was seen each is as likely as another, on a logarithmic scale. */
	double variance = (fmax(own, 0) + PRIOR_WEIGHT * wide * wide / 12) / known;
	struct random random;

	random_init_named(&random, 0, "warm-ups");
	for (int d = 0; d < count; d++) {
		double share = share_variate(&random, w->capped, w->steady);
		double place = centre + sqrt(variance / known) * random_normal(&random);
		double steady = fmin(fmax(exp(place + variance / 2), w->low), w->high);
		double off = w->high - steady;
		double spread = share * (1 - share) * off * off +
				(1 - share) * steady * steady * expm1(variance);
		draws[d] = (struct warm_up_draw){
			.capped = share,
			.mean = share * w->high + (1 - share) * steady,
			.deviation = sqrt(spread) * random_normal(&random),
			.place = random_uniform(&random),
		};
	}
}

double warm_ups_together(const struct warm_ups *w, const struct warm_up_draw *draw, double n)
{
	double all = n * draw->mean + sqrt(n) * draw->deviation;

	return fmin(fmax(all, n * w->low), n * w->high);
}

double warm_ups_end(const struct warm_ups *w, const struct warm_up_draw *draw, double lasted)
{
	double since = fmax(lasted, w->low);

	if (since >= w->high)
		return since;
	/* The longer it has lasted, the likelier it is one of those that come to the cap. */
	double steady = (1 - draw->capped) * log(w->high / since) / log(w->high / w->low);
	double capped = draw->capped / (draw->capped + steady);
	if (draw->place < capped)
		return w->high;
	return since * pow(w->high / since, (draw->place - capped) / (1 - capped));
}
