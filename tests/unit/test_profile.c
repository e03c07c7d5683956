/* Profiles: a worker's output is checked, framework names are matched to layers, and sums are
 * right. */
#include "profile/profile_internal.h"
#include "profile/read.h"
#include "profile/write.h"
#include "unit_test.h"

static const struct profile_bracket bracket = {.begin_ns = 1000, .end_ns = 9000, .steps = 2};

/* conv1, conv1_relu and fire2/squeeze, whose name each framework spells differently. */
static void build(struct graph *graph)
{
	struct builder b = {.graph = graph, .error = ERROR_INIT};
	const int64_t dims[] = {1, 8, 8};
	int x;

	graph_init(graph, "names");
	x = build_input(&b, "input", DTYPE_F32, 2, 3, dims);
	x = build_relu(&b, "conv1_relu", build_conv(&b, "conv1", x, 2, 3, 1, 1));
	x = build_conv(&b, "fire2/squeeze", x, 2, 1, 1, 0);
	x = build_linear(&b, "ip1", build_flatten(&b, "flatten", x), 3);
	assert_int_equal(build_finish(&b, x, 0, NULL, &b.error), PRONY_OK);
}

TEST(test_names)
{
	static const struct {
		const char *name, *layer;
	} rows[] = {
		{"conv1", "conv1"},
		{"conv1 forward", "conv1"},
		{"conv1_relu", "conv1_relu"},
		{"conv1_relu_kernel_time", "conv1_relu"},
		{"conv1.weight copy", "conv1"},
		{"gradients/conv1_grad/Conv2DBackpropFilter", "conv1"},
		{"fire2_squeeze", "fire2/squeeze"},
		{"model/fire2/squeeze/Conv2D", "fire2/squeeze"},
		{"conv12", NULL},
		{"xconv1", NULL},
		{"ReorderInput", NULL},
		{"", NULL},
	};
	SCOPED(graph) graph;

	build(&graph);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int node = profile_find_node(&graph, rows[i].name);

		if (!rows[i].layer)
			assert_int_equal(node, -1);
		else
			assert_string_equal(graph.nodes[node].name, rows[i].layer);
	}
}

/* Reads text as a worker's profile file. */
static enum prony_status read_text(const char *text, bool lines, struct profile *profile,
				   struct error *err)
{
	char *folder = NULL, *path;
	enum prony_status status;

	*profile = (struct profile){.status = CELL_OK};
	arena_init(&profile->arena, 0);
	check(directory_make_temporary("prony-test-", &folder, err), err);
	path = test_keep(path_join(folder, "profile.json"));
	if (text)
		check(file_write_atomic(path, text, strlen(text), err), err);
	status = (lines ? profile_read_lines : profile_read_layers)(profile, path, &bracket, err);
	directory_remove(folder, NULL);
	free(folder);
	return status;
}

#define STEPS "\"steps\": [[1000, 3000], [4000, 7000]]"
#define EVENT(more) "{" STEPS ", \"events\": [{\"name\": \"conv1\", " more "}]}"

