/* Removes bundle folders that a killed run left behind. */
#ifndef PRONY_CLIENT_LEFTOVER_H
#define PRONY_CLIENT_LEFTOVER_H

#include "base/error.h"

/* Makes a new folder for bundles below $TMPDIR, and opens a descriptor that holds its lock. While
 * it is open no process takes the folder for a leftover, even in another PID namespace. The caller
 * frees *folder and closes *lock_fd (-1 if the file system has no locks: then the folder is never
 * removed as a leftover). */
enum prony_status leftover_claim(char **folder, int *lock_fd, struct error *err);

/* Removes such folders of this user that are not locked. Failures to remove are ignored. */
void leftover_sweep(void);

#endif
