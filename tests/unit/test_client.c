/* Tests the client against workers that follow the protocol, and workers that break it line by
 * line. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/strbuf.h"
#include "client_fixture.h"
#include "unit_test.h"

/* Shell functions of each script: take one request, send one line. */
#define SHELL                                                                                      \
	"take() { read -r line <&$PRONY_REQUEST_FD || exit 9; }\n"                                 \
	"say() { printf '%s\\n' \"$1\" >&$PRONY_REPLY_FD; }\n"                                     \
	"until_there() { until [ -e $FOLDER/$1 ]; do sleep 0.01; done; }\n"
/* How long the client waits for a worker that it asked to close: client_end.c. */
#define CLOSE_WAIT_NS (10 * SECOND_NS)
#define HELLO "take; say '{\"id\": 1, \"ok\": true}'\n"

/* Waits for an event that occurs on any machine; the delay says nothing about the client. */
static bool patient(int *turns)
{
	usleep(10000);
	return ++*turns < 6000;
}

static bool is_there(const struct peer *peer, const char *name)
{
	char *path = test_keep(path_join(peer->folder, name));
	bool there = file_exists(path);

	return there;
}

static void put(const struct peer *peer, const char *name)
{
	char *path = test_keep(path_join(peer->folder, name));

	assert_int_equal(file_write_atomic(path, "", 0, NULL), PRONY_OK);
}

TEST(a_conversation)
{
	struct peer peer;
	json_t *reply = NULL;
	int64_t sent, received, before = clock_monotonic_ns();

	peer_init_script(&peer,
			 SHELL "take; case $line in "
			       "*'\"device\":\"cpu\",\"backend\":\"\",\"options\":[],\"rank\":0,"
			       "\"world_size\":1,\"protocol\":2'*shared_memory*)"
			       " say '{\"id\": 1, \"ok\": true, \"unknown\": [{}], "
			       "\"shared_memory\": true}';; esac\n"
			       "take; case $line in *'\"bundle\":\"x\"'*)"
			       " say '{\"ok\": true, \"id\": 2, \"supported\": true}';; esac\n"
			       "take; say '{\"id\": 3, \"ok\": true}'; echo last words\n");
	peer_start(&peer);
	check(client_request(peer.client, VERB_HELLO, NULL, 0, &reply, &sent, &received, &peer.err),
	      &peer.err);
	assert_true(before <= sent && sent <= received && received <= clock_monotonic_ns());
	assert_true(json_is_array(json_object_get(reply, "unknown")));
	json_decref(reply);
	assert_true(client_uses_shared_memory(peer.client));
	check(client_request(peer.client, VERB_SUPPORTS, json_pack("{s:s}", "bundle", "x"), 0,
			     &reply, NULL, NULL, &peer.err),
	      &peer.err);
	assert_true(json_bool_or(reply, "supported", false));
	json_decref(reply);
	struct client_end end;
	client_end(peer.client, &end); /* requests a close */
	peer.client = NULL;
	assert_true(end.clean);
	assert_false(end.signalled);
	assert_int_equal(end.left_over, 0);
	assert_string_equal(end.how, "exit code 0");
	assert_string_equal(end.log, "last words\n");
	assert_true(end.rss_peak_bytes > 0 && end.user_ns >= 0 && end.system_ns >= 0);
	free(end.log);
	peer_end(&peer);
}

TEST(refusals_have_a_status_and_a_text)
{
	static const struct {
		const char *word;
		enum prony_status status;
	} rows[] = {{"unsupported", PRONY_UNSUPPORTED},
		    {"missing", PRONY_MISSING},
		    {"out-of-memory", PRONY_OUT_OF_MEMORY},
		    {"invalid", PRONY_INVALID},
		    {"crashed", PRONY_CRASHED},
		    {"whatever", PRONY_CRASHED}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct peer peer;
		char script[1024];

		snprintf(script, sizeof script,
			 "%stake; say '{\"id\": 2, \"ok\": false, \"status\": \"%s\", \"error\": "
			 "\"no LSTM\"}'\n"
			 "take; case $line in *close*) say '{\"id\": 3, \"ok\": true}';; esac\n",
			 SHELL HELLO, rows[i].word);
		peer_init_script(&peer, script);
		peer_start(&peer);
		peer_hello(&peer, PRONY_OK, NULL);
		peer_ask(&peer, VERB_BUILD, rows[i].status, "no LSTM");
		/* After a refusal, whatever its status, the parent sends close. */
		assert_true(peer_end(&peer).clean);
	}
}

