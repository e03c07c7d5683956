/* Tests installation: the worker that loads the installed library behaves as the file in the wheel
 * says. */
#include <dlfcn.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "base/digest.h"
#include "base/process.h"
#include "frameworks/folders_internal.h"
#include "install_fixture.h"
#include "samples/protocol.h"
#include "unit_test.h"
#include "wheel_fixture.h"

#define LIBRARY "mxnet/libmxnet.so"
#define SIZES "# disk-mb: 1\n"

static const struct framework *find(const char *name)
{
	return framework_find(&install_registry, name, NULL);
}

struct fixture {
	struct install_fixture install;
	char *folder, *staging;
};

/* Replies according to the first word of the library. */
static json_t *play(const json_t *request, const char *name, const char *library)
{
	bool imposter = strncmp(library, "imposter", 8) == 0;
	json_t *id = json_object_get(request, "id");

	if (strncmp(library, "crash", 5) == 0) {
		fprintf(stderr, "about to crash\nundefined symbol: frobnicate\n");
		raise(SIGKILL);
	}
	if (strncmp(library, "babble", 6) == 0)
		return NULL;
	if (strncmp(library, "refuse", 6) == 0)
		return json_pack("{s:O, s:b, s:s, s:s}", "id", id, "ok", 0, "status", "missing",
				 "error", "needs another processor");
	return json_pack("{s:O, s:b, s:i, s:s, s:s, s:{s:s}}", "id", id, "ok", 1, "protocol",
			 PROTOCOL_VERSION, "name", imposter ? "native" : name, "version", "9.9",
			 "libraries", "blas", "3");
}

static int set_up(void **state)
{
	struct fixture *fixture = memory_alloc(sizeof(*fixture));

	if (!install_fixture_make(&fixture->install))
		return -1;
	fixture->folder = path_join(fixture->install.home, "prony/frameworks/mxnet");
	fixture->staging = path_join(fixture->install.home, "prony/frameworks/.mxnet.part");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	bool gone = install_fixture_release(&fixture->install);

	free(fixture->staging);
	free(fixture->folder);
	free(fixture);
	return gone ? 0 : -1;
}

#define INSTALL_TEST(name) TEST_ON(name, set_up, tear_down, struct fixture *fixture)

static void offer(const struct fixture *fixture, const char *version, const char *behaviour)
{
	install_offer(&fixture->install, "mxnet", version, behaviour, SIZES);
}

static enum prony_status install(struct fixture *fixture, struct error *err)
{
	strbuf_clear(&fixture->install.lines);
	return framework_install(find("mxnet"), "", &fixture->install.sink, err);
}

static void assert_installs(struct fixture *fixture, const char *line)
{
	struct error err = ERROR_INIT;

	check(install(fixture, &err), &err);
	assert_has(strbuf_text(&fixture->install.lines), line);
	assert_false(file_exists(fixture->staging));
}

/* Requires the installation to fail with the message and to leave the previous files unchanged. */
static void assert_refused(struct fixture *fixture, enum prony_status status, const char *message)
{
	struct error err = ERROR_INIT;
	bool before = file_exists(fixture->folder);

	assert_int_equal(install(fixture, &err), status);
	assert_has(err.text, message);
	assert_int_equal(file_exists(fixture->folder), before);
	assert_false(file_exists(fixture->staging));
}

INSTALL_TEST(installs_tries_and_keeps)
{
	struct framework_location place;
	SCOPED(arena) arena;

	offer(fixture, "9.9", "good");
	assert_installs(fixture, "version 9.9 (blas 3)");
	arena_init(&arena, 0);
	assert_int_equal(framework_locate(find("mxnet"), "", &arena, &place, NULL), PRONY_OK);
	assert_int_equal(place.origin, ORIGIN_INSTALLED);
	assert_string_equal(place.version, "9.9");
	assert_true(file_exists(place.library));

	/* The second time nothing is run or fetched: it works without any program on PATH. */
	char *path = test_keep(memory_strdup(getenv("PATH")));
	setenv("PATH", "/nowhere", 1);
	assert_installs(fixture, "9.9 is already installed");
	setenv("PATH", path, 1);

	/* The library that the user named will be used: a message says so. */
	setenv("PRONY_MXNET_LIBRARY", "/opt/libmxnet.so", 1);
	assert_installs(fixture,
			"PRONY_MXNET_LIBRARY=/opt/libmxnet.so is set and takes precedence");
	unsetenv("PRONY_MXNET_LIBRARY");
}

