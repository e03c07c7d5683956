/* `prony worker-check`: exercises any worker against docs/worker-protocol.md. */
#ifndef PRONY_CONFORMANCE_CHECK_H
#define PRONY_CONFORMANCE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "parity/gate_verdict.h"

enum check_level {
	CHECK_PROTOCOL, /* it answers every verb, records are sane, hostile requests do not upset it
			 */
	CHECK_NUMERIC	/* and it passes the parity gate in every stage that it offers, on one
			   of the networks at least and on all that it does not refuse */
};

struct network;

struct check_spec {
	const char *self;	 /* our executable: the guard is `self guard` */
	const char *const *argv; /* the worker's command line */
	enum check_level level;
	int64_t timeout_ns;		       /* patience with one request */
	int64_t memory_limit_bytes;	       /* resident memory of the worker's tree; 0 = none */
	const char *device;		       /* that hello asks for; NULL = "cpu" */
	const struct network *const *networks; /* to compute; NULL = mlp and lenet */
	size_t network_count;
	const char *keep;	  /* an existing folder in which the bundles stay; NULL = none do */
	const volatile int *stop; /* set by a signal handler; may be NULL */
};

enum check_outcome {
	CHECK_PASSED,
	CHECK_FAILED,
	CHECK_SKIPPED, /* the worker honestly refused a network */
};

#define CHECK_FIGURE_BYTES (GATE_CHECK_BYTES + 100)
/* "change of fc1.weight differs from the reference by 7, allowed 0.0001, 8.00 times the
 * reference's": one of the figures. */
void check_figure_text(const struct gate_check *figure, char text[CHECK_FIGURE_BYTES]);

struct check_sink {
	/*
	 * One call per check; detail says why it failed or was skipped, "" when it passed. Figures
	 * (borrowed; NULL: there are none): all that a gate compared, by step.
	 */
	void (*result)(void *context, const char *check, enum check_outcome outcome,
		       const char *detail, const struct gate_check *figures, size_t figure_count);
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
