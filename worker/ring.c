#include "worker/ring.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "samples/protocol.h"

void ring_init(struct ring *ring)
{
	*ring = (struct ring){.ready_fd = -1, .free_fd = -1};
	arena_init(&ring->arena, 0);
}

void ring_release(struct ring *ring)
{
	if (ring->ready_fd >= 0)
		close(ring->ready_fd);
	if (ring->free_fd >= 0)
		close(ring->free_fd);
	arena_release(&ring->arena);
	ring_init(ring);
}

enum prony_status ring_lay_out(struct ring *ring, const struct bundle *bundle, const void *memory,
			       size_t bytes, struct error *err)
{
	const struct graph *graph = &bundle->graph;
	const struct tensor *input = &bundle->inputs.tensors[0];
	const struct tensor *label = bundle->labels.count ? &bundle->labels.tensors[0] : NULL;
	size_t slots = (size_t)bundle->recipe.slots, wanted = 0;
	struct ring_layout layout = ring_layout_of((uint64_t)tensor_bytes(input),
						   (uint64_t)graph_batch(graph) * sizeof(int64_t));

	if (ring->ready_fd < 0 || !memory)
		return error_set(err, PRONY_PROTOCOL,
				 "input stream: hello offered no ring of batches");
	if (__builtin_mul_overflow((size_t)layout.stride, slots, &wanted) || wanted > bytes)
		return error_set(err, PRONY_PROTOCOL,
				 "the ring has %zu bytes, %zu slots of %llu need more", bytes,
				 slots, (unsigned long long)layout.stride);
	ring->inputs = arena_array(&ring->arena, slots, sizeof *ring->inputs);
	ring->labels = label ? arena_array(&ring->arena, slots, sizeof *ring->labels) : NULL;
	for (size_t i = 0; i < slots; i++) {
		char *begin = (char *)(uintptr_t)memory + i * (size_t)layout.stride;

		ring->inputs[i] = *input;
		ring->inputs[i].data = begin;
		if (label) {
			ring->labels[i] = *label;
			ring->labels[i].data = begin + layout.labels;
		}
	}
	ring->only_load = bundle->recipe.stage == STAGE_LOAD;
	return PRONY_OK;
}

void ring_begin(struct ring *ring)
{
	ring->wait_ns = ring->copy_ns = 0;
}

static enum prony_status take(struct ring *ring, struct error *err)
{
	ssize_t got;
	char byte;

	do
		got = read(ring->ready_fd, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		return PRONY_OK;
	return error_set(err, PRONY_INVALID, "no more batches come");
}

static enum prony_status give_back(struct ring *ring, struct error *err)
{
	ssize_t put;

	do
		put = write(ring->free_fd, "", 1);
	while (put < 0 && errno == EINTR);
	return put == 1 ? PRONY_OK : error_set(err, PRONY_INVALID, "nobody takes a slot back");
}

enum prony_status ring_step(struct ring *ring, const struct adapter *adapter,
			    struct session *session, int slot, struct error *err)
{
	int64_t begin_ns = clock_monotonic_ns();
	enum prony_status status = take(ring, err);
	int64_t taken_ns = clock_monotonic_ns();

	ring->wait_ns += taken_ns - begin_ns;
	if (status == PRONY_OK && !ring->only_load) {
		status = adapter->feed(session, slot, &ring->inputs[slot],
				       ring->labels ? &ring->labels[slot] : NULL, err);
		ring->copy_ns += clock_monotonic_ns() - taken_ns;
		if (status == PRONY_OK)
			status = adapter->step(session, slot, err);
	}
	return status == PRONY_OK ? give_back(ring, err) : status;
}
