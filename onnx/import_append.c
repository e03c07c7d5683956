/* Helpers of the translations: they find a node's inputs and append to the graph. */
#include "onnx/import_internal.h"

#include <math.h>
#include <string.h>

#include "graph/edit_internal.h"

#define NAME_TRIES 64

const struct slot *import_slot(const struct importer *im, const struct file_node *node, size_t i)
{
	return import_has(node, i) ? &im->slots[node->inputs[i]] : NULL;
}

bool import_has(const struct file_node *node, size_t i)
{
	return i < node->input_count && node->inputs[i] != NAME_OMITTED;
}

const struct constant *import_constant(const struct importer *im, const struct file_node *node,
				       size_t i)
{
	const struct slot *slot = import_slot(im, node, i);

	return slot && slot->kind == SLOT_CONSTANT ? &slot->constant : NULL;
}

static int import_value(const struct importer *im, const struct file_node *node, size_t i)
{
	const struct slot *slot = import_slot(im, node, i);

	return slot && slot->kind == SLOT_VALUE ? slot->value : VALUE_NONE;
}

const struct shape *import_shape(const struct importer *im, int value)
{
	return &im->builder.graph->values[value].shape;
}

bool import_need_value(struct importer *im, const struct file_node *node, size_t i, int rank,
		       int *value)
{
	*value = import_value(im, node, i);
	if (*value == VALUE_NONE) {
		import_refuse(im, node, "input %zu must be computed from the data, but is %s", i,
			      import_has(node, i) ? "constant" : "missing");
		return false;
	}
	if (rank > 0 && import_shape(im, *value)->rank != rank) {
		import_refuse(im, node, "input %zu has %d dimensions; only %d are supported", i,
			      import_shape(im, *value)->rank, rank);
		return false;
	}
	return true;
}

bool import_need_constant(struct importer *im, const struct file_node *node, size_t i,
			  const struct constant **out)
{
	*out = import_constant(im, node, i);
	if (*out == NULL)
		import_refuse(im, node, "input %zu must be constant, but is %s", i,
			      import_has(node, i) ? "computed from the data" : "missing");
	return *out != NULL;
}

static bool name_is_taken(const struct graph *graph, const char *name)
{
	static const char *const reserved[] = {"input", "label", "loss"};

	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		if (strcmp(name, reserved[i]) == 0)
			return true;
	}
	return graph_find_value(graph, name) != VALUE_NONE || graph_find_node(graph, name) >= 0;
}

/* Makes a name for the graph. Names of a file need not be unique, short or valid UTF-8. */
static const char *free_name(struct importer *im, const struct file_node *node, const char *wanted,
			     int suffix)
{
	const char *base = wanted, *name;
	size_t index = (size_t)(node - im->model->nodes);

	if (graph_check_name("value", wanted, NULL) != PRONY_OK ||
	    strlen(wanted) > GRAPH_MAX_NAME_BYTES - 32)
		base = arena_printf(&im->arena, "node.%zu", index);
	name = suffix > 1 ? arena_printf(&im->arena, "%s.%d", base, suffix) : base;
	for (int i = 0; i < NAME_TRIES; i++) {
		if (!name_is_taken(im->builder.graph, name) &&
		    !name_is_taken(im->builder.graph, arena_printf(&im->arena, "%s.1", name)) &&
		    !name_is_taken(im->builder.graph, arena_printf(&im->arena, "%s.2", name)))
			return name;
		name = arena_printf(&im->arena, "%s.n%zu.%d", base, index, i);
	}
	import_refuse(im, node, "every name tried for '%.60s' is already used", base);
	return NULL;
}

static void set_weight(struct importer *im, int value, const struct constant *numbers)
{
	if (value >= im->weight_capacity) {
		int capacity = im->weight_capacity ? im->weight_capacity * 2 : 256;
		struct constant *larger;

		while (capacity <= value)
			capacity *= 2;
		larger = arena_array(&im->arena, (size_t)capacity, sizeof(*larger));
		if (im->weight_capacity > 0)
			memcpy(larger, im->weights, (size_t)im->weight_capacity * sizeof(*larger));
		im->weights = larger;
		im->weight_capacity = capacity;
	}
	im->weights[value] = *numbers;
}

/* Refuses the node with the builder's error, and removes values that the builder has added. */
static void refuse_builder(struct importer *im, const struct file_node *node, int value_count)
{
	const char *text = im->builder.error.text, *colon = NULL;

	/* The error begins with "node 'x' (Conv): "; the refusal names the node itself. */
	if (strncmp(text, "node '", 6) == 0)
		colon = strstr(text, "): ");
	import_refuse(im, node, "%s", colon ? colon + 3 : text);
	error_clear(&im->builder.error);
	im->builder.graph->value_count = value_count;
}

