/* worker_check on the fake: what it passes, what it rejects and in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "client_fixture.h"
#include "conformance/check.h"
#include "worker/worker.h"

/* With one request; short only where a worker is known to hang. */
static int64_t patience_ns = 60 * SECOND_NS;

struct outcome {
	int passed, failed;
	char check[128], detail[1024]; /* of the last failure */
	volatile int *stop;	       /* set after the first result */
};

static void note(void *context, const char *check, enum check_outcome result, const char *detail,
		 const struct gate_check *figures, size_t figure_count)
{
	struct outcome *outcome = context;

	assert_true(!figures == !figure_count);
	if (result == CHECK_SKIPPED) {
		assert_true(*detail);
	} else if (result == CHECK_PASSED) {
		assert_string_equal(detail, "");
		outcome->passed++;
	} else {
		assert_true(*detail && !strchr(detail, '\n'));
		outcome->failed++;
		snprintf(outcome->check, sizeof outcome->check, "%s", check);
		snprintf(outcome->detail, sizeof outcome->detail, "%s", detail);
	}
	if (outcome->stop)
		*outcome->stop = 1;
}

static enum prony_status check(const char *const *argv, enum check_level level,
			       const volatile int *stop, struct outcome *outcome, struct error *err)
{
	char *self = path_self();
	const struct check_spec spec = {.self = self,
					.argv = argv,
					.level = level,
					.timeout_ns = patience_ns,
					.memory_limit_bytes = INT64_C(1) << 29,
					.stop = stop};
	const struct check_sink sink = {.result = note, .context = outcome};
	enum prony_status status = worker_check(&spec, &sink, err);

	free(self);
	return status;
}

static enum prony_status check_adapter(const char *adapter, const char *option,
				       enum check_level level, struct outcome *outcome)
{
	char *self = path_self();
	const char *argv[] = {self, "worker", adapter, option, NULL};
	struct error err = ERROR_INIT;
	enum prony_status status = check(argv, level, NULL, outcome, &err);

	free(self);
	assert_int_equal(status == PRONY_OK, outcome->failed == 0);
	if (status != PRONY_OK)
		assert_non_null(strstr(err.text, "checks failed"));
	return status;
}

static void right_workers_pass(void **state)
{
	struct outcome outcome = {0};

	(void)state;
	assert_int_equal(check_adapter("null", "", CHECK_PROTOCOL, &outcome), PRONY_OK);
	assert_true(outcome.passed > 50);
	int protocol = outcome.passed;
	outcome = (struct outcome){0};
	assert_int_equal(check_adapter("fake", "", CHECK_NUMERIC, &outcome), PRONY_OK);
	assert_int_equal(outcome.passed, protocol + 6);
}

static void what_takes_long_or_prints_much_is_not_wrong(void **state)
{
	struct outcome outcome = {0};

	(void)state;
	assert_int_equal(
		check_adapter("fake", "garbage-stdout+delay-ms=1", CHECK_PROTOCOL, &outcome),
		PRONY_OK);
}

