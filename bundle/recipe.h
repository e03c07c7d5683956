/* The recipe: the work on a network in one process, independent of the framework (bundle/target.h
 * names that). */
#ifndef PRONY_BUNDLE_RECIPE_H
#define PRONY_BUNDLE_RECIPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cell/axes.h"

struct recipe {
	int threads; /* compute threads; the process is bound to as many cores */
	int slots;   /* resident batches that the steps rotate over; at least 1 */
	/* The axes of the cell (cell/axes.h). With dropout off, dropout nodes are the identity in
	 * training too. */
	CELL_AXES(AXIS_RECIPE_MEMBER)
	double rho, epsilon; /* RMSprop; epsilon of AdamW too */
	double beta1, beta2; /* AdamW */
	uint64_t seed;	     /* seed of dropout masks */
};

/* AdamW's epsilon. The default of PyTorch; RMSprop has Keras'. */
#define RECIPE_ADAMW_EPSILON 1e-8

/* Sets SGD with momentum 0.9, fp32, 8 slots, learning rate 0.01, dropout on, one thread. */
void recipe_defaults(struct recipe *recipe);

json_t *recipe_to_json(const struct recipe *recipe); /* new reference */
enum prony_status recipe_from_json(const json_t *json, struct recipe *out, struct error *err);

#endif
