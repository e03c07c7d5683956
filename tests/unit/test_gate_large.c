/* Tests the parity gate on a network with so many comparisons too close to call that all are turned
 * at once: correct frameworks still pass, and mutants are still rejected. */
#include "parity/reference_internal.h"
#include "tests/unit/gate_fixture.h"
#include "unit_test.h"

/* The tests' state is `momentum`. There is one group because a TAP program has one plan. */
static struct fixture momentum, rmsprop;

/* PRONY_NETWORK_GATED names another network: docs/measured has results for larger ones. */
static int set_up(void **state)
{
	const char *name = getenv("PRONY_NETWORK_GATED");

	fixture_init(&momentum, name ? name : "resnet50-cifar", STAGE_TRAIN, OPTIMISER_MOMENTUM,
		     NOISE, 1);
	fixture_init(&rmsprop, "resnet50-cifar", STAGE_TRAIN, OPTIMISER_RMSPROP, NOISE, 1);
	*state = &momentum;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_release(&rmsprop);
	fixture_release(&momentum);
	return 0;
}

#define MOMENTUM_TEST(name) TEST_ON(name, NULL, NULL, struct fixture *f)

/* Returns the worst figure of a kind in units of its bound; what == NULL: of all kinds. */
static double worst_of(const struct gate_verdict *verdict, const char *what)
{
	double worst = 0;

	for (size_t i = 0; i < verdict->count; i++) {
		const struct gate_check *check = &verdict->checks[i];

		if ((!what || !strcmp(check->what, what)) && check->bound > 0)
			worst = fmax(worst, check->value / check->bound);
	}
	return worst;
}

/* Runs a framework through the gate; returns the verdict and prints how far each kind of figure was
 * off. */
static struct gate_verdict verdict_of(struct fixture *f, const struct framework *framework,
				      enum prony_status expected)
{
	struct error err = ERROR_INIT;
	struct outcome outcome;
	struct gate_verdict found;

	play(f, framework, &outcome);
	enum prony_status status = judge_figures(f, &outcome, &found, &err);
	print_message(
		"# %s: worst in bounds: logits %.2g, change %.2g, length %.2g, statistics %.2g\n",
		framework->what, worst_of(&found, "logits"), worst_of(&found, "change"),
		worst_of(&found, "size of the change"), worst_of(&found, "running statistic"));
	if (status != expected)
		fail_msg("%s: %s", framework->what, status == PRONY_OK ? "it passes" : err.text);
	return found;
}

MOMENTUM_TEST(right_frameworks_pass)
{
	static const struct {
		struct framework framework;
		const char *variance;
	} right[] = {
		{{.what = "in sequence"}, "n"},
		{{.what = "shuffled, in blocks of 64",
		  .chunk = 64,
		  .order_seed = 3,
		  .unbiased = true},
		 "n-1"},
	};

	assert_true(f->reference.expected[0].kinks > 4);
	for (size_t i = 0; i < COUNT(right); i++) {
		struct gate_verdict found = verdict_of(f, &right[i].framework, PRONY_OK);

		assert_true(worst_of(&found, NULL) < 0.7);
		assert_string_equal(found.running_variance, right[i].variance);
	}
}

MOMENTUM_TEST(statistics_that_are_not_read_are_not_judged)
{
	struct gate_verdict found =
		verdict_of(f,
			   &(struct framework){.what = "no word of its statistics",
					       .norm_momentum = 0.99,
					       .without_state = true},
			   PRONY_OK);

	assert_string_equal(found.running_variance, "not read");
}

/* Applies the wrong rate to all layers but the last: every distance of the others has slack. */
MOMENTUM_TEST(a_wrong_rate_is_seen_in_the_lengths)
{
	static const double factors[] = {1.01, 0.99};

	for (size_t i = 0; i < COUNT(factors); i++) {
		struct gate_verdict found =
			verdict_of(f,
				   &(struct framework){.what = "learning rate off by 1 %",
						       .rate_factor = factors[i],
						       .rate_spares = "fc."},
				   PRONY_MISMATCH);

		assert_true(worst_of(&found, "size of the change") > 5);
	}
}

