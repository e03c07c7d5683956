/* Finds attributes of a node by name. */
#include "onnx/fold_internal.h"

#include <stdio.h>
#include <string.h>

const Onnx__AttributeProto *onnx_attribute(const Onnx__NodeProto *node, const char *name)
{
	for (size_t i = 0; i < node->n_attribute; i++) {
		if (node->attribute[i]->name && strcmp(node->attribute[i]->name, name) == 0)
			return node->attribute[i];
	}
	return NULL;
}

int64_t onnx_int(const Onnx__NodeProto *node, const char *name, int64_t otherwise)
{
	const Onnx__AttributeProto *attribute = onnx_attribute(node, name);

	return attribute && attribute->has_i ? attribute->i : otherwise;
}

double onnx_real(const Onnx__NodeProto *node, const char *name, double otherwise)
{
	const Onnx__AttributeProto *attribute = onnx_attribute(node, name);

	return attribute && attribute->has_f ? (double)attribute->f : otherwise;
}

void onnx_text(const Onnx__NodeProto *node, const char *name, const char *otherwise, char *out,
	       size_t out_bytes)
{
	const Onnx__AttributeProto *attribute = onnx_attribute(node, name);

	if (attribute && attribute->has_s)
		snprintf(out, out_bytes, "%.*s", (int)(attribute->s.len & 0xffff),
			 attribute->s.data ? (const char *)attribute->s.data : "");
	else
		snprintf(out, out_bytes, "%s", otherwise);
}
