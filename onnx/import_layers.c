/* Nodes of ONNX files that become layers: by the operator's row, or by a function here. */
#include "onnx/import_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "graph/edit_internal.h"

/* The number of nodes after a MatMul that are searched for the Add of its bias. */
#define BIAS_DISTANCE 8

/* Reads `count` whole numbers of an attribute; `out` keeps its values if it is absent. */
static bool read_ints(struct importer *im, const struct file_node *node, const char *name,
		      size_t count, int64_t *out)
{
	const Onnx__AttributeProto *attribute = onnx_attribute(node->proto, name);

	if (attribute == NULL)
		return true;
	if (attribute->n_ints != count) {
		import_refuse(im, node,
			      "%s has %zu numbers; only two spatial dimensions are "
			      "supported",
			      name, attribute->n_ints);
		return false;
	}
	memcpy(out, attribute->ints, count * sizeof(*out));
	return true;
}

/* ONNX: SAME gives ceil(size / stride) windows. If the padding is odd, the larger half is at the
 * end or at the beginning. */
static void pad_same(struct attributes *a, const struct shape *x, bool odd_at_end)
{
	for (int i = 0; i < 2; i++) {
		int64_t size = x->dims[2 + i], windows, total;

		/* Shape inference refuses these; skip them here, so that nothing overflows. */
		if (a->strides[i] < 1 || a->kernel[i] < 1 || a->kernel[i] > GRAPH_MAX_DIM ||
		    a->dilations[i] < 1 || a->dilations[i] > GRAPH_MAX_DIM)
			continue;
		windows = (size - 1) / a->strides[i];
		total = windows * a->strides[i] + (a->kernel[i] - 1) * a->dilations[i] + 1 - size;
		total = total > 0 ? total : 0;
		a->pads[i] = odd_at_end ? total / 2 : total - total / 2;
		a->pads[i + 2] = total - a->pads[i];
	}
}

/* Reads the attributes that convolutions and pools share. The kernel must be set before. */
static bool read_window(struct importer *im, const struct file_node *node, const struct shape *x,
			struct attributes *a)
{
	char auto_pad[16];

	onnx_text(node->proto, "auto_pad", "NOTSET", auto_pad, sizeof(auto_pad));
	if (!read_ints(im, node, "strides", 2, a->strides) ||
	    !read_ints(im, node, "dilations", 2, a->dilations) ||
	    !read_ints(im, node, "pads", 4, a->pads))
		return false;
	if (strcmp(auto_pad, "NOTSET") == 0)
		return true;
	memset(a->pads, 0, sizeof(a->pads));
	if (strcmp(auto_pad, "SAME_UPPER") == 0 || strcmp(auto_pad, "SAME_LOWER") == 0)
		pad_same(a, x, strcmp(auto_pad, "SAME_UPPER") == 0);
	else if (strcmp(auto_pad, "VALID") != 0)
		import_refuse(im, node, "unknown auto_pad '%s'", auto_pad);
	return strcmp(auto_pad, "VALID") == 0 || strncmp(auto_pad, "SAME", 4) == 0;
}

/* The padding of a ConvTranspose by the size that it shall have: output_shape, or the stride times
 * the input's. */
