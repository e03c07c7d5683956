/* `prony worker-check`: exercises any worker against docs/worker-protocol.md. */
#ifndef PRONY_CONFORMANCE_CHECK_H
#define PRONY_CONFORMANCE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum check_level {
	CHECK_PROTOCOL, /* it answers every verb, records are sane, hostile requests do not upset it
			 */
	CHECK_NUMERIC	/* and it passes the parity gate on mlp and lenet in every stage that it
			   offers */
};

struct check_spec {
	const char *self;	 /* our executable: the guard is `self guard` */
	const char *const *argv; /* the worker's command line */
	enum check_level level;
	int64_t timeout_ns;	    /* patience with one request */
	int64_t memory_limit_bytes; /* resident memory of the worker's tree; 0 = none */
	const volatile int *stop;   /* set by a signal handler; may be NULL */
};

struct check_sink {
	/* One line per check; detail says why it failed, "" when it passed. */
	void (*result)(void *context, const char *check, bool passed, const char *detail);
	void *context;
};

/*
 * Returns PRONY_OK when everything passed; PRONY_MISMATCH when not, with the number of failures in
 * err. A worker that fails at ordinary work is not asked for more. Other errors are our own, or
 * PRONY_INTERRUPTED. The caller ignores SIGPIPE.
 */
enum prony_status worker_check(const struct check_spec *spec, const struct check_sink *sink,
			       struct error *err);

#endif
