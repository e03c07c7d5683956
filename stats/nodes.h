/* Which of several equal machines is slow: each node of a cluster against its median node. */
#ifndef PRONY_STATS_NODES_H
#define PRONY_STATS_NODES_H

#include "stats/contrast.h"

/* Positive finite process means of one cell on one node. Borrowed. */
struct node_means {
	const double *means;
	size_t count;
};

/* out[i]: node i relative to the median of the other nodes' geometric means; na: processes of the
 * others, nb: of the node. Its error is Welch's, with the median in place of a second set: the node
 * is not part of that median, so both are independent. The variance of the median of M nodes is
 * pi / 2 / M of the larger of the nodes' variance (by their MAD, so that slow ones do not widen it)
 * and the noise of their processes (Kendall and Stuart, The Advanced Theory of Statistics 1, 14.5,
 * for the normal distribution), with M - 1 degrees of freedom; of one or two nodes it is that of
 * their mean. Without a second process a node counts in no median, and has a ratio only. */
void nodes_contrast(const struct node_means *nodes, size_t count, struct contrast *out);

/* The verdicts of all nodes and cells of one round, as in a comparison: FASTER and SLOWER at a
 * false discovery rate of 5 % (less where intervals are wide or processes few). adjusted[i] is the
 * rate at which i is just claimed; NaN without an interval. */
void nodes_judge(const struct contrast *contrasts, size_t count, double threshold, double *adjusted,
		 enum verdict *verdicts);

#endif
