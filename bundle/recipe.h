/* What is done with a network in one process, whatever framework does it (bundle/target.h says
 * which). */
#ifndef PRONY_BUNDLE_RECIPE_H
#define PRONY_BUNDLE_RECIPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cell/axes.h"

struct recipe {
	int threads; /* compute threads; the process is bound to as many cores */
	int slots;   /* resident batches that the step rotates over; at least 1 */
	/* What the cell carries (cell/axes.h); with dropout off its nodes are the identity also in
	 * training. */
	CELL_AXES(AXIS_RECIPE_MEMBER)
	double rho, epsilon; /* RMSprop */
	uint64_t seed;	     /* of dropout masks */
};

/* SGD with momentum 0.9, fp32, 8 slots, learning rate 0.01, dropout on, one thread. */
void recipe_defaults(struct recipe *recipe);

json_t *recipe_to_json(const struct recipe *recipe); /* new reference */
enum prony_status recipe_from_json(const json_t *json, struct recipe *out, struct error *err);

#endif
