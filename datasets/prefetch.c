#include "datasets/prefetch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parallel.h"

/* Samples per core that are decoded at once: at the end of a batch some cores are idle. */
enum { SAMPLES_PER_CORE = 4 };

struct prefetch {
	struct batch_stream *stream;
	int64_t batch; /* samples */
	struct prefetch_ring ring;
	int64_t *labels; /* of the last 2 * slots batches */
	float **x;	 /* one per slot: where the next batches go */
	int64_t **y;
	int wake_fd;
	pthread_t thread;
	bool started;
	pthread_mutex_t mutex; /* protects everything below */
	pthread_cond_t changed;
	bool go, stop, resting;
	int64_t filled, freed;
	struct error err; /* the reason why it stopped */
};

enum prony_status prefetch_open(const struct dataset *dataset, const char *folder,
				const struct batch_request *request, struct prefetch **out,
				struct error *err)
{
	struct prefetch *prefetch = memory_alloc(sizeof(*prefetch));

	*prefetch = (struct prefetch){.batch = request->batch,
				      .ring = {.ready_fd = -1, .free_fd = -1},
				      .wake_fd = -1,
				      .resting = true,
				      .err = ERROR_INIT};
	pthread_mutex_init(&prefetch->mutex, NULL);
	pthread_cond_init(&prefetch->changed, NULL);
	enum prony_status status =
		batch_stream_open(dataset, folder, request, &prefetch->stream, err);
	if (status == PRONY_OK)
		status = batch_stream_hold(prefetch->stream, PREFETCH_HELD_BYTES, err);
	if (status == PRONY_OK)
		*out = prefetch;
	else
		prefetch_close(prefetch);
	return status;
}

/* Stops with an error; the mutex is held. Closing the pipe tells the user of the ring that no more
 * batches come. */
static void give_up(struct prefetch *prefetch, const struct error *why)
{
	if (prefetch->err.code == PRONY_OK)
		prefetch->err = *why;
	if (prefetch->ring.ready_fd >= 0)
		close(prefetch->ring.ready_fd);
	prefetch->ring.ready_fd = -1;
}

/* Counts the returned slots. The mutex is held. */
static void count_freed(struct prefetch *prefetch)
{
	struct error why = ERROR_INIT;
	char bytes[256];
	ssize_t got;

	while ((got = read(prefetch->ring.free_fd, bytes, sizeof(bytes))) > 0)
		prefetch->freed += got;
	if (prefetch->freed <= prefetch->filled)
		return;
	error_set(&why, PRONY_INVALID,
		  "it returned %" PRId64 " batches, but received only %" PRId64, prefetch->freed,
		  prefetch->filled);
	give_up(prefetch, &why);
}

/* How many slots to fill at once: enough to keep the cores busy, at least one. */
static int slots_at_once(const struct prefetch *prefetch)
{
	int64_t free_slots = prefetch->ring.slots - (prefetch->filled - prefetch->freed);
	int64_t wanted = (SAMPLES_PER_CORE * (int64_t)parallel_cores() + prefetch->batch - 1) /
			 prefetch->batch;

	return (int)(wanted < free_slots ? wanted : free_slots);
}

static void aim(struct prefetch *prefetch, int count)
{
	for (int i = 0; i < count; i++) {
		size_t slot = (size_t)((prefetch->filled + i) % prefetch->ring.slots);
		char *begin = (char *)prefetch->ring.memory + slot * prefetch->ring.stride;

		prefetch->x[i] = (float *)(void *)begin;
		prefetch->y[i] = (int64_t *)(void *)(begin + prefetch->ring.labels);
	}
}

/* The mutex is held. */
static void hand_over(struct prefetch *prefetch, int count)
{
	static const char bytes[4096];

	for (int i = 0; i < count; i++) {
		int64_t kept = (prefetch->filled + i) % (2 * (int64_t)prefetch->ring.slots);

		memcpy(prefetch->labels + kept * prefetch->batch, prefetch->y[i],
		       (size_t)prefetch->batch * sizeof(*prefetch->labels));
	}
	prefetch->filled += count;
	/* If the reader has gone, the client reports it. */
	for (int left = count; left > 0 && prefetch->ring.ready_fd >= 0;) {
		size_t part = (size_t)left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		ssize_t written = write(prefetch->ring.ready_fd, bytes, part);

		if (written < 0 && errno != EINTR)
			break;
		left -= written > 0 ? (int)written : 0;
	}
}

/* Waits, without the mutex, until a slot is returned or the parent wakes us. */
static void wait_for_slots(struct prefetch *prefetch)
{
	struct pollfd fds[2] = {{.fd = prefetch->ring.free_fd, .events = POLLIN},
				{.fd = prefetch->wake_fd, .events = POLLIN}};
	uint64_t woken;

	pthread_mutex_unlock(&prefetch->mutex);
	poll(fds, 2, -1);
	if (fds[1].revents && read(prefetch->wake_fd, &woken, sizeof(woken)) < 0)
		(void)woken;
	/* The reader closed its end: no slot will be returned. */
	bool gone = (fds[0].revents & (POLLHUP | POLLERR)) && !(fds[0].revents & POLLIN);
	pthread_mutex_lock(&prefetch->mutex);
	if (gone) {
		struct error why = ERROR_INIT;

		error_set(&why, PRONY_CRASHED, "the worker closed the ring of batches");
		give_up(prefetch, &why);
	}
}

