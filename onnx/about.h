/* What is in an ONNX file, whether prony can build its graph or not. */
#ifndef PRONY_ONNX_ABOUT_H
#define PRONY_ONNX_ABOUT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct onnx_port_about {
	const char *name, *type, *shape; /* "input_ids", "int64", "batch x 16" */
};

struct onnx_operator_about {
	const char *name;
	int count;
};

struct onnx_about {
	int64_t opset;	       /* 0: none is declared */
	const char *producer;  /* "" if it is not said */
	const char *precision; /* as of files that are run unchanged */
	struct onnx_port_about *inputs, *outputs;
	size_t input_count, output_count;
	struct onnx_operator_about *operators; /* sorted by name; without graphs inside nodes */
	size_t operator_count;
	int64_t parameters; /* elements of all initializers */
	size_t tensors;
};

/* Reads it, without external data. Texts are in `arena`. PRONY_BAD_INPUT if it is no ONNX file. */
enum prony_status onnx_about(const char *path, struct arena *arena, struct onnx_about *out,
			     struct error *err);

#endif