/* Refuses numbers that are not finite. The gate would not find them: every framework would compute
 * the same NaN. */
static bool check_finite(struct importer *im, const struct file_node *node,
			 const struct constant *numbers, const char *what)
{
	const char *name = numbers->initializer >= 0
				   ? im->model->graph->initializer[numbers->initializer]->name
				   : arena_printf(&im->arena, "%s.%s", node->name, what);

	for (int64_t i = 0; i < numbers->count; i++) {
		if (isfinite(numbers->floats[i]))
			continue;
		import_refuse(im, node,
			      "%s in its %s (tensor '%.100s', element %lld of %lld): the model is "
			      "damaged",
			      isnan(numbers->floats[i]) ? "NaN" : "infinity", what, name,
			      (long long)i, (long long)numbers->count);
		return false;
	}
	return true;
}

/* Exporters merge tensors whose numbers are all equal, such as biases of zero. */
static bool all_equal(const struct constant *numbers)
{
	for (int64_t i = 1; i < numbers->count; i++)
		if (numbers->floats[i] != numbers->floats[0])
			return false;
	return true;
}

const struct constant *import_tied(const struct importer *im, const struct constant *numbers,
				   bool *transposed)
{
	const struct constant *whole =
		numbers->initializer >= 0 ? &im->model->initializers[numbers->initializer] : NULL;

	if (!whole || !whole->is_float || !im->shared[numbers->initializer] ||
	    (whole->floats != numbers->floats && !numbers->transposed) || all_equal(whole))
		return NULL;
	*transposed = numbers->transposed;
	return whole;
}

/* Whether a number takes tokens out of a softmax. */
static bool has_mask(const struct constant *numbers)
{
	for (int64_t i = 0; i < numbers->count; i++)
		if (numbers->floats[i] <= MASKS_FROM)
			return true;
	return false;
}

/* Files do not say what is trained: the angles of rotary positions are known by their names. */
static bool is_rotary(const struct importer *im, const struct constant *c)
{
	const char *name = im->model->graph->initializer[c->initializer]->name;

	return strstr(name, "cos_cached") || strstr(name, "sin_cached") ||
	       strcmp(name, "cosine") == 0 || strcmp(name, "sine") == 0;
}

static struct constant soften_mask(struct importer *im, const struct constant *numbers)
{
	struct constant soft = *numbers;
	float *copy = arena_try_array(im->numbers, (size_t)numbers->count + 1, sizeof(*copy), NULL);

	for (int64_t i = 0; copy && i < numbers->count; i++)
		copy[i] = IS_MASKED(numbers->floats[i]) ? MASK_NUMBER : numbers->floats[i];
	if (copy)
		soft.floats = copy;
	return soft;
}

int import_parameter(struct importer *im, const struct file_node *node,
		     const struct constant *numbers, const struct shape *shape,
		     enum value_kind kind, const char *what)
{
	const Onnx__GraphProto *file = im->model->graph;
	int before = im->builder.graph->value_count, initializer = numbers->initializer, value;
	struct constant soft;
	bool transposed = false;
	const char *name;
	int *tied;

	if (!numbers->is_float) {
		import_refuse(im, node, "its %s is not floating-point", what);
		return VALUE_NONE;
	}
	if (kind == VALUE_STATE && has_mask(numbers)) {
		soft = soften_mask(im, numbers);
		numbers = &soft;
	}
	if (!check_finite(im, node, numbers, what))
		return VALUE_NONE;
	if (shape == NULL)
		shape = &numbers->shape;
	tied = kind == VALUE_PARAMETER && import_tied(im, numbers, &transposed) && !transposed
		       ? &im->tied[initializer]
		       : NULL;
	if (tied && *tied != VALUE_NONE && shape_equal(import_shape(im, *tied), shape))
		return *tied;
	if (initializer >= 0)
		name = free_name(im, node, file->initializer[initializer]->name,
				 ++im->uses[initializer]);
	else
		name = free_name(im, node, arena_printf(&im->arena, "%s.%s", node->name, what), 1);
	if (name == NULL)
		return VALUE_NONE;
	value = build_parameter(&im->builder, name, shape->rank, shape->dims, FILL_ZERO, 0);
	if (value == VALUE_NONE) {
		refuse_builder(im, node, before);
		return VALUE_NONE;
	}
	im->builder.graph->values[value].kind = kind;
	set_weight(im, value, numbers);
	if (tied && *tied == VALUE_NONE)
		*tied = value;
	if (kind == VALUE_PARAMETER && initializer < 0)
		im->notes.file_parameters += numbers->count;
	if (kind == VALUE_PARAMETER && initializer >= 0 && im->uses[initializer] == 1)
		im->notes.file_parameters += numbers->count;
	if (kind == VALUE_PARAMETER && initializer >= 0 && im->uses[initializer] == 2)
		im->notes.shared_initializers++;
	return value;
}