/* A library of size zero is rejected; files that are run later are not writable for everybody. */
INSTALL_TEST(an_empty_library_and_an_open_umask)
{
	char *library = test_keep(path_join(fixture->folder, LIBRARY));
	struct framework_location place;
	struct stat info;
	SCOPED(arena) arena;

	mode_t before = umask(0);
	offer(fixture, "9.9", "good");
	assert_installs(fixture, "installed in");
	umask(before);
	const char *const made[] = {fixture->folder, library};
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(stat(made[i], &info), 0);
		assert_int_equal(info.st_mode & S_IWOTH, 0);
	}
	assert_int_equal(truncate(library, 0), 0);
	arena_init(&arena, 0);
	assert_int_equal(framework_locate(find("mxnet"), "", &arena, &place, NULL), PRONY_OK);
	assert_int_equal(place.origin, ORIGIN_NONE);
	assert_has(place.reason, "is empty; install it again");
	assert_installs(fixture, "installed in");
}

INSTALL_TEST(another_lock_replaces)
{
	char *library = path_join(fixture->folder, LIBRARY), *text;
	size_t length;

	offer(fixture, "9.9", "good old");
	assert_installs(fixture, "installed in");
	offer(fixture, "9.10", "good new");
	assert_installs(fixture, "installing 9.10");
	assert_int_equal(file_read(library, 64, &text, &length, NULL), PRONY_OK);
	assert_string_equal(text, "good new");
	free(text);
	/* A failed installation leaves the working one. */
	offer(fixture, "9.11", "refuse");
	assert_refused(fixture, PRONY_MISSING, "needs another processor");
	assert_int_equal(file_read(library, 64, &text, &length, NULL), PRONY_OK);
	assert_string_equal(text, "good new");
	free(text);
	free(library);
}

INSTALL_TEST(what_does_not_load_is_not_installed)
{
	offer(fixture, "9.1", "refuse");
	assert_refused(fixture, PRONY_MISSING,
		       "not installed, because it does not work here: needs");
	offer(fixture, "9.2", "crash");
	assert_refused(fixture, PRONY_CRASHED, "undefined symbol: frobnicate");
	offer(fixture, "9.3", "babble");
	assert_refused(fixture, PRONY_PROTOCOL, "the reply to hello is not a JSON object");
	offer(fixture, "9.4", "imposter");
	assert_refused(fixture, PRONY_INVALID,
		       "worker of mxnet says in hello that its name is \"native\"");
}

