/* Turns lookups of integer inputs into real numbers of the graph, and Where into sums and products.
 */
#include "onnx/import_internal.h"

#include <string.h>

#define TYPE_FLOAT ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT

/* Along which axes a lookup depends on the place in the input, and its values differ. */
struct ways {
	struct shape shape;
	bool moves[TENSOR_MAX_RANK], differs[TENSOR_MAX_RANK];
};

static struct ways find_ways(struct importer *im, const struct lookup *x, struct constant *from)
{
	struct ways ways = {.shape = x->from.shape};
	int rank = ways.shape.rank;

	*from = x->from;
	import_drop_repeats(im, from, false);
	for (int d = 0; d < rank; d++)
		ways.moves[d] = from->shape.dims[d] > 1;
	for (int64_t v = 0; v < x->rows; v++) {
		struct constant c = x->values[v];

		import_drop_repeats(im, &c, false);
		for (int d = 1; d <= c.shape.rank; d++)
			ways.differs[rank - d] |= c.shape.dims[c.shape.rank - d] > 1;
	}
	return ways;
}

/* The number of a constant at a place of a shape that it broadcasts to. */
static float number_at(const struct constant *c, const struct shape *shape, const int64_t *place)
{
	int64_t index = 0, step = 1;

	for (int d = 1; d <= c->shape.rank; d++) {
		int64_t size = c->shape.dims[c->shape.rank - d];

		index += size == 1 ? 0 : place[shape->rank - d] * step;
		step *= size;
	}
	return c->floats[index];
}

/* Writes the numbers of a constant along the axes that differ, in their order. */
static void take_row(const struct constant *c, const struct ways *ways, int64_t width, float *out)
{
	int64_t place[TENSOR_MAX_RANK] = {0};

	for (int64_t i = 0; i < width; i++) {
		out[i] = number_at(c, &ways->shape, place);
		for (int d = ways->shape.rank; d-- > 0;) {
			if (!ways->differs[d])
				continue;
			if (++place[d] < ways->shape.dims[d])
				break;
			place[d] = 0;
		}
	}
}

static int append_state(struct importer *im, const struct file_node *node, const float *numbers,
			const struct shape *shape, const char *what)
{
	struct constant c = {.type = TYPE_FLOAT,
			     .is_float = true,
			     .shape = *shape,
			     .count = shape_elements(shape),
			     .floats = numbers,
			     .initializer = -1};

	import_drop_repeats(im, &c, false);
	return import_parameter(im, node, &c, NULL, VALUE_STATE, what);
}

/* Brings rows of a table, in the order of the input, to the axes of the lookup. */
static int arrange(struct importer *im, const struct file_node *node, int x,
		   const struct ways *ways)
{
	struct shape grouped = {.rank = 0}, final = ways->shape;
	struct attributes attributes;
	int place[TENSOR_MAX_RANK], next = 0;
	bool sorted = true;

	for (int pass = 0; pass < 2; pass++) {
		for (int d = 0; d < ways->shape.rank; d++) {
			if (!(pass == 0 ? ways->moves[d] : ways->differs[d]))
				continue;
			place[d] = grouped.rank;
			grouped.dims[grouped.rank++] = ways->shape.dims[d];
		}
	}
	operator_default_attributes(OP_TRANSPOSE, &attributes);
	for (int d = 0; d < ways->shape.rank; d++) {
		if (!ways->moves[d] && !ways->differs[d]) {
			final.dims[d] = 1;
			continue;
		}
		sorted &= place[d] == next;
		attributes.ints.items[next++] = place[d];
	}
	attributes.ints.count = next;
	if (!sorted) {
		x = import_reshaped(im, node, x, &grouped);
		if (x != VALUE_NONE)
			x = import_append(im, node, OP_TRANSPOSE, &x, 1, &attributes);
	}
	return x == VALUE_NONE ? x : import_reshaped(im, node, x, &final);
}

