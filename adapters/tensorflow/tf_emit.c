/* Appends operations to a TensorFlow graph, and counts MACs and products. */
#include "adapters/tensorflow/tf_emit.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 320
#define CONSTANT_MAX 64 /* maximum number of indices in one constant */

static const struct tf_output nothing;

enum prony_status tf_emit_end(const struct tf_emit *e, struct error *err)
{
	if (e->error.code == PRONY_OK)
		return PRONY_OK;
	return error_set(err, e->error.code, "%s", e->error.text);
}

struct tf_attribute tf_ints(const char *name, const int64_t *values, int count)
{
	struct tf_attribute a = {.name = name, .kind = TF_ATTRIBUTE_INTS, .count = count};

	for (int i = 0; i < count && i < TF_ATTRIBUTE_INTS_MAX; i++)
		a.ints[i] = values[i];
	return a;
}

struct tf_attribute tf_shape(const char *name, const struct shape *shape)
{
	struct tf_attribute a = tf_ints(name, shape->dims, shape->rank);

	a.kind = TF_ATTRIBUTE_SHAPE;
	return a;
}

static void set_attribute(const struct tf_api *api, struct tf_description *op,
			  const struct tf_attribute *a)
{
	switch (a->kind) {
	case TF_ATTRIBUTE_INT:
		api->TF_SetAttrInt(op, a->name, a->ints[0]);
		break;
	case TF_ATTRIBUTE_FLOAT:
		api->TF_SetAttrFloat(op, a->name, (float)a->number);
		break;
	case TF_ATTRIBUTE_BOOL:
		api->TF_SetAttrBool(op, a->name, a->count != 0);
		break;
	case TF_ATTRIBUTE_TYPE:
		api->TF_SetAttrType(op, a->name, a->count);
		break;
	case TF_ATTRIBUTE_TEXT:
		api->TF_SetAttrString(op, a->name, a->text, strlen(a->text));
		break;
	case TF_ATTRIBUTE_INTS:
		api->TF_SetAttrIntList(op, a->name, a->ints, a->count);
		break;
	case TF_ATTRIBUTE_SHAPE:
		api->TF_SetAttrShape(op, a->name, a->ints, a->count);
		break;
	case TF_ATTRIBUTE_END:
		break;
	}
}

/* Names consist of letters, digits and "_./-" and start with a letter, a digit or ".". */
static struct tf_description *begin(struct tf_emit *e, const char *type)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "p.%.255s.%d", e->scope ? e->scope : "", e->count++);
	for (char *c = name; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._", *c))
			*c = '_';
	return e->api->TF_NewOperation(e->graph, type, name);
}

static struct tf_output finish(struct tf_emit *e, struct tf_description *description,
			       const char *type)
{
	struct tf_operation *operation = e->api->TF_FinishOperation(description, e->api->status);
	char what[NAME_BYTES];

	snprintf(what, sizeof(what), "%s of %s", type, e->scope ? e->scope : "the step");
	if (tf_check(e->api, what, &e->error) != PRONY_OK)
		return nothing;
	return (struct tf_output){.operation = operation, .index = 0};
}

/* Counts the MACs of a product: each output element uses all weight elements except those of the
 * last axis. */
static void count_macs(struct tf_emit *e, const char *type, const struct tf_output *inputs,
		       struct tf_output y)
{
	bool depthwise = strcmp(type, "DepthwiseConv2dNative") == 0;
	bool matrices = strcmp(type, "BatchMatMulV2") == 0;
	int64_t each = 0;
	struct shape out, w;