TEST(a_null_id_is_a_refusal)
{
	struct peer peer;

	peer_init_script(&peer, SHELL HELLO "take; say '{\"id\": null, \"ok\": false, \"status\": "
					    "\"invalid\", \"error\": \"what?\"}'\n"
					    "take; say '{\"id\": 3, \"ok\": true}'\n"
					    "take; say '{\"id\": null, \"ok\": true}'\n");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	peer_ask(&peer, VERB_BUILD, PRONY_INVALID, "what?");
	peer_ask(&peer, VERB_BUILD, PRONY_OK, NULL);
	peer_ask(&peer, VERB_BUILD, PRONY_PROTOCOL, "id null instead of 4");
	peer_end(&peer);
}

TEST(lines_that_are_no_replies)
{
	static const struct {
		const char *line, *part;
	} rows[] = {
		{"{\"id\": 7, \"ok\": true}", "id 7 instead of 2"},
		{"{\"ok\": true}", "id none instead of 2"},
		{"{\"id\": \"2\", \"ok\": true}", "id \"2\" instead of 2"},
		{"{\"id\": 2.0, \"ok\": true}", "instead of 2"},
		{"{\"id\": null, \"ok\": 1}", "id null"},
		{"{\"id\": 2}", "no boolean 'ok'"},
		{"{\"id\": 2, \"ok\": \"yes\"}", "no boolean 'ok'"},
		{"[2]", "not a JSON object"},
		{"true", "not a JSON object"},
		{"", "not a JSON object"},
		{"{\"id\": 2, \"ok\": true", "not a JSON object"},
		{"{\"id\": 2, \"id\": 2, \"ok\": true}", "not a JSON object"},
		{"\377\376 \033[2J", "not a JSON object"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct peer peer;
		char script[1024];

		snprintf(script, sizeof script, "%stake; say '%s'; sleep 100\n", SHELL HELLO,
			 rows[i].line);
		peer_init_script(&peer, script);
		peer_start(&peer);
		peer_hello(&peer, PRONY_OK, NULL);
		int64_t start = clock_monotonic_ns();
		peer_ask(&peer, VERB_BUILD, PRONY_PROTOCOL, rows[i].part);
		/* No further request is sent: the worker is ended at once. */
		assert_true(peer_end(&peer).signalled);
		assert_true(clock_monotonic_ns() - start < CLOSE_WAIT_NS);
	}
}

TEST(one_reply_to_a_request)
{
	struct peer peer;

	peer_init_script(&peer, SHELL
			 "take; printf '{\"id\": 1, \"ok\": true}\\n{\"id\": 2, \"ok\": true}\\n' "
			 ">&$PRONY_REPLY_FD; sleep 100");
	peer_start(&peer);
	peer_hello(&peer, PRONY_PROTOCOL, "more than one line");
	peer_end(&peer);

	peer_init_script(&peer, SHELL HELLO "until_there go; say '{\"id\": 2, \"ok\": true}'; "
					    ": >$FOLDER/said; sleep 100");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	put(&peer, "go");
	for (int turns = 0; !is_there(&peer, "said") && patient(&turns);)
		continue;
	peer_ask(&peer, VERB_BUILD, PRONY_PROTOCOL, "output without a request");
	peer_end(&peer);

	/* Longer than 1 MiB, with and without a newline. */
	peer_init_script(&peer,
			 SHELL "take; head -c 3000000 /dev/zero | tr '\\0' x >&$PRONY_REPLY_FD; "
			       "say ''; sleep 100");
	peer_start(&peer);
	peer_hello(&peer, PRONY_PROTOCOL, "longer than 1 MiB");
	peer_end(&peer);

	/* The longest permitted line: 1 MiB with its newline. */
	peer_init_script(&peer, SHELL "take; { printf '{\"id\": 1, \"ok\": true, \"x\": \"'; "
				      "head -c 1048545 /dev/zero | tr '\\0' x; printf '\"}\\n'; } "
				      ">&$PRONY_REPLY_FD; sleep 100");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	client_hang_up(peer.client, 1, NULL);
	peer_end(&peer);
}

TEST(replies_in_pieces)
{
	struct peer peer;

	peer_init_script(&peer,
			 SHELL "take; for piece in '{\"id\"' ': 1, \"o' 'k\": tr' 'ue}'; do "
			       "printf %s \"$piece\" >&$PRONY_REPLY_FD; sleep 0.05; done; say ''\n"
			       "take; printf '{\"id\": 2, \"ok\"' >&$PRONY_REPLY_FD; exit 3");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	peer_ask(&peer, VERB_BUILD, PRONY_CRASHED,
		 "in the middle of its reply to build: exit code 3");
	assert_false(peer_end(&peer).clean);
}

/* Returns the process that a worker made; 0 if there is none yet. */
static pid_t pid_in(const char *folder)
{
	char *path = test_keep(path_join(folder, "pid")), *text = NULL;
	size_t length = 0;
	pid_t pid = 0;

	for (int turns = 0; pid == 0 && patient(&turns);) {
		if (file_read(path, 64, &text, &length, NULL) == PRONY_OK)
			pid = (pid_t)strtol(text, NULL, 10);
		free(text);
		text = NULL;
	}
	return pid;
}

TEST(ends_are_explained)
{
	struct peer peer;

	peer_init_script(&peer, SHELL
			 "take; echo about to fall; echo 'assertion x failed' >&2; kill -ABRT $$");
	peer_start(&peer);
	peer_hello(&peer, PRONY_CRASHED, "signal 6");
	assert_true(peer_end(&peer).signalled);

	peer_init_script(&peer, SHELL "echo gone; exit 4");
	peer_start(&peer);
	usleep(300000); /* usually it is gone before the first request; same text */
	peer_hello(&peer, PRONY_CRASHED, "during hello: exit code 4; last output: gone");
	assert_string_equal(peer_end(&peer).how, "exit code 4");

	/* The worker is gone: the request cannot be sent, and the previous reply is not taken for
	 * half of another. */
	peer_init_script(&peer, SHELL HELLO "until_there go; echo $$ >$FOLDER/new; "
					    "mv $FOLDER/new $FOLDER/pid; exit 3");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	put(&peer, "go");
	pid_t pid = pid_in(peer.folder);
	for (int turns = 0; kill(pid, 0) == 0 && patient(&turns);)
		continue;
	peer_ask(&peer, VERB_BUILD, PRONY_CRASHED, "the worker ended during build: exit code 3");
	assert_false(peer_end(&peer).clean);

	peer_init_script(&peer, "");
	peer.argv[0] = "prony-no-such-worker";
	peer_start(&peer);
	peer_hello(&peer, PRONY_MISSING, "cannot start 'prony-no-such-worker'");
	struct client_end end = peer_end(&peer);
	assert_false(end.clean);
	assert_string_equal(end.how, "it could not be started");
}

TEST(close_must_be_followed_by_exit_0)
{
	struct peer peer;

	peer_init_script(&peer, SHELL HELLO "take; say '{\"id\": 2, \"ok\": true}'; exit 5");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	struct client_end end = peer_end(&peer);
	assert_false(end.clean);
	assert_string_equal(end.how, "exit code 5");
}

TEST(nothing_outlives_it)
{
	struct peer peer;

	peer_init_script(&peer, SHELL HELLO
			 "(trap '' TERM HUP INT; setsid sleep 1000 & echo $! >$FOLDER/new; "
			 "mv $FOLDER/new $FOLDER/pid)\n"
			 "take; say '{\"id\": 2, \"ok\": true}'");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	pid_t pid = pid_in(peer.folder);
	assert_true(pid > 0 && kill(pid, 0) == 0);
	struct client_end end = peer_end(&peer);
	assert_true(end.clean);
	assert_int_equal(end.left_over, 1);
	assert_true(kill(pid, 0) < 0 && errno == ESRCH);

	/* A helper that ends by itself shortly after its worker does not count as left over. */
	peer_init_script(&peer, SHELL HELLO "(sleep 0.1 &)\ntake; say '{\"id\": 2, \"ok\": true}'");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	end = peer_end(&peer);
	assert_true(end.clean);
	assert_int_equal(end.left_over, 0);
}

/* A worker that kills its guard gains nothing: its leftover processes pass to the parent. */
TEST(a_killed_guard_leaves_nothing)
{
	struct peer peer;

	/* A child that this process already had is not one of the worker's. */
	pid_t helper = fork();
	if (helper == 0) {
		pause();
		_exit(0);
	}
	peer_init_script(&peer, SHELL HELLO
			 "(trap '' TERM HUP INT; setsid sh -c 'sleep 1000 & echo $! "
			 ">$FOLDER/new; mv $FOLDER/new $FOLDER/pid; wait' &)\n"
			 "until_there pid; until_there go; kill -KILL $PPID; sleep 1000");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	pid_t pid = pid_in(peer.folder);
	assert_true(pid > 0 && kill(pid, 0) == 0);
	put(&peer, "go");
	peer_ask(&peer, VERB_BUILD, PRONY_CRASHED, "the worker's guard process was killed");
	struct client_end end = peer_end(&peer);
	assert_false(end.clean);
	assert_true(end.left_over >= 2);
	assert_true(kill(pid, 0) < 0 && errno == ESRCH);
	assert_int_equal(kill(helper, SIGKILL), 0);
	assert_int_equal(waitpid(helper, NULL, 0), helper);
}

TEST(patience_ends)
{
	struct peer peer;
	int64_t start = clock_monotonic_ns();

	peer_init_script(&peer, SHELL "take; sleep 1000");
	peer.spec.timeout_ns = SECOND_NS / 2;
	peer_start(&peer);
	peer_hello(&peer, PRONY_TIMEOUT, "no reply to hello within 0.5 s");
	peer_end(&peer);
	assert_true(clock_monotonic_ns() - start < CLOSE_WAIT_NS);

	/* The worker does not even read: the request must not block the parent. */
	start = clock_monotonic_ns();
	peer_init_script(&peer, "sleep 1000");
	peer.spec.timeout_ns = SECOND_NS / 2;
	peer_start(&peer);
	size_t length = 1 << 21;
	char *line = malloc(length);
	json_t *reply = NULL;
	assert_non_null(line);
	memset(line, 'x', length);
	peer_error(&peer, client_send_raw(peer.client, line, length, 0, &reply, &peer.err),
		   PRONY_TIMEOUT, "within 0.5 s");
	free(line);
	peer_end(&peer);
	assert_true(clock_monotonic_ns() - start < CLOSE_WAIT_NS);
}

TEST(an_interruption_is_heard)
{
	struct peer peer;
	volatile int stop = 1;

	peer_init_script(&peer, SHELL "take; sleep 1000");
	peer.spec.stop = &stop;
	peer_start(&peer);
	peer_hello(&peer, PRONY_INTERRUPTED, "interrupted");
	peer_end(&peer);

	/* A worker that has measured is not killed: it may still close. */
	stop = 0;
	peer_init_script(&peer, SHELL HELLO "take; sleep 0.5; say '{\"id\": 3, \"ok\": true}'");
	peer.spec.stop = &stop;
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	stop = 1;
	peer_ask(&peer, VERB_BUILD, PRONY_INTERRUPTED, "interrupted");
	assert_true(peer_end(&peer).clean);
}

TEST(memory_has_a_limit)
{
	struct peer peer;

	/* tail keeps an unterminated line while its input is open. */
	peer_init_script(&peer, SHELL "take; { head -c 400000000 /dev/zero; sleep 1000; } | "
				      "tail -n 1 >/dev/null");
	peer.spec.memory_limit_bytes = 64 << 20;
	peer_start(&peer);
	peer_hello(&peer, PRONY_OUT_OF_MEMORY, "used more than 64 MiB");
	peer_end(&peer);
}

TEST(a_flood_on_standard_output_is_only_a_log)
{
	struct peer peer;

	peer_init_script(&peer, SHELL
			 "take; echo first; yes '{\"id\": 1, \"ok\": false}' | head -c 5000000; "
			 "head -c 100 /dev/zero; echo last; say '{\"id\": 1, \"ok\": true}'\n"
			 "take; say '{\"id\": 2, \"ok\": true}'");
	peer_start(&peer);
	peer_hello(&peer, PRONY_OK, NULL);
	struct client_end end;
	client_end(peer.client, &end);
	peer.client = NULL;
	assert_true(end.clean);
	assert_true(!strncmp(end.log, "first\n", 6));
	assert_string_equal(end.log + strlen(end.log) - 5, "last\n");
	assert_true(strlen(end.log) < (1 << 20) + 4096);
	free(end.log);
	peer_end(&peer);
}

TEST(raw_lines_and_hanging_up)
{
	struct peer peer;
	json_t *reply = NULL;

	peer_init_script(
		&peer, SHELL
		"take; say \"{\\\"id\\\": null, \\\"ok\\\": false, \\\"seen\\\": \\\"$line\\\"}\"\n"
		"take; say '{\"id\": 2, \"ok\": true}'\n"
		"take");
	peer_start(&peer);
	check(client_send_raw(peer.client, "not json", 8, 0, &reply, &peer.err), &peer.err);
	assert_string_equal(json_string_or(reply, "seen", ""), "not json");
	json_decref(reply);
	assert_int_equal(client_next_id(peer.client), 2);
	check(client_send_raw(peer.client, "", 0, 0, &reply, &peer.err), &peer.err);
	assert_true(json_is_true(json_object_get(reply, "ok")));
	json_decref(reply);
	peer_error(&peer, client_hang_up(peer.client, 0, &peer.err), PRONY_OK, NULL);
	struct client_end end = peer_end(&peer);
	assert_string_equal(end.how, "exit code 9");
	assert_false(end.clean || end.signalled);

	peer_init_script(&peer, "sleep 1000");
	peer_start(&peer);
	peer_error(&peer, client_hang_up(peer.client, SECOND_NS / 2, &peer.err), PRONY_TIMEOUT,
		   "still runs after its requests ended");
	assert_true(peer_end(&peer).signalled);
}

/* The guard's command line is shown by a program in its place; its list contains the last of many
 * processors. */
TEST(a_worker_has_all_its_cpus)
{
	const char *const nothing[] = {"x", NULL};
	struct client_end end;
	struct client *client = NULL;
	struct strbuf *line = test_strbuf();
	int cpus[400];

	strbuf_puts(line, "guard 3 4 ");
	for (int i = 0; i < 400; i++) {
		cpus[i] = 2 * i;
		strbuf_printf(line, "%s%d", i ? "," : "", cpus[i]);
	}
	strbuf_puts(line, " -- x\n");
	const struct client_spec spec = {.argv = nothing,
					 .self = "/bin/echo",
					 .bundle = "/",
					 .cpus = cpus,
					 .cpu_count = 400,
					 .timeout_ns = 10 * SECOND_NS};
	assert_int_equal(client_start(&spec, &client, NULL), PRONY_OK);
	client_end(client, &end);
	assert_string_equal(end.log, strbuf_text(line));
	free(end.log);
}

TEST(ending_nothing_is_fine)
{
	client_end(NULL, NULL);
}

int main(int argc, char **argv)
{
	int exit_code;

	if (client_fixture_guard(argc, argv, &exit_code))
		return exit_code;
	return unit_tests_run(NULL, NULL);
}
