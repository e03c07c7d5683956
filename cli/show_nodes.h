/* `prony show --by node`: which node of a cluster is slow. */
#ifndef PRONY_CLI_SHOW_NODES_H
#define PRONY_CLI_SHOW_NODES_H

#include "base/arena.h"
#include "cli/cli.h"
#include "store/store.h"

struct show_nodes_options {
	const char *store, *format, *threshold;
	bool full;
};

/* Finds the runs to compare, newest first: those in `words`; of one or none: all runs of the store
 * that measured the same as it (the newest), the last two of each node. Their uids live in the
 * arena. */
enum prony_status show_nodes_runs(struct store *store, const char *const *words, size_t count,
				  struct arena *arena, const char ***uids, size_t *found,
				  struct error *err);

/* Prints the nodes of these runs. Returns the exit code: 2 if a node is slow in both rounds, 1 if a
 * cell is not ok on a node but on another one, 3 if a node is slow in its only round. */
int show_nodes(const struct show_nodes_options *options, const char *const *words, size_t count,
	       struct error *err);

#endif
