#include "adapters/native/cuda/conv_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { SPATIAL = 2, RANK = 4 };

/* Names of tensors within a graph. Kept plans have them: do not renumber. */
enum uid { UID_X = 1, UID_W, UID_Y, UID_BIAS, UID_Z, UID_PRODUCT, UID_SUM, UID_BIASED };

/* How many configurations of one mode of the heuristics are looked at, and how many of the allowed
 * ones are measured where there is a device: on an H200 the first was up to 8 % slower than another
 * one. */
enum { CONFIGURATIONS_MAX = 64, MEASURED_MAX = 32 };

/* Descriptors of a plan in the making: keeps the first failure and ignores later calls. */
struct build {
	const struct cudnn *cudnn;
	struct conv_plan *plan; /* owns the descriptors */
	int status;
	const char *what; /* what failed */
};

static cudnn_descriptor make(struct build *b, int type)
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

static void set(struct build *b, cudnn_descriptor descriptor, int attribute, int type,
		int64_t count, const void *elements)
{
	if (b->status == CUDNN_STATUS_SUCCESS)
		b->status =
			b->cudnn->BackendSetAttribute(descriptor, attribute, type, count, elements);
}

static void set_part(struct build *b, cudnn_descriptor descriptor, int attribute,
		     cudnn_descriptor part)
{
	set(b, descriptor, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

static void finalise(struct build *b, cudnn_descriptor descriptor, const char *what)
{
	if (b->status == CUDNN_STATUS_SUCCESS) {
		b->what = what;
		b->status = b->cudnn->BackendFinalize(descriptor);
	}
}

static int data_type(enum dtype type)
{
	return type == DTYPE_F16    ? CUDNN_DATA_HALF
	       : type == DTYPE_BF16 ? CUDNN_DATA_BFLOAT16
				    : CUDNN_DATA_FLOAT;
}

static cudnn_descriptor tensor(struct build *b, enum uid uid, enum dtype type,
			       const int64_t dims[RANK], bool channels_last, bool is_virtual)
{
	int64_t id = uid, alignment = CONV_ALIGNMENT;
	int64_t strides[RANK] = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
	int code = data_type(type);
	cudnn_descriptor made = make(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

	if (channels_last) {
		strides[1] = 1;
		strides[2] = dims[3] * dims[1];
		strides[3] = dims[1];
	}
	set(b, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
	set(b, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &code);
	set(b, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, RANK, dims);
	set(b, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, RANK, strides);
	set(b, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
	set(b, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
	finalise(b, made, "tensor");
	return made;
}

static cudnn_descriptor window(struct build *b, const struct conv_problem *problem)
{
	int type = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
	int64_t spatial = SPATIAL;
	cudnn_descriptor made = make(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

	set(b, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(b, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	set(b, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
	set(b, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, SPATIAL,
	    problem->before);
	set(b, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, SPATIAL,
	    problem->after);
	set(b, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, SPATIAL,
	    problem->strides);
	set(b, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, SPATIAL,
	    problem->dilations);
	finalise(b, made, "window");
	return made;
}

static cudnn_descriptor convolution(struct build *b, const struct conv_problem *problem,
				    cudnn_descriptor x, cudnn_descriptor w, cudnn_descriptor y)
{
	static const struct {
		int type, window, x, w, y, alpha, beta;
	} forms[] = {
		[CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
				  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
				  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
				  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
				  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
				  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
				  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
		[CONV_GRAD_INPUT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
				     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
				     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
				     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
				     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
				     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
				     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
		[CONV_GRAD_WEIGHT] =
			{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
			 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
			 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
			 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
			 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
			 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
			 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
	};
	const float one = 1, zero = 0;
	cudnn_descriptor of = window(b, problem), made = make(b, forms[problem->kind].type);

	set_part(b, made, forms[problem->kind].window, of);
	set_part(b, made, forms[problem->kind].x, x);
	set_part(b, made, forms[problem->kind].w, w);
	set_part(b, made, forms[problem->kind].y, y);
	set(b, made, forms[problem->kind].alpha, CUDNN_TYPE_FLOAT, 1, &one);
	set(b, made, forms[problem->kind].beta, CUDNN_TYPE_FLOAT, 1, &zero);
	finalise(b, made, "convolution");
	return made;
}

/* y = mode(x, second), the second term being optional. */
static cudnn_descriptor pointwise(struct build *b, int mode, cudnn_descriptor x,
				  cudnn_descriptor second, cudnn_descriptor y)
{
	int type = CUDNN_DATA_FLOAT;
	cudnn_descriptor how = make(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), made;

	set(b, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	set(b, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
	finalise(b, how, "function");
	made = make(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	set_part(b, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
	set_part(b, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (second)
		set_part(b, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, second);
	set_part(b, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	finalise(b, made, "function of the result");
	return made;
}

/* Appends y = mode(*result, second) to the graph; *result becomes the new value: y after the last
 * operation, else a virtual tensor. */
static cudnn_descriptor append(struct build *b, const struct conv_problem *problem, int mode,
			       cudnn_descriptor *result, cudnn_descriptor second, enum uid uid,
			       cudnn_descriptor y)
{
	cudnn_descriptor next =
		uid == UID_Y ? y
			     : tensor(b, uid, DTYPE_F32, problem->y, problem->channels_last, true);
	cudnn_descriptor made = pointwise(b, mode, *result, second, next);

	*result = next;
	return made;
}

/* Builds the graph: the convolution, then sum, bias and ReLU. */
static cudnn_descriptor graph(struct build *b, const struct conv_planner *planner,
			      const struct conv_problem *problem)
{
	const int64_t row[RANK] = {1, problem->y[1], 1, 1};
	bool last = problem->channels_last;
	cudnn_descriptor operations[4], made;
	cudnn_descriptor x = tensor(b, UID_X, problem->type, problem->x, last, false);
	cudnn_descriptor w = tensor(b, UID_W, problem->w_type, problem->w, last, false);
	cudnn_descriptor y = tensor(b, UID_Y, problem->type, problem->y, last, false);
	cudnn_descriptor result =
		problem->bias ? tensor(b, UID_PRODUCT, DTYPE_F32, problem->y, last, true) : y;
	int count = 0;

	operations[count++] = convolution(b, problem, x, w, result);
	if (problem->sum)
		operations[count++] = append(
			b, problem, CUDNN_POINTWISE_ADD, &result,
			tensor(b, UID_Z, problem->type, problem->y, last, false), UID_SUM, y);
	if (problem->bias)
		operations[count++] = append(b, problem, CUDNN_POINTWISE_ADD, &result,
					     tensor(b, UID_BIAS, problem->type, row, last, false),
					     problem->relu ? UID_BIASED : UID_Y, y);
	if (problem->relu)
		operations[count++] =
			append(b, problem, CUDNN_POINTWISE_RELU_FWD, &result, NULL, UID_Y, y);
	made = make(b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	set(b, made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
	    operations);
	if (planner->handle)
		set(b, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
		    &planner->handle);
	finalise(b, made, "graph");
	return made;
}

/* The engine of a configuration and its notes. */
static void look_up_engine(const struct cudnn *cudnn, cudnn_descriptor configuration,
			   struct conv_plan *plan)
{
	cudnn_descriptor engine = NULL;
	int notes[CUDNN_NUMERICAL_NOTES];
	int64_t count = 0;

	plan->engine = -1;
	plan->notes = ~0u; /* an engine without an answer counts as not strict */
	if (cudnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
	    CUDNN_STATUS_SUCCESS)
		return;
	if (cudnn->BackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
				       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
				       &engine) == CUDNN_STATUS_SUCCESS &&
	    cudnn->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
				       &count, &plan->engine) == CUDNN_STATUS_SUCCESS &&
	    cudnn->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
				       CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTES, &count,
				       notes) == CUDNN_STATUS_SUCCESS) {
		plan->notes = 0;
		for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTES; i++)
			plan->notes |= 1u << notes[i];
	}
	(void)cudnn->BackendDestroyDescriptor(engine);
}

static bool allowed(const struct conv_problem *problem, const struct conv_plan *plan)
{
	return !(plan->notes & conv_forbidden_notes(problem)) &&
	       !(problem->strict && plan->engine == CONV_ENGINE_INEXACT);
}

void conv_plan_release(const struct cudnn *cudnn, struct conv_plan *plan)
{
	while (plan->part_count > 0)
		(void)cudnn->BackendDestroyDescriptor(plan->parts[--plan->part_count]);
	plan->execution = NULL;
}

static int64_t workspace(const struct cudnn *cudnn, cudnn_descriptor execution)
{
	int64_t count, bytes = -1;

	if (cudnn->BackendGetAttribute(execution, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
				       CUDNN_TYPE_INT64, 1, &count, &bytes) != CUDNN_STATUS_SUCCESS)
		return -1;
	return bytes;
}

/* Finalises a plan whose attributes are set, and asks for its workspace, which may differ from that
 * of the device for which a kept plan was made. */
static bool finish(const struct conv_planner *planner, struct build *b, struct conv_plan *out)
{
	finalise(b, out->execution, "plan");
	if (b->status == CUDNN_STATUS_SUCCESS)
		out->workspace = workspace(planner->cudnn, out->execution);
	if (b->status == CUDNN_STATUS_SUCCESS && out->workspace >= 0 &&
	    out->workspace <= CONV_WORKSPACE_BYTES)
		return true;
	conv_plan_release(planner->cudnn, out);
	return false;
}

/* Finalises an allowed configuration; false if the library cannot, or if the workspace is too
 * large. */
static bool try_plan(const struct conv_planner *planner, const struct conv_problem *problem,
		     cudnn_descriptor configuration, struct conv_plan *out)
{
	struct build b = {.cudnn = planner->cudnn, .plan = out};

	*out = (struct conv_plan){.engine = -1};
	look_up_engine(planner->cudnn, configuration, out);
	if (!allowed(problem, out))
		return false;
	out->execution = make(&b, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	set_part(&b, out->execution, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
	if (planner->handle)
		set(&b, out->execution, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
		    &planner->handle);
	else
		set_part(&b, out->execution, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, planner->device);
	return finish(planner, &b, out);
}

/* The configurations that one mode of the heuristics names, best first. The descriptors belong to
 * the caller; those beyond the result's count hold nothing. */
static int heuristics(const struct conv_planner *planner, cudnn_descriptor of, int mode,
		      cudnn_descriptor made[CONFIGURATIONS_MAX], int *made_count)
{
	struct conv_plan parts = {0};
	struct build b = {.cudnn = planner->cudnn, .plan = &parts};
	cudnn_descriptor asked = make(&b, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	int64_t count = 0;

	*made_count = 0;
	set_part(&b, asked, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, of);
	set(&b, asked, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	if (!planner->handle)
		set_part(&b, asked, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, planner->device);
	finalise(&b, asked, "heuristics");
	if (b.status == CUDNN_STATUS_SUCCESS)
		b.status = planner->cudnn->BackendGetAttribute(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS,
							       CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
							       &count, NULL);
	if (count > CONFIGURATIONS_MAX)
		count = CONFIGURATIONS_MAX;
	for (; b.status == CUDNN_STATUS_SUCCESS && *made_count < count; (*made_count)++)
		b.status = planner->cudnn->BackendCreateDescriptor(
			CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &made[*made_count]);
	if (b.status == CUDNN_STATUS_SUCCESS && count > 0)
		b.status = planner->cudnn->BackendGetAttribute(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS,
							       CUDNN_TYPE_BACKEND_DESCRIPTOR,
							       *made_count, &count, made);
	conv_plan_release(planner->cudnn, &parts);
	return b.status == CUDNN_STATUS_SUCCESS ? (int)count : 0;
}

/* Allowed plans, best first by the heuristics. */
struct search {
	const struct conv_planner *planner;
	const struct conv_problem *problem;
	struct conv_plan found[MEASURED_MAX];
	int count, wanted;
};

static void search_mode(struct search *s, cudnn_descriptor of, int mode)
{
	const struct cudnn *cudnn = s->planner->cudnn;
	cudnn_descriptor made[CONFIGURATIONS_MAX];
	int made_count, count = heuristics(s->planner, of, mode, made, &made_count);

	for (int i = 0; i < made_count; i++) {
		struct conv_plan *plan = &s->found[s->count];

		if (i < count && s->count < s->wanted &&
		    try_plan(s->planner, s->problem, made[i], plan)) {
			plan->parts[plan->part_count++] = made[i];
			s->count++;
		} else {
			(void)cudnn->BackendDestroyDescriptor(made[i]);
		}
	}
}

/* Measures the plans found and returns the index of the best: the fastest of those that are exact
 * enough, else the most exact; -1 if none runs. */
static int measure(struct search *s, struct error *err)
{
	int best = -1;

	/* There may be no memory to measure: the heuristics' order then counts. */
	if (s->planner->measure(s->planner->context, s->problem, s->found, s->count, err) !=
	    PRONY_OK) {
		error_clear(err);
		return 0;
	}
	for (int i = 0; i < s->count; i++) {
		const struct conv_plan *plan = &s->found[i];
		const struct conv_plan *other = best < 0 ? NULL : &s->found[best];

		if (plan->ms > 0 && (!other || (plan->error > CONV_STRICT_ERROR_MAX ||
								other->error > CONV_STRICT_ERROR_MAX
							? plan->error < other->error
							: plan->ms < other->ms)))
			best = i;
	}
	return best;
}

/* Finds the plan for a finalised graph. */
static enum prony_status search(struct search *s, cudnn_descriptor of, const char *name,
				struct conv_plan *out, struct error *err)
{
	static const int modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK};
	int best = 0;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && s->count == 0; i++)
		search_mode(s, of, modes[i]);
	if (s->count == 0)
		return error_set(err, PRONY_UNSUPPORTED,
				 "cuDNN has no %sengine within %lld MiB of workspace for the %s of "
				 "'%s'",
				 s->problem->strict ? "strict fp32 " : "",
				 (long long)(CONV_WORKSPACE_BYTES >> 20),
				 conv_kind_word(s->problem->kind), name);
	if (s->planner->measure)
		best = measure(s, err);
	for (int i = 0; i < s->count; i++) {
		if (i != best)
			conv_plan_release(s->planner->cudnn, &s->found[i]);
	}
	if (best < 0)
		return error_set(err, PRONY_INTERNAL,
				 "none of cuDNN's plans for the %s of '%s' runs",
				 conv_kind_word(s->problem->kind), name);
	*out = s->found[best];
	return PRONY_OK;
}

static enum prony_status make_new(const struct conv_planner *planner,
				  const struct conv_problem *problem, const char *name,
				  struct conv_plan *out, struct error *err)
{
	struct conv_plan parts = {0}; /* of the graph */
	struct build b = {.cudnn = planner->cudnn, .plan = &parts};
	struct search s = {.planner = planner,
			   .problem = problem,
			   .wanted = planner->measure ? MEASURED_MAX : 1};
	cudnn_descriptor of = graph(&b, planner, problem);
	enum prony_status status = cudnn_check(planner->cudnn, b.status, b.what, name, err);

	if (status == PRONY_OK)
		status = search(&s, of, name, out, err);
	if (status != PRONY_OK) {
		conv_plan_release(planner->cudnn, &parts);
		return status;
	}
	/* A plan may refer to its graph as long as it is used. */
	memcpy(out->parts + out->part_count, parts.parts,
	       (size_t)parts.part_count * sizeof(parts.parts[0]));
	out->part_count += parts.part_count;
	return PRONY_OK;
}

/* Loads a plan; false if the library does not take it. */
static bool load(const struct conv_planner *planner, const char *json, struct conv_plan *out)
{
	struct build b = {.cudnn = planner->cudnn, .plan = out};

	*out = (struct conv_plan){.engine = -1};
	out->execution = make(&b, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	set(&b, out->execution, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
	    &planner->handle);
	set(&b, out->execution, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
	    (int64_t)strlen(json), json);
	return finish(planner, &b, out);
}

enum prony_status conv_plan_make(const struct conv_planner *planner,
				 const struct conv_problem *problem, const char *name,
				 struct conv_plan *out, struct error *err)
{
	char key[CONV_KEY_BYTES], *json;
	const char *kept;
	double ms = 0, error = 0;
	enum prony_status status;

	conv_problem_key(problem, key);
	kept = planner->cache && planner->handle ? plan_cache_find(planner->cache, key, &ms, &error)
						 : NULL;
	/* A kept plan that was not measured has no advantage over the heuristics' first one. */
	if (kept && (ms > 0 || !planner->measure) && load(planner, kept, out)) {
		out->ms = (float)ms;
		out->error = error;
		return PRONY_OK;
	}
	status = make_new(planner, problem, name, out, err);
	if (status != PRONY_OK || !planner->cache)
		return status;
	json = conv_plan_json(planner->cudnn, out);
	if (json)
		plan_cache_add(planner->cache, key, json, (double)out->ms, out->error);
	free(json);
	return PRONY_OK;
}

char *conv_plan_json(const struct cudnn *cudnn, const struct conv_plan *plan)
{
	int64_t bytes = 0;
	char *json;

	if (cudnn->BackendGetAttribute(plan->execution,
				       CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
				       CUDNN_TYPE_CHAR, 0, &bytes, NULL) != CUDNN_STATUS_SUCCESS ||
	    bytes <= 0)
		return NULL;
	json = memory_alloc((size_t)bytes + 1);
	if (cudnn->BackendGetAttribute(
		    plan->execution, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
		    bytes, &bytes, json) == CUDNN_STATUS_SUCCESS) {
		json[bytes] = '\0';
		return json;
	}
	free(json);
	return NULL;
}

enum prony_status conv_plan_run(const struct cudnn *cudnn, cudnn_handle handle,
				const struct conv_problem *problem, const struct conv_plan *plan,
				const struct conv_data *data, const char *name, struct error *err)
{
	int64_t ids[] = {UID_X, UID_W, UID_Y, UID_Z, UID_BIAS}, count = 3;
	void *addresses[] = {data->x, data->w, data->y, data->z, data->bias};
	struct conv_plan parts = {0};
	struct build b = {.cudnn = cudnn, .plan = &parts};
	cudnn_descriptor pack = make(&b, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	enum prony_status status;

	if (problem->sum)
		count++;
	if (problem->bias) {
		ids[count] = UID_BIAS;
		addresses[count++] = data->bias;
	}
	set(&b, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
	set(&b, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses);
	set(&b, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &data->workspace);
	finalise(&b, pack, "arguments");
	if (b.status == CUDNN_STATUS_SUCCESS) {
		b.what = conv_kind_word(problem->kind);
		b.status = cudnn->BackendExecute(handle, plan->execution, pack);
	}
	status = cudnn_check(cudnn, b.status, b.what, name, err);
	conv_plan_release(cudnn, &parts);
	return status;
}

enum prony_status conv_device(const struct cudnn *cudnn, const char *json, cudnn_descriptor *out,
			      struct error *err)
{
	struct conv_plan parts = {0};
	struct build b = {.cudnn = cudnn, .plan = &parts};
	cudnn_descriptor made = make(&b, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
	enum prony_status status;

	set(&b, made, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
	    (int64_t)strlen(json), json);
	finalise(&b, made, "description");
	status = cudnn_check(cudnn, b.status, b.what, "device", err);
	if (status == PRONY_OK)
		*out = made;
	else
		conv_plan_release(cudnn, &parts);
	return status;
}
