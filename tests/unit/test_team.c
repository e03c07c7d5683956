/* Teams of two workers are asked together, take as long as the slowest, and end at the first
 * failure. The worker is this program: "worker MODE". */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "client_fixture.h"
#include "run/team.h"
#include "unit_test.h"

#define SHARED_FD 7
#define MS INT64_C(1000000)

/*
 * Returns the path of a file in the folder that both workers and the test use: "pid-0", "asked-1".
 */
static char *file_of(const char *folder, const char *what, int rank)
{
	return memory_printf("%s/%s-%d", folder, what, rank);
}

static void put(const char *what, int rank, long number)
{
	char *path = file_of(getenv("FOLDER"), what, rank), text[32];
	int length = snprintf(text, sizeof text, "%ld", number);
	file_write_atomic(path, text, (size_t)length, NULL);
	free(path);
}

static void wait_for(const char *what, int rank)
{
	char *path = test_keep(file_of(getenv("FOLDER"), what, rank));
	while (!file_exists(path))
		usleep(1000);
}

/* Runs one step, of 1 us or 5 ms. Rank 0 answers after rank 1 was asked. */
static void run_step(const char *mode, int rank, char *shared, json_t *reply)
{
	put("asked", rank, 0);
	if (!strcmp(mode, "crash") && rank == 1)
		exit(3);
	if (!strcmp(mode, "fail") && rank == 1) {
		json_object_set_new(reply, "ok", json_false());
		json_object_set_new(reply, "status", json_string("out-of-memory"));
		json_object_set_new(reply, "error", json_string("no more"));
		return;
	}
	if (!strcmp(mode, "crash") || !strcmp(mode, "fail") || (!strcmp(mode, "hang") && rank == 1))
		for (;;)
			pause();
	if (rank == 0)
		wait_for("asked", 1);
	struct shared_header header;
	memcpy(&header, shared, sizeof header);
	struct step_record record = {.begin_ns = clock_monotonic_ns()};
	record.end_ns = record.begin_ns + (rank == 1 ? 5 * MS : 1000);
	clock_sleep_until_ns(record.end_ns);
	memcpy(shared + header.records_offset, &record, sizeof record);
	json_object_set_new(reply, "steps", json_integer(1));
	json_object_set_new(reply, "records", json_integer(1));
	json_object_set_new(reply, "begin_at_ns", json_integer(record.begin_ns));
	json_object_set_new(reply, "end_at_ns", json_integer(record.end_ns));
}