TEST(test_bad_layers)
{
	static const struct {
		const char *text, *part;
	} rows[] = {
		{NULL, "cannot be read"},
		{"", "cannot be read"},
		{"{\"steps\": [[1, ", "cannot be read"},
		{"[]", "not a JSON object"},
		{"{}", "no array \"steps\""},
		{"{\"steps\": 7, \"events\": []}", "no array \"steps\""},
		{"{\"steps\": [[1000, 2000]], \"events\": []}",
		 "has 1 steps, but 2 were requested"},
		{"{\"steps\": [[1000, 2000], [1500, 3000]], \"events\": []}",
		 "step 1: it overlaps"},
		{"{\"steps\": [[999, 2000], [2000, 3000]], \"events\": []}", "step 0: it overlaps"},
		{"{\"steps\": [[1000, 2000], [2000, 9001]], \"events\": []}",
		 "step 1: it overlaps"},
		{"{\"steps\": [[1000], [2000, 3000]], \"events\": []}",
		 "step 0: it needs two times, begin and end"},
		{"{" STEPS "}", "no array \"events\""},
		{"{" STEPS ", \"events\": []}", "no event"},
		{"{" STEPS ", \"events\": [null]}", "event 0: it has no name"},
		{"{" STEPS ", \"events\": [{\"name\": \"\"}]}", "event 0: it has no name"},
		{EVENT("\"step\": 0"), "event 0: duration_ns must be"},
		{EVENT("\"step\": 0, \"duration_ns\": -1"), "event 0: duration_ns must be"},
		{EVENT("\"step\": 0, \"duration_ns\": 1.5"), "event 0: duration_ns must be"},
		{EVENT("\"step\": 0, \"duration_ns\": 8001"), "event 0: duration_ns must be"},
		{EVENT("\"duration_ns\": 5"), "event 0: step must be"},
		{EVENT("\"duration_ns\": 5, \"step\": 2"), "event 0: step must be"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"begin_ns\": 8996"),
		 "event 0: it lies outside"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"begin_ns\": 999"),
		 "event 0: it lies outside"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"begin_ns\": \"x\""),
		 "event 0: it lies outside"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"thread\": -1"),
		 "event 0: thread must be"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"thread\": 2147483647"),
		 "event 0: thread must be"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"layer\": 7"),
		 "event 0: operator, layer and pass must be strings"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"pass\": {}"),
		 "event 0: operator, layer and pass must be strings"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"device\": \"cpu\""),
		 "event 0: device must be"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"device\": 1"),
		 "event 0: device must be"},
		{EVENT("\"duration_ns\": 5, \"step\": 0, \"bytes\": -1"), "event 0: bytes must be"},
		{"{\"steps\": [[2000, 2000], [3000, 3000]], \"events\": []}", "took no time"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		SCOPED(profile) profile;

		expect_error(read_text(rows[i].text, false, &profile, &err), PRONY_PROTOCOL, &err,
			     rows[i].part);
	}
}

/* conv1 (forward, backward), ip1 at the same time as conv1's backward pass, the update, and an
 * event of no layer. */
static const char two_steps[] =
	"{" STEPS ", \"events\": ["
	"{\"name\": \"conv1 forward\", \"begin_ns\": 1000, \"duration_ns\": 800, \"step\": 0, "
	"\"pass\": \"forward\"},"
	"{\"name\": \"conv1.grad\", \"layer\": \"conv1\", \"begin_ns\": 2000, \"duration_ns\": "
	"500, "
	"\"step\": 0, \"pass\": \"backward\", \"operator\": \"x\"},"
	"{\"name\": \"ip1\", \"begin_ns\": 2200, \"duration_ns\": 600, \"step\": 0, \"thread\": 1},"
	"{\"name\": \"sgd\", \"begin_ns\": 4000, \"duration_ns\": 100, \"step\": 1, \"pass\": "
	"\"update\"},"
	"{\"name\": \"Reorder\", \"operator\": \"Reorder\", \"duration_ns\": 200, \"step\": 1}]}";

static void take_two_steps(struct profile *profile)
{
	struct error err = ERROR_INIT;
	struct graph graph;

	check(read_text(two_steps, false, profile, &err), &err);
	build(&graph);
	profile_sum_layers(profile, &graph);
	graph_release(&graph); /* the profile outlives it */
}

