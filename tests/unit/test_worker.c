/* worker_main over pipes in a child process: the results of the null and fake adapters. */
#include "adapters/adapter.h"
#include "bundle/bundle.h"
#include "unit_test.h"
#include "worker_peer.h"

TEST(runs_yield_the_records_of_their_mode)
{
	for (int shared = 0; shared < 2; shared++) {
		struct peer peer;

		peer_start(&peer, "null", NULL);
		peer_prepare(&peer, shared);
		peer_check_run(&peer, shared, "\"steps\": 10, \"sync\": \"end\", \"slot\": 0", 1);
		peer_check_run(&peer, shared, "\"steps\": 10, \"sync\": \"step\", \"slot\": 2", 10);
		peer_check_run(&peer, shared,
			       "\"steps\": 10, \"sync\": \"blocks\", \"every\": 4, \"slot\": 1", 3);
		peer_check_run(&peer, shared,
			       "\"steps\": 8, \"sync\": \"blocks\", \"every\": 4, \"slot\": 1", 2);
		peer_check_run(&peer, shared,
			       "\"steps\": 3, \"sync\": \"blocks\", \"every\": 100, \"slot\": 1",
			       1);
		peer_must(&peer, "close", "");
		assert_int_equal(peer_stop(&peer), 0);
	}
}

/* Returns the tensors of the last read in the shared memory, in *arena. */
static struct tensor_set read_tensors(const struct peer *peer, struct arena *arena)
{
	struct error err = ERROR_INIT;
	struct tensor_set set;
	int64_t bytes = json_int_or(peer->reply, "bytes", 0);

	assert_true(bytes > 0 && bytes <= PEER_TENSORS_BYTES);
	check(safetensors_read_image(peer->shared + PEER_TENSORS_OFFSET, (size_t)bytes, "read",
				     arena, &set, &err),
	      &err);
	return set;
}

static double read_loss(struct peer *peer)
{
	SCOPED(arena) arena;
	double loss;

	arena_init(&arena, 0);
	peer_must(peer, "read", "\"what\": \"loss\"");
	struct tensor_set set = read_tensors(peer, &arena);
	assert_int_equal(set.count, 1);
	assert_string_equal(set.tensors[0].name, "loss");
	assert_int_equal(set.tensors[0].dtype, DTYPE_F64);
	memcpy(&loss, set.tensors[0].data, sizeof loss);
	return loss;
}

TEST(null_gives_the_weights_back)
{
	struct peer peer;
	struct bundle bundle;
	struct arena arena;
	struct error err = ERROR_INIT;

	peer_start(&peer, "null", NULL);
	peer_prepare(&peer, true);
	peer_must(&peer, "read", "\"what\": \"weights\"");
	check(bundle_open(peer_folder(), &bundle, &err), &err);
	arena_init(&arena, 0);
	struct tensor_set set = read_tensors(&peer, &arena);

	assert_int_equal(set.count, bundle.weights.count);
	for (size_t i = 0; i < set.count; i++) {
		const struct tensor *given = tensor_find(&bundle.weights, set.tensors[i].name);

		assert_non_null(given);
		assert_memory_equal(given->data, set.tensors[i].data, (size_t)tensor_bytes(given));
	}
	arena_release(&arena);
	bundle_release(&bundle);
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
}

TEST(fake_learns)
{
	struct peer peer;

	peer_start(&peer, "fake", NULL);
	peer_prepare(&peer, true);
	peer_check_run(&peer, true, "\"steps\": 1, \"sync\": \"end\", \"slot\": 0", 1);
	double first = read_loss(&peer);
	assert_true(isfinite(first) && first > 0);
	peer_check_run(&peer, true, "\"steps\": 30, \"sync\": \"end\", \"slot\": 0", 1);
	assert_true(read_loss(&peer) < first);
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
}

TEST(registered_adapters_are_whole)
{
	for (size_t i = 0; adapter_registry[i]; i++) {
		struct error err = ERROR_INIT;

		check(adapter_check(adapter_registry[i], &err), &err);
		/* adapter_find returns the first adapter with a name, so names must be unique. */
		assert_ptr_equal(adapter_find(adapter_registry[i]->name), adapter_registry[i]);
	}
	assert_null(adapter_find("abacus"));
	assert_null(adapter_find(NULL));
	for (int what = 0; what < READ_COUNT; what++) {
		enum readout found;

		assert_true(readout_parse(readout_name((enum readout)what), &found));
		assert_int_equal(found, what);
	}
}

TEST(half_made_adapters_are_refused)
{
	struct adapter half = *adapter_find("null");
	struct error err = ERROR_INIT;

	half.sync = NULL;
	expect_error(adapter_check(&half, &err), PRONY_INTERNAL, &err, "sync");
	half.absent_reason = "not built";
	assert_int_equal(adapter_check(&half, NULL), PRONY_OK);
	half.abi = ADAPTER_ABI + 1;
	assert_int_equal(adapter_check(&half, NULL), PRONY_INTERNAL);
}

int main(void)
{
	return unit_tests_run(peer_write_bundle, peer_remove_bundle);
}
