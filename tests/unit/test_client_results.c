/* Tests a worker's claims about its steps and tensors, and its changes to the shared memory. The
 * worker is this program: "worker MODE" answers hello correctly and then lies as MODE says. */
#include <sys/mman.h>

#include "bundle/bundle.h"
#include "client_fixture.h"
#include "unit_test.h"

#define HOUR_NS (3600 * SECOND_NS)
#define SHARED_FD 7

/* The worker's side. */
struct liar {
	const char *mode;
	FILE *in, *out;
	char *shared; /* NULL: files */
	struct shared_header header;
};

static bool is(const struct liar *liar, const char *mode)
{
	return strcmp(liar->mode, mode) == 0;
}

static void say(struct liar *liar, json_t *reply, int64_t id)
{
	json_object_set_new(reply, "id", json_integer(id));
	json_object_set_new(reply, "ok", json_true());
	char *text = test_keep(json_dumps(reply, JSON_COMPACT));
	fprintf(liar->out, "%s\n", text);
	fflush(liar->out);
	json_decref(reply);
}

static void put(struct liar *liar, const char *file, uint64_t offset, const void *bytes,
		size_t length)
{
	if (liar->shared) {
		memcpy(liar->shared + offset, bytes, length);
		return;
	}
	char *path = test_keep(path_join(getenv("FOLDER"), file));
	/* Not synced to the disk: with a slow disk the time of a correct record would be
	 * unexplained. */
	FILE *out = fopen(path, "wb");
	if (out) {
		fwrite(bytes, 1, length, out);
		fclose(out);
	}
}

static void lie_about_steps(struct liar *liar, json_t *request, json_t *reply)
{
	int64_t steps = json_int_or(request, "steps", 0), records = is(liar, "long file") ? 4 : 3;
	struct step_record r[4];
	int64_t begin = clock_monotonic_ns();
	for (int i = 0; i < 4; i++) {
		r[i] = (struct step_record){begin, begin + 1000};
		begin += 1000;
	}
	while (clock_monotonic_ns() < begin)
		continue;
	if (is(liar, "later"))
		r[2].end_ns += HOUR_NS;
	if (is(liar, "earlier"))
		r[0].begin_ns -= HOUR_NS;
	if (is(liar, "backwards"))
		r[1].end_ns = r[1].begin_ns - 1;
	if (is(liar, "overlap"))
		r[1].begin_ns -= 10;
	if (is(liar, "far"))
		r[1].begin_ns = INT64_MIN;
	if (is(liar, "farther"))
		r[2].end_ns = INT64_MAX;
	if (is(liar, "lazy"))
		usleep(3500000);
	json_object_set_new(reply, "steps", json_integer(is(liar, "fewer") ? steps - 1 : steps));
	json_object_set_new(reply, "records", json_integer(is(liar, "one record") ? 1 : 3));
	json_object_set_new(reply, "begin_at_ns", json_integer(r[0].begin_ns));
	json_object_set_new(reply, "end_at_ns",
			    json_integer(is(liar, "disagree") ? r[2].end_ns - 1 : r[2].end_ns));
	if (is(liar, "no words"))
		json_object_clear(reply);
	if (is(liar, "short file"))
		records = 2;
	if (!is(liar, "no file"))
		put(liar, BUNDLE_RECORDS_FILE, liar->header.records_offset, r,
		    (size_t)records * sizeof *r);
}

static void lie_about_tensors(struct liar *liar, json_t *reply)
{
	static const float values[2] = {1, 2};
	struct tensor tensor = {.name = "loss",
				.dtype = DTYPE_F32,
				.shape = {.rank = 1, .dims = {2}},
				.data = (void *)(uintptr_t)values};
	struct tensor_set set = {.tensors = &tensor, .count = 1};
	char image[512] = {0};
	size_t bytes = safetensors_image_bytes(&set);
	safetensors_write_image(&set, image, bytes, NULL);
	if (is(liar, "garbage image"))
		memset(image, 0xff, sizeof image);
	if (!is(liar, "no file"))
		put(liar, BUNDLE_READ_FILE, liar->header.tensors_offset, image,
		    is(liar, "short file") ? bytes - 1 : bytes);
	int64_t claimed = is(liar, "huge image")  ? INT64_MAX
			  : is(liar, "no image")  ? 0
			  : is(liar, "cut image") ? (int64_t)bytes - 4
						  : (int64_t)bytes;
	json_object_set_new(reply, "bytes", json_integer(claimed));
	if (is(liar, "no words"))
		json_object_clear(reply);
	if (is(liar, "wild header"))
		memset(liar->shared, 0xff, sizeof(struct shared_header));
}

