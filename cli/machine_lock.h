/* The lock of the machine, as a command takes it. */
#ifndef PRONY_CLI_MACHINE_LOCK_H
#define PRONY_CLI_MACHINE_LOCK_H

#include "base/error.h"

/* Waits for another prony that measures, and says so once; `stop` may be NULL. Closing *fd releases
 * it; where the lock was not taken *fd is as before. PRONY_IO when the program itself was replaced
 * meanwhile. */
enum prony_status machine_lock(const volatile int *stop, int *fd, struct error *err);

#endif
