/* Reads and changes the inputs and outputs of an ONNX file that is run unchanged. */
#include "onnx/ports.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "graph/edit_internal.h"
#include "graph/graph.h"
#include "onnx/fold_internal.h"
#include "onnx/onnx.pb-c.h"
#include "onnx/ports_internal.h"
#include "onnx/wire.h"

const char *onnx_type_name(int32_t type)
{
	static const char *const names[] = {
		"undefined", "float",  "uint8",	    "int8",	  "uint16",  "int16",
		"int32",     "int64",  "string",    "bool",	  "float16", "double",
		"uint32",    "uint64", "complex64", "complex128", "bfloat16"};

	return type >= 0 && (size_t)type < sizeof(names) / sizeof(*names) ? names[type]
									  : "of 8 bits or fewer";
}

/* Translates ONNX's element type; false for one that prony lacks. A bool is one byte, 0 or 1. */
static bool read_type(int32_t type, enum dtype *out)
{
	switch (type) {
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
		*out = DTYPE_F32;
		return true;
	case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
		*out = DTYPE_F64;
		return true;
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
		*out = DTYPE_F16;
		return true;
	case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
		*out = DTYPE_BF16;
		return true;
	case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
		*out = DTYPE_I32;
		return true;
	case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
		*out = DTYPE_I64;
		return true;
	case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
	case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
		*out = DTYPE_U8;
		return true;
	default:
		return false;
	}
}

static enum prony_status read_port(const Onnx__ValueInfoProto *info, struct arena *arena,
				   struct tensor *out, struct error *err)
{
	const Onnx__TypeProto *type = info->type;

	if (!info->name || !type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
		return error_set(err, PRONY_UNSUPPORTED, "'%.100s' is not a tensor",
				 info->name ? info->name : "");
	out->name = arena_strdup(arena, info->name);
	if (!read_type(type->tensor_type->elem_type, &out->dtype))
		return error_set(err, PRONY_UNSUPPORTED,
				 "'%.100s' has the element type %s, which is not supported",
				 out->name, onnx_type_name(type->tensor_type->elem_type));
	return PRONY_OK;
}

static bool is_initializer(const Onnx__GraphProto *graph, const char *name)
{
	for (size_t i = 0; i < graph->n_initializer; i++)
		if (graph->initializer[i]->name && !strcmp(graph->initializer[i]->name, name))
			return true;
	return false;
}

/* Whether a node reads the value as the sequence or as a state of an LSTM, GRU or RNN whose batch
 * is the second dimension (layout 0, the default). */
static bool is_recurrent(const Onnx__GraphProto *graph, const char *name)
{
	for (size_t i = 0; i < graph->n_node; i++) {
		const Onnx__NodeProto *node = graph->node[i];
		const char *type = node->op_type ? node->op_type : "";
		bool reads = false;

		if (strcmp(type, "LSTM") != 0 && strcmp(type, "GRU") != 0 &&
		    strcmp(type, "RNN") != 0)
			continue;
		/* 0: X; 5: initial_h; 6: initial_c */
		for (size_t k = 0; k < node->n_input; k++)
			reads |= (k == 0 || k == 5 || k == 6) && strcmp(node->input[k], name) == 0;
		if (reads && onnx_int(node, "layout", 0) == 0)
			return true;
	}
	return false;
}

/* `symbol`: the file's name for the batch dimension; NULL if it has none or the batch is fixed. */
static enum prony_status read_shape(const Onnx__ValueInfoProto *info, const char *symbol, int batch,
				    struct tensor *out, unsigned *batched, struct error *err)
{
	const Onnx__TensorShapeProto *shape = info->type->tensor_type->shape;

	if (!shape || shape->n_dim > TENSOR_MAX_RANK)
		return error_set(err, PRONY_UNSUPPORTED, "input '%.100s' has %s", out->name,
				 shape ? "more than 8 dimensions" : "no shape");
	out->shape.rank = (int)shape->n_dim;
	for (size_t i = 0; i < shape->n_dim; i++) {
		const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
		bool named =
			dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;

		out->shape.dims[i] = ONNX_DIM_OPEN;
		if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
		    dim->dim_value >= 0)
			out->shape.dims[i] = dim->dim_value;
		else if ((int)i == batch || (named && symbol && !strcmp(dim->dim_param, symbol)))
			*batched |= 1u << i;
		if (out->shape.dims[i] > GRAPH_MAX_DIM)
			return error_set(err, PRONY_BAD_INPUT,
					 "dimension %zu of its input '%.100s' is %" PRId64
					 ", which is too large",
					 i, out->name, out->shape.dims[i]);
	}
	return PRONY_OK;
}

