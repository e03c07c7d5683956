/* `prony worker-check`: checks any worker against docs/worker-protocol.md. */
#ifndef PRONY_CONFORMANCE_CHECK_H
#define PRONY_CONFORMANCE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "parity/gate_verdict.h"

enum check_level {
	CHECK_PROTOCOL, /* it answers every verb, its records are valid, invalid requests do no harm
			 */
	CHECK_NUMERIC /* plus: it passes the parity gate in every stage that it offers, on at least
			 one network and on all that it does not refuse */
};

struct network;

struct check_spec {
	const char *self;	 /* our executable: the guard is `self guard` */
	const char *const *argv; /* the worker's command line */
	enum check_level level;
	int64_t timeout_ns;		       /* time limit of a request */
	int64_t memory_limit_bytes;	       /* resident memory of the worker's tree; 0 = none */
	const char *device;		       /* device requested in hello; NULL = "cpu" */
	const struct network *const *networks; /* networks to compute; NULL = mlp and lenet */
	size_t network_count;
	const char *keep;	  /* an existing folder that keeps the bundles; NULL = none */
	const volatile int *stop; /* set by a signal handler; may be NULL */
};

enum check_outcome {
	CHECK_PASSED,
	CHECK_FAILED,
	CHECK_SKIPPED, /* the worker refused a network in `supports` */
};

#define CHECK_FIGURE_BYTES (GATE_CHECK_BYTES + 100)
/* Text of a figure: "change of fc1.weight differs from the reference by 7, allowed 0.0001, 8.00
 * times the reference's". */
void check_figure_text(const struct gate_check *figure, char text[CHECK_FIGURE_BYTES]);

struct check_sink {
	/* Called once per check. `detail` says why it failed or was skipped, "" when it passed.
	 * `figures` (borrowed; NULL: none) has everything that a gate compared, by step. */
	void (*result)(void *context, const char *check, enum check_outcome outcome,
		       const char *detail, const struct gate_check *figures, size_t figure_count);
	void *context;
};

/* Returns PRONY_OK when every check passed; otherwise PRONY_MISMATCH with the number of failures in
 * err. If the ordinary checks fail, the others are not run. Other errors are prony's own, or
 * PRONY_INTERRUPTED. The caller must ignore SIGPIPE. */
enum prony_status worker_check(const struct check_spec *spec, const struct check_sink *sink,
			       struct error *err);

#endif
