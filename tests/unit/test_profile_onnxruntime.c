/* The reader of ONNX Runtime's profiles, on a file that ONNX Runtime 1.31.1 wrote for LeNet
 * (without the nodes' memory figures), and on broken files. */
#include "adapters/onnxruntime/ort_profile.h"
#include "unit_test.h"

static json_t *recorded(void)
{
	struct error err = ERROR_INIT;
	json_t *events = NULL;
	char *path = test_keep(
		path_join(getenv("PRONY_SOURCE"), "tests/golden/profile/onnxruntime.json"));

	check(json_read_file(path, 1 << 20, &events, &err), &err);
	return events;
}

/* The file has three runs of 435, 429 and 427 us; the last two are the steps. */
TEST(test_recorded)
{
	const int64_t instants[] = {1000000, 1440000, 1441000, 1880000};
	struct error err = ERROR_INIT;
	SCOPED(profile_log) log;
	json_auto_t *events = recorded();
	int64_t sum = 0;

	profile_log_init(&log);
	check(ort_profile_read(events, instants, 2, &log, &err), &err);
	assert_int_equal(log.count, 20);
	assert_string_equal(log.events[0].name, "conv1_nchwc");
	assert_string_equal(log.events[0].kind, "Conv");
	assert_int_equal(log.events[0].duration_ns, 43000);
	assert_int_equal(log.events[0].begin_ns, 1002000); /* 2 us after its run began */
	assert_string_equal(log.events[18].name, "fused ip1");
	for (size_t i = 0; i < log.count; i++) {
		const struct profile_event *event = &log.events[i];

		assert_int_equal(event->step, i / 10);
		assert_true(event->begin_ns >= instants[2 * event->step]);
		assert_true(event->begin_ns + event->duration_ns <= instants[2 * event->step + 1]);
		sum += i >= 10 ? event->duration_ns : 0;
	}
	assert_int_equal(sum, 396000);
}

/*
 * A step that seems shorter than its nodes, because times are rounded down to whole microseconds.
 */
TEST(test_rounding)
{
	const int64_t instants[] = {0, 100};
	struct error err = ERROR_INIT;
	SCOPED(profile_log) log;
	json_auto_t *events = recorded();

	profile_log_init(&log);
	check(ort_profile_read(events, instants, 1, &log, &err), &err);
	for (size_t i = 0; i < log.count; i++) {
		assert_true(log.events[i].begin_ns >= 0);
		assert_true(log.events[i].begin_ns + log.events[i].duration_ns <= 100);
	}
}

TEST(test_malformed)
{
	static const struct {
		const char *text, *part;
	} rows[] = {
		{"{}", "has only 0 of 1 steps"},
		{"[]", "has only 0 of 1 steps"},
		{"[7, null, {\"name\": 3}]", "has only 0 of 1 steps"},
		{"[{\"name\": \"model_run\"}]", "lacks an integer ts or dur: model_run"},
		{"[{\"name\": \"model_run\", \"ts\": 1.5, \"dur\": 2}]",
		 "lacks an integer ts or dur"},
		{"[{\"cat\": \"Node\", \"name\": \"a\", \"ts\": 5}, "
		 "{\"name\": \"model_run\", \"ts\": 1, \"dur\": 9}]",
		 "lacks an integer ts or dur: a"},
	};
	const int64_t instants[] = {0, 100};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		SCOPED(profile_log) log;
		json_auto_t *events = json_loads(rows[i].text, 0, NULL);

		profile_log_init(&log);
		expect_error(ort_profile_read(events, instants, 1, &log, &err), PRONY_INVALID, &err,
			     rows[i].part);
	}
}