MOMENTUM_TEST(mutants_are_rejected)
{
	static const struct {
		struct framework framework;
		const char *seen_in;
	} mutants[] = {
		{{.what = "learning rate x 1.01", .rate_factor = 1.01}, "size of the change"},
		{{.what = "no momentum", .without_momentum = true}, "size of the change"},
		{{.what = "no weight decay", .without_decay = true}, "size of the change"},
		{{.what = "a layer frozen", .frozen = "stage2.3.conv1"}, "size of the change"},
		{{.what = "no gradient of a bias", .frozen = "fc.bias"}, "change"},
		{{.what = "epsilon of 1e-3 in normalisations", .norm_epsilon = 1e-3}, "logits"},
		{{.what = "momentum of 0.99 in statistics", .norm_momentum = 0.99},
		 "running statistic"},
		{{.what = "tf32 for fp32", .operand_bits = 11}, "logits"},
	};

	for (size_t i = 0; i < COUNT(mutants); i++) {
		struct gate_verdict found = verdict_of(f, &mutants[i].framework, PRONY_MISMATCH);

		if (!(worst_of(&found, mutants[i].seen_in) > 5))
			fail_msg("%s: only %.2g bounds in %s", mutants[i].framework.what,
				 worst_of(&found, mutants[i].seen_in), mutants[i].seen_in);
	}
}

/* RMSprop scales the rounding error of a small gradient to full size: one weight of a factor with
 * 16 may then contain its whole difference. */
TEST(rmsprop_passes_in_any_order)
{
	static const struct framework right[] = {
		{.what = "rmsprop, in sequence"},
		{.what = "rmsprop, shuffled, epsilon inside",
		 .chunk = 64,
		 .order_seed = 3,
		 .epsilon_inside = true},
	};

	assert_true(rmsprop.recipe.learning_rate < 2e-6);
	for (size_t i = 0; i < COUNT(right); i++) {
		struct gate_verdict found = verdict_of(&rmsprop, &right[i], PRONY_OK);

		assert_true(worst_of(&found, NULL) < 0.7);
	}
}

TEST(mutants_of_rmsprop_are_rejected)
{
	static const struct framework mutants[] = {
		{.what = "rmsprop, learning rate x 1.01", .rate_factor = 1.01},
		{.what = "rmsprop, the same but for the last layer",
		 .rate_factor = 1.01,
		 .rate_spares = "fc."},
		{.what = "rmsprop, no weight decay", .without_decay = true},
		{.what = "rmsprop, a layer frozen", .frozen = "stage2.3.conv1"},
		{.what = "rmsprop, tf32 for fp32", .operand_bits = 11},
	};

	for (size_t i = 0; i < COUNT(mutants); i++) {
		struct gate_verdict found = verdict_of(&rmsprop, &mutants[i], PRONY_MISMATCH);

		if (!(worst_of(&found, NULL) > 3))
			fail_msg("%s: only %.2g bounds", mutants[i].what, worst_of(&found, NULL));
	}
}

/* Returns ||a - b|| / ||b|| of logits in float32 and in float64. */
static double logits_distance(const struct tensor *a, const struct tensor *b)
{
	double differences = 0, squares = 0;

	for (int64_t i = 0; i < shape_elements(&b->shape); i++) {
		double wanted = ((const double *)b->data)[i];

		differences += pow((double)((const float *)a->data)[i] - wanted, 2);
		squares += wanted * wanted;
	}
	return sqrt(differences / squares);
}

/* The rounding for which slack is granted matches that of sequential float32: not less, and not
 * many times as much. */
MOMENTUM_TEST(rounding_is_as_large_as_it_is_taken_to_be)
{
	struct error err = ERROR_INIT;
	size_t values = (size_t)f->forward.value_count;
	double *deviation = test_keep(memory_alloc(values * sizeof(double)));
	double *again = test_keep(memory_alloc(values * sizeof(double)));
	SCOPED(executor) ex;

	memset(deviation, 0, values * sizeof(double));
	memset(again, 0, values * sizeof(double));
	for (int i = 0; i < 2; i++)
		check(rounding_measure(
			      &f->forward, &f->recipe, &f->weights,
			      (struct batch){&f->inputs.tensors[0], &f->labels.tensors[0], 1, 1},
			      NULL, i ? again : deviation, &err),
		      &err);
	assert_memory_equal(deviation, again, values * sizeof(double));
	check(executor_init(&ex, &f->graph, &f->weights, &err), &err);
	executor_step(&ex, &f->recipe, &f->inputs.tensors[0], &f->labels.tensors[0]);
	struct tensor logits = executor_view(&ex, f->graph.logits);
	double seen = logits_distance(&logits, &f->reference.expected[0].logits[0]);
	double taken = deviation[f->forward.logits];

	print_message("# logits: %.2g, taken to be %.2g\n", seen, taken);
	assert_true(seen < 1.5 * taken && taken < 10 * seen);
}

