/* Evaluates operators on constants: arithmetic, casts and reductions. */
#include "onnx/fold_internal.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	TYPE_FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
	TYPE_INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
	TYPE_BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL,
};

static double as_real(const struct constant *c, int64_t i)
{
	return c->is_float ? (double)c->floats[i] : (double)c->ints[i];
}

/* Division of whole numbers truncates, as in C; INT64_MIN / -1 overflows. */
static bool whole_binary(const char *op, int64_t a, int64_t b, int64_t *out)
{
	if (strcmp(op, "Add") == 0)
		return !__builtin_add_overflow(a, b, out);
	if (strcmp(op, "Sub") == 0)
		return !__builtin_sub_overflow(a, b, out);
	if (strcmp(op, "Mul") == 0)
		return !__builtin_mul_overflow(a, b, out);
	if (strcmp(op, "Div") == 0 || strcmp(op, "Mod") == 0) {
		if (b == 0 || (a == INT64_MIN && b == -1))
			return false;
		if (strcmp(op, "Div") == 0)
			*out = a / b;
		else /* ONNX: the sign of the divisor */
			*out = a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b;
		return true;
	}
	if (strcmp(op, "Max") == 0)
		*out = a > b ? a : b;
	else if (strcmp(op, "Min") == 0)
		*out = a < b ? a : b;
	else if (strcmp(op, "And") == 0)
		*out = a && b;
	else if (strcmp(op, "Or") == 0)
		*out = a || b;
	else if (strcmp(op, "Equal") == 0)
		*out = a == b;
	else if (strcmp(op, "Greater") == 0)
		*out = a > b;
	else if (strcmp(op, "Less") == 0)
		*out = a < b;
	else if (strcmp(op, "GreaterOrEqual") == 0)
		*out = a >= b;
	else if (strcmp(op, "LessOrEqual") == 0)
		*out = a <= b;
	else
		return false;
	return true;
}

static bool real_binary(const char *op, double a, double b, double *out)
{
	if (strcmp(op, "Add") == 0)
		*out = a + b;
	else if (strcmp(op, "Sub") == 0)
		*out = a - b;
	else if (strcmp(op, "Mul") == 0)
		*out = a * b;
	else if (strcmp(op, "Div") == 0)
		*out = a / b;
	else if (strcmp(op, "Pow") == 0)
		*out = pow(a, b);
	else if (strcmp(op, "Max") == 0)
		*out = a > b ? a : b;
	else if (strcmp(op, "Min") == 0)
		*out = a < b ? a : b;
	else if (strcmp(op, "Equal") == 0)
		*out = a == b;
	else if (strcmp(op, "Greater") == 0)
		*out = a > b;
	else if (strcmp(op, "Less") == 0)
		*out = a < b;
	else if (strcmp(op, "GreaterOrEqual") == 0)
		*out = a >= b;
	else if (strcmp(op, "LessOrEqual") == 0)
		*out = a <= b;
	else
		return false;
	return true;
}

static bool is_comparison(const char *op)
{
	static const char *const names[] = {"Equal",	   "Greater", "Less", "GreaterOrEqual",
					    "LessOrEqual", "And",     "Or"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(op, names[i]) == 0)
			return true;
	}
	return false;
}

/* Finds the shape that two shapes broadcast to, and the step of each along every axis: 0 if it is
 * repeated. */
static enum prony_status broadcast(struct fold *fold, const struct shape *a, const struct shape *b,
				   struct shape *out)
{
	out->rank = a->rank > b->rank ? a->rank : b->rank;
	for (int i = 1; i <= out->rank; i++) {
		int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
		int64_t y = i <= b->rank ? b->dims[b->rank - i] : 1;

		if (x != y && x != 1 && y != 1)
			return error_set(
				fold->err, PRONY_BAD_INPUT,
				"the shapes of its constants cannot be broadcast to each other");
		out->dims[out->rank - i] = x == 1 ? y : x;
	}
	return PRONY_OK;
}

