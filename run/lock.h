/* The machine-wide lock: two measurements at once would both be wrong. */
#ifndef PRONY_RUN_LOCK_H
#define PRONY_RUN_LOCK_H

#include "base/error.h"

/* Takes an advisory lock on a file (made when absent), calling `waiting` once if somebody else
 * holds it. The lock ends with the process. *fd is to be closed to release it. */
enum prony_status lock_take(const char *path, const volatile int *stop,
			    void (*waiting)(void *context, const char *path), void *context,
			    int *fd, struct error *err);

/* $PRONY_LOCK, or prony.lock in the machine's temporary folder; caller frees. */
char *lock_default_path(void);

#endif
