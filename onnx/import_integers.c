/*
 * Integer inputs. Exporters compute masks from them: Cast, Unsqueeze, Equal, Where, (1 - mask) * c.
 * Such nodes are evaluated for each integer that the input may have. When a node needs the result
 * as real numbers, it becomes a Gather of a table of these numbers.
 */
#include "onnx/import_internal.h"
#include "onnx/ports_internal.h"

#include <string.h>

#define TYPE_INT64 ONNX__TENSOR_PROTO__DATA_TYPE__INT64
#define TYPE_BOOL ONNX__TENSOR_PROTO__DATA_TYPE__BOOL

/* The most elements that all lookups of a file may have. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define TABULATED_MAX (INT64_C(1) << 20)
#else
#define TABULATED_MAX (INT64_C(1) << 28)
#endif

/* What an operator does to each element of its operands. */
enum motion { MOVES, COMPUTES, OTHER };

static enum motion motion_of(const char *op)
{
	static const char *const moves[] = {"Concat",	      "Expand",	  "Flatten",  "Gather",
					    "GatherElements", "GatherND", "Identity", "Reshape",
					    "Slice",	      "Split",	  "Squeeze",  "Tile",
					    "Transpose",      "Unsqueeze"};
	static const char *const computes[] = {
		"Abs",	"Add",	       "And", "Cast",  "Ceil",	  "Cos",
		"Div",	"Equal",       "Exp", "Floor", "Greater", "GreaterOrEqual",
		"Less", "LessOrEqual", "Log", "Max",   "Min",	  "Mod",
		"Mul",	"Neg",	       "Not", "Or",    "Pow",	  "Reciprocal",
		"Sin",	"Sqrt",	       "Sub", "Where"};

	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++)
		if (strcmp(op, moves[i]) == 0)
			return MOVES;
	for (size_t i = 0; i < sizeof(computes) / sizeof(*computes); i++)
		if (strcmp(op, computes[i]) == 0)
			return COMPUTES;
	return OTHER;
}

/* False, and a refusal, if the file's lookups have too many elements. */
static bool take_room(struct importer *im, const struct file_node *node, int64_t count,
		      int64_t rows)
{
	if (count <= TABULATED_MAX / rows && im->tabulated + count * rows <= TABULATED_MAX) {
		im->tabulated += count * rows;
		return true;
	}
	import_refuse(im, node,
		      "it computes with an integer input element by element, and its %lld elements "
		      "for %lld possible integers are too many",
		      (long long)count, (long long)rows);
	return false;
}

/* Makes the values of an input's integers: each is a single number. */
static void number_values(struct importer *im, struct lookup *lookup)
{
	const struct onnx_input *input = &im->model->facts.inputs[lookup->input];
	int64_t *numbers;

	if (lookup->values != NULL)
		return;
	lookup->rows = input->rows > 0 ? input->rows : ONNX_INTEGERS;
	numbers = arena_array(&im->arena, (size_t)lookup->rows, sizeof(*numbers));
	lookup->values = arena_array(&im->arena, (size_t)lookup->rows, sizeof(*lookup->values));
	for (int64_t v = 0; v < lookup->rows; v++) {
		numbers[v] = v;
		lookup->values[v] =
			(struct constant){.type = input->type == TYPE_BOOL ? TYPE_BOOL : TYPE_INT64,
					  .count = 1,
					  .ints = &numbers[v],
					  .initializer = -1};
	}
}

bool import_can_fix(const struct onnx_input *input)
{
	return input->dtype != DTYPE_F32 &&
	       (input->fill.kind == INPUT_ONES || input->fill.kind == INPUT_ZEROS ||
		input->fill.kind == INPUT_POSITIONS);
}

/* The integers of an input that is the same in every batch. */
static struct slot fixed_integers(struct importer *im, const struct onnx_input *input)
{
	struct shape shape = {.rank = input->sample.rank + 1, .dims = {im->batch}};
	int64_t count, last, *ints;

