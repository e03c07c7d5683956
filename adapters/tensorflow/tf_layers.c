/* Translates matrix products, normalisations, softmax, dropout and losses. */
#include "adapters/tensorflow/tf_translate_internal.h"

static bool turned_b(const struct tf_translation *t, const struct node *gemm)
{
	return gemm->attributes.trans_b && !tf_is_own_weight(t->graph, gemm);
}

/* Multiplies by a factor; returns x itself if the factor is 1. */
static struct tf_output scaled(struct tf_translation *t, struct tf_output x, double factor)
{
	return factor == 1 ? x : tf_scale(&t->e, x, factor);
}

void tf_gemm(struct tf_translation *t, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct tf_output y = scaled(t,
				    tf_matmul(t, tf_take(t, node, 0), tf_take(t, node, 1),
					      a->trans_a, turned_b(t, node)),
				    a->alpha);

	if (node->input_count > 2 && node->inputs[2] != VALUE_NONE)
		y = tf_binary(&t->e, "BiasAdd", y, scaled(t, tf_take(t, node, 2), a->beta));
	tf_give(t, node, 0, y);
}

void tf_gemm_grad_input(struct tf_translation *t, const struct node *node)
{
	const struct node *gemm = tf_forward(t, node);
	bool turn_a = gemm->attributes.trans_a, turn_b = turned_b(t, gemm);
	struct tf_output dy = scaled(t, tf_take(t, node, 0), gemm->attributes.alpha);
	struct tf_output b = tf_take(t, node, 1);

	tf_give(t, node, 0,
		turn_a ? tf_matmul(t, b, dy, turn_b, true) : tf_matmul(t, dy, b, false, !turn_b));
}

void tf_gemm_grad_weight(struct tf_translation *t, const struct node *node)
{
	const struct node *gemm = tf_forward(t, node);
	bool turn_a = gemm->attributes.trans_a, turn_b = turned_b(t, gemm);
	struct tf_output a = tf_take(t, node, 0), dy = tf_take(t, node, 1);
	struct tf_output scaled_dy = scaled(t, dy, gemm->attributes.alpha);

	t->values[node->outputs[0]] = turn_b ? tf_matmul(t, scaled_dy, a, true, turn_a)
					     : tf_matmul(t, a, scaled_dy, !turn_a, false);
	if (node->output_count > 1 && node->outputs[1] != VALUE_NONE)
		tf_give(t, node, 1,
			scaled(t, tf_unary(&t->e, "BiasAddGrad", dy), gemm->attributes.beta));
}

void tf_matmul_node(struct tf_translation *t, const struct node *node)
{
	struct tf_output a = tf_take_plain(t, node, 0), b = tf_take_plain(t, node, 1);

	tf_give_plain(t, node, 0,
		      tf_graph_shape(t, node->outputs[0])->rank == 2
			      ? tf_matmul(t, a, b, false, false)
			      : tf_binary(&t->e, "BatchMatMulV2", a, b));
}

/* Returns a matrix as images of one pixel; images in memory order. */
static struct tf_output as_image(struct tf_translation *t, struct tf_output x, int value)
{
	const struct shape *shape = tf_graph_shape(t, value);
	struct shape image = {.rank = 4, .dims = {shape->dims[0], 1, 1, 1}};

	image.dims[t->last ? 3 : 1] = shape->dims[1];
	return shape->rank == 4 ? x : tf_reshape(&t->e, x, &image);
}

/* Keeps output 0, because the gradient reads the other outputs of the operation, which hold
 * reserved data. */
void tf_batch_norm(struct tf_translation *t, const struct node *node)
{
	struct shape none = {.rank = 1, .dims = {0}}, lies = tf_lying_shape(t, node->outputs[0]);
	struct tf_output x = as_image(t, tf_take(t, node, 0), node->inputs[0]);
	struct tf_output mean, variance, y;

	if (t->training) {
		mean = variance = tf_constant(&t->e, TF_TYPE_FLOAT, &none, "");
	} else {
		mean = tf_take(t, node, 3);
		variance = tf_take(t, node, 4);
	}
	y = tf_op(&t->e, "FusedBatchNormV3",
		  TF_IN(x, tf_take(t, node, 1), tf_take(t, node, 2), mean, variance),
		  TF_WITH(TF_FLOAT("epsilon", node->attributes.epsilon),
			  TF_TEXT("data_format", tf_data_format(t)),
			  TF_BOOL("is_training", t->training)));
	*tf_kept(t, node) = y;
	tf_give(t, node, 0, tf_reshape(&t->e, y, &lies));
	for (int i = 1; i < node->output_count; i++)
		tf_give(t, node, i, tf_nth(y, i));
}