/* The mutex is held. */
static void fill_slots(struct prefetch *prefetch)
{
	struct error why = ERROR_INIT;

	count_freed(prefetch);
	int count = slots_at_once(prefetch);
	if (prefetch->err.code != PRONY_OK)
		return;
	if (count == 0) {
		wait_for_slots(prefetch);
		return;
	}
	aim(prefetch, count);
	pthread_mutex_unlock(&prefetch->mutex);
	enum prony_status status =
		batch_stream_fill(prefetch->stream, count, prefetch->x, prefetch->y, &why);
	pthread_mutex_lock(&prefetch->mutex);
	if (status == PRONY_OK)
		hand_over(prefetch, count);
	else
		give_up(prefetch, &why);
}

static void *run(void *context)
{
	struct prefetch *prefetch = context;

	pthread_mutex_lock(&prefetch->mutex);
	while (!prefetch->stop) {
		prefetch->resting = !prefetch->go || prefetch->err.code != PRONY_OK;
		if (!prefetch->resting) {
			fill_slots(prefetch);
			continue;
		}
		pthread_cond_broadcast(&prefetch->changed);
		pthread_cond_wait(&prefetch->changed, &prefetch->mutex);
	}
	pthread_mutex_unlock(&prefetch->mutex);
	return NULL;
}

/* Block signals, which the main thread handles. Threads started here inherit its processors. */
static int start_thread(struct prefetch *prefetch, const int *cpus, int cpu_count)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; cpus && i < cpu_count; i++)
		if (cpus[i] >= 0 && cpus[i] < CPU_SETSIZE)
			CPU_SET((unsigned)cpus[i], &set);
	pthread_attr_init(&attributes);
	if (cpus && CPU_COUNT(&set) > 0)
		pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int code = pthread_create(&prefetch->thread, &attributes, run, prefetch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return code;
}

enum prony_status prefetch_start(struct prefetch *prefetch, const struct prefetch_ring *ring,
				 const int *cpus, int cpu_count, struct error *err)
{
	size_t slots = (size_t)ring->slots;

	prefetch->ring = *ring;
	prefetch->labels =
		memory_alloc(2 * slots * (size_t)prefetch->batch * sizeof(*prefetch->labels));
	prefetch->x = memory_alloc(slots * sizeof(*prefetch->x));
	prefetch->y = memory_alloc(slots * sizeof(*prefetch->y));
	prefetch->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int code = prefetch->wake_fd < 0 ? errno : start_thread(prefetch, cpus, cpu_count);
	if (code)
		return error_errno(err, PRONY_INTERNAL, code, "cannot start the prefetch thread");
	prefetch->started = true;
	return PRONY_OK;
}

/* Wakes the thread that waits for slots. The mutex is held. */
static void wake(struct prefetch *prefetch)
{
	const uint64_t one = 1;

	pthread_cond_broadcast(&prefetch->changed);
	if (write(prefetch->wake_fd, &one, sizeof(one)) < 0)
		(void)one; /* it is awake */
}

void prefetch_go(struct prefetch *prefetch)
{
	pthread_mutex_lock(&prefetch->mutex);
	prefetch->go = true;
	prefetch->resting = false;
	wake(prefetch);
	pthread_mutex_unlock(&prefetch->mutex);
}

enum prony_status prefetch_rest(struct prefetch *prefetch, struct prefetch_figures *out,
				struct error *err)
{
	pthread_mutex_lock(&prefetch->mutex);
	prefetch->go = false;
	wake(prefetch);
	while (prefetch->started && !prefetch->resting)
		pthread_cond_wait(&prefetch->changed, &prefetch->mutex);
	if (prefetch->ring.free_fd >= 0)
		count_freed(prefetch);
	*out = (struct prefetch_figures){.filled = prefetch->filled,
					 .freed = prefetch->freed,
					 .times = batch_stream_times(prefetch->stream)};
	struct error why = prefetch->err;
	pthread_mutex_unlock(&prefetch->mutex);
	return why.code == PRONY_OK ? PRONY_OK : error_set(err, why.code, "%s", why.text);
}

const int64_t *prefetch_labels(const struct prefetch *prefetch, int64_t batch)
{
	int64_t kept = 2 * (int64_t)prefetch->ring.slots;

	if (batch < 0 || batch >= prefetch->filled || batch < prefetch->filled - kept)
		return NULL;
	return prefetch->labels + batch % kept * prefetch->batch;
}

void prefetch_close(struct prefetch *prefetch)
{
	if (!prefetch)
		return;
	if (prefetch->started) {
		pthread_mutex_lock(&prefetch->mutex);
		prefetch->stop = true;
		wake(prefetch);
		pthread_mutex_unlock(&prefetch->mutex);
		pthread_join(prefetch->thread, NULL);
	}
	int fds[] = {prefetch->ring.ready_fd, prefetch->ring.free_fd, prefetch->wake_fd};
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_cond_destroy(&prefetch->changed);
	pthread_mutex_destroy(&prefetch->mutex);
	batch_stream_close(prefetch->stream);
	free(prefetch->labels);
	free(prefetch->x);
	free(prefetch->y);
	free(prefetch);
}
