/* Widens the slack of the figures for the updates of RMSprop and AdamW. */
#include <float.h>
#include <math.h>

#include "parity/gate_internal.h"

/* The slack of their updates. RMSprop moves a weight by g / sqrt(s), however small g is, and
 * AdamW's first update is the sign of g. If only rounding is left of a gradient, rounding decides a
 * whole update of that weight, and it is chance whether another run has the same one. So the
 * updates of two runs are not compared; the possible effect of the difference of their gradients on
 * each update is computed. */

/* Twice the difference, as in all slack of a gate (gate_slack.c). */
#define SPREAD 2.0

/* The gradients of one weight and the possible error of each. */
struct gradients {
	double g[GATE_UPDATES], off[GATE_UPDATES];
};

/* The possible updates of a weight, in units of the rate. */
struct reach {
	double moved;  /* largest movement, relative to the update of the gradients themselves */
	bool may_turn; /* the sign of a gradient is uncertain */
};

/* Returns RMSprop's update. It grows with g; if g is positive, it falls with s, the moment before.
 */
static double update_of(const struct recipe *recipe, bool epsilon_inside, double g, double s)
{
	s = recipe->rho * s + (1 - recipe->rho) * g * g;
	return g / (epsilon_inside ? sqrt(s + recipe->epsilon) : sqrt(s) + recipe->epsilon);
}

static struct reach reach_of_rmsprop(const struct recipe *recipe, bool epsilon_inside,
				     const struct gradients *of)
{
	struct reach reach = {0};
	double s = 0, least = 0, most = 0, rho = recipe->rho;

	for (int i = 0; i < GATE_UPDATES; i++) {
		double g = of->g[i], low = g - of->off[i], high = g + of->off[i];
		double update = update_of(recipe, epsilon_inside, g, s);
		double up = update_of(recipe, epsilon_inside, high, high > 0 ? least : most);
		double down = update_of(recipe, epsilon_inside, low, low < 0 ? least : most);
		bool turns = low < 0 && high > 0;
		double nearest = turns ? 0 : fmin(fabs(low), fabs(high));

		reach.moved += fmax(up - update, update - down);
		reach.may_turn = reach.may_turn || turns;
		s = rho * s + (1 - rho) * g * g;
		least = rho * least + (1 - rho) * nearest * nearest;
		most = rho * most + (1 - rho) * fmax(low * low, high * high);
	}
	return reach;
}

static struct reach reach_of_adam(const struct recipe *recipe, const struct gradients *of)
{
	double low[GATE_UPDATES], high[GATE_UPDATES], less[GATE_UPDATES], more[GATE_UPDATES];
	struct reach reach = {0};

	for (int i = 0; i < GATE_UPDATES; i++) {
		low[i] = of->g[i] - of->off[i];
		high[i] = of->g[i] + of->off[i];
		less[i] = -high[i];
		more[i] = -low[i];
		double update = gate_adam_most(recipe, i + 1, of->g, of->g);
		double up = gate_adam_most(recipe, i + 1, low, high);
		double down = -gate_adam_most(recipe, i + 1, less, more);

		reach.moved += fmax(up - update, update - down);
		reach.may_turn = reach.may_turn || (low[i] < 0 && high[i] > 0);
	}
	return reach;
}

/* Root mean square of the difference over a tensor: the typical difference of an element. */
static double usual_difference(const float *a, const float *b, int64_t count)
{
	double squares = 0;

	for (int64_t i = 0; i < count; i++)
		squares += pow((double)a[i] - (double)b[i], 2);
	return count > 0 ? sqrt(squares / (double)count) : 0;
}

/* The possible movement of a tensor: its norm, and the part along the tensor of weights whose
 * gradients may change sign. */
struct spread {
	double norm, along, squares;
};

static struct spread spread_of(const struct gate_updates *updates, int value,
			       const struct tensor *change)
{
	const struct recipe *recipe = updates->recipe;
	const float *exact[GATE_UPDATES], *other[GATE_UPDATES];
	const double *moved = change->data;
	int64_t count = shape_elements(&change->shape);
	double usual[GATE_UPDATES], squares = 0;
	struct spread spread = {0};

	for (int step = 0; step < GATE_UPDATES; step++) {
		exact[step] = updates->exact[step * updates->values + value];
		other[step] = updates->other[step * updates->values + value];
		usual[step] = usual_difference(exact[step], other[step], count);
	}
	for (int64_t i = 0; i < count; i++) {
		struct gradients of;

		for (int step = 0; step < GATE_UPDATES; step++) {
			double own = fabs((double)exact[step][i] - (double)other[step][i]);

			of.g[step] = (double)exact[step][i];
			/* Zero without rounding is zero with it: a weight that no sample reaches.
			 */
			if (of.g[step] == 0 && own == 0)
				of.off[step] = 0;
			else
				of.off[step] = SPREAD * fmax(usual[step], own);
		}
		struct reach reach =
			recipe->optimiser == OPTIMISER_ADAMW
				? reach_of_adam(recipe, &of)
				: reach_of_rmsprop(recipe, updates->epsilon_inside, &of);
		double length = recipe->learning_rate * reach.moved;
		squares += length * length;
		spread.squares += moved[i] * moved[i];
		/* A changed sign always makes the change shorter, so these parts add up. */
		if (reach.may_turn)
			spread.along += length * fabs(moved[i]);
	}
	spread.norm = sqrt(squares);
	return spread;
}

void gate_widen_by_updates(struct gate_expected *expected, const struct graph *graph,
			   const struct gate_updates *updates)
{
	double along = 0, squares = 0;
	size_t i = 0;

	for (int value = 0; value < graph->value_count; value++) {
		if (graph->values[value].kind != VALUE_PARAMETER)
			continue;
		const struct tensor *change = &expected->change.tensors[i];
		if (graph->values[value].gradient >= 0) {
			struct spread spread = spread_of(updates, value, change);

			expected->tensor_slack[i] = fmax(expected->tensor_slack[i], spread.norm);
			expected->length_slack[i] += spread.along / fmax(spread.squares, DBL_MIN);
			along += spread.along;
			squares += spread.squares;
		}
		i++;
	}
	expected->whole_length_slack += along / fmax(squares, DBL_MIN);
}