int import_append(struct importer *im, const struct file_node *node, enum op op, const int *inputs,
		  int input_count, const struct attributes *attributes)
{
	const char *name = free_name(im, node, node->name, 1);

	return name ? import_append_named(im, node, name, op, inputs, input_count, attributes)
		    : VALUE_NONE;
}

int import_append_named(struct importer *im, const struct file_node *node, const char *name,
			enum op op, const int *inputs, int input_count,
			const struct attributes *attributes)
{
	int before = im->builder.graph->value_count;
	int value = build_node(&im->builder, op, name, inputs, input_count, attributes);

	if (value == VALUE_NONE)
		refuse_builder(im, node, before);
	return value;
}

bool import_take_back(struct importer *im, const struct file_node *node, int x)
{
	struct graph *graph = im->builder.graph;
	const struct file_node *end = im->model->nodes + im->model->node_count;

	if (x != graph->value_count - 1 || graph->values[x].producer != graph->node_count - 1 ||
	    im->slots[im->model->output].value == x)
		return false;
	for (const struct file_node *later = node; later < end; later++) {
		for (size_t i = 0; i < later->input_count; i++) {
			const struct slot *slot = import_slot(im, later, i);
			bool own = later == node && i == 0;

			if (slot && (slot->lookup ||
				     (!own && slot->kind == SLOT_VALUE && slot->value == x)))
				return false;
		}
	}
	graph->forward_count = --graph->node_count;
	graph->value_count--;
	return true;
}

void import_set(struct importer *im, const struct file_node *node, size_t i, int value)
{
	if (value == VALUE_NONE || i >= node->output_count || node->outputs[i] == NAME_OMITTED)
		return;
	im->slots[node->outputs[i]] = (struct slot){.kind = SLOT_VALUE, .value = value};
}

int import_reshaped(struct importer *im, const struct file_node *node, int value,
		    const struct shape *shape)
{
	struct shape in = *import_shape(im, value);
	struct attributes attributes;

	if (shape_equal(&in, shape))
		return value;
	if (shape->rank == 2 && in.rank > 2 && shape->dims[0] == in.dims[0])
		return import_append(im, node, OP_FLATTEN, &value, 1, NULL);
	operator_default_attributes(OP_RESHAPE, &attributes);
	attributes.ints.count = shape->rank;
	for (int i = 0; i < shape->rank; i++)
		attributes.ints.items[i] = shape->dims[i];
	return import_append(im, node, OP_RESHAPE, &value, 1, &attributes);
}

/* Whether all elements `inner` apart within each group of `group` are the same. */
static bool repeats(const struct constant *c, int64_t group, int64_t inner)
{
	for (int64_t i = 0; i + inner < c->count; i++) {
		if ((i + inner) % group < inner)
			continue;
		if (c->is_float ? memcmp(&c->floats[i], &c->floats[i + inner], sizeof(float)) != 0
				: c->ints[i] != c->ints[i + inner])
			return false;
	}
	return true;
}

/* Keeps the first of the repetitions on one axis. */
static void keep_first(struct importer *im, struct constant *c, int axis, int64_t group,
		       int64_t inner)
{
	struct constant once = *c;
	size_t size = c->is_float ? sizeof(float) : sizeof(int64_t);
	void *copy;

	once.shape.dims[axis] = 1;
	once.count = c->count / group * inner;
	copy = arena_try_array(im->numbers, (size_t)once.count + 1, size, NULL);
	if (copy == NULL)
		return;
	once.floats = c->is_float ? copy : NULL;
	once.ints = c->is_float ? NULL : copy;
	for (int64_t i = 0; i < once.count; i++)
		fold_copy(c, i / inner * group + i % inner, &once, i);
	*c = once;
}

void import_drop_repeats(struct importer *im, struct constant *c, bool of_batch)
{
	int64_t inner = c->count;

	for (int axis = 0; axis < c->shape.rank && c->count > 0; axis++) {
		int64_t group = inner, dim = c->shape.dims[axis];

		inner /= dim;
		if (dim == 1 || (of_batch && dim != im->batch) || !repeats(c, group, inner))
			continue;
		keep_first(im, c, axis, group, inner);
	}
}

/* The state that an earlier use of this constant has become, or VALUE_NONE. */
static int find_state(const struct importer *im, const struct constant *c)
{
	for (int i = 0; i < im->state_count; i++)
		if (im->states[i].floats == c->floats &&
		    shape_equal(&im->states[i].shape, &c->shape))
			return im->states[i].value;
	return VALUE_NONE;
}