/* The file's name for the batch of its first input. */
static const char *batch_symbol(const Onnx__ValueInfoProto *info, int batch)
{
	const Onnx__TensorShapeProto *shape = info->type->tensor_type->shape;
	const Onnx__TensorShapeProto__Dimension *dim =
		shape && (int)shape->n_dim > batch ? shape->dim[batch] : NULL;

	if (!dim || dim->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM ||
	    !*dim->dim_param)
		return NULL;
	return dim->dim_param;
}

/* Whether a dimension of the input is open that does not grow with the batch. */
static bool leaves_open(const struct tensor *input, unsigned batched)
{
	for (int i = 0; i < input->shape.rank; i++)
		if (input->shape.dims[i] == ONNX_DIM_OPEN && !(batched & 1u << i))
			return true;
	return false;
}

/* Copies the names of open dimensions. */
static void read_symbols(const Onnx__ValueInfoProto *info, struct arena *arena, const char **out)
{
	const Onnx__TensorShapeProto *shape = info->type->tensor_type->shape;

	for (size_t i = 0; i < shape->n_dim; i++)
		if (shape->dim[i]->value_case ==
			    ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
		    *shape->dim[i]->dim_param)
			out[i] = arena_strdup(arena, shape->dim[i]->dim_param);
}

enum prony_status onnx_ports_of(const Onnx__GraphProto *graph, struct arena *arena,
				struct onnx_ports *out, struct error *err)
{
	struct onnx_ports ports = {0};
	const char *symbol = NULL;
	enum prony_status status = PRONY_OK;

	ports.inputs.tensors = arena_array(arena, MODEL_FILE_PORTS_MAX, sizeof(struct tensor));
	ports.outputs.tensors = arena_array(arena, MODEL_FILE_PORTS_MAX, sizeof(struct tensor));
	ports.batched = arena_array(arena, MODEL_FILE_PORTS_MAX, sizeof(unsigned));
	ports.batch = arena_array(arena, MODEL_FILE_PORTS_MAX, sizeof(int));
	ports.rows = arena_array(arena, MODEL_FILE_PORTS_MAX, sizeof(int64_t));
	ports.symbols =
		arena_array(arena, MODEL_FILE_PORTS_MAX * TENSOR_MAX_RANK, sizeof(const char *));
	ports.precision = onnx_file_precision(graph);
	for (size_t i = 0; i < graph->n_input && status == PRONY_OK; i++) {
		const Onnx__ValueInfoProto *info = graph->input[i];
		size_t n = ports.inputs.count;

		/* Older files list their weights as inputs, too. */
		if (info->name && is_initializer(graph, info->name))
			continue;
		if (n == MODEL_FILE_PORTS_MAX)
			return error_set(err, PRONY_UNSUPPORTED, "it has more than %d inputs",
					 MODEL_FILE_PORTS_MAX);
		status = read_port(info, arena, &ports.inputs.tensors[n], err);
		if (status != PRONY_OK)
			break;
		ports.batch[n] = is_recurrent(graph, info->name);
		if (ports.inputs.tensors[n].dtype == DTYPE_I64 ||
		    ports.inputs.tensors[n].dtype == DTYPE_I32)
			ports.rows[n] = onnx_table_rows(graph, info->name);
		if (n == 0)
			symbol = batch_symbol(info, ports.batch[n]);
		status = read_shape(info, symbol, ports.batch[n], &ports.inputs.tensors[n],
				    &ports.batched[n], err);
		if (status == PRONY_OK)
			read_symbols(info, arena, &ports.symbols[n * TENSOR_MAX_RANK]);
		ports.left_open |= leaves_open(&ports.inputs.tensors[n], ports.batched[n]);
		ports.inputs.count++;
	}
	for (size_t i = 0; i < graph->n_output && status == PRONY_OK; i++) {
		if (i == MODEL_FILE_PORTS_MAX)
			return error_set(err, PRONY_UNSUPPORTED, "it has more than %d outputs",
					 MODEL_FILE_PORTS_MAX);
		status = read_port(graph->output[i], arena, &ports.outputs.tensors[i], err);
		ports.outputs.count++;
	}
	if (status == PRONY_OK && (ports.inputs.count == 0 || ports.outputs.count == 0))
		status = error_set(err, PRONY_UNSUPPORTED, "it has no inputs or no outputs");
	if (status == PRONY_OK)
		*out = ports;
	return status;
}