TEST(test_layers)
{
	SCOPED(profile) profile;

	take_two_steps(&profile);
	assert_int_equal(profile.layer_count, 4);
	assert_string_equal(profile.layers[0].name, "conv1");
	assert_string_equal(profile.layers[0].kind, "Conv");
	assert_int_equal(profile.layers[0].calls, 2);
	assert_true(profile.layers[0].forward_ns == 800 && profile.layers[0].backward_ns == 500);
	assert_string_equal(profile.layers[1].name, "ip1");
	assert_true(profile.layers[1].other_ns == 600 && profile.layers[1].named);
	assert_string_equal(profile.layers[2].name, "Reorder");
	assert_false(profile.layers[2].named);
	assert_string_equal(profile.layers[3].name, "(update)");
	assert_true(profile.layer_step_ns == 2500); /* 2000 and 3000 */
	assert_true(profile.layers_ns == 1100);	    /* 2200 in two steps */
	assert_true(profile.named_ns == 1000);
	/* ip1 overlapped 300 ns of conv1; the time at which Reorder ran is unknown. */
	assert_true(profile.covered_ns == (2200.0 - 300) / 2);
}

#define LINES(total, own)                                                                          \
	"{" STEPS ", \"total_ns\": " total                                                         \
	", \"functions\": [{\"name\": \"f\", \"file\": \"f.py\", "                                 \
	"\"line\": 1, \"calls\": 2, \"ns\": 4000, \"self_ns\": 4000, \"lines\": ["                 \
	"{\"line\": 2, \"hits\": 2, \"ns\": 3000, \"self_ns\": " own ", \"text\": \"  g()\"}, "    \
	"{\"line\": 3, \"hits\": 2, \"ns\": 1000, \"self_ns\": 1000}]}], "                         \
	"\"stacks\": [{\"frames\": [\"f\", \"a;b\"], \"ns\": 3000}]}"

TEST(test_lines)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
		{"{" STEPS ", \"functions\": [], \"stacks\": []}", "total_ns in"},
		{LINES("9000", "1"), "total_ns in"},
		{LINES("0", "1"), "total_ns in"},
		{"{" STEPS ", \"total_ns\": 1, \"functions\": [{\"name\": \"f\", \"line\": 1, "
		 "\"calls\": 1, \"ns\": 8001, \"self_ns\": 1, \"lines\": []}], \"stacks\": []}",
		 "function 0: it needs lines, and line"},
		{"{" STEPS ", \"total_ns\": 1, \"functions\": [{\"name\": \"f\", \"file\": 1}], "
		 "\"stacks\": []}",
		 "function 0: its file is not a string"},
		{LINES("4000", "-1"), "function 0: each of its lines needs"},
		{LINES("4000", "\"x\""), "function 0: each of its lines needs"},
		{"{" STEPS ", \"total_ns\": 1, \"functions\": [{}], \"stacks\": []}",
		 "function 0: it has no name"},
		{"{" STEPS ", \"total_ns\": 1, \"functions\": [], \"stacks\": [{\"ns\": 1}]}",
		 "stack 0: it needs frames"},
		{"{" STEPS ", \"total_ns\": 1, \"functions\": [], \"stacks\": "
		 "[{\"ns\": 1, \"frames\": [7]}]}",
		 "stack 0: a frame is not a string"},
	};
	struct error err = ERROR_INIT;
	struct profile profile;

	check(read_text(LINES("4000", "3000"), true, &profile, &err), &err);
	assert_int_equal(profile_lines_sum(&profile), 4000);
	assert_int_equal(profile.lines_total_ns, 4000);
	assert_string_equal(profile.functions[0].lines[0].text, "  g()");
	profile_release(&profile);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct error why = ERROR_INIT;

		assert_int_equal(read_text(bad[i].text, true, &profile, &why), PRONY_PROTOCOL);
		assert_has(why.text, bad[i].part);
		profile_release(&profile);
	}
}