	if (e->macs < 0 || (strcmp(type, "Conv2D") != 0 && strcmp(type, "MatMul") != 0 &&
			    strcmp(type, "BlockLSTM") != 0 && !depthwise && !matrices))
		return;
	out = tf_shape_of(e, y);
	w = tf_shape_of(e, inputs[strcmp(type, "BlockLSTM") == 0 ? 4 : 1]);
	if (strcmp(type, "BlockLSTM") == 0) /* i: time x batch x hidden; w: 4 gates for each */
		each = w.rank == 2 ? w.dims[0] * 4 : -1;
	else if (strcmp(type, "MatMul") == 0)
		each = w.rank == 2 && out.rank == 2 ? shape_elements(&w) / out.dims[1] : -1;
	else if (matrices)
		each = w.rank > 1 ? w.dims[w.rank - 2] : -1;
	else if (w.rank == 4)
		each = depthwise ? w.dims[0] * w.dims[1] : w.dims[0] * w.dims[1] * w.dims[2];
	e->macs = out.rank < 0 || each <= 0 ? -1 : e->macs + shape_elements(&out) * each;
}

static void count_product(struct tf_emit *e, const char *type, struct tf_output y)
{
	if (strstr(type, "Conv2") || strstr(type, "MatMul") || strstr(type, "BlockLSTM"))
		e->products[tf_type_of(e, y) == TF_TYPE_BFLOAT16]++;
}

struct tf_output tf_op_list(struct tf_emit *e, const char *type, const struct tf_output *list,
			    int list_count, const struct tf_output *inputs, int count,
			    const struct tf_attribute *attributes)
{
	struct tf_description *description;
	struct tf_output y;

	if (e->error.code != PRONY_OK)
		return nothing;
	description = begin(e, type);
	if (list)
		e->api->TF_AddInputList(description, list, list_count);
	for (int i = 0; i < count; i++)
		e->api->TF_AddInput(description, inputs[i]);
	if (e->after)
		e->api->TF_AddControlInput(description, e->after);
	for (const struct tf_attribute *a = attributes; a && a->kind != TF_ATTRIBUTE_END; a++)
		set_attribute(e->api, description, a);
	y = finish(e, description, type);
	if (e->error.code == PRONY_OK) {
		count_macs(e, type, inputs, y);
		count_product(e, type, y);
	}
	return y;
}

struct tf_output tf_op(struct tf_emit *e, const char *type, const struct tf_output *inputs,
		       int count, const struct tf_attribute *attributes)
{
	return tf_op_list(e, type, NULL, 0, inputs, count, attributes);
}

struct tf_operation *tf_group(struct tf_emit *e, struct tf_operation *const *after, int count)
{
	struct tf_description *description;

	if (e->error.code != PRONY_OK)
		return NULL;
	description = begin(e, "NoOp");
	for (int i = 0; i < count; i++)
		e->api->TF_AddControlInput(description, after[i]);
	return finish(e, description, "NoOp").operation;
}

struct tf_output tf_nth(struct tf_output output, int index)
{
	output.index = index;
	return output;
}

size_t tf_type_bytes(enum tf_type type)
{
	switch (type) {
	case TF_TYPE_BOOL:
		return 1;
	case TF_TYPE_BFLOAT16:
		return 2;
	case TF_TYPE_FLOAT:
	case TF_TYPE_INT32:
		return 4;
	case TF_TYPE_INT64:
		break;
	}
	return 8;
}

struct tf_tensor *tf_tensor_new(const struct tf_api *api, enum tf_type type,
				const struct shape *shape, struct error *err)
{
	size_t bytes = (size_t)shape_elements(shape) * tf_type_bytes(type);
	struct tf_tensor *tensor =
		api->TF_AllocateTensor((int)type, shape->dims, shape->rank, bytes);

	if (!tensor || !api->TF_TensorData(tensor)) {
		if (tensor)
			api->TF_DeleteTensor(tensor);
		error_set(err, PRONY_OUT_OF_MEMORY, "TensorFlow has no memory for %zu bytes",
			  bytes);
		return NULL;
	}
	return tensor;
}

struct tf_output tf_constant(struct tf_emit *e, enum tf_type type, const struct shape *shape,
			     const void *data)
{
	struct tf_description *description;
	struct tf_tensor *tensor;

	if (e->error.code != PRONY_OK)
		return nothing;
	tensor = tf_tensor_new(e->api, type, shape, &e->error);
	if (!tensor)
		return nothing;
	memcpy(e->api->TF_TensorData(tensor), data, e->api->TF_TensorByteSize(tensor));
	description = begin(e, "Const");
	e->api->TF_SetAttrType(description, "dtype", (int)type);
	e->api->TF_SetAttrTensor(description, "value", tensor, e->api->status);
	e->api->TF_DeleteTensor(tensor);
	return finish(e, description, "Const");
}

