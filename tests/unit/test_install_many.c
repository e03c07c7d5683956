/*
 * Several installations at a time, offline: pip takes small wheels from a folder, and this program
 * plays the workers that load them, which tell whether another one is at work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "client/guard.h"
#include "frameworks/registry.h"
#include "samples/protocol.h"
#include "wheel_fixture.h"

#define LINES_BYTES_MAX ((size_t)64 * 1024)
#define MEET_NS INT64_C(60000000000)
#define STAY_NS INT64_C(500000000)
#define MARKS "PRONY_TEST_MARKS"

static struct registry registry;

struct fixture {
	char *home, *wheels, *marks;
	struct strbuf lines; /* of the sink */
	volatile int stop;
};

static void wait_ns(int64_t ns)
{
	clock_sleep_until_ns(clock_monotonic_ns() + ns);
}

/* Whether another worker than this one has left its mark. */
static bool another_is_here(const char *name, const char *const *others)
{
	bool found = false;

	for (; *others; others++) {
		char *path = path_join(getenv(MARKS), *others);
		found = found || (strcmp(*others, name) != 0 && file_exists(path));
		free(path);
	}
	return found;
}

/* What the library says: "meet" waits for another worker, "alone" fails where there is one. */
static bool behave(const char *text, const char *name)
{
	static const char *const names[] = {"mxnet", "onnxruntime", "openvino", NULL};
	char *mark = path_join(getenv(MARKS), name);
	bool good = strncmp(text, "refuse", 6) != 0;
	int64_t deadline = clock_monotonic_ns() + MEET_NS;

	file_write_atomic(mark, "", 0, NULL);
	if (strncmp(text, "meet", 4) == 0) {
		while (!another_is_here(name, names) && clock_monotonic_ns() < deadline)
			wait_ns(10000000);
		good = another_is_here(name, names);
	} else if (strncmp(text, "alone", 5) == 0) {
		wait_ns(STAY_NS);
		good = !another_is_here(name, names);
		unlink(mark);
	}
	free(mark);
	return good;
}

/* `program worker --adapter NAME --library FILE` */
static int play_worker(const char *name, const char *library)
{
	const char *reply_fd = getenv("PRONY_REPLY_FD"), *request_fd = getenv("PRONY_REQUEST_FD");
	char text[256] = "", line[1024];
	FILE *file = fopen(library, "r");

	if (!file || !reply_fd || !request_fd || !fgets(text, sizeof(text), file))
		return 1;
	fclose(file);
	FILE *requests = fdopen((int)strtol(request_fd, NULL, 10), "r");
	FILE *replies = fdopen((int)strtol(reply_fd, NULL, 10), "w");
	if (!requests || !replies || !fgets(line, sizeof(line), requests))
		return 1;
	json_t *request = json_loads(line, 0, NULL), *id = json_object_get(request, "id");
	json_t *reply =
		behave(text, name)
			? json_pack("{s:O, s:b, s:i, s:s, s:s}", "id", id, "ok", 1, "protocol",
				    PROTOCOL_VERSION, "name", name, "version", "9.9")
			: json_pack("{s:O, s:b, s:s, s:s+}", "id", id, "ok", 0, "status", "missing",
				    "error", "needs another ", text);
	char *words = json_dumps(reply, JSON_COMPACT);
	fprintf(replies, "%s\n", words);
	free(words);
	json_decref(reply);
	json_decref(request);
	fflush(replies);
	return 0;
}

static void take_line(void *context, const char *text)
{
	struct strbuf *lines = context;

	strbuf_puts(lines, text);
	strbuf_putc(lines, '\n');
}

static int set_up(void **state)
{
	struct fixture *fixture = memory_alloc(sizeof(*fixture));

	*fixture = (struct fixture){0};
	strbuf_init(&fixture->lines, LINES_BYTES_MAX);
	if (directory_make_temporary("prony-test-", &fixture->home, NULL) != PRONY_OK)
		return -1;
	fixture->wheels = path_join(fixture->home, "wheels");
	fixture->marks = path_join(fixture->home, "marks");
	if (directory_make(fixture->marks, NULL) != PRONY_OK)
		return -1;
	setenv("XDG_DATA_HOME", fixture->home, 1);
	setenv("PIP_NO_INDEX", "1", 1);
	setenv("PIP_CONFIG_FILE", "/dev/null", 1);
	setenv("PIP_FIND_LINKS", fixture->wheels, 1);
	setenv(MARKS, fixture->marks, 1);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	enum prony_status status = directory_remove(fixture->home, NULL);

	strbuf_release(&fixture->lines);
	free(fixture->marks);
	free(fixture->wheels);
	free(fixture->home);
	free(fixture);
	return status == PRONY_OK ? 0 : -1;
}

/* A wheel whose library says `behaviour`, and a lock in DATA/locks, which goes before the tree's.
 */
