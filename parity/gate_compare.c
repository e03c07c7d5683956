/* Compares a worker's results with the reference's. */
#include "parity/gate_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "parity/reference.h"

/* A tensor whose change is below this share of the network's mean is judged as if its change were
 * this share. The remainder of sums that cancel (a bias before a normalisation) is rounding, not
 * signal. */
#define QUIET_SHARE 0.1

/* A change below this share of the network's mean is zero except for rounding, such as that of a
 * bias before a normalisation, which cancels it. A framework's value there is the rounding of sums
 * over a whole layer, so it is judged as if its change equalled the mean. */
#define VANISHED_SHARE 1e-9
/* AdamW divides even the float64 rounding of such a gradient by epsilon, so the reference's own
 * change is 1e-9 of the mean. Any gradient above 1e-13 gives more than this share. */
#define VANISHED_SHARE_ADAMW 1e-6

/* RMSprop divides each gradient by its own size, so the rounding of gradients near zero counts as
 * much as the largest gradient. Figures after an update are less certain by this factor. A learning
 * rate that is off by 1 % still exceeds the bound ten times. */
#define RMSPROP_FACTOR 10.0

/* Both counts are exact or unknown. */
static void check_count(struct gate_verdict *verdict, const char *what, int64_t observed,
			int64_t expected)
{
	struct gate_check check = {.what = what, .step = -1};

	if (observed < 0)
		return;
	check.value = fabs((double)observed - (double)expected);
	gate_add_check(verdict, check);
}

static double root_mean_square(const struct tensor *tensor)
{
	int64_t count = shape_elements(&tensor->shape);

	return count > 0 ? gate_norm(tensor) / sqrt((double)count) : 0;
}

static void check_logits(struct gate_verdict *verdict, int step, const struct tensor *observed,
			 const struct gate_expected *expected, double bound)
{
	const struct tensor *wanted = &expected->logits[step];
	struct gate_check check = {.what = "logits", .step = step, .value = NAN, .bound = bound};
	double scale = root_mean_square(wanted), largest = 0;

	check.reason = gate_incomparable(observed, wanted);
	/* Logits that are all 0 have no scale of their own. */
	if (scale <= 0)
		scale = 1;
	for (int64_t i = 0; !check.reason && i < shape_elements(&wanted->shape); i++) {
		double difference = fabs(gate_element(observed, i) - gate_element(wanted, i));

		/* fmax would drop a NaN. */
		if (!(difference <= largest))
			largest = difference;
		if (isnan(largest))
			break;
	}
	if (!check.reason)
		check.value = largest / scale;
	check.bound += expected->logits_slack[step] / scale;
	gate_add_check(verdict, check);
}

/* The loss of the framework. A forward stage reports no loss; it is then computed from the
 * framework's own logits. */
static double observed_loss(const struct gate_observed *observed, int step, enum stage stage,
			    const struct gate_expected *expected, const struct graph *graph,
			    const struct tensor_set *labels)
{
	const struct tensor *logits = observed->logits[step];
	size_t per_batch = (size_t)graph_labels(graph, NULL, 0);
	double *wide, loss;

	if (stage != STAGE_FORWARD || !isnan(observed->loss[step]))
		return observed->loss[step];
	if (gate_incomparable(logits, &expected->logits[step]) ||
	    (size_t)step * per_batch >= labels->count)
		return NAN;
	wide = memory_alloc((size_t)shape_elements(&logits->shape) * sizeof(*wide));
	for (int64_t i = 0; i < shape_elements(&logits->shape); i++)
		wide[i] = gate_element(logits, i);
	loss = reference_objective(graph, wide, labels->tensors[(size_t)step * per_batch].data);
	free(wide);
	return loss;
}

static void check_loss(struct gate_verdict *verdict, int step, double loss,
		       const struct gate_expected *expected, double bound)
{
	double wanted = expected->loss[step], scale = fmax(1, fabs(wanted));
	struct gate_check check = {.what = "loss", .step = step};

	check.value = fabs(loss - wanted) / scale;
	check.bound = bound + expected->loss_slack[step] / scale;
	gate_add_check(verdict, check);
}

