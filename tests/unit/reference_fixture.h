/* Runs the reference interpreter on a small graph and checks its gradients against finite
 * differences. */
#ifndef PRONY_TESTS_UNIT_REFERENCE_FIXTURE_H
#define PRONY_TESTS_UNIT_REFERENCE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"
#include "parity/reference.h"

#define TOLERANCE 1e-6 /* of a gradient, relative to the largest of its tensor */

/* A network with weights, one batch, and its interpreter. */
struct rig {
	struct arena arena;
	struct graph graph;
	struct tensor_set weights;
	struct tensor x, y; /* the first input and the label */
	struct recipe recipe;
	struct reference ref;
};

/* Takes ownership of the graph, which has a loss. With `own_weights` the parameters are the
 * network's initial weights, else normally distributed. */
void rig_init(struct rig *rig, struct graph graph, bool own_weights, uint64_t seed);
void rig_release(struct rig *rig);

/* Runs a step and returns its loss. It is always the first step, so that dropout draws the same
 * masks. */
double run(struct rig *rig);

/* Returns the largest difference between a gradient and the finite difference, over `samples`
 * entries of every parameter (0: all), relative to the largest entry of its tensor. */
double gradient_error(struct rig *rig, int64_t samples);

#endif