static void offer(const struct fixture *fixture, const char *name, const char *behaviour,
		  int64_t download_mb, int64_t disk_mb)
{
	char sha256[DIGEST_HEX_BYTES], *library = memory_printf("%s/%s.so", name, name);
	char *folder = path_join(fixture->home, "prony/locks");
	char *lock = memory_printf("%s/%s.txt", folder, name);

	wheel_write(fixture->wheels, name, "9.9", library, behaviour, sha256);
	char *text = memory_printf("# framework: %s\n# kind: unpack\n# version: 9.9\n"
				   "# download-mb: %" PRId64 "\n# disk-mb: %" PRId64 "\n"
				   "# pip-arguments: --no-deps --only-binary=:all:\n# keep: %s\n"
				   "# library: %s\n%s==9.9 \\\n    --hash=sha256:%s\n",
				   name, download_mb, disk_mb, library, library, name, sha256);
	assert_int_equal(directory_make(folder, NULL), PRONY_OK);
	assert_int_equal(file_write_atomic(lock, text, strlen(text), NULL), PRONY_OK);
	free(text);
	free(lock);
	free(folder);
	free(library);
}

static void assert_holds(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

static enum prony_status install(struct fixture *fixture, struct install_item *items, size_t count,
				 size_t jobs)
{
	static const char *const names[] = {"mxnet", "onnxruntime", "openvino"};
	const struct install_sink sink = {
		.line = take_line, .context = &fixture->lines, .stop = &fixture->stop};

	strbuf_clear(&fixture->lines);
	for (size_t i = 0; i < count; i++)
		items[i] = (struct install_item){.framework =
							 framework_find(&registry, names[i], NULL),
						 .environment = "",
						 .error = ERROR_INIT};
	return framework_install_many(items, count, jobs, &sink);
}

/* Two side by side, a third that does not work; then the same command again. */
static void side_by_side_and_again(void **state)
{
	struct fixture *fixture = *state;
	struct install_item items[3];

	offer(fixture, "mxnet", "meet", 3, 5);
	offer(fixture, "onnxruntime", "meet", 4, 6);
	offer(fixture, "openvino", "refuse", 5, 7);
	assert_int_equal(install(fixture, items, 3, 2), PRONY_MISSING);
	for (int i = 0; i < 2; i++)
		if (items[i].status != PRONY_OK)
			fail_msg("%s", items[i].error.text);
	assert_int_equal(items[2].status, PRONY_MISSING);
	assert_holds(items[2].error.text, "needs another refuse");
	const char *lines = strbuf_text(&fixture->lines);
	assert_holds(lines, "onnxruntime 9.9: download 4 MB, on disk 6 MB\n");
	assert_holds(lines, "3 to install, at most 2 at a time: download 12 MB, on disk 18 MB; ");
	assert_holds(lines, "1 of 3: ");
	assert_holds(lines, ": openvino could not be installed");
	assert_holds(lines, "2 of 3 are there, after ");

	/* What is there is left alone; what failed is tried again. */
	offer(fixture, "openvino", "good", 5, 7);
	assert_int_equal(install(fixture, items, 3, 2), PRONY_OK);
	lines = strbuf_text(&fixture->lines);
	assert_holds(lines, "mxnet: 9.9 is installed already");
	assert_null(strstr(lines, "mxnet: installing"));
	assert_holds(lines, "openvino: installing 9.9");
	assert_holds(lines, "3 of 3 are there");
}

/* Each takes most of the disk while it is installed: then one after the other. */
static void only_what_the_disk_has_room_for(void **state)
{
	struct fixture *fixture = *state;
	struct install_item items[2];
	struct statvfs info;

	assert_int_equal(statvfs(fixture->home, &info), 0);
	int64_t free_mb = (int64_t)((double)info.f_bavail * (double)info.f_frsize / 1e6);
	offer(fixture, "mxnet", "alone", 0, free_mb * 2 / 3);
	offer(fixture, "onnxruntime", "alone", free_mb / 3, 0);
	assert_int_equal(install(fixture, items, 2, 2), PRONY_OK);
	assert_holds(strbuf_text(&fixture->lines), "waits for the others: it takes ");

	offer(fixture, "mxnet", "good again", 0, free_mb * 2 / 3);
	offer(fixture, "onnxruntime", "good again", 0, 2 * free_mb);
	assert_int_equal(install(fixture, items, 2, 2), PRONY_IO);
	assert_int_equal(items[0].status, PRONY_OK);
	assert_holds(items[1].error.text, "MB are free below");
	assert_holds(strbuf_text(&fixture->lines), "which is too little for all of them");
}

static void stopped_before_the_first(void **state)
{
	struct fixture *fixture = *state;
	struct install_item items[2];
	char *folder = path_join(fixture->home, "prony/frameworks");

	offer(fixture, "mxnet", "good", 1, 1);
	offer(fixture, "onnxruntime", "good", 1, 1);
	fixture->stop = 1;
	assert_int_equal(install(fixture, items, 2, 2), PRONY_INTERRUPTED);
	assert_int_equal(items[1].status, PRONY_INTERRUPTED);
	assert_holds(strbuf_text(&fixture->lines), "the same command goes on from here");
	assert_false(file_exists(folder));
	fixture->stop = 0;
	assert_int_equal(install(fixture, items, 0, 2), PRONY_OK);
	free(folder);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(side_by_side_and_again),
		TEST(only_what_the_disk_has_room_for),
		TEST(stopped_before_the_first),
	};

	if (argc >= 2 && strcmp(argv[1], "guard") == 0)
		return guard_main(argc - 1, argv + 1);
	if (argc == 6 && strcmp(argv[1], "worker") == 0)
		return play_worker(argv[3], argv[5]);
	signal(SIGPIPE, SIG_IGN);
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
	if (registry_load(&registry, NULL) != PRONY_OK)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	registry_release(&registry);
	return failed;
}
