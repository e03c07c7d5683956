#include "stats/nodes.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "stats/estimate.h"

#define HALF_PI 1.57079632679489661923
#define MEANS_MAX 2 /* of so many nodes the median is the mean */

/* The logarithm of a level with its variance and the degrees of freedom of that. */
struct level {
	double log, variance, df;
};

static struct level level_of(const struct node_means *node)
{
	struct level level = {NAN, NAN, (double)node->count - 1};

	if (node->count > 0)
		log_moments(node->means, NULL, node->count, &level.log, &level.variance);
	level.variance /= (double)node->count;
	return level;
}

/* Its part of the degrees of freedom of a sum, after Satterthwaite 1946. */
static double fourth(const struct level *level)
{
	return level->variance > 0 ? level->variance * level->variance / level->df : 0;
}

/* The median of the levels but number `without`; `room` holds as many numbers. */
static struct level median_level(const struct level *levels, size_t count, size_t without,
				 double *room)
{
	double noise = 0, fourths = 0;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		double variance = levels[i].variance;
		if (i == without || isnan(variance))
			continue;
		room[n++] = levels[i].log;
		noise += variance;
		fourths += fourth(&levels[i]);
	}
	double many = (double)n;
	if (n <= MEANS_MAX)
		return (struct level){median_of(room, n), noise / (many * many),
				      noise * noise / fourths};
	double mad = mad_of(room, n);
	return (struct level){median_of(room, n), HALF_PI * fmax(mad * mad, noise / many) / many,
			      many - 1};
}

void nodes_contrast(const struct node_means *nodes, size_t count, struct contrast *out)
{
	struct level *levels = memory_alloc((count + 1) * sizeof *levels);
	double *room = memory_alloc((count + 1) * sizeof *room);
	size_t processes = 0;

	for (size_t i = 0; i < count; i++) {
		levels[i] = level_of(&nodes[i]);
		processes += nodes[i].count;
	}
	for (size_t i = 0; i < count; i++) {
		struct level others = median_level(levels, count, i, room), own = levels[i];
		double square = own.variance + others.variance;
		contrast_from(own.log - others.log, sqrt(square),
			      square * square / (fourth(&own) + fourth(&others)), &out[i]);
		out[i].na = processes - nodes[i].count;
		out[i].nb = nodes[i].count;
	}
	free(room);
	free(levels);
}

void nodes_judge(const struct contrast *contrasts, size_t count, double threshold, double *adjusted,
		 enum verdict *verdicts)
{
	struct strictness strictness = verdict_strictness(threshold);
	double *p = memory_alloc((count + 1) * sizeof *p);

	for (size_t i = 0; i < count; i++)
		p[i] = contrast_p(&contrasts[i], threshold);
	adjust_for_many(p, count, adjusted);
	free(p);
	for (size_t i = 0; i < count; i++) {
		verdicts[i] = contrast_verdict(&contrasts[i], threshold);
		if ((verdicts[i] == VERDICT_SLOWER || verdicts[i] == VERDICT_FASTER) &&
		    adjusted[i] > contrast_discoveries(&contrasts[i], &strictness))
			verdicts[i] = VERDICT_INCONCLUSIVE;
	}
}
