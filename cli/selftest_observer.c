/*
 * Measures the cost of the sensors: their CPU time, and how much they slow down work on all cores.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process_tree.h"
#include "cli/selftest_parts.h"
#include "sensors/sampling.h"
#include "stats/contrast.h"

/* Long enough that every sensor is sampled once, if there is time. */
#define BLOCK_MAX_NS INT64_C(1000000000)
#define BLOCK_MIN_NS INT64_C(50000000)
enum { PAIRS_MIN = 2, PAIRS_MAX = 64, ROUNDS_OF_WORK = 1000 };

/* A thread that works and counts pieces of work. */
struct worker {
	pthread_t thread;
	_Alignas(64) atomic_ulong done;
	atomic_bool *stop;
	uint64_t result;
};

static void *work(void *data)
{
	struct worker *worker = data;
	uint64_t x = 1;

	while (!atomic_load_explicit(worker->stop, memory_order_relaxed)) {
		for (int i = 0; i < ROUNDS_OF_WORK; i++)
			x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		atomic_fetch_add_explicit(&worker->done, 1, memory_order_relaxed);
	}
	worker->result = x;
	return NULL;
}

static unsigned long done_by(struct worker *workers, int count)
{
	unsigned long sum = 0;

	for (int i = 0; i < count; i++)
		sum += atomic_load_explicit(&workers[i].done, memory_order_relaxed);
	return sum;
}

/* Nanoseconds per piece of work over all workers in one block. */
static enum prony_status block(struct worker *workers, int count, int64_t length_ns, bool watched,
			       int64_t *cpu_ns, double *ns_each, struct error *err)
{
	struct sampling *sampling = NULL;
	struct process_record record;
	enum prony_status status = PRONY_OK;

	if (watched)
		status = sampling_start(PROCESS_HERE, getpid(), NULL, 0, NULL, &sampling, err);
	if (status != PRONY_OK)
		return status;
	int64_t begin = clock_monotonic_ns();
	unsigned long before = done_by(workers, count);
	clock_sleep_until_ns(begin + length_ns);
	double passed = (double)(clock_monotonic_ns() - begin);
	unsigned long done = done_by(workers, count) - before;
	*ns_each = passed / (double)(done > 0 ? done : 1);
	process_record_init(&record);
	sampling_stop(sampling, &record);
	if (watched)
		*cpu_ns += record.sampling_cpu_ns;
	process_record_release(&record);
	return PRONY_OK;
}

static enum prony_status start_cost(struct observer *out, struct error *err)
{
	struct sampling *sampling = NULL;
	struct process_record record;
	enum prony_status status =
		sampling_start(PROCESS_HERE, getpid(), NULL, 0, NULL, &sampling, err);

	if (status != PRONY_OK)
		return status;
	process_record_init(&record);
	sampling_stop(sampling, &record);
	out->start_ns = record.sampling_cpu_ns;
	process_record_release(&record);
	return PRONY_OK;
}

/* Alternates blocks with and without sensors: on off, off on, ... */
static enum prony_status run_blocks(struct worker *workers, int count, int64_t limit_ns,
				    struct observer *out, struct error *err)
{
	double with[PAIRS_MAX], without[PAIRS_MAX];
	int64_t deadline = clock_monotonic_ns() + limit_ns, cpu_ns = 0;
	int64_t each_ns = limit_ns / (4 * PAIRS_MIN);
	struct contrast contrast;
	enum prony_status status = start_cost(out, err);
	size_t pair = 0;

	each_ns = each_ns > BLOCK_MAX_NS ? BLOCK_MAX_NS : each_ns;
	each_ns = each_ns < BLOCK_MIN_NS ? BLOCK_MIN_NS : each_ns;
	while (status == PRONY_OK && pair < PAIRS_MAX &&
	       (pair < PAIRS_MIN || clock_monotonic_ns() + 2 * each_ns <= deadline)) {
		bool first = pair % 2 == 0;
		double *each[2] = {first ? &with[pair] : &without[pair],
				   first ? &without[pair] : &with[pair]};
		status = block(workers, count, each_ns, first, &cpu_ns, each[0], err);
		if (status == PRONY_OK)
			status = block(workers, count, each_ns, !first, &cpu_ns, each[1], err);
		pair++;
	}
	if (status != PRONY_OK)
		return status;
	contrast_paired(without, with, pair, &contrast);
	out->pairs = pair;
	double sampled = (double)cpu_ns - (double)pair * (double)out->start_ns;
	out->share = fmax(sampled, 0) / ((double)pair * (double)each_ns);
	out->slowdown = contrast.ratio;
	out->slowdown_low = contrast.low;
	out->slowdown_high = contrast.high;
	return PRONY_OK;
}

enum prony_status observer_measure(int cores, int64_t limit_ns, struct observer *out,
				   struct error *err)
{
	atomic_bool stop = false;
	/* A child process for the sensors to observe. */
	pid_t child = fork();
	int started = 0, code = 0;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	struct worker *workers = NULL;
	if (posix_memalign((void **)&workers, 64, (size_t)cores * sizeof *workers))
		memory_exhausted("threads");
	for (; started < cores && code == 0; started += code == 0) {
		workers[started].stop = &stop;
		atomic_init(&workers[started].done, 0);
		code = pthread_create(&workers[started].thread, NULL, work, &workers[started]);
	}
	enum prony_status status =
		child < 0 ? error_set(err, PRONY_INTERNAL, "cannot start a child")
		: code	  ? error_errno(err, PRONY_INTERNAL, code, "cannot start %d threads", cores)
			  : run_blocks(workers, cores, limit_ns, out, err);
	atomic_store(&stop, true);
	for (int i = 0; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	free(workers);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return status;
}
