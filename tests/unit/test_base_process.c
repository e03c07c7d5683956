/* Tests child processes: what they receive, how they end, how much of their output is kept. */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/process.h"
#include "unit_test.h"

#define SECOND_NS INT64_C(1000000000)
#define PATIENCE_NS (120 * SECOND_NS) /* limit for commands that end at once unless they hang */

/* Runs a shell script to its end; the caller frees the output. */
static char *shell(const char *script, size_t limit_bytes, struct process_end *end)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const struct process_spec spec = {.argv = argv};
	struct error err = ERROR_INIT;
	char *output = NULL;

	check(process_run(&spec, PATIENCE_NS, limit_bytes, &output, end, &err), &err);
	return test_keep(output);
}

static void no_child_is_left(void)
{
	/* The first process of a container inherits the orphans of others. */
	if (getpid() == 1)
		return;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

TEST(ends_are_described)
{
	static const struct {
		const char *script;
		bool signalled;
		int code;
		const char *text;
	} rows[] = {
		{"exit 0", false, 0, "exit code 0"},
		{"exit 3", false, 3, "exit code 3"},
		{"kill -9 $$", true, 9, "killed by signal 9 (Killed)"},
		{"kill -TERM $$", true, 15, "killed by signal 15 (Terminated)"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct process_end end;
		char text[64];
		shell(rows[i].script, 100, &end);
		assert_int_equal(end.signalled, rows[i].signalled);
		assert_int_equal(end.code, rows[i].code);
		process_end_text(&end, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
	no_child_is_left();
}

TEST(output_keeps_the_tail)
{
	static const struct {
		const char *script;
		size_t limit_bytes;
		const char *output;
	} rows[] = {
		{"echo out; echo err >&2; echo out", 100, "out\nerr\nout\n"},
		{"seq 1 100000", 20, "99999\n100000\n"},
		{"printf abcdef", 6, "abcdef"},
		{"printf abcdef", 5, "bcdef"},
		{"printf abcdef", 0, ""},
		{"printf 'a\\0b'", 10, "a b"},
		{"cat", 10, ""}, /* stdin is empty */
		{"true", 10, ""},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *output = shell(rows[i].script, rows[i].limit_bytes, NULL);
		size_t wanted = strlen(rows[i].output), length = strlen(output);
		assert_true(length <= rows[i].limit_bytes && length >= wanted);
		assert_string_equal(output + length - wanted, rows[i].output);
		if (rows[i].limit_bytes != 20)
			assert_int_equal(length, wanted);
	}
}

/* Files that a child makes, such as the packages that pip unpacks, may be run later. */
TEST(nothing_is_everybodys_to_write)
{
	static const struct {
		mode_t mask;
		const char *inherited;
	} rows[] = {{0, "0002\n"}, {022, "0022\n"}, {077, "0077\n"}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		mode_t before = umask(rows[i].mask);
		char *output = shell("umask", 100, NULL);

		umask(before);
		assert_string_equal(output, rows[i].inherited);
	}
}

TEST(large_output_is_complete)
{
	struct process_end end;
	char *output = shell("yes 0123456 | head -c 3000000", 4000000, &end);

	assert_int_equal(strlen(output), 3000000);
	assert_memory_equal(output + 2999992, "0123456\n", 8);
}

TEST(failed_starts)
{
	char *folder, text[256];
	struct error err = ERROR_INIT;
	pid_t pid = -5;

	assert_int_equal(directory_make_temporary("prony-test-", &folder, NULL), PRONY_OK);
	char *plain = test_keep(path_join(folder, "plain")),
	     *script = test_keep(path_join(folder, "script"));
	assert_int_equal(file_write_atomic(plain, "x", 1, NULL), PRONY_OK);
	assert_int_equal(file_write_atomic(script, "#!/no/such/shell\n", 17, NULL), PRONY_OK);
	assert_int_equal(chmod(script, 0755), 0);
	const struct {
		const char *program, *directory;
		enum prony_status status;
		const char *text;
	} rows[] = {
		{"no-such-program-at-all", NULL, PRONY_MISSING, "no such program on PATH"},
		{"/no/such/program", NULL, PRONY_MISSING, "/no/such/program: No such file"},
		{plain, NULL, PRONY_IO, "Permission denied"},
		{script, NULL, PRONY_MISSING, "interpreter"},
		{"true", "/no/such/folder", PRONY_IO, "in the directory /no/such/folder"},
		{"", NULL, PRONY_MISSING, "no such program"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *const argv[] = {rows[i].program, NULL};
		const struct process_spec spec = {.argv = argv, .directory = rows[i].directory};
		error_clear(&err);
		expect_error(process_start(&spec, &pid, &err), rows[i].status, &err, rows[i].text);
		assert_int_equal(pid, -5);
		char *output = text;
		assert_int_equal(process_run(&spec, -1, 10, &output, NULL, NULL), rows[i].status);
		assert_ptr_equal(output, text);
	}
	no_child_is_left();
	const char *const none[] = {NULL};
	assert_int_equal(process_start(&(struct process_spec){.argv = none}, &pid, NULL),
			 PRONY_INTERNAL);
	assert_int_equal(directory_remove(folder, NULL), PRONY_OK);
	free(folder);
}

/* Returns true if the process is gone, or a zombie that this process cannot reap. */
static bool is_dead(long pid)
{
	char path[64], *text, *after;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	if (file_read(path, 4096, &text, &length, NULL) != PRONY_OK)
		return true;
	after = strrchr(text, ')');
	bool dead = after && (after[2] == 'Z' || after[2] == 'X');
	free(text);
	return dead;
}

TEST(timeout_kills_the_group)
{
	static const char *const argv[] = {"sh", "-c", "sleep 600 & echo first; echo $!; wait",
					   NULL};
	/* A machine under load may need more than half a second until the first line. */
	static const struct {
		int64_t limit_ns;
		const char *text;
	} rows[] = {{SECOND_NS / 2, "0.5 s and was killed; last output: "},
		    {20 * SECOND_NS, "20 s and was killed; last output: "}};
	const struct process_spec spec = {.argv = argv};
	struct error err = ERROR_INIT;
	char *output = NULL;
	const char *last = NULL;

	for (size_t i = 0; i < COUNT(rows) && !last; i++) {
		int64_t before = clock_monotonic_ns();
		error_clear(&err);
		assert_int_equal(process_run(&spec, rows[i].limit_ns, 100, &output, NULL, &err),
				 PRONY_TIMEOUT);
		/* This is long before the script would have ended by itself. */
		assert_true(clock_monotonic_ns() - before < 300 * SECOND_NS);
		assert_null(output);
		no_child_is_left();
		last = strstr(err.text, rows[i].text);
	}
	assert_non_null(last);
	long grandchild = strtol(strrchr(last, ' ') + 1, NULL, 10);
	assert_true(grandchild > 1);
	for (int i = 0; i < 3000 && !is_dead(grandchild); i++)
		clock_sleep_until_ns(clock_monotonic_ns() + 10000000);
	assert_true(is_dead(grandchild));
}

TEST(endless_output_meets_the_deadline)
{
	static const char *const argv[] = {"yes", NULL};
	const struct process_spec spec = {.argv = argv};
	int64_t before = clock_monotonic_ns();

	/* Without the deadline the child would run until the test is killed. */
	assert_int_equal(process_run(&spec, SECOND_NS / 4, 1000, NULL, NULL, NULL), PRONY_TIMEOUT);
	assert_true(clock_monotonic_ns() - before < 30 * SECOND_NS);
	no_child_is_left();
}

TEST(a_wish_to_stop_ends_a_run)
{
	static const char *const argv[] = {"sh", "-c", "sleep 1000 & wait", NULL};
	const volatile int stop = 1;
	const struct process_spec spec = {.argv = argv, .stop = &stop};
	struct error err = ERROR_INIT;

	/* Without a check of the flag, the child would run until the deadline. */
	assert_int_equal(process_run(&spec, PATIENCE_NS, 1000, NULL, NULL, &err),
			 PRONY_INTERRUPTED);
	assert_string_equal(err.text, "interrupted");
	no_child_is_left();
}

TEST(left_behind_daemons_do_not_block)
{
	char *output = shell("sleep 1000 & echo $!", 100, NULL);

	/* It still runs, so process_run did not wait for it. */
	long daemon = strtol(output, NULL, 10);
	assert_true(daemon > 1 && !is_dead(daemon));
	kill((pid_t)daemon, SIGKILL);
}

TEST(closed_output_is_not_the_end)
{
	struct process_end end;
	char *output = shell("echo a; exec >&- 2>&-; sleep 0.2; exit 4", 100, &end);

	assert_string_equal(output, "a\n");
	assert_int_equal(end.code, 4);
}

TEST(waiting_can_time_out)
{
	static const char *const argv[] = {"sleep", "60", NULL};
	const struct process_spec spec = {.argv = argv, .new_group = true};
	struct process_end end = {.code = 77};
	struct error err = ERROR_INIT;
	pid_t pid;

	check(process_start(&spec, &pid, &err), &err);
	assert_int_equal(getpgid(pid), pid);
	assert_int_equal(process_wait(pid, 0, &end, NULL), PRONY_TIMEOUT);
	expect_error(process_wait(pid, SECOND_NS / 20, &end, &err), PRONY_TIMEOUT, &err, "0.05 s");
	assert_int_equal(end.code, 77);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(kill(-pid, SIGKILL), 0);
	assert_int_equal(process_wait(pid, PATIENCE_NS, &end, NULL), PRONY_OK);
	assert_true(end.signalled && end.code == SIGKILL);
	assert_int_equal(process_wait(pid, -1, &end, &err), PRONY_INTERNAL);
	no_child_is_left();
}

/* The rows exchange 5 and 6, so that the source of each is the target of the other; 5 is also
 * passed as 9. */
TEST(descriptors_are_passed)
{
	static const char *const argv[] = {"sh", "-c", "printf A >&5; printf B >&6; printf C >&9",
					   NULL};
	int pipes[2][2];
	pid_t pid;
	char letters[4] = "";
	struct process_end end;

	for (int i = 0; i < 2; i++) {
		int ends[2];
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		pipes[i][0] = ends[0];
		pipes[i][1] = fcntl(ends[1], F_DUPFD_CLOEXEC, 20);
		close(ends[1]);
	}
	int saved[2] = {fcntl(5, F_DUPFD_CLOEXEC, 40), fcntl(6, F_DUPFD_CLOEXEC, 40)};
	for (int i = 0; i < 2; i++)
		if (pipes[i][0] == 5 || pipes[i][0] == 6)
			pipes[i][0] = saved[pipes[i][0] - 5];
	assert_int_equal(dup2(pipes[0][1], 5), 5);
	assert_int_equal(dup2(pipes[1][1], 6), 6);
	const struct process_fd fds[] = {
		{.parent = 5, .child = 6}, {.parent = 6, .child = 5}, {.parent = 5, .child = 9}};
	const struct process_spec spec = {.argv = argv, .fds = fds, .fd_count = COUNT(fds)};
	assert_int_equal(process_start(&spec, &pid, NULL), PRONY_OK);
	assert_int_equal(process_wait(pid, PATIENCE_NS, &end, NULL), PRONY_OK);
	assert_int_equal(end.code, 0);
	assert_int_equal(read(pipes[1][0], letters, 3), 1);
	assert_string_equal(letters, "A");
	assert_int_equal(read(pipes[0][0], letters, 3), 2);
	assert_string_equal(letters, "BC");
	for (int i = 0; i < 2; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
		close(5 + i);
		if (saved[i] >= 0)
			close(saved[i]);
	}
}

TEST(other_descriptors_are_closed)
{
	int first = open("/dev/null", O_RDONLY);
	/* Above the standard three, which may have been closed when this program was started. */
	int leaking = fcntl(first, F_DUPFD, 3), high = fcntl(first, F_DUPFD, 700);

	close(first);
	assert_true(leaking > 2 && high >= 700);
	char *output = shell("for fd in /proc/$$/fd/*; do n=${fd##*/}; [ -e $fd ] && "
			     "case $(readlink $fd) in /dev/null) echo $n;; esac; done",
			     100, NULL);
	assert_string_equal(output, "0\n");
	close(leaking);
	close(high);
}

TEST(environment_and_directory)
{
	static const char *const argv[] = {
		"sh", "-c", "echo $ADDED,${GONE-unset},$CHANGED,$TWICE,$KEPT; pwd", NULL};
	static const char *const rows[] = {"ADDED=a=b", "GONE",	     "CHANGED=new",
					   "TWICE=one", "TWICE=two", NULL};
	const struct process_spec spec = {.argv = argv, .environment = rows, .directory = "/"};
	char *output;

	setenv("GONE", "here", 1);
	setenv("CHANGED", "old", 1);
	setenv("KEPT", "kept", 1);
	assert_int_equal(process_run(&spec, PATIENCE_NS, 100, &output, NULL, NULL), PRONY_OK);
	assert_string_equal(output, "a=b,unset,new,two,kept\n/\n");
	assert_string_equal(getenv("CHANGED"), "old");
	free(output);
}

/* Uses the kernel's own calls: the C library hides the signals that its threads use. */
static bool is_ignored(int number)
{
	uintptr_t action[8] = {
		0}; /* the handler is the first member on all architectures of Linux except MIPS */

	syscall(SYS_rt_sigaction, number, NULL, action, (size_t)(NSIG / 8));
	return (void (*)(int))action[0] == SIG_IGN;
}

static void ignore_internal(int number, bool ignored)
{
	uintptr_t action[8] = {ignored ? (uintptr_t)SIG_IGN : (uintptr_t)SIG_DFL};

	assert_int_equal(syscall(SYS_rt_sigaction, number, action, NULL, (size_t)(NSIG / 8)), 0);
}

/* Runs this program as its own child: prints each signal that is blocked or ignored. */
static int print_signals(void)
{
	unsigned long long blocked = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, (size_t)(NSIG / 8));
	for (int number = 1; number < NSIG; number++) {
		if (blocked >> (number - 1) & 1)
			printf("blocked %d\n", number);
		if (is_ignored(number))
			printf("ignored %d\n", number);
	}
	puts("end");
	return 0;
}

static char *signals_of_child(void)
{
	const char *const argv[] = {"/proc/self/exe", "--print-signals", NULL};
	const struct process_spec spec = {.argv = argv};
	struct error err = ERROR_INIT;
	char *output = NULL;

	check(process_run(&spec, PATIENCE_NS, 4000, &output, NULL, &err), &err);
	return output;
}

TEST(children_start_with_clean_signals)
{
	/* 32 and 33 are glibc's own; the process that started this program may have ignored any of
	 * them. */
	static const int internal[] = {32, 33};
	bool were_ignored[COUNT(internal)];
	sigset_t blocked, before, now;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	void (*pipe_before)(int) = signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < COUNT(internal); i++) {
		were_ignored[i] = is_ignored(internal[i]);
		ignore_internal(internal[i], true);
	}
	char *output = test_keep(signals_of_child());
	for (size_t i = 0; i < COUNT(internal); i++)
		ignore_internal(internal[i], were_ignored[i]);
	signal(SIGPIPE, pipe_before);
	sigprocmask(SIG_SETMASK, &before, &now);
	assert_string_equal(output, "end\n");
	/* The parent's own mask is unchanged. */
	for (int number = 1; number < NSIG; number++)
		if (sigismember(&now, number) !=
		    (number == SIGTERM || sigismember(&before, number)))
			fail_msg("signal %d changed in the parent", number);
}

TEST(ends_are_known_where_sigchld_was_ignored)
{
	struct process_end end;
	void (*before)(int) = signal(SIGCHLD, SIG_IGN);

	shell("exit 7", 10, &end);
	assert_false(end.signalled);
	assert_int_equal(end.code, 7);
	signal(SIGCHLD, before == SIG_IGN ? SIG_DFL : before);
}

TEST(programs_are_found_on_path)
{
	char *found = process_find("sh");

	assert_non_null(found);
	assert_true(found[0] == '/');
	char *same = process_find(found);
	assert_string_equal(same, found);
	free(same);
	free(found);
	assert_null(process_find("no-such-program-at-all"));
	assert_null(process_find("/etc/passwd"));
	assert_null(process_find("/"));
	assert_null(process_find(""));
	assert_null(process_find(NULL));
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--print-signals") == 0)
		return print_signals();

	return unit_tests_run(NULL, NULL);
}