static int worker(const char *mode)
{
	FILE *in = fdopen((int)strtol(getenv("PRONY_REQUEST_FD"), NULL, 10), "r");
	FILE *out = fdopen((int)strtol(getenv("PRONY_REPLY_FD"), NULL, 10), "w");
	char line[65536], *shared = NULL;
	int rank = 0;
	bool over = false;
	while (!over && fgets(line, sizeof line, in)) {
		json_auto_t *request = json_loads(line, 0, NULL);
		json_auto_t *reply =
			json_pack("{s:b, s:I}", "ok", 1, "id", json_int_or(request, "id", 0));
		const char *verb = json_string_or(request, "verb", "");
		if (!strcmp(verb, "hello")) {
			json_t *offer = json_object_get(request, "shared_memory");
			shared = mmap(NULL, (size_t)json_int_or(offer, "bytes", 0),
				      PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
			rank = (int)json_int_or(request, "rank", -1);
			json_object_set_new(reply, "shared_memory", json_true());
			put("pid", rank, getpid());
		} else if (!strcmp(verb, "run")) {
			run_step(mode, rank, shared, reply);
		}
		over = !strcmp(verb, "close");
		char *text = test_keep(json_dumps(reply, JSON_COMPACT));
		fprintf(out, "%s\n", text);
		fflush(out);
	}
	return 0;
}

static enum prony_status ignore(void *context, size_t rank, const struct client_reply *reply,
				struct error *err)
{
	(void)context, (void)rank, (void)reply, (void)err;
	return PRONY_OK;
}

static void start(struct peer *peer, struct team *team, const char *mode)
{
	static const struct target two = {.device = "cpu", .world_size = 2};

	peer_init_self(peer, mode);
	peer->spec.target = &two;
	check(team_start(team, &peer->spec, &peer->err), &peer->err);
	assert_int_equal(team->count, 2);
	check(team_request(team, VERB_HELLO, NULL, ignore, NULL, &peer->err), &peer->err);
}

static enum prony_status run(struct peer *peer, struct team *team, int64_t timeout_ns,
			     struct client_window *window)
{
	return team_run(team, 1, SYNC_END, 1, 0, timeout_ns, window, &peer->err);
}

/* Ends the team; neither worker is running afterwards. */
static struct client_end end(struct peer *peer, struct team *team)
{
	struct client_end end;
	pid_t pids[2];

	for (int rank = 0; rank < 2; rank++) {
		char *path = file_of(peer->folder, "pid", rank), *text = NULL;
		size_t length;
		assert_int_equal(file_read(path, 32, &text, &length, NULL), PRONY_OK);
		pids[rank] = (pid_t)strtol(text, NULL, 10);
		free(text);
		free(path);
	}
	team_end(team, &end);
	free(end.log);
	for (int rank = 0; rank < 2; rank++)
		assert_true(kill(pids[rank], 0) != 0 && errno == ESRCH);
	peer_end(peer);
	return end;
}

TEST(the_slowest_counts)
{
	struct peer peer;
	struct team team;
	struct client_window window;

	start(&peer, &team, "slow");
	/* Rank 0 answers only after rank 1 has been asked, too. */
	assert_int_equal(run(&peer, &team, 0, &window), PRONY_OK);
	assert_int_equal(window.count, 1);
	assert_int_equal(window.records[0].end_ns - window.records[0].begin_ns, 5 * MS);
	assert_true(end(&peer, &team).clean);
}

TEST(a_crash_of_one_ends_both)
{
	struct peer peer;
	struct team team;
	struct client_window window;

	start(&peer, &team, "crash");
	assert_int_equal(run(&peer, &team, 0, &window), PRONY_CRASHED);
	assert_has(peer.err.text, "rank 1 of 2: the worker ended during run: exit code 3");
	assert_false(end(&peer, &team).clean);
}

/* The other one would wait for it until the time limit. */
TEST(a_refusal_of_one_ends_both)
{
	struct peer peer;
	struct team team;
	struct client_window window;
	int64_t begin = clock_monotonic_ns();

	start(&peer, &team, "fail");
	assert_int_equal(run(&peer, &team, 600000 * MS, &window), PRONY_OUT_OF_MEMORY);
	assert_has(peer.err.text, "rank 1 of 2: no more");
	assert_true(clock_monotonic_ns() - begin < 300000 * MS);
	assert_false(end(&peer, &team).clean);
}

/* Ranks share cores and memory, and a folder that goes with them. */
TEST(what_the_ranks_share)
{
	static const int cpus[] = {0, 1, 2, 3};
	static const struct target two = {.device = "cpu", .world_size = 2};
	struct peer peer;
	struct team team;

	peer_init_self(&peer, "slow");
	peer.spec.target = &two;
	peer.spec.cpus = cpus;
	peer.spec.cpu_count = 4;
	peer.spec.memory_limit_bytes = 1 << 30;
	team_start(&team, &peer.spec, NULL);
	assert_int_equal(team.members[1].spec.cpus[0], 2);
	assert_int_equal(team.members[1].spec.cpu_count, 2);
	assert_int_equal(team.members[0].spec.memory_limit_bytes, 1 << 29);
	const struct rendezvous *meeting = &team.members[1].target.rendezvous;
	assert_true(file_exists(meeting->folder));
	for (int i = 0; i < 3; i++)
		assert_true(meeting->ports[i] > 0 &&
			    meeting->ports[i] != meeting->ports[(i + 1) % 3]);
	char *folder = test_keep(memory_strdup(meeting->folder));
	struct client_end last;
	team_end(&team, &last);
	free(last.log);
	assert_false(file_exists(folder));
	peer_end(&peer);
}

TEST(a_hang_of_one_ends_both)
{
	struct peer peer;
	struct team team;
	struct client_window window;

	start(&peer, &team, "hang");
	assert_int_equal(run(&peer, &team, 300 * MS, &window), PRONY_TIMEOUT);
	assert_has(peer.err.text, "of 2 ranks these did not answer: 1: no reply to run");
	assert_false(end(&peer, &team).clean);
}

int main(int argc, char **argv)
{
	int exit_code = 0;
	if (client_fixture_guard(argc, argv, &exit_code))
		return exit_code;
	if (argc > 2 && strcmp(argv[1], "worker") == 0)
		return worker(argv[2]);
	return unit_tests_run(NULL, NULL);
}
