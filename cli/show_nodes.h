/* `prony show --by node`: which node of a cluster is slow. */
#ifndef PRONY_CLI_SHOW_NODES_H
#define PRONY_CLI_SHOW_NODES_H

#include "cli/cli.h"

struct show_nodes_options {
	const char *store, *format, *threshold;
	bool full;
};

/* Prints the nodes of the runs in `words`; of one or none: of all runs of the store that measured
 * the same as it (the newest), the last two of each node. Returns the exit code: 2 if a node is
 * slow in both rounds, 1 if a cell is not ok on a node but on another one, 3 if a node is slow in
 * its only round. */
int show_nodes(const struct show_nodes_options *options, const char *const *words, size_t count,
	       struct error *err);

#endif
