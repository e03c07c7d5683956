/* Tests that the parity gate rejects every mutant of a correct framework, and by a wide margin. */
#include "tests/unit/gate_fixture.h"
#include "unit_test.h"

/* Requires that the mutant is rejected by at least this margin. */
static void reject_by(struct fixture *f, const struct framework *mutant, double bounds)
{
	struct error err = ERROR_INIT;
	double ratio;

	if (verdict(f, mutant, &ratio, &err) != PRONY_MISMATCH)
		fail_msg("%s: %s of %s passes", f->forward.name, mutant->what,
			 mutant->frozen ? mutant->frozen : "the whole");
	if (!(ratio > bounds))
		fail_msg("%s: %s is only %.2g times over the bound", f->forward.name, mutant->what,
			 ratio);
}

static void reject(struct fixture *f, const struct framework *mutant)
{
	reject_by(f, mutant, 10);
}

/* Freezes each parameter, and each layer ("conv1." names weight and bias). */
static void reject_frozen(struct fixture *f, double bounds)
{
	for (int i = 0; i < f->graph.value_count; i++) {
		const struct value *value = &f->graph.values[i];
		char layer[64];

		if (value->kind != VALUE_PARAMETER)
			continue;
		reject_by(f, &(struct framework){.what = "no gradient", .frozen = value->name},
			  bounds);
		if (!strstr(value->name, ".weight"))
			continue;
		snprintf(layer, sizeof(layer), "%s", value->name);
		*(strchr(layer, '.') + 1) = '\0';
		reject_by(f, &(struct framework){.what = "frozen layer", .frozen = layer}, bounds);
	}
}

TEST(every_mutant_of_training_is_rejected)
{
	static const struct framework mutants[] = {
		{.what = "no momentum", .without_momentum = true},
		{.what = "learning rate x 1.01", .rate_factor = 1.01},
		{.what = "learning rate x 0.99", .rate_factor = 0.99},
		{.what = "no weight decay", .without_decay = true},
		{.what = "tf32 for fp32", .operand_bits = 11},
		{.what = "tf32, shuffled", .operand_bits = 11, .order_seed = 9},
		{.what = "bf16 for fp32", .operand_bits = 8},
		{.what = "swapped rows of the input", .swapped_input = true},
	};
	static const struct {
		const char *network, *inner;
		enum pictures pictures;
	} cases[] = {{"lenet", "conv2.weight", STROKES},
		     {"mlp", "fc2.weight", STROKES},
		     {"mlp", "fc2.weight", NOISE}};

	for (size_t c = 0; c < COUNT(cases); c++) {
		SCOPED(fixture) f;

		fixture_init(&f, cases[c].network, STAGE_TRAIN, OPTIMISER_MOMENTUM,
			     cases[c].pictures, 1);
		for (size_t i = 0; i < COUNT(mutants); i++)
			reject(&f, &mutants[i]);
		reject(&f,
		       &(struct framework){.what = "swapped channels", .swapped = cases[c].inner});
		reject_frozen(&f, 10);
	}
}

/* The logits show to which precision the operands were rounded, whatever was requested. This
 * includes fp32 where bf16 was requested, which the bounds of bf16 let pass. */
TEST(the_logits_show_the_precision)
{
	static const struct {
		int bits;
		const char *shown;
	} kinds[] = {{24, "fp32"}, {11, "tf32"}, {8, "bf16"}};
	static const struct {
		const char *network;
		enum pictures pictures;
		enum precision asked;
	} cases[] = {{"lenet", STROKES, PRECISION_FP32},
		     {"lenet", NOISE, PRECISION_BF16},
		     {"mlp", STROKES, PRECISION_BF16},
		     {"mlp", NOISE, PRECISION_TF32}};

	for (size_t c = 0; c < COUNT(cases); c++) {
		SCOPED(fixture) f;

		fixture_init_in(&f, cases[c].network, cases[c].asked, STAGE_FORWARD,
				OPTIMISER_MOMENTUM, cases[c].pictures, 3);
		for (size_t i = 0; i < COUNT(kinds); i++) {
			const struct framework framework = {
				.what = "rounded", .operand_bits = kinds[i].bits, .order_seed = 4};
			struct gate_verdict found;
			struct error err = ERROR_INIT;
			struct outcome outcome;

			play(&f, &framework, &outcome);
			judge_figures(&f, &outcome, &found, &err);
			assert_non_null(found.precision_proved);
			if (strcmp(found.precision_proved, kinds[i].shown) != 0)
				fail_msg("%s, %d bits: %s is shown", f.forward.name, kinds[i].bits,
					 found.precision_proved);
		}
	}
}

