/* The measuring loop around an adapter that it knows only as a table; one process per worker. */
#ifndef PRONY_WORKER_WORKER_H
#define PRONY_WORKER_WORKER_H

#include "adapters/adapter.h"
#include "base/error.h"

struct worker_options {
	const char *adapter; /* its name in adapter_registry */
	const char *library; /* path that the adapter loads; NULL for built-in adapters */
	const char *option;  /* private knobs of null and fake; NULL or "" = none */
};

/*
 * Serves requests on the descriptors that the environment names (docs/worker-protocol.md) until
 * close or the end of the requests. An adapter that is unknown or absent is answered to every
 * request, because the parent looks for reasons in replies. Returns the exit code of the process:
 * 0, or that of `err`, which is set when the descriptors are unusable (somebody started a worker by
 * hand) or stop working.
 *
 * The caller should flush its streams and leave with _exit: the destructors of some frameworks
 * crash or hang once their threads have stopped, after everything has been delivered.
 */
int worker_main(const struct worker_options *options, struct error *err);

#endif
