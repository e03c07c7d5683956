#include "ceilings/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

struct team {
	const struct team_work *work;
	pthread_barrier_t gate; /* before and after each piece */
	bool over;
};

struct member {
	struct team *team;
	pthread_t thread;
	size_t number;
};

static void bind_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	/* If it fails, the thread stays where it is. */
	(void)sched_setaffinity(0, sizeof(one), &one);
}

static void *run_member(void *data)
{
	struct member *member = data;
	struct team *team = member->team;

	bind_to(team->work->cpus[member->number]);
	for (;;) {
		pthread_barrier_wait(&team->gate);
		if (team->over)
			return NULL;
		team->work->piece(team->work->data, member->number, member->number + 1);
		pthread_barrier_wait(&team->gate);
	}
}

static double time_pieces(struct team *team, int64_t limit_ns)
{
	int64_t deadline = clock_monotonic_ns() + limit_ns, best = INT64_MAX;

	for (int times = 0; times < team->work->times_min || clock_monotonic_ns() < deadline;
	     times++) {
		pthread_barrier_wait(&team->gate);
		int64_t begin = clock_monotonic_ns();
		team->work->piece(team->work->data, 0, 1);
		pthread_barrier_wait(&team->gate);
		int64_t took = clock_monotonic_ns() - begin;
		best = took < best ? took : best;
	}
	team->over = true;
	pthread_barrier_wait(&team->gate);
	return (double)(best > 0 ? best : 1);
}

enum prony_status team_best(const struct team_work *work, int64_t limit_ns, double *best_ns,
			    struct error *err)
{
	struct team *team = memory_alloc(sizeof(*team));
	struct member *members = memory_alloc((size_t)work->count * sizeof(*members));
	cpu_set_t before;
	bool known = sched_getaffinity(0, sizeof(before), &before) == 0;

	*team = (struct team){.work = work};
	pthread_barrier_init(&team->gate, NULL, (unsigned)work->count);
	for (int i = 1; i < work->count; i++) {
		members[i] = (struct member){.team = team, .number = (size_t)i};
		int code = pthread_create(&members[i].thread, NULL, run_member, &members[i]);
		/* The started threads would wait for the missing ones for ever, so their barrier
		 * must not be destroyed. */
		if (code)
			return error_errno(err, PRONY_INTERNAL, code, "cannot start %d threads",
					   work->count);
	}
	bind_to(work->cpus[0]);
	*best_ns = time_pieces(team, limit_ns);
	for (int i = 1; i < work->count; i++)
		pthread_join(members[i].thread, NULL);
	if (known)
		(void)sched_setaffinity(0, sizeof(before), &before);
	pthread_barrier_destroy(&team->gate);
	free(members);
	free(team);
	return PRONY_OK;
}
