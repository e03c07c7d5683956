/* A compiled network with its slots, for a graph or a user's file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/openvino/openvino_internal.h"
#include "adapters/openvino/openvino_names.h"
#include "base/files.h"

static const char *precision_property(enum precision precision)
{
	switch (precision) {
	case PRECISION_BF16:
		return "bf16";
	case PRECISION_FP16:
		return "f16";
	default:
		return "f32";
	}
}

struct ov_properties ov_properties_for(const struct ov_state *ov, const struct recipe *recipe)
{
	struct ov_properties p = {
		/* A device without inference threads has compilation threads. */
		.key = {"INFERENCE_PRECISION_HINT",
			strcmp(ov->device, "CPU") == 0 ? "INFERENCE_NUM_THREADS"
						       : "COMPILATION_NUM_THREADS",
			"PERFORMANCE_HINT",
			ov->throughput ? "PERFORMANCE_HINT_NUM_REQUESTS" : "NUM_STREAMS"}};

	snprintf(p.value[0], sizeof(p.value[0]), "%s", precision_property(recipe->precision));
	snprintf(p.value[1], sizeof(p.value[1]), "%d", recipe->threads);
	snprintf(p.value[2], sizeof(p.value[2]), "%s", ov->throughput ? "THROUGHPUT" : "LATENCY");
	snprintf(p.value[3], sizeof(p.value[3]), "%d", ov->throughput ? recipe->slots : 1);
	return p;
}

/* How many of the compiler's last arguments are used; they are for profiling. */
static size_t profile_strings(const struct ov_state *ov)
{
	if (!ov->profile.counts)
		return 0;
	return ov->api.encrypts ? 4 : 2;
}

/* Only a model that is read from a file finds its external data. */
static enum prony_status read_beside(struct ov_state *ov, const void *bytes, size_t length,
				     struct ov_model **model, struct error *err)
{
	char *path = path_join(ov->folder, "openvino.onnx");
	enum prony_status status = file_write_atomic(path, bytes, length, err);

	if (status == PRONY_OK)
		status = ov_check(&ov->api, ov->api.ov_core_read_model(ov->core, path, NULL, model),
				  "read the ONNX model", err);
	free(path);
	return status;
}

static enum prony_status read_model(struct ov_state *ov, const void *bytes, size_t length,
				    struct ov_model **model, struct error *err)
{
	if (ov->folder)
		return read_beside(ov, bytes, length, model, err);
	return ov_check(
		&ov->api,
		ov->api.ov_core_read_model_from_memory_buffer(ov->core, bytes, length, NULL, model),
		"read the ONNX model", err);
}

static enum prony_status compile(struct ov_state *ov, const void *bytes, size_t length,
				 const struct ov_properties *p, struct error *err)
{
	const struct ov_api *api = &ov->api;
	struct ov_model *model = NULL;
	enum prony_status status = read_model(ov, bytes, length, &model, err);

	if (status == PRONY_OK)
		status = ov_check(
			api,
			api->ov_core_compile_model(ov->core, model, ov->device,
						   (size_t)2 * OV_PROPERTIES + profile_strings(ov),
						   &ov->compiled, p->key[0], p->value[0], p->key[1],
						   p->value[1], p->key[2], p->value[2], p->key[3],
						   p->value[3], "PERF_COUNT", "YES",
						   OV_CACHE_ENCRYPTION, ov_names_encryption()),
			"compile the model", err);
	if (model)
		api->ov_model_free(model);
	/* It was checked before that the bytes are an ONNX file. */
	if (status == PRONY_INVALID && err && strstr(err->text, "check if the model format")) {
		error_clear(err);
		return error_set(err, PRONY_MISSING,
				 "OpenVINO cannot read ONNX files: libopenvino_onnx_frontend.so is "
				 "missing or damaged in its folder");
	}
	return status;
}

static void property_text(const struct ov_state *ov, const char *key, char *out, size_t bytes)
{
	char *value = NULL;

	snprintf(out, bytes, "?");
	if (ov->api.ov_compiled_model_get_property(ov->compiled, key, &value) != OV_OK)
		return;
	snprintf(out, bytes, "%s", value);
	ov->api.ov_free(value);
}

/* Checks which settings took effect. OpenVINO silently replaces a precision that the processor
 * lacks (f32 for bf16), which would put the result into the wrong row. */
static enum prony_status check_effect(const struct ov_state *ov, const struct ov_properties *p,
				      struct error *err)
{
	char have[64];