/* No written file contains the terminal escape sequences or line breaks of a hostile name. */
TEST(test_hostile_names)
{
	static struct plan_cell cell = {.key = "framework=x", .hash = "0123"};
	static void (*const writers[])(const struct profile *profiles, size_t count,
				       struct strbuf *out) = {
		profile_write_json, profile_write_csv, profile_write_chrome, profile_write_folded};
	struct error err = ERROR_INIT;
	SCOPED(profile) profile;
	struct strbuf text;

	snprintf(cell.cell.framework, sizeof cell.cell.framework, "x");
	check(read_text("{" STEPS ", \"events\": [{\"name\": \"a\\u009b2J\\u202e\\u001b[1m\\nb\", "
			"\"operator\": \"\\u001b]0;t\\u0007\", \"duration_ns\": 200, "
			"\"step\": 1}]}",
			false, &profile, &err),
	      &err);
	profile.cell = &cell;
	profile_sum_layers(&profile, NULL);
	for (size_t i = 0; i < COUNT(writers); i++) {
		strbuf_init(&text, 0);
		writers[i](&profile, 1, &text);
		assert_lacks(strbuf_text(&text), "\xC2\x9B");
		assert_lacks(strbuf_text(&text), "\xE2\x80\xAE");
		assert_null(strchr(strbuf_text(&text), '\x1B'));
		assert_lacks(strbuf_text(&text), "1m\nb");
		strbuf_release(&text);
	}
}

/* A second answer with an error adds nothing to the profile, and the first one stays complete. */
TEST(test_second_answer)
{
	static const char wrong[] = "{" STEPS ", \"total_ns\": 1, \"functions\": ["
				    "{\"name\": \"g\"}], \"stacks\": []}";
	struct error err = ERROR_INIT;
	SCOPED(profile) profile;
	char *folder = NULL, *path;

	check(read_text(LINES("4000", "3000"), true, &profile, &err), &err);
	check(directory_make_temporary("prony-test-", &folder, &err), &err);
	path = test_keep(path_join(folder, "profile.json"));
	check(file_write_atomic(path, wrong, strlen(wrong), &err), &err);
	assert_int_equal(profile_read_lines(&profile, path, &bracket, &err), PRONY_PROTOCOL);
	assert_int_equal(profile.function_count, 1);
	assert_string_equal(profile.functions[0].name, "f");
	assert_int_equal(profile_lines_sum(&profile), 4000);
	directory_remove(folder, NULL);
	free(folder);
}

TEST(test_written)
{
	static struct plan_cell cell = {.key = "framework=x", .hash = "0123"};
	struct error err = ERROR_INIT;
	SCOPED(profile) profile;
	struct strbuf *text = test_strbuf();
	json_t *json = NULL;

	snprintf(cell.cell.framework, sizeof cell.cell.framework, "x");
	take_two_steps(&profile);
	profile.cell = &cell;
	for (int i = 0; i < PROFILE_PHASE_COUNT; i++)
		profile.phases[i].ns = i == PROFILE_PHASE_LAYERS ? 6000 : -1;
	profile_write_chrome(&profile, 1, text);
	check(json_parse(strbuf_text(text), text->length, "trace", &json, &err), &err);
	/* Names of a process and three threads, one phase, five spans. */
	assert_int_equal(json_array_size(json_object_get(json, "traceEvents")), 10);
	json_decref(json);
	strbuf_clear(text);
	profile_write_json(&profile, 1, text);
	check(json_parse(strbuf_text(text), text->length, "json", &json, &err), &err);
	json_decref(json);
	strbuf_clear(text);
	profile_write_folded(&profile, 1, text);
	assert_string_equal(strbuf_text(text), "x;layers;(beside the layers);Reorder 100\n"
					       "x;layers;(update);update;sgd 50\n"
					       "x;layers;conv1;backward;conv1.grad 250\n"
					       "x;layers;conv1;forward;conv1 forward 400\n"
					       "x;layers;ip1;ip1 300\n");
	strbuf_clear(text);
	profile_write_csv(&profile, 1, text);
	assert_has(strbuf_text(text), "\nlayer,x,conv1,Conv,1,400.0,250.0,0.0,650.0,0.260000,,,\n");
}
