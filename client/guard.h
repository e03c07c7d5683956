/* The guard: a small process above each worker that ends the whole tree below it when the parent
 * dies. */
#ifndef PRONY_CLIENT_GUARD_H
#define PRONY_CLIENT_GUARD_H

/* Runs `prony guard LIFE_FD REPORT_FD CPUS -- COMMAND...`. It leads a session and process group, is
 * the child subreaper (prctl), starts COMMAND with the remaining descriptors, and waits. When
 * LIFE_FD reaches end of file (the parent closed it or died) or COMMAND ended, it kills every
 * process below it, including grandchildren that left the group, until none is left. Then it writes
 * one JSON line to REPORT_FD: how the command ended, its resource use and how many processes
 * outlived it. Returns the exit code of the guard itself. */
int guard_main(int argc, char **argv);

#endif
