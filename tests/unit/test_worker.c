/* Drives worker_main over pipes in a child, with the null and fake adapters on a real bundle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "bundle/bundle.h"
#include "networks/zoo/zoo.h"
#include "samples/protocol.h"
#include "worker/worker.h"

#define BATCH 4
#define SLOTS 3
#define REPLY_TIMEOUT_MS 20000
#define RECORDS_OFFSET 4096
#define RECORDS_BYTES (1 << 16)
#define TENSORS_OFFSET (RECORDS_OFFSET + RECORDS_BYTES)
#define TENSORS_BYTES (4 << 20)
#define SHARED_BYTES (TENSORS_OFFSET + TENSORS_BYTES)

/* One worker seen from the parent. */
struct peer {
	pid_t pid;
	int request_fd, reply_fd, shared_fd;
	char *shared;
	char *line; /* of the last reply; owned */
	json_t *reply;
	int64_t id;
};

static char *folder; /* of the bundle; written once */

static void write_request(struct peer *peer, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(peer->request_fd, bytes, length);

		assert_true(written > 0);
		bytes += written;
		length -= (size_t)written;
	}
}

/* Reads bytes up to a newline; false at the end of the replies. */
static bool read_line(struct peer *peer)
{
	size_t length = 0;

	for (;;) {
		struct pollfd ready = {.fd = peer->reply_fd, .events = POLLIN};

		assert_int_equal(poll(&ready, 1, REPLY_TIMEOUT_MS), 1);
		assert_true(length < PROTOCOL_LINE_BYTES_MAX);
		if (read(peer->reply_fd, peer->line + length, 1) != 1)
			return false;
		if (peer->line[length] == '\n')
			break;
		length++;
	}
	peer->line[length] = '\0';
	return true;
}

/* The parsed reply to raw bytes (borrowed until the next one). */
static const json_t *send_raw(struct peer *peer, const char *bytes, size_t length)
{
	struct error err = ERROR_INIT;

	write_request(peer, bytes, length);
	json_decref(peer->reply);
	peer->reply = NULL;
	assert_true(read_line(peer));
	assert_int_equal(json_parse(peer->line, strlen(peer->line), "reply", &peer->reply, &err),
			 PRONY_OK);
	return peer->reply;
}

static const json_t *ask(struct peer *peer, const char *verb, const char *members)
{
	char line[1024];
	int length = snprintf(line, sizeof line, "{\"id\": %lld, \"verb\": \"%s\"%s%s}\n",
			      (long long)++peer->id, verb, *members ? ", " : "", members);

	assert_true(length > 0 && (size_t)length < sizeof line);
	const json_t *reply = send_raw(peer, line, (size_t)length);
	assert_int_equal(json_int_or(reply, "id", -1), peer->id);
	return reply;
}

static const json_t *must(struct peer *peer, const char *verb, const char *members)
{
	const json_t *reply = ask(peer, verb, members);

	if (!json_bool_or(reply, "ok", false))
		fail_msg("%s: %s", verb, json_string_or(reply, "error", "?"));
	return reply;
}

/* A request that must be refused with a status; the message must contain `part`. */
static void refused(struct peer *peer, const char *verb, const char *members, const char *status,
		    const char *part)
{
	const json_t *reply = ask(peer, verb, members);

	assert_false(json_bool_or(reply, "ok", true));
	assert_string_equal(json_string_or(reply, "status", ""), status);
	if (!strstr(json_string_or(reply, "error", ""), part))
		fail_msg("\"%s\" does not say \"%s\"", json_string_or(reply, "error", ""), part);
}

static _Noreturn void be_worker(const struct worker_options *options, int request_fd, int reply_fd)
{
	struct error err = ERROR_INIT;
	char number[16];

	snprintf(number, sizeof number, "%d", request_fd);
	setenv(PROTOCOL_ENV_REQUEST, number, 1);
	snprintf(number, sizeof number, "%d", reply_fd);
	setenv(PROTOCOL_ENV_REPLY, number, 1);
	_exit(worker_main(options, &err));
}

