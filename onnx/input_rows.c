/* Finds how many integers an input may have: the rows of the tables that it indexes. */
#include "onnx/ports_internal.h"

#include <string.h>
#include <strings.h>

/* Limits for hostile files. */
enum { NAMES_MAX = 64, TABLES_MAX = 256 };

/* Operators that pass indices, or a table, on. */
static bool passes(const char *op)
{
	static const char *const names[] = {"Reshape", "Unsqueeze", "Squeeze",	       "Flatten",
					    "Cast",    "Identity",  "Expand",	       "Slice",
					    "Clip",    "Split",	    "DequantizeLinear"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(op, names[i]) == 0)
			return true;
	return false;
}

static bool has(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* The rows of an initializer, also behind one operator that passes it on; 0 if there is none. */
static int64_t rows_of(const Onnx__GraphProto *graph, const char *name, int depth)
{
	for (size_t i = 0; i < graph->n_initializer; i++) {
		const Onnx__TensorProto *tensor = graph->initializer[i];

		if (tensor->name && strcmp(tensor->name, name) == 0)
			return tensor->n_dims > 1 ? tensor->dims[0] : 0;
	}
	for (size_t i = 0; depth > 0 && i < graph->n_node; i++) {
		const Onnx__NodeProto *node = graph->node[i];

		if (node->n_output > 0 && node->n_input > 0 && node->op_type &&
		    strcmp(node->output[0], name) == 0 && passes(node->op_type))
			return rows_of(graph, node->input[0], depth - 1);
	}
	return 0;
}

int64_t onnx_table_rows(const Onnx__GraphProto *graph, const char *input)
{
	const char *names[NAMES_MAX];
	size_t count = 0, tables = 0;
	int64_t least = 0;

	names[count++] = input;
	for (size_t i = 0; i < graph->n_node; i++) {
		const Onnx__NodeProto *node = graph->node[i];
		const char *op = node->op_type ? node->op_type : "";
		int64_t rows = 0;

		if (count < NAMES_MAX && node->n_input > 0 && node->n_output > 0 && passes(op) &&
		    has(names, count, node->input[0]))
			names[count++] = node->output[0];
		if (strcmp(op, "Gather") == 0 && node->n_input == 2 &&
		    has(names, count, node->input[1]) && tables++ < TABLES_MAX)
			rows = rows_of(graph, node->input[0], 2);
		/* ONNX Runtime's: ids, segment ids, and the tables of words, positions, segments.
		 */
		if (strcmp(op, "EmbedLayerNormalization") == 0 && node->n_input > 4)
			for (size_t k = 0; k < 2; k++)
				if (has(names, count, node->input[k]))
					rows = rows_of(graph, node->input[k == 0 ? 2 : 4], 2);
		least = rows > 0 && (least == 0 || rows < least) ? rows : least;
	}
	return least;
}

bool onnx_named_mask(const char *name)
{
	return strcasestr(name, "mask") != NULL;
}
