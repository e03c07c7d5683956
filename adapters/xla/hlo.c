/* Writes StableHLO: values, elementwise operations, shapes and loops. */
#include "adapters/xla/hlo.h"

#include <assert.h>
#include <string.h>

#include "adapters/xla/hlo_internal.h"

static const char *const type_words[] = {
	[HLO_F32] = "f32",  [HLO_BF16] = "bf16", [HLO_I32] = "i32",
	[HLO_U32] = "ui32", [HLO_U64] = "ui64",	 [HLO_BOOL] = "i1",
};

const struct shape hlo_scalar = {.rank = 0};

void hlo_init(struct hlo_text *h)
{
	*h = (struct hlo_text){.repeat = 1};
	strbuf_init(&h->text, 0);
}

void hlo_release(struct hlo_text *h)
{
	strbuf_release(&h->text);
}

struct hlo hlo_name(struct hlo_text *h, enum hlo_type type, const struct shape *shape)
{
	return (struct hlo){.id = h->next++, .type = type, .shape = *shape};
}

void hlo_write_type(struct strbuf *out, enum hlo_type type, const struct shape *shape)
{
	strbuf_puts(out, "tensor<");
	for (int i = 0; i < shape->rank; i++)
		strbuf_printf(out, "%lldx", (long long)shape->dims[i]);
	strbuf_printf(out, "%s>", type_words[type]);
}

static void write_type_of(struct hlo_text *h, struct hlo x)
{
	hlo_write_type(&h->text, x.type, &x.shape);
}

static void write_numbers(struct hlo_text *h, const char *before, const int64_t *numbers, int count)
{
	strbuf_printf(&h->text, "%s[", before);
	for (int i = 0; i < count; i++)
		strbuf_printf(&h->text, "%s%lld", i > 0 ? ", " : "", (long long)numbers[i]);
	strbuf_puts(&h->text, "]");
}

static void write_axes(struct hlo_text *h, const char *before, const int *axes, int count)
{
	int64_t numbers[TENSOR_MAX_RANK];

	for (int i = 0; i < count; i++)
		numbers[i] = axes[i];
	write_numbers(h, before, numbers, count);
}

/* "%v1, %v2" */
static void write_operands(struct hlo_text *h, const struct hlo *operands, int count)
{
	for (int i = 0; i < count; i++)
		strbuf_printf(&h->text, "%s%%v%d", i > 0 ? ", " : "", operands[i].id);
}

struct hlo hlo_begin(struct hlo_text *h, const char *op, enum hlo_type type,
		     const struct shape *shape)
{
	struct hlo result = hlo_name(h, type, shape);

	strbuf_printf(&h->text, "  %%v%d = %s%s", result.id, strchr(op, '.') ? "" : "stablehlo.",
		      op);
	return result;
}

/* Writes hlo_begin, followed by " %v1, %v2". */
static struct hlo begin_of(struct hlo_text *h, const char *op, const struct hlo *operands,
			   int count, enum hlo_type type, const struct shape *shape)
{
	struct hlo result = hlo_begin(h, op, type, shape);

	strbuf_puts(&h->text, " ");
	write_operands(h, operands, count);
	return result;
}

static void write_types(struct hlo_text *h, const struct hlo *values, int count)
{
	for (int i = 0; i < count; i++) {
		strbuf_puts(&h->text, i > 0 ? ", " : "");
		write_type_of(h, values[i]);
	}
}

struct hlo hlo_end(struct hlo_text *h, const struct hlo *operands, int count, struct hlo result)
{
	strbuf_puts(&h->text, " : (");
	write_types(h, operands, count);
	strbuf_puts(&h->text, ") -> ");
	write_type_of(h, result);
	strbuf_puts(&h->text, "\n");
	return result;
}

/* Writes " : A", the end of an operation whose operands have the type of its result. */
static struct hlo end_alike(struct hlo_text *h, struct hlo result)
{
	strbuf_puts(&h->text, " : ");
	write_type_of(h, result);
	strbuf_puts(&h->text, "\n");
	return result;
}

