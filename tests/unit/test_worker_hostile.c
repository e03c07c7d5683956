/* worker_main over pipes in a child process: wrong and hostile requests. test_worker_check.py tests
 * their order and bundles. */
#include "samples/protocol.h"
#include "unit_test.h"
#include "worker_peer.h"

TEST(wrong_members_are_refused_and_forgotten)
{
	static const char *const runs[][2] = {
		{"", "steps"},
		{"\"steps\": 0, \"sync\": \"end\", \"slot\": 0", "steps"},
		{"\"steps\": -3, \"sync\": \"end\", \"slot\": 0", "steps"},
		{"\"steps\": \"3\", \"sync\": \"end\", \"slot\": 0", "steps"},
		{"\"steps\": 1, \"sync\": \"never\", \"slot\": 0", "sync"},
		{"\"steps\": 1, \"sync\": \"end\", \"slot\": 3", "slot"},
		{"\"steps\": 1, \"sync\": \"end\", \"slot\": -1", "slot"},
		{"\"steps\": 1, \"sync\": \"blocks\", \"slot\": 0", "every"},
		{"\"steps\": 1, \"sync\": \"blocks\", \"slot\": 0, \"every\": 0", "every"},
		{"\"steps\": 9223372036854775807, \"sync\": \"step\", \"slot\": 0", "records"},
	};
	struct peer peer;

	peer_start(&peer, "null", NULL);
	peer_refused(&peer, "hello", "\"protocol\": 1", "invalid", "protocol 1");
	peer_prepare(&peer, true);
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
		peer_refused(&peer, "run", runs[i][0], "invalid", runs[i][1]);
	peer_refused(&peer, "feed", "\"slot\": 0, \"batch\": 99", "invalid", "batch");
	peer_refused(&peer, "read", "\"what\": \"thoughts\"", "invalid", "thoughts");
	peer_refused(&peer, "dance", "", "invalid", "unknown verb \"dance\"");
	peer_check_run(&peer, true, "\"steps\": 5, \"sync\": \"step\", \"slot\": 0", 5);
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
}

TEST(hostile_lines_are_answered)
{
	static const char *const lines[] = {
		"\n",
		"}{\n",
		"[]\n",
		"null\n",
		"{\"id\": 1}\n",
		"{\"verb\": \"hello\"}\n",
		"{\"id\": \"x\", \"verb\": \"hello\"}\n",
		"{\"id\": 1, \"id\": 2, \"verb\": \"close\"}\n",
		"{\"id\": 1e99, \"verb\": \"hello\"}\n",
		"\xff\xfe\n",
		"{\"id\": 7, \"verb\": \"\\u0000\"}\n",
	};
	size_t length = PROTOCOL_LINE_BYTES_MAX + 100000;
	char *endless = test_keep(malloc(length));
	struct peer peer;

	assert_non_null(endless);
	peer_start(&peer, "null", NULL);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		const json_t *reply = peer_send(&peer, lines[i], strlen(lines[i]));

		assert_false(json_bool_or(reply, "ok", true));
		assert_string_equal(json_string_or(reply, "status", ""), "invalid");
		assert_true(json_string_or(reply, "error", "")[0] != '\0');
	}
	memset(endless, ' ', length);
	endless[length - 1] = '\n';
	assert_false(json_bool_or(peer_send(&peer, endless, length), "ok", true));
	memset(endless, '[', length - 1); /* deep nesting, too */
	assert_false(json_bool_or(peer_send(&peer, endless + length - 5000, 5000), "ok", true));
	const char zero[] = "{\"id\": 1, \"verb\":\0 \"hello\"}\n";
	assert_false(json_bool_or(peer_send(&peer, zero, sizeof zero - 1), "ok", true));
	peer_hello(&peer, true);
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
}

TEST(two_requests_in_one_write_get_two_replies)
{
	static const char both[] = "{\"id\": 1, \"verb\": \"hello\", " PEER_HELLO "}\n"
				   "{\"id\": 2, \"verb\": \"close\"}\n";
	struct peer peer;

	peer_start(&peer, "null", NULL);
	assert_int_equal(json_int_or(peer_send(&peer, both, sizeof both - 1), "id", 0), 1);
	assert_int_equal(json_int_or(peer_send(&peer, "", 0), "id", 0), 2);
	assert_int_equal(peer_stop(&peer), 0);
}

TEST(the_end_of_the_requests_ends_it)
{
	struct peer peer;

	peer_start(&peer, "null", NULL);
	assert_int_equal(peer_stop(&peer), 0);
	peer_start(&peer, "fake", NULL);
	peer_prepare(&peer, true);
	peer_write(&peer, "{\"id\": 99", 9); /* half a request */
	assert_int_equal(peer_stop(&peer), 0);
}

