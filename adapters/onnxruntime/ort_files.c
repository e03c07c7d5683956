/* Runs a user's ONNX file unchanged: any number of inputs and outputs of the supported types. */
#include <stdio.h>
#include <stdlib.h>

#include "adapters/onnxruntime/ort_profile.h"

static bool dtype_of(enum ort_element_type type, enum dtype *out)
{
	static const struct {
		enum ort_element_type type;
		enum dtype dtype;
	} rows[] = {
		{ORT_ELEMENT_FLOAT, DTYPE_F32},	    {ORT_ELEMENT_DOUBLE, DTYPE_F64},
		{ORT_ELEMENT_BFLOAT16, DTYPE_BF16}, {ORT_ELEMENT_FLOAT16, DTYPE_F16},
		{ORT_ELEMENT_INT32, DTYPE_I32},	    {ORT_ELEMENT_INT64, DTYPE_I64},
		{ORT_ELEMENT_UINT8, DTYPE_U8},	    {ORT_ELEMENT_BOOL, DTYPE_U8},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].type != type)
			continue;
		*out = rows[i].dtype;
		return true;
	}
	return false;
}

/* The session's type of an input: uint8 and bool are both U8 for prony. */
static enum prony_status input_type(const struct ort_state *ort, size_t index,
				    enum ort_element_type *type, struct error *err)
{
	const struct ort_api *api = ort->api;
	const struct ort_tensor_info *tensor = NULL;
	struct ort_type_info *info = NULL;
	enum prony_status status =
		ort_check(api, api->session_get_input_type_info(ort->session, index, &info),
			  "get an input", err);

	if (status == PRONY_OK)
		status = ort_check(api, api->cast_to_tensor_info(info, &tensor), "get an input",
				   err);
	if (status == PRONY_OK && tensor)
		status = ort_check(api, api->get_element_type(tensor, type), "get an element type",
				   err);
	api->release_type_info(info);
	return status;
}

static enum prony_status build(struct session *s, const struct model_file *model,
			       const struct recipe *recipe, struct built *built, struct error *err)
{
	struct ort_state *ort = s->private_data;
	enum prony_status status;

	ort->model = model;
	ort->input_count = model->inputs.count;
	ort->output_count = model->outputs.count;
	ort->input_names = calloc(ort->input_count, sizeof(char *));
	ort->output_names = calloc(ort->output_count, sizeof(char *));
	if (!ort->input_names || !ort->output_names)
		return error_set(err, PRONY_NOMEM, "no memory for the names of inputs");
	for (size_t i = 0; i < ort->input_count; i++)
		ort->input_names[i] = model->inputs.tensors[i].name;
	for (size_t i = 0; i < ort->output_count; i++)
		ort->output_names[i] = model->outputs.tensors[i].name;
	status = model->data_folder ? ort_set_data_folder(ort, model->data_folder, err) : PRONY_OK;
	if (status == PRONY_OK)
		status = ort_make_session(ort, model->bytes, model->length, err);
	if (status == PRONY_OK && s->profiled)
		status = ort_profile_keep(ort, model->bytes, model->length, err);
	if (status == PRONY_OK)
		status = ort_make_slots(s, recipe, err);
	if (status != PRONY_OK)
		return status;
	*built = (struct built){.parameters = -1, .macs = -1};
	snprintf(built->notes, sizeof(built->notes), "the file, unchanged");
	return PRONY_OK;
}

static enum prony_status feed(struct session *s, int slot, const struct tensor *inputs,
			      struct error *err)
{
	struct ort_state *ort = s->private_data;
	enum prony_status status = ort_wait(ort, err);

	for (size_t i = 0; i < ort->input_count && status == PRONY_OK; i++) {
		enum ort_element_type type = ORT_ELEMENT_FLOAT;

		status = input_type(ort, i, &type, err);
		if (status == PRONY_OK)
			status = ort_set_input(ort, slot, i, &inputs[i], type, err);
	}
	return status;
}

static enum prony_status read_output(const struct ort_api *api, struct ort_value *value,
				     struct tensor *out, struct error *err)
{
	enum ort_element_type type = ORT_ELEMENT_FLOAT;
	struct ort_tensor_info *info = NULL;
	size_t rank = 0;
	enum prony_status status =
		ort_check(api, api->get_tensor_info(value, &info), "describe an output", err);

	if (status == PRONY_OK)
		status = ort_check(api, api->get_element_type(info, &type), "get a type", err);
	if (status == PRONY_OK)
		status = ort_check(api, api->get_rank(info, &rank), "get a shape", err);
	if (status == PRONY_OK && (rank > TENSOR_MAX_RANK || !dtype_of(type, &out->dtype)))
		status = error_set(err, PRONY_UNSUPPORTED,
				   "output %s has element type %d and %zu dimensions", out->name,
				   (int)type, rank);
	out->shape.rank = (int)rank;
	if (status == PRONY_OK)
		status = ort_check(api, api->get_dims(info, out->shape.dims, rank), "get a shape",
				   err);
	if (status == PRONY_OK)
		status = ort_check(api, api->get_tensor_data(value, &out->data), "read an output",
				   err);
	api->release_tensor_info(info);
	return status;
}

static enum prony_status outputs(struct session *s, struct arena *arena, struct tensor_set *out,
				 struct error *err)
{
	struct ort_state *ort = s->private_data;
	enum prony_status status = PRONY_OK;

	out->count = ort->output_count;
	out->tensors = arena_array(arena, out->count, sizeof(struct tensor));
	for (size_t i = 0; i < out->count && status == PRONY_OK; i++) {
		out->tensors[i].name = ort->output_names[i];
		status = read_output(ort->api, ort->slots[ort->last_slot].outputs[i],
				     &out->tensors[i], err);
	}
	return status;
}

const struct adapter_files ort_files = {.build = build, .feed = feed, .outputs = outputs};