static void keep_state(struct importer *im, const struct constant *c, int value)
{
	if (im->state_count == im->state_capacity) {
		int capacity = im->state_capacity ? im->state_capacity * 2 : 16;
		struct shared_state *larger =
			arena_array(&im->arena, (size_t)capacity, sizeof(*larger));

		if (im->state_count > 0)
			memcpy(larger, im->states, (size_t)im->state_count * sizeof(*larger));
		im->states = larger;
		im->state_capacity = capacity;
	}
	im->states[im->state_count++] = (struct shared_state){c->floats, c->shape, value};
}

int import_operand(struct importer *im, const struct file_node *node, size_t i)
{
	const struct constant *constant = import_constant(im, node, i);
	struct constant once;
	bool trained;
	int value;

	if (constant == NULL)
		return import_need_value(im, node, i, 0, &value) ? value : VALUE_NONE;
	once = *constant;
	/* In a file that leaves its batch open, a computed constant may repeat the same numbers for
	 * each sample (zeros of the input's shape). One copy is enough, since operands are
	 * broadcast, and it suits every batch. */
	if (im->model->facts.batch == 0 && im->batch != 1 && once.initializer < 0)
		import_drop_repeats(im, &once, true);
	trained = once.initializer >= 0 && once.shape.rank > 0 &&
		  (!once.is_float || !has_mask(&once)) && !is_rotary(im, &once);
	if (trained)
		return import_parameter(im, node, &once, NULL, VALUE_PARAMETER, "operand");
	value = once.is_float && once.count > 1 ? find_state(im, constant) : VALUE_NONE;
	if (value != VALUE_NONE)
		return value;
	value = import_parameter(im, node, &once, NULL, VALUE_STATE, "constant");
	if (value != VALUE_NONE && once.count > 1)
		keep_state(im, constant, value);
	return value;
}

void import_set_constant(struct importer *im, const struct file_node *node, size_t i,
			 const struct constant *constant)
{
	if (node->outputs[i] != NAME_OMITTED)
		im->slots[node->outputs[i]] =
			(struct slot){.kind = SLOT_CONSTANT, .constant = *constant};
}

/* Reads a Constant node; one of several attributes holds its numbers. */
static enum prony_status read_constant(struct importer *im, const struct file_node *node,
				       struct constant *out, struct error *err)
{
	const Onnx__AttributeProto *a =
		node->proto->n_attribute == 1 ? node->proto->attribute[0] : NULL;
	const char *name = a && a->name ? a->name : "";
	struct constant c = {.type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, .initializer = -1};

	if (strcmp(name, "value") == 0 && a->t != NULL)
		return onnx_tensor_read(a->t, node->name, NULL, im->numbers, out, err);
	c.is_float = strncmp(name, "value_float", 11) == 0;
	if (strcmp(name, "value_float") == 0 && a->has_f) {
		c.floats = &a->f;
		c.count = 1;
	} else if (strcmp(name, "value_floats") == 0) {
		c.floats = a->floats;
		c.count = (int64_t)a->n_floats;
	} else if (strcmp(name, "value_int") == 0 && a->has_i) {
		c.ints = &a->i;
		c.count = 1;
	} else if (strcmp(name, "value_ints") == 0) {
		c.ints = a->ints;
		c.count = (int64_t)a->n_ints;
	} else {
		return error_set(err, PRONY_BAD_INPUT,
				 "its value must be a number, a list of numbers or a dense tensor");
	}
	if (!c.is_float)
		c.type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
	c.shape.rank = name[strlen(name) - 1] == 's';
	c.shape.dims[0] = c.count;
	*out = c;
	return PRONY_OK;
}

void import_take_constant(struct importer *im, const struct file_node *node)
{
	struct error why = ERROR_INIT;
	struct constant constant;

	if (read_constant(im, node, &constant, &why) != PRONY_OK)
		import_refuse(im, node, "%s", why.text);
	else if (constant.count < 0)
		import_refuse(im, node, "its element type (%d) is not numeric", constant.type);
	else if (node->output_count > 0)
		import_set_constant(im, node, 0, &constant);
}

const struct constant *import_ahead(struct importer *im, const struct file_node *node, size_t i)
{
	const struct slot *slot = import_slot(im, node, i);
	const struct definition *definition;

	if (slot == NULL)
		return NULL;
	definition = &im->model->definitions[node->inputs[i]];
	if (slot->kind == SLOT_EMPTY && definition->kind == DEFINED_BY_NODE &&
	    strcmp(im->model->nodes[definition->index].proto->op_type, "Constant") == 0)
		import_take_constant(im, &im->model->nodes[definition->index]);
	return import_constant(im, node, i);
}