static void make_shared(struct peer *peer)
{
	struct shared_header header = {
		.magic = SHARED_MAGIC,
		.version = PROTOCOL_VERSION,
		.total_bytes = SHARED_BYTES,
		.records_offset = RECORDS_OFFSET,
		.records_bytes = RECORDS_BYTES,
		.tensors_offset = TENSORS_OFFSET,
		.tensors_bytes = TENSORS_BYTES,
	};

	peer->shared_fd = memfd_create("prony-test", 0);
	assert_true(peer->shared_fd >= 0);
	assert_int_equal(ftruncate(peer->shared_fd, SHARED_BYTES), 0);
	peer->shared =
		mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, peer->shared_fd, 0);
	assert_true(peer->shared != MAP_FAILED);
	memcpy(peer->shared, &header, sizeof header);
}

static void start(struct peer *peer, const char *adapter, const char *option)
{
	struct worker_options options = {.adapter = adapter, .option = option};
	int requests[2], replies[2];

	*peer = (struct peer){.line = malloc(PROTOCOL_LINE_BYTES_MAX)};
	assert_non_null(peer->line);
	make_shared(peer);
	assert_int_equal(pipe(requests), 0);
	assert_int_equal(pipe(replies), 0);
	peer->pid = fork();
	assert_true(peer->pid >= 0);
	if (peer->pid == 0) {
		close(requests[1]);
		close(replies[0]);
		be_worker(&options, requests[0], replies[1]);
	}
	close(requests[0]);
	close(replies[1]);
	peer->request_fd = requests[1];
	peer->reply_fd = replies[0];
}

/* Ends the requests, and returns the status of waitpid. */
static int stop(struct peer *peer)
{
	int status = -1;

	close(peer->request_fd);
	assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
	close(peer->reply_fd);
	munmap(peer->shared, SHARED_BYTES);
	close(peer->shared_fd);
	json_decref(peer->reply);
	free(peer->line);
	return status;
}

static const json_t *hello(struct peer *peer, bool shared)
{
	char members[128] = "\"protocol\": 1";

	if (shared)
		snprintf(members, sizeof members,
			 "\"protocol\": 1, \"shared_memory\": {\"fd\": %d, \"bytes\": %d}",
			 peer->shared_fd, SHARED_BYTES);
	return must(peer, "hello", members);
}

static const char *bundle_member(void)
{
	static char text[512];

	snprintf(text, sizeof text, "\"bundle\": \"%s\"", folder);
	return text;
}

/* hello to feed of every slot. */
static void prepare(struct peer *peer, bool shared)
{
	hello(peer, shared);
	assert_true(json_bool_or(must(peer, "supports", bundle_member()), "supported", false));
	must(peer, "open", bundle_member());
	must(peer, "build", "");
	for (int slot = 0; slot < SLOTS; slot++) {
		char members[64];

		snprintf(members, sizeof members, "\"slot\": %d, \"batch\": %d", slot, slot);
		must(peer, "feed", members);
	}
}

/* Copies the records of the run that was just replied to. */
static int64_t read_records(const struct peer *peer, bool shared, struct step_record *out,
			    size_t room)
{
	int64_t count = json_int_or(peer->reply, "records", -1);
	size_t bytes = (size_t)count * sizeof *out;

	assert_true(count > 0 && (size_t)count <= room);
	if (shared) {
		memcpy(out, peer->shared + RECORDS_OFFSET, bytes);
		return count;
	}
	struct error err = ERROR_INIT;
	char *path = path_join(folder, BUNDLE_RECORDS_FILE), *data;
	size_t length;

	assert_int_equal(file_read(path, sizeof *out * room, &data, &length, &err), PRONY_OK);
	assert_int_equal(length, bytes);
	memcpy(out, data, bytes);
	free(data);
	free(path);
	return count;
}

static void check_run(struct peer *peer, bool shared, const char *members, int64_t expected)
{
	struct step_record records[64];
	int64_t before_ns = clock_monotonic_ns();
	const json_t *reply = must(peer, "run", members);
	int64_t after_ns = clock_monotonic_ns();

	assert_int_equal(read_records(peer, shared, records, 64), expected);
	assert_int_equal(json_int_or(reply, "begin_at_ns", 0), records[0].begin_ns);
	assert_int_equal(json_int_or(reply, "end_at_ns", 0), records[expected - 1].end_ns);
	assert_true(records[0].begin_ns >= before_ns && records[expected - 1].end_ns <= after_ns);
	for (int64_t i = 0; i < expected; i++) {
		assert_true(records[i].end_ns >= records[i].begin_ns);
		assert_true(i == 0 || records[i].begin_ns == records[i - 1].end_ns);
	}
}

