/* A fake of libcudnn.so.9: descriptors and attributes of the backend interface. As strict as cuDNN
 * 9.19 was seen to be, or stricter: where that aborts the process or notices nothing, this returns
 * an error. FAKE_CUDNN_ENGINE=N leaves one engine. */
#include "tests/cuda/fake_cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/cuda/fake_driver.h"

static struct fake_descriptor *all;
static char last_error[256];

int fake_fail(int status, const char *why)
{
	snprintf(last_error, sizeof(last_error), "%s", why);
	return status;
}

enum { REQUIRED = 1, RESULT = 2 };

/* What each descriptor has: type of the elements, how many, whether finalising needs it or gives
 * it. */
static const struct row {
	int descriptor, attribute, type;
	int64_t least, most;
	int use;
} rows[] = {
#define ROW(d, a, t, least, most, use)                                                             \
	{                                                                                          \
		CUDNN_BACKEND_##d##_DESCRIPTOR, CUDNN_ATTR_##a, CUDNN_TYPE_##t, least, most, use   \
	}
#define ONE(d, a, t, use) ROW(d, a, t, 1, 1, use)
#define PART(d, a)                                                                                 \
	ONE(OPERATION_CONVOLUTION_##d, OPERATION_CONVOLUTION_##a, BACKEND_DESCRIPTOR, REQUIRED)
#define FACTOR(d, a) ONE(OPERATION_CONVOLUTION_##d, OPERATION_CONVOLUTION_##a, FLOAT, REQUIRED)
#define CONVOLUTION(d, a, first, second, third)                                                    \
	FACTOR(d, a##_ALPHA), FACTOR(d, a##_BETA), PART(d, a##_CONV_DESC), PART(d, a##_##first),   \
		PART(d, a##_##second), PART(d, a##_##third)
	ONE(TENSOR, TENSOR_UNIQUE_ID, INT64, REQUIRED),
	ONE(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE, REQUIRED),
	ROW(TENSOR, TENSOR_DIMENSIONS, INT64, 4, 4, REQUIRED),
	ROW(TENSOR, TENSOR_STRIDES, INT64, 4, 4, REQUIRED),
	ONE(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64, REQUIRED),
	ONE(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN, 0),
	ONE(TENSOR, TENSOR_IS_BY_VALUE, BOOLEAN, 0),
	ONE(CONVOLUTION, CONVOLUTION_COMP_TYPE, DATA_TYPE, REQUIRED),
	ONE(CONVOLUTION, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, REQUIRED),
	ONE(CONVOLUTION, CONVOLUTION_SPATIAL_DIMS, INT64, REQUIRED),
	ROW(CONVOLUTION, CONVOLUTION_DILATIONS, INT64, 2, 2, REQUIRED),
	ROW(CONVOLUTION, CONVOLUTION_FILTER_STRIDES, INT64, 2, 2, REQUIRED),
	ROW(CONVOLUTION, CONVOLUTION_PRE_PADDINGS, INT64, 2, 2, REQUIRED),
	ROW(CONVOLUTION, CONVOLUTION_POST_PADDINGS, INT64, 2, 2, REQUIRED),
	ONE(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, REQUIRED),
	ONE(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, REQUIRED),
	ONE(POINTWISE, POINTWISE_AXIS, INT64, 0),
	ONE(RNG, RNG_DISTRIBUTION, RNG_DISTRIBUTION, REQUIRED),
	ONE(RNG, RNG_BERNOULLI_DIST_PROBABILITY, DOUBLE, REQUIRED),
	ONE(OPERATION_RNG, OPERATION_RNG_YDESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_RNG, OPERATION_RNG_SEED, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_RNG, OPERATION_RNG_OFFSET_DESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_RNG, OPERATION_RNG_DESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(MATMUL, MATMUL_COMP_TYPE, DATA_TYPE, REQUIRED),
	ONE(OPERATION_MATMUL, OPERATION_MATMUL_ADESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_MATMUL, OPERATION_MATMUL_BDESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_MATMUL, OPERATION_MATMUL_CDESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_MATMUL, OPERATION_MATMUL_DESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(REDUCTION, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, REQUIRED),
	ONE(REDUCTION, REDUCTION_COMP_TYPE, DATA_TYPE, REQUIRED),
	ONE(OPERATION_REDUCTION, OPERATION_REDUCTION_XDESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_REDUCTION, OPERATION_REDUCTION_YDESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_REDUCTION, OPERATION_REDUCTION_DESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_RESHAPE, OPERATION_RESHAPE_XDESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_RESHAPE, OPERATION_RESHAPE_YDESC, BACKEND_DESCRIPTOR, REQUIRED),
	CONVOLUTION(FORWARD, FORWARD, X, W, Y),
	CONVOLUTION(BACKWARD_DATA, BWD_DATA, DX, W, DY),
	CONVOLUTION(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
	ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 0),
	ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_TDESC, BACKEND_DESCRIPTOR, 0),
	ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE, 0),
	ROW(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, FAKE_OPERATIONS, REQUIRED),
	ONE(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, REQUIRED),
	ONE(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, REQUIRED),
	ONE(ENGINEHEUR, ENGINEHEUR_DEVICEPROP, BACKEND_DESCRIPTOR, 0),
	ROW(ENGINEHEUR, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 0, 0, RESULT),
	ROW(ENGINECFG, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 0, 0, RESULT),
	ROW(ENGINE, ENGINE_GLOBAL_INDEX, INT64, 0, 0, RESULT),
	ROW(ENGINE, ENGINE_NUMERICAL_NOTE, NUMERICAL_NOTE, 0, 0, RESULT),
	ROW(ENGINE, ENGINE_BEHAVIOR_NOTE, BEHAVIOR_NOTE, 0, 0, RESULT),
	ONE(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE, 0),
	ONE(EXECUTION_PLAN, EXECUTION_PLAN_DEVICEPROP, BACKEND_DESCRIPTOR, 0),
	ONE(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 0),
	ROW(EXECUTION_PLAN, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 0, 0, RESULT),
	ROW(EXECUTION_PLAN, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, 1, INT32_MAX, RESULT),
	ROW(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, 1, 32, REQUIRED),
	ROW(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 1, 32, REQUIRED),
	ONE(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR, 0),
	ONE(DEVICEPROP, DEVICEPROP_DEVICE_ID, INT32, 0),
	ROW(DEVICEPROP, DEVICEPROP_JSON_REPRESENTATION, CHAR, 1, INT32_MAX, RESULT),
#undef CONVOLUTION
#undef FACTOR
#undef PART
#undef ONE
#undef ROW
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static size_t width_of(int type)
{
	switch (type) {
	case CUDNN_TYPE_CHAR:
	case CUDNN_TYPE_BOOLEAN:
		return 1;
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_DOUBLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR:
		return 8;
	default:
		return 4;
	}
}

static struct fake_descriptor *find(cudnn_descriptor descriptor)
{
	struct fake_descriptor *d = all;

	while (d && d != descriptor)
		d = d->next;
	return d && !d->destroyed ? d : NULL;
}

const struct fake_entry *fake_entry(const struct fake_descriptor *d, int attribute)
{
	for (int i = 0; i < d->entry_count; i++)
		if (d->entries[i].attribute == attribute)
			return &d->entries[i];
	return NULL;
}

/* The first element of an attribute of 4 bytes, or of a boolean; `otherwise` if it was not set. */
int fake_word(const struct fake_descriptor *d, int attribute, int otherwise)
{
	const struct fake_entry *entry = fake_entry(d, attribute);

	return entry ? *(const int *)entry->data : otherwise;
}

struct fake_descriptor *fake_child(const struct fake_descriptor *d, int attribute)
{
	const struct fake_entry *entry = fake_entry(d, attribute);

	return entry ? *(struct fake_descriptor **)entry->data : NULL;
}

static void release(struct fake_descriptor *d)
{
	struct fake_descriptor **link = &all;

	if (--d->references > 0)
		return;
	while (*link != d)
		link = &(*link)->next;
	*link = d->next;
	for (int i = 0; i < d->entry_count; i++) {
		struct fake_entry *entry = &d->entries[i];

		for (int r = 0; r < ROWS; r++)
			if (rows[r].attribute == entry->attribute &&
			    rows[r].type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
				for (int64_t k = 0; k < entry->count; k++)
					release(((struct fake_descriptor **)entry->data)[k]);
		free(entry->data);
	}
	free(d->text);
	free(d);
}

FAKE_EXPORT int cudnnBackendCreateDescriptor(int type, cudnn_descriptor *out)
{
	struct fake_descriptor *d;
	bool known = false;

	for (int i = 0; i < ROWS; i++)
		known = known || rows[i].descriptor == type;
	if (!out)
		return fake_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
				 "no place for the descriptor");
	if (!known)
		return fake_fail(CUDNN_STATUS_NOT_SUPPORTED, "the fake has no such descriptor");
	d = memory_alloc(sizeof(*d));
	*d = (struct fake_descriptor){.next = all, .type = type, .references = 1};
	all = d;
	*out = d;
	return CUDNN_STATUS_SUCCESS;
}

FAKE_EXPORT int cudnnBackendDestroyDescriptor(cudnn_descriptor descriptor)
{
	struct fake_descriptor *d = find(descriptor);

	if (!d)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "no such descriptor");
	d->destroyed = true;
	release(d);
	return CUDNN_STATUS_SUCCESS;
}

static const struct row *row_of(const struct fake_descriptor *d, int attribute)
{
	for (int i = 0; i < ROWS; i++)
		if (rows[i].descriptor == d->type && rows[i].attribute == attribute)
			return &rows[i];
	return NULL;
}

/* A descriptor can be set once it is finalised; it is kept until its owner goes. */
static int take_children(const void *elements, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		const struct fake_descriptor *child = find(((void *const *)elements)[i]);

		if (!child)
			return fake_fail(CUDNN_STATUS_BAD_PARAM, "an element is no descriptor");
		if (!child->finalized)
			return fake_fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
					 "an element is not finalised");
	}
	for (int64_t i = 0; i < count; i++)
		((struct fake_descriptor *const *)elements)[i]->references++;
	return CUDNN_STATUS_SUCCESS;
}

FAKE_EXPORT int cudnnBackendSetAttribute(cudnn_descriptor descriptor, int attribute, int type,
					 int64_t count, const void *elements)
{
	struct fake_descriptor *d = find(descriptor);
	const struct row *row = d ? row_of(d, attribute) : NULL;
	int status = CUDNN_STATUS_SUCCESS;
	size_t bytes;

	if (!d)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "no such descriptor");
	if (d->finalized)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalised");
	if (!row || row->most == 0)
		return fake_fail(CUDNN_STATUS_BAD_PARAM,
				 "the descriptor has no such attribute to set");
	if (type != row->type)
		return fake_fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
				 "wrong type of the elements");
	if (!elements)
		return fake_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no elements");
	if (count < row->least || count > row->most)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "wrong number of elements");
	if (fake_entry(d, attribute))
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "the attribute is set already");
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		status = take_children(elements, count);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	bytes = (size_t)count * width_of(type);
	d->entries[d->entry_count] = (struct fake_entry){attribute, count, memory_alloc(bytes + 4)};
	memcpy(d->entries[d->entry_count++].data, elements, bytes);
	return CUDNN_STATUS_SUCCESS;
}

