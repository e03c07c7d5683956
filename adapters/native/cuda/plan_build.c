#include "adapters/native/cuda/plan_build.h"

cudnn_descriptor plan_part(struct plan_build *b, int type)
{
	cudnn_descriptor made = NULL;

	if (b->status != CUDNN_STATUS_SUCCESS)
		return NULL;
	b->what = "descriptor";
	b->status = b->cudnn->BackendCreateDescriptor(type, &made);
	if (b->status == CUDNN_STATUS_SUCCESS)
		b->plan->parts[b->plan->part_count++] = made;
	return made;
}

void plan_set(struct plan_build *b, cudnn_descriptor descriptor, int attribute, int type,
	      int64_t count, const void *elements)
{
	if (b->status == CUDNN_STATUS_SUCCESS)
		b->status =
			b->cudnn->BackendSetAttribute(descriptor, attribute, type, count, elements);
}

void plan_set_part(struct plan_build *b, cudnn_descriptor descriptor, int attribute,
		   cudnn_descriptor part)
{
	plan_set(b, descriptor, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

void plan_finalise(struct plan_build *b, cudnn_descriptor descriptor, const char *what)
{
	if (b->status == CUDNN_STATUS_SUCCESS) {
		b->what = what;
		b->status = b->cudnn->BackendFinalize(descriptor);
	}
}

int plan_data_type(enum dtype type)
{
	return type == DTYPE_F16    ? CUDNN_DATA_HALF
	       : type == DTYPE_BF16 ? CUDNN_DATA_BFLOAT16
				    : CUDNN_DATA_FLOAT;
}

cudnn_descriptor plan_tensor(struct plan_build *b, const struct plan_tensor *t)
{
	int64_t alignment = PLAN_ALIGNMENT;
	cudnn_descriptor made = plan_part(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

	plan_set(b, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t->uid);
	plan_set(b, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
	plan_set(b, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t->dims);
	plan_set(b, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, t->strides);
	plan_set(b, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
	plan_set(b, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &t->is_virtual);
	if (t->by_value)
		plan_set(b, made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1,
			 &t->by_value);
	plan_finalise(b, made, "tensor");
	return made;
}

cudnn_descriptor plan_pointwise(struct plan_build *b, const struct plan_function *f)
{
	cudnn_descriptor how = plan_part(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), made;

	plan_set(b, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &f->mode);
	plan_set(b, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &f->math);
	if (f->mode == CUDNN_POINTWISE_GEN_INDEX)
		plan_set(b, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &f->axis);
	plan_finalise(b, how, "function");
	made = plan_part(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	plan_set_part(b, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
	plan_set_part(b, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, f->x);
	if (f->second)
		plan_set_part(b, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, f->second);
	if (f->third)
		plan_set_part(b, made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, f->third);
	plan_set_part(b, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, f->y);
	plan_finalise(b, made, "function of the result");
	return made;
}

cudnn_descriptor plan_graph(struct plan_build *b, cudnn_handle handle,
			    const cudnn_descriptor *operations, int64_t count)
{
	cudnn_descriptor made = plan_part(b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

	plan_set(b, made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
		 operations);
	if (handle)
		plan_set(b, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	plan_finalise(b, made, "graph");
	return made;
}

void cudnn_plan_release(const struct cudnn *cudnn, struct cudnn_plan *plan)
{
	while (plan->part_count > 0)
		(void)cudnn->BackendDestroyDescriptor(plan->parts[--plan->part_count]);
	plan->execution = NULL;
}

int plan_heuristics(const struct cudnn *cudnn, cudnn_descriptor device, cudnn_descriptor graph,
		    int mode, cudnn_descriptor made[PLAN_CONFIGURATIONS_MAX], int *made_count)
{
	struct cudnn_plan parts = {0};
	struct plan_build b = {.cudnn = cudnn, .plan = &parts};
	cudnn_descriptor asked = plan_part(&b, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	int64_t count = 0;

	*made_count = 0;
	plan_set_part(&b, asked, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	plan_set(&b, asked, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	if (device)
		plan_set_part(&b, asked, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
	plan_finalise(&b, asked, "heuristics");
	if (b.status == CUDNN_STATUS_SUCCESS)
		b.status =
			cudnn->BackendGetAttribute(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS,
						   CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL);
	if (count > PLAN_CONFIGURATIONS_MAX)
		count = PLAN_CONFIGURATIONS_MAX;
	for (; b.status == CUDNN_STATUS_SUCCESS && *made_count < count; (*made_count)++)
		b.status = cudnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
							  &made[*made_count]);
	if (b.status == CUDNN_STATUS_SUCCESS && count > 0)
		b.status = cudnn->BackendGetAttribute(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS,
						      CUDNN_TYPE_BACKEND_DESCRIPTOR, *made_count,
						      &count, made);
	cudnn_plan_release(cudnn, &parts);
	return b.status == CUDNN_STATUS_SUCCESS ? (int)count : 0;
}

void plan_of_configuration(struct plan_build *b, cudnn_handle handle, cudnn_descriptor device,
			   cudnn_descriptor configuration)
{
	cudnn_descriptor made = plan_part(b, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);

	plan_set_part(b, made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
	if (handle)
		plan_set(b, made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	else
		plan_set_part(b, made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
	b->plan->execution = made;
}

bool plan_finish(struct plan_build *b, int64_t most)
{
	struct cudnn_plan *plan = b->plan;
	int64_t count;

	plan_finalise(b, plan->execution, "plan");
	if (b->status == CUDNN_STATUS_SUCCESS)
		b->status = b->cudnn->BackendGetAttribute(
			plan->execution, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
			1, &count, &plan->workspace);
	if (b->status == CUDNN_STATUS_SUCCESS && plan->workspace >= 0 && plan->workspace <= most)
		return true;
	cudnn_plan_release(b->cudnn, plan);
	return false;
}

enum prony_status plan_run(const struct cudnn *cudnn, cudnn_handle handle,
			   const struct cudnn_plan *plan, const int64_t *ids,
			   void *const *addresses, int64_t count, void *workspace, const char *what,
			   const char *name, struct error *err)
{
	struct cudnn_plan parts = {0};
	struct plan_build b = {.cudnn = cudnn, .plan = &parts};
	cudnn_descriptor pack = plan_part(&b, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	enum prony_status status;

	plan_set(&b, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
	plan_set(&b, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
		 addresses);
	plan_set(&b, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
	plan_finalise(&b, pack, "arguments");
	if (b.status == CUDNN_STATUS_SUCCESS) {
		b.what = what;
		b.status = cudnn->BackendExecute(handle, plan->execution, pack);
	}
	status = cudnn_check(cudnn, b.status, b.what, name, err);
	cudnn_plan_release(cudnn, &parts);
	return status;
}
