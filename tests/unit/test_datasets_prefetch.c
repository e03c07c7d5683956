/* Tests batches that a thread loads ahead: their bytes, when they are loaded, and how it ends. */
#include <poll.h>

#include "datasets/prefetch.h"
#include "unit_test.h"

enum { SLOTS = 3, BATCH = 5, PIXELS = 28 * 28, STRIDE = 4 * BATCH * PIXELS + 8 * BATCH };

struct rig {
	char *folder;
	struct prefetch *prefetch;
	char *memory;
	int ready, freed; /* the user's ends */
};

static struct batch_request request_of(bool training)
{
	return (struct batch_request){.batch = BATCH,
				      .rank = 3,
				      .dims = {1, 28, 28},
				      .classes = 10,
				      .training = training,
				      .seed = 11};
}

static int setup(void **state)
{
	const char *source = getenv("PRONY_SOURCE");
	struct batch_request request = request_of(true);
	struct rig *rig = memory_alloc(sizeof(*rig));
	struct error err = ERROR_INIT;
	int ready[2], freed[2];

	*state = rig;
	rig->folder = memory_printf("%s/datasets/mnist-3000", source ? source : ".");
	rig->memory = memory_alloc((size_t)SLOTS * STRIDE);
	rig->prefetch = NULL;
	if (pipe2(ready, O_CLOEXEC) || pipe2(freed, O_CLOEXEC))
		return -1;
	fcntl(ready[1], F_SETFL, O_NONBLOCK);
	fcntl(freed[0], F_SETFL, O_NONBLOCK);
	rig->ready = ready[0];
	rig->freed = freed[1];
	check(prefetch_open(dataset_find("mnist-3000"), rig->folder, &request, &rig->prefetch,
			    &err),
	      &err);
	const struct prefetch_ring ring = {.memory = rig->memory,
					   .slots = SLOTS,
					   .stride = STRIDE,
					   .labels = (size_t)4 * BATCH * PIXELS,
					   .ready_fd = ready[1],
					   .free_fd = freed[0]};
	return prefetch_start(rig->prefetch, &ring, NULL, 0, &err) == PRONY_OK ? 0 : -1;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	prefetch_close(rig->prefetch);
	close(rig->ready);
	if (rig->freed >= 0)
		close(rig->freed);
	free(rig->memory);
	free(rig->folder);
	free(rig);
	return 0;
}

#define PREFETCH_TEST(name) TEST_ON(name, setup, teardown, struct rig *rig)

/* Returns whether a byte, or the end, arrives within that time. */
static bool comes(int fd, int milliseconds)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, milliseconds) > 0;
}

static void take(const struct rig *rig)
{
	char byte;

	assert_true(comes(rig->ready, 20000));
	assert_int_equal(read(rig->ready, &byte, 1), 1);
}

PREFETCH_TEST(test_same_bytes)
{
	struct batch_request request = request_of(true);
	struct prefetch_figures figures;
	struct batch_stream *stream = NULL;
	float x[BATCH * PIXELS];
	int64_t y[BATCH];

	assert_int_equal(
		batch_stream_open(dataset_find("mnist-3000"), rig->folder, &request, &stream, NULL),
		PRONY_OK);
	prefetch_go(rig->prefetch);
	for (int n = 0; n < 4 * SLOTS; n++) {
		const char *slot = rig->memory + (size_t)(n % SLOTS) * STRIDE;

		take(rig);
		assert_int_equal(batch_stream_next(stream, 1, x, y, NULL), PRONY_OK);
		assert_memory_equal(slot, x, sizeof(x));
		assert_memory_equal(slot + sizeof(x), y, sizeof(y));
		assert_int_equal(write(rig->freed, "", 1), 1);
	}
	assert_int_equal(prefetch_rest(rig->prefetch, &figures, NULL), PRONY_OK);
	assert_int_equal(figures.freed, 4 * SLOTS);
	assert_true(figures.filled >= figures.freed && figures.filled <= figures.freed + SLOTS);
	assert_true(figures.times.decode_ns > 0);
	/* The labels of the last batch used are still available; those of old batches are not. */
	assert_memory_equal(prefetch_labels(rig->prefetch, 4 * SLOTS - 1), y, sizeof(y));
	assert_null(prefetch_labels(rig->prefetch, 0));
	assert_null(prefetch_labels(rig->prefetch, figures.filled));
	batch_stream_close(stream);
}

PREFETCH_TEST(test_rests)
{
	struct prefetch_figures before, after;

	assert_false(comes(rig->ready, 50)); /* not before prefetch_go */
	prefetch_go(rig->prefetch);
	for (int i = 0; i < SLOTS; i++)
		take(rig);
	assert_false(comes(rig->ready, 50)); /* all slots are in use */
	assert_int_equal(prefetch_rest(rig->prefetch, &before, NULL), PRONY_OK);
	assert_int_equal(before.filled, SLOTS);
	assert_int_equal(write(rig->freed, "..", 2), 2);
	assert_false(comes(rig->ready, 50)); /* slots are free, but it rests */
	assert_int_equal(prefetch_rest(rig->prefetch, &after, NULL), PRONY_OK);
	assert_int_equal(after.filled, SLOTS);
	assert_int_equal(after.freed, 2);
	prefetch_go(rig->prefetch);
	take(rig);
}

static void expect_end(const struct rig *rig, enum prony_status status, const char *text)
{
	struct prefetch_figures figures;
	struct error err = ERROR_INIT;
	char byte;

	for (int i = 0; i < SLOTS; i++)
		take(rig);
	assert_true(comes(rig->ready, 20000));
	assert_int_equal(read(rig->ready, &byte, 1), 0);
	assert_int_equal(prefetch_rest(rig->prefetch, &figures, &err), status);
	assert_has(err.text, text);
}

PREFETCH_TEST(test_too_many_given_back)
{
	assert_int_equal(write(rig->freed, "....", 4), 4);
	prefetch_go(rig->prefetch);
	struct prefetch_figures figures;
	struct error err = ERROR_INIT;
	char byte;

	assert_true(comes(rig->ready, 20000));
	assert_int_equal(read(rig->ready, &byte, 1), 0);
	expect_error(prefetch_rest(rig->prefetch, &figures, &err), PRONY_INVALID, &err,
		     "returned 4 batches, but received only 0");
}

PREFETCH_TEST(test_user_goes)
{
	close(rig->freed);
	rig->freed = -1;
	prefetch_go(rig->prefetch);
	expect_end(rig, PRONY_CRASHED, "closed the ring of batches");
}

TEST(test_missing)
{
	struct batch_request request = request_of(true);
	struct prefetch *prefetch = NULL;

	assert_int_not_equal(
		prefetch_open(dataset_find("mnist-3000"), "/nowhere", &request, &prefetch, NULL),
		PRONY_OK);
	assert_null(prefetch);
}