void tf_batch_norm_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *forward = tf_forward(t, node);
	struct tf_output y = *tf_kept(t, forward), dx;
	struct shape lies = tf_lying_shape(t, forward->inputs[0]);

	dx = tf_op(&t->e, "FusedBatchNormGradV3",
		   TF_IN(as_image(t, tf_take(t, node, 0), forward->inputs[0]),
			 as_image(t, tf_take(t, node, 1), forward->inputs[0]), tf_take(t, node, 2),
			 tf_nth(y, 3), tf_nth(y, 4), tf_nth(y, 5)),
		   TF_WITH(TF_FLOAT("epsilon", forward->attributes.epsilon),
			   TF_TEXT("data_format", tf_data_format(t)),
			   TF_BOOL("is_training", true)));
	if (node->outputs[0] != VALUE_NONE)
		tf_give(t, node, 0, tf_reshape(&t->e, dx, &lies));
	for (int i = 1; i < node->output_count; i++)
		tf_give(t, node, i, tf_nth(dx, i));
}

/* TensorFlow's alpha is per channel; ONNX's alpha is divided by the number of channels. */
static struct tf_output lrn(struct tf_translation *t, const struct attributes *a, const char *type,
			    const struct tf_output *inputs, int count)
{
	return tf_op(&t->e, type, inputs, count,
		     TF_WITH(TF_INT("depth_radius", (a->size - 1) / 2), TF_FLOAT("bias", a->bias),
			     TF_FLOAT("alpha", a->alpha / (double)a->size),
			     TF_FLOAT("beta", a->beta)));
}

/* The LRN kernels support channels last only. */
static struct tf_output lrn_take(struct tf_translation *t, struct tf_output x)
{
	return t->last ? x : tf_transpose(&t->e, x, (const int64_t[]){0, 2, 3, 1}, 4);
}

static void lrn_give(struct tf_translation *t, const struct node *node, struct tf_output y)
{
	tf_give(t, node, 0, t->last ? y : tf_transpose(&t->e, y, (const int64_t[]){0, 3, 1, 2}, 4));
}

void tf_lrn(struct tf_translation *t, const struct node *node)
{
	lrn_give(t, node,
		 lrn(t, &node->attributes, "LRN", TF_IN(lrn_take(t, tf_take(t, node, 0)))));
}

void tf_lrn_grad(struct tf_translation *t, const struct node *node)
{
	lrn_give(t, node,
		 lrn(t, &tf_forward(t, node)->attributes, "LRNGrad",
		     TF_IN(lrn_take(t, tf_take(t, node, 0)), lrn_take(t, tf_take(t, node, 1)),
			   lrn_take(t, tf_take(t, node, 2)))));
}

/* The mask is 0 or 1 / (1 - ratio). Without dropout the node is the identity. */
void tf_dropout(struct tf_translation *t, const struct node *node)
{
	double ratio = node->attributes.ratio;
	struct shape lies = tf_lying_shape(t, node->inputs[0]);
	struct tf_output x = tf_take(t, node, 0), mask;

	if (!t->training || !t->dropout || ratio == 0) {
		tf_give(t, node, 0, x);
		return;
	}
	mask = tf_op(&t->e, "RandomUniform", TF_IN(tf_dims(&t->e, &lies)),
		     TF_WITH(TF_TYPE("dtype", TF_TYPE_FLOAT), TF_INT("seed", t->seed),
			     TF_INT("seed2", node - t->graph->nodes)));
	mask = tf_binary(&t->e, "GreaterEqual", mask, tf_number(&t->e, mask, ratio));
	mask = tf_scale(&t->e, tf_cast(&t->e, mask, t->type), 1 / (1 - ratio));
	*tf_kept(t, node) = mask;
	tf_give(t, node, 0, tf_binary(&t->e, "Mul", x, mask));
}

void tf_dropout_grad(struct tf_translation *t, const struct node *node)
{
	struct tf_output mask = *tf_kept(t, tf_forward(t, node)), dy = tf_take(t, node, 0);

	tf_give(t, node, 0, mask.operation ? tf_binary(&t->e, "Mul", dy, mask) : dy);
}

/* Swaps `axis` and the last axis, because TensorFlow's Softmax works on the last: {0, 1, 3, 2} for
 * axis 2 of 4. */