static void map_shared(struct liar *liar, json_t *reply)
{
	struct stat info;
	if (fstat(SHARED_FD, &info)) {
		if (is(liar, "claims memory"))
			json_object_set_new(reply, "shared_memory", json_true());
		return;
	}
	liar->shared =
		mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	memcpy(&liar->header, liar->shared, sizeof liar->header);
	json_object_set_new(reply, "shared_memory", json_true());
	if (is(liar, "shrinks"))
		json_object_set_new(reply, "shrunk", json_boolean(ftruncate(SHARED_FD, 0) == 0));
}

static int lie(const char *mode)
{
	struct liar liar = {.mode = mode,
			    .in = fdopen((int)strtol(getenv("PRONY_REQUEST_FD"), NULL, 10), "r"),
			    .out = fdopen((int)strtol(getenv("PRONY_REPLY_FD"), NULL, 10), "w")};
	char *line = NULL;
	size_t capacity = 0;
	ssize_t length;
	while ((length = getline(&line, &capacity, liar.in)) > 0) {
		json_t *request = json_loadb(line, (size_t)length, 0, NULL), *reply = json_object();
		const char *verb = json_string_or(request, "verb", "");
		if (!strcmp(verb, "hello"))
			map_shared(&liar, reply);
		else if (!strcmp(verb, "run"))
			lie_about_steps(&liar, request, reply);
		else if (!strcmp(verb, "read"))
			lie_about_tensors(&liar, reply);
		else if (is(&liar, "rewrites") && liar.shared)
			memset(liar.shared + liar.header.records_offset, 0x7f,
			       3 * sizeof(struct step_record));
		say(&liar, reply, json_int_or(request, "id", 0));
		bool closed = !strcmp(verb, "close");
		json_decref(request);
		if (closed)
			break;
	}
	free(line);
	fclose(liar.in);
	fclose(liar.out);
	return 0;
}

/* The test's side. */
static void start(struct peer *peer, const char *mode, bool shared)
{
	peer_init_self(peer, mode);
	peer->spec.no_shared_memory = !shared;
	peer_start(peer);
	peer_hello(peer, PRONY_OK, NULL);
	assert_int_equal(client_uses_shared_memory(peer->client), shared);
}

/* Runs three steps with a record each. */
static void run(const char *mode, bool shared, enum prony_status status, const char *part)
{
	struct peer peer;
	struct client_window window = {.count = 0};

	start(&peer, mode, shared);
	peer_error(&peer, client_run(peer.client, 3, SYNC_STEP, 1, 0, 0, &window, &peer.err),
		   status, part);
	if (status == PRONY_OK) {
		assert_int_equal(window.count, 3);
		assert_int_equal(window.records[2].end_ns - window.records[0].begin_ns, 3000);
	} else {
		assert_int_equal(window.count, 0);
	}
	/* A lie does not end the conversation. */
	assert_true(peer_end(&peer).clean);
}

TEST(steps_are_believed_when_they_can_be_true)
{
	run("", true, PRONY_OK, NULL);
	run("", false, PRONY_OK, NULL);
}