/* The steps of a descriptor are each done and reported before the worker is tried. */
INSTALL_TEST(repairs_are_done)
{
	static const char *symbols[] = {"MPI_Init"};
	struct framework_repair steps[] = {
		{.kind = REPAIR_SYMLINK,
		 .why = "asks for it",
		 .path = "mx*t/liba.so.1",
		 .text = "libmxnet.so"},
		{.kind = REPAIR_WRITE_FILE,
		 .why = "reads it",
		 .path = "etc/mx.cfg",
		 .text = "quiet\n"},
		{.kind = REPAIR_STUB_LIBRARY,
		 .why = "never calls it",
		 .path = "mxnet/libmpi.so.12",
		 .symbols = {symbols, 1}},
	};
	struct framework mxnet = *find("mxnet");
	struct error err = ERROR_INIT;
	char target[64] = "", *path = path_join(fixture->folder, "mxnet/liba.so.1");

	offer(fixture, "9.9", "good");
	mxnet.repairs = steps;
	mxnet.repair_count = COUNT(steps);
	check(framework_install(&mxnet, "", &fixture->install.sink, &err), &err);
	assert_has(strbuf_text(&fixture->install.lines), "repairing mx*t/liba.so.1: asks for it");
	assert_int_equal(readlink(path, target, sizeof(target) - 1), 11);
	assert_string_equal(target, "libmxnet.so");
	free(path);
	path = path_join(fixture->folder, "etc/mx.cfg");
	assert_true(file_exists(path));
	free(path);
	path = path_join(fixture->folder, "mxnet/libmpi.so.12");
	void *stub = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(stub);
	assert_non_null(dlsym(stub, "MPI_Init"));
	dlclose(stub);
	free(path);

	/* A pattern without a match is reported, and the previous installation stays. */
	steps[0].path = "no*ne/liba.so.1";
	offer(fixture, "9.10", "good");
	expect_error(framework_install(&mxnet, "", &fixture->install.sink, &err), PRONY_BAD_INPUT,
		     &err, "0 installed folders match no*ne/liba.so.1");
	assert_false(file_exists(fixture->staging));
}

INSTALL_TEST(hash_is_checked)
{
	char sha256[DIGEST_HEX_BYTES];

	offer(fixture, "9.9", "good");
	/* The same name and version with other contents: the wheel was changed on the way. */
	wheel_write(fixture->install.wheels, "mxnet", "9.9", LIBRARY, "good but another", sha256);
	assert_refused(fixture, PRONY_BAD_INPUT, "does not have the SHA-256");
}

INSTALL_TEST(nothing_to_download)
{
	char sha256[DIGEST_HEX_BYTES];

	offer(fixture, "9.9", "good");
	install_write_lock(&fixture->install, "mxnet", "9.8",
			   "0000000000000000000000000000000000000000000000000000000000000000",
			   SIZES);
	assert_refused(fixture, PRONY_IO, "pip could not download the packages");

	/* A registry that does not answer: port 9 of this machine. */
	unsetenv("PIP_NO_INDEX");
	setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple", 1);
	setenv("PIP_FIND_LINKS", "", 1);
	assert_refused(fixture, PRONY_IO, "could not reach a package index");
	unsetenv("PIP_INDEX_URL");
	setenv("PIP_NO_INDEX", "1", 1);
	setenv("PIP_FIND_LINKS", fixture->install.wheels, 1);

	wheel_write(fixture->install.wheels, "mxnet", "9.7", "mxnet/other.so", "good", sha256);
	install_write_lock(&fixture->install, "mxnet", "9.7", sha256, SIZES);
	assert_refused(fixture, PRONY_BAD_INPUT, "is not among the files that 'keep' takes");
}

INSTALL_TEST(needs_are_checked_first)
{
	install_write_lock(&fixture->install, "mxnet", "9.9", "00",
			   SIZES "# needs: libnothere.so.7\n");
	assert_refused(fixture, PRONY_MISSING, "apt install libnothere7");
	install_write_lock(&fixture->install, "mxnet", "9.9", "00",
			   SIZES "# download-mb: 1000000\n");
	assert_refused(fixture, PRONY_IO, "MB are free");
}

INSTALL_TEST(other_peoples_folders_stay)
{
	offer(fixture, "9.9", "good");
	install_put_file(fixture->folder, "notes.txt", "mine");
	assert_refused(fixture, PRONY_MISSING, "prony did not create it");
	char *notes = test_keep(path_join(fixture->folder, "notes.txt"));
	assert_int_equal(unlink(notes), 0);
	/* An empty folder may be used; the remains of a killed installation are removed. */
	install_put_file(fixture->staging, "tree/half", "of a library");
	assert_installs(fixture, "installed in");
}