	memcpy(shape.dims + 1, input->sample.dims, (size_t)input->sample.rank * sizeof(int64_t));
	count = shape_elements(&shape);
	last = shape.rank > 1 ? shape.dims[shape.rank - 1] : 1;
	ints = arena_array(&im->arena, (size_t)count, sizeof(*ints));
	for (int64_t i = 0; i < count; i++)
		ints[i] = input->fill.kind == INPUT_POSITIONS ? i % last
							      : input->fill.kind == INPUT_ONES;
	return (struct slot){.kind = SLOT_CONSTANT,
			     .constant = {.type = input->type,
					  .shape = shape,
					  .count = count,
					  .ints = ints,
					  .initializer = -1}};
}

struct slot import_integers(struct importer *im, int input)
{
	const struct value *value;
	struct lookup *lookup;
	int64_t count, *places;

	if (im->fixed && import_can_fix(&im->model->facts.inputs[input]))
		return fixed_integers(im, &im->model->facts.inputs[input]);
	value = &im->builder.graph->values[im->inputs[input]];
	lookup = arena_array(&im->arena, 1, sizeof(*lookup));
	count = shape_elements(&value->shape);
	places = arena_array(&im->arena, (size_t)count, sizeof(*places));
	for (int64_t i = 0; i < count; i++)
		places[i] = i;
	*lookup = (struct lookup){.input = input,
				  .from = {.type = TYPE_INT64,
					   .shape = value->shape,
					   .count = count,
					   .ints = places,
					   .initializer = -1},
				  .value = VALUE_NONE};
	if (im->model->facts.inputs[input].type == TYPE_BOOL)
		number_values(im, lookup);
	return (struct slot){.kind = SLOT_LOOKUP, .lookup = lookup};
}

static struct lookup *lookup_of(const struct importer *im, const struct file_node *node, size_t i)
{
	const struct slot *slot = import_slot(im, node, i);

	return slot && slot->kind == SLOT_LOOKUP ? slot->lookup : NULL;
}

/* Folds the node with these inputs; false after a refusal. */
static bool fold_with(struct importer *im, const struct file_node *node,
		      const struct constant **inputs, struct constant *outputs)
{
	struct error why = ERROR_INIT;
	struct fold fold = {.node = node->proto,
			    .inputs = inputs,
			    .input_count = node->input_count,
			    .output_count = node->output_count,
			    .outputs = outputs,
			    .arena = &im->arena,
			    .err = &why};

	if (onnx_fold(&fold) == PRONY_OK)
		return true;
	import_refuse(im, node, "%s", why.text);
	return false;
}

/* Repeats a constant to a shape that it broadcasts to. */
static struct constant spread(struct importer *im, const struct constant *c, const struct shape *to)
{
	struct constant out = *c;
	int64_t count = shape_elements(to);
	void *copy;

	if (shape_equal(&c->shape, to))
		return out;
	copy = arena_array(&im->arena, (size_t)count + 1,
			   c->is_float ? sizeof(float) : sizeof(int64_t));
	out = (struct constant){.type = c->type,
				.is_float = c->is_float,
				.shape = *to,
				.count = count,
				.ints = c->is_float ? NULL : copy,
				.floats = c->is_float ? copy : NULL,
				.initializer = -1};
	for (int64_t i = 0; i < count; i++) {
		int64_t rest = i, index = 0, step = 1;

		for (int d = 1; d <= c->shape.rank; d++) {
			int64_t size = c->shape.dims[c->shape.rank - d];

			index += size == 1 ? 0 : rest % to->dims[to->rank - d] * step;
			rest /= to->dims[to->rank - d];
			step *= size;
		}
		fold_copy(c, index, &out, i);
	}
	return out;
}

static struct lookup *new_lookup(struct importer *im, const struct lookup *like)
{
	struct lookup *lookup = arena_array(&im->arena, 1, sizeof(*lookup));

	*lookup = (struct lookup){.input = like->input, .rows = like->rows, .value = VALUE_NONE};
	if (like->values != NULL)
		lookup->values =
			arena_array(&im->arena, (size_t)like->rows, sizeof(*lookup->values));
	return lookup;
}

/* Operators that move elements, of one lookup: what holds for the elements holds for their places.
 */