TEST(unknown_adapters_are_missing)
{
	struct peer peer;

	peer_start(&peer, "abacus", NULL);
	peer_refused(&peer, "hello", PEER_HELLO, "missing", "abacus");
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
}

/* Each member of the header is changed once. */
TEST(bad_shared_memory_is_refused)
{
	static const struct {
		size_t offset;
		uint64_t value;
	} bends[] = {
		{offsetof(struct shared_header, magic), 0},
		{offsetof(struct shared_header, total_bytes), UINT64_MAX},
		{offsetof(struct shared_header, records_offset), 4097},
		{offsetof(struct shared_header, records_offset), 0},
		{offsetof(struct shared_header, records_bytes), UINT64_MAX - 4095},
		{offsetof(struct shared_header, tensors_offset), PEER_RECORDS_OFFSET},
		{offsetof(struct shared_header, tensors_bytes), PEER_SHARED_BYTES},
	};
	char members[256];
	struct peer peer;

	peer_start(&peer, "null", NULL);
	for (size_t i = 0; i < sizeof bends / sizeof bends[0]; i++) {
		uint64_t kept;

		memcpy(&kept, peer.shared + bends[i].offset, sizeof kept);
		memcpy(peer.shared + bends[i].offset, &bends[i].value, sizeof bends[i].value);
		snprintf(members, sizeof members,
			 PEER_HELLO ", \"shared_memory\": {\"fd\": %d, \"bytes\": %d}",
			 peer.shared_fd, PEER_SHARED_BYTES);
		peer_refused(&peer, "hello", members, "invalid", "shared memory");
		memcpy(peer.shared + bends[i].offset, &kept, sizeof kept);
	}
	snprintf(members, sizeof members,
		 PEER_HELLO ", \"shared_memory\": {\"fd\": %d, \"bytes\": %d}", peer.shared_fd,
		 PEER_SHARED_BYTES * 2);
	peer_refused(&peer, "hello", members, "invalid", "shared memory");
	/* A descriptor that does not exist cannot be mapped: files are used instead. */
	peer_must(&peer, "hello",
		  PEER_HELLO ", \"shared_memory\": {\"fd\": 999, \"bytes\": 65536}");
	assert_false(json_bool_or(peer.reply, "shared_memory", true));
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
}

/* A set that does not fit is refused before anything is written; a smaller one can be read
 * afterwards. */
TEST(tensors_beyond_their_region_are_refused)
{
	enum { ROOM = 256, WATCHED = 4096 };
	const uint64_t room = ROOM;
	unsigned char untouched[WATCHED];
	struct peer peer;

	memset(untouched, 0xa5, sizeof untouched);
	peer_start(&peer, "null", NULL);
	memcpy(peer.shared + offsetof(struct shared_header, tensors_bytes), &room, sizeof room);
	memcpy(peer.shared + PEER_TENSORS_OFFSET, untouched, sizeof untouched);
	peer_prepare(&peer, true);
	peer_refused(&peer, "read", "\"what\": \"weights\"", "invalid",
		     "the shared memory has room for 256 bytes of tensors");
	assert_memory_equal(peer.shared + PEER_TENSORS_OFFSET, untouched, WATCHED);
	peer_must(&peer, "run", "\"steps\": 1, \"sync\": \"end\", \"slot\": 0");
	peer_must(&peer, "read", "\"what\": \"loss\"");
	assert_memory_not_equal(peer.shared + PEER_TENSORS_OFFSET, untouched, ROOM);
	assert_memory_equal(peer.shared + PEER_TENSORS_OFFSET + ROOM, untouched, WATCHED - ROOM);
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
}

TEST(failures_leave_only_close)
{
	struct peer peer;

	peer_start(&peer, "fake", "oom-reply");
	peer_hello(&peer, true);
	peer_must(&peer, "open", peer_bundle());
	peer_refused(&peer, "build", "", "out-of-memory", "out of memory");
	peer_refused(&peer, "build", "", "invalid", "build cannot come after a failed request");
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
	peer_start(&peer, "fake", "missing");
	peer_refused(&peer, "hello", PEER_HELLO, "missing", "not installed");
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
	peer_start(&peer, "fake", "unsupported");
	peer_hello(&peer, true);
	assert_false(json_bool_or(peer_must(&peer, "supports", peer_bundle()), "supported", true));
	assert_has(json_string_or(peer.reply, "reason", ""), "supports nothing");
	peer_must(&peer, "close", "");
	assert_int_equal(peer_stop(&peer), 0);
	peer_start(&peer, "fake", "frobnicate");
	peer_refused(&peer, "hello", PEER_HELLO, "unsupported", "frobnicate");
	assert_int_equal(peer_stop(&peer), 0);
}

int main(void)
{
	return unit_tests_run(peer_write_bundle, peer_remove_bundle);
}
