/* Builds small ONNX models in memory as an exporter would write them. */
#ifndef PRONY_TESTS_ONNX_FIXTURE_H
#define PRONY_TESTS_ONNX_FIXTURE_H

#include "onnx/import.h"
#include "onnx/onnx.pb-c.h"

#define FIXTURE_MAX 64

struct onnx_fixture {
	struct arena arena;
	Onnx__ModelProto model;
	Onnx__GraphProto graph;
	Onnx__OperatorSetIdProto opset, *opsets[1];
	Onnx__NodeProto *nodes[FIXTURE_MAX];
	Onnx__TensorProto *initializers[FIXTURE_MAX];
	Onnx__ValueInfoProto *inputs[4], *outputs[4];
};

/* Dimensions of a shape: 0 leaves a dimension open. */
#define DIMS(...)                                                                                  \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])               \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

void fixture_init(struct onnx_fixture *f, int64_t opset);
void onnx_fixture_release(struct onnx_fixture *f);
void fixture_input(struct onnx_fixture *f, const char *name, int rank, const int64_t *dims);
/* Gives the last input another element type. */
void fixture_input_type(struct onnx_fixture *f, int32_t type);
void fixture_output(struct onnx_fixture *f, const char *name);
/* Adds an initializer of floats 0.01, 0.02, ... or of integers. */
Onnx__TensorProto *fixture_floats(struct onnx_fixture *f, const char *name, int rank,
				  const int64_t *dims);
Onnx__TensorProto *fixture_ints(struct onnx_fixture *f, const char *name, int count,
				const int64_t *values);
/* Adds a scalar with that value. */
void fixture_number(struct onnx_fixture *f, const char *name, float value);
/* Adds a node "n.OP.INDEX"; names of inputs and outputs are separated by commas. */
Onnx__NodeProto *fixture_node(struct onnx_fixture *f, const char *op, const char *inputs,
			      const char *outputs);
/* Add attributes to the last node. */
void fixture_int(struct onnx_fixture *f, const char *name, int64_t value);
void fixture_real(struct onnx_fixture *f, const char *name, float value);
void fixture_list(struct onnx_fixture *f, const char *name, int count, const int64_t *values);
void fixture_text(struct onnx_fixture *f, const char *name, const char *value);
/* A list of texts, separated by commas in `values`, which is repeated `times` times. */
void fixture_texts(struct onnx_fixture *f, const char *name, int times, const char *values);

/* Returns the bytes of the model, in its arena. */
const uint8_t *fixture_pack(struct onnx_fixture *f, size_t *length);
enum prony_status fixture_parse(struct onnx_fixture *f, struct onnx_model **out, struct error *err);
/* Parses and builds; the caller releases the graph if PRONY_OK. */
enum prony_status fixture_build(struct onnx_fixture *f, int64_t batch, struct graph *graph,
				struct onnx_notes *notes, struct error *err);
/* Returns the interpreter's logits for `batch` samples whose elements are sin(1), sin(2), ..., or
 * for integers 0, 1, ... and again from 0 at the end of the table that they index; in the fixture's
 * arena. Fails the test if the model is refused. */
const double *fixture_logits(struct onnx_fixture *f, int64_t batch, int64_t *count);

/* Requires that the model is refused with this status and that the message contains all of the
 * parts. */
void fixture_expect_refusal(struct onnx_fixture *f, int64_t batch, enum prony_status expected,
			    const char *const *parts, size_t count);
#define REFUSED(f, batch, status, ...)                                                             \
	fixture_expect_refusal(f, batch, status, (const char *const[]){__VA_ARGS__},               \
			       sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

#endif
