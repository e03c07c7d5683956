/* `prony worker-check`: exercises any worker against docs/worker-protocol.md. */
#ifndef PRONY_RUN_CHECK_H
#define PRONY_RUN_CHECK_H

#include <stdbool.h>

#include "base/error.h"

enum check_level {
	CHECK_PROTOCOL, /* it answers every verb, records are sane, hostile requests do not upset it */
	CHECK_NUMERIC   /* it passes the parity gate on mlp and lenet in every stage that it offers */
};

struct check_sink {
	/* One line per check; detail says why it failed, "" when it passed. */
	void (*result)(void *context, const char *check, bool passed, const char *detail);
	void *context;
};

/* argv: the worker's command line. Returns PRONY_OK when everything passed, PRONY_MISMATCH when not. */
enum prony_status worker_check(const char *self, const char *const *argv, enum check_level level,
                               const struct check_sink *sink, struct error *err);

#endif