struct tf_output tf_numbers(struct tf_emit *e, struct tf_output like, const struct shape *shape,
			    const float *values)
{
	return tf_cast(e, tf_constant(e, TF_TYPE_FLOAT, shape, values), tf_type_of(e, like));
}

struct tf_output tf_number(struct tf_emit *e, struct tf_output like, double value)
{
	const struct shape scalar = {.rank = 0};
	float number = (float)value;

	return tf_numbers(e, like, &scalar, &number);
}

struct tf_output tf_indices(struct tf_emit *e, const int64_t *values, int count)
{
	const struct shape shape = {.rank = 1, .dims = {count}};
	int32_t numbers[CONSTANT_MAX] = {0};

	for (int i = 0; i < count && i < CONSTANT_MAX; i++)
		numbers[i] = (int32_t)values[i];
	return tf_constant(e, TF_TYPE_INT32, &shape, numbers);
}

struct tf_output tf_index(struct tf_emit *e, int64_t value)
{
	const struct shape scalar = {.rank = 0};
	int32_t number = (int32_t)value;

	return tf_constant(e, TF_TYPE_INT32, &scalar, &number);
}

struct tf_output tf_dims(struct tf_emit *e, const struct shape *shape)
{
	return tf_indices(e, shape->dims, shape->rank);
}

struct tf_output tf_cast(struct tf_emit *e, struct tf_output x, enum tf_type type)
{
	if (tf_type_of(e, x) == type)
		return x;
	return tf_op(e, "Cast", TF_IN(x), TF_WITH(TF_TYPE("DstT", type)));
}

struct tf_output tf_reshape(struct tf_emit *e, struct tf_output x, const struct shape *shape)
{
	struct shape have = tf_shape_of(e, x);

	return shape_equal(&have, shape) ? x : tf_binary(e, "Reshape", x, tf_dims(e, shape));
}

struct tf_output tf_transpose(struct tf_emit *e, struct tf_output x, const int64_t *axes, int rank)
{
	return tf_binary(e, "Transpose", x, tf_indices(e, axes, rank));
}

struct tf_output tf_unary(struct tf_emit *e, const char *type, struct tf_output x)
{
	return tf_op(e, type, &x, 1, NULL);
}

struct tf_output tf_binary(struct tf_emit *e, const char *type, struct tf_output a,
			   struct tf_output b)
{
	return tf_op(e, type, TF_IN(a, b), NULL);
}

struct tf_output tf_scale(struct tf_emit *e, struct tf_output x, double factor)
{
	return tf_binary(e, "Mul", x, tf_number(e, x, factor));
}

struct tf_output tf_slice(struct tf_emit *e, struct tf_output x, const int64_t *begins,
			  const struct shape *size)
{
	return tf_op(e, "Slice", TF_IN(x, tf_indices(e, begins, size->rank), tf_dims(e, size)),
		     NULL);
}

enum tf_type tf_type_of(struct tf_emit *e, struct tf_output x)
{
	return e->error.code == PRONY_OK ? (enum tf_type)e->api->TF_OperationOutputType(x)
					 : TF_TYPE_FLOAT;
}

struct shape tf_shape_of(struct tf_emit *e, struct tf_output x)
{
	struct shape shape = {.rank = -1};

	if (e->error.code != PRONY_OK)
		return shape;
	int rank = e->api->TF_GraphGetTensorNumDims(e->graph, x, e->api->status);
	if (tf_check(e->api, "get a rank", &e->error) != PRONY_OK || rank > TENSOR_MAX_RANK)
		return shape;
	shape.rank = rank;
	if (rank > 0)
		e->api->TF_GraphGetTensorShape(e->graph, x, shape.dims, rank, e->api->status);
	tf_check(e->api, "get a shape", &e->error);
	return shape;
}