	for (int i = 0; i < OV_PROPERTIES; i++) {
		property_text(ov, p->key[i], have, sizeof(have));
		if (strcmp(have, p->value[i]) != 0)
			return error_set(err, i == 0 ? PRONY_UNSUPPORTED : PRONY_INVALID,
					 "asked for %s=%s, but on this processor OpenVINO compiled "
					 "the network with %s=%s",
					 p->key[i], p->value[i], p->key[i], have);
	}
	return PRONY_OK;
}

enum prony_status ov_compile(struct ov_state *ov, const void *bytes, size_t length,
			     const struct recipe *recipe, struct error *err)
{
	const struct ov_properties p = ov_properties_for(ov, recipe);
	enum prony_status status = compile(ov, bytes, length, &p, err);

	return status == PRONY_OK ? check_effect(ov, &p, err) : status;
}

enum prony_status ov_wrap(const struct ov_state *ov, int type, const struct shape *shape,
			  void *data, size_t bytes, struct ov_tensor **out, struct error *err)
{
	int64_t dims[TENSOR_MAX_RANK];
	const struct ov_shape wanted = {.rank = shape->rank, .dims = dims};
	struct ov_tensor *tensor = NULL;
	size_t have = 0;

	memcpy(dims, shape->dims, sizeof(dims));
	enum prony_status status = ov_check(
		&ov->api, ov->api.ov_tensor_create_from_host_ptr(type, wanted, data, &tensor),
		"describe a tensor", err);
	if (status == PRONY_OK)
		status = ov_check(&ov->api, ov->api.ov_tensor_get_byte_size(tensor, &have),
				  "get the size of a tensor", err);
	if (status == PRONY_OK && have != bytes)
		status = error_set(err, PRONY_INVALID,
				   "a tensor of %zu bytes has %zu bytes in OpenVINO", bytes, have);
	if (status != PRONY_OK) {
		if (tensor)
			ov->api.ov_tensor_free(tensor);
		return status;
	}
	*out = tensor;
	return PRONY_OK;
}

enum prony_status ov_make_slots(struct ov_state *ov, const struct recipe *recipe, struct error *err)
{
	const struct ov_api *api = &ov->api;
	enum prony_status status = PRONY_OK;

	ov->slots = calloc((size_t)recipe->slots, sizeof(ov->slots[0]));
	if (!ov->slots)
		return error_set(err, PRONY_NOMEM, "no memory for %d slots", recipe->slots);
	ov->slot_count = recipe->slots;
	for (int i = 0; i < ov->slot_count && status == PRONY_OK; i++) {
		struct ov_slot *slot = &ov->slots[i];

		slot->inputs = calloc(ov->input_count, sizeof(slot->inputs[0]));
		if (!slot->inputs)
			return error_set(err, PRONY_NOMEM, "no memory for a slot");
		status = ov_check(
			api,
			api->ov_compiled_model_create_infer_request(ov->compiled, &slot->request),
			"create a request", err);
	}
	return status;
}

enum prony_status ov_bind_caches(const struct ov_state *ov, struct ov_request *request,
				 struct error *err)
{
	const struct ov_api *api = &ov->api;
	enum prony_status status = PRONY_OK;
	size_t input = ov->input_count;

	for (int i = 0; status == PRONY_OK && i < ov->ends.cache_count; i++) {
		if (ov->pasts[i])
			status = ov_check(api,
					  api->ov_infer_request_set_input_tensor_by_index(
						  request, input++, ov->pasts[i]),
					  "set a cache", err);
		if (status == PRONY_OK)
			status = ov_check(api,
					  api->ov_infer_request_set_output_tensor_by_index(
						  request, (size_t)(1 + i), ov->rows[i]),
					  "set the rows of a cache", err);
	}
	return status;
}

void ov_describe(const struct ov_state *ov, struct built *built)
{
	static const char *const keys[] = {"EXECUTION_DEVICES", "NUM_STREAMS",
					   "OPTIMAL_NUMBER_OF_INFER_REQUESTS", "ENABLE_CPU_PINNING",
					   "ENABLE_HYPER_THREADING"};
	char value[64];
	size_t length = (size_t)snprintf(
		built->notes, sizeof(built->notes),
		"weights are constants, which the compiler may fold and pack; settings in effect:");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		property_text(ov, keys[i], value, sizeof(value));
		length += (size_t)snprintf(built->notes + length, sizeof(built->notes) - length,
					   " %s=%s", keys[i], value);
		if (length >= sizeof(built->notes))
			return;
	}
}

enum prony_status ov_finish(const struct ov_state *ov, struct ov_slot *slot, struct error *err)
{
	if (!slot->started)
		return PRONY_OK;
	slot->started = false;
	return ov_check(&ov->api, ov->api.ov_infer_request_wait(slot->request), "wait", err);
}