/* Index of the element of `c` for element `at` of the broadcast shape. */
static int64_t broadcast_index(const struct constant *c, const struct shape *shape, int64_t at)
{
	int64_t index = 0, step = 1;

	for (int i = 1; i <= shape->rank; i++) {
		int64_t size = shape->dims[shape->rank - i], place = at % size;

		at /= size;
		if (i > c->shape.rank)
			continue;
		if (c->shape.dims[c->shape.rank - i] != 1)
			index += place * step;
		step *= c->shape.dims[c->shape.rank - i];
	}
	return index;
}

static enum prony_status fold_binary(struct fold *fold)
{
	const char *op = fold->node->op_type;
	const struct constant *a = fold->inputs[0], *b = fold->inputs[1];
	bool whole = !a->is_float && !b->is_float;
	struct shape shape;
	int64_t *ints = NULL;
	float *floats = NULL;
	enum prony_status status = broadcast(fold, &a->shape, &b->shape, &shape);

	if (status == PRONY_OK)
		status = fold_output(fold, 0, is_comparison(op) ? TYPE_BOOL : a->type, &shape,
				     &ints, &floats);
	for (int64_t i = 0; status == PRONY_OK && i < fold->outputs[0].count; i++) {
		int64_t x = broadcast_index(a, &shape, i), y = broadcast_index(b, &shape, i), n = 0;
		double real = 0;
		bool good = whole ? whole_binary(op, a->ints[x], b->ints[y], &n)
				  : real_binary(op, as_real(a, x), as_real(b, y), &real);

		if (!good)
			return error_set(fold->err, PRONY_BAD_INPUT,
					 "it cannot be computed from its constants: overflow, "
					 "division by zero or unsupported type");
		if (floats)
			floats[i] = (float)real;
		else
			ints[i] = whole ? n : (int64_t)(real != 0);
	}
	return status;
}

static bool real_unary(const char *op, double a, double *out)
{
	if (strcmp(op, "Neg") == 0)
		*out = -a;
	else if (strcmp(op, "Abs") == 0)
		*out = fabs(a);
	else if (strcmp(op, "Sqrt") == 0)
		*out = sqrt(a);
	else if (strcmp(op, "Reciprocal") == 0)
		*out = 1 / a;
	else if (strcmp(op, "Exp") == 0)
		*out = exp(a);
	else if (strcmp(op, "Log") == 0)
		*out = log(a);
	else if (strcmp(op, "Sin") == 0)
		*out = sin(a);
	else if (strcmp(op, "Cos") == 0)
		*out = cos(a);
	else if (strcmp(op, "Floor") == 0)
		*out = floor(a);
	else if (strcmp(op, "Ceil") == 0)
		*out = ceil(a);
	else
		return false;
	return true;
}

static bool whole_unary(const char *op, int64_t a, int64_t *out)
{
	if (strcmp(op, "Not") == 0)
		*out = !a;
	else if (a == INT64_MIN)
		return false;
	else if (strcmp(op, "Neg") == 0)
		*out = -a;
	else if (strcmp(op, "Abs") == 0)
		*out = a < 0 ? -a : a;
	else
		return false;
	return true;
}

static enum prony_status fold_unary(struct fold *fold)
{
	const struct constant *a = fold->inputs[0];
	int64_t *ints = NULL;
	float *floats = NULL;
	enum prony_status status = fold_output(fold, 0, a->type, &a->shape, &ints, &floats);

	for (int64_t i = 0; status == PRONY_OK && i < a->count; i++) {
		double real = 0;
		bool good = floats ? real_unary(fold->node->op_type, as_real(a, i), &real)
				   : whole_unary(fold->node->op_type, a->ints[i], &ints[i]);

		if (!good)
			return error_set(fold->err, PRONY_BAD_INPUT,
					 "constants of this type are not supported");
		if (floats)
			floats[i] = (float)real;
	}
	return status;
}

/* Rounds a real number to a whole one. One that does not fit is an error; the conversion in C would
 * be undefined. */
static bool to_whole(double real, int64_t *out)
{
	if (!(real > -0x1p63 && real < 0x1p63))
		return false;
	*out = (int64_t)real;
	return true;
}

