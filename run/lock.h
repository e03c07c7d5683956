/* The machine-wide lock: two measurements at once would both be wrong. */
#ifndef PRONY_RUN_LOCK_H
#define PRONY_RUN_LOCK_H

#include <stdint.h>

#include "base/error.h"

/* What the process that holds the lock wrote into its file. */
struct lock_holder {
	int pid;	 /* 0: unknown */
	int64_t since_s; /* since 1970 */
	char user[64], command[256];
	char takes[64]; /* "about 12 min"; "" = unknown */
};

/* Takes an advisory lock on a file, which is created if missing, and writes into it who holds it.
 * While another process holds it, calls `waiting` at first and whenever the holder changes. The
 * lock ends with the process; close *fd to release it earlier. */
enum prony_status lock_take(const char *path, const volatile int *stop,
			    void (*waiting)(void *context, const char *path,
					    const struct lock_holder *holder),
			    void *context, int *fd, struct error *err);

/* Writes this process into the lock that it holds, and how long it expects to take from now on:
 * "about 12 min", or "". */
void lock_say_holder(int fd, const char *takes);

/* Returns $PRONY_LOCK, or /tmp/prony.lock, on a node of Slurm with .NODE; the caller frees it. */
char *lock_default_path(void);

#endif