/* Runs the first step with the comparisons turned that an exact step found too close; *relus: how
 * many of them are in ReLUs. */
static int64_t count_turned(const struct fixture *f, struct kinks *kinks,
			    const struct kink_list *met, int64_t *relus)
{
	struct error err = ERROR_INIT;
	SCOPED(reference) ref;
	int64_t turned = 0;

	check(reference_init(&ref, &f->graph, &f->weights, &err), &err);
	check(reference_feed(&ref,
			     (struct batch){&f->inputs.tensors[0], &f->labels.tensors[0], 1, 1},
			     &err),
	      &err);
	check(reference_step_kinks(&ref, &f->recipe, false, kinks, &err), &err);
	*relus = 0;
	for (int64_t i = 0; i < met->count; i++) {
		const struct kink *kink = &met->items[i];
		const struct node *node = &f->graph.nodes[kink->node];

		if (node->op != OP_RELU)
			continue;
		++*relus;
		turned += (ref.values[node->outputs[0]][kink->place] != 0) != kink->decision;
	}
	return turned;
}

MOMENTUM_TEST(rounding_does_not_turn_back_what_was_turned)
{
	size_t values = (size_t)f->forward.value_count;
	double *deviation = test_keep(memory_alloc(values * sizeof(double)));
	SCOPED(kink_list) met = {0};
	int64_t relus;

	/* Large enough that there are many. */
	for (size_t i = 0; i < values; i++)
		deviation[i] = 1e-5;
	assert_int_equal(count_turned(f, &(struct kinks){.kept = &met, .deviation = deviation},
				      &met, &relus),
			 0);
	assert_true(relus > 50);
	int64_t turned = count_turned(
		f, &(struct kinks){.turned = &met, .deviation = deviation, .rounding = 2}, &met,
		&relus);
	assert_int_equal(turned, relus);
}

/* Simulates Ctrl-C while the reference runs. */
MOMENTUM_TEST(a_reference_can_be_stopped)
{
	struct error err = ERROR_INIT;
	struct gate_reference reference;
	volatile int stop = 1;
	struct reference_control control = {.stop = &stop};
	double mean, deviation;

	assert_int_equal(gate_reference_init(&reference, &f->forward, &f->recipe, &f->weights,
					     &f->inputs, &f->labels, &control, &err),
			 PRONY_INTERRUPTED);
	gate_reference_release(&reference);
	assert_int_equal(gate_expected_loss(
				 &f->forward, &f->recipe, &f->weights,
				 (struct batch){&f->inputs.tensors[0], &f->labels.tensors[0], 1, 1},
				 &control, &mean, &deviation, NULL),
			 PRONY_INTERRUPTED);
}

/* In training, a timed process normalises by its whole batch; no part of the batch has the same
 * statistics. */
MOMENTUM_TEST(the_first_loss_follows_the_batchs_statistics)
{
	struct error err = ERROR_INIT;
	double mean, deviation;

	check(gate_expected_loss(&f->forward, &f->recipe, &f->weights,
				 (struct batch){&f->inputs.tensors[0], &f->labels.tensors[0], 1, 1},
				 NULL, &mean, &deviation, &err),
	      &err);
	assert_true(fabs(mean - f->reference.expected[0].loss[0]) < 1e-12 && deviation == 0);
	assert_int_equal(gate_loss_parts(&f->forward, STAGE_TRAIN, INT64_C(1) << 40), 1);
	assert_int_equal(gate_loss_parts(&f->forward, STAGE_TRAIN, INT64_C(1) << 20), 0);
}

int main(void)
{
	return unit_tests_run(set_up, tear_down);
}
