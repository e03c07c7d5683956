/* Translates recurrent layers. LSTM is TensorFlow's fused BlockLSTM: one operation for all time
 * steps, with one matrix for input and state. GRU and RNN have no fused operation for all steps:
 * they are unrolled in the graph, as Keras does with unroll=True. */
#include "adapters/tensorflow/tf_translate_internal.h"

/* Batch, time, features and hidden units of a recurrent node. */
struct sizes {
	int64_t batch, time, features, hidden;
};

static struct sizes sizes_of(const struct tf_translation *t, const struct node *node)
{
	const struct shape *x = tf_graph_shape(t, node->inputs[0]);

	return (struct sizes){x->dims[0], x->dims[1], x->dims[2],
			      tf_graph_shape(t, node->inputs[2])->dims[1]};
}

/* Swaps the batch and time axes. */
static struct tf_output swap(struct tf_translation *t, struct tf_output x)
{
	return tf_transpose(&t->e, x, (const int64_t[]){1, 0, 2}, 3);
}

/* Swaps the axes, and puts the steps of an LSTM in their order; from_steps goes back. */
static struct tf_output to_steps(struct tf_translation *t, const struct node *lstm,
				 struct tf_output x)
{
	x = swap(t, x);
	return lstm->attributes.reverse
		       ? tf_binary(&t->e, "ReverseV2", x, tf_indices(&t->e, &(const int64_t){0}, 1))
		       : x;
}

static struct tf_output from_steps(struct tf_translation *t, const struct node *lstm,
				   struct tf_output x)
{
	if (lstm->attributes.reverse)
		x = tf_binary(&t->e, "ReverseV2", x, tf_indices(&t->e, &(const int64_t){0}, 1));
	return swap(t, x);
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
	in[1] = to_steps(t, lstm, tf_take(t, lstm, 0));
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
	y = tf_nth(y, LSTM_OUTPUTS - 1);
	if (node->attributes.sequence) {
		tf_give(t, node, 0, from_steps(t, node, y));
		return;
	}
	y = tf_slice(&t->e, y, (const int64_t[]){s.time - 1, 0, 0}, &last);
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
	struct tf_output in[LSTM_INPUTS + LSTM_OUTPUTS + 2], d = tf_take(t, node, 0);

	for (int i = 0; i < LSTM_INPUTS; i++)
		in[i] = t->states[lstm - t->graph->nodes][i];
	for (int i = 0; i < LSTM_OUTPUTS; i++)
		in[LSTM_INPUTS + i] = tf_nth(*tf_kept(t, lstm), i);
	in[LSTM_INPUTS + LSTM_OUTPUTS] = zeros(t, 3, all);
	in[LSTM_INPUTS + LSTM_OUTPUTS + 1] =
		lstm->attributes.sequence ? to_steps(t, lstm, d)
					  : tf_pad(t, tf_reshape(&t->e, d, &one), before, 3, 0);
	d = tf_op(&t->e, "BlockLSTMGrad", in, LSTM_INPUTS + LSTM_OUTPUTS + 2,
		  TF_WITH(TF_BOOL("use_peephole", false)));
	if (node->outputs[0] != VALUE_NONE)
		tf_give(t, node, 0, from_steps(t, lstm, d));
	give_weight(t, node, 1, tf_nth(d, 3));
	give_weight(t, node, 2, tf_nth(d, 3));
	give_weight(t, node, 3, tf_nth(d, 7));
}

/* The steps of an RNN or GRU. The arrays are by step, of a GRU with four gates a step: z, r, h, and
 * the recurrent product of h. */
struct steps {
	const struct attributes *attributes;
	struct sizes s;
	bool gru;
	struct tf_output r, of_zr, of_h; /* recurrent weights, and their parts of a GRU */
	struct tf_output *h, *gates;	 /* h[0]: before the first step */
};

static struct tf_output columns(struct tf_translation *t, struct tf_output x, int64_t rows,
				int64_t first, int64_t count)
{
	return tf_slice(&t->e, x, (const int64_t[]){0, first},
			&(const struct shape){.rank = 2, .dims = {rows, count}});
}

static struct steps steps_of(struct tf_translation *t, const struct node *node, struct tf_output r)
{
	struct steps l = {.attributes = &node->attributes, .s = sizes_of(t, node), .r = r};
	int64_t hidden = l.s.hidden;

	l.gru = node->op == OP_GRU;
	if (l.gru && !l.attributes->linear_before_reset) {
		l.of_zr = columns(t, r, hidden, 0, 2 * hidden);
		l.of_h = columns(t, r, hidden, 2 * hidden, hidden);
	}
	l.h = t->states[node - t->graph->nodes];
	l.gates = l.h ? l.h + l.s.time + 1 : NULL;
	return l;
}