/* The integers index a table that has a row of numbers for each of them. */
static int append_table(struct importer *im, const struct file_node *node, const struct lookup *x,
			const struct ways *ways)
{
	struct shape shape = {.rank = 2, .dims = {x->rows, 1}};
	struct attributes attributes = {.axis = 0};
	int inputs[2] = {VALUE_NONE, im->inputs[x->input]}, y;
	struct constant table = {.type = TYPE_FLOAT, .is_float = true, .initializer = -1};
	float *numbers;

	for (int d = 0; d < ways->shape.rank; d++)
		shape.dims[1] *= ways->differs[d] ? ways->shape.dims[d] : 1;
	numbers = arena_try_array(im->numbers, (size_t)shape_elements(&shape) + 1, sizeof(*numbers),
				  NULL);
	if (numbers == NULL) {
		import_refuse(im, node, "there is not enough memory for its table");
		return VALUE_NONE;
	}
	for (int64_t v = 0; v < x->rows; v++)
		take_row(&x->values[v], ways, shape.dims[1], numbers + v * shape.dims[1]);
	table.shape = shape;
	table.count = shape_elements(&shape);
	table.floats = numbers;
	inputs[0] = import_parameter(im, node, &table, NULL, VALUE_STATE, "table");
	if (inputs[0] == VALUE_NONE)
		return VALUE_NONE;
	y = import_append(im, node, OP_GATHER, inputs, 2, &attributes);
	return y == VALUE_NONE ? y : arrange(im, node, y, ways);
}

/* The sum a + (b - a) * m of the values for 0 and for 1, where both differ by place, as in a causal
 * mask; m is the input as real numbers. It is exact: the numbers are 0, or one of them is. */
static int append_blend(struct importer *im, const struct file_node *node, const struct lookup *x,
			struct ways ways)
{
	static const float numbers[2] = {0, 1};
	struct constant bits[2];
	struct lookup mask = *x;
	int64_t count = shape_elements(&ways.shape);
	float *low = arena_try_array(im->numbers, (size_t)count + 1, sizeof(*low), NULL);
	float *step = arena_try_array(im->numbers, (size_t)count + 1, sizeof(*step), NULL);
	struct ways all = ways;
	int sum[2], product[2];

	if (low == NULL || step == NULL) {
		import_refuse(im, node, "there is not enough memory for its mask");
		return VALUE_NONE;
	}
	for (int v = 0; v < 2; v++)
		bits[v] = (struct constant){.type = TYPE_FLOAT,
					    .is_float = true,
					    .count = 1,
					    .floats = &numbers[v],
					    .initializer = -1};
	mask.values = bits;
	memset(ways.differs, 0, sizeof(ways.differs));
	product[0] = append_table(im, node, &mask, &ways);
	memset(all.differs, 1, sizeof(all.differs));
	take_row(&x->values[0], &all, count, low);
	take_row(&x->values[1], &all, count, step);
	for (int64_t i = 0; i < count; i++) {
		low[i] = IS_MASKED(low[i]) ? MASK_NUMBER : low[i];
		step[i] = (IS_MASKED(step[i]) ? MASK_NUMBER : step[i]) - low[i];
	}
	product[1] = append_state(im, node, step, &ways.shape, "step");
	sum[1] = append_state(im, node, low, &ways.shape, "low");
	if (product[0] == VALUE_NONE || product[1] == VALUE_NONE || sum[1] == VALUE_NONE)
		return VALUE_NONE;
	sum[0] = import_append(im, node, OP_MUL, product, 2, NULL);
	return sum[0] == VALUE_NONE ? VALUE_NONE : import_append(im, node, OP_ADD, sum, 2, NULL);
}

int import_looked_up(struct importer *im, const struct file_node *node, struct lookup *x)
{
	bool apart = true, whole;
	struct constant from;
	struct ways ways;

	if (x->value != VALUE_NONE)
		return x->value;
	if (x->values == NULL || !x->values[0].is_float) {
		import_refuse(im, node,
			      "it computes with an integer input together with real numbers, which "
			      "is not supported");
		return VALUE_NONE;
	}
	ways = find_ways(im, x, &from);
	for (int d = 0; d < ways.shape.rank; d++)
		apart &= !(ways.moves[d] && ways.differs[d]);
	whole = from.count == shape_elements(import_shape(im, im->inputs[x->input]));
	for (int64_t i = 0; whole && i < from.count; i++)
		whole = from.ints[i] == i;
	if (whole && apart)
		x->value = append_table(im, node, x, &ways);
	else if (whole && x->rows == 2)
		x->value = append_blend(im, node, x, ways);
	else
		import_refuse(im, node,
			      "what it reads of an integer input is not the input in its order");
	return x->value;
}