static void move(struct importer *im, const struct file_node *node, const struct lookup *x)
{
	const struct constant **inputs =
		arena_array(&im->arena, node->input_count + 1, sizeof(*inputs));
	struct constant *outputs =
		arena_array(&im->arena, node->output_count + 1, sizeof(*outputs));
	struct lookup **made = arena_array(&im->arena, node->output_count + 1, sizeof(*made));

	for (size_t i = 1; i < node->input_count; i++)
		inputs[i] = import_constant(im, node, i);
	inputs[0] = &x->from;
	if (!fold_with(im, node, inputs, outputs))
		return;
	for (size_t k = 0; k < node->output_count; k++) {
		if (!take_room(im, node, outputs[k].count, x->values ? x->rows + 1 : 1))
			return;
		made[k] = new_lookup(im, x);
		made[k]->from = outputs[k];
	}
	for (int64_t v = 0; x->values && v < x->rows; v++) {
		struct constant full = x->values[v];

		inputs[0] = &full;
		if (full.count > 1)
			full = spread(im, &full, &x->from.shape);
		if (full.count > 1 && !fold_with(im, node, inputs, outputs))
			return;
		for (size_t k = 0; k < node->output_count; k++)
			made[k]->values[v] = full.count > 1 ? outputs[k] : full;
	}
	for (size_t k = 0; k < node->output_count; k++)
		if (node->outputs[k] != NAME_OMITTED)
			im->slots[node->outputs[k]] =
				(struct slot){.kind = SLOT_LOOKUP, .lookup = made[k]};
}

/* Widens `shape` to what it and the other broadcast to; false if they do not. */
static bool widen(struct shape *shape, const struct shape *other)
{
	struct shape y;

	y.rank = shape->rank > other->rank ? shape->rank : other->rank;
	for (int i = 1; i <= y.rank; i++) {
		int64_t a = i <= shape->rank ? shape->dims[shape->rank - i] : 1;
		int64_t b = i <= other->rank ? other->dims[other->rank - i] : 1;

		if (a != b && a != 1 && b != 1)
			return false;
		y.dims[y.rank - i] = a == 1 ? b : a;
	}
	*shape = y;
	return true;
}

/* The shape of the result of a node that computes element by element, and the places that its
 * elements depend on; false after a refusal. */
static bool join_places(struct importer *im, const struct file_node *node, struct constant *from)
{
	const struct lookup *first = NULL;
	struct shape shape = {.rank = 0};
	bool fits = true;

	for (size_t i = 0; i < node->input_count; i++) {
		const struct lookup *x = lookup_of(im, node, i);
		const struct constant *c = import_constant(im, node, i);

		if (x || c)
			fits &= widen(&shape, x ? &x->from.shape : &c->shape);
		if (x && first && x->input != first->input) {
			import_refuse(im, node,
				      "it joins two integer inputs element by element, which is "
				      "not supported");
			return false;
		}
		first = x ? x : first;
	}
	if (!fits || first == NULL) {
		import_refuse(im, node, "the shapes of its operands cannot be broadcast");
		return false;
	}
	if (!take_room(im, node, shape_elements(&shape), 1))
		return false;
	*from = spread(im, &first->from, &shape);
	for (size_t i = 0; i < node->input_count; i++) {
		const struct lookup *x = lookup_of(im, node, i);
		struct constant other;

		if (x == NULL || x == first)
			continue;
		other = spread(im, &x->from, &shape);
		if (memcmp(other.ints, from->ints, (size_t)from->count * sizeof(int64_t)) == 0)
			continue;
		import_refuse(im, node,
			      "an element depends on several integers of an input, which is not "
			      "supported");
		return false;
	}
	return true;
}

