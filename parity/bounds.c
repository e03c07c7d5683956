/* Computes the bounds of the parity gate. */
#include "parity/bounds.h"

#include <math.h>

#include "parity/reference_internal.h"

#define ROUNDOFF_FP32 0x1p-24 /* half a unit in the last place: 24 significant bits */

/* Unit roundoff of the operands of products. Every precision here keeps sums and weights in fp32.
 * The ceiling is the scorecard's: gradients within 1e-4 (FP32) and 2e-2 (BF16). tf32 and fp16 both
 * round to 11 bits; their ceiling is below that of bf16 by the ratio of the roundoffs. */
static const struct {
	double operand; /* 0: fp32 operands are exact */
	double ceiling; /* of the bounds of gradients and changes */
} precisions[PRECISION_ASKED] = {
	[PRECISION_FP32] = {0, 1e-4},
	[PRECISION_TF32] = {0x1p-11, 1e-2},
	[PRECISION_FP16] = {0x1p-11, 1e-2},
	[PRECISION_BF16] = {0x1p-8, 2e-2},
};

/* The bound on rounding errors. The errors of one sum of K products in sequence are independent
 * enough to add as a random walk. Relative to the sum their deviation is 0.41 u sqrt(K): each of K
 * partial sums, which grow as sqrt(k), is rounded with an error of at most u, of deviation u /
 * sqrt(3). Any blocked or pairwise order is more accurate. Errors of consecutive layers add as
 * squares too. A bound of 8 u sqrt(K) is then 20 deviations. This leaves room for the largest of
 * many entries, for Winograd's transforms and for networks that amplify errors. For the depths of
 * real networks (K < 1e5 on average) it stays well below the error of tf32: 2^-11 / sqrt(3) per
 * operand, independent of K. */
#define SAFETY 8.0

bool parity_rounds_operands(enum precision precision)
{
	return precisions[precision].operand > 0;
}

double parity_operand_roundoff(enum precision precision)
{
	return precisions[precision].operand;
}

void accumulation_add(struct accumulation *to, int64_t macs, const struct shape *result)
{
	int64_t elements = shape_elements(result);

	if (macs < 1 || elements < 1)
		return;
	to->depth += (double)macs / (double)elements;
	to->products += 1;
}

void accumulation_add_other(struct accumulation *to, const struct graph *graph,
			    const struct node *node)
{
	if (node->outputs[0] != VALUE_NONE)
		to->depth += (double)operator_terms(graph, node, 0);
}

double accumulation_rounding(const struct accumulation *sum, enum precision precision)
{
	double operand = precisions[precision].operand;

	/* The 1 is the rounding of one operation, which is always there. */
	return sqrt(ROUNDOFF_FP32 * ROUNDOFF_FP32 * (sum->depth + 1) +
		    operand * operand * 2 * sum->products);
}

/* Adds up the depth of a graph. Each convolution and matrix product is one sum forward. Its
 * gradients are two more sums; their length is the number of multiplications divided by the size of
 * the input and of the weights. A mean is a sum like any other. Every other function rounds once,
 * and its gradient as often. */
static struct accumulation accumulate(const struct graph *graph, bool training)
{
	struct accumulation sum = {0};

	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		const struct operator_row *row = operator_row(node->op);

		if (!row->macs) {
			for (int pass = 0; pass < (training ? 2 : 1); pass++)
				accumulation_add_other(&sum, graph, node);
			continue;
		}
		int64_t macs = row->macs(graph, node);
		accumulation_add(&sum, macs, &graph->values[node->outputs[0]].shape);
		if (!training)
			continue;
		for (int j = 0; j < 2; j++)
			accumulation_add(&sum, macs, &graph->values[node->inputs[j]].shape);
	}
	return sum;
}

struct parity_bounds parity_bounds_for(const struct graph *graph, enum precision precision)
{
	struct accumulation sums[2] = {accumulate(graph, false), accumulate(graph, true)};
	double forward = SAFETY * accumulation_rounding(&sums[0], precision);
	double backward = SAFETY * accumulation_rounding(&sums[1], precision);
	double ceiling = precisions[precision].ceiling;

	return (struct parity_bounds){
		.logits = forward,
		/* The log-sum-exp and the logit of the label each have the largest error of the
		 * logits. */
		.loss = 2 * forward,
		.gradient = fmin(backward, ceiling),
		/* Later updates start from weights that already differ. */
		.change = fmin(2 * backward, ceiling),
		/* Timed programs may be tuned to other algorithms than the gate's. */
		.timed_loss = 10 * forward,
	};
}

struct clipped_bounds parity_clipped_bounds(const struct graph *graph, enum precision precision,
					    double clip_norm)
{
	struct accumulation sum = accumulate(graph, true);
	double backward = SAFETY * accumulation_rounding(&sum, precision);
	/* The root halves the relative error of the sum of squares. */
	double norm = SAFETY / 2 * ROUNDOFF_FP32 * sqrt((double)graph_parameter_count(graph));

	return (struct clipped_bounds){
		.change =
			fmin(3 * backward + norm, precisions[precision].ceiling) + 1e-6 / clip_norm,
		.later = norm + 1e-6 / clip_norm,
	};
}

bool parity_ceiling_is_near(const struct graph *graph, enum precision precision)
{
	const double usual = 0.41, near = 0.5; /* accumulation_rounding; share of the ceiling */
	struct accumulation both = accumulate(graph, true);

	return parity_rounds_operands(precision) &&
	       usual * accumulation_rounding(&both, precision) >
		       near * precisions[precision].ceiling;
}

/* Returns the number of elements of the widest mean of a forward pass; 1 if there is none. */
static double widest_mean(const struct graph *graph)
{
	int64_t widest = 1;

	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (!operator_row(node->op)->is_reduction)
			continue;
		int64_t terms = operator_terms(graph, node, 0);
		if (terms > widest)
			widest = terms;
	}
	return (double)widest;
}

enum precision parity_precision_shown(const struct graph *graph, enum precision asked,
				      double logits_error)
{
	static const enum precision candidates[] = {PRECISION_FP32, PRECISION_TF32, PRECISION_BF16};
	/* The largest error of many entries is about 3.5 deviations of 0.41
	 * (accumulation_rounding). */
	const double largest = 3.5 * 0.41;
	/* A mean averages the errors before it, as far as they are independent. */
	const double averaged = sqrt(widest_mean(graph));
	struct accumulation forward = accumulate(graph, false);
	enum precision shown = PRECISION_FP32;
	double nearest = INFINITY;

	for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
		double usual = largest * accumulation_rounding(&forward, candidates[i]);
		/* Exact logits are nearest to the finest precision. */
		double ratio = fmax(logits_error, usual * 1e-6) / usual;
		double distance = fmax(fmax(log(ratio), -log(ratio * averaged)), 0);
		bool as_asked = precisions[candidates[i]].operand == precisions[asked].operand;
		if (distance < nearest || (distance == 0 && as_asked)) {
			nearest = distance;
			shown = as_asked ? asked : candidates[i];
		}
	}
	return shown;
}