/* Root mean square over all elements of all tensors. */
static double set_rms(const struct tensor_set *set)
{
	double squares = 0, count = 0;

	for (size_t i = 0; i < set->count; i++) {
		squares += pow(gate_norm(&set->tensors[i]), 2);
		count += (double)shape_elements(&set->tensors[i].shape);
	}
	return count > 0 ? sqrt(squares / count) : 0;
}

/* The tensors of one kind that are compared. */
struct tensors {
	const struct gate_expected *expected;
	const struct tensor_set *wanted, *got, *before; /* before: NULL for gradients */
	double quiet, bound; /* quiet: QUIET_SHARE of the network's mean */
	double vanished;     /* VANISHED_SHARE */
	bool sideways;	     /* operands are rounded and the effect is measured (whole_bound) */
};

/* Returns the scale of a tensor's difference; *vanished: it is zero except for rounding. */
static double tensor_scale(const struct tensors *t, const struct tensor *wanted, bool *vanished)
{
	double norm = gate_norm(wanted), root = sqrt((double)shape_elements(&wanted->shape));
	double mean = t->quiet / QUIET_SHARE * root;

	*vanished = norm < t->vanished * mean;
	return *vanished ? mean : fmax(norm, t->quiet * root);
}

/* Compares ||d - d_ref|| with its allowance: the bound relative to ||d_ref|| (or the quiet share),
 * the rounding of the weights themselves, and the slack of comparisons too close to call. */
static struct gate_check compare_tensor(const struct tensors *t, size_t i)
{
	const struct tensor *wanted = &t->wanted->tensors[i];
	const struct tensor *observed = t->got ? tensor_find(t->got, wanted->name) : NULL;
	const struct tensor *before = t->before ? tensor_find(t->before, wanted->name) : NULL;
	int64_t count = shape_elements(&wanted->shape);
	bool vanished;
	double scale = tensor_scale(t, wanted, &vanished), sum = 0, along = 0, squares = 0;
	double slack = t->expected->tensor_slack[i];
	struct gate_check check = {.what = before ? "change" : "gradient",
				   .tensor = wanted->name,
				   .step = -1,
				   .value = NAN,
				   .vanished = vanished,
				   .reason = gate_incomparable(observed, wanted)};

	if (scale <= 0)
		scale = 1;
	if (before)
		slack += GATE_UPDATES * STORED_ROUNDOFF * gate_norm(before);
	check.bound = t->bound + slack / scale;
	if (check.reason)
		return check;
	for (int64_t k = 0; k < count; k++) {
		double got = gate_element(observed, k) - (before ? gate_element(before, k) : 0);
		double expected = gate_element(wanted, k), difference = got - expected;

		sum += difference * difference;
		along += got * expected;
		squares += expected * expected;
	}
	check.value = sqrt(sum) / scale;
	check.ratio = squares > 0 ? along / squares : 0;
	return check;
}

/* The component of a framework's tensor along the reference's, and its uncertainty. */
struct along {
	double product, squares; /* <d - d_ref, d_ref>, ||d_ref||^2 */
	double fourths;		 /* sum of the fourth powers of d_ref */
	double rounding;	 /* norm of the largest possible rounding by updates */
};

static struct along compare_length(const struct tensor *observed, const struct tensor *before,
				   const struct tensor *wanted)
{
	struct along along = {0};

	for (int64_t i = 0; i < shape_elements(&wanted->shape); i++) {
		double got = gate_element(observed, i) - (before ? gate_element(before, i) : 0);
		double expected = gate_element(wanted, i);

		along.product += (got - expected) * expected;
		along.squares += expected * expected;
		along.fourths += pow(expected, 4);
	}
	if (before)
		along.rounding = GATE_UPDATES * STORED_ROUNDOFF * gate_norm(before);
	return along;
}

/* The bound of the length of all as one vector. The errors that rounding gives to n elements are
 * hardly in the vector's own direction: they change the length by bound / sqrt(n) times a normal
 * number, and by bound^2 in the second order. n counts elements of equal size (the square of the
 * sum of squares / sum of fourth powers). */