/* What is installed in a shared folder from the same lock is not installed again. */
INSTALL_TEST(shared_ones_are_enough)
{
	char *home = fixture->install.home, *shared = test_text("%s/prony", home);
	char *mine = test_text("%s/mine", home);

	offer(fixture, "9.9", "good");
	assert_installs(fixture, "installed in");
	setenv("XDG_DATA_HOME", mine, 1);
	setenv("PRONY_SHARED", shared, 1);
	assert_int_equal(directory_make(test_text("%s/prony", mine), NULL), PRONY_OK);
	assert_int_equal(symlink(test_text("%s/locks", shared), test_text("%s/prony/locks", mine)),
			 0);
	assert_installs(fixture, test_text("9.9 is already installed: %s", fixture->folder));
	assert_false(file_exists(test_text("%s/prony/frameworks", mine)));

	/* Another version goes into the user's own folder. */
	offer(fixture, "9.10", "good");
	assert_installs(fixture, test_text("in %s/prony/frameworks/mxnet", mine));
	unsetenv("PRONY_SHARED");
}

INSTALL_TEST(environments_need_a_lock_of_their_own)
{
	const struct framework *mxnet = find("mxnet");
	char sha256[DIGEST_HEX_BYTES];
	struct error err = ERROR_INIT;

	offer(fixture, "9.9", "good");
	assert_int_equal(framework_install(mxnet, "old", NULL, &err), PRONY_MISSING);
	assert_has(err.text, "no lock file mxnet@old.txt");
	assert_has(err.text, "PRONY_MXNET_OLD_LIBRARY");
	wheel_write(fixture->install.wheels, "mxnet", "8.8", LIBRARY, "good", sha256);
	install_write_lock(&fixture->install, "mxnet@old", "8.8", sha256, SIZES);
	assert_int_equal(framework_install(mxnet, "old", NULL, NULL), PRONY_OK);
	char *folder = path_join(fixture->install.home, "prony/frameworks/mxnet@old");
	assert_true(file_is_directory(folder));
	assert_false(file_exists(fixture->folder));
	assert_int_equal(framework_remove(mxnet, "old", NULL), PRONY_OK);
	assert_false(file_exists(folder));
	free(folder);

	/* Exception: an environment named by the version of the usual lock. */
	error_clear(&err);
	assert_int_equal(framework_install(mxnet, "9", NULL, NULL), PRONY_OK);
	assert_int_equal(framework_install(mxnet, "9.9", NULL, NULL), PRONY_OK);
	folder = path_join(fixture->install.home, "prony/frameworks/mxnet@9.9");
	assert_true(file_is_directory(folder));
	free(folder);
	assert_int_equal(framework_install(mxnet, "9.", NULL, &err), PRONY_MISSING);
	error_clear(&err);
	assert_int_equal(framework_install(mxnet, "9.90", NULL, &err), PRONY_MISSING);

	error_clear(&err);
	assert_int_equal(framework_install(mxnet, "../x", NULL, &err), PRONY_USAGE);
	error_clear(&err);
	assert_int_equal(framework_remove(find("null"), "", &err), PRONY_MISSING);
	assert_int_equal(framework_install(find("null"), "", NULL, NULL), PRONY_OK);
}

INSTALL_TEST(lock_for_something_else)
{
	install_put_file(
		fixture->install.home, "prony/locks/mxnet.txt",
		"# framework: native\n# kind: unpack\n# version: 1\n# library: a\n# keep: a\n");
	assert_refused(fixture, PRONY_BAD_INPUT, "framework is native; it must be mxnet");
	install_put_file(fixture->install.home, "prony/locks/mxnet.txt",
			 "# framework: mxnet\n# kind: venv\n# version: 1\n# python: 3.11\n");
	assert_refused(fixture, PRONY_BAD_INPUT, "kind must be unpack");
}

