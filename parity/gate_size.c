/* Estimates the cost and memory of the parity gate and chooses its batch. */
#include "parity/gate_internal.h"
#include "parity/reference_internal.h"

/* Multiplications of one gate, all its runs together. More than 8 samples are used if that costs
 * seconds; fewer than 8 only if 8 would take many minutes. One core does 10 to 25 G a second with
 * AVX2 or AVX-512, 5 to 8 G without. */
#define GATE_MACS_CHEAP (INT64_C(1) << 37)
#define GATE_MACS_MAX (INT64_C(1) << 43)
/* A large network always has comparisons that are too close to call and is run twice. */
#define GATE_RUNS 2
#define AMPLIFIED_RUNS 4 /* if the effect of updates on rounding is measured */
/* Additional forward passes: two that measure rounding; for the rate one update (equal to three)
 * and five passes. */
#define MEASURE_PASSES 2
#define SETTLE_PASSES (3 + 5)

static bool is_rmsprop(const struct recipe *gate)
{
	return gate->stage == STAGE_TRAIN && gate->optimiser == OPTIMISER_RMSPROP;
}

/* The first update of AdamW keeps only the sign of a gradient, so the rounding of each gradient has
 * to be known. */
bool gate_measures_rounding(const struct recipe *gate, const struct graph *graph)
{
	if (gate->stage == STAGE_TRAIN && gate->optimiser == OPTIMISER_ADAMW)
		return true;
	if (gate->stage == STAGE_FORWARD)
		return false;
	if (parity_rounds_operands(gate->precision))
		return parity_ceiling_is_near(graph, gate->precision);
	return graph_has_statistics(graph);
}

bool gate_amplifies(const struct recipe *gate, const struct graph *graph)
{
	bool compares = false;

	for (int i = 0; i < graph->forward_count; i++)
		compares |= operator_row(graph->nodes[i].op)->compares > 0;
	return compares && reference_divides(gate) && gate_measures_rounding(gate, graph);
}

enum precision gate_reference_precision(const struct recipe *gate)
{
	if (gate->stage == STAGE_FORWARD)
		return PRECISION_FP32;
	return gate->precision == PRECISION_FP16 ? PRECISION_TF32 : gate->precision;
}

static int64_t times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t gate_cost(const struct graph *graph, const struct recipe *gate, bool chosen)
{
	int64_t pass = reference_cost(graph, STAGE_FORWARD), runs = 1, passes = 0;

	if (gate->stage != STAGE_FORWARD)
		runs = GATE_RUNS;
	if (gate_amplifies(gate, graph))
		runs = AMPLIFIED_RUNS;
	/* For each place of epsilon. */
	if (is_rmsprop(gate))
		runs *= 2;
	if (gate_measures_rounding(gate, graph))
		passes += MEASURE_PASSES;
	if (gate_rate_is_open(gate, graph, chosen))
		passes += SETTLE_PASSES;
	/* gate_settle_clip. */
	if (gate->clip_norm > 0)
		runs++;
	return plus(times(GATE_UPDATES * runs, reference_cost(graph, gate->stage)),
		    times(passes, pass));
}

/* float64 takes twice the estimate for fp32. */
static int64_t widened(int64_t bytes)
{
	return times(bytes, (int64_t)(sizeof(double) / sizeof(float)));
}

/* Bytes of the arrays that the interpreter keeps after their last use: some of the largest, kept
 * for reuse, and all small ones, gradients and activations alike. */
static int64_t kept_bytes(const struct graph *graph)
{
	int64_t largest[REFERENCE_SPARES] = {0}, sum = 0;

	for (int i = 0; i < graph->value_count; i++) {
		int64_t left =
			times(shape_elements(&graph->values[i].shape), (int64_t)sizeof(double));

		if (graph->values[i].kind != VALUE_ACTIVATION)
			continue;
		if (left < REFERENCE_KEPT_BYTES) {
			sum = plus(sum, left);
			continue;
		}
		for (int k = 0; k < REFERENCE_SPARES; k++) {
			int64_t kept = largest[k];

			if (left <= kept)
				continue;
			largest[k] = left;
			left = kept;
		}
	}
	for (int k = 0; k < REFERENCE_SPARES; k++)
		sum = plus(sum, largest[k]);
	return sum;
}

int64_t gate_memory_bytes(const struct graph *graph, const struct recipe *gate, bool chosen)
{
	bool training = gate->stage != STAGE_FORWARD;
	int64_t parameters = times(graph_parameter_count(graph), (int64_t)sizeof(double));
	int64_t kept = kept_bytes(graph);
	int64_t pass = plus(widened(graph_memory_estimate(graph, false)), kept);
	int64_t step = plus(widened(graph_memory_estimate(graph, training)), kept);
	int64_t answers = 0, runs, measuring = 0, settling = 0;

	/* An answer holds the parameters once; one is stored, another is computed for its slack. */
	if (training)
		answers = times(parameters, GATE_RUNS);
	/* Two places of epsilon, and the gradients of all updates of two runs, in float32. */
	if (reference_divides(gate))
		answers = times(parameters, GATE_RUNS + 1 + GATE_UPDATES);
	/* The interpreter always has a moment of each parameter, and this second one of AdamW. */
	if (gate->optimiser == OPTIMISER_ADAMW)
		answers = plus(answers, parameters);
	runs = plus(plus(step, answers), training ? 0 : parameters);
	if (gate_measures_rounding(gate, graph))
		measuring = times(plus(pass, parameters), 2);
	if (gate_rate_is_open(gate, graph, chosen))
		settling = plus(step, parameters); /* the change of the first update */
	runs = runs > measuring ? runs : measuring;
	return runs > settling ? runs : settling;
}

bool gate_fits(const struct graph *graph, const struct recipe *gate, bool chosen,
	       int64_t reference_bytes)
{
	int64_t limit = graph_batch(graph) > GATE_BATCH_MIN ? GATE_MACS_CHEAP : GATE_MACS_MAX;

	return gate_cost(graph, gate, chosen) <= limit &&
	       gate_memory_bytes(graph, gate, chosen) <= reference_bytes;
}

bool gate_is_cheap(const struct graph *graph, const struct recipe *gate, bool chosen)
{
	return gate_cost(graph, gate, chosen) <= GATE_MACS_CHEAP;
}

int64_t gate_smaller_batch(int64_t batch)
{
	if (batch > GATE_BATCH_MIN)
		return GATE_BATCH_MIN;
	return batch / 2 >= GATE_BATCH_FORCED ? batch / 2 : 0;
}