struct hlo hlo_unary(struct hlo_text *h, const char *op, struct hlo x)
{
	return end_alike(h, begin_of(h, op, &x, 1, x.type, &x.shape));
}

struct hlo hlo_erf(struct hlo_text *h, struct hlo x)
{
	struct hlo y = begin_of(h, "chlo.erf", &x, 1, x.type, &x.shape);

	strbuf_puts(&h->text, " : ");
	write_type_of(h, x);
	strbuf_puts(&h->text, " -> ");
	write_type_of(h, y);
	strbuf_puts(&h->text, "\n");
	return y;
}

struct hlo hlo_binary(struct hlo_text *h, const char *op, struct hlo a, struct hlo b)
{
	const struct hlo operands[] = {a, b};

	assert(a.type == b.type && shape_equal(&a.shape, &b.shape));
	return end_alike(h, begin_of(h, op, operands, 2, a.type, &a.shape));
}

struct hlo hlo_with(struct hlo_text *h, const char *op, struct hlo a, double b)
{
	return hlo_binary(h, op, a, hlo_number(h, a, b));
}

static struct hlo constant(struct hlo_text *h, enum hlo_type type, const struct shape *shape,
			   const char *text)
{
	struct hlo y = hlo_begin(h, "constant", type, shape);

	strbuf_printf(&h->text, " dense<%s>", text);
	return end_alike(h, y);
}

struct hlo hlo_number(struct hlo_text *h, struct hlo like, double number)
{
	char text[40];

	if (like.type == HLO_F32 || like.type == HLO_BF16)
		snprintf(text, sizeof(text), "%.9e", number);
	else
		snprintf(text, sizeof(text), "%.0f", number);
	return constant(h, like.type, &like.shape, text);
}

struct hlo hlo_minus_infinity(struct hlo_text *h, enum hlo_type type)
{
	return constant(h, type, &hlo_scalar, type == HLO_BF16 ? "0xFF80" : "0xFF800000");
}

struct hlo hlo_vector(struct hlo_text *h, const double *numbers, int64_t count)
{
	const struct shape shape = {.rank = 1, .dims = {count}};
	struct hlo y = hlo_begin(h, "constant", HLO_F32, &shape);

	strbuf_puts(&h->text, " dense<[");
	for (int64_t i = 0; i < count; i++)
		strbuf_printf(&h->text, "%s%.9e", i > 0 ? ", " : "", numbers[i]);
	strbuf_puts(&h->text, "]>");
	return end_alike(h, y);
}

struct hlo hlo_compare(struct hlo_text *h, const char *direction, struct hlo a, struct hlo b)
{
	struct hlo y = hlo_begin(h, "compare", HLO_BOOL, &a.shape);
	const char *kind = a.type == HLO_I32 ? "SIGNED" : a.type == HLO_U32 ? "UNSIGNED" : "FLOAT";

	strbuf_printf(&h->text, " %s, %%v%d, %%v%d, %s", direction, a.id, b.id, kind);
	return hlo_end(h, (const struct hlo[]){a, b}, 2, y);
}

struct hlo hlo_select(struct hlo_text *h, struct hlo condition, struct hlo yes, struct hlo no)
{
	const struct hlo operands[] = {condition, yes, no};
	struct hlo y = begin_of(h, "select", operands, 3, yes.type, &yes.shape);

	strbuf_puts(&h->text, " : ");
	write_types(h, operands, 2);
	strbuf_puts(&h->text, "\n");
	return y;
}

struct hlo hlo_convert(struct hlo_text *h, struct hlo x, enum hlo_type type)
{
	if (x.type == type)
		return x;
	return hlo_end(h, &x, 1, begin_of(h, "convert", &x, 1, type, &x.shape));
}

struct hlo hlo_iota(struct hlo_text *h, enum hlo_type type, const struct shape *shape, int axis)
{
	struct hlo y = hlo_begin(h, "iota", type, shape);

	strbuf_printf(&h->text, " dim = %d", axis);
	return end_alike(h, y);
}

