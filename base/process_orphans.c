/* Adopted children: descendants whose own parent has ended. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/process_internal.h"
#include "base/process_tree.h"

#define END_WAIT_NS INT64_C(20000000000)
#define NAP_NS INT64_C(1000000)

/* The children that process_start started and that are not reaped yet. */
static struct {
	pthread_mutex_t mutex;
	pid_t *pids;
	size_t count, capacity;
} started = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void process_note_start(pid_t pid)
{
	pthread_mutex_lock(&started.mutex);
	started.pids =
		memory_grow(started.pids, started.count, &started.capacity, sizeof(*started.pids));
	started.pids[started.count++] = pid;
	pthread_mutex_unlock(&started.mutex);
}

void process_note_end(pid_t pid)
{
	pthread_mutex_lock(&started.mutex);
	for (size_t i = 0; i < started.count; i++)
		if (started.pids[i] == pid)
			started.pids[i--] = started.pids[--started.count];
	pthread_mutex_unlock(&started.mutex);
}

static bool is_ours(pid_t pid)
{
	bool found = false;

	pthread_mutex_lock(&started.mutex);
	for (size_t i = 0; i < started.count && !found; i++)
		found = started.pids[i] == pid;
	pthread_mutex_unlock(&started.mutex);
	return found;
}

static int list_orphans(pid_t *out)
{
	int count = 0, all = process_children(PROCESS_HERE, getpid(), out, PROCESS_ORPHANS_MAX);

	for (int i = 0; i < all; i++)
		if (!is_ours(out[i]))
			out[count++] = out[i];
	return count;
}

void process_adopt_orphans(struct process_orphans *before)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	before->count = list_orphans(before->pids);
}

static bool holds(const struct process_orphans *before, pid_t pid)
{
	for (int i = 0; i < before->count; i++)
		if (before->pids[i] == pid)
			return true;
	return false;
}

int process_end_orphans(const struct process_orphans *before)
{
	int64_t deadline_ns = clock_monotonic_ns() + END_WAIT_NS;
	int ended = 0;

	/* Killing a process makes its children come to us, so repeat until none are left. */
	for (bool found = true; found && clock_monotonic_ns() < deadline_ns;) {
		pid_t pids[PROCESS_ORPHANS_MAX];
		int count = list_orphans(pids);

		found = false;
		for (int i = 0; i < count; i++) {
			if (holds(before, pids[i]))
				continue;
			found = true;
			kill(pids[i], SIGKILL);
			ended += waitpid(pids[i], NULL, WNOHANG) == pids[i];
		}
		if (found)
			clock_sleep_until_ns(clock_monotonic_ns() + NAP_NS);
	}
	return ended;
}