TEST(mutants_of_rmsprop_are_rejected)
{
	static const struct {
		const char *network;
		enum pictures pictures;
		/* The least deviation of a mutant in bounds. With NOISE the gradients are large and
		 * decay is small in comparison: 8.9. */
		double bounds;
	} cases[] = {{"mlp", STROKES, 10}, {"lenet", NOISE, 7}};

	for (size_t c = 0; c < COUNT(cases); c++) {
		SCOPED(fixture) f;

		fixture_init(&f, cases[c].network, STAGE_TRAIN, OPTIMISER_RMSPROP,
			     cases[c].pictures, 5);
		for (int inside = 0; inside < 2; inside++) {
			reject_by(&f,
				  &(struct framework){.what = "learning rate x 1.01",
						      .rate_factor = 1.01,
						      .epsilon_inside = inside == 1},
				  cases[c].bounds);
			reject_by(&f,
				  &(struct framework){.what = "tf32 for fp32",
						      .operand_bits = 11,
						      .epsilon_inside = inside == 1},
				  cases[c].bounds);
			reject_by(&f,
				  &(struct framework){.what = "no weight decay",
						      .without_decay = true,
						      .epsilon_inside = inside == 1},
				  cases[c].bounds);
		}
		reject_frozen(&f, cases[c].bounds);
	}
}

/* The gate chooses a norm that the gradients of its steps exceed, but not always. */
TEST(clipping_passes_and_its_mutants_are_rejected)
{
	static const struct framework right[] = {
		{.what = "in sequence"},
		{.what = "shuffled, in blocks of 8", .order_seed = 3, .chunk = 8},
	};
	static const struct framework mutants[] = {
		{.what = "no clipping", .without_clip = true},
		{.what = "each tensor by its own norm", .clips_each = true},
		{.what = "each element", .clips_values = true},
		{.what = "learning rate x 1.01", .rate_factor = 1.01},
	};
	static const struct {
		const char *network;
		enum optimiser optimiser;
		enum pictures pictures;
	} cases[] = {{"mlp", OPTIMISER_SGD, STROKES},	   {"mlp", OPTIMISER_RMSPROP, STROKES},
		     {"mlp", OPTIMISER_ADAMW, STROKES},	   {"lenet", OPTIMISER_MOMENTUM, STROKES},
		     {"lenet", OPTIMISER_MOMENTUM, NOISE}, {"lenet", OPTIMISER_ADAMW, NOISE}};

	for (size_t c = 0; c < COUNT(cases); c++) {
		struct error err = ERROR_INIT;
		SCOPED(fixture) f;
		double ratio;

		fixture_init_clipping(&f, cases[c].network, cases[c].optimiser, cases[c].pictures,
				      2);
		for (size_t i = 0; i < COUNT(right); i++) {
			check(verdict(&f, &right[i], &ratio, &err), &err);
			if (!(ratio < 0.5))
				fail_msg("%s %d: %s is at %.2g of the bound", cases[c].network,
					 (int)cases[c].optimiser, right[i].what, ratio);
		}
		for (size_t i = 0; i < COUNT(mutants); i++)
			reject_by(&f, &mutants[i], 5);
	}
}