static double whole_bound(const struct tensors *t, const struct along *whole)
{
	const double deviations = 3;

	if (!t->sideways || whole->squares <= 0)
		return t->bound;
	return fmin(t->bound,
		    t->bound * (t->bound + deviations * sqrt(whole->fourths) / whole->squares));
}

static struct gate_check length_check(const struct tensors *t, const char *tensor, double bound,
				      struct along along, double slack, double length)
{
	struct gate_check check = {.what = t->before ? "size of the change"
						     : "size of the gradient",
				   .tensor = tensor,
				   .step = -1};
	double own = sqrt(along.squares);

	check.value = fabs(along.product) / own / length;
	check.bound = bound + slack * own / length + along.rounding / length;
	return check;
}

/* Checks the lengths along the reference. If comparisons are too close to call, distances have
 * slack, and a wrong learning rate could hide in it. Turned comparisons move a tensor sideways; a
 * wrong rate moves it along itself. */
static void check_lengths(struct gate_verdict *verdict, const struct tensors *t)
{
	struct along whole = {0};
	bool complete = true;

	for (size_t i = 0; i < t->wanted->count; i++) {
		const struct tensor *wanted = &t->wanted->tensors[i];
		const struct tensor *got = t->got ? tensor_find(t->got, wanted->name) : NULL;
		double count = (double)shape_elements(&wanted->shape);

		if (gate_incomparable(got, wanted)) {
			complete = false;
			continue;
		}
		struct along along = compare_length(
			got, t->before ? tensor_find(t->before, wanted->name) : NULL, wanted);
		whole.product += along.product;
		whole.squares += along.squares;
		whole.fourths += along.fourths;
		whole.rounding = hypot(whole.rounding, along.rounding);
		if (t->expected->tensor_slack[i] > 0 && along.squares > 0)
			gate_add_check(verdict, length_check(t, wanted->name, t->bound, along,
							     t->expected->length_slack[i],
							     fmax(sqrt(along.squares),
								  t->quiet * sqrt(count))));
	}
	if (complete && t->expected->whole_length_slack > 0)
		gate_add_check(verdict,
			       length_check(t, NULL, whole_bound(t, &whole), whole,
					    t->expected->whole_length_slack, sqrt(whole.squares)));
}

static void check_tensors(struct gate_verdict *verdict, const struct graph *graph,
			  const struct gate_reference *ref, const struct gate_expected *expected,
			  const struct parity_bounds *bounds, const struct recipe *gate,
			  const struct gate_observed *observed)
{
	bool training = gate->stage == STAGE_TRAIN;
	bool divided = training && gate->optimiser == OPTIMISER_ADAMW;
	struct tensors t = {.expected = expected,
			    .wanted = training ? &expected->change : &expected->gradients,
			    .got = training ? observed->weights : observed->gradients,
			    .before = training ? &ref->weights : NULL,
			    .bound = training ? bounds->change : bounds->gradient,
			    .sideways = parity_rounds_operands(gate->precision) &&
					gate_measures_rounding(gate, graph)};

	t.quiet = QUIET_SHARE * set_rms(t.wanted);
	t.vanished = divided ? VANISHED_SHARE_ADAMW : VANISHED_SHARE;
	for (size_t i = 0; i < t.wanted->count; i++)
		gate_add_check(verdict, compare_tensor(&t, i));
	check_lengths(verdict, &t);
}