static enum prony_status cast_to(struct fold *fold, int32_t type)
{
	const struct constant *a = fold->inputs[0];
	int64_t *ints = NULL;
	float *floats = NULL;
	enum prony_status status;

	if (constant_is_float_type(type) == a->is_float && type != TYPE_BOOL) {
		fold->outputs[0] = *a;
		fold->outputs[0].type = type;
		return PRONY_OK;
	}
	status = fold_output(fold, 0, type, &a->shape, &ints, &floats);
	for (int64_t i = 0; status == PRONY_OK && i < a->count; i++) {
		if (floats)
			floats[i] = (float)a->ints[i];
		else if (type == TYPE_BOOL)
			ints[i] = as_real(a, i) != 0;
		else if (!to_whole(as_real(a, i), &ints[i]))
			return error_set(fold->err, PRONY_BAD_INPUT,
					 "a constant cannot be converted to an integer");
	}
	return status;
}

static enum prony_status fold_cast(struct fold *fold)
{
	int64_t type = onnx_int(fold->node, "to", 0);

	if (strcmp(fold->node->op_type, "CastLike") == 0) {
		if (fold->input_count < 2 || fold->inputs[1] == NULL)
			return error_set(fold->err, PRONY_BAD_INPUT,
					 "its input that gives the type is missing");
		type = fold->inputs[1]->type;
	}
	if (type < TYPE_FLOAT || type > ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16 ||
	    type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
		return error_set(fold->err, PRONY_BAD_INPUT,
				 "it casts to type %lld, which is not a number", (long long)type);
	return cast_to(fold, (int32_t)type);
}

static enum prony_status fold_where(struct fold *fold)
{
	const struct constant *which = fold->inputs[0], *a = fold->inputs[1], *b;
	struct shape some, shape;
	int64_t *ints = NULL;
	float *floats = NULL;
	enum prony_status status;

	b = fold->input_count > 2 ? fold->inputs[2] : NULL;
	if (b == NULL || a->is_float != b->is_float || which->is_float)
		return error_set(fold->err, PRONY_BAD_INPUT,
				 "constants of this type are not supported");
	status = broadcast(fold, &a->shape, &b->shape, &some);
	if (status == PRONY_OK)
		status = broadcast(fold, &which->shape, &some, &shape);
	if (status == PRONY_OK)
		status = fold_output(fold, 0, a->type, &shape, &ints, &floats);
	for (int64_t i = 0; status == PRONY_OK && i < fold->outputs[0].count; i++) {
		const struct constant *from =
			which->ints[broadcast_index(which, &shape, i)] ? a : b;

		fold_copy(from, broadcast_index(from, &shape, i), &fold->outputs[0], i);
	}
	return status;
}

/* Sum or product of all elements. Exporters count elements this way. */
static enum prony_status fold_reduce(struct fold *fold)
{
	const struct constant *a = fold->inputs[0];
	bool product = strcmp(fold->node->op_type, "ReduceProd") == 0;
	struct shape shape = {.rank = onnx_int(fold->node, "keepdims", 1) ? 1 : 0, .dims = {1}};
	int64_t *ints = NULL;
	float *floats = NULL;
	enum prony_status status;

	if (a->is_float || a->shape.rank != 1)
		return error_set(fold->err, PRONY_BAD_INPUT,
				 "only constant lists of integers are supported");
	status = fold_output(fold, 0, a->type, &shape, &ints, &floats);
	if (status != PRONY_OK)
		return status;
	ints[0] = product;
	for (int64_t i = 0; i < a->count; i++) {
		if (product ? __builtin_mul_overflow(ints[0], a->ints[i], &ints[0])
			    : __builtin_add_overflow(ints[0], a->ints[i], &ints[0]))
			return error_set(fold->err, PRONY_BAD_INPUT, "its result overflows");
	}
	return PRONY_OK;
}

static enum prony_status fold_identity(struct fold *fold)
{
	fold->outputs[0] = *fold->inputs[0];
	return PRONY_OK;
}

static enum prony_status fold_size(struct fold *fold)
{
	struct shape scalar = {.rank = 0};
	int64_t *ints = NULL;
	float *floats = NULL;
	enum prony_status status = fold_output(fold, 0, TYPE_INT64, &scalar, &ints, &floats);

