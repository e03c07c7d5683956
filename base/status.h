/* Outcomes of functions: one table of code, text and exit code of the program. */
#ifndef PRONY_BASE_STATUS_H
#define PRONY_BASE_STATUS_H

/*
 * X(code, text, exit code). Exit codes follow docs/semantics.md: 64 usage, 65 bad suite, model or
 * data, 70 internal, 74 storage, 130 interrupted. A failing worker makes its cell fail (exit code
 * 1), not the program.
 */
#define PRONY_STATUSES(X)                                                                          \
	X(OK, "ok", 0)                                                                             \
	X(USAGE, "usage error", 64)                                                                \
	X(BAD_INPUT, "bad input", 65)                                                              \
	X(INTERNAL, "internal error", 70)                                                          \
	X(NOMEM, "host memory exhausted", 70)                                                      \
	X(IO, "input/output error", 74)                                                            \
	X(STORE, "storage error", 74)                                                              \
	X(INTERRUPTED, "interrupted", 130)                                                         \
	X(UNSUPPORTED, "unsupported", 1)                                                           \
	X(MISSING, "missing", 1)                                                                   \
	X(OUT_OF_MEMORY, "out of memory", 1)                                                       \
	X(TIMEOUT, "timeout", 1)                                                                   \
	X(CRASHED, "crashed", 1)                                                                   \
	X(MISMATCH, "mismatch", 1)                                                                 \
	X(INVALID, "invalid", 1)                                                                   \
	X(PROTOCOL, "worker broke the protocol", 1)

enum prony_status {
#define X(code, text, exit_code) PRONY_##code,
	PRONY_STATUSES(X)
#undef X
		PRONY_STATUS_COUNT
};

/* Static English text of a status; never NULL, also for values outside the table. */
const char *prony_status_text(enum prony_status status);

/* Exit code of the program for a status that ends it. */
int prony_status_exit(enum prony_status status);

#endif