static void judge(struct gate_verdict *verdict, const struct gate_reference *ref,
		  const struct gate_expected *expected, const struct graph *graph,
		  const struct recipe *gate, const struct tensor_set *labels,
		  const struct gate_observed *observed)
{
	struct parity_bounds bounds = parity_bounds_for(graph, gate->precision);
	struct clipped_bounds clipped = {0};
	bool magnified = gate->stage == STAGE_TRAIN && gate->optimiser == OPTIMISER_RMSPROP;

	check_count(verdict, "parameters", observed->parameters, ref->parameters);
	check_count(verdict, "macs", observed->macs, ref->macs);
	if (gate->stage == STAGE_TRAIN && gate->clip_norm > 0) {
		clipped = parity_clipped_bounds(graph, gate->precision, gate->clip_norm);
		bounds.change = clipped.change;
	}
	if (magnified)
		bounds.change *= RMSPROP_FACTOR;
	for (int i = 0; i < GATE_UPDATES; i++) {
		double factor = magnified && i > 0 ? RMSPROP_FACTOR : 1;
		double later = i > 0 ? clipped.later : 0;

		check_logits(verdict, i, observed->logits[i], expected,
			     factor * (bounds.logits + later));
		/* A network without a loss, or batches without labels, have no loss to compare. */
		if (!isnan(expected->loss[i]))
			check_loss(verdict, i,
				   observed_loss(observed, i, gate->stage, expected, graph, labels),
				   expected, factor * (bounds.loss + 2 * later));
	}
	if (gate->stage != STAGE_FORWARD)
		check_tensors(verdict, graph, ref, expected, &bounds, gate, observed);
	gate_check_caches(verdict, graph, expected, observed->state, bounds.logits);
	if (gate->stage == STAGE_TRAIN)
		gate_check_state(verdict, graph, expected, &ref->weights, observed->state,
				 (magnified ? RMSPROP_FACTOR : 1) * bounds.loss);
}

/* The precision that the forward pass before any update shows. */
static const char *precision_shown(const struct gate_verdict *verdict, const struct graph *graph,
				   enum precision asked)
{
	for (size_t i = 0; i < verdict->count; i++) {
		const struct gate_check *check = &verdict->checks[i];
		if (check->step != 0 || strcmp(check->what, "logits") != 0)
			continue;
		if (!isfinite(check->value))
			return NULL;
		return precision_name(parity_precision_shown(graph, asked, check->value));
	}
	return NULL;
}

/* Sets the members of the verdict other than its figures. */
static void describe(struct gate_verdict *verdict, const struct gate_reference *ref,
		     const struct gate_expected *expected, const struct gate_observed *observed)
{
	verdict->parameters = observed->parameters;
	verdict->macs = observed->macs;
	verdict->kinks = expected->kinks;
	verdict->turned = expected->turned;
	/* Both places were tried: the last answer has epsilon inside. */
	if (ref->expected[ref->expected_count - 1].epsilon_inside)
		verdict->rmsprop_epsilon = expected->epsilon_inside ? "inside" : "outside";
}

/* The labels of a sample, if there are several. */
static int64_t label_tokens(const struct graph *graph)
{
	int label = graph_label(graph, 0);

	return label != VALUE_NONE && graph->values[label].shape.rank > 1
		       ? shape_elements(&graph->values[label].shape) / graph_batch(graph)
		       : 0;
}

enum prony_status gate_compare(const struct gate_reference *ref, const struct graph *graph,
			       const struct recipe *gate, const struct tensor_set *labels,
			       const struct gate_observed *observed, struct arena *arena,
			       struct gate_verdict *verdict, struct error *err)
{
	char text[GATE_CHECK_BYTES];

	assert(ref->expected_count > 0);
	/* Of the correct answers, the best fit is taken as the framework's own. */
	for (int i = 0; i < ref->expected_count; i++) {
		struct gate_verdict judged = {
			.arena = arena,
			.passed = true,
			.batch = graph_batch(graph),
			.tokens = label_tokens(graph),
			.learning_rate = gate->stage == STAGE_TRAIN ? gate->learning_rate : NAN,
			.clip_norm = gate->stage == STAGE_TRAIN ? gate->clip_norm : 0};

		judge(&judged, ref, &ref->expected[i], graph, gate, labels, observed);
		describe(&judged, ref, &ref->expected[i], observed);
		judged.precision_proved = precision_shown(&judged, graph, gate->precision);
		if (i == 0 || judged.worst_ratio < verdict->worst_ratio)
			*verdict = judged;
	}
	if (verdict->passed)
		return PRONY_OK;
	gate_check_text(&verdict->checks[verdict->worst], text);
	return error_set(err, PRONY_MISMATCH, "%s", text);
}
