/* Private to profile/: declarations shared by its sources. */
#ifndef PRONY_PROFILE_PROFILE_INTERNAL_H
#define PRONY_PROFILE_PROFILE_INTERNAL_H

#include "profile/profile.h"

/* Separates the node names in the name of a fused span. */
#define PROFILE_FUSED " + "

/* The forward node that a framework's name belongs to: the longest node name that it begins with or
 * contains as a whole word. -1: none. */
int profile_find_node(const struct graph *graph, const char *name);

/* Computes layers and their sums from the spans; `graph` is NULL for a model file run unchanged. */
void profile_sum_layers(struct profile *profile, const struct graph *graph);

#endif
