/* Finds the number type in which an ONNX file computes, for files that are run unchanged. */
#include <string.h>

#include "onnx/onnx.pb-c.h"
#include "onnx/ports_internal.h"

#define TYPE(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

enum { SEES_F32 = 1, SEES_F16 = 2, SEES_BF16 = 4, SEES_F64 = 8, SEES_8_BITS = 16, SEES_OTHER = 32 };

/* Integers are numbers of the network only where a node quantises. */
static unsigned of_type(int32_t type)
{
	switch (type) {
	case TYPE(FLOAT):
		return SEES_F32;
	case TYPE(FLOAT16):
		return SEES_F16;
	case TYPE(BFLOAT16):
		return SEES_BF16;
	case TYPE(DOUBLE):
		return SEES_F64;
	default:
		/* float8, int4, float4 and later types. */
		return type > TYPE(BFLOAT16) ? SEES_OTHER : 0;
	}
}

/* Scalars, such as a scale or an epsilon, say nothing of the weights. */
static unsigned of_weights(const Onnx__TensorProto *tensor)
{
	int64_t count = 1;

	for (size_t i = 0; i < tensor->n_dims; i++)
		count *= tensor->dims[i] > 1 ? 2 : 1;
	return count > 1 || of_type(tensor->data_type) == SEES_OTHER ? of_type(tensor->data_type)
								     : 0;
}

static unsigned of_node(const Onnx__NodeProto *node)
{
	static const char *const quantised[] = {"QLinear",	"Quantize",	 "Dequantize",
						"DynamicQuant", "MatMulInteger", "ConvInteger",
						"QAttention",	"QGemm",	 "QOrdered",
						"QEmbedLayer",	"QMoE"};
	const char *word = node->op_type ? node->op_type : "";
	unsigned seen = strcmp(word, "MatMulNBits") == 0 ? SEES_OTHER : 0;

	for (size_t i = 0; i < sizeof(quantised) / sizeof(*quantised); i++)
		if (strncmp(word, quantised[i], strlen(quantised[i])) == 0)
			seen |= SEES_8_BITS;
	for (size_t i = 0; i < node->n_attribute; i++) {
		const Onnx__AttributeProto *attribute = node->attribute[i];
		unsigned cast;

		if (attribute->t)
			seen |= of_weights(attribute->t);
		if (strcmp(word, "Cast") != 0 || !attribute->name ||
		    strcmp(attribute->name, "to") != 0)
			continue;
		/* A cast to float or double may only serve a shape. */
		cast = of_type((int32_t)attribute->i);
		seen |= cast & (unsigned)~(SEES_F32 | SEES_F64);
	}
	return seen;
}

const char *onnx_file_precision(const Onnx__GraphProto *graph)
{
	unsigned seen = 0, ports = 0;

	for (size_t i = 0; i < graph->n_node; i++)
		seen |= of_node(graph->node[i]);
	for (size_t i = 0; i < graph->n_initializer; i++)
		seen |= of_weights(graph->initializer[i]);
	for (size_t i = 0; i < graph->n_input; i++)
		if (graph->input[i]->type && graph->input[i]->type->tensor_type)
			ports |= of_type(graph->input[i]->type->tensor_type->elem_type);
	/* The scales of a quantised file are floats of any type. */
	if (seen & SEES_OTHER)
		return "mixed";
	if (seen & SEES_8_BITS)
		return "int8";
	/* Many files of fp16 weights take and return fp32. */
	switch (seen ? seen : ports) {
	case SEES_F16:
		return "fp16";
	case SEES_BF16:
		return "bf16";
	case SEES_F64:
		return "fp64";
	case SEES_F32:
	case 0:
		return "fp32";
	default:
		return "mixed";
	}
}