static bool is_listed(const struct onnx_ports *ports, const char *name)
{
	for (size_t i = 0; i < ports->data_count; i++)
		if (strcmp(ports->data[i].name, name) == 0)
			return true;
	return false;
}

/* Lists the files with external data. Those in graphs inside nodes are not looked for. */
static enum prony_status find_data(const Onnx__GraphProto *graph, const char *path,
				   struct arena *arena, struct onnx_ports *ports, struct error *err)
{
	struct onnx_folders folders = onnx_folders_of(path, arena);
	enum prony_status status = PRONY_OK;

	ports->data = arena_array(arena, graph->n_initializer + 1, sizeof(*ports->data));
	for (size_t i = 0; i < graph->n_initializer && status == PRONY_OK; i++) {
		const Onnx__TensorProto *tensor = graph->initializer[i];
		struct model_data found;

		if (tensor->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
			continue;
		status = onnx_tensor_data_file(tensor, tensor->name ? tensor->name : "",
					       path ? &folders : NULL, arena, &found, err);
		if (status == PRONY_OK && !is_listed(ports, found.name))
			ports->data[ports->data_count++] = found;
	}
	return status;
}

enum prony_status onnx_ports_read(const void *bytes, size_t length, const char *path,
				  struct arena *arena, struct onnx_ports *out, struct error *err)
{
	Onnx__ModelProto *proto;
	enum prony_status status = onnx_check_wire(bytes, length, err);

	if (status != PRONY_OK)
		return status;
	proto = onnx__model_proto__unpack(NULL, length, bytes);
	if (!proto || !proto->graph) {
		status = error_set(err, PRONY_BAD_INPUT,
				   "it is not an ONNX model, or it is truncated or damaged");
	} else {
		status = onnx_ports_of(proto->graph, arena, out, err);
		if (status == PRONY_OK)
			status = find_data(proto->graph, path, arena, out, err);
	}
	if (proto)
		onnx__model_proto__free_unpacked(proto, NULL);
	return status;
}

/* "1x3x48x320"; "" is a scalar. N is the batch: ONNX_DIM_OPEN, at most once. */
static bool parse_dims(const char *text, struct shape *out, int *batch)
{
	struct shape shape = {0};

	*batch = -1;
	while (*text) {
		bool marks = *text == 'N' && *batch < 0;
		char *end = (char *)(uintptr_t)text + 1;
		long long dim = marks ? ONNX_DIM_OPEN : strtoll(text, &end, 10);

		if (!marks && (*text < '0' || *text > '9' || dim < 1 || dim > GRAPH_MAX_DIM))
			return false;
		if (shape.rank == TENSOR_MAX_RANK || (*end != 'x' && *end != '\0'))
			return false;
		if (marks)
			*batch = shape.rank;
		shape.dims[shape.rank++] = dim;
		text = end + (*end == 'x');
		if (*end == 'x' && !*text)
			return false;
	}
	*out = shape;
	return true;
}

static void dims_text(const struct shape *shape, char out[96])
{
	size_t length = 0;

	out[0] = '\0';
	for (int i = 0; i < shape->rank && length < 96; i++) {
		const char *between = i > 0 ? "x" : "";

		if (shape->dims[i] == ONNX_DIM_OPEN)
			length += (size_t)snprintf(out + length, 96 - length, "%s?", between);
		else
			length += (size_t)snprintf(out + length, 96 - length, "%s%" PRId64, between,
						   shape->dims[i]);
	}
}

/* `batch`: the dimension that the user marked with N; -1: none. */
static enum prony_status fix_input(struct onnx_ports *ports, size_t input,
				   const struct shape *given, int batch, const char *text,
				   struct error *err)
{
	struct shape *shape = &ports->inputs.tensors[input].shape;
	bool fits = given->rank == shape->rank;
	char wanted[96];

