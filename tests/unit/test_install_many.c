/* Tests several installations at a time; their workers report whether another one is running. */
#include <inttypes.h>
#include <sys/statvfs.h>

#include "install_fixture.h"
#include "samples/protocol.h"
#include "unit_test.h"

#define MEET_NS INT64_C(60000000000)
#define STAY_NS INT64_C(500000000)
#define MARKS "PRONY_TEST_MARKS"

struct fixture {
	struct install_fixture install;
	char *marks;
};

static void wait_ns(int64_t ns)
{
	clock_sleep_until_ns(clock_monotonic_ns() + ns);
}

/* Returns whether a worker other than this one has left its mark. */
static bool another_is_here(const char *name, const char *const *others)
{
	bool found = false;

	for (; *others; others++) {
		char *path = test_keep(path_join(getenv(MARKS), *others));
		found = found || (strcmp(*others, name) != 0 && file_exists(path));
	}
	return found;
}

/* Acts on the library's text: "meet" waits for another worker, "alone" fails if there is one. */
static bool behave(const char *text, const char *name)
{
	static const char *const names[] = {"mxnet", "onnxruntime", "openvino", NULL};
	char *mark = test_keep(path_join(getenv(MARKS), name));
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
	return good;
}

static json_t *play(const json_t *request, const char *name, const char *library)
{
	json_t *id = json_object_get(request, "id");

	if (!behave(library, name))
		return json_pack("{s:O, s:b, s:s, s:s+}", "id", id, "ok", 0, "status", "missing",
				 "error", "needs another ", library);
	return json_pack("{s:O, s:b, s:i, s:s, s:s}", "id", id, "ok", 1, "protocol",
			 PROTOCOL_VERSION, "name", name, "version", "9.9");
}

static int set_up(void **state)
{
	struct fixture *fixture = memory_alloc(sizeof(*fixture));

	if (!install_fixture_make(&fixture->install))
		return -1;
	fixture->marks = path_join(fixture->install.home, "marks");
	if (directory_make(fixture->marks, NULL) != PRONY_OK)
		return -1;
	setenv(MARKS, fixture->marks, 1);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	bool gone = install_fixture_release(&fixture->install);

	free(fixture->marks);
	free(fixture);
	return gone ? 0 : -1;
}

#define INSTALL_TEST(name) TEST_ON(name, set_up, tear_down, struct fixture *fixture)

static void offer(const struct fixture *fixture, const char *name, const char *behaviour,
		  int64_t download_mb, int64_t disk_mb)
{
	char *sizes = test_text("# download-mb: %" PRId64 "\n# disk-mb: %" PRId64 "\n", download_mb,
				disk_mb);

	install_offer(&fixture->install, name, "9.9", behaviour, sizes);
}

static enum prony_status install(struct fixture *fixture, struct install_item *items, size_t count,
				 size_t jobs)
{
	static const char *const names[] = {"mxnet", "onnxruntime", "openvino"};

	strbuf_clear(&fixture->install.lines);
	for (size_t i = 0; i < count; i++)
		items[i] = (struct install_item){
			.framework = framework_find(&install_registry, names[i], NULL),
			.environment = "",
			.error = ERROR_INIT};
	return framework_install_many(items, count, jobs, &fixture->install.sink);
}

/* Two installations side by side and a third that fails; then the same command again. */
INSTALL_TEST(side_by_side_and_again)
{
	struct install_item items[3];

	offer(fixture, "mxnet", "meet", 3, 5);
	offer(fixture, "onnxruntime", "meet", 4, 6);
	offer(fixture, "openvino", "refuse", 5, 7);
	assert_int_equal(install(fixture, items, 3, 2), PRONY_MISSING);
	for (int i = 0; i < 2; i++)
		if (items[i].status != PRONY_OK)
			fail_msg("%s", items[i].error.text);
	assert_int_equal(items[2].status, PRONY_MISSING);
	assert_has(items[2].error.text, "needs another refuse");
	const char *lines = strbuf_text(&fixture->install.lines);
	assert_has(lines, "onnxruntime 9.9: download 4 MB, on disk 6 MB\n");
	assert_has(lines, "3 to install, at most 2 at a time: download 12 MB, on disk 18 MB; ");
	assert_has(lines, "1 of 3: ");
	assert_has(lines, ": openvino could not be installed");
	assert_has(lines, "2 of 3 are installed after ");

	/* Existing installations are left unchanged; the failed one is tried again. */
	offer(fixture, "openvino", "good", 5, 7);
	assert_int_equal(install(fixture, items, 3, 2), PRONY_OK);
	lines = strbuf_text(&fixture->install.lines);
	assert_has(lines, "mxnet: 9.9 is already installed");
	assert_lacks(lines, "mxnet: installing");
	assert_has(lines, "openvino: installing 9.9");
	assert_has(lines, "3 of 3 are installed");
}

/* Each needs most of the disk during installation, so they run one after the other. */
INSTALL_TEST(only_what_the_disk_has_room_for)
{
	struct install_item items[2];
	struct statvfs info;

	assert_int_equal(statvfs(fixture->install.home, &info), 0);
	int64_t free_mb = (int64_t)((double)info.f_bavail * (double)info.f_frsize / 1e6);
	offer(fixture, "mxnet", "alone", 0, free_mb * 2 / 3);
	offer(fixture, "onnxruntime", "alone", free_mb / 3, 0);
	assert_int_equal(install(fixture, items, 2, 2), PRONY_OK);
	assert_has(strbuf_text(&fixture->install.lines), "waiting for the others");

	offer(fixture, "mxnet", "good again", 0, free_mb * 2 / 3);
	offer(fixture, "onnxruntime", "good again", 0, 2 * free_mb);
	assert_int_equal(install(fixture, items, 2, 2), PRONY_IO);
	assert_int_equal(items[0].status, PRONY_OK);
	assert_has(items[1].error.text, "MB are free in");
	assert_has(strbuf_text(&fixture->install.lines), "too little for all");
}

INSTALL_TEST(stopped_before_the_first)
{
	struct install_item items[2];
	char *folder = test_keep(path_join(fixture->install.home, "prony/frameworks"));

	offer(fixture, "mxnet", "good", 1, 1);
	offer(fixture, "onnxruntime", "good", 1, 1);
	fixture->install.stop = 1;
	assert_int_equal(install(fixture, items, 2, 2), PRONY_INTERRUPTED);
	assert_int_equal(items[1].status, PRONY_INTERRUPTED);
	assert_has(strbuf_text(&fixture->install.lines), "repeat the command to continue");
	assert_false(file_exists(folder));
	fixture->install.stop = 0;
	assert_int_equal(install(fixture, items, 0, 2), PRONY_OK);
}

int main(int argc, char **argv)
{
	return install_main(argc, argv, play);
}
