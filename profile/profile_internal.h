/* Private to profile/: what its sources share. */
#ifndef PRONY_PROFILE_PROFILE_INTERNAL_H
#define PRONY_PROFILE_PROFILE_INTERNAL_H

#include "profile/profile.h"

/* What stands between the nodes' names in a span's name that is several. */
#define PROFILE_FUSED " + "

/*
 * The forward node of the network that a name of the framework's belongs to: the longest one with
 * which it begins, or which stands in it between characters that are no letters or digits. -1:
 * none.
 */
int profile_find_node(const struct graph *graph, const char *name);

/* Fills layers and their sums from the spans; `graph` is NULL for a file as it is. */
void profile_sum_layers(struct profile *profile, const struct graph *graph);

#endif