/* A Python version that is not found: the message names every place that was searched. */
INSTALL_TEST(missing_interpreter)
{
	const struct framework *pytorch = find("pytorch");
	struct error err = ERROR_INIT;

	install_put_file(fixture->install.home, "prony/locks/pytorch.txt",
			 "# framework: pytorch\n# kind: venv\n# version: 1\n# python: 1.4\n");
	assert_int_equal(framework_install(pytorch, "", NULL, &err), PRONY_MISSING);
	assert_has(err.text, "needs Python 1.4");
	assert_has(err.text, "PRONY_PYTHON_1_4 is not set, no python1.4 on PATH");
	error_clear(&err);
	setenv("PRONY_PYTHON_1_4", "/usr/bin/env", 1);
	expect_error(framework_install(pytorch, "", NULL, &err), PRONY_MISSING, &err,
		     "/usr/bin/env (does not run)");
	unsetenv("PRONY_PYTHON_1_4");
}

/* The lock's own pip is installed before the packages that it installs. */
INSTALL_TEST(the_locks_own_pip_comes_first)
{
	const char *const argv[] = {
		"python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2], end='')", NULL};
	const struct process_spec spec = {.argv = argv};
	struct process_end end;
	struct error err = ERROR_INIT;
	char *version = NULL;

	assert_int_equal(process_run(&spec, INT64_C(60000000000), 64, &version, &end, NULL),
			 PRONY_OK);
	char *text = test_text(
		"# framework: pytorch\n# kind: venv\n# version: 1\n# python: %s\n# pip: 99.9.9 "
		"%064d\nnever==1 --hash=sha256:%064d\n",
		version, 0, 0);

	install_put_file(fixture->install.home, "prony/locks/pytorch.txt", text);
	assert_int_equal(framework_install(find("pytorch"), "", &fixture->install.sink, &err),
			 PRONY_IO);
	assert_has(strbuf_text(&fixture->install.lines), "pip 99.9.9 first");
	assert_has(err.text, "pip==99.9.9");
	free(version);
}

INSTALL_TEST(stop_cleans_up)
{
	struct error err = ERROR_INIT;

	offer(fixture, "9.9", "good");
	fixture->install.stop = 1;
	assert_int_equal(install(fixture, &err), PRONY_INTERRUPTED);
	assert_false(file_exists(fixture->folder));
	assert_false(file_exists(fixture->staging));
	fixture->install.stop = 0;
	assert_installs(fixture, "installed in");
}

/* Runs in the child of one_at_a_time: reports through a pipe that it waits. */
static void tell_that_it_waits(void *context, const char *text)
{
	const int *told = context;

	if (strstr(text, "waiting for another prony") && write(*told, "w", 1) != 1)
		_exit(2);
}

static _Noreturn void install_and_tell(int told)
{
	const struct install_sink sink = {.line = tell_that_it_waits, .context = &told};

	_exit(framework_install(find("mxnet"), "", &sink, NULL) == PRONY_OK ? 0 : 1);
}

/* A second installation waits for the first one's lock, and finds the work done. */
INSTALL_TEST(one_at_a_time)
{
	char *path = test_keep(path_join(fixture->install.home, "prony/frameworks/.mxnet.lock"));
	char *frameworks = test_keep(path_join(fixture->install.home, "prony/frameworks"));

	offer(fixture, "9.9", "good");
	assert_int_equal(directory_make(frameworks, NULL), PRONY_OK);
	int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(lock >= 0 && flock(lock, LOCK_EX) == 0);
	int told[2];
	char byte = 0;
	assert_int_equal(pipe(told), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		install_and_tell(told[1]);
	/* The child waits, or has ended without waiting: then no byte arrives. */
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	clock_sleep_until_ns(clock_monotonic_ns() + 600000000);
	assert_false(file_exists(fixture->folder));
	/* The fork copied the lock's file descriptor: unlock it, closing it is not enough. */
	flock(lock, LOCK_UN);
	close(lock);
	int status = -1;
	assert_true(waitpid(child, &status, 0) == child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(file_exists(fixture->folder));
}

int main(int argc, char **argv)
{
	return install_main(argc, argv, play);
}
