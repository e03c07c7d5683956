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

/* Returns copies of a batch's tensors with their data in a slot from *offset on, each on its own
 * pages. */
static const struct tensor *place(struct ring *ring, const struct tensor *tensors, int count,
				  const char *slot, size_t *offset)
{
	struct tensor *placed = arena_array(&ring->arena, (size_t)count, sizeof *placed);

	for (int i = 0; i < count; i++) {
		placed[i] = tensors[i];
		placed[i].data = (void *)(uintptr_t)(slot + *offset);
		*offset += (size_t)ring_pages((uint64_t)tensor_bytes(&tensors[i]));
	}
	return placed;
}

static size_t slot_bytes(struct batch batch)
{
	size_t bytes = 0;

	for (int i = 0; i < batch.input_count; i++)
		bytes += (size_t)ring_pages((uint64_t)tensor_bytes(&batch.inputs[i]));
	for (int i = 0; i < batch.label_count; i++)
		bytes += (size_t)ring_pages((uint64_t)tensor_bytes(&batch.labels[i]));
	return bytes;
}

enum prony_status ring_lay_out(struct ring *ring, const struct bundle *bundle, const void *memory,
			       size_t bytes, struct error *err)
{
	struct batch first = batch_at(&bundle->graph, &bundle->inputs, &bundle->labels, 0);
	size_t slots = (size_t)bundle->recipe.slots, stride = slot_bytes(first), wanted = 0;

	if (ring->ready_fd < 0 || !memory)
		return error_set(err, PRONY_PROTOCOL,
				 "input stream: hello contained no ring of batches");
	if (__builtin_mul_overflow(stride, slots, &wanted) || wanted > bytes)
		return error_set(err, PRONY_PROTOCOL,
				 "the ring has %zu bytes, too few for %zu slots of %zu bytes",
				 bytes, slots, stride);
	ring->batches = arena_array(&ring->arena, slots, sizeof *ring->batches);
	for (size_t i = 0; i < slots; i++) {
		const char *slot = (const char *)memory + i * stride;
		size_t offset = 0;

		ring->batches[i] = first;
		ring->batches[i].inputs =
			place(ring, first.inputs, first.input_count, slot, &offset);
		ring->batches[i].labels =
			place(ring, first.labels, first.label_count, slot, &offset);
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
	return error_set(err, PRONY_INVALID, "there are no more batches");
}

static enum prony_status give_back(struct ring *ring, struct error *err)
{
	ssize_t put;

	do
		put = write(ring->free_fd, "", 1);
	while (put < 0 && errno == EINTR);
	return put == 1 ? PRONY_OK
			: error_set(err, PRONY_INVALID, "prony no longer reads returned slots");
}

enum prony_status ring_step(struct ring *ring, const struct adapter *adapter,
			    struct session *session, int slot, struct error *err)
{
	int64_t begin_ns = clock_monotonic_ns();
	enum prony_status status = take(ring, err);
	int64_t taken_ns = clock_monotonic_ns();

	ring->wait_ns += taken_ns - begin_ns;
	if (status == PRONY_OK && !ring->only_load) {
		status = adapter->feed(session, slot, ring->batches[slot], err);
		ring->copy_ns += clock_monotonic_ns() - taken_ns;
		if (status == PRONY_OK)
			status = adapter->step(session, slot, err);
	}
	return status == PRONY_OK ? give_back(ring, err) : status;
}
