#include "stats/stopping.h"

#include <math.h>
#include <stdbool.h>

#include "base/random.h"
#include "stats/variates.h"

void stopping_rule_init(struct stopping_rule *rule, const struct effort_row *effort)
{
	int cap = effort->processes_cap;

	*rule = (struct stopping_rule){
		.start = effort->processes_start,
		.cap = cap < STOPPING_PROCESSES_MAX ? cap : STOPPING_PROCESSES_MAX};
	for (int n = 2; n <= rule->cap; n++)
		rule->narrow[n] =
			log1p(effort->stop_half_width) * sqrt(n) / student_t_quantile(0.975, n - 1);
}

static bool has_stopped(const struct stopping_rule *rule, int n, double squares)
{
	return n >= rule->cap || (n >= rule->start && sqrt(squares / (n - 1)) <= rule->narrow[n]);
}

/* Welford's recurrence goes on from the processes that there are, whose mean is 0 here. */
static int one_draw(const struct stopping_rule *rule, const struct stopping_known *known,
		    double squares, double sigma, double lost_share, struct random *random)
{
	int n = known->n, lost = 0;
	double centre = n > 0 ? sigma / sqrt(n) * random_normal(random) : 0, mean = 0;

	while (!has_stopped(rule, n, squares)) {
		while (lost_share > 0 && random_uniform(random) < lost_share)
			lost++;
		double value = centre + sigma * random_normal(random), off = value - mean;
		n++;
		mean += off / n;
		squares += off * (value - mean);
	}
	return n + lost;
}

void stopping_draw(const struct stopping_rule *rule, const struct stopping_known *known,
		   uint64_t seed, int counts[STOPPING_DRAWS])
{
	int freedom = known->n > 1 ? known->n - 1 : 0;
	double squares = freedom > 0 ? freedom * known->spread * known->spread : 0;
	double believed = known->weight * known->prior * known->prior + squares;
	struct random spreads, processes;

	random_init_named(&processes, seed, "processes");
	for (int i = 0; i < STOPPING_DRAWS; i++) {
		/* One stream a draw, for cells of which more is known take more of it. */
		random_init_named(&spreads,
				  known->shared ? (uint64_t)i
						: UINT64_MAX - seed * STOPPING_DRAWS - (uint64_t)i,
				  "spreads");
		double chi_squared = chi_squared_variate(&spreads, known->weight + freedom);
		double sigma = sqrt(believed / chi_squared);
		double lost = known->lost ? known->lost[i] : 0;
		counts[i] = one_draw(rule, known, squares, sigma, lost, &processes);
	}
}
