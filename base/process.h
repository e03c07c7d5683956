/* Child processes: start, wait, capture. Whoever starts a child reaps it. */
#ifndef PRONY_BASE_PROCESS_H
#define PRONY_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A file descriptor that the child receives as number `child`. */
struct process_fd {
	int parent, child;
};

struct process_spec {
	const char *const *argv;	/* NULL-terminated; argv[0] searched on PATH */
	const char *const *environment; /* "NAME=value" rows added to ours (or "NAME" to remove);
					   may be NULL */
	const char *directory;		/* working directory; NULL = ours */
	const struct process_fd *fds;	/* all other descriptors above 2 are closed in the child */
	size_t fd_count;
	bool new_group; /* the child leads a process group of its own */
	const volatile int
		*stop; /* process_run kills the child when this becomes non-zero; may be NULL */
};

/* fork and exec. A failed exec is reported as an error here, not as exit code 127, through a
 * close-on-exec pipe as in libuv: PRONY_MISSING when the program does not exist, PRONY_IO
 * otherwise. The child starts with no signal blocked or ignored. If SIGCHLD was ignored in this
 * process, it is reset, because exit codes would be lost. */
enum prony_status process_start(const struct process_spec *spec, pid_t *pid, struct error *err);

/* How a process ended. */
struct process_end {
	bool signalled;
	int code; /* exit code, or the signal's number */
};

/* Waits for the end; timeout_ns < 0 waits for ever. PRONY_TIMEOUT leaves the child running. */
enum prony_status process_wait(pid_t pid, int64_t timeout_ns, struct process_end *end,
			       struct error *err);

/* Runs a program to its end with stdin from /dev/null. Keeps its stdout and stderr together in
 * *output (the last limit_bytes; the caller frees it; may be NULL). On timeout, kills the child's
 * process group and returns PRONY_TIMEOUT; likewise PRONY_INTERRUPTED when spec->stop is set. A
 * non-zero exit code is not an error: check *end. */
enum prony_status process_run(const struct process_spec *spec, int64_t timeout_ns,
			      size_t limit_bytes, char **output, struct process_end *end,
			      struct error *err);

/* From now on this process adopts orphaned descendants (prctl(2), PR_SET_CHILD_SUBREAPER) instead
 * of init. *before records the children that exist already. */
enum { PROCESS_ORPHANS_MAX = 256 };
struct process_orphans {
	pid_t pids[PROCESS_ORPHANS_MAX];
	int count;
};
void process_adopt_orphans(struct process_orphans *before);

/* Kills and reaps the orphans that arrived since `before` and everything below them, for at most 20
 * s. Returns their number. Children started by process_start are not counted. */
int process_end_orphans(const struct process_orphans *before);

/* Finds a program on PATH; caller frees; NULL when there is none. */
char *process_find(const char *program);

/* Text such as "killed by signal 9 (Killed)" or "exit code 3". */
void process_end_text(const struct process_end *end, char *out, size_t out_bytes);

#endif