static struct tf_output axis_last(struct tf_translation *t, struct tf_output x, int64_t axis,
				  int rank)
{
	int64_t axes[TENSOR_MAX_RANK];

	for (int i = 0; i < rank; i++)
		axes[i] = i;
	axes[axis] = rank - 1;
	axes[rank - 1] = axis;
	return axis == rank - 1 ? x : tf_transpose(&t->e, x, axes, rank);
}

/* Returns the means over the axes from `axis` on of a value of that rank, in graph order. */
static struct tf_output row_mean(struct tf_translation *t, struct tf_output x, int axis, int rank)
{
	bool reduced[TENSOR_MAX_RANK] = {false};

	for (int i = axis; i < rank; i++)
		reduced[i] = true;
	return tf_reduce(t, "Mean", x, reduced, rank);
}

static bool subtracts_mean(const struct node *node)
{
	return node->op == OP_LAYER_NORM || node->op == OP_LAYER_NORM_GRAD;
}

/* Returns x normalised; *inverse gets 1 / deviation of each row. RMSNormalization has no mean. */
static struct tf_output normalised(struct tf_translation *t, const struct node *node,
				   struct tf_output x, int rank, struct tf_output *inverse)
{
	int axis = (int)node->attributes.axis;
	struct tf_output variance;

	if (subtracts_mean(node))
		x = tf_binary(&t->e, "Sub", x, row_mean(t, x, axis, rank));
	variance = row_mean(t, tf_unary(&t->e, "Square", x), axis, rank);
	*inverse = tf_unary(&t->e, "Rsqrt",
			    tf_binary(&t->e, "AddV2", variance,
				      tf_number(&t->e, variance, node->attributes.epsilon)));
	return tf_binary(&t->e, "Mul", x, *inverse);
}

/* Computed as tf.nn.moments and tf.nn.batch_normalization over the last axes, because TensorFlow
 * has no kernel for it. */
void tf_layer_norm(struct tf_translation *t, const struct node *node)
{
	int rank = tf_graph_shape(t, node->inputs[0])->rank;
	struct tf_output x = tf_cast(&t->e, tf_take_plain(t, node, 0), TF_TYPE_FLOAT), inverse, y;

	y = tf_binary(&t->e, "Mul", normalised(t, node, x, rank, &inverse),
		      tf_take_plain(t, node, 1));
	if (node->input_count == 3)
		y = tf_binary(&t->e, "AddV2", y, tf_take_plain(t, node, 2));
	tf_give_plain(t, node, 0, y);
}

static void give_row_sum(struct tf_translation *t, const struct node *node, int i,
			 struct tf_output x, int rank)
{
	bool reduced[TENSOR_MAX_RANK] = {false};

	if (i >= node->output_count || node->outputs[i] == VALUE_NONE)
		return;
	for (int k = 0; k < node->attributes.axis; k++)
		reduced[k] = true;
	tf_give_plain(t, node, i,
		      tf_reshape(&t->e, tf_reduce(t, "Sum", x, reduced, rank),
				 tf_graph_shape(t, node->outputs[i])));
}

/* (g - mean(g) - z mean(g z)) / deviation, where g = dy scale and z = x normalised; without mean(g)
 * if there is no mean to subtract */
void tf_layer_norm_grad(struct tf_translation *t, const struct node *node)
{
	int rank = tf_graph_shape(t, node->inputs[1])->rank, axis = (int)node->attributes.axis;
	struct tf_output dy = tf_cast(&t->e, tf_take_plain(t, node, 0), TF_TYPE_FLOAT);
	struct tf_output x = tf_cast(&t->e, tf_take_plain(t, node, 1), TF_TYPE_FLOAT);
	struct tf_output inverse, z = normalised(t, node, x, rank, &inverse), g, dx;

	if (node->outputs[0] != VALUE_NONE) {
		g = tf_binary(&t->e, "Mul", dy, tf_take_plain(t, node, 2));
		dx = tf_binary(&t->e, "Mul", z,
			       row_mean(t, tf_binary(&t->e, "Mul", g, z), axis, rank));
		if (subtracts_mean(node))
			g = tf_binary(&t->e, "Sub", g, row_mean(t, g, axis, rank));
		dx = tf_binary(&t->e, "Sub", g, dx);
		tf_give_plain(t, node, 0, tf_binary(&t->e, "Mul", dx, inverse));
	}
	give_row_sum(t, node, 1, tf_binary(&t->e, "Mul", dy, z), rank);
	give_row_sum(t, node, 2, dy, rank);
}

