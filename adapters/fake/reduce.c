#include "adapters/fake/reduce.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapters/fake/options_internal.h"

/* A new file is zero, which is the state before the first barrier. */
struct reduce_file {
	_Atomic uint64_t arrived;
	float gradients[]; /* of rank 0, then of rank 1... */
};

/* Whether a value has a gradient that updates it. */
static bool is_reduced(const struct graph *graph, int i)
{
	return graph->values[i].kind == VALUE_PARAMETER && graph->values[i].gradient >= 0;
}

enum prony_status reduce_open(struct reduce *reduce, const struct target *target,
			      struct executor *executor, int mistake, struct error *err)
{
	const struct graph *graph = executor->graph;
	char path[sizeof target->rendezvous.folder + 16];

	*reduce = (struct reduce){.rank = target->rank,
				  .ranks = target->world_size,
				  .mistake = mistake,
				  .executor = executor};
	if (target->world_size < 2)
		return PRONY_OK;
	for (int i = 0; i < graph->value_count; i++)
		if (is_reduced(graph, i))
			reduce->elements += shape_elements(&graph->values[i].shape);
	reduce->bytes = sizeof(struct reduce_file) +
			(size_t)(reduce->elements * reduce->ranks) * sizeof(float);
	snprintf(path, sizeof path, "%s/gradients", target->rendezvous.folder);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *room = MAP_FAILED;
	if (fd >= 0 && ftruncate(fd, (off_t)reduce->bytes) == 0)
		room = mmap(NULL, reduce->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int code = errno;
	if (fd >= 0)
		close(fd);
	if (room == MAP_FAILED)
		return error_errno(err, PRONY_INTERNAL, code, "fake: cannot map %s", path);
	reduce->file = room;
	executor->reduce = reduce_gradients;
	executor->reduce_context = reduce;
	return PRONY_OK;
}

/* Waits until every rank has come as often as this one. */
static void barrier(struct reduce *reduce)
{
	uint64_t all = ++reduce->waits * (uint64_t)reduce->ranks;

	atomic_fetch_add(&reduce->file->arrived, 1);
	while (atomic_load(&reduce->file->arrived) < all)
		sched_yield();
}

/* Replaces the gradient of a value by the mean over all ranks; `at`: its first element. */
static void average(struct reduce *reduce, int64_t at, float *gradient, int64_t count)
{
	float divisor = reduce->mistake == REDUCE_SUM ? 1 : (float)reduce->ranks;

	for (int64_t i = 0; i < count; i++) {
		float sum = 0;

		for (int rank = 0; rank < reduce->ranks; rank++)
			sum += reduce->file->gradients[rank * reduce->elements + at + i];
		gradient[i] = sum / divisor;
	}
}

void reduce_gradients(void *context)
{
	struct reduce *reduce = context;
	struct executor *ex = reduce->executor;
	float *own = reduce->file->gradients + reduce->rank * reduce->elements;
	int64_t at = 0;

	if (reduce->mistake == REDUCE_NONE)
		return;
	for (int pass = 0; pass < 2; pass++, at = 0) {
		for (int i = 0; i < ex->graph->value_count; i++) {
			const struct value *value = &ex->graph->values[i];
			int64_t count = shape_elements(&value->shape);

			if (!is_reduced(ex->graph, i))
				continue;
			float *gradient = ex->values[value->gradient];
			bool last = at + count == reduce->elements;
			for (int64_t k = 0; pass == 0 && k < count; k++)
				own[at + k] = gradient[k];
			if (pass == 1 && !(last && reduce->mistake == REDUCE_SOME))
				average(reduce, at, gradient, count);
			if (pass == 1 && last && reduce->mistake == REDUCE_OTHER &&
			    reduce->rank == 1)
				ex->values[i][0] += 1e-6F;
			at += count;
		}
		barrier(reduce);
	}
}

void reduce_close(struct reduce *reduce)
{
	if (reduce->file)
		munmap(reduce->file, reduce->bytes);
	reduce->file = NULL;
}
