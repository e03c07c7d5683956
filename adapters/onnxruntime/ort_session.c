/* A session with its slots, for a graph or a user's file. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapters/onnxruntime/ort_internal.h"
#include "adapters/threads.h"

enum prony_status ort_check(const struct ort_api *api, struct ort_status *status, const char *what,
			    struct error *err)
{
	enum prony_status code = PRONY_INVALID;

	if (!status)
		return PRONY_OK;
	const char *text = api->get_error_message(status);
	if (api->get_error_code(status) == ORT_NOT_IMPLEMENTED)
		code = PRONY_UNSUPPORTED;
	else if (strstr(text, "bad_alloc") || strstr(text, "Failed to allocate memory"))
		code = PRONY_OUT_OF_MEMORY;
	error_set(err, code, "ONNX Runtime failed (%s): %s", what, text);
	api->release_status(status);
	return code;
}

enum prony_status ort_set_data_folder(struct ort_state *ort, const char *folder, struct error *err)
{
	return ort_check(ort->api,
			 ort->api->add_session_config_entry(
				 ort->options,
				 "session.model_external_initializers_file_folder_path", folder),
			 "set the folder of weights", err);
}

/*
 * The threads are counted to see what took effect. The caller computes too, so a pool of N starts N
 * - 1 threads.
 */
enum prony_status ort_make_session(struct ort_state *ort, const void *bytes, size_t length,
				   struct error *err)
{
	int before = threads_count("");
	enum prony_status status =
		ort_check(ort->api,
			  ort->api->create_session_from_array(ort->env, bytes, length, ort->options,
							      &ort->session),
			  "create session", err);
	int threads = threads_count("") - before + 1;

	/* Threads that only helped to read the model may not have ended yet. */
	for (int i = 0; status == PRONY_OK && i < 100 && threads > ort->threads; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		threads = threads_count("") - before + 1;
	}

	if (status == PRONY_OK && before >= 0 && threads != ort->threads)
		status = error_set(err, PRONY_INVALID,
				   "ONNX Runtime's session has %d threads instead of %d", threads,
				   ort->threads);
	return status;
}

enum prony_status ort_compute(void *context, int slot, struct error *err)
{
	struct ort_state *ort = context;
	struct ort_slot *at = &ort->slots[slot];

	/* For a file, Run creates the outputs, because their shapes may depend on the data. */
	for (size_t i = 0; ort->model && i < ort->output_count; i++) {
		ort->api->release_value(at->outputs[i]);
		at->outputs[i] = NULL;
	}
	return ort_check(ort->api,
			 ort->api->run(ort->session, NULL, ort->input_names, at->inputs,
				       ort->input_count, ort->output_names, ort->output_count,
				       at->outputs),
			 "run", err);
}

enum prony_status ort_make_slots(struct session *s, const struct recipe *recipe, struct error *err)
{
	struct ort_state *ort = s->private_data;

	ort->slots = calloc((size_t)recipe->slots, sizeof(ort->slots[0]));
	if (!ort->slots)
		return error_set(err, PRONY_NOMEM, "no memory for %d slots", recipe->slots);
	ort->slot_count = recipe->slots;
	for (int i = 0; i < recipe->slots; i++) {
		struct ort_slot *slot = &ort->slots[i];

		slot->inputs = calloc(ort->input_count, sizeof(slot->inputs[0]));
		slot->outputs = calloc(ort->output_count, sizeof(slot->outputs[0]));
		if (!slot->inputs || !slot->outputs)
			return error_set(err, PRONY_NOMEM, "no memory for a slot");
	}
	return target_has_option(&s->target, "throughput")
		       ? ort_streams_start(recipe->threads, recipe->slots, ort_compute, ort,
					   &ort->streams, err)
		       : PRONY_OK;
}

/* Without streams a step returns when its outputs are complete. */
enum prony_status ort_wait(const struct ort_state *ort, struct error *err)
{
	return ort->streams ? ort_streams_wait(ort->streams, err) : PRONY_OK;
}

enum prony_status ort_set_input(struct ort_state *ort, int slot, size_t index,
				const struct tensor *tensor, enum ort_element_type type,
				struct error *err)
{
	struct ort_value *value = NULL;
	enum prony_status status =
		ort_check(ort->api,
			  ort->api->create_tensor_with_data(
				  ort->memory, tensor->data, (size_t)tensor_bytes(tensor),
				  tensor->shape.dims, (size_t)tensor->shape.rank, type, &value),
			  "describe the batch", err);

	if (status != PRONY_OK)
		return status;
	ort->api->release_value((struct ort_value *)(uintptr_t)ort->slots[slot].inputs[index]);
	ort->slots[slot].inputs[index] = value;
	return PRONY_OK;
}