/* The place of a step in time. */
static int64_t place_of(const struct steps *l, int64_t step)
{
	return l->attributes->reverse ? l->s.time - 1 - step : step;
}

static struct tf_output multiply(struct tf_translation *t, struct tf_output a, struct tf_output b)
{
	return tf_binary(&t->e, "Mul", a, b);
}

static struct tf_output add(struct tf_translation *t, struct tf_output a, struct tf_output b)
{
	return tf_binary(&t->e, "AddV2", a, b);
}

static struct tf_output split(struct tf_translation *t, struct tf_output x, int axis, int64_t parts)
{
	return parts == 1 ? x
			  : tf_op(&t->e, "Split", TF_IN(tf_index(&t->e, axis), x),
				  TF_WITH(TF_INT("num_split", parts)));
}

/* `given`: the sums of the input and the bias; `bias`: of the recurrent product of h. */
static void gru_step(struct tf_translation *t, const struct steps *l, int64_t step,
		     struct tf_output given, struct tf_output bias)
{
	bool linear = l->attributes->linear_before_reset;
	struct tf_output h = l->h[step], *gate = &l->gates[4 * step], product;

	given = split(t, given, 1, 3);
	product = split(t, tf_matmul(t, h, linear ? l->r : l->of_zr, false, false), 1,
			linear ? 3 : 2);
	for (int i = 0; i < 2; i++)
		gate[i] = tf_unary(&t->e, "Sigmoid", add(t, tf_nth(given, i), tf_nth(product, i)));
	if (linear)
		gate[3] = tf_binary(&t->e, "BiasAdd", tf_nth(product, 2), bias);
	else
		gate[3] = tf_matmul(t, multiply(t, gate[1], h), l->of_h, false, false);
	product = linear ? multiply(t, gate[1], gate[3]) : gate[3];
	gate[2] = tf_unary(&t->e, "Tanh", add(t, tf_nth(given, 2), product));
	l->h[step + 1] = add(t, gate[2], multiply(t, gate[0], tf_binary(&t->e, "Sub", h, gate[2])));
}

/* Keeps x as a matrix ordered by time. */
void tf_steps(struct tf_translation *t, const struct node *node)
{
	struct steps l = steps_of(t, node, tf_take(t, node, 2));
	const struct shape flat = {.rank = 2, .dims = {l.s.time * l.s.batch, l.s.features}};
	struct tf_output bias = tf_take(t, node, 3), second = bias, x, *y;
	const char *function = l.attributes->activation ? "Tanh" : "Relu";

	if (l.attributes->linear_before_reset) {
		bias = split(t, bias, 0, 4);
		second = tf_nth(bias, 3);
		bias = tf_join(t,
			       (const struct tf_output[]){bias, tf_nth(bias, 1), tf_nth(bias, 2)},
			       3, 0);
	}
	*tf_kept(t, node) = tf_reshape(&t->e, swap(t, tf_take(t, node, 0)), &flat);
	x = tf_matmul(t, *tf_kept(t, node), tf_take(t, node, 1), false, false);
	x = split(t, tf_binary(&t->e, "BiasAdd", x, bias), 0, l.s.time);
	l.h = arena_array(t->arena, (size_t)(5 * l.s.time + 1), sizeof(l.h[0]));
	l.gates = l.h + l.s.time + 1;
	l.h[0] = zeros(t, 2, (const int64_t[]){l.s.batch, l.s.hidden});
	y = arena_array(t->arena, (size_t)l.s.time, sizeof(y[0]));
	for (int64_t i = 0; i < l.s.time; i++) {
		struct tf_output given = tf_nth(x, (int)place_of(&l, i));

		if (l.gru)
			gru_step(t, &l, i, given, second);
		else
			l.h[i + 1] =
				tf_unary(&t->e, function,
					 add(t, tf_matmul(t, l.h[i], l.r, false, false), given));
		y[place_of(&l, i)] = l.h[i + 1];
	}
	t->states[node - t->graph->nodes] = l.h;
	tf_give(t, node, 0,
		l.attributes->sequence ? tf_op_list(&t->e, "Pack", y, (int)l.s.time, NULL, 0,
						    TF_WITH(TF_INT("axis", 1)))
				       : l.h[l.s.time]);
}

/* Sets *sums to the gradient of the sums of a step (their sum over the batch is that of the bias),
 * and *products to that of its recurrent products; returns that of the state before it. */
static struct tf_output gru_step_grad(struct tf_translation *t, const struct steps *l, int64_t step,
				      struct tf_output dh, struct tf_output *sums,
				      struct tf_output *products)
{
	const struct tf_output *gate = &l->gates[4 * step];
	struct tf_output h = l->h[step], before = multiply(t, dh, gate[0]), ds, d[3];
	bool linear = l->attributes->linear_before_reset;

