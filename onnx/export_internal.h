/* Private to the exporter: the message tree, and helpers that add to it. */
#ifndef PRONY_ONNX_EXPORT_INTERNAL_H
#define PRONY_ONNX_EXPORT_INTERNAL_H

#include "graph/attention.h"
#include "onnx/onnx.h"
#include "onnx/onnx.pb-c.h"

struct export_attention;

/* The message tree lives in an arena and borrows names and weights; only the bytes outlive it. */
struct exporter {
	struct arena arena;
	const struct graph *graph;
	const struct tensor_set *weights;
	struct onnx_form *form;
	struct error *err;
	int *alias;   /* the value that replaces each value: Dropout's output is replaced by
			 its input */
	bool *needed; /* values that the outputs depend on */
	/* By node: the attention that its last product, or the Transpose behind it, is part of. */
	const struct export_attention **attention;
	Onnx__GraphProto *out;
	int opset;
};

/* protobuf-c's fields are not const, but packing does not change them. */
char *export_borrow(const char *text);
Onnx__NodeProto *export_node(struct exporter *e, const char *name, const char *op, int input_count,
			     int output_count);
/* Makes a list of `count` empty attributes. */
Onnx__AttributeProto **export_attributes(struct exporter *e, Onnx__NodeProto *node, size_t count);
/* The name of a value, or of the one that replaces it; ONNX writes "" for an input that is left
 * out. */
char *export_name(const struct exporter *e, int value);
/* "NODE.SUFFIX", with underscores added until no value has that name. */
char *export_free_name(struct exporter *e, const char *node, const char *suffix);
/* An initializer of the graph; `data` is borrowed. */
void export_initializer(struct exporter *e, const char *name, int type, const struct shape *shape,
			const void *data, size_t bytes);

/* The numbers of a parameter or state; PRONY_BAD_INPUT if there are none of its shape. */
enum prony_status export_find_weight(struct exporter *e, const struct value *value,
				     const struct tensor **out);

/* Writes an LSTM, GRU or RNN: four nodes and four initializers at most. */
enum prony_status export_recurrent(struct exporter *e, const struct node *node);

/* The node that writes the cache which a MatMul multiplies by; NULL for other nodes, and where
 * caches are not only read. */
const struct node *export_cache_of(const struct exporter *e, const struct node *node);
/* Marks what the outputs of caches need. */
enum prony_status export_mark_caches(struct exporter *e);
/* The product with a cache that is only read, and with the row that the step adds. */
void export_cached_product(struct exporter *e, const struct node *matmul,
			   const struct node *scatter);

/* Decides which attentions become one node, and counts them. */
void export_find_attention(struct exporter *e);
/* Marks what the node reads, and raises the opset. */
void export_mark_attention(struct exporter *e, const struct export_attention *a);
void export_attention_node(struct exporter *e, const struct export_attention *a);

#endif
