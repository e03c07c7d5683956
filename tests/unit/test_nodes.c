/* Tests each node of a cluster against its median node, on simulated clusters with known truth.
 * Seeds are fixed; the bounds of rates are about four of their standard errors. */
#include "stats/nodes.h"
#include "unit_test.h"

enum { NODES = 50, PROCESSES = 11 }; /* quick effort has 11 */
#define PROCESS_SD 0.007
#define NODE_SD 0.005 /* good nodes of one kind differ, too */
#define THRESHOLD 0.01

struct cluster {
	double means[NODES][PROCESSES];
	struct node_means nodes[NODES];
	struct contrast contrasts[NODES];
	double adjusted[NODES];
	enum verdict verdicts[NODES];
};

/* One round of processes on nodes of these levels. */
static void measure(struct random *random, const double *levels, size_t nodes, size_t processes,
		    double process_sd, struct cluster *cluster)
{
	for (size_t i = 0; i < nodes; i++) {
		cluster->nodes[i] = (struct node_means){cluster->means[i], processes};
		for (size_t k = 0; k < processes; k++)
			cluster->means[i][k] =
				1e6 * exp(levels[i] + process_sd * random_normal(random));
	}
	nodes_contrast(cluster->nodes, nodes, cluster->contrasts);
}

static size_t count_slower(const struct cluster *cluster)
{
	size_t count = 0;

	for (size_t i = 0; i < NODES; i++)
		count += cluster->verdicts[i] == VERDICT_SLOWER ? 1 : 0;
	return count;
}

static void round_of(struct random *random, const double *levels, struct cluster *cluster)
{
	measure(random, levels, NODES, PROCESSES, PROCESS_SD, cluster);
	nodes_judge(cluster->contrasts, NODES, THRESHOLD, cluster->adjusted, cluster->verdicts);
}

static void draw_levels(struct random *random, double sd, size_t count, double *levels)
{
	for (size_t i = 0; i < count; i++)
		levels[i] = sd * random_normal(random);
}

TEST(one_of_fifty_that_is_4_percent_slow_is_found)
{
	enum { CLUSTERS = 200, SLOW = 17 };
	struct cluster first, second;
	struct random random;
	size_t found = 0, others = 0;

	random_init(&random, 1);
	for (int i = 0; i < CLUSTERS; i++) {
		double levels[NODES];
		draw_levels(&random, NODE_SD, NODES, levels);
		levels[SLOW] = log(1.04);
		round_of(&random, levels, &first);
		round_of(&random, levels, &second);
		for (size_t k = 0; k < NODES; k++) {
			bool lasts = first.verdicts[k] == VERDICT_SLOWER &&
				     second.verdicts[k] == VERDICT_SLOWER;
			found += lasts && k == SLOW;
			others += lasts && k != SLOW;
		}
	}
	print_message("found in %zu of %d clusters, %zu others\n", found, CLUSTERS, others);
	assert_true((double)found >= 0.97 * CLUSTERS);
	assert_true((double)others <= 0.03 * CLUSTERS);
}

TEST(a_thousand_clusters_without_a_slow_node)
{
	enum { CLUSTERS = 1000 };
	struct cluster cluster;
	struct random random;
	size_t alarms = 0, lasting = 0;

	random_init(&random, 2);
	for (int i = 0; i < CLUSTERS; i++) {
		double levels[NODES];
		draw_levels(&random, NODE_SD, NODES, levels);
		round_of(&random, levels, &cluster);
		if (!count_slower(&cluster))
			continue;
		alarms++;
		round_of(&random, levels, &cluster);
		lasting += count_slower(&cluster) > 0;
	}
	print_message("alarm in %zu clusters in one round, %zu in two\n", alarms, lasting);
	assert_true((double)alarms < 0.05 * CLUSTERS);
	assert_true(lasting <= alarms);
}

/* The interval covers the true ratio to the others' true median in 95 of 100 cases or more, also
 * where the nodes differ by far more than their processes do. */
TEST(intervals_know_how_uncertain_the_median_is)
{
	static const struct {
		size_t nodes, processes;
		double node_sd, low, high;
	} cases[] = {{2, 5, 0, 0.94, 0.965}, {3, 5, 0, 0.94, 0.975},   {4, 5, 0, 0.94, 0.99},
		     {8, 5, 0, 0.94, 0.98},  {50, 11, 0, 0.94, 0.965}, {4, 5, 0.03, 0.94, 1},
		     {9, 5, 0.03, 0.94, 1},  {50, 11, 0.03, 0.94, 1}};
	enum { TRIALS = 2000 };
	struct random random;

	random_init(&random, 3);
	for (size_t c = 0; c < COUNT(cases); c++) {
		size_t covered = 0;
		for (int trial = 0; trial < TRIALS; trial++) {
			struct cluster cluster;
			struct contrast truth[NODES];
			double levels[NODES];
			draw_levels(&random, cases[c].node_sd, cases[c].nodes, levels);
			measure(&random, levels, cases[c].nodes, 2, 0, &cluster);
			memcpy(truth, cluster.contrasts, sizeof truth);
			measure(&random, levels, cases[c].nodes, cases[c].processes, PROCESS_SD,
				&cluster);
			covered += cluster.contrasts[0].low <= truth[0].ratio &&
				   truth[0].ratio <= cluster.contrasts[0].high;
		}
		double share = (double)covered / TRIALS;
		print_message("%zu nodes that differ by %g: %.1f %%\n", cases[c].nodes,
			      cases[c].node_sd, 100 * share);
		assert_true(share >= cases[c].low && share <= cases[c].high);
	}
}

TEST(two_nodes_are_a_comparison)
{
	static const double a[] = {1012, 987, 1033, 1001, 995}, b[] = {1049, 1020, 1075, 1038};
	const struct node_means nodes[] = {{a, 5}, {b, 4}, {a, 1}};
	struct contrast contrasts[3], welch;

	contrast_welch(a, 5, b, 4, &welch);
	nodes_contrast(nodes, 3, contrasts);
	near(contrasts[1].ratio, welch.ratio, 1e-14);
	near(contrasts[1].low, welch.low, 1e-12);
	near(contrasts[1].high, welch.high, 1e-12);
	near(contrasts[0].ratio, 1 / welch.ratio, 1e-14);
	/* One process has no spread: it counts in no median, and has no verdict. */
	assert_true(contrasts[2].ratio > 0.9 && isnan(contrasts[2].low));
	/* Alone it has nobody to be compared with. */
	nodes_contrast(nodes, 1, contrasts);
	assert_true(isnan(contrasts[0].ratio));
	/* Without any spread a difference is certain. */
	const struct node_means still[] = {{(const double[]){5, 5}, 2},
					   {(const double[]){6, 6}, 2}};
	nodes_contrast(still, 2, contrasts);
	near(contrasts[1].low, 1.2, 1e-12);
}
