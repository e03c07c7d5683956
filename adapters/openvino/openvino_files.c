/* Runs a user's ONNX file unchanged: any number of inputs and outputs, by name. */
#include <stdlib.h>

#include "adapters/openvino/openvino_profile.h"
#include "base/memory.h"

static enum prony_status build(struct session *s, const struct model_file *model,
			       const struct recipe *recipe, struct built *built, struct error *err)
{
	struct ov_state *ov = s->private_data;
	enum prony_status status;

	ov->model = model;
	ov->input_count = model->inputs.count;
	ov->outputs = calloc(model->outputs.count, sizeof(ov->outputs[0]));
	if (!ov->outputs)
		return error_set(err, PRONY_NOMEM, "no memory for the outputs");
	ov->folder = model->data_folder ? memory_strdup(model->data_folder) : NULL;
	status = ov_compile(ov, model->bytes, model->length, recipe, err);
	if (status == PRONY_OK && s->profiled)
		status = ov_profile_keep(ov, model->bytes, model->length, NULL, recipe, err);
	if (status == PRONY_OK)
		status = ov_make_slots(ov, recipe, err);
	if (status != PRONY_OK)
		return status;
	*built = (struct built){.parameters = -1, .macs = -1};
	ov_describe(ov, built);
	return PRONY_OK;
}

/* A scalar of the file may have become a vector of one element. */
static enum prony_status input_type(const struct ov_state *ov, const char *name, int *type,
				    int64_t *rank, struct error *err)
{
	struct ov_partial_shape shape = {0};
	const struct ov_api *api = &ov->api;
	struct ov_port *port = NULL;
	enum prony_status status =
		ov_check(api, api->ov_compiled_model_input_by_name(ov->compiled, name, &port),
			 "find an input", err);

	if (status == PRONY_OK)
		status = ov_check(api, api->ov_port_get_element_type(port, type),
				  "get an element type", err);
	if (status == PRONY_OK)
		status = ov_check(api, api->ov_port_get_partial_shape(port, &shape), "get a shape",
				  err);
	if (status == PRONY_OK) {
		*rank = shape.rank.max;
		api->ov_partial_shape_free(&shape);
	}
	if (port)
		api->ov_output_const_port_free(port);
	return status;
}

static enum prony_status feed_input(struct ov_state *ov, struct ov_slot *slot, size_t index,
				    const struct tensor *input, struct error *err)
{
	const struct ov_api *api = &ov->api;
	struct ov_tensor *tensor = NULL;
	struct shape shape = input->shape;
	int64_t rank = 0;
	int type = 0;
	enum prony_status status = input_type(ov, input->name, &type, &rank, err);

	if (shape.rank == 0 && rank == 1)
		shape = shape_make(1, (const int64_t[]){1});
	if (status == PRONY_OK)
		status = ov_wrap(ov, type, &shape, input->data, (size_t)tensor_bytes(input),
				 &tensor, err);
	if (status != PRONY_OK)
		return status;
	status = ov_check(api, api->ov_infer_request_set_tensor(slot->request, input->name, tensor),
			  "set an input", err);
	if (status != PRONY_OK) {
		api->ov_tensor_free(tensor);
		return status;
	}
	if (slot->inputs[index])
		api->ov_tensor_free(slot->inputs[index]);
	slot->inputs[index] = tensor;
	return PRONY_OK;
}

static enum prony_status feed(struct session *s, int slot, const struct tensor *inputs,
			      struct error *err)
{
	struct ov_state *ov = s->private_data;
	enum prony_status status = ov_finish(ov, &ov->slots[slot], err);

	for (size_t i = 0; i < ov->input_count && status == PRONY_OK; i++)
		status = feed_input(ov, &ov->slots[slot], i, &inputs[i], err);
	return status;
}

/* ov_tensor_get_shape fails for a tensor without dimensions (ov_shape_create needs at least one);
 * it then has one element. */
static enum prony_status output_shape(const struct ov_state *ov, const struct ov_tensor *tensor,
				      size_t bytes, struct tensor *out, struct error *err)
{
	const struct ov_api *api = &ov->api;
	struct ov_shape shape = {0};
	struct error why = ERROR_INIT;

	out->shape = (struct shape){.rank = 0};
	if (ov_check(api, api->ov_tensor_get_shape(tensor, &shape), "get a shape", &why) !=
	    PRONY_OK)
		return (int64_t)bytes == tensor_bytes(out)
			       ? PRONY_OK
			       : error_set(err, why.code, "%s", why.text);
	enum prony_status status = PRONY_OK;
	if (shape.rank > TENSOR_MAX_RANK)
		status = error_set(err, PRONY_UNSUPPORTED, "output %s has %lld dimensions",
				   out->name, (long long)shape.rank);
	else
		out->shape = shape_make((int)shape.rank, shape.dims);
	api->ov_shape_free(&shape);
	return status;
}

/* Uses the type declared in the file, because OpenVINO's type numbers differ between releases. */
static enum prony_status read_output(struct ov_state *ov, size_t index, struct tensor *out,
				     struct error *err)
{
	const struct ov_api *api = &ov->api;
	struct ov_slot *slot = &ov->slots[ov->last_slot];
	size_t bytes = 0;

	*out = ov->model->outputs.tensors[index];
	if (ov->outputs[index])
		api->ov_tensor_free(ov->outputs[index]);
	ov->outputs[index] = NULL;
	enum prony_status status = ov_check(
		api,
		api->ov_infer_request_get_tensor(slot->request, out->name, &ov->outputs[index]),
		"find an output", err);
	if (status == PRONY_OK)
		status = ov_check(api, api->ov_tensor_get_byte_size(ov->outputs[index], &bytes),
				  "get a size", err);
	if (status == PRONY_OK)
		status = output_shape(ov, ov->outputs[index], bytes, out, err);
	if (status == PRONY_OK && (int64_t)bytes != tensor_bytes(out))
		status = error_set(err, PRONY_UNSUPPORTED,
				   "output %s has %zu bytes; its declared type %s needs %lld",
				   out->name, bytes, dtype_name(out->dtype),
				   (long long)tensor_bytes(out));
	if (status == PRONY_OK)
		status = ov_check(api, api->ov_tensor_data(ov->outputs[index], &out->data),
				  "read an output", err);
	return status;
}

static enum prony_status outputs(struct session *s, struct arena *arena, struct tensor_set *out,
				 struct error *err)
{
	struct ov_state *ov = s->private_data;
	enum prony_status status = PRONY_OK;

	out->count = ov->model->outputs.count;
	out->tensors = arena_array(arena, out->count, sizeof(struct tensor));
	for (size_t i = 0; i < out->count && status == PRONY_OK; i++)
		status = read_output(ov, i, &out->tensors[i], err);
	return status;
}

const struct adapter_files ov_files = {.build = build, .feed = feed, .outputs = outputs};
