/* Private to onnxruntime/: a session, whether its model came from a graph or is a user's file. */
#ifndef PRONY_ADAPTERS_ONNXRUNTIME_ORT_INTERNAL_H
#define PRONY_ADAPTERS_ONNXRUNTIME_ORT_INTERNAL_H

#include "adapters/onnx_engine.h"
#include "adapters/onnxruntime/ort_api.h"
#include "adapters/onnxruntime/ort_streams.h"

/* Each slot has outputs of its own, so that several can be computed at once. */
struct ort_slot {
	const struct ort_value **inputs; /* over the memory that was fed */
	struct ort_value **outputs;	 /* over `logits`; of a file NULL: Run makes them */
	float *logits;
};

/* What a second session needs that is looked at: ort_profile.h. */
struct ort_profile {
	void *model; /* owned; NULL unless a profile was announced */
	size_t length;
	char *folder;		   /* where it writes */
	struct ort_session *plain; /* the first one, while the second steps */
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
	struct ort_streams *streams; /* NULL: the caller computes, with the session's own pool */
	struct ort_profile profile;
};

/* Turns a status of ONNX Runtime into ours and releases it. */
enum prony_status ort_check(const struct ort_api *api, struct ort_status *status, const char *what,
			    struct error *err);

/* The session on the bytes of a model, with the threads that were asked for. */
enum prony_status ort_make_session(struct ort_state *ort, const void *bytes, size_t length,
				   struct error *err);
/* Slots without values, for as many inputs and outputs as there are names; then the streams, where
 * they are asked for. */
enum prony_status ort_make_slots(struct session *s, const struct recipe *recipe, struct error *err);
/* Puts a tensor over memory that was fed into a slot. */
enum prony_status ort_set_input(struct ort_state *ort, int slot, size_t index,
				const struct tensor *tensor, enum ort_element_type type,
				struct error *err);
/* One Run on a slot; `context` is the struct ort_state. */
enum prony_status ort_compute(void *context, int slot, struct error *err);
enum prony_status ort_wait(const struct ort_state *ort, struct error *err);

extern const struct adapter_files ort_files;

#endif
