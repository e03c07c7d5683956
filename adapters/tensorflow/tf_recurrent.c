/* Translates recurrent layers. LSTM is TensorFlow's fused BlockLSTM: one operation for all time
 * steps, with one matrix for input and state. RNN has no fused operation: its steps are unrolled in
 * the graph, as Keras does with unroll=True. */
#include "adapters/tensorflow/tf_translate_internal.h"

/* Batch, time, features and hidden units of a recurrent node. */
struct sizes {
	int64_t batch, time, features, hidden;
};

static struct sizes sizes_of(const struct tf_translation *t, const struct node *node)
{
	const struct shape *x = tf_graph_shape(t, node->inputs[0]);

	return (struct sizes){x->dims[0], x->dims[1], x->dims[2],
			      tf_graph_shape(t, node->outputs[0])->dims[1]};
}

/* Swaps the batch and time axes. */
static struct tf_output swap(struct tf_translation *t, struct tf_output x)
{
	return tf_transpose(&t->e, x, (const int64_t[]){1, 0, 2}, 3);
}

/* Returns zeros in the type of the computation. */
static struct tf_output zeros(struct tf_translation *t, int rank, const int64_t *dims)
{
	const struct shape scalar = {.rank = 0};
	const float number = 0;
	struct tf_output zero =
		tf_cast(&t->e, tf_constant(&t->e, TF_TYPE_FLOAT, &scalar, &number), t->type);

	return tf_binary(&t->e, "Fill", tf_indices(&t->e, dims, rank), zero);
}

/* Sets the nine common inputs of BlockLSTM and its gradient. The three peephole vectors are not
 * used. */
static void lstm_inputs(struct tf_translation *t, const struct node *lstm, struct tf_output *in)
{
	struct sizes s = sizes_of(t, lstm);
	const struct shape scalar = {.rank = 0};
	struct tf_output state = zeros(t, 2, (const int64_t[]){s.batch, s.hidden});
	struct tf_output peephole = zeros(t, 1, &s.hidden);

	in[0] = tf_constant(&t->e, TF_TYPE_INT64, &scalar, &s.time);
	in[1] = swap(t, tf_take(t, lstm, 0));
	in[2] = in[3] = state;
	in[4] = tf_take(t, lstm, 1);
	in[5] = in[6] = in[7] = peephole;
	in[8] = tf_take(t, lstm, 3);
}

/* The gradient takes the inputs of BlockLSTM and its outputs i, cs, f, o, ci, co, h. */
enum { LSTM_INPUTS = 9, LSTM_OUTPUTS = 7 };

void tf_lstm(struct tf_translation *t, const struct node *node)
{
	struct sizes s = sizes_of(t, node);
	struct tf_output *in = arena_array(t->arena, LSTM_INPUTS, sizeof(in[0])), y;
	const struct shape last = {.rank = 3, .dims = {1, s.batch, s.hidden}};

	lstm_inputs(t, node, in);
	t->states[node - t->graph->nodes] = in;
	y = tf_op(&t->e, "BlockLSTM", in, LSTM_INPUTS,
		  TF_WITH(TF_FLOAT("forget_bias", 0), TF_FLOAT("cell_clip", -1)));
	*tf_kept(t, node) = y;
	y = tf_slice(&t->e, tf_nth(y, LSTM_OUTPUTS - 1), (const int64_t[]){s.time - 1, 0, 0},
		     &last);
	tf_give(t, node, 0, tf_reshape(&t->e, y, tf_graph_shape(t, node->outputs[0])));
}

static void give_weight(struct tf_translation *t, const struct node *node, int i,
			struct tf_output gradient)
{
	if (node->outputs[i] != VALUE_NONE)
		t->values[node->outputs[i]] = gradient;
}

