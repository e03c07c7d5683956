/* The reader of MXNet's profiles, on the second profile file of a process, written by MXNet 1.9.1,
 * and on broken files. JSON readers refuse the recorded file unchanged. */
#include "adapters/mxnet/mxnet_trace.h"
#include "unit_test.h"

/* Two steps of four nodes; the last node of each step includes a deletion (DeleteVariable). */
TEST(test_recorded)
{
	static const char *const names[] = {"_sg_mkldnn_conv", "_sg_mkldnn_conv", "_sg_mkldnn_conv",
					    "_sg_mkldnn_fully_connected", "DeleteVariable"};
	char *path = test_keep(
		     path_join(getenv("PRONY_SOURCE"), "tests/golden/profile/mxnet.json")),
	     *text;
	struct error err = ERROR_INIT;
	struct mx_trace trace;
	SCOPED(arena) arena;
	size_t length;

	arena_init(&arena, 0);
	check(file_read(path, 1 << 20, &text, &length, &err), &err);
	check(mx_trace_read(text, length, &arena, &trace, &err), &err);
	assert_int_equal(trace.count, 10);
	for (size_t i = 0; i < trace.count; i++) {
		const struct mx_trace_event *event = &trace.events[i];

		assert_string_equal(event->name, names[i % 5]);
		assert_true(event->end_us >= event->begin_us);
		assert_true(i == 0 || event->begin_us >= trace.events[i - 1].begin_us);
	}
	assert_true(trace.events[4].begin_us > trace.events[3].begin_us);
	assert_true(trace.events[4].end_us <= trace.events[3].end_us);
	free(text);
}

#define EVENT(phase, name, ts)                                                                     \
	"{\"name\": \"" name "\", \"cat\": \"operator\", \"ph\": \"" phase "\", \"ts\": " ts       \
	", \"tid\": 15863771935977259251}"

TEST(test_texts)
{
	static const struct {
		const char *text, *part; /* NULL: accepted */
		size_t count;
	} rows[] = {
		{"", "MXNet's profile", 0},
		{"{", "MXNet's profile", 0},
		{"{}", "no list traceEvents", 0},
		{"{\"traceEvents\": {}}", "no list traceEvents", 0},
		{"{\"traceEvents\": []}", NULL, 0},
		{"{\"traceEvents\": [7, \"x\", null]}", NULL, 0},
		{"{\"traceEvents\": [\n , " EVENT("B", "[a,b]", "7") "," EVENT("E", "[a,b]",
									       "9") "]}",
		 NULL, 1},
		{"{\"traceEvents\": [" EVENT("B", "a", "7") "]}",
		 "event a in MXNet's profile has no end", 0},
		{"{\"traceEvents\": [" EVENT("B", "a", "7") "," EVENT("E", "b", "9") "]}",
		 "event a in MXNet's profile has no end", 0},
		{"{\"traceEvents\": [" EVENT("B", "a", "7") "," EVENT("E", "a", "6") "]}",
		 "event a in MXNet's profile has no end", 0},
		{"{\"traceEvents\": [{\"id\": 10000000000000000000000000}]}", NULL, 0},
		{"{\"traceEvents\": [{\"name\": \"a\\\\\\\"[, 12\"}]}", NULL, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char *text = test_keep(strdup(rows[i].text));
		struct error err = ERROR_INIT;
		struct mx_trace trace = {0};
		SCOPED(arena) arena;

		arena_init(&arena, 0);
		enum prony_status status = mx_trace_read(text, strlen(text), &arena, &trace, &err);
		if (status != PRONY_OK && !rows[i].part)
			fail_msg("row %zu: %s", i, err.text);
		assert_int_equal(status == PRONY_OK, rows[i].part == NULL);
		if (rows[i].part && !strstr(err.text, rows[i].part))
			fail_msg("row %zu: '%s' lacks '%s'", i, err.text, rows[i].part);
		assert_int_equal(trace.count, rows[i].count);
	}
}