static void runs_yield_the_records_of_their_mode(void **state)
{
	(void)state;
	for (int shared = 0; shared < 2; shared++) {
		struct peer peer;

		start(&peer, "null", NULL);
		prepare(&peer, shared);
		check_run(&peer, shared, "\"steps\": 10, \"sync\": \"end\", \"slot\": 0", 1);
		check_run(&peer, shared, "\"steps\": 10, \"sync\": \"step\", \"slot\": 2", 10);
		check_run(&peer, shared,
			  "\"steps\": 10, \"sync\": \"blocks\", \"every\": 4, \"slot\": 1", 3);
		check_run(&peer, shared,
			  "\"steps\": 8, \"sync\": \"blocks\", \"every\": 4, \"slot\": 1", 2);
		check_run(&peer, shared,
			  "\"steps\": 3, \"sync\": \"blocks\", \"every\": 100, \"slot\": 1", 1);
		must(&peer, "close", "");
		assert_int_equal(stop(&peer), 0);
	}
}

/* The tensors that the last read left in the shared memory, in *arena. */
static struct tensor_set read_tensors(const struct peer *peer, struct arena *arena)
{
	struct error err = ERROR_INIT;
	struct tensor_set set;
	int64_t bytes = json_int_or(peer->reply, "bytes", 0);

	assert_true(bytes > 0 && bytes <= TENSORS_BYTES);
	assert_int_equal(safetensors_read_image(peer->shared + TENSORS_OFFSET, (size_t)bytes,
						"read", arena, &set, &err),
			 PRONY_OK);
	return set;
}

static double read_loss(struct peer *peer)
{
	struct arena arena;
	double loss;

	arena_init(&arena, 0);
	must(peer, "read", "\"what\": \"loss\"");
	struct tensor_set set = read_tensors(peer, &arena);
	assert_int_equal(set.count, 1);
	assert_string_equal(set.tensors[0].name, "loss");
	assert_int_equal(set.tensors[0].dtype, DTYPE_F64);
	memcpy(&loss, set.tensors[0].data, sizeof loss);
	arena_release(&arena);
	return loss;
}

static void null_gives_the_weights_back(void **state)
{
	struct peer peer;
	struct bundle bundle;
	struct arena arena;
	struct error err = ERROR_INIT;

	(void)state;
	start(&peer, "null", NULL);
	prepare(&peer, true);
	must(&peer, "read", "\"what\": \"weights\"");
	assert_int_equal(bundle_open(folder, &bundle, &err), PRONY_OK);
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
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
}

static void fake_learns(void **state)
{
	struct peer peer;

	(void)state;
	start(&peer, "fake", NULL);
	prepare(&peer, true);
	check_run(&peer, true, "\"steps\": 1, \"sync\": \"end\", \"slot\": 0", 1);
	double first = read_loss(&peer);
	assert_true(isfinite(first) && first > 0);
	check_run(&peer, true, "\"steps\": 30, \"sync\": \"end\", \"slot\": 0", 1);
	assert_true(read_loss(&peer) < first);
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
}

static void verbs_have_an_order(void **state)
{
	struct peer peer;

	(void)state;
	start(&peer, "null", NULL);
	refused(&peer, "supports", bundle_member(), "invalid", "supports cannot come before hello");
	refused(&peer, "run", "\"steps\": 1", "invalid", "run cannot come before hello");
	hello(&peer, true);
	refused(&peer, "hello", "\"protocol\": 1", "invalid", "hello cannot come after hello");
	refused(&peer, "build", "", "invalid", "build cannot come after hello");
	must(&peer, "open", bundle_member());
	refused(&peer, "feed", "\"slot\": 0, \"batch\": 0", "invalid",
		"feed cannot come after open");
	must(&peer, "build", "");
	refused(&peer, "build", "", "invalid", "build cannot come after build");
	refused(&peer, "run", "\"steps\": 1, \"sync\": \"end\", \"slot\": 0", "invalid",
		"slot 0 was never fed");
	must(&peer, "feed", "\"slot\": 1, \"batch\": 2");
	refused(&peer, "run", "\"steps\": 2, \"sync\": \"end\", \"slot\": 1", "invalid",
		"slot 2 was never fed");
	refused(&peer, "read", "\"what\": \"logits\"", "invalid", "before the first step");
	must(&peer, "run", "\"steps\": 1, \"sync\": \"end\", \"slot\": 1");
	must(&peer, "read", "\"what\": \"logits\"");
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
}