struct hlo hlo_reshape(struct hlo_text *h, struct hlo x, const struct shape *shape)
{
	if (shape_equal(&x.shape, shape))
		return x;
	assert(shape_elements(&x.shape) == shape_elements(shape));
	return hlo_end(h, &x, 1, begin_of(h, "reshape", &x, 1, x.type, shape));
}

struct hlo hlo_transpose(struct hlo_text *h, struct hlo x, const int *order)
{
	struct shape shape = {.rank = x.shape.rank};
	bool turned = false;
	struct hlo y;

	for (int i = 0; i < shape.rank; i++) {
		shape.dims[i] = x.shape.dims[order[i]];
		turned |= order[i] != i;
	}
	if (!turned)
		return x;
	y = begin_of(h, "transpose", &x, 1, x.type, &shape);
	write_axes(h, ", dims = ", order, shape.rank);
	return hlo_end(h, &x, 1, y);
}

struct hlo hlo_broadcast(struct hlo_text *h, struct hlo x, const int *to, const struct shape *shape)
{
	struct hlo y;

	if (shape_equal(&x.shape, shape))
		return x;
	y = begin_of(h, "broadcast_in_dim", &x, 1, x.type, shape);
	write_axes(h, ", dims = ", to, x.shape.rank);
	return hlo_end(h, &x, 1, y);
}

struct hlo hlo_slice(struct hlo_text *h, struct hlo x, int axis, int64_t start, int64_t limit,
		     int64_t step)
{
	struct shape shape = x.shape;
	struct hlo y;

	shape.dims[axis] = (limit - start - 1) / step + 1;
	if (shape_equal(&x.shape, &shape))
		return x;
	y = begin_of(h, "slice", &x, 1, x.type, &shape);
	for (int i = 0; i < shape.rank; i++)
		strbuf_printf(&h->text, "%s%lld:%lld:%lld", i > 0 ? ", " : " [",
			      (long long)(i == axis ? start : 0),
			      (long long)(i == axis ? limit : x.shape.dims[i]),
			      (long long)(i == axis ? step : 1));
	strbuf_puts(&h->text, "]");
	return hlo_end(h, &x, 1, y);
}

struct hlo hlo_pad(struct hlo_text *h, struct hlo x, double value, const int64_t *low,
		   const int64_t *high, const int64_t *interior)
{
	const struct hlo scalar = {.type = x.type, .shape = hlo_scalar};
	const struct hlo operands[] = {x, hlo_number(h, scalar, value)};
	struct shape shape = x.shape;
	struct hlo y;

	for (int i = 0; i < shape.rank; i++)
		shape.dims[i] += low[i] + high[i] + (shape.dims[i] - 1) * interior[i];
	y = begin_of(h, "pad", operands, 2, x.type, &shape);
	write_numbers(h, ", low = ", low, shape.rank);
	write_numbers(h, ", high = ", high, shape.rank);
	write_numbers(h, ", interior = ", interior, shape.rank);
	return hlo_end(h, operands, 2, y);
}

struct hlo hlo_concatenate(struct hlo_text *h, const struct hlo *parts, int count, int axis)
{
	struct shape shape = parts[0].shape;
	struct hlo y;

	for (int i = 1; i < count; i++)
		shape.dims[axis] += parts[i].shape.dims[axis];
	y = begin_of(h, "concatenate", parts, count, parts[0].type, &shape);
	strbuf_printf(&h->text, ", dim = %d", axis);
	return hlo_end(h, parts, count, y);
}

struct hlo hlo_reverse(struct hlo_text *h, struct hlo x, const int *axes, int count)
{
	struct hlo y = begin_of(h, "reverse", &x, 1, x.type, &x.shape);

	strbuf_puts(&h->text, ", dims = [");
	for (int i = 0; i < count; i++)
		strbuf_printf(&h->text, "%s%d", i > 0 ? ", " : "", axes[i]);
	strbuf_puts(&h->text, "]");
	return end_alike(h, y);
}

struct hlo hlo_entry(struct hlo_text *h, struct hlo x, struct hlo index)
{
	struct shape cut = x.shape, shape = {.rank = x.shape.rank - 1};
	struct hlo operands[TENSOR_MAX_RANK + 1] = {x, index};
	struct hlo zero = hlo_number(h, index, 0), y;

