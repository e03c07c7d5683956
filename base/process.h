/* Child processes: start, wait, capture. Every child is reaped by whoever started it. */
#ifndef PRONY_BASE_PROCESS_H
#define PRONY_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A descriptor that the child gets as number `child`. */
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
	bool new_group;		  /* the child leads a process group of its own */
	const volatile int *stop; /* process_run: kills it once this is not 0; may be NULL */
};

/*
 * fork and exec. A failed exec is an error here, not an exit code 127 (close-on-exec pipe, as libuv
 * does it): PRONY_MISSING when the program is not there, PRONY_IO otherwise. The child has no
 * signal blocked or ignored. Where SIGCHLD was ignored, it no longer is: ends could not be known.
 */
enum prony_status process_start(const struct process_spec *spec, pid_t *pid, struct error *err);

/* How a process ended. */
struct process_end {
	bool signalled;
	int code; /* exit code, or the signal's number */
};

/* Waits for the end; timeout_ns < 0 waits for ever. PRONY_TIMEOUT leaves the child running. */
enum prony_status process_wait(pid_t pid, int64_t timeout_ns, struct process_end *end,
			       struct error *err);

/*
 * Runs a program to its end with stdin from /dev/null and keeps what it printed (stdout and stderr
 * together, at most limit_bytes, the tail if longer) in *output (caller frees; may be NULL).
 * On timeout the child's process group is killed and PRONY_TIMEOUT returned; likewise, with
 * PRONY_INTERRUPTED, when spec->stop is set. A non-zero exit code is not an error here: look at
 * *end.
 */
enum prony_status process_run(const struct process_spec *spec, int64_t timeout_ns,
			      size_t limit_bytes, char **output, struct process_end *end,
			      struct error *err);

/*
 * Processes whose parent ended come to us from now on (prctl(2), PR_SET_CHILD_SUBREAPER) instead of
 * to the first process of the machine; *before notes those that have come already.
 */
enum { PROCESS_ORPHANS_MAX = 256 };
struct process_orphans {
	pid_t pids[PROCESS_ORPHANS_MAX];
	int count;
};
void process_adopt_orphans(struct process_orphans *before);

/* Kills and reaps those that have come since, and all below them, for 20 s at most; how many. What
 * process_start started is none. */
int process_end_orphans(const struct process_orphans *before);

/* Finds a program on PATH; caller frees; NULL when there is none. */
char *process_find(const char *program);

/* Text such as "killed by signal 9 (Killed)" or "exit code 3". */
void process_end_text(const struct process_end *end, char *out, size_t out_bytes);

#endif
