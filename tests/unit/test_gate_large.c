/*
 * The parity gate of a network with so many comparisons that are too close to call that they are
 * turned all at once: right frameworks still pass, and mutants are still rejected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/gate_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* PRONY_NETWORK_GATED names another: docs/parity.md has what came of larger ones. */
static int set_up(void **state)
{
	static struct fixture f;
	const char *name = getenv("PRONY_NETWORK_GATED");

	fixture_init(&f, name ? name : "resnet50-cifar", STAGE_TRAIN, OPTIMISER_MOMENTUM, NOISE, 1);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	fixture_release(*state);
	return 0;
}

/* The worst row of a kind in units of its bound; what == NULL: of all. */
static double worst_of(const json_t *evidence, const char *what)
{
	double worst = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(evidence, "checks"), i, row)
	{
		double bound = json_number_value(json_object_get(row, "bound"));

		if (what && strcmp(json_string_value(json_object_get(row, "what")), what) != 0)
			continue;
		if (bound > 0)
			worst = fmax(worst,
				     json_number_value(json_object_get(row, "value")) / bound);
	}
	return worst;
}

/* Plays a framework; returns its evidence and says how far each kind of figure was off. */
static json_t *evidence_of(struct fixture *f, const struct framework *framework,
			   enum prony_status expected)
{
	struct error err = ERROR_INIT;
	struct outcome outcome;
	json_t *evidence = NULL;

	play(f, framework, &outcome);
	enum prony_status status = judge_evidence(f, &outcome, &evidence, &err);
	print_message(
		"# %s: worst in bounds: logits %.2g, change %.2g, length %.2g, statistics %.2g\n",
		framework->what, worst_of(evidence, "logits"), worst_of(evidence, "change"),
		worst_of(evidence, "change, length"), worst_of(evidence, "running statistic"));
	if (status != expected)
		fail_msg("%s: %s", framework->what, status == PRONY_OK ? "it passes" : err.text);
	return evidence;
}

static void right_frameworks_pass(void **state)
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
	struct fixture *f = *state;

	assert_true(f->reference.expected[0].kinks > 4);
	for (size_t i = 0; i < COUNT(right); i++) {
		json_t *evidence = evidence_of(f, &right[i].framework, PRONY_OK);

		assert_true(worst_of(evidence, NULL) < 0.7);
		assert_string_equal(
			json_string_value(json_object_get(evidence, "running_variance")),
			right[i].variance);
		json_decref(evidence);
	}
}

static void statistics_that_are_not_read_are_not_judged(void **state)
{
	json_t *evidence = evidence_of(*state,
				       &(struct framework){.what = "no word of its statistics",
							   .norm_momentum = 0.99,
							   .without_state = true},
				       PRONY_OK);

	assert_string_equal(json_string_value(json_object_get(evidence, "running_variance")),
			    "not read");
	json_decref(evidence);
}

/* All but the last layer: what is left has slack in every distance. */
static void a_wrong_rate_is_seen_in_the_lengths(void **state)
{
	static const double factors[] = {1.01, 0.99};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(factors); i++) {
		json_t *evidence =
			evidence_of(f,
				    &(struct framework){.what = "learning rate off by 1 %",
							.rate_factor = factors[i],
							.rate_spares = "fc."},
				    PRONY_MISMATCH);

		assert_true(worst_of(evidence, "change, length") > 5);
		json_decref(evidence);
	}
}

static void mutants_are_rejected(void **state)
{
	static const struct {
		struct framework framework;
		const char *seen_in;
	} mutants[] = {
		{{.what = "learning rate x 1.01", .rate_factor = 1.01}, "change, length"},
		{{.what = "no momentum", .without_momentum = true}, "change, length"},
		{{.what = "a layer frozen", .frozen = "stage2.3.conv1"}, "change, length"},
		{{.what = "no gradient of a bias", .frozen = "fc.bias"}, "change"},
		{{.what = "epsilon of 1e-3 in normalisations", .norm_epsilon = 1e-3}, "logits"},
		{{.what = "momentum of 0.99 in statistics", .norm_momentum = 0.99},
		 "running statistic"},
		{{.what = "tf32 for fp32", .operand_bits = 11}, "logits"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(mutants); i++) {
		json_t *evidence = evidence_of(f, &mutants[i].framework, PRONY_MISMATCH);

		if (!(worst_of(evidence, mutants[i].seen_in) > 5))
			fail_msg("%s: only %.2g bounds in %s", mutants[i].framework.what,
				 worst_of(evidence, mutants[i].seen_in), mutants[i].seen_in);
		json_decref(evidence);
	}
}

/* Ctrl-C while the reference runs. */
static void a_reference_can_be_stopped(void **state)
{
	struct fixture *f = *state;
	struct error err = ERROR_INIT;
	struct gate_reference reference;
	volatile int stop = 1;
	double mean, deviation;

	assert_int_equal(gate_reference_init(&reference, &f->forward, &f->recipe, &f->weights,
					     &f->inputs, &f->labels, &stop, &err),
			 PRONY_INTERRUPTED);
	gate_reference_release(&reference);
	assert_int_equal(gate_expected_loss(&f->forward, &f->recipe, &f->weights,
					    &f->inputs.tensors[0], &f->labels.tensors[0], &stop,
					    &mean, &deviation, NULL),
			 PRONY_INTERRUPTED);
}

/* A timed process in training normalises by its batch, which no part of it stands for. */
static void the_first_loss_follows_the_batchs_statistics(void **state)
{
	struct fixture *f = *state;
	struct error err = ERROR_INIT;
	double mean, deviation;

	check(gate_expected_loss(&f->forward, &f->recipe, &f->weights, &f->inputs.tensors[0],
				 &f->labels.tensors[0], NULL, &mean, &deviation, &err),
	      &err);
	assert_true(fabs(mean - f->reference.expected[0].loss[0]) < 1e-12 && deviation == 0);
	assert_int_equal(gate_loss_parts(&f->forward, STAGE_TRAIN, INT64_C(1) << 40), 1);
	assert_int_equal(gate_loss_parts(&f->forward, STAGE_TRAIN, INT64_C(1) << 20), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_frameworks_pass),
		cmocka_unit_test(statistics_that_are_not_read_are_not_judged),
		cmocka_unit_test(a_wrong_rate_is_seen_in_the_lengths),
		cmocka_unit_test(mutants_are_rejected),
		cmocka_unit_test(a_reference_can_be_stopped),
		cmocka_unit_test(the_first_loss_follows_the_batchs_statistics),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
