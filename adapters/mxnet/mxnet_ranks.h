/* Several ranks of MXNet: its distributed key-value store (dist_sync), in which a server sums what
 * the ranks push. Its scheduler and its server are child processes of rank 0. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_RANKS_H
#define PRONY_ADAPTERS_MXNET_MXNET_RANKS_H

#include <sys/types.h>

#include "adapters/mxnet/mxnet_model.h"
#include "bundle/target.h"

enum { MX_HELPERS = 2 }; /* scheduler and server */

struct mx_ranks {
	int count; /* 0: one rank, without a store */
	pid_t helpers[MX_HELPERS];
	struct mx_store *store;
	int *keys; /* one for each parameter */
};

/* Sets the variables by which ranks find each other and starts rank 0's helpers. Call it before the
 * library is loaded and before there are threads. Does nothing for one rank. */
enum prony_status mx_ranks_start(struct mx_ranks *ranks, const struct target *target,
				 const char *library, struct error *err);

/* Waits for the other ranks. */
enum prony_status mx_ranks_join(struct mx_ranks *ranks, const struct mx_api *api,
				struct error *err);

/* Makes the store's entries for the model's parameters; the model sums with them from now on. */
enum prony_status mx_ranks_attach(struct mx_ranks *ranks, struct mx_model *model,
				  struct error *err);

/* Replaces each gradient by the sum over all ranks; returns before this is finished. */
enum prony_status mx_ranks_sum(const struct mx_ranks *ranks, const struct mx_model *model,
			       struct error *err);

/* Leaves the other ranks and ends the helpers. `api` is NULL when no library was loaded. */
void mx_ranks_release(struct mx_ranks *ranks, const struct mx_api *api);

#endif
