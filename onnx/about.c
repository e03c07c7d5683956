#include "onnx/about.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/strbuf.h"
#include "onnx/import_internal.h"
#include "onnx/ports_internal.h"

#define ABOUT_MAX_BYTES ((size_t)INT32_MAX)

static const char *shape_of(const Onnx__TensorShapeProto *shape, struct arena *arena)
{
	struct strbuf text;
	const char *copy;

	if (shape == NULL)
		return "of unknown shape";
	strbuf_init(&text, 0);
	for (size_t i = 0; i < shape->n_dim; i++) {
		const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];

		strbuf_puts(&text, i > 0 ? " x " : "");
		if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
			strbuf_printf(&text, "%" PRId64, dim->dim_value);
		else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
			 *dim->dim_param)
			strbuf_printf(&text, "%.40s", dim->dim_param);
		else
			strbuf_puts(&text, "?");
	}
	copy = shape->n_dim > 0 ? arena_strdup(arena, strbuf_text(&text)) : "scalar";
	strbuf_release(&text);
	return copy;
}

static struct onnx_port_about port_of(const Onnx__ValueInfoProto *info, struct arena *arena)
{
	struct onnx_port_about port = {arena_strdup(arena, info->name ? info->name : ""),
				       "not a tensor", ""};

	if (info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
		port.type = onnx_type_name(info->type->tensor_type->elem_type);
		port.shape = shape_of(info->type->tensor_type->shape, arena);
	}
	return port;
}

static int compare_operators(const void *a, const void *b)
{
	return strcmp(((const struct onnx_operator_about *)a)->name,
		      ((const struct onnx_operator_about *)b)->name);
}

static void count_operators(const Onnx__GraphProto *graph, struct arena *arena,
			    struct onnx_about *out)
{
	struct onnx_operator_about *all = arena_array(arena, graph->n_node + 1, sizeof(*all));
	size_t kept = 0;

	for (size_t i = 0; i < graph->n_node; i++) {
		const Onnx__NodeProto *node = graph->node[i];
		const char *op = node->op_type ? node->op_type : "";

		all[i].name = onnx_is_foreign(node)
				      ? arena_printf(arena, "%.80s.%.80s", node->domain, op)
				      : arena_printf(arena, "%.80s", op);
		all[i].count = 1;
	}
	qsort(all, graph->n_node, sizeof(*all), compare_operators);
	for (size_t i = 0; i < graph->n_node; i++) {
		if (kept > 0 && strcmp(all[kept - 1].name, all[i].name) == 0)
			all[kept - 1].count++;
		else
			all[kept++] = all[i];
	}
	out->operators = all;
	out->operator_count = kept;
}

static bool is_weight(const Onnx__GraphProto *graph, const char *name)
{
	for (size_t i = 0; name && i < graph->n_initializer; i++)
		if (graph->initializer[i]->name && strcmp(graph->initializer[i]->name, name) == 0)
			return true;
	return false;
}

static void describe(const Onnx__ModelProto *model, struct arena *arena, struct onnx_about *out)
{
	const Onnx__GraphProto *graph = model->graph;

	out->producer = arena_printf(arena, "%.40s%s%.40s",
				     model->producer_name ? model->producer_name : "",
				     model->producer_version ? " " : "",
				     model->producer_version ? model->producer_version : "");
	out->precision = onnx_file_precision(graph);
	for (size_t i = 0; i < model->n_opset_import; i++)
		if (onnx_is_own_domain(model->opset_import[i]->domain))
			out->opset = model->opset_import[i]->version;
	out->inputs = arena_array(arena, graph->n_input + 1, sizeof(*out->inputs));
	out->outputs = arena_array(arena, graph->n_output + 1, sizeof(*out->outputs));
	for (size_t i = 0; i < graph->n_input; i++)
		if (!is_weight(graph, graph->input[i]->name))
			out->inputs[out->input_count++] = port_of(graph->input[i], arena);
	for (size_t i = 0; i < graph->n_output; i++)
		out->outputs[out->output_count++] = port_of(graph->output[i], arena);
	count_operators(graph, arena, out);
	out->tensors = graph->n_initializer;
	for (size_t i = 0; i < graph->n_initializer; i++) {
		const Onnx__TensorProto *tensor = graph->initializer[i];
		struct shape shape = {0};

		if (tensor->n_dims <= TENSOR_MAX_RANK)
			shape = shape_make((int)tensor->n_dims, tensor->dims);
		if (shape_elements(&shape) > 0 &&
		    shape_elements(&shape) < INT64_MAX - out->parameters)
			out->parameters += shape_elements(&shape);
	}
}

enum prony_status onnx_about(const char *path, struct arena *arena, struct onnx_about *out,
			     struct error *err)
{
	char *bytes = NULL;
	size_t length = 0;
	enum prony_status status = file_read(path, ABOUT_MAX_BYTES, &bytes, &length, err);
	Onnx__ModelProto *model = NULL;

	*out = (struct onnx_about){0};
	if (status == PRONY_OK)
		status = onnx_check_wire(bytes, length, err);
	if (status == PRONY_OK)
		model = onnx__model_proto__unpack(NULL, length, (const uint8_t *)bytes);
	if (status == PRONY_OK && (model == NULL || model->graph == NULL))
		status = error_set(err, PRONY_BAD_INPUT, "%s: it is not an ONNX model", path);
	if (status == PRONY_OK)
		describe(model, arena, out);
	if (model)
		onnx__model_proto__free_unpacked(model, NULL);
	free(bytes);
	return status;
}