/* Takes the properties of a device from text, or of device 0 from the driver. */
static int finalize_properties(struct fake_descriptor *d)
{
	const struct fake_entry *text = fake_entry(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);

	d->text = text ? memory_printf("%.*s", (int)text->count, (const char *)text->data)
		       : fake_device_text(fake_word(d, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, 0));
	d->capability = fake_text_capability(d->text);
	return d->capability ? CUDNN_STATUS_SUCCESS
			     : fake_fail(CUDNN_STATUS_BAD_PARAM, "the properties lack deviceVer");
}

/* The compute capability that a plan or a heuristic is for: of the properties or of the device of
 * the handle; 0 if neither was given. */
static int target(const struct fake_descriptor *d, int properties, int handle)
{
	const struct fake_descriptor *given = fake_child(d, properties);
	const struct fake_entry *opened = fake_entry(d, handle);
	int capability = given ? given->capability : 0;

	if (!given && opened && *(void **)opened->data)
		capability = FAKE_CUDA_CAPABILITY;
	return capability;
}

static int finalize_heuristics(struct fake_descriptor *d)
{
	const struct fake_descriptor *graph = fake_child(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);

	d->problem = graph->problem;
	d->capability = target(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, -1);
	if (d->capability == 0)
		d->capability = target(graph, -1, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
	return d->capability ? CUDNN_STATUS_SUCCESS
			     : fake_fail(CUDNN_STATUS_BAD_PARAM, "neither handle nor properties");
}

static int finalize_plan(struct fake_descriptor *d)
{
	const struct fake_descriptor *config =
		fake_child(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
	const struct fake_entry *text =
		fake_entry(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
	char why[128];

	d->capability =
		target(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
	if (d->capability == 0 || !config == !text)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "a plan needs a handle or properties, and "
							 "an engine's configuration or a text");
	if (config) {
		d->problem = config->problem;
		d->engine = config->engine;
	} else if (!fake_plan_read(text->data, (size_t)text->count, d->capability, &d->problem,
				   &d->engine, why)) {
		return fake_fail(CUDNN_STATUS_NOT_SUPPORTED, why);
	}
	if (d->engine->refuses)
		return fake_fail(CUDNN_STATUS_NOT_SUPPORTED, "this engine refuses");
	d->text = fake_plan_text(&d->problem, d->engine, d->capability);
	return CUDNN_STATUS_SUCCESS;
}

FAKE_EXPORT int cudnnBackendFinalize(cudnn_descriptor descriptor)
{
	struct fake_descriptor *d = find(descriptor);
	int status = CUDNN_STATUS_SUCCESS;

	if (!d || d->finalized)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "no such descriptor to finalise");
	for (int i = 0; i < ROWS; i++)
		if (rows[i].descriptor == d->type && rows[i].use == REQUIRED &&
		    !fake_entry(d, rows[i].attribute))
			return fake_fail(CUDNN_STATUS_BAD_PARAM, "a required attribute is missing");
	switch (d->type) {
	case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
	case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
		return fake_fail(CUDNN_STATUS_NOT_SUPPORTED, "the fake gives these by heuristics");
	case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
		status = finalize_properties(d);
		break;
	case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
		status = finalize_heuristics(d);
		break;
	case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
		status = finalize_plan(d);
		break;
	case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
		if (fake_entry(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count !=
		    fake_entry(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count)
			status = fake_fail(CUDNN_STATUS_BAD_PARAM, "ptrs_count != uids_count");
		break;
	default:
		status = fake_read(d);
	}
	d->finalized = status == CUDNN_STATUS_SUCCESS;
	return status;
}

/* Fills an array of the caller's descriptors with an engine's configuration, or with its engine. */
static int give_engines(const struct fake_descriptor *d, int type, int64_t room, int64_t *count,
			struct fake_descriptor **elements)
{
	const struct fake_engine *engines[ENGINES_MAX] = {d->engine};
	int found = 1;

	if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
		found = fake_engines(&d->problem, fake_word(d, CUDNN_ATTR_ENGINEHEUR_MODE, 0),
				     engines, ENGINES_MAX);
	*count = elements && room < found ? room : found;
	for (int i = 0; elements && i < *count; i++) {
		struct fake_descriptor *to = find(elements[i]);

		if (!to || to->type != type || to->finalized)
			return fake_fail(CUDNN_STATUS_BAD_PARAM,
					 "an element is no new descriptor of its type");
		to->problem = d->problem;
		to->engine = engines[i];
		to->finalized = true;
	}
	return CUDNN_STATUS_SUCCESS;
}

static int give(const void *from, int64_t have, size_t width, int64_t room, int64_t *count,
		void *elements)
{
	*count = elements && room < have ? room : have;
	if (elements)
		memcpy(elements, from, (size_t)*count * width);
	return CUDNN_STATUS_SUCCESS;
}

FAKE_EXPORT int cudnnBackendGetAttribute(cudnn_descriptor descriptor, int attribute, int type,
					 int64_t room, int64_t *count, void *elements)
{
	const struct fake_descriptor *d = find(descriptor);
	const struct row *row = d ? row_of(d, attribute) : NULL;
	int64_t number, unused;

	if (!d || !row || row->use != RESULT)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "no such attribute to get");
	if (!d->finalized)
		return fake_fail(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is not finalised");
	if (type != row->type)
		return fake_fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
				 "wrong type of the elements");
	count = count ? count : &unused;
	switch (attribute) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS:
		return give_engines(d, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, room, count, elements);
	case CUDNN_ATTR_ENGINECFG_ENGINE:
		return give_engines(d, CUDNN_BACKEND_ENGINE_DESCRIPTOR, room, count, elements);
	case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
		number = d->engine->id;
		return give(&number, 1, sizeof(number), room, count, elements);
	case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
		return give(d->engine->notes, d->engine->note_count, sizeof(int), room, count,
			    elements);
	case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
		return give(NULL, 0, sizeof(int), 0, count, NULL);
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
		number = fake_workspace(&d->problem, d->engine);
		return give(&number, 1, sizeof(number), room, count, elements);
	default: /* a text; cuDNN counts no terminating NUL */
		return give(d->text, (int64_t)strlen(d->text), 1, room, count, elements);
	}
}

FAKE_EXPORT size_t cudnnGetVersion(void)
{
	return FAKE_VERSION;
}

FAKE_EXPORT const char *cudnnGetErrorString(int status)
{
	return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS"
					      : "an error of the fake cuDNN";
}

FAKE_EXPORT void cudnnGetLastErrorString(char *message, size_t max_size)
{
	snprintf(message, max_size, "%s", last_error);
}

FAKE_EXPORT int cudnnCreate(cudnn_handle *handle)
{
	struct fake_handle *h;

	if (!fake_has_context())
		return fake_fail(CUDNN_STATUS_NOT_INITIALIZED, "no current context of a driver");
	h = memory_alloc(sizeof(*h));
	*h = (struct fake_handle){.stream = NULL};
	*handle = h;
	return CUDNN_STATUS_SUCCESS;
}

FAKE_EXPORT int cudnnDestroy(cudnn_handle handle)
{
	free(handle);
	return CUDNN_STATUS_SUCCESS;
}

FAKE_EXPORT int cudnnSetStream(cudnn_handle handle, void *stream)
{
	((struct fake_handle *)handle)->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

void *fake_pointer(const struct fake_descriptor *pack, int64_t uid)
{
	const struct fake_entry *ids = fake_entry(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	void *const *pointers = fake_entry(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->data;

	for (int64_t i = 0; i < ids->count; i++)
		if (((int64_t *)ids->data)[i] == uid)
			return pointers[i];
	return NULL;
}

FAKE_EXPORT int cudnnBackendExecute(cudnn_handle handle, cudnn_descriptor plan,
				    cudnn_descriptor variant_pack)
{
	const struct fake_descriptor *d = find(plan), *pack = find(variant_pack);
	const struct fake_tensor *tensors[FAKE_OPERANDS];
	const struct fake_entry *entry;
	void *data[FAKE_OPERANDS] = {NULL}, *workspace;
	int64_t needed;
	int count;

	if (!handle || !d || d->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || !pack ||
	    pack->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "no such handle, plan or pack");
	if (!d->finalized || !pack->finalized)
		return fake_fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "plan or pack");
	entry = fake_entry(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
	workspace = entry ? *(void **)entry->data : NULL;
	needed = fake_workspace(&d->problem, d->engine);
	if (needed > 0 && !fake_cuda_is_device(workspace, (size_t)needed))
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "the workspace is missing or too small");
	if (d->problem.network.operation_count > 0)
		return fake_network_run(handle, &d->problem.network, pack, workspace, needed);
	count = fake_operands(&d->problem, tensors);
	for (int i = 0; i < count; i++) {
		data[i] = fake_pointer(pack, tensors[i]->uid);
		if (!data[i] || (uintptr_t)data[i] % (uintptr_t)tensors[i]->alignment)
			return fake_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
					 "a tensor has no pointer, or one that is not aligned");
		if (!fake_cuda_is_device(data[i], (size_t)fake_extent(tensors[i])))
			return fake_fail(
				CUDNN_STATUS_BAD_PARAM,
				"a tensor reaches beyond the device memory at its pointer");
	}
	return fake_run(handle, &d->problem, d->engine, data, workspace)
		       ? CUDNN_STATUS_SUCCESS
		       : fake_fail(CUDNN_STATUS_EXECUTION_FAILED, "the driver refused the work");
}
