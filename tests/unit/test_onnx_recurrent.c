/* LSTM, GRU and RNN nodes of ONNX files, compared with ONNX's formulas. */
#include <math.h>
#include <string.h>

#include "tests/unit/onnx_fixture.h"
#include "unit_test.h"

enum { BATCH = 3, STEPS = 4, FEATURES = 2, HIDDEN = 3, MOST = 2 * 4 * HIDDEN };

struct layer {
	const char *op, *direction;
	int64_t layout, linear;
	const char *activation; /* of an RNN; NULL: the default */
	bool bias;
	bool first;	    /* initial states are inputs */
	const char *output; /* "y", "h" or "c" */
};

static int gates_of(const struct layer *l)
{
	return strcmp(l->op, "LSTM") == 0 ? 4 : strcmp(l->op, "GRU") == 0 ? 3 : 1;
}

static int directions_of(const struct layer *l)
{
	return strcmp(l->direction, "bidirectional") == 0 ? 2 : 1;
}

/* What the fixture puts into initializers. */
static double number(int64_t i)
{
	return (double)(float)(0.01 * (double)(i + 1));
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

/* Weights of one direction begin at these numbers. */
struct starts {
	int64_t w, r, b;
};

static double product(int64_t first, int row, int width, const double *x)
{
	double sum = 0;

	for (int k = 0; k < width; k++)
		sum += number(first + row * width + k) * x[k];
	return sum;
}

/* One step; h and c become the next ones. */
static void step(const struct layer *l, const struct starts *at, const double *x, double *h,
		 double *c)
{
	int gates = gates_of(l), rows = gates * HIDDEN;
	double wx[MOST], rh[MOST], wb[MOST] = {0}, rb[MOST] = {0}, reset[HIDDEN], next[HIDDEN];

	for (int i = 0; i < rows; i++) {
		wx[i] = product(at->w, i, FEATURES, x);
		rh[i] = product(at->r, i, HIDDEN, h);
		wb[i] = l->bias ? number(at->b + i) : 0;
		rb[i] = l->bias ? number(at->b + rows + i) : 0;
	}
	for (int k = 0; gates == 3 && k < HIDDEN; k++)
		reset[k] =
			sigmoid(wx[HIDDEN + k] + rh[HIDDEN + k] + wb[HIDDEN + k] + rb[HIDDEN + k]) *
			h[k];
	for (int k = 0; k < HIDDEN; k++) {
		double a[4];

		for (int g = 0; g < gates; g++)
			a[g] = wx[g * HIDDEN + k] + rh[g * HIDDEN + k] + wb[g * HIDDEN + k] +
			       rb[g * HIDDEN + k];
		if (gates == 4) {
			c[k] = sigmoid(a[2]) * c[k] + sigmoid(a[0]) * tanh(a[3]);
			next[k] = sigmoid(a[1]) * tanh(c[k]);
		} else if (gates == 3) {
			int i = 2 * HIDDEN + k;
			double fresh =
				l->linear ? tanh(wx[i] + sigmoid(a[1]) * (rh[i] + rb[i]) + wb[i])
					  : tanh(wx[i] + product(at->r, i, HIDDEN, reset) + rb[i] +
						 wb[i]);

			next[k] = (1 - sigmoid(a[0])) * fresh + sigmoid(a[0]) * h[k];
		} else {
			next[k] = l->activation && a[0] < 0 ? 0 : l->activation ? a[0] : tanh(a[0]);
		}
	}
	memcpy(h, next, sizeof(next));
}

/* The numbers that the file's output has for a sample, the features of each place together. */
static void expect(const struct layer *l, int sample, double *out)
{
	int directions = directions_of(l), gates = gates_of(l), rows = gates * HIDDEN;

	for (int d = 0; d < directions; d++) {
		bool reverse = d == 1 || strcmp(l->direction, "reverse") == 0;
		const struct starts at = {d * rows * FEATURES, d * rows * HIDDEN, d * 2 * rows};
		double h[HIDDEN] = {0}, c[HIDDEN] = {0};

		for (int k = 0; l->first && k < HIDDEN; k++)
			h[k] = c[k] =
				(double)(float)sin(1 + (sample * directions + d) * HIDDEN + k);
		for (int s = 0; s < STEPS; s++) {
			int t = reverse ? STEPS - 1 - s : s;
			double x[FEATURES];

			for (int i = 0; i < FEATURES; i++)
				x[i] = (double)(float)sin(1 + (sample * STEPS + t) * FEATURES + i);
			step(l, &at, x, h, c);
			if (*l->output == 'y')
				memcpy(out + (t * directions + d) * HIDDEN, h, sizeof(h));
		}
		if (*l->output != 'y')
			memcpy(out + d * HIDDEN, *l->output == 'h' ? h : c, sizeof(h));
	}
}

static void fixture_of(struct onnx_fixture *f, const struct layer *l)
{
	static const int64_t flat[] = {0, -1};
	int d = directions_of(l), rows = gates_of(l) * HIDDEN;
	bool y = *l->output == 'y', lstm = gates_of(l) == 4;
	const char *names[] = {"x,w,r",	      "x,w,r,b",       "x,w,r,,,h0",
			       "x,w,r,b,,h0", "x,w,r,,,h0,c0", "x,w,r,b,,h0,c0"};

	fixture_init(f, 17);
	fixture_input(f, "x", 3,
		      l->layout ? (const int64_t[]){0, STEPS, FEATURES}
				: (const int64_t[]){STEPS, 0, FEATURES});
	for (int i = 0; l->first && i < (lstm ? 2 : 1); i++)
		fixture_input(f, i ? "c0" : "h0", 3,
			      l->layout ? (const int64_t[]){0, d, HIDDEN}
					: (const int64_t[]){d, 0, HIDDEN});
	fixture_output(f, "out");
	fixture_floats(f, "w", DIMS(d, rows, FEATURES));
	fixture_floats(f, "r", DIMS(d, rows, HIDDEN));
	if (l->bias)
		fixture_floats(f, "b", DIMS(d, 2 * rows));
	fixture_ints(f, "flat", 2, flat);
	fixture_node(f, l->op, names[(l->first ? lstm ? 4 : 2 : 0) + l->bias], "y,h,c");
	fixture_int(f, "hidden_size", HIDDEN);
	fixture_int(f, "layout", l->layout);
	fixture_int(f, "linear_before_reset", l->linear);
	fixture_text(f, "direction", l->direction);
	if (l->activation)
		fixture_texts(f, "activations", d, l->activation);
	if (!l->layout) {
		fixture_node(f, "Transpose", l->output, "turned");
		if (y)
			fixture_list(f, "perm", 4, (const int64_t[]){2, 0, 1, 3});
		else
			fixture_list(f, "perm", 3, (const int64_t[]){1, 0, 2});
	}
	fixture_node(f, "Reshape",
		     arena_printf(&f->arena, "%s,flat", l->layout ? l->output : "turned"), "out");
}

TEST(layers_of_files_follow_the_formulas)
{
	static const struct layer layers[] = {
		{"LSTM", "forward", 0, 0, NULL, true, false, "y"},
		{"LSTM", "reverse", 0, 0, NULL, false, false, "h"},
		{"LSTM", "bidirectional", 0, 0, NULL, true, false, "y"},
		{"LSTM", "bidirectional", 1, 0, NULL, true, false, "y"},
		{"LSTM", "bidirectional", 0, 0, NULL, true, false, "c"},
		{"LSTM", "bidirectional", 0, 0, NULL, true, true, "y"},
		{"LSTM", "reverse", 1, 0, NULL, false, true, "c"},
		{"GRU", "forward", 0, 0, NULL, true, false, "y"},
		{"GRU", "bidirectional", 0, 1, NULL, true, false, "h"},
		{"GRU", "reverse", 1, 1, NULL, true, false, "y"},
		{"GRU", "bidirectional", 0, 0, NULL, true, true, "y"},
		{"GRU", "forward", 0, 1, NULL, true, true, "h"},
		{"GRU", "reverse", 0, 1, NULL, false, true, "y"},
		{"RNN", "forward", 0, 0, NULL, true, false, "h"},
		{"RNN", "bidirectional", 0, 0, "Relu", true, false, "y"},
		{"RNN", "reverse", 1, 0, "relu", false, true, "h"},
	};

	for (size_t i = 0; i < COUNT(layers); i++) {
		struct onnx_fixture f;
		double expected[STEPS * 2 * HIDDEN];
		int64_t count;
		const double *logits;
		int each;

		fixture_of(&f, &layers[i]);
		logits = fixture_logits(&f, BATCH, &count);
		each = (int)count / BATCH;
		assert_int_equal(each, (*layers[i].output == 'y' ? STEPS : 1) *
					       directions_of(&layers[i]) * HIDDEN);
		for (int s = 0; s < BATCH; s++) {
			expect(&layers[i], s, expected);
			for (int k = 0; k < each; k++)
				if (fabs(logits[s * each + k] - expected[k]) > 1e-6)
					fail_msg("layer %zu, sample %d, number %d: %g, not %g", i,
						 s, k, logits[s * each + k], expected[k]);
		}
		onnx_fixture_release(&f);
	}
}

/* What an exporter writes around a layer, and the operators that are left of it. */
TEST(transposes_around_a_layer_are_taken_back)
{
	struct onnx_fixture f;
	struct error err = ERROR_INIT;
	struct onnx_notes notes;
	struct graph graph;

	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(0, STEPS, FEATURES));
	fixture_output(&f, "out");
	fixture_floats(&f, "w", DIMS(1, 4 * HIDDEN, FEATURES));
	fixture_floats(&f, "r", DIMS(1, 4 * HIDDEN, HIDDEN));
	fixture_floats(&f, "b", DIMS(1, 8 * HIDDEN));
	fixture_ints(&f, "one", 1, (const int64_t[]){1});
	fixture_ints(&f, "flat", 2, (const int64_t[]){0, -1});
	fixture_node(&f, "Transpose", "x", "a");
	fixture_list(&f, "perm", 3, (const int64_t[]){1, 0, 2});
	fixture_node(&f, "LSTM", "a,w,r,b", "y");
	fixture_int(&f, "hidden_size", HIDDEN);
	fixture_node(&f, "Squeeze", "y,one", "s");
	fixture_node(&f, "Transpose", "s", "back");
	fixture_list(&f, "perm", 3, (const int64_t[]){1, 0, 2});
	fixture_node(&f, "Reshape", "back,flat", "out");
	if (fixture_build(&f, 2, &graph, &notes, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	assert_int_equal(graph.forward_count, 3); /* and the loss */
	assert_int_equal(graph.nodes[0].op, OP_LSTM);
	assert_true(graph.nodes[0].attributes.sequence);
	assert_int_equal(notes.file_parameters, 4 * HIDDEN * (FEATURES + HIDDEN + 2));
	graph_release(&graph);
	onnx_fixture_release(&f);
}

TEST(what_no_operator_expresses_is_refused)
{
	static const struct {
		const char *inputs, *attribute, *text;
		float real;
		const char *message;
	} cases[] = {
		{"x,w,r,b,,,,p", NULL, NULL, 0, "its peepholes (input 7, P) are not supported"},
		{"x,w,r,b", "clip", NULL, 3, "its clip is not supported"},
		{"x,w,r,b", "direction", "sideways", 0, "its direction is 'sideways'"},
		{"x,w,r,b,lens", NULL, NULL, 0, "its sequence_lens (input 4) are not supported"},
		{"x,w,r,b", "activations", "HardSigmoid,Tanh,Tanh", 0, "'HardSigmoid' at place 0"},
		{"x,w,w,b", NULL, NULL, 0,
		 "input 1 must be real numbers of shape 1x8x2, but it has 1x12x2"},
		{"x,x,r,b", NULL, NULL, 0, "input 1 must be constant"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct onnx_fixture f;

		fixture_init(&f, 17);
		fixture_input(&f, "x", DIMS(STEPS, 0, FEATURES));
		fixture_output(&f, "h");
		fixture_floats(&f, "w", DIMS(1, 4 * HIDDEN, FEATURES));
		fixture_floats(&f, "r", DIMS(1, 4 * HIDDEN, HIDDEN));
		fixture_floats(&f, "b", DIMS(1, 8 * HIDDEN));
		fixture_floats(&f, "p", DIMS(1, 3 * HIDDEN));
		fixture_ints(&f, "lens", 2, (const int64_t[]){STEPS, 1});
		fixture_node(&f, "LSTM", cases[i].inputs, ",h");
		fixture_int(&f, "hidden_size", HIDDEN);
		if (cases[i].text && strchr(cases[i].text, ','))
			fixture_texts(&f, cases[i].attribute, 1, cases[i].text);
		else if (cases[i].text)
			fixture_text(&f, cases[i].attribute, cases[i].text);
		else if (cases[i].attribute)
			fixture_real(&f, cases[i].attribute, cases[i].real);
		REFUSED(&f, 2, PRONY_UNSUPPORTED, "node 'n.LSTM.0' (LSTM)", cases[i].message);
		onnx_fixture_release(&f);
	}
}