static void wrong_members_are_refused_and_forgotten(void **state)
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

	(void)state;
	start(&peer, "null", NULL);
	refused(&peer, "hello", "\"protocol\": 2", "invalid", "protocol 2");
	prepare(&peer, true);
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
		refused(&peer, "run", runs[i][0], "invalid", runs[i][1]);
	refused(&peer, "feed", "\"slot\": 0, \"batch\": 99", "invalid", "batch");
	refused(&peer, "read", "\"what\": \"thoughts\"", "invalid", "thoughts");
	refused(&peer, "dance", "", "invalid", "unknown verb \"dance\"");
	check_run(&peer, true, "\"steps\": 5, \"sync\": \"step\", \"slot\": 0", 5);
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
}

static void hostile_lines_are_answered(void **state)
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
	char *endless = malloc(length);
	struct peer peer;

	(void)state;
	assert_non_null(endless);
	start(&peer, "null", NULL);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		const json_t *reply = send_raw(&peer, lines[i], strlen(lines[i]));

		assert_false(json_bool_or(reply, "ok", true));
		assert_string_equal(json_string_or(reply, "status", ""), "invalid");
		assert_true(json_string_or(reply, "error", "")[0] != '\0');
	}
	memset(endless, ' ', length);
	endless[length - 1] = '\n';
	assert_false(json_bool_or(send_raw(&peer, endless, length), "ok", true));
	memset(endless, '[', length - 1); /* deep nesting, too */
	assert_false(json_bool_or(send_raw(&peer, endless + length - 5000, 5000), "ok", true));
	const char zero[] = "{\"id\": 1, \"verb\":\0 \"hello\"}\n";
	assert_false(json_bool_or(send_raw(&peer, zero, sizeof zero - 1), "ok", true));
	hello(&peer, true);
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
	free(endless);
}

static void two_requests_in_one_write_get_two_replies(void **state)
{
	static const char both[] = "{\"id\": 1, \"verb\": \"hello\", \"protocol\": 1}\n"
				   "{\"id\": 2, \"verb\": \"close\"}\n";
	struct peer peer;

	(void)state;
	start(&peer, "null", NULL);
	assert_int_equal(json_int_or(send_raw(&peer, both, sizeof both - 1), "id", 0), 1);
	assert_int_equal(json_int_or(send_raw(&peer, "", 0), "id", 0), 2);
	assert_int_equal(stop(&peer), 0);
}

static void the_end_of_the_requests_ends_it(void **state)
{
	struct peer peer;

	(void)state;
	start(&peer, "null", NULL);
	assert_int_equal(stop(&peer), 0);
	start(&peer, "fake", NULL);
	prepare(&peer, true);
	write_request(&peer, "{\"id\": 99", 9); /* half a request */
	assert_int_equal(stop(&peer), 0);
}

static void unknown_adapters_are_missing(void **state)
{
	struct peer peer;

	(void)state;
	start(&peer, "abacus", NULL);
	refused(&peer, "hello", "\"protocol\": 1", "missing", "abacus");
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
}

static void bad_bundles_are_invalid(void **state)
{
	struct peer peer;

	(void)state;
	start(&peer, "null", NULL);
	hello(&peer, true);
	refused(&peer, "supports", "", "invalid", "bundle");
	ask(&peer, "supports", "\"bundle\": \"/nowhere/at/all\"");
	assert_false(json_bool_or(peer.reply, "ok", true));
	assert_true(json_bool_or(must(&peer, "supports", bundle_member()), "supported", false));
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
}

/* Every member of the header is bent once. */
static void bad_shared_memory_is_refused(void **state)
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
		{offsetof(struct shared_header, tensors_offset), RECORDS_OFFSET},
		{offsetof(struct shared_header, tensors_bytes), SHARED_BYTES},
	};
	char members[128];
	struct peer peer;

	(void)state;
	start(&peer, "null", NULL);
	for (size_t i = 0; i < sizeof bends / sizeof bends[0]; i++) {
		uint64_t kept;

		memcpy(&kept, peer.shared + bends[i].offset, sizeof kept);
		memcpy(peer.shared + bends[i].offset, &bends[i].value, sizeof bends[i].value);
		snprintf(members, sizeof members,
			 "\"protocol\": 1, \"shared_memory\": {\"fd\": %d, \"bytes\": %d}",
			 peer.shared_fd, SHARED_BYTES);
		refused(&peer, "hello", members, "invalid", "shared memory");
		memcpy(peer.shared + bends[i].offset, &kept, sizeof kept);
	}
	snprintf(members, sizeof members,
		 "\"protocol\": 1, \"shared_memory\": {\"fd\": %d, \"bytes\": %d}", peer.shared_fd,
		 SHARED_BYTES * 2);
	refused(&peer, "hello", members, "invalid", "shared memory");
	/* A descriptor that does not exist cannot be mapped: files serve. */
	must(&peer, "hello", "\"protocol\": 1, \"shared_memory\": {\"fd\": 999, \"bytes\": 65536}");
	assert_false(json_bool_or(peer.reply, "shared_memory", true));
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
}