	for (int i = 0; i < given->rank && fits; i++)
		fits = shape->dims[i] == ONNX_DIM_OPEN || shape->dims[i] == given->dims[i] ||
		       i == batch;
	if (!fits) {
		dims_text(shape, wanted);
		return error_set(err, PRONY_USAGE, "--shape %.100s: the file's shape is %s", text,
				 wanted);
	}
	if (batch >= 0) {
		bool open = shape->dims[batch] == ONNX_DIM_OPEN;
		int64_t fixed = shape->dims[batch];

		ports->batch[input] = batch;
		ports->batched[input] = open ? 1u << batch : 0;
		ports->marked = true;
		*shape = *given;
		shape->dims[batch] = fixed;
		return PRONY_OK;
	}
	*shape = *given;
	return PRONY_OK;
}

/* Sets all dimensions with that name. */
static void set_symbol(struct onnx_ports *ports, const char *symbol, int64_t dim)
{
	for (size_t i = 0; i < ports->inputs.count; i++) {
		struct shape *shape = &ports->inputs.tensors[i].shape;

		for (int k = 0; k < shape->rank; k++) {
			const char *name = ports->symbols[i * TENSOR_MAX_RANK + (size_t)k];

			if (shape->dims[k] == ONNX_DIM_OPEN && name && strcmp(name, symbol) == 0 &&
			    !(ports->batched[i] & 1u << k))
				shape->dims[k] = dim;
		}
	}
}

/* After a shape was given: the same names mean the same numbers in all inputs. */
static void set_symbols(struct onnx_ports *ports, size_t input)
{
	const struct shape *shape = &ports->inputs.tensors[input].shape;

	for (int k = 0; k < shape->rank; k++) {
		const char *name = ports->symbols[input * TENSOR_MAX_RANK + (size_t)k];

		if (name && shape->dims[k] != ONNX_DIM_OPEN && !(ports->batched[input] & 1u << k))
			set_symbol(ports, name, shape->dims[k]);
	}
}

enum prony_status onnx_ports_fix(struct onnx_ports *ports, const char *const *given, size_t count,
				 bool *used, struct error *err)
{
	for (size_t k = 0; k < count; k++) {
		const char *equal = strrchr(given[k], '=');
		struct shape shape;
		int batch;

		if (!equal || equal == given[k] || !parse_dims(equal + 1, &shape, &batch))
			return error_set(err, PRONY_USAGE,
					 "--shape %.100s: write the name of an input and the shape "
					 "of one sample, for example NAME=1x3x48x320; N is the "
					 "batch where it is not the first: NAME=10xNx8",
					 given[k]);
		for (size_t i = 0; i < ports->inputs.count; i++) {
			const char *name = ports->inputs.tensors[i].name;

			if (strlen(name) != (size_t)(equal - given[k]) ||
			    strncmp(name, given[k], strlen(name)) != 0)
				continue;
			enum prony_status status =
				fix_input(ports, i, &shape, batch, given[k], err);
			if (status != PRONY_OK)
				return status;
			set_symbols(ports, i);
			used[k] = true;
		}
	}
	return PRONY_OK;
}

/* A likely size of an open dimension: a token axis, colours, or the sides of an image. */
static int64_t likely_dim(const struct shape *shape, int i, unsigned batched)
{
	if (batched & 1u << i)
		return 1;
	if (shape->rank == 4 && i == 1)
		return 3;
	return shape->rank == 4 && shape->dims[2] == shape->dims[3] ? 224 : 128;
}

void onnx_ports_hint(const struct onnx_ports *ports, struct strbuf *out)
{
	for (size_t n = 0; n < ports->inputs.count; n++) {
		const struct tensor *input = &ports->inputs.tensors[n];

		if (!leaves_open(input, ports->batched[n]))
			continue;
		strbuf_printf(out, " --shape %.60s=", input->name);
		for (int i = 0; i < input->shape.rank; i++) {
			int64_t dim = input->shape.dims[i];

			strbuf_printf(out, "%s%" PRId64, i > 0 ? "x" : "",
				      dim == ONNX_DIM_OPEN
					      ? likely_dim(&input->shape, i, ports->batched[n])
					      : dim);
		}
	}
}

/* The shape of one input for a batch. */
static enum prony_status input_for(const struct onnx_ports *ports, size_t input, int64_t batch,
				   struct tensor *out, struct error *err)
{
	const struct tensor *port = &ports->inputs.tensors[input];
	char text[96];

	*out = *port;
	for (int i = 0; i < port->shape.rank; i++) {
		int64_t *dim = &out->shape.dims[i];

		if (ports->batched[input] & 1u << i) {
			*dim = (*dim == ONNX_DIM_OPEN ? 1 : *dim) * batch;
		} else if (*dim == ONNX_DIM_OPEN) {
			struct strbuf hint;

			strbuf_init(&hint, 0);
			onnx_ports_hint(ports, &hint);
			dims_text(&port->shape, text);
			error_set(err, PRONY_UNSUPPORTED,
				  "the shape of its input '%.60s' is %s; give the shapes for "
				  "one sample, for example%s",
				  port->name, text, strbuf_text(&hint));
			strbuf_release(&hint);
			return PRONY_UNSUPPORTED;
		}
	}
	if (tensor_bytes(out) < 0)
		return error_set(err, PRONY_UNSUPPORTED, "its input '%.60s' is too large",
				 port->name);
	return PRONY_OK;
}

/* Checks the batch of a file whose batch dimension is fixed. If it left another one open, that may
 * be the batch: then samples/s would be wrong by the factor between the two. */
static enum prony_status check_fixed(const struct onnx_ports *ports, int64_t batch,
				     struct error *err)
{
	const struct tensor *first = &ports->inputs.tensors[0];
	int at = ports->batch[0];
	int64_t fixed = first->shape.rank > at ? first->shape.dims[at] : 1;