/* Also right ones, because the bounds follow from what rounding does to each sign. */
TEST(adamw_passes_and_its_mutants_are_rejected)
{
	static const struct framework right[] = {
		{.what = "in sequence"},
		{.what = "shuffled, in blocks of 8", .order_seed = 3, .chunk = 8},
	};
	static const struct framework mutants[] = {
		{.what = "learning rate x 1.01", .rate_factor = 1.01},
		{.what = "no weight decay", .without_decay = true},
		{.what = "beta1 0.89 for 0.9", .beta1 = 0.89},
		{.what = "beta2 0.99 for 0.999", .beta2 = 0.99},
		{.what = "epsilon 1e-7 for 1e-8", .epsilon = 1e-7},
		{.what = "tf32 for fp32", .operand_bits = 11},
	};
	static const struct {
		const char *network;
		enum pictures pictures;
		double bounds; /* the least deviation of a mutant */
	} cases[] = {{"mlp", STROKES, 20}, {"lenet", NOISE, 1}};

	for (size_t c = 0; c < COUNT(cases); c++) {
		SCOPED(fixture) f;

		fixture_init(&f, cases[c].network, STAGE_TRAIN, OPTIMISER_ADAMW, cases[c].pictures,
			     5);
		for (size_t i = 0; i < COUNT(right); i++) {
			struct error err = ERROR_INIT;
			double ratio;

			check(verdict(&f, &right[i], &ratio, &err), &err);
			assert_true(ratio < 0.5);
		}
		for (size_t i = 0; i < COUNT(mutants); i++)
			reject_by(&f, &mutants[i], cases[c].bounds);
		reject_frozen(&f, cases[c].bounds);
	}
}

TEST(mutants_without_update_are_rejected)
{
	for (int i = 0; i < 2; i++) {
		struct fixture f;

		fixture_init(&f, i ? "mlp" : "lenet", STAGE_FORWARD_BACKWARD, OPTIMISER_MOMENTUM,
			     STROKES, 6);
		reject(&f, &(struct framework){.what = "tf32 for fp32", .operand_bits = 11});
		reject_frozen(&f, 10);
		fixture_release(&f);
		fixture_init(&f, i ? "mlp" : "lenet", STAGE_FORWARD, OPTIMISER_MOMENTUM, STROKES,
			     6);
		reject(&f, &(struct framework){.what = "tf32 for fp32", .operand_bits = 11});
		reject(&f, &(struct framework){.what = "swapped input", .swapped_input = true});
		fixture_release(&f);
	}
}

/* bf16 operands of products are requested: learning rates must differ by at least 5 % to be told
 * apart; weight decay is not detected (docs/parity.md). */
TEST(mutants_are_rejected_in_bf16)
{
	static const struct framework right[] = {
		{.what = "bf16", .operand_bits = 8},
		{.what = "bf16, shuffled", .operand_bits = 8, .order_seed = 3, .chunk = 64},
		{.what = "fp32", .operand_bits = 24},
	};
	static const struct {
		struct framework framework;
		double factor; /* least deviation in bounds */
	} mutants[] = {
		{{.what = "no momentum", .without_momentum = true}, 10},
		{{.what = "learning rate x 1.1", .rate_factor = 1.1}, 3},
		{{.what = "learning rate x 0.9", .rate_factor = 0.9}, 3},
		{{.what = "swapped channels", .swapped = "conv2.weight"}, 10},
		{{.what = "swapped rows of the input", .swapped_input = true}, 10},
		{{.what = "no gradient", .frozen = "conv1.weight"}, 3},
		{{.what = "no gradient", .frozen = "conv2.weight"}, 3},
		{{.what = "no gradient", .frozen = "ip1.bias"}, 3},
		{{.what = "no gradient", .frozen = "ip2.bias"}, 10},
	};
	SCOPED(fixture) f;

	fixture_init_in(&f, "lenet", PRECISION_BF16, STAGE_TRAIN, OPTIMISER_MOMENTUM, STROKES, 1);
	for (size_t i = 0; i < COUNT(right); i++) {
		struct error err = ERROR_INIT;
		double ratio;

		check(verdict(&f, &right[i], &ratio, &err), &err);
		assert_true(ratio < 0.5);
	}
	for (size_t i = 0; i < COUNT(mutants); i++) {
		struct framework mutant = mutants[i].framework;
		struct error err = ERROR_INIT;
		double ratio;

		mutant.operand_bits = 8;
		if (verdict(&f, &mutant, &ratio, &err) != PRONY_MISMATCH)
			fail_msg("%s passes", mutant.what);
		if (!(ratio > mutants[i].factor))
			fail_msg("%s: only %.2g bounds", mutant.what, ratio);
	}
}
