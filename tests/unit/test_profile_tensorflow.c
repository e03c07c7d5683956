/* The reader of TensorFlow's traces, on the trace of a forward step of LeNet by TensorFlow 2.21,
 * and on broken traces. */
#include "adapters/tensorflow/tf_profile.h"
#include "unit_test.h"
#include "zoo/zoo.h"

static struct graph graph;
static char *bytes;
static size_t length;

/* Numbers of operations that match the names in the file. */
static void make_model(struct tf_model *model)
{
	static const struct {
		const char *node;
		int first, end;
	} rows[] = {{"conv1", 51, 54},	 {"pool1", 54, 55}, {"conv2", 55, 57}, {"pool2", 57, 58},
		    {"flatten", 58, 60}, {"ip1", 60, 62},   {"relu1", 62, 63}, {"ip2", 63, 65}};

	*model = (struct tf_model){.graph = &graph};
	model->t.made = calloc((size_t)graph.node_count, sizeof *model->t.made);
	for (size_t i = 0; i < COUNT(rows); i++)
		for (int n = 0; n < graph.node_count; n++)
			if (!strcmp(graph.nodes[n].name, rows[i].node))
				model->t.made[n] = (struct tf_range){rows[i].first, rows[i].end};
}

static const struct profile_event *find(const struct profile_log *log, const char *name)
{
	for (size_t i = 0; i < log->count; i++)
		if (!strcmp(log->events[i].name, name))
			return &log->events[i];
	fail_msg("no operation %s", name);
	return NULL;
}

static void compare(const struct profile_log *log, const char *name, const char *layer,
		    const char *kind)
{
	const struct profile_event *event = find(log, name);

	assert_non_null(event->kind);
	assert_string_equal(event->kind, kind);
	if (!layer) {
		assert_null(event->layer);
		assert_null(event->pass);
		return;
	}
	assert_string_equal(event->layer, layer);
	assert_string_equal(event->pass, "forward");
}

/* The caller releases the log, and frees model->t.made. */
static void read_recorded(struct tf_model *model, int64_t step, struct profile_log *log)
{
	struct error err = ERROR_INIT;

	make_model(model);
	profile_log_init(log);
	check(tf_profile_read(bytes, length, model, step, log, &err), &err);
}

TEST(test_recorded)
{
	SCOPED(profile_log) log;
	struct tf_model model;

	read_recorded(&model, 7, &log);
	assert_int_equal(log.count, 49);
	compare(&log, "p.conv1.53", "conv1", "_MklNativeFusedConv2D");
	compare(&log, "p.pool1.54", "pool1", "_MklNativeMaxPool");
	/* The product with ip1's weight, under the name of the operation fused with it. */
	compare(&log, "p.relu1.62", "ip1", "_MklNativeFusedMatMul");
	compare(&log, "p.ip2.64", "ip2", "_MklNativeFusedMatMul");
	compare(&log, "p.batch.42", NULL, "Pack");
	compare(&log, "_SOURCE", NULL, "NoOp");
	compare(&log, "p.conv1.weight.2", NULL, "ReadVariableOp");
	assert_int_equal(find(&log, "p.conv1.53")->duration_ns, 264713);
	assert_int_equal(find(&log, "p.relu1.62")->duration_ns, 155721);
	for (size_t i = 0; i < log.count; i++) {
		assert_int_equal(log.events[i].step, 7);
		assert_true(log.events[i].thread < model.profile.thread_count);
		assert_true(log.events[i].begin_ns > INT64_C(1700000000) * 1000000000);
	}
	free(model.t.made);
}

/* On TensorFlow's clock all events lie within some hundred microseconds; after tf_profile_end they
 * lie in their step. */
TEST(test_clocks)
{
	const int64_t instants[] = {0, 0, 5000000, 9000000};
	SCOPED(profile_log) log;
	struct tf_model model;

	read_recorded(&model, 1, &log);
	int64_t apart = find(&log, "p.pool1.54")->begin_ns - find(&log, "p.conv1.53")->begin_ns;
	tf_profile_end(&model, instants, &log);
	assert_int_equal(find(&log, "p.pool1.54")->begin_ns - find(&log, "p.conv1.53")->begin_ns,
			 apart);
	for (size_t i = 0; i < log.count; i++) {
		assert_true(log.events[i].begin_ns >= 5000000);
		assert_true(log.events[i].begin_ns + log.events[i].duration_ns <= 9000000);
	}
	free(model.t.made);
}

TEST(test_malformed)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *part;
	} rows[] = {
		{"", 0, "has no operations"},
		{"\x0a\x00", 2, "has no operations"},
		{"\x0a\x7f", 2, "cannot be read"},
		{"hello", 5, "cannot be read"},
		/*
		 * A node without names or times is valid; a node that ends before it begins is not.
		 */
		{"\x0a\x0b\x0a\x09\x12\x07\x0a\x01X\x70\x05\x78\x02", 13,
		 "operation X in TensorFlow's profile ends before it begins"},
	};
	struct tf_model model;

	make_model(&model);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		SCOPED(profile_log) log;

		profile_log_init(&log);
		expect_error(tf_profile_read(rows[i].bytes, rows[i].length, &model, 0, &log, &err),
			     PRONY_INVALID, &err, rows[i].part);
	}
	/* A truncated trace is read up to its end or refused, wherever it is cut. */
	for (size_t n = 0; n < length; n += 7) {
		struct error err = ERROR_INIT;
		SCOPED(profile_log) log;

		profile_log_init(&log);
		tf_profile_read(bytes, n, &model, 0, &log, &err);
	}
	free(model.t.made);
}

int main(void)
{
	char *path = path_join(getenv("PRONY_SOURCE"), "tests/golden/profile/tensorflow.pb");
	struct error err = ERROR_INIT;

	if (file_read(path, 1 << 20, &bytes, &length, &err) != PRONY_OK ||
	    zoo_build(zoo_find("lenet", NULL), 2, &graph, &err) != PRONY_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	int failed = unit_tests_run(NULL, NULL);
	graph_release(&graph);
	free(bytes);
	free(path);
	return failed;
}
