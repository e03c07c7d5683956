/* Checks states: the running statistics of normalisations, and caches. */
#include <assert.h>
#include <float.h>
#include <math.h>

#include "parity/gate_internal.h"

/* The contribution of the batches to a running statistic: r = s - momentum^updates * s0. The
 * variance of n - 1 differs from that of n by a factor of r. */
struct statistic {
	const struct tensor *expected, *before, *observed;
	double kept;   /* momentum ^ updates */
	double factor; /* factor of r: n / (n - 1), or 1 */
	double slack;
};

static double expected_share(const struct statistic *s, int64_t i)
{
	return gate_element(s->expected, i) - s->kept * gate_element(s->before, i);
}

/* || r - r_ref || */
static double distance(const struct statistic *s)
{
	double sum = 0;

	for (int64_t i = 0; i < shape_elements(&s->expected->shape); i++) {
		double share = gate_element(s->observed, i) - s->kept * gate_element(s->before, i);

		sum += pow(share - s->factor * expected_share(s, i), 2);
	}
	return sqrt(sum);
}

static double length(const struct statistic *s)
{
	double sum = 0;

	for (int64_t i = 0; i < shape_elements(&s->expected->shape); i++)
		sum += pow(expected_share(s, i), 2);
	return sqrt(sum);
}

static double total(const struct statistic *s)
{
	double sum = 0;

	for (int64_t i = 0; i < shape_elements(&s->expected->shape); i++)
		sum += fabs(expected_share(s, i));
	return sum;
}

static size_t index_of(const struct tensor_set *set, const char *name)
{
	const struct tensor *tensor = tensor_find(set, name);

	assert(tensor);
	return (size_t)(tensor - set->tensors);
}

/* Returns statistic `which` of a normalisation: 0 the mean, 1 the variance. */
static struct statistic find(const struct graph *graph, const struct node *node, int which,
			     const struct gate_expected *expected, const struct tensor_set *before,
			     const struct tensor_set *observed)
{
	const char *name = graph->values[node->inputs[3 + which]].name;
	size_t index = index_of(&expected->state, name);

	return (struct statistic){
		.expected = &expected->state.tensors[index],
		.before = tensor_find(before, name),
		.observed = tensor_find(observed, name),
		.kept = pow(node->attributes.momentum, GATE_UPDATES),
		.factor = 1,
		.slack = expected->state_slack[index],
	};
}

/* Checks one statistic. The error of a mean is relative to the size of its channel's values: sums
 * that cancel leave rounding. */
static void check_one(struct gate_verdict *verdict, const struct statistic *s, double scale,
		      double bound)
{
	struct gate_check check = {.what = "running statistic",
				   .tensor = s->expected->name,
				   .step = -1,
				   .value = NAN,
				   .reason = gate_incomparable(s->observed, s->expected)};

	scale = fmax(scale, DBL_MIN);
	check.bound = bound + (s->slack + GATE_UPDATES * STORED_ROUNDOFF *
						  (gate_norm(s->before) + gate_norm(s->expected))) /
				      scale;
	if (!check.reason)
		check.value = distance(s) / scale;
	gate_add_check(verdict, check);
}

/* Returns true if the node is a normalisation whose statistics training updates. */
static bool keeps_statistics(const struct graph *graph, const struct node *node)
{
	int first = operator_row(node->op)->statistics;
	double momentum;

	if (first == 0)
		return false;
	for (int i = first; i < node->input_count; i++)
		if (graph_state_statistic(graph, node->inputs[i], &momentum) == VALUE_NONE)
			return false;
	return true;
}

static double samples_of(const struct graph *graph, const struct node *node)
{
	const struct shape *x = &graph->values[node->inputs[0]].shape;

	int64_t ranks = node->attributes.ranks;

	return (double)(shape_elements(x) / x->dims[1] / (ranks > 1 ? ranks : 1));
}

/* Returns true if the variance of n - 1 fits better than that of n, over the whole network. */
static bool is_unbiased(const struct graph *graph, const struct gate_expected *expected,
			const struct tensor_set *before, const struct tensor_set *observed)
{
	double plain = 0, unbiased = 0;

	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		double n = samples_of(graph, node);

		if (!keeps_statistics(graph, node) || n < 2)
			continue;
		struct statistic s = find(graph, node, 1, expected, before, observed);
		if (gate_incomparable(s.observed, s.expected))
			continue;
		double scale = fmax(length(&s), DBL_MIN);
		plain += pow(distance(&s) / scale, 2);
		s.factor = n / (n - 1);
		unbiased += pow(distance(&s) / scale, 2);
	}
	return unbiased < plain;
}

void gate_check_state(struct gate_verdict *verdict, const struct graph *graph,
		      const struct gate_expected *expected, const struct tensor_set *before,
		      const struct tensor_set *observed, double bound)
{
	bool unbiased;

	if (expected->state.count == 0)
		return;
	verdict->running_variance = "not read";
	if (!observed)
		return;
	unbiased = is_unbiased(graph, expected, before, observed);
	verdict->running_variance = unbiased ? "n-1" : "n";
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (!keeps_statistics(graph, node))
			continue;
		struct statistic mean = find(graph, node, 0, expected, before, observed);
		struct statistic variance = find(graph, node, 1, expected, before, observed);
		double n = samples_of(graph, node);
		if (unbiased && n > 1)
			variance.factor = n / (n - 1);
		check_one(verdict, &mean, fmax(length(&mean), sqrt(total(&variance))), bound);
		check_one(verdict, &variance, length(&variance), bound);
	}
}

void gate_check_caches(struct gate_verdict *verdict, const struct graph *graph,
		       const struct gate_expected *expected, const struct tensor_set *observed,
		       double bound)
{
	for (size_t i = 0; i < expected->state.count; i++) {
		const struct tensor *want = &expected->state.tensors[i];
		struct gate_check check = {.what = "cache",
					   .tensor = want->name,
					   .step = -1,
					   .value = NAN,
					   .bound = bound};
		struct statistic s = {.expected = want, .before = want, .factor = 1};

		if (graph_state_present(graph, graph_find_value(graph, want->name)) == VALUE_NONE)
			continue;
		s.observed = observed ? tensor_find(observed, want->name) : NULL;
		check.reason = gate_incomparable(s.observed, want);
		if (!check.reason)
			check.value = distance(&s) / fmax(gate_norm(want), DBL_MIN);
		gate_add_check(verdict, check);
	}
}
