#include "client/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process_tree.h"
#include "client/client_internal.h"

#define HELPERS_NAP_NS 10000000
#define KILL_NAP_NS 1000000
/* 2 s in all: an interpreter needs 50 ms to end, and 40 times as long on a machine with 40 times
 * the load that it can carry. */
enum { HELPERS_NAPS = 200 };
enum { CHILDREN_MAX = 256, INHERITED_MAX = 64, EXIT_GUARD_USAGE = 64, EXIT_NO_WORKER = 127 };

static void report(int fd, const char *line)
{
	size_t length = strlen(line);
	/* The report may have no reader: the guard exists for the case that the parent died. */
	while (length) {
		ssize_t written = write(fd, line, length);
		if (written <= 0)
			return;
		line += written;
		length -= (size_t)written;
	}
}

/* Binds this process and its children to the CPUs of a list "0,2,3"; "-" binds to none. */
static bool bind_cpus(const char *list)
{
	if (!strcmp(list, "-"))
		return true;
	cpu_set_t set;
	CPU_ZERO(&set);
	for (const char *cursor = list;;) {
		char *end;
		unsigned long cpu = strtoul(cursor, &end, 10);
		if (end == cursor || cpu >= CPU_SETSIZE)
			return false;
		CPU_SET(cpu, &set);
		if (*end == '\0')
			return sched_setaffinity(0, sizeof set, &set) == 0;
		if (*end != ',')
			return false;
		cursor = end + 1;
	}
}

/* Runs in the child: executes the worker, or reports through the pipe why it could not. */
static void become_worker(char **command, int life_fd, int report_fd, int failure_fd, pid_t guard,
			  const sigset_t *mask)
{
	/* If the guard itself is killed, the kernel ends the worker. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard)
		_exit(EXIT_NO_WORKER);
	close(life_fd);
	close(report_fd);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(command[0], command);
	int failure = errno;
	if (write(failure_fd, &failure, sizeof failure) < 0)
		_exit(EXIT_NO_WORKER + 1);
	_exit(EXIT_NO_WORKER);
}

/* Starts the worker. Returns its pid, or -1 after reporting why it could not start. */
static pid_t start_worker(char **command, int life_fd, int report_fd, const sigset_t *mask)
{
	int pipe_fds[2];
	char line[128];
	if (pipe2(pipe_fds, O_CLOEXEC)) {
		snprintf(line, sizeof line, "{\"exec_errno\": %d}\n", errno);
		report(report_fd, line);
		return -1;
	}
	pid_t guard = getpid(), worker = fork();
	if (worker == 0)
		become_worker(command, life_fd, report_fd, pipe_fds[1], guard, mask);
	int failure = worker < 0 ? errno : 0;
	close(pipe_fds[1]);
	if (worker > 0 && read(pipe_fds[0], &failure, sizeof failure) != sizeof failure)
		failure = 0; /* end of file: the exec worked and closed the pipe */
	close(pipe_fds[0]);
	if (!failure) {
		snprintf(line, sizeof line, "{\"pid\": %d}\n", (int)worker);
		report(report_fd, line);
		return worker;
	}
	if (worker > 0)
		waitpid(worker, NULL, 0);
	snprintf(line, sizeof line, "{\"exec_errno\": %d}\n", failure);
	report(report_fd, line);
	return -1;
}

/* A worker that made the guard its tracer (PTRACE_TRACEME) stops at each signal until its tracer
 * lets it go on. */
static void let_go(pid_t worker, int status)
{
	int signal = WSTOPSIG(status);
	bool pass_on = signal != SIGTRAP && signal != SIGSTOP;
	ptrace(PTRACE_DETACH, worker, NULL, (void *)(intptr_t)(pass_on ? signal : 0));
}

/* Waits until the worker has ended (true) or the parent is gone (false). `signal_fd` reads SIGCHLD.
 */
static bool wait_for_either(pid_t worker, int life_fd, int signal_fd, int *status)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = life_fd, .events = POLLIN},
					{.fd = signal_fd, .events = POLLIN}};
		struct signalfd_siginfo ignored;
		/* Without the descriptor, check the worker ten times a second. */
		int ready = poll(fds, signal_fd >= 0 ? 2 : 1, signal_fd >= 0 ? -1 : 100);
		if (ready < 0 && errno != EINTR)
			return false;
		if (fds[1].revents && read(signal_fd, &ignored, sizeof ignored) < 0)
			return false;
		while (waitpid(worker, status, WNOHANG) == worker) {
			if (!WIFSTOPPED(*status))
				return true;
			let_go(worker, *status);
		}
		char byte;
		if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) && read(life_fd, &byte, 1) <= 0)
			return false;
	}
}

