/* Private to openvino/: a compiled network, from a graph or a user's file. */
#ifndef PRONY_ADAPTERS_OPENVINO_OPENVINO_INTERNAL_H
#define PRONY_ADAPTERS_OPENVINO_OPENVINO_INTERNAL_H

#include "adapters/onnx_engine.h"
#include "adapters/openvino/openvino_api.h"

/* Each slot has its own request over its batch, so a step sets nothing and several can be in
 * flight. Requests share the compiled network; inputs and outputs are their own. */
struct ov_slot {
	struct ov_request *request;
	struct ov_tensor **inputs, *output; /* output: a view of `logits` */
	float *logits;
	const void **fed; /* for a graph: the data of each input */
	bool started;	  /* started asynchronously and not awaited yet */
};

/* Data for a second network with profiling, and the state it replaces: openvino_profile.h. */
struct ov_profile {
	void *model; /* owned; NULL unless a profile was announced */
	size_t length;
	const struct graph *graph; /* borrowed; NULL for a file */
	struct ov_names *names;	   /* of the second network; NULL if it does not report them */
	struct recipe recipe;
	bool counts;		      /* compile with counters of node times */
	struct ov_compiled *plain;    /* set while the second network replaces it; otherwise NULL */
	struct ov_request **requests; /* requests of `plain`, by slot */
	int64_t *before;	      /* us per node before the steps */
	size_t node_count;
};

struct ov_state {
	struct ov_api api;
	bool loaded;
	struct ov_core *core;
	struct ov_compiled *compiled;
	struct onnx_ends ends;		/* of a graph */
	const struct model_file *model; /* NULL: a graph */
	struct ov_tensor **outputs;	/* for a file: the outputs read last */
	struct ov_slot *slots;
	int slot_count, last_slot, output_type;
	int *input_types; /* for a graph, by input */
	size_t input_count;
	/* By cache: what a request reads, NULL where nothing does, and the rows that it adds. */
	struct ov_tensor **pasts, **rows;
	bool throughput;
	char *folder; /* of the file with a graph's weights, if the model does not have them */
	struct ov_profile profile;
	char device[TARGET_WORD_BYTES]; /* OpenVINO's name: "CPU" */
};

/* Key and value pairs for the compiler; the last depends on the hint. */
#define OV_PROPERTIES 4
struct ov_properties {
	const char *key[OV_PROPERTIES];
	char value[OV_PROPERTIES][16];
};

struct ov_properties ov_properties_for(const struct ov_state *ov, const struct recipe *recipe);

/* Compiles a model from the bytes of an ONNX file and checks that the requested settings took
 * effect. */
enum prony_status ov_compile(struct ov_state *ov, const void *bytes, size_t length,
			     const struct recipe *recipe, struct error *err);
/* Creates slots with a request and room for input_count inputs each. */
enum prony_status ov_make_slots(struct ov_state *ov, const struct recipe *recipe,
				struct error *err);
/* A tensor over our memory. Another size than the tensor's means another type. */
enum prony_status ov_wrap(const struct ov_state *ov, int type, const struct shape *shape,
			  void *data, size_t bytes, struct ov_tensor **out, struct error *err);
/* Gives a request of a graph the caches. */
enum prony_status ov_bind_caches(const struct ov_state *ov, struct ov_request *request,
				 struct error *err);
/* Waits for a slot's step. */
enum prony_status ov_finish(const struct ov_state *ov, struct ov_slot *slot, struct error *err);
/* Notes about choices of the compiler. */
void ov_describe(const struct ov_state *ov, struct built *built);

extern const struct adapter_files ov_files;

#endif
