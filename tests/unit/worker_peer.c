#include "worker_peer.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "bundle/bundle.h"
#include "samples/protocol.h"
#include "unit_test.h"
#include "worker/worker.h"
#include "zoo/zoo.h"

#define BATCH 4
/* Only to detect a hang: instrumented, on a machine under load, thirty steps of LeNet take half a
 * minute. */
#define REPLY_TIMEOUT_MS 200000

static char *folder; /* the bundle's folder; written once */

const char *peer_folder(void)
{
	return folder;
}

void peer_write(struct peer *peer, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(peer->request_fd, bytes, length);

		assert_true(written > 0);
		bytes += written;
		length -= (size_t)written;
	}
}

/* Reads bytes up to a newline; returns false at the end of the replies. */
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

const json_t *peer_send(struct peer *peer, const char *bytes, size_t length)
{
	struct error err = ERROR_INIT;

	peer_write(peer, bytes, length);
	json_decref(peer->reply);
	peer->reply = NULL;
	assert_true(read_line(peer));
	check(json_parse(peer->line, strlen(peer->line), "reply", &peer->reply, &err), &err);
	return peer->reply;
}

const json_t *peer_ask(struct peer *peer, const char *verb, const char *members)
{
	char line[1024];
	int length = snprintf(line, sizeof line, "{\"id\": %lld, \"verb\": \"%s\"%s%s}\n",
			      (long long)++peer->id, verb, *members ? ", " : "", members);

	assert_true(length > 0 && (size_t)length < sizeof line);
	const json_t *reply = peer_send(peer, line, (size_t)length);
	assert_int_equal(json_int_or(reply, "id", -1), peer->id);
	return reply;
}

const json_t *peer_must(struct peer *peer, const char *verb, const char *members)
{
	const json_t *reply = peer_ask(peer, verb, members);

	if (!json_bool_or(reply, "ok", false))
		fail_msg("%s: %s", verb, json_string_or(reply, "error", "?"));
	return reply;
}

void peer_refused(struct peer *peer, const char *verb, const char *members, const char *status,
		  const char *part)
{
	const json_t *reply = peer_ask(peer, verb, members);

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
		.total_bytes = PEER_SHARED_BYTES,
		.records_offset = PEER_RECORDS_OFFSET,
		.records_bytes = PEER_RECORDS_BYTES,
		.tensors_offset = PEER_TENSORS_OFFSET,
		.tensors_bytes = PEER_TENSORS_BYTES,
	};

	peer->shared_fd = memfd_create("prony-test", 0);
	assert_true(peer->shared_fd >= 0);
	assert_int_equal(ftruncate(peer->shared_fd, PEER_SHARED_BYTES), 0);
	peer->shared = mmap(NULL, PEER_SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    peer->shared_fd, 0);
	assert_true(peer->shared != MAP_FAILED);
	memcpy(peer->shared, &header, sizeof header);
}

void peer_start(struct peer *peer, const char *adapter, const char *option)
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

int peer_stop(struct peer *peer)
{
	int status = -1;

	close(peer->request_fd);
	assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
	close(peer->reply_fd);
	munmap(peer->shared, PEER_SHARED_BYTES);
	close(peer->shared_fd);
	json_decref(peer->reply);
	free(peer->line);
	return status;
}

const json_t *peer_hello(struct peer *peer, bool shared)
{
	char members[256] = PEER_HELLO;

	if (shared)
		snprintf(members, sizeof members,
			 PEER_HELLO ", \"shared_memory\": {\"fd\": %d, \"bytes\": %d}",
			 peer->shared_fd, PEER_SHARED_BYTES);
	return peer_must(peer, "hello", members);
}

const char *peer_bundle(void)
{
	static char text[512];

	snprintf(text, sizeof text, "\"bundle\": \"%s\"", folder);
	return text;
}

void peer_prepare(struct peer *peer, bool shared)
{
	peer_hello(peer, shared);
	assert_true(json_bool_or(peer_must(peer, "supports", peer_bundle()), "supported", false));
	peer_must(peer, "open", peer_bundle());
	peer_must(peer, "build", "");
	for (int slot = 0; slot < PEER_SLOTS; slot++) {
		char members[64];

		snprintf(members, sizeof members, "\"slot\": %d, \"batch\": %d", slot, slot);
		peer_must(peer, "feed", members);
	}
}

/* Copies the records of the last run. */
static int64_t read_records(const struct peer *peer, bool shared, struct step_record *out,
			    size_t room)
{
	int64_t count = json_int_or(peer->reply, "records", -1);
	size_t bytes = (size_t)count * sizeof *out;

	assert_true(count > 0 && (size_t)count <= room);
	if (shared) {
		memcpy(out, peer->shared + PEER_RECORDS_OFFSET, bytes);
		return count;
	}
	struct error err = ERROR_INIT;
	char *path = path_join(folder, BUNDLE_RECORDS_FILE), *data;
	size_t length;

	check(file_read(path, sizeof *out * room, &data, &length, &err), &err);
	assert_int_equal(length, bytes);
	memcpy(out, data, bytes);
	free(data);
	free(path);
	return count;
}

void peer_check_run(struct peer *peer, bool shared, const char *members, int64_t expected)
{
	struct step_record records[64];
	int64_t before_ns = clock_monotonic_ns();
	const json_t *reply = peer_must(peer, "run", members);
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

int peer_write_bundle(void **state)
{
	struct error err = ERROR_INIT;
	SCOPED(graph) graph;
	SCOPED(arena) arena;
	struct recipe recipe;
	struct tensor_set weights, sets[2];

	(void)state;
	arena_init(&arena, 0);
	recipe_defaults(&recipe);
	recipe.stage = STAGE_TRAIN;
	recipe.batch = BATCH;
	recipe.slots = PEER_SLOTS;
	if (zoo_build(zoo_find("lenet", NULL), BATCH, &graph, &err) != PRONY_OK ||
	    graph_initial_weights(&graph, 1, &arena, &weights, &err) != PRONY_OK ||
	    directory_make_temporary("prony-test-worker", &folder, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	for (int k = 0; k < 2; k++) {
		const struct value *value =
			&graph.values[k == 0 ? graph_input(&graph, 0) : graph_label(&graph, 0)];

		sets[k].tensors = arena_array(&arena, PEER_SLOTS, sizeof(struct tensor));
		sets[k].count = PEER_SLOTS;
		for (size_t i = 0; i < PEER_SLOTS; i++)
			tensor_new(&arena, arena_printf(&arena, "%c.%zu", "xy"[k], i), value->dtype,
				   &value->shape, &sets[k].tensors[i], &err);
	}
	for (size_t i = 0; i < PEER_SLOTS; i++) {
		float *x = sets[0].tensors[i].data;
		int64_t *y = sets[1].tensors[i].data;

		for (size_t k = 0; k < BATCH * 28 * 28; k++)
			x[k] = (float)((k * 7 + i * 13) % 17) / 17;
		for (size_t k = 0; k < BATCH; k++)
			y[k] = (int64_t)(k + i) % 10;
	}
	check(bundle_write(folder, &recipe, &graph, &weights, &sets[0], &sets[1], NULL, NULL, &err),
	      &err);
	return 0;
}

int peer_remove_bundle(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	directory_remove(folder, &err);
	free(folder);
	return 0;
}
