/* The guard: a small process above each worker that ends the whole tree below it when the parent
 * dies. */
#ifndef PRONY_CLIENT_GUARD_H
#define PRONY_CLIENT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Runs `prony guard LIFE_FD REPORT_FD CPUS -- COMMAND...`. It leads a session and process group, is
 * the child subreaper (prctl), starts COMMAND with the remaining descriptors, and waits. When
 * LIFE_FD reaches end of file (the parent closed it or died) or COMMAND ended, it kills every
 * process below it, including grandchildren that left the group, until none is left. Then it writes
 * one JSON line to REPORT_FD: how the command ended, its resource use and how many processes
 * outlived it. Returns the exit code of the guard itself.
 *
 * `prony guard --join SOCKET -- COMMAND...`, started by MPI's launcher, gets the CPUs and all
 * descriptors from the socket. It ends only when the parent closes LIFE_FD, so that the launcher
 * does not end the other ranks before the parent has seen why this one ended. */
int guard_main(int argc, char **argv);

/* Connects to the socket, sends the process's rank (an int32_t), and takes the message of the
 * parent: the text of CPUS with its terminator, and the descriptors that get the numbers from 1 on.
 * Tells stderr what fails. */
enum { GUARD_JOIN_FDS_MAX = 9, GUARD_CPUS_BYTES = 8192 };
bool guard_join(const char *path, char *cpus, size_t bytes);

#endif
