#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/memory.h"

#define THREADS_MAX 256
/* Below this, starting a thread costs more than it saves. */
#define MULTIPLICATIONS_PER_THREAD (INT64_C(1) << 20)

struct job {
	void (*work)(void *context, struct parallel_items *items);
	void *context;
	struct parallel_items items;
};

int64_t parallel_next(struct parallel_items *items)
{
	int64_t item = atomic_fetch_add_explicit(&items->next, 1, memory_order_relaxed);

	return item < items->count ? item : -1;
}

/* The kernel refuses the call when there are more cores than cpu_set_t has bits; then use one
 * thread. */
int parallel_cores(void)
{
	cpu_set_t allowed;
	int cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;

	return cores < THREADS_MAX ? cores : THREADS_MAX;
}

int parallel_threads(int64_t multiplications)
{
	int64_t threads = multiplications / MULTIPLICATIONS_PER_THREAD;

	if (threads < 2)
		return 1;
	int64_t cores = parallel_cores();
	return (int)(threads < cores ? threads : cores);
}

static void *run_thread(void *argument)
{
	struct job *job = argument;

	job->work(job->context, &job->items);
	return NULL;
}

/* Helper threads block all signals, so that the main thread receives them. */
static int start_helpers(struct job *job, pthread_t *helpers, int wanted)
{
	sigset_t all, before;
	int started = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started < wanted && pthread_create(&helpers[started], NULL, run_thread, job) == 0)
		started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

void parallel_run(int64_t count, int threads,
		  void (*work)(void *context, struct parallel_items *items), void *context)
{
	struct job job = {.work = work, .context = context, .items = {.count = count}};
	int helpers = threads < count ? threads - 1 : (int)count - 1;

	if (helpers < 1) {
		work(context, &job.items);
		return;
	}
	pthread_t *handles = memory_alloc((size_t)helpers * sizeof(*handles));
	int started = start_helpers(&job, handles, helpers);
	work(context, &job.items);
	for (int i = 0; i < started; i++)
		pthread_join(handles[i], NULL);
	free(handles);
}