static void failures_leave_only_close(void **state)
{
	struct peer peer;

	(void)state;
	start(&peer, "fake", "oom-reply");
	hello(&peer, true);
	must(&peer, "open", bundle_member());
	refused(&peer, "build", "", "out-of-memory", "out of memory");
	refused(&peer, "build", "", "invalid", "build cannot come after a failed request");
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
	start(&peer, "fake", "missing");
	refused(&peer, "hello", "\"protocol\": 1", "missing", "not installed");
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
	start(&peer, "fake", "unsupported");
	hello(&peer, true);
	assert_false(json_bool_or(must(&peer, "supports", bundle_member()), "supported", true));
	assert_non_null(strstr(json_string_or(peer.reply, "reason", ""), "supports nothing"));
	must(&peer, "close", "");
	assert_int_equal(stop(&peer), 0);
	start(&peer, "fake", "frobnicate");
	refused(&peer, "hello", "\"protocol\": 1", "unsupported", "frobnicate");
	assert_int_equal(stop(&peer), 0);
}

static int write_bundle(void **state)
{
	struct error err = ERROR_INIT;
	struct graph graph;
	struct arena arena;
	struct recipe recipe;
	struct tensor_set weights, sets[2];

	(void)state;
	arena_init(&arena, 0);
	recipe_defaults(&recipe);
	recipe.stage = STAGE_TRAIN;
	recipe.batch = BATCH;
	recipe.slots = SLOTS;
	if (zoo_build(zoo_find("lenet", NULL), BATCH, &graph, &err) != PRONY_OK ||
	    graph_initial_weights(&graph, 1, &arena, &weights, &err) != PRONY_OK ||
	    directory_make_temporary("prony-test-worker", &folder, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	for (int k = 0; k < 2; k++) {
		const struct value *value = &graph.values[k == 0 ? graph.input : graph.label];

		sets[k].tensors = arena_array(&arena, SLOTS, sizeof(struct tensor));
		sets[k].count = SLOTS;
		for (size_t i = 0; i < SLOTS; i++)
			tensor_new(&arena, arena_printf(&arena, "%c.%zu", "xy"[k], i), value->dtype,
				   &value->shape, &sets[k].tensors[i], &err);
	}
	for (size_t i = 0; i < SLOTS; i++) {
		float *x = sets[0].tensors[i].data;
		int64_t *y = sets[1].tensors[i].data;

		for (size_t k = 0; k < BATCH * 28 * 28; k++)
			x[k] = (float)((k * 7 + i * 13) % 17) / 17;
		for (size_t k = 0; k < BATCH; k++)
			y[k] = (int64_t)(k + i) % 10;
	}
	if (bundle_write(folder, &recipe, &graph, &weights, &sets[0], &sets[1], NULL, &err) !=
	    PRONY_OK)
		fail_msg("%s", err.text);
	graph_release(&graph);
	arena_release(&arena);
	return 0;
}

static int remove_bundle(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	directory_remove(folder, &err);
	free(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_yield_the_records_of_their_mode),
		cmocka_unit_test(null_gives_the_weights_back),
		cmocka_unit_test(fake_learns),
		cmocka_unit_test(verbs_have_an_order),
		cmocka_unit_test(wrong_members_are_refused_and_forgotten),
		cmocka_unit_test(hostile_lines_are_answered),
		cmocka_unit_test(two_requests_in_one_write_get_two_replies),
		cmocka_unit_test(the_end_of_the_requests_ends_it),
		cmocka_unit_test(unknown_adapters_are_missing),
		cmocka_unit_test(bad_bundles_are_invalid),
		cmocka_unit_test(bad_shared_memory_is_refused),
		cmocka_unit_test(failures_leave_only_close),
	};

	return cmocka_run_group_tests_name("worker", tests, write_bundle, remove_bundle);
}