TEST(impossible_steps_are_not)
{
	static const struct {
		const char *mode, *part;
	} rows[] = {
		{"later", "after its reply arrived"},
		{"earlier", "before the request was sent"},
		{"backwards", "record 1 ends before it begins"},
		{"overlap", "record 1 begins 10 ns before the end of the record before"},
		{"far", "record 1 begins"},
		{"farther", "after its reply arrived"},
		{"lazy", "its records cover 0.000 s of a request that took "},
		{"fewer", "3 steps in 3 records were requested, but it reports 2 in 3"},
		{"one record", "it reports 3 in 1"},
		{"disagree", "differs from that of the records"},
		{"no words", "it reports -1 in -1"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		run(rows[i].mode, true, PRONY_INVALID, rows[i].part);
		run(rows[i].mode, false, PRONY_INVALID, rows[i].part);
	}
}

struct seen {
	int64_t longest_ns, rested_ns;
};

static int64_t all_but(void *context, int64_t from_ns, int64_t to_ns)
{
	struct seen *seen = context;

	assert_true(to_ns >= from_ns);
	if (to_ns - from_ns > seen->longest_ns)
		seen->longest_ns = to_ns - from_ns;
	/* Returns the whole time, or at most the time that the test sets. */
	return seen->rested_ns < to_ns - from_ns ? seen->rested_ns : to_ns - from_ns;
}

/* Runs a worker that sleeps after its steps; the observer reports rested_ns of that sleep. */
static void rest(int64_t rested_ns, bool shared, enum prony_status status)
{
	struct seen seen = {.rested_ns = rested_ns};
	struct peer peer;
	struct client_window window = {.count = 0};

	peer_init_self(&peer, "lazy");
	peer.spec.no_shared_memory = !shared;
	peer.spec.rested_ns = all_but;
	peer.spec.rested_context = &seen;
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	peer_error(&peer, client_run(peer.client, 3, SYNC_STEP, 1, 0, 0, &window, &peer.err),
		   status,
		   status == PRONY_OK ? NULL : "its records cover 0.000 s of a request that took ");
	/* The observer is asked about the time that no step explains. */
	assert_in_range(seen.longest_ns, 3500000000, 60 * SECOND_NS);
	if (status == PRONY_OK)
		assert_in_range(window.rested_ns, 3500000000, seen.longest_ns + 3500000000);
	assert_true(peer_end(&peer).clean);
}

TEST(what_it_rests_hides_no_work)
{
	rest(INT64_MAX, true, PRONY_OK);
	rest(INT64_MAX, false, PRONY_OK);
	/* Of several seconds, too little was observed as rest. */
	rest(100000000, true, PRONY_INVALID);
	rest(0, true, PRONY_INVALID);
}

TEST(files_of_records_are_whole)
{
	run("short file", false, PRONY_PROTOCOL, "has 32 bytes instead of 48");
	run("long file", false, PRONY_PROTOCOL, "records.bin");
	run("no file", false, PRONY_PROTOCOL, "records.bin");
}

/* The checked records are those that are used, whatever the worker later writes into its memory. */
TEST(records_stay_as_they_were_checked)
{
	struct peer peer;
	struct client_window window;

	start(&peer, "rewrites", true);
	check(client_run(peer.client, 3, SYNC_STEP, 1, 0, 0, &window, &peer.err), &peer.err);
	struct step_record first = window.records[0], last = window.records[2];
	/* The reply to the next request comes after the worker has written. */
	peer_ask(&peer, VERB_BUILD, PRONY_OK, NULL);
	assert_memory_equal(&window.records[0], &first, sizeof first);
	assert_memory_equal(&window.records[2], &last, sizeof last);
	assert_true(peer_end(&peer).clean);
}

TEST(more_records_than_room)
{
	struct peer peer;
	struct client_window window;

	start(&peer, "", true);
	peer_error(&peer, client_run(peer.client, 65, SYNC_STEP, 1, 0, 0, &window, &peer.err),
		   PRONY_INTERNAL, "no room for 65 records");
	assert_true(peer_end(&peer).clean);
}

static void read_loss(const char *mode, bool shared, enum prony_status status, const char *part)
{
	struct peer peer;
	SCOPED(arena) arena;
	struct tensor_set set = {.count = 0};

	arena_init(&arena, 0);
	start(&peer, mode, shared);
	peer_error(&peer, client_read(peer.client, "loss", &arena, &set, &peer.err), status, part);
	if (status == PRONY_OK) {
		assert_int_equal(set.count, 1);
		assert_string_equal(set.tensors[0].name, "loss");
		assert_true(((const float *)set.tensors[0].data)[1] == 2.0f);
	}
	assert_true(peer_end(&peer).clean);
}

TEST(tensors_are_read_and_checked)
{
	read_loss("", true, PRONY_OK, NULL);
	read_loss("", false, PRONY_OK, NULL);
	read_loss("garbage image", true, PRONY_PROTOCOL, NULL);
	read_loss("garbage image", false, PRONY_PROTOCOL, NULL);
	read_loss("cut image", true, PRONY_PROTOCOL, NULL);
	read_loss("cut image", false, PRONY_PROTOCOL, "instead of");
	read_loss("huge image", true, PRONY_PROTOCOL,
		  "it says that it read 9223372036854775807 bytes");
	read_loss("huge image", false, PRONY_PROTOCOL, "instead of");
	read_loss("no image", true, PRONY_PROTOCOL, "it says that it read 0 bytes");
	read_loss("no words", true, PRONY_PROTOCOL, "it says that it read -1 bytes");
	read_loss("short file", false, PRONY_PROTOCOL, "read.safetensors");
	read_loss("no file", false, PRONY_PROTOCOL, "read.safetensors");
}

TEST(a_worker_cannot_hurt_through_shared_memory)
{
	struct peer peer;
	json_t *reply = NULL;

	read_loss("wild header", true, PRONY_OK, NULL);
	peer_init_self(&peer, "shrinks");
	peer_start(&peer);
	peer_error(&peer,
		   client_request(peer.client, VERB_HELLO, NULL, 0, &reply, NULL, NULL, &peer.err),
		   PRONY_OK, NULL);
	assert_false(json_bool_or(reply, "shrunk", true));
	json_decref(reply);
	assert_true(peer_end(&peer).clean);

	peer_init_self(&peer, "claims memory");
	peer.spec.no_shared_memory = true;
	peer_start(&peer);
	peer_hello(&peer, PRONY_PROTOCOL, "none was offered");
	peer_end(&peer);
}

int main(int argc, char **argv)
{
	int exit_code;

	if (client_fixture_guard(argc, argv, &exit_code))
		return exit_code;
	if (argc == 3 && !strcmp(argv[1], "worker"))
		return lie(argv[2]);
	return unit_tests_run(NULL, NULL);
}