void tf_softmax(struct tf_translation *t, const struct node *node)
{
	int value = node->inputs[0], rank = tf_graph_shape(t, value)->rank;
	int axis = layouts_axis(&t->layouts, value, (int)node->attributes.axis);
	struct tf_output y =
		tf_unary(&t->e, "Softmax", axis_last(t, tf_take(t, node, 0), axis, rank));

	tf_give(t, node, 0, axis_last(t, y, axis, rank));
}

/* (dy - sum(dy y)) y */
void tf_softmax_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *forward = tf_forward(t, node);
	int value = forward->inputs[0];
	struct tf_output dy = tf_take(t, node, 0), y = tf_take(t, node, 1);
	bool reduced[TENSOR_MAX_RANK] = {false};

	reduced[layouts_axis(&t->layouts, value, (int)forward->attributes.axis)] = true;
	dy = tf_binary(&t->e, "Sub", dy,
		       tf_reduce(t, "Sum", tf_binary(&t->e, "Mul", dy, y), reduced,
				 tf_graph_shape(t, value)->rank));
	tf_give(t, node, 0, tf_binary(&t->e, "Mul", dy, y));
}

/* Whether labels can be invalid. One-dimensional labels are all valid: tf_feed rejects others. */
static bool ignores_labels(const struct tf_translation *t, const struct node *loss)
{
	return tf_graph_shape(t, loss->inputs[1])->rank != 1;
}

/* Returns the labels, one per row of the logits. */
static struct tf_output row_labels(struct tf_translation *t, const struct node *loss)
{
	const struct shape rows = {.rank = 1,
				   .dims = {shape_elements(tf_graph_shape(t, loss->inputs[1]))}};

	return tf_reshape(&t->e, tf_take(t, loss, 1), &rows);
}

/* Returns 1 / (number of valid labels) for rows with a valid label, 0 for the others. */
static struct tf_output row_shares(struct tf_translation *t, const struct node *loss)
{
	const bool reduced[] = {true};
	struct tf_output labels = row_labels(t, loss), valid;

	valid = tf_binary(&t->e, "GreaterEqual", labels, tf_number(&t->e, labels, 0));
	valid = tf_cast(&t->e, valid, TF_TYPE_FLOAT);
	return tf_binary(&t->e, "RealDiv", valid, tf_reduce(t, "Sum", valid, reduced, 1));
}

/* Keeps the losses of the rows: the same operation also outputs the gradients of the logits. It
 * does not accept the label -1. */
void tf_cross_entropy(struct tf_translation *t, const struct node *node)
{
	struct tf_output logits = tf_cast(&t->e, tf_take_plain(t, node, 0), TF_TYPE_FLOAT);
	struct tf_output labels = row_labels(t, node), losses, loss;
	const bool reduced[] = {true}, ignores = ignores_labels(t, node);
	const struct shape scalar = {.rank = 0};

	if (ignores)
		labels = tf_binary(&t->e, "Maximum", labels, tf_number(&t->e, labels, 0));
	losses = tf_op(&t->e, "SparseSoftmaxCrossEntropyWithLogits", TF_IN(logits, labels), NULL);
	*tf_kept(t, node) = losses;
	loss = ignores ? tf_reduce(t, "Sum", tf_binary(&t->e, "Mul", losses, row_shares(t, node)),
				   reduced, 1)
		       : tf_reduce(t, "Mean", losses, reduced, 1);
	tf_give(t, node, 0, tf_reshape(&t->e, loss, &scalar));
}

void tf_cross_entropy_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *forward = tf_forward(t, node);
	int64_t rows = tf_graph_shape(t, forward->inputs[0])->dims[0];
	const struct shape column = {.rank = 2, .dims = {rows, 1}};
	struct tf_output dlogits = tf_nth(*tf_kept(t, forward), 1);

	if (ignores_labels(t, forward))
		dlogits = tf_binary(&t->e, "Mul", dlogits,
				    tf_reshape(&t->e, row_shares(t, forward), &column));
	else
		dlogits = tf_scale(&t->e, dlogits, 1 / (double)rows);
	tf_give_plain(t, node, 0, tf_cast(&t->e, dlogits, t->type));
}

void tf_half_squares(struct tf_translation *t, const struct node *node)
{
	tf_give(t, node, 0,
		tf_unary(&t->e, "L2Loss", tf_cast(&t->e, tf_take(t, node, 0), TF_TYPE_FLOAT)));
}

void tf_half_squares_grad(struct tf_translation *t, const struct node *node)
{
	tf_give(t, node, 0, tf_take(t, node, 0));
}
