/* MPI's launcher. It must start the ranks of frameworks that sum by MPI, because only its processes
 * are told of each other, and it does not pass on descriptors. So it starts `prony guard --join`
 * for each rank, which takes the descriptors of a worker's guard from a socket
 * (client_spec.join_fd) and then goes on like any guard. The launcher itself is the worker of a
 * guard of its own. */
#ifndef PRONY_CLIENT_LAUNCHER_H
#define PRONY_CLIENT_LAUNCHER_H

#include "client/client.h"

struct launcher;

/* Starts `program` with a process for each rank of spec->target, which will run spec->argv in
 * spec->environment, and waits until all have connected to a socket in the folder of the target's
 * rendezvous. Call launcher_end on *out in any case. PRONY_MISSING: it cannot be started;
 * PRONY_CRASHED: it ended before; PRONY_TIMEOUT; PRONY_INVALID: its ranks are not 0, 1, 2...
 * Borrows spec and program until launcher_end. */
enum prony_status launcher_start(const char *program, const struct client_spec *spec,
				 struct launcher **out, struct error *err);
/* The connection of a rank, for client_spec.join_fd; closed by launcher_end. */
int launcher_join_fd(const struct launcher *launcher, int rank);
/* Whether it was killed, which ends all ranks: then replaces the error by that. */
bool launcher_lost(struct launcher *launcher, struct error *err);
/* Lets it end, as it does when its ranks have ended, or kills it with all that is below it. NULL is
 * allowed. */
void launcher_end(struct launcher *launcher);

#endif