/* The value that is a where the condition of the Where is true, and b elsewhere. */
static int choice(struct importer *im, const struct file_node *node, float a, float b)
{
	const struct slot *slot = import_slot(im, node, 0);
	struct lookup numbers;
	float *floats;
	int64_t rows = slot->kind == SLOT_LOOKUP ? slot->lookup->rows : 1;

	if (slot->kind == SLOT_LOOKUP && slot->lookup->values == NULL) {
		import_refuse(im, node, "its condition is no boolean");
		return VALUE_NONE;
	}
	numbers = (struct lookup){.rows = rows, .value = VALUE_NONE};
	if (slot->kind == SLOT_LOOKUP) {
		numbers.input = slot->lookup->input;
		numbers.from = slot->lookup->from;
	}
	numbers.values = arena_array(&im->arena, (size_t)rows, sizeof(*numbers.values));
	for (int64_t v = 0; v < rows; v++) {
		const struct constant *c =
			slot->kind == SLOT_LOOKUP ? &slot->lookup->values[v] : &slot->constant;

		if (c->is_float) {
			import_refuse(im, node, "its condition is no boolean");
			return VALUE_NONE;
		}
		floats = arena_array(&im->arena, (size_t)c->count + 1, sizeof(*floats));
		for (int64_t i = 0; i < c->count; i++)
			floats[i] = c->ints[i] ? a : b;
		numbers.values[v] = (struct constant){.type = TYPE_FLOAT,
						      .is_float = true,
						      .shape = c->shape,
						      .count = c->count,
						      .floats = floats,
						      .initializer = -1};
	}
	if (slot->kind == SLOT_LOOKUP)
		return import_looked_up(im, node, &numbers);
	/* A state lives longer than the arena of the import. */
	floats = arena_try_array(im->numbers, (size_t)slot->constant.count + 1, sizeof(*floats),
				 NULL);
	if (floats)
		memcpy(floats, numbers.values[0].floats,
		       (size_t)slot->constant.count * sizeof(*floats));
	return floats ? append_state(im, node, floats, &slot->constant.shape, "mask") : VALUE_NONE;
}

/* An operand of the Where, times 1 where it is chosen and 0 elsewhere. */
static int chosen(struct importer *im, const struct file_node *node, size_t i)
{
	int factors[2] = {import_operand(im, node, i), VALUE_NONE};

	if (factors[0] == VALUE_NONE)
		return VALUE_NONE;
	factors[1] = choice(im, node, i == 1, i == 2);
	return factors[1] == VALUE_NONE ? VALUE_NONE
					: import_append(im, node, OP_MUL, factors, 2, NULL);
}

/* Input i if it is a single number; NULL otherwise. */
static const float *single(const struct importer *im, const struct file_node *node, size_t i)
{
	const struct constant *c = import_constant(im, node, i);

	return c && c->is_float && c->count == 1 ? c->floats : NULL;
}

/* Where the condition does not depend on real numbers. A fill that masks scores is added to them: a
 * softmax gives 0 either way. Anything else is a sum of two products. */
void import_where(struct importer *im, const struct file_node *node)
{
	const struct slot *condition = import_slot(im, node, 0);
	int terms[2] = {VALUE_NONE, VALUE_NONE};

	if (!import_has(node, 2) || condition->kind == SLOT_VALUE) {
		import_refuse(im, node, "its condition is computed from real numbers");
		return;
	}
	for (size_t i = 1; i < 3; i++) {
		const float *fill = single(im, node, i);

		if (fill == NULL || *fill > MASKS_FROM)
			continue;
		terms[0] = import_operand(im, node, 3 - i);
		terms[1] = choice(im, node, i == 1 ? *fill : 0, i == 1 ? 0 : *fill);
		if (terms[0] != VALUE_NONE && terms[1] != VALUE_NONE)
			import_set(im, node, 0, import_append(im, node, OP_ADD, terms, 2, NULL));
		return;
	}
	for (size_t i = 1; i < 3; i++) {
		const float *number = single(im, node, i);

		if (number && *number == 0) {
			import_set(im, node, 0, chosen(im, node, 3 - i));
			return;
		}
	}
	terms[0] = chosen(im, node, 1);
	if (terms[0] != VALUE_NONE)
		terms[1] = chosen(im, node, 2);
	if (terms[1] != VALUE_NONE)
		import_set(im, node, 0, import_append(im, node, OP_ADD, terms, 2, NULL));
}