	cut.dims[0] = 1;
	memcpy(shape.dims, &x.shape.dims[1], (size_t)shape.rank * sizeof(shape.dims[0]));
	for (int i = 1; i < cut.rank; i++)
		operands[i + 1] = zero;
	y = begin_of(h, "dynamic_slice", operands, cut.rank + 1, x.type, &cut);
	write_numbers(h, ", sizes = ", cut.dims, cut.rank);
	return hlo_reshape(h, hlo_end(h, operands, cut.rank + 1, y), &shape);
}

struct hlo hlo_with_entry(struct hlo_text *h, struct hlo x, struct hlo entry, struct hlo index)
{
	struct hlo operands[TENSOR_MAX_RANK + 2] = {x};
	struct hlo zero = hlo_number(h, index, 0);
	struct shape cut = x.shape;
	int count = x.shape.rank + 2;

	cut.dims[0] = 1;
	operands[1] = hlo_reshape(h, entry, &cut);
	operands[2] = index;
	for (int i = 3; i < count; i++)
		operands[i] = zero;
	return hlo_end(h, operands, count,
		       begin_of(h, "dynamic_update_slice", operands, count, x.type, &x.shape));
}

struct hlo hlo_random(struct hlo_text *h, struct hlo *state, const struct shape *shape)
{
	const struct hlo results[] = {hlo_name(h, state->type, &state->shape),
				      hlo_name(h, HLO_U32, shape)};

	strbuf_puts(&h->text, "  ");
	write_operands(h, results, 2);
	strbuf_printf(&h->text, " = stablehlo.rng_bit_generator %%v%d, algorithm = DEFAULT : (",
		      state->id);
	write_type_of(h, *state);
	strbuf_puts(&h->text, ") -> (");
	write_types(h, results, 2);
	strbuf_puts(&h->text, ")\n");
	*state = results[0];
	return results[1];
}

void hlo_loop_begin(struct hlo_text *h, struct hlo_loop *loop)
{
	struct hlo zero = constant(h, HLO_I32, &hlo_scalar, "0"), last, more;
	struct hlo index_after = hlo_name(h, HLO_I32, &hlo_scalar);

	assert(loop->count <= HLO_CARRIED && h->repeat == 1);
	loop->index = hlo_name(h, HLO_I32, &hlo_scalar);
	strbuf_printf(&h->text, "  %%v%d", index_after.id);
	for (int i = 0; i < loop->count; i++) {
		loop->after[i] = hlo_name(h, loop->carried[i].type, &loop->carried[i].shape);
		loop->inside[i] = hlo_name(h, loop->carried[i].type, &loop->carried[i].shape);
		strbuf_printf(&h->text, ", %%v%d", loop->after[i].id);
	}
	strbuf_printf(&h->text, " = stablehlo.while(%%v%d = %%v%d", loop->index.id, zero.id);
	for (int i = 0; i < loop->count; i++)
		strbuf_printf(&h->text, ", %%v%d = %%v%d", loop->inside[i].id, loop->carried[i].id);
	strbuf_puts(&h->text, ") : tensor<i32>, ");
	write_types(h, loop->carried, loop->count);
	strbuf_puts(&h->text, "\n  cond {\n");
	last = hlo_number(h, loop->index, (double)loop->trips);
	more = hlo_compare(h, "LT", loop->index, last);
	strbuf_printf(&h->text, "  stablehlo.return %%v%d : tensor<i1>\n  } do {\n", more.id);
	h->repeat = loop->trips;
}

void hlo_loop_end(struct hlo_text *h, struct hlo_loop *loop, const struct hlo *next)
{
	struct hlo index = hlo_with(h, "add", loop->index, 1);

	strbuf_printf(&h->text, "  stablehlo.return %%v%d, ", index.id);
	write_operands(h, next, loop->count);
	strbuf_puts(&h->text, " : tensor<i32>, ");
	write_types(h, next, loop->count);
	strbuf_puts(&h->text, "\n  }\n");
	h->repeat = 1;
}