/* Waits briefly for helpers of a worker that has ended, such as Python's resource tracker, to end
 * too. */
static void wait_for_helpers(void)
{
	const struct timespec nap = {.tv_nsec = HELPERS_NAP_NS};
	for (int i = 0; i < HELPERS_NAPS; i++) {
		pid_t pid;
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			continue;
		if (pid < 0)
			return;
		nanosleep(&nap, NULL);
	}
}

/* Kills and reaps until no process is left below the guard. Returns how many it had to kill besides
 * the worker. Orphans of killed processes become children of the guard (subreaper), so each round
 * reaches one generation further down. */
static int end_tree(pid_t worker, int *status)
{
	for (int killed = 0;;) {
		pid_t children[CHILDREN_MAX];
		int count = process_children(PROCESS_HERE, getpid(), children, CHILDREN_MAX);
		for (int i = 0; i < count; i++)
			kill(children[i], SIGKILL);
		int ended;
		/* Does not block: while processes come and go the list of children may be
		 * incomplete. */
		pid_t pid = waitpid(-1, &ended, WNOHANG);
		if (pid == 0)
			nanosleep(&(struct timespec){.tv_nsec = KILL_NAP_NS}, NULL);
		else if (pid > 0 && WIFSTOPPED(ended))
			continue;
		else if (pid == worker)
			*status = ended;
		else if (pid > 0 && WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL)
			killed++;
		if (pid < 0 && errno == ECHILD)
			return killed;
	}
}

/* Closes the worker's channels in the guard: the parent detects the worker's end by their end. */
static void close_channels(int life_fd, int report_fd)
{
	for (int fd = 3; fd < INHERITED_MAX; fd++)
		if (fd != life_fd && fd != report_fd)
			close(fd);
}

static int64_t timeval_ns(struct timeval time)
{
	return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

static void report_end(int report_fd, int status, int left_over)
{
	struct rusage usage;
	getrusage(RUSAGE_CHILDREN, &usage);
	bool signalled = WIFSIGNALED(status);
	char line[256];
	snprintf(line, sizeof line,
		 "{\"signalled\": %s, \"code\": %d, \"max_rss_bytes\": %lld, \"user_ns\": %lld, "
		 "\"system_ns\": %lld, \"left_over\": %d}\n",
		 signalled ? "true" : "false", signalled ? WTERMSIG(status) : WEXITSTATUS(status),
		 (long long)usage.ru_maxrss * 1024, (long long)timeval_ns(usage.ru_utime),
		 (long long)timeval_ns(usage.ru_stime), left_over);
	report(report_fd, line);
}

/* Waits until the parent closes the life pipe. */
static void wait_for_parent(int life_fd)
{
	ssize_t got;
	char byte;

	do {
		got = read(life_fd, &byte, 1);
	} while (got > 0 || (got < 0 && errno == EINTR));
}

static int guard_worker(int life_fd, int report_fd, const char *cpus, char **command)
{
	setsid();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, "prony-guard");
	if (!bind_cpus(cpus)) {
		report(report_fd, "{\"error\": \"cannot bind to the requested CPUs\"}\n");
		return EXIT_GUARD_USAGE;
	}
	int status = 0;
	sigset_t children, mask;
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, &mask);
	pid_t worker = start_worker(command, life_fd, report_fd, &mask);
	if (worker < 0)
		return EXIT_NO_WORKER;
	close_channels(life_fd, report_fd);
	/* A signal that came before is still pending. */
	int signal_fd = signalfd(-1, &children, SFD_CLOEXEC);
	if (wait_for_either(worker, life_fd, signal_fd, &status))
		wait_for_helpers();
	int left_over = end_tree(worker, &status);
	report_end(report_fd, status, left_over);
	return 0;
}

int guard_main(int argc, char **argv)
{
	char cpus[GUARD_CPUS_BYTES];

	/* argv: guard LIFE_FD REPORT_FD CPUS -- COMMAND... */
	if (argc >= 6 && !strcmp(argv[4], "--"))
		return guard_worker((int)strtol(argv[1], NULL, 10), (int)strtol(argv[2], NULL, 10),
				    argv[3], argv + 5);
	/* or: guard --join SOCKET -- COMMAND... */
	if (argc < 5 || strcmp(argv[1], "--join") || strcmp(argv[3], "--"))
		return EXIT_GUARD_USAGE;
	if (!guard_join(argv[2], cpus, sizeof(cpus)))
		return EXIT_NO_WORKER;
	int code = guard_worker(FD_LIFE, FD_REPORT, cpus, argv + 4);
	wait_for_parent(FD_LIFE);
	return code;
}
