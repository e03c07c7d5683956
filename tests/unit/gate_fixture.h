/* A gate on a small problem, and simulated frameworks that go through it: shared by the gate's
 * tests. */
#ifndef PRONY_TESTS_UNIT_GATE_FIXTURE_H
#define PRONY_TESTS_UNIT_GATE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "adapters/fake/executor.h"
#include "parity/gate.h"

/* One gate: a network, its recipe, its batches, and the reference's expected values. */
struct fixture {
	struct arena arena;
	struct graph forward, graph; /* without and with backward pass */
	struct recipe recipe;
	struct tensor_set weights, inputs, labels;
	struct gate_reference reference;
};

enum pictures { NOISE, STROKES }; /* synthetic input; images that are mostly exact zeros */

/* Makes a network, its initial weights, and pictures from the seed. Fails the test on any error.
 * STROKES is for pictures of 28 x 28. */
void fixture_init(struct fixture *f, const char *name, enum stage stage, enum optimiser optimiser,
		  enum pictures pictures, uint64_t seed);
/* The same in a precision other than fp32. */
void fixture_init_in(struct fixture *f, const char *name, enum precision precision,
		     enum stage stage, enum optimiser optimiser, enum pictures pictures,
		     uint64_t seed);
/* The same for a network that is not in the zoo. */
struct network;
void fixture_init_of(struct fixture *f, const struct network *network, enum precision precision,
		     enum stage stage, enum optimiser optimiser, enum pictures pictures,
		     uint64_t seed);
/* Training whose gradients are clipped. */
void fixture_init_clipping(struct fixture *f, const char *name, enum optimiser optimiser,
			   enum pictures pictures, uint64_t seed);
void fixture_release(struct fixture *f);

/* The differences of a framework from the reference; zero: none. */
struct framework {
	const char *what;
	int operand_bits;
	uint64_t order_seed;
	int64_t chunk;
	bool epsilon_inside;
	const char *frozen;
	double rate_factor;	 /* 0: 1 */
	const char *rate_spares; /* parameters whose names start with this keep their rate */
	double norm_epsilon, norm_momentum; /* of batch normalisations; 0: the graph's */
	bool unbiased;			    /* running variance of n - 1 */
	bool without_state;		    /* running statistics cannot be read */
	bool without_momentum, without_decay;
	bool without_clip, clips_each, clips_values; /* see struct executor_settings */
	double beta1, beta2, epsilon;		     /* of AdamW; 0: the recipe's */
	const char *swapped; /* a parameter with two input channels exchanged */
	bool swapped_input;  /* two rows of every picture are exchanged */
};

/* A framework's results, in the arena of the fixture. */
struct outcome {
	struct tensor logits[GATE_UPDATES];
	struct tensor_set gradients, weights, state;
	struct gate_observed observed;
};

/* Returns a value of the executor, borrowed. */
struct tensor executor_view(const struct executor *ex, int value);

/* Runs the framework through the gate, as a worker would answer. */
void play(struct fixture *f, const struct framework *framework, struct outcome *out);

/* Returns the gate's verdict; *ratio (may be NULL) gets the worst value in units of its bound. */
enum prony_status judge(struct fixture *f, const struct outcome *outcome, double *ratio,
			struct error *err);
/* The same, with every figure, in the arena of the fixture. */
enum prony_status judge_figures(struct fixture *f, const struct outcome *outcome,
				struct gate_verdict *verdict, struct error *err);

/* Runs the framework and returns the verdict. */
enum prony_status verdict(struct fixture *f, const struct framework *framework, double *ratio,
			  struct error *err);

#endif
