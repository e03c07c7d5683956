/* The machine-wide lock and the signals that stop, for commands that measure or install. */
#ifndef PRONY_CLI_MACHINE_LOCK_H
#define PRONY_CLI_MACHINE_LOCK_H

#include "base/error.h"

/* Set by the first SIGINT, SIGTERM or SIGHUP after catch_signals; a second one ends the program. */
extern volatile int stop_wanted;
void catch_signals(void);

/* Waits while another prony measures, and prints that once; `stop` may be NULL. Closing *fd
 * releases the lock; without a lock *fd is unchanged. PRONY_IO when the program file was replaced
 * meanwhile. */
enum prony_status machine_lock(const volatile int *stop, int *fd, struct error *err);

#endif