static bool read_output_size(struct importer *im, const struct file_node *node,
			     const struct shape *x, struct attributes *a)
{
	char auto_pad[16];
	int64_t given[2] = {0, 0};
	bool same;

	onnx_text(node->proto, "auto_pad", "NOTSET", auto_pad, sizeof(auto_pad));
	if (!read_ints(im, node, "output_padding", 2, a->output_padding) ||
	    !read_ints(im, node, "output_shape", 2, given))
		return false;
	same = strncmp(auto_pad, "SAME", 4) == 0;
	for (int i = 0; i < 2 && (given[0] != 0 || same); i++) {
		const int64_t numbers[] = {a->strides[i], a->dilations[i], a->kernel[i],
					   a->output_padding[i] + 1, given[0] == 0 ? 1 : given[i]};
		bool good = true;
		int64_t total;

		for (int k = 0; k < 5; k++)
			good = good && numbers[k] >= 1 && numbers[k] <= GRAPH_MAX_DIM;
		if (!good)
			continue; /* shape inference refuses them */
		total = (x->dims[2 + i] - 1) * a->strides[i] + a->output_padding[i] +
			(a->kernel[i] - 1) * a->dilations[i] + 1 -
			(given[0] != 0 ? given[i] : x->dims[2 + i] * a->strides[i]);
		a->pads[i] = strcmp(auto_pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
		a->pads[i + 2] = total - a->pads[i];
	}
	return true;
}

void import_conv(struct importer *im, const struct file_node *node)
{
	bool transposed = strcmp(node->proto->op_type, "ConvTranspose") == 0;
	enum op op = transposed ? OP_CONV_TRANSPOSE : OP_CONV;
	const struct constant *w, *b = NULL;
	struct attributes attributes;
	int inputs[3], count = 2;

	operator_default_attributes(op, &attributes);
	if (!import_need_value(im, node, 0, 4, &inputs[0]) ||
	    !import_need_constant(im, node, 1, &w) ||
	    (import_has(node, 2) && !import_need_constant(im, node, 2, &b)))
		return;
	for (int i = 0; i < 2 && w->shape.rank == 4; i++)
		attributes.kernel[i] = w->shape.dims[2 + i];
	attributes.group = onnx_int(node->proto, "group", 1);
	if (!read_ints(im, node, "kernel_shape", 2, attributes.kernel) ||
	    !read_window(im, node, import_shape(im, inputs[0]), &attributes) ||
	    (transposed && !read_output_size(im, node, import_shape(im, inputs[0]), &attributes)))
		return;
	inputs[1] = import_parameter(im, node, w, NULL, VALUE_PARAMETER, "weight");
	if (inputs[1] == VALUE_NONE)
		return;
	if (b != NULL) {
		inputs[2] = import_parameter(im, node, b, NULL, VALUE_PARAMETER, "bias");
		count = 3;
		if (inputs[2] == VALUE_NONE)
			return;
	}
	import_set(im, node, 0, import_append(im, node, op, inputs, count, &attributes));
}

static bool output_is_used(const struct importer *im, const struct file_node *node, size_t i)
{
	return i < node->output_count && node->outputs[i] != NAME_OMITTED &&
	       im->model->definitions[node->outputs[i]].users > 0;
}

void import_pool(struct importer *im, const struct file_node *node)
{
	bool average = strcmp(node->proto->op_type, "AveragePool") == 0;
	enum op op = average ? OP_AVERAGE_POOL : OP_MAX_POOL;
	struct attributes attributes;
	int x;

	operator_default_attributes(op, &attributes);
	attributes.dilations[0] = attributes.dilations[1] = 1;
	attributes.ceil_mode = onnx_int(node->proto, "ceil_mode", 0) != 0;
	attributes.count_include_pad = onnx_int(node->proto, "count_include_pad", 0) != 0;
	if (!import_need_value(im, node, 0, 4, &x) ||
	    !read_ints(im, node, "kernel_shape", 2, attributes.kernel) ||
	    !read_window(im, node, import_shape(im, x), &attributes))
		return;
	if (average && (attributes.dilations[0] != 1 || attributes.dilations[1] != 1))
		import_refuse(im, node, "average pooling with dilations is not supported");
	else if (output_is_used(im, node, 1))
		import_refuse(im, node,
			      "its second output (indices of the maxima) is used, which is not "
			      "supported");
	else
		import_set(im, node, 0, import_append(im, node, op, &x, 1, &attributes));
}

void import_global_pool(struct importer *im, const struct file_node *node)
{
	bool average = strcmp(node->proto->op_type, "GlobalAveragePool") == 0;
	struct attributes attributes;
	int x;

	if (!import_need_value(im, node, 0, 4, &x))
		return;
	operator_default_attributes(average ? OP_GLOBAL_AVERAGE_POOL : OP_MAX_POOL, &attributes);
	if (!average) {
		attributes.kernel[0] = import_shape(im, x)->dims[2];
		attributes.kernel[1] = import_shape(im, x)->dims[3];
	}
	import_set(im, node, 0,
		   import_append(im, node, average ? OP_GLOBAL_AVERAGE_POOL : OP_MAX_POOL, &x, 1,
				 &attributes));
}

/* Whether it is a bias with one number for each of `features` columns, possibly with dimensions of
 * 1 before. */
static bool is_row(const struct constant *c, int64_t features)
{
	return c->is_float && c->count == features && c->shape.rank > 0 &&
	       c->shape.dims[c->shape.rank - 1] == features;
}

static int append_gemm(struct importer *im, const struct file_node *node, int x,
		       const struct constant *w, const struct constant *bias,
		       const struct attributes *attributes)
{
	int inputs[3] = {x, import_parameter(im, node, w, NULL, VALUE_PARAMETER, "weight")};
	struct shape row = {.rank = 1};

	if (inputs[1] == VALUE_NONE)
		return VALUE_NONE;
	if (bias == NULL)
		return import_append(im, node, OP_GEMM, inputs, 2, attributes);
	row.dims[0] = bias->count;
	inputs[2] = import_parameter(im, node, bias, &row, VALUE_PARAMETER, "bias");
	if (inputs[2] == VALUE_NONE)
		return VALUE_NONE;
	return import_append(im, node, OP_GEMM, inputs, 3, attributes);
}

/* A transposed constant that is tied is read as the initializer itself. */
static const struct constant *untransposed(const struct importer *im, const struct constant *w,
					   bool *trans)
{
	bool transposed = false;
	const struct constant *whole = import_tied(im, w, &transposed);

	if (whole == NULL)
		return w;
	*trans ^= transposed;
	return whole;
}

/* Adds input i to x. */
static int append_add(struct importer *im, const struct file_node *node, int x, size_t i)
{
	int inputs[2] = {x, import_operand(im, node, i)};

	return inputs[1] == VALUE_NONE ? VALUE_NONE
				       : import_append(im, node, OP_ADD, inputs, 2, NULL);
}

void import_gemm(struct importer *im, const struct file_node *node)
{
	const struct constant *w, *bias = NULL;
	struct attributes attributes;
	int x;

	if (!import_need_value(im, node, 0, 2, &x) || !import_need_constant(im, node, 1, &w) ||
	    (import_has(node, 2) && !import_need_constant(im, node, 2, &bias)))
		return;
	operator_default_attributes(OP_GEMM, &attributes);
	attributes.alpha = onnx_real(node->proto, "alpha", 1);
	attributes.beta = onnx_real(node->proto, "beta", 1);
	attributes.trans_a = onnx_int(node->proto, "transA", 0) != 0;
	attributes.trans_b = onnx_int(node->proto, "transB", 0) != 0;
	w = untransposed(im, w, &attributes.trans_b);
	if (w->shape.rank != 2) {
		import_refuse(im, node, "its weights have %d dimensions; they must have 2",
			      w->shape.rank);
		return;
	}
	if (bias == NULL || is_row(bias, w->shape.dims[attributes.trans_b ? 0 : 1])) {
		import_set(im, node, 0, append_gemm(im, node, x, w, bias, &attributes));
	} else if (bias->is_float && bias->count == 1 && attributes.beta == 1) {
		x = append_gemm(im, node, x, w, NULL, &attributes);
		import_set(im, node, 0, x == VALUE_NONE ? x : append_add(im, node, x, 2));
	} else {
		import_refuse(im, node, "its bias must have one number for each output column");
	}
}

/* Finds the Add of a constant row behind a MatMul whose product has the shape `out`: returns the
 * row, and the node's index in *add. NULL if the product has another user, or if the Add gives the
 * sum more dimensions. */
static const struct constant *find_bias(const struct importer *im, const struct file_node *node,
					const struct shape *out, size_t *add)
{
	int product = node->outputs[0];
	size_t index = (size_t)(node - im->model->nodes);

	if (product == NAME_OMITTED || im->model->definitions[product].users != 1)
		return NULL;
	for (size_t i = index + 1; i < im->model->node_count && i <= index + BIAS_DISTANCE; i++) {
		const struct file_node *user = &im->model->nodes[i];
		const struct constant *row;

		if (!user->needed || strcmp(user->proto->op_type, "Add") != 0 ||
		    onnx_is_foreign(user->proto) || user->input_count != 2 ||
		    user->output_count != 1 || user->outputs[0] == NAME_OMITTED ||
		    (user->inputs[0] != product && user->inputs[1] != product))
			continue;
		row = import_constant(im, user, user->inputs[0] == product ? 1 : 0);
		*add = i;
		return row && row->shape.rank <= out->rank && is_row(row, out->dims[out->rank - 1])
			       ? row
			       : NULL;
	}
	return NULL;
}

/* The products of two operands, of which one may be constant. */
static void import_products(struct importer *im, const struct file_node *node)
{
	int inputs[2];

	for (int i = 0; i < 2; i++) {
		inputs[i] = import_operand(im, node, (size_t)i);
		if (inputs[i] == VALUE_NONE)
			return;
	}
	import_set(im, node, 0, import_append(im, node, OP_MATMUL, inputs, 2, NULL));
}

/* MatMul of x (any rank) with a constant matrix is a full layer over the last dimension. */
void import_matmul(struct importer *im, const struct file_node *node)
{
	const struct slot *first = import_slot(im, node, 0);
	const struct constant *w = import_constant(im, node, 1), *bias;
	struct attributes attributes;
	struct shape shape, rows = {.rank = 2, .dims = {1, 1}};
	size_t add = 0;
	int x;

	if (w == NULL || w->shape.rank != 2 || first == NULL || first->kind != SLOT_VALUE ||
	    import_shape(im, first->value)->rank < 2) {
		import_products(im, node);
		return;
	}
	x = first->value;
	shape = *import_shape(im, x);
	rows.dims[1] = shape.dims[shape.rank - 1];
	rows.dims[0] = shape_elements(&shape) / rows.dims[1];
	x = import_reshaped(im, node, x, &rows);
	if (x == VALUE_NONE)
		return;
	operator_default_attributes(OP_GEMM, &attributes);
	shape.dims[shape.rank - 1] = w->shape.dims[1];
	bias = find_bias(im, node, &shape, &add);
	w = untransposed(im, w, &attributes.trans_b);
	x = append_gemm(im, node, x, w, bias, &attributes);
	if (x != VALUE_NONE)
		x = import_reshaped(im, node, x, &shape);
	import_set(im, node, 0, x);
	if (bias != NULL && x != VALUE_NONE) {
		im->done[add] = true;
		import_set(im, &im->model->nodes[add], 0, x);
	}
}

/* The root of a negative variance would make every result NaN. */
static bool check_variance(struct importer *im, const struct file_node *node,
			   const struct constant *numbers)
{
	for (int64_t i = 0; i < numbers->count; i++) {
		if (numbers->floats[i] >= 0)
			continue;
		import_refuse(im, node, "its variance is negative (element %lld is %g)",
			      (long long)i, (double)numbers->floats[i]);
		return false;
	}
	return true;
}

void import_batch_norm(struct importer *im, const struct file_node *node)
{
	static const char *const what[] = {"input", "scale", "bias", "mean", "variance"};
	struct attributes attributes;
	int inputs[5];

	if (!import_need_value(im, node, 0, 0, &inputs[0]))
		return;
	if (onnx_int(node->proto, "spatial", 1) != 1) { /* until opset 9 */
		import_refuse(im, node,
			      "statistics for each position (spatial = 0) are not supported");
		return;
	}
	for (size_t i = 1; i < 5; i++) {
		if (output_is_used(im, node, i)) {
			import_refuse(im, node,
				      "output %zu, a statistic, is used, which is not supported",
				      i);
			return;
		}
	}
	for (size_t i = 1; i < 5; i++) {
		const struct constant *numbers;

		if (!import_need_constant(im, node, i, &numbers))
			return;
		inputs[i] = import_parameter(im, node, numbers, NULL,
					     i < 3 ? VALUE_PARAMETER : VALUE_STATE, what[i]);
		if (inputs[i] == VALUE_NONE || (i == 4 && !check_variance(im, node, numbers)))
			return;
	}
	operator_default_attributes(OP_BATCH_NORM, &attributes);
	attributes.epsilon = onnx_real(node->proto, "epsilon", 1e-5);
	attributes.momentum = onnx_real(node->proto, "momentum", 0.9);
	import_set(im, node, 0, import_append(im, node, OP_BATCH_NORM, inputs, 5, &attributes));
}

void import_sum(struct importer *im, const struct file_node *node)
{
	int sum;

	if (node->input_count < 1) {
		import_refuse(im, node, "it has no inputs");
		return;
	}
	sum = import_operand(im, node, 0);
	for (size_t i = 1; i < node->input_count && sum != VALUE_NONE; i++)
		sum = append_add(im, node, sum, i);
	import_set(im, node, 0, sum);
}

static bool read_word(struct importer *im, const struct file_node *node,
		      const struct attribute_row *row, int64_t *out)
{
	char text[32];

	onnx_text(node->proto, row->name, row->words[*out], text, sizeof(text));
	for (int64_t i = 0; row->words[i] != NULL; i++) {
		if (strcmp(text, row->words[i]) != 0)
			continue;
		*out = i;
		return true;
	}
	import_refuse(im, node, "%s '%s' is not supported", row->name, text);
	return false;
}

/* Reads the one number of a constant input, or `otherwise` if it is left out. Infinities become the
 * largest float. */
static bool read_number(struct importer *im, const struct file_node *node, size_t i,
			double otherwise, double *out)
{
	const struct constant *constant = NULL;

	*out = otherwise;
	if (!import_has(node, i))
		return true;
	if (!import_need_constant(im, node, i, &constant))
		return false;
	if (constant->count != 1 || (constant->is_float && isnan(constant->floats[0]))) {
		import_refuse(im, node, "input %zu must be a single number", i);
		return false;
	}
	*out = constant->is_float ? (double)constant->floats[0] : (double)constant->ints[0];
	if (isinf(*out))
		*out = *out > 0 ? (double)FLT_MAX : -(double)FLT_MAX;
	return true;
}

static bool read_attributes(struct importer *im, const struct file_node *node, enum op op,
			    struct attributes *out)
{
	operator_default_attributes(op, out);
	for (const struct attribute_row *row = operator_row(op)->attributes; row->name; row++) {
		void *member = (char *)out + row->offset;

		if (row->kind == ATTRIBUTE_WORD && !read_word(im, node, row, member))
			return false;
		if (row->kind == ATTRIBUTE_INT)
			*(int64_t *)member =
				onnx_int(node->proto, row->name, (int64_t)row->otherwise);
		if (row->kind == ATTRIBUTE_REAL && row->input == 0)
			*(double *)member = onnx_real(node->proto, row->name, row->otherwise);
		if (row->kind == ATTRIBUTE_REAL && row->input > 0 &&
		    !read_number(im, node, (size_t)row->input, row->otherwise, member))
			return false;
	}
	return true;
}

/* Input i as the letter in its operator's row describes it. */
static int import_input(struct importer *im, const struct file_node *node, size_t i, char letter)
{
	const struct constant *numbers;
	int value;

	if (letter == 'e')
		return import_operand(im, node, i);
	if (letter == 'x')
		return import_need_value(im, node, i, 0, &value) ? value : VALUE_NONE;
	return import_need_constant(im, node, i, &numbers)
		       ? import_parameter(im, node, numbers, NULL, VALUE_PARAMETER, "operand")
		       : VALUE_NONE;
}

void import_by_row(struct importer *im, const struct file_node *node)
{
	enum op op = operator_from_name(node->proto->op_type);
	const struct operator_row *row = operator_row(op);
	struct attributes attributes;
	int inputs[NODE_MAX_INPUTS], count = 0;

	for (size_t i = 1; i < node->output_count; i++) {
		if (!output_is_used(im, node, i))
			continue;
		import_refuse(im, node, "its output %zu is used; only output 0 is supported", i);
		return;
	}
	for (const char *letter = row->onnx_inputs; *letter; letter++, count++) {
		if (count >= row->min_inputs && !import_has(node, (size_t)count))
			break;
		inputs[count] = import_input(im, node, (size_t)count, *letter);
		if (inputs[count] == VALUE_NONE)
			return;
	}
	if (read_attributes(im, node, op, &attributes))
		import_set(im, node, 0, import_append(im, node, op, inputs, count, &attributes));
}

/* x^2 is a product. Other exponents are attributes. */
void import_power(struct importer *im, const struct file_node *node)
{
	struct attributes attributes;
	int x;

	operator_default_attributes(OP_POW, &attributes);
	if (!import_need_value(im, node, 0, 0, &x) ||
	    !read_number(im, node, 1, 1, &attributes.exponent))
		return;
	/* Every framework has products; the cube is Gelu's. */
	if (attributes.exponent == 2 || attributes.exponent == 3) {
		int y = import_append(im, node, OP_MUL, (const int[]){x, x}, 2, NULL);

		if (y != VALUE_NONE && attributes.exponent == 3)
			y = import_append(im, node, OP_MUL, (const int[]){y, x}, 2, NULL);
		x = y;
	} else {
		x = import_append(im, node, OP_POW, &x, 1, &attributes);
	}
	import_set(im, node, 0, x);
}

/* Whether a softmax is over the classes: every other dimension behind the batch is 1. */
static bool is_over_classes(const struct shape *shape, int axis)
{
	for (int i = 1; i < shape->rank; i++) {
		if (i != axis && shape->dims[i] != 1)
			return false;
	}
	return axis > 0;
}

/* Before opset 13, a softmax is over all dimensions from its axis on, as for a matrix. Returns true
 * if these are more than the axis itself; then *matrix is the shape to compute it in. */
static bool is_softmax_of_matrix(const struct importer *im, const struct shape *shape, int axis,
				 struct shape *matrix)
{
	*matrix = (struct shape){.rank = 2, .dims = {1, 1}};
	for (int i = 0; i < shape->rank; i++)
		matrix->dims[i >= axis] *= shape->dims[i];
	return im->model->facts.opset < 13 && matrix->dims[1] != shape->dims[axis];
}

void import_softmax(struct importer *im, const struct file_node *node)
{
	bool logarithm = strcmp(node->proto->op_type, "LogSoftmax") == 0;
	int64_t axis = onnx_int(node->proto, "axis", im->model->facts.opset < 13 ? 1 : -1);
	struct attributes attributes;
	struct error why = ERROR_INIT;
	struct shape shape, matrix;
	bool of_matrix;
	int x, from_front;

	if (!import_need_value(im, node, 0, 0, &x))
		return;
	shape = *import_shape(im, x);
	if (onnx_axis(axis, shape.rank, &from_front, &why) != PRONY_OK) {
		import_refuse(im, node, "%s", why.text);
		return;
	}
	of_matrix = is_softmax_of_matrix(im, &shape, from_front, &matrix);
	if (!of_matrix && node->outputs[0] == im->model->output &&
	    im->model->definitions[node->outputs[0]].users == 1 &&
	    is_over_classes(&shape, from_front)) {
		im->notes.softmax_left_out = true;
		import_set(im, node, 0, x);
		return;
	}
	if (logarithm) {
		import_refuse(im, node,
			      "the logarithm of a softmax is supported only as the output of the "
			      "network");
		return;
	}
	operator_default_attributes(OP_SOFTMAX, &attributes);
	attributes.axis = of_matrix ? 1 : from_front;
	if (of_matrix)
		x = import_reshaped(im, node, x, &matrix);
	if (x != VALUE_NONE)
		x = import_append(im, node, OP_SOFTMAX, &x, 1, &attributes);
	if (x != VALUE_NONE)
		x = import_reshaped(im, node, x, &shape);
	import_set(im, node, 0, x);
}

void import_identity(struct importer *im, const struct file_node *node)
{
	int x;

	if (import_need_value(im, node, 0, 0, &x))
		import_set(im, node, 0, x);
}