	d[0] = tf_binary(&t->e, "SigmoidGrad", gate[0],
			 multiply(t, dh, tf_binary(&t->e, "Sub", h, gate[2])));
	d[2] = tf_binary(&t->e, "TanhGrad", gate[2], tf_binary(&t->e, "Sub", dh, before));
	ds = linear ? gate[3] : tf_matmul(t, d[2], l->of_h, false, true);
	d[1] = tf_binary(&t->e, "SigmoidGrad", gate[1], multiply(t, ds, linear ? d[2] : h));
	*sums = tf_join(t, d, 3, 1);
	if (linear) {
		d[2] = multiply(t, d[2], gate[1]);
		*products = tf_join(t, d, 3, 1);
		return add(t, before, tf_matmul(t, *products, l->r, false, true));
	}
	*products = tf_join(t, d, 2, 1);
	return add(t, add(t, before, multiply(t, ds, gate[1])),
		   tf_matmul(t, *products, l->of_zr, false, true));
}

/* The gradient of the recurrent weights, and that of the second bias behind the first one's. The
 * arrays are in the order of the steps. */
static struct tf_output recurrent_grad(struct tf_translation *t, const struct steps *l,
				       struct tf_output *sums, struct tf_output *products,
				       struct tf_output *bias)
{
	int64_t rows = l->s.time * l->s.batch, hidden = l->s.hidden;
	struct tf_output all = tf_join(t, products, l->s.time, 0), grads[2], last;

	grads[0] = tf_matmul(t, tf_join(t, l->h, l->s.time, 0), all, true, false);
	if (l->attributes->linear_before_reset) {
		last = columns(t, all, rows, 2 * hidden, hidden);
		*bias = tf_join(
			t, (const struct tf_output[]){*bias, tf_unary(&t->e, "BiasAddGrad", last)},
			2, 0);
	}
	if (!l->gru || l->attributes->linear_before_reset)
		return grads[0];
	for (int64_t i = 0; i < l->s.time; i++)
		products[i] = multiply(t, l->gates[4 * i + 1], l->h[i]);
	last = columns(t, tf_join(t, sums, l->s.time, 0), rows, 2 * hidden, hidden);
	grads[1] = tf_matmul(t, tf_join(t, products, l->s.time, 0), last, true, false);
	return tf_join(t, grads, 2, 1);
}

void tf_steps_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *forward = tf_forward(t, node);
	struct steps l = steps_of(t, forward, tf_take(t, node, 3));
	const struct shape lies = {.rank = 3, .dims = {l.s.time, l.s.batch, l.s.features}};
	struct tf_output *sums = arena_array(t->arena, 3 * (size_t)l.s.time, sizeof(sums[0]));
	struct tf_output *products = sums + l.s.time, *placed = products + l.s.time;
	struct tf_output dy = tf_take(t, node, 0), dh = dy, all, bias, weights;
	bool sequence = l.attributes->sequence;

	if (sequence)
		dy = tf_op(&t->e, "Unpack", TF_IN(dy),
			   TF_WITH(TF_INT("num", l.s.time), TF_INT("axis", 1)));
	for (int64_t i = l.s.time - 1; i >= 0; i--) {
		struct tf_output own = tf_nth(dy, (int)place_of(&l, i));

		if (sequence)
			dh = i == l.s.time - 1 ? own : add(t, dh, own);
		if (l.gru) {
			dh = gru_step_grad(t, &l, i, dh, &sums[i], &products[i]);
		} else {
			sums[i] = l.attributes->activation
					  ? tf_binary(&t->e, "TanhGrad", l.h[i + 1], dh)
					  : tf_binary(&t->e, "ReluGrad", dh, l.h[i + 1]);
			products[i] = sums[i];
			if (i > 0)
				dh = tf_matmul(t, sums[i], l.r, false, true);
		}
		placed[place_of(&l, i)] = sums[i];
	}
	all = tf_join(t, placed, l.s.time, 0);
	bias = tf_unary(&t->e, "BiasAddGrad", all);
	weights = recurrent_grad(t, &l, sums, products, &bias);
	if (node->outputs[0] != VALUE_NONE)
		tf_give(t, node, 0,
			swap(t,
			     tf_reshape(&t->e, tf_matmul(t, all, tf_take(t, node, 2), false, true),
					&lies)));
	give_weight(t, node, 1, tf_matmul(t, *tf_kept(t, forward), all, true, false));
	give_weight(t, node, 2, weights);
	give_weight(t, node, 3, bias);
}