/* Operators that compute each element from one element of each operand. */
static void compute(struct importer *im, const struct file_node *node)
{
	const struct constant **inputs =
		arena_array(&im->arena, node->input_count + 1, sizeof(*inputs));
	struct constant from, out;
	struct lookup *made, *x = NULL;

	if (!join_places(im, node, &from))
		return;
	for (size_t i = 0; i < node->input_count; i++) {
		struct lookup *each = lookup_of(im, node, i);

		inputs[i] = import_constant(im, node, i);
		if (each == NULL)
			continue;
		number_values(im, each);
		x = each;
	}
	made = new_lookup(im, x);
	made->from = from;
	for (int64_t v = 0; v < x->rows; v++) {
		for (size_t i = 0; i < node->input_count; i++)
			if (lookup_of(im, node, i))
				inputs[i] = &lookup_of(im, node, i)->values[v];
		if (!fold_with(im, node, inputs, &out) || !take_room(im, node, out.count, 1))
			return;
		made->values[v] = out;
	}
	if (node->outputs[0] != NAME_OMITTED)
		im->slots[node->outputs[0]] = (struct slot){.kind = SLOT_LOOKUP, .lookup = made};
}

/* Whether the elements are all integers of the input in their order. */
static bool is_whole(const struct importer *im, const struct lookup *x)
{
	const struct shape *shape = import_shape(im, im->inputs[x->input]);

	for (int64_t i = 0; i < x->from.count; i++)
		if (x->from.ints[i] != i)
			return false;
	return x->from.count == shape_elements(shape);
}

/* A cast among integers keeps them. */
static bool keeps_integers(const struct file_node *node, const struct lookup *x)
{
	int64_t to = onnx_int(node->proto, "to", 0);

	return strcmp(node->proto->op_type, "Cast") == 0 && x->values == NULL &&
	       !constant_is_float_type((int32_t)to) && to != TYPE_BOOL;
}

/* Puts lookups side by side: sine and cosine of a time step. All are repeated to full values. */
static void join(struct importer *im, const struct file_node *node)
{
	const struct constant **inputs =
		arena_array(&im->arena, node->input_count + 1, sizeof(*inputs));
	struct constant *full = arena_array(&im->arena, node->input_count + 1, sizeof(*full));
	struct constant out;
	struct lookup *made, *x = lookup_of(im, node, 0);

	for (size_t i = 0; i < node->input_count; i++) {
		struct lookup *each = lookup_of(im, node, i);

		if (each == NULL || each->input != x->input) {
			import_refuse(im, node,
				      "it joins values of an integer input with others, which is "
				      "not supported");
			return;
		}
		number_values(im, each);
		inputs[i] = &each->from;
	}
	made = new_lookup(im, x);
	if (!fold_with(im, node, inputs, &made->from) ||
	    !take_room(im, node, made->from.count, 2 * x->rows))
		return;
	for (int64_t v = 0; v < x->rows; v++) {
		for (size_t i = 0; i < node->input_count; i++) {
			const struct lookup *each = lookup_of(im, node, i);

			full[i] = spread(im, &each->values[v], &each->from.shape);
			inputs[i] = &full[i];
		}
		if (!fold_with(im, node, inputs, &out))
			return;
		made->values[v] = out;
	}
	if (node->outputs[0] != NAME_OMITTED)
		im->slots[node->outputs[0]] = (struct slot){.kind = SLOT_LOOKUP, .lookup = made};
}

bool import_lookup(struct importer *im, const struct file_node *node)
{
	const char *op = node->proto->op_type;
	enum motion motion = motion_of(op);
	struct lookup *x = lookup_of(im, node, 0), *indices = lookup_of(im, node, 1);
	const struct constant *table = import_constant(im, node, 0);

	if (motion == MOVES && strcmp(op, "Concat") == 0 && node->input_count > 1 && x) {
		join(im, node);
		return true;
	}
	if (motion == MOVES && x && indices == NULL) {
		move(im, node, x);
		return true;
	}
	if (x && keeps_integers(node, x)) {
		im->slots[node->outputs[0]] = (struct slot){.kind = SLOT_LOOKUP, .lookup = x};
		return true;
	}
	if (motion == COMPUTES) {
		compute(im, node);
		return true;
	}
	if (strcmp(op, "Gather") != 0 || !table || !indices)
		return false;
	if (indices->values || !is_whole(im, indices))
		import_refuse(im, node, "its indices must be an input, in its order");
	else
		import_embedding(im, node, table, im->inputs[indices->input], &indices->from.shape);
	return true;
}
