/* Private to onnxruntime/: a session for a graph or a user's file. */
#ifndef PRONY_ADAPTERS_ONNXRUNTIME_ORT_INTERNAL_H
#define PRONY_ADAPTERS_ONNXRUNTIME_ORT_INTERNAL_H

#include "adapters/onnx_engine.h"
#include "adapters/onnxruntime/ort_api.h"
#include "adapters/onnxruntime/ort_streams.h"

/* Each slot has its own outputs, so that several can be computed in parallel. */
struct ort_slot {
	const struct ort_value **inputs; /* views of the fed memory */
	struct ort_value **outputs;	 /* views of `logits`; NULL for a file: Run creates them */
	float *logits;
};

/* Data for a second session with profiling: ort_profile.h. */
struct ort_profile {
	void *model; /* owned; NULL unless a profile was announced */
	size_t length;
	char *folder;		   /* its output file */
	struct ort_session *plain; /* the first session, while the second runs steps */
};

struct ort_state {
	const struct ort_api *api;
	const struct ort_api_base *base;
	struct ort_env *env;
	struct ort_session_options *options;
	struct ort_memory_info *memory;
	struct ort_session *session;
	struct onnx_ends ends;		/* of a graph */
	const struct model_file *model; /* NULL: a graph */
	const char **input_names, **output_names;
	size_t input_count, output_count;
	struct ort_slot *slots;
	int slot_count, last_slot, threads;
	struct ort_streams
		*streams; /* NULL: the caller computes, with the session's own thread pool */
	struct ort_profile profile;
};

/* Converts a status of ONNX Runtime and releases it. */
enum prony_status ort_check(const struct ort_api *api, struct ort_status *status, const char *what,
			    struct error *err);

/* Says where the external data of the model are; called before the session is created. */
enum prony_status ort_set_data_folder(struct ort_state *ort, const char *folder, struct error *err);
/* Creates the session from the bytes of a model, with the requested threads. */
enum prony_status ort_make_session(struct ort_state *ort, const void *bytes, size_t length,
				   struct error *err);
/* Creates empty slots for all inputs and outputs, and the streams if they are requested. */
enum prony_status ort_make_slots(struct session *s, const struct recipe *recipe, struct error *err);
/* Puts a tensor over fed memory into a slot. */
enum prony_status ort_set_input(struct ort_state *ort, int slot, size_t index,
				const struct tensor *tensor, enum ort_element_type type,
				struct error *err);
/* Runs one step on a slot; `context` is the struct ort_state. */
enum prony_status ort_compute(void *context, int slot, struct error *err);
enum prony_status ort_wait(const struct ort_state *ort, struct error *err);

extern const struct adapter_files ort_files;

#endif
