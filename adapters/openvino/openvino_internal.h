/* Private to openvino/: a compiled network, whether it came from a graph or is a user's file. */
#ifndef PRONY_ADAPTERS_OPENVINO_OPENVINO_INTERNAL_H
#define PRONY_ADAPTERS_OPENVINO_OPENVINO_INTERNAL_H

#include "adapters/onnx_engine.h"
#include "adapters/openvino/openvino_api.h"

/* Each slot has a request of its own over its batch: a step sets nothing, and several can be in
 * flight. Requests share the compiled network; what is theirs is input and output. */
struct ov_slot {
	struct ov_request *request;
	struct ov_tensor **inputs, *output; /* output: over `logits` */
	float *logits;
	bool started; /* asynchronously, and not waited for */
};

/* What a second network needs that is looked at, and what it was replaced for: openvino_profile.h.
 */
struct ov_profile {
	void *model; /* owned; NULL unless a profile was announced */
	size_t length;
	const struct graph *graph; /* borrowed; NULL of a file */
	struct ov_names *names;	   /* of the second network; NULL where it does not say them */
	struct recipe recipe;
	bool counts;		      /* what is compiled counts the time of its nodes */
	struct ov_compiled *plain;    /* while the second is in its place; else NULL */
	struct ov_request **requests; /* of `plain`, by slot */
	int64_t *before;	      /* of each node, us that it took before the steps */
	size_t node_count;
};

struct ov_state {
	struct ov_api api;
	bool loaded;
	struct ov_core *core;
	struct ov_compiled *compiled;
	struct onnx_ends ends;		/* of a graph */
	const struct model_file *model; /* NULL: a graph */
	struct ov_tensor **outputs;	/* of a file: what was read last */
	struct ov_slot *slots;
	int slot_count, last_slot, output_type;
	int *input_types; /* of a graph, by input */
	size_t input_count;
	bool throughput;
	struct ov_profile profile;
	char device[TARGET_WORD_BYTES]; /* OpenVINO's word: "CPU" */
};

/* Key, value pairs as they are given to the compiler; the last differs with the hint. */
#define OV_PROPERTIES 4
struct ov_properties {
	const char *key[OV_PROPERTIES];
	char value[OV_PROPERTIES][16];
};

struct ov_properties ov_properties_for(const struct ov_state *ov, const struct recipe *recipe);

/* Compiles a model from the bytes of an ONNX file and holds it to what was asked for. */
enum prony_status ov_compile(struct ov_state *ov, const void *bytes, size_t length,
			     const struct recipe *recipe, struct error *err);
/* Slots with a request and room for input_count inputs each. */
enum prony_status ov_make_slots(struct ov_state *ov, const struct recipe *recipe,
				struct error *err);
/* A tensor over memory of ours; another size than its own means another type. */
enum prony_status ov_wrap(const struct ov_state *ov, int type, const struct shape *shape,
			  void *data, size_t bytes, struct ov_tensor **out, struct error *err);
/* Waits for a slot's step. */
enum prony_status ov_finish(const struct ov_state *ov, struct ov_slot *slot, struct error *err);
/* Notes on what the compiler chose by itself. */
void ov_describe(const struct ov_state *ov, struct built *built);

extern const struct adapter_files ov_files;

#endif