/* Input and recurrent weights are in one matrix, and so are their gradients. */
void tf_lstm_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *lstm = tf_forward(t, node);
	struct sizes s = sizes_of(t, lstm);
	const struct shape one = {.rank = 3, .dims = {1, s.batch, s.hidden}};
	const int64_t before[6] = {s.time - 1}, all[] = {s.time, s.batch, s.hidden};
	struct tf_output in[LSTM_INPUTS + LSTM_OUTPUTS + 2], d;

	for (int i = 0; i < LSTM_INPUTS; i++)
		in[i] = t->states[lstm - t->graph->nodes][i];
	for (int i = 0; i < LSTM_OUTPUTS; i++)
		in[LSTM_INPUTS + i] = tf_nth(*tf_kept(t, lstm), i);
	in[LSTM_INPUTS + LSTM_OUTPUTS] = zeros(t, 3, all);
	in[LSTM_INPUTS + LSTM_OUTPUTS + 1] =
		tf_pad(t, tf_reshape(&t->e, tf_take(t, node, 0), &one), before, 3, 0);
	d = tf_op(&t->e, "BlockLSTMGrad", in, LSTM_INPUTS + LSTM_OUTPUTS + 2,
		  TF_WITH(TF_BOOL("use_peephole", false)));
	if (node->outputs[0] != VALUE_NONE)
		tf_give(t, node, 0, swap(t, d));
	give_weight(t, node, 1, tf_nth(d, 3));
	give_weight(t, node, 2, tf_nth(d, 3));
	give_weight(t, node, 3, tf_nth(d, 7));
}

/* Keeps x as a matrix ordered by time step. `states`: the states before each step, and the last
 * state. */
void tf_rnn(struct tf_translation *t, const struct node *node)
{
	struct sizes s = sizes_of(t, node);
	const struct shape flat = {.rank = 2, .dims = {s.time * s.batch, s.features}};
	struct tf_output *h = arena_array(t->arena, (size_t)s.time + 1, sizeof(h[0])), r, x;

	*tf_kept(t, node) = tf_reshape(&t->e, swap(t, tf_take(t, node, 0)), &flat);
	x = tf_matmul(t, *tf_kept(t, node), tf_take(t, node, 1), false, false);
	x = tf_binary(&t->e, "BiasAdd", x, tf_take(t, node, 3));
	if (s.time > 1)
		x = tf_op(&t->e, "Split", TF_IN(tf_index(&t->e, 0), x),
			  TF_WITH(TF_INT("num_split", s.time)));
	r = tf_take(t, node, 2);
	h[0] = zeros(t, 2, (const int64_t[]){s.batch, s.hidden});
	for (int i = 0; i < s.time; i++)
		h[i + 1] = tf_unary(&t->e, "Relu",
				    tf_binary(&t->e, "AddV2", tf_matmul(t, h[i], r, false, false),
					      s.time > 1 ? tf_nth(x, i) : x));
	t->states[node - t->graph->nodes] = h;
	tf_give(t, node, 0, h[s.time]);
}

void tf_rnn_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *rnn = tf_forward(t, node);
	struct sizes s = sizes_of(t, rnn);
	const struct tf_output *h = t->states[rnn - t->graph->nodes];
	struct tf_output *dz = arena_array(t->arena, (size_t)s.time, sizeof(dz[0]));
	struct tf_output dh = tf_take(t, node, 0), all;
	const struct shape steps = {.rank = 3, .dims = {s.time, s.batch, s.features}};

	for (int64_t i = s.time - 1; i >= 0; i--) {
		dz[i] = tf_binary(&t->e, "ReluGrad", dh, h[i + 1]);
		if (i > 0)
			dh = tf_matmul(t, dz[i], tf_take(t, node, 3), false, true);
	}
	all = tf_join(t, dz, s.time, 0);
	if (node->outputs[0] != VALUE_NONE)
		tf_give(t, node, 0,
			swap(t,
			     tf_reshape(&t->e, tf_matmul(t, all, tf_take(t, node, 2), false, true),
					&steps)));
	give_weight(t, node, 1, tf_matmul(t, *tf_kept(t, rnn), all, true, false));
	give_weight(t, node, 2, tf_matmul(t, tf_join(t, h, s.time, 0), all, true, false));
	give_weight(t, node, 3, tf_unary(&t->e, "BiasAddGrad", all));
}