static void each_fault_is_named(void **state)
{
	static const struct {
		const char *option, *check, *part;
	} rows[] = {
		{"missing", "shared memory: hello", "not installed"},
		{"hang-at=hello+hang", "shared memory: hello", "no reply to hello within 1 s"},
		{"unsupported", "shared memory: a network", "it supports none of mlp, lenet"},
		{"wrong-threads", "shared memory: open", "asked for 1 thread, 2 took effect"},
		{"wrong-precision", "shared memory: open", "'bf16' took effect"},
		{"oom", "shared memory: build", "grew over 512 MiB"},
		{"oom-reply", "shared memory: build", "out of memory"},
		{"crash-at=feed", "shared memory: feed", "signal 11"},
		{"wrong-id", "shared memory: run, first step", "has id"},
		{"garbage-reply", "shared memory: run, first step", "not a JSON object"},
		{"half-reply", "shared memory: run, first step", "in the middle of its reply"},
		{"impossible-time", "shared memory: run, first step", "more time than passed"},
		{"fail+after=3", "shared memory: run, sync end", "failed, as was asked for"},
		{"nan-loss=last", "shared memory: read loss again", "not finite"},
		{"exit=3+exit-at=close", "shared memory: close", "exit code 3"},
		{"grandchild", "shared memory: close", "1 process that it started outlived it"},
		/* Only without shared memory are there so few slots. */
		{"gate-only+backwards-time", "files: run, first step", "ends before it begins"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct outcome outcome = {0};

		patience_ns = strstr(rows[i].option, "hang") ? SECOND_NS : 60 * SECOND_NS;
		assert_int_equal(check_adapter("fake", rows[i].option, CHECK_NUMERIC, &outcome),
				 PRONY_MISMATCH);
		patience_ns = 60 * SECOND_NS;
		if (outcome.failed != 1 || strcmp(outcome.check, rows[i].check) != 0 ||
		    !strstr(outcome.detail, rows[i].part))
			fail_msg("%s: %d failures, last %s: %s", rows[i].option, outcome.failed,
				 outcome.check, outcome.detail);
	}
}

static void wrong_numbers_fail_the_gate_only(void **state)
{
	static const char *const mutants[] = {"wrong-logits", "lr-scale=1.01"};
	static const int failures[] = {6, 2}; /* a learning rate matters in train only */
	struct outcome outcome;

	(void)state;
	for (size_t i = 0; i < sizeof mutants / sizeof *mutants; i++) {
		outcome = (struct outcome){0};
		assert_int_equal(check_adapter("fake", mutants[i], CHECK_NUMERIC, &outcome),
				 PRONY_MISMATCH);
		assert_int_equal(outcome.failed, failures[i]);
		assert_true(outcome.passed > 50);
		assert_true(!strncmp(outcome.check, "parity: lenet", 13));
		assert_non_null(strstr(outcome.detail, "mismatch: "));
	}
	outcome = (struct outcome){0};
	assert_int_equal(check_adapter("null", "", CHECK_NUMERIC, &outcome), PRONY_MISMATCH);
	assert_int_equal(outcome.failed, 6);
}

static void strangers_are_rejected_at_once(void **state)
{
	static const char *const rows[][4] = {{"true", NULL},
					      {"cat", NULL},
					      {"sh", "-c", "yes >&$PRONY_REPLY_FD", NULL},
					      {"prony-no-such-program", NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct outcome outcome = {0};
		struct error err = ERROR_INIT;

		assert_int_equal(check(rows[i], CHECK_PROTOCOL, NULL, &outcome, &err),
				 PRONY_MISMATCH);
		assert_string_equal(outcome.check, "shared memory: hello");
		assert_string_equal(
			err.text, "1 of 1 checks failed; those that come after them were not run");
	}
}

static void it_can_be_interrupted(void **state)
{
	volatile int stop = 0;
	struct outcome outcome = {.stop = &stop};
	struct error err = ERROR_INIT;
	char *self = path_self();
	const char *argv[] = {self, "worker", "null", "", NULL};

	(void)state;
	assert_int_equal(check(argv, CHECK_PROTOCOL, &stop, &outcome, &err), PRONY_INTERRUPTED);
	assert_true(outcome.passed < 3);
	assert_int_equal(outcome.failed, 0);
	free(self);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_workers_pass),
		cmocka_unit_test(what_takes_long_or_prints_much_is_not_wrong),
		cmocka_unit_test(each_fault_is_named),
		cmocka_unit_test(wrong_numbers_fail_the_gate_only),
		cmocka_unit_test(strangers_are_rejected_at_once),
		cmocka_unit_test(it_can_be_interrupted),
	};
	int exit_code;

	if (client_fixture_guard(argc, argv, &exit_code))
		return exit_code;
	/* Bundles are synced to the disk; here nobody needs them there. */
	if (file_is_directory("/dev/shm"))
		setenv("TMPDIR", "/dev/shm", 0);
	if (argc == 4 && !strcmp(argv[1], "worker")) {
		struct worker_options options = {.adapter = argv[2], .option = argv[3]};
		struct error err = ERROR_INIT;
		_exit(worker_main(&options, &err));
	}
	return cmocka_run_group_tests_name("run_check", tests, NULL, NULL);
}