	if (ports->left_open && !ports->marked && fixed > 1)
		return error_set(err, PRONY_UNSUPPORTED,
				 "dimension %d of its input '%.60s' is fixed at %" PRId64
				 " and another one is open, so prony does not know which is the "
				 "batch; name it with N, for example --shape %.60s=%" PRId64
				 "xNx8, or Nx3x48x320 for the first",
				 at, first->name, fixed, first->name, fixed);
	if (batch != fixed)
		return error_set(err, PRONY_UNSUPPORTED,
				 "its batch is fixed at %" PRId64 "; use -b %" PRId64, fixed,
				 fixed);
	return PRONY_OK;
}

enum prony_status onnx_ports_inputs(const struct onnx_ports *ports, int64_t batch,
				    struct arena *arena, struct tensor_set *out, struct error *err)
{
	struct tensor_set set = {.count = ports->inputs.count};
	bool open = false;
	enum prony_status status = PRONY_OK;

	set.tensors = arena_array(arena, set.count, sizeof(struct tensor));
	for (size_t i = 0; i < set.count && status == PRONY_OK; i++) {
		open |= ports->batched[i] != 0;
		status = input_for(ports, i, batch, &set.tensors[i], err);
	}
	if (status == PRONY_OK && !open)
		status = check_fixed(ports, batch, err);
	if (status == PRONY_OK)
		*out = set;
	return status;
}

static void set_dim(Onnx__TensorShapeProto__Dimension *dim, int64_t size)
{
	/* Free the text, because the message would no longer free it. */
	if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
	    dim->dim_param != protobuf_c_empty_string)
		free(dim->dim_param);
	dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
	dim->dim_value = size;
}

static void set_shape(Onnx__TensorShapeProto *shape, const struct shape *wanted)
{
	for (size_t i = 0; i < shape->n_dim && i < (size_t)wanted->rank; i++)
		set_dim(shape->dim[i], wanted->dims[i]);
}

void onnx_ports_apply(const struct onnx_ports *ports, const Onnx__GraphProto *graph)
{
	for (size_t i = 0; i < graph->n_input; i++) {
		const Onnx__ValueInfoProto *info = graph->input[i];
		const struct tensor *input = tensor_find(&ports->inputs, info->name);
		Onnx__TensorShapeProto *shape;

		if (!input)
			continue;
		shape = info->type->tensor_type->shape;
		for (size_t k = 0; k < shape->n_dim && k < (size_t)input->shape.rank; k++)
			if (input->shape.dims[k] != ONNX_DIM_OPEN &&
			    !(ports->batched[input - ports->inputs.tensors] & 1u << k))
				set_dim(shape->dim[k], input->shape.dims[k]);
	}
}

enum prony_status onnx_ports_write(const void *file, size_t file_length,
				   const struct tensor_set *inputs, void **bytes, size_t *length,
				   struct error *err)
{
	/* protobuf-c keeps fields that this schema lacks, such as graphs in attributes. */
	Onnx__ModelProto *proto = onnx__model_proto__unpack(NULL, file_length, file);
	uint8_t *packed = NULL;

	for (size_t i = 0; proto && i < proto->graph->n_input; i++) {
		const Onnx__ValueInfoProto *info = proto->graph->input[i];
		const struct tensor *input = tensor_find(inputs, info->name);

		if (input)
			set_shape(info->type->tensor_type->shape, &input->shape);
	}
	if (proto) {
		*length = onnx__model_proto__get_packed_size(proto);
		packed = malloc(*length);
	}
	if (packed)
		onnx__model_proto__pack(proto, packed);
	if (proto)
		onnx__model_proto__free_unpacked(proto, NULL);
	if (!packed)
		return error_set(err, PRONY_NOMEM, "not enough memory for an ONNX file");
	*bytes = packed;
	return PRONY_OK;
}
