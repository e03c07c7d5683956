/* Bundle folders that a killed run left behind, tidied up by the next one. */
#ifndef PRONY_CLIENT_LEFTOVER_H
#define PRONY_CLIENT_LEFTOVER_H

#include "base/error.h"

/*
 * A new folder for bundles below $TMPDIR, and a descriptor that holds its lock: while it is open
 * nobody takes the folder for a leftover, in whatever namespace of processes he is. Caller frees
 * *folder, closes *lock_fd (-1 where the file system has no locks: then nobody tidies it up).
 */
enum prony_status leftover_claim(char **folder, int *lock_fd, struct error *err);

/*
 * Removes such folders of this user that nobody holds and nothing was made in for some minutes.
 * What cannot be removed stays: it is no business of this run.
 */
void leftover_sweep(void);

#endif