	if (status == PRONY_OK)
		ints[0] = fold->inputs[0]->count;
	return status;
}

struct fold_row {
	const char *op;
	size_t min_inputs, max_inputs; /* the first min_inputs must exist */
	enum prony_status (*fold)(struct fold *fold);
};

static const struct fold_row rows[] = {
	{"Abs", 1, 1, fold_unary},
	{"Add", 2, 2, fold_binary},
	{"And", 2, 2, fold_binary},
	{"Cast", 1, 1, fold_cast},
	{"CastLike", 2, 2, fold_cast},
	{"Ceil", 1, 1, fold_unary},
	{"Concat", 1, SIZE_MAX, fold_concat},
	{"ConstantOfShape", 1, 1, fold_fill},
	{"Cos", 1, 1, fold_unary},
	{"CumSum", 2, 2, fold_cumulate},
	{"Div", 2, 2, fold_binary},
	{"Equal", 2, 2, fold_binary},
	{"Exp", 1, 1, fold_unary},
	{"Expand", 2, 2, fold_expand},
	{"Flatten", 1, 1, fold_reshape},
	{"Floor", 1, 1, fold_unary},
	{"Gather", 2, 2, fold_gather},
	{"GatherElements", 2, 2, fold_gather_elements},
	{"GatherND", 2, 2, fold_gather_nd},
	{"Greater", 2, 2, fold_binary},
	{"GreaterOrEqual", 2, 2, fold_binary},
	{"Identity", 1, 1, fold_identity},
	{"Less", 2, 2, fold_binary},
	{"LessOrEqual", 2, 2, fold_binary},
	{"Log", 1, 1, fold_unary},
	{"Max", 2, 2, fold_binary},
	{"Min", 2, 2, fold_binary},
	{"Mod", 2, 2, fold_binary},
	{"Mul", 2, 2, fold_binary},
	{"Neg", 1, 1, fold_unary},
	{"Not", 1, 1, fold_unary},
	{"Or", 2, 2, fold_binary},
	{"Pow", 2, 2, fold_binary},
	{"Range", 3, 3, fold_range},
	{"Reciprocal", 1, 1, fold_unary},
	{"ReduceProd", 1, 2, fold_reduce},
	{"ReduceSum", 1, 2, fold_reduce},
	{"Reshape", 2, 2, fold_reshape},
	{"Sin", 1, 1, fold_unary},
	{"Size", 1, 1, fold_size},
	{"Slice", 3, 5, fold_slice},
	{"Split", 1, 2, fold_split},
	{"Sqrt", 1, 1, fold_unary},
	{"Squeeze", 1, 2, fold_reshape},
	{"Sub", 2, 2, fold_binary},
	{"Tile", 2, 2, fold_tile},
	{"Transpose", 1, 1, fold_transpose},
	{"Trilu", 1, 2, fold_triangle},
	{"Unsqueeze", 2, 2, fold_reshape},
	{"Where", 3, 3, fold_where},
};

static const struct fold_row *find_row(const char *op)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(op, rows[i].op) == 0)
			return &rows[i];
	}
	return NULL;
}

bool onnx_can_fold(const char *op)
{
	return find_row(op) != NULL;
}

enum prony_status onnx_fold(struct fold *fold)
{
	const struct fold_row *row = find_row(fold->node->op_type);

	if (fold->input_count < row->min_inputs || fold->input_count > row->max_inputs ||
	    fold->output_count < 1)
		return error_set(fold->err, PRONY_BAD_INPUT,
				 "wrong number of inputs (%zu) or outputs (%zu)", fold->input_count,
				 fold->output_count);
	for (size_t i = 0; i < row->min_inputs; i++) {
		if (fold->inputs[i] == NULL)
			return error_set(fold->err, PRONY_BAD_INPUT, "input %zu is missing", i);
	}
	return row->fold(fold);
}
