/* The worker: one process that serves the requests of the parent with one adapter, known only as a
 * table. */
#ifndef PRONY_WORKER_WORKER_H
#define PRONY_WORKER_WORKER_H

#include "adapters/adapter.h"
#include "base/error.h"

struct worker_options {
	const char *adapter; /* its name in adapter_registry */
	const char *library; /* path that the adapter loads; NULL for built-in adapters */
	const char *option;  /* private options of null and fake; NULL or "" = none */
};

/*
 * Serves requests on the descriptors that the environment names (docs/worker-protocol.md) until
 * close or the end of the requests. If the adapter is unknown or absent, every request gets that as
 * its reply, because the parent reads reasons in replies. Returns the exit code of the process: 0,
 * or that of `err`, which is set when the descriptors are unusable (a worker started by hand) or
 * stop working.
 *
 * The caller should flush its streams and leave with _exit: the destructors of some frameworks
 * crash or hang once their threads have stopped, after everything has been delivered.
 */
int worker_main(const struct worker_options *options, struct error *err);

#endif
