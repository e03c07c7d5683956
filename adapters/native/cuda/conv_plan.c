#include "adapters/native/cuda/conv_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { SPATIAL = 2, RANK = 4 };

/* Names of tensors within a graph. Kept plans have them: do not renumber. */
enum uid { UID_X = 1, UID_W, UID_Y, UID_BIAS, UID_Z, UID_PRODUCT, UID_SUM, UID_BIASED };

/* How many of the allowed configurations are measured where there is a device: on an H200 the first
 * was up to 8 % slower than another one. */
enum { MEASURED_MAX = 32 };

static cudnn_descriptor tensor(struct plan_build *b, enum uid uid, enum dtype type,
			       const int64_t dims[RANK], bool channels_last, bool is_virtual)
{
	struct plan_tensor t = {
		.uid = uid,
		.type = plan_data_type(type),
		.is_virtual = is_virtual,
		.strides = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}};

	memcpy(t.dims, dims, sizeof(t.dims));
	if (channels_last) {
		t.strides[1] = 1;
		t.strides[2] = dims[3] * dims[1];
		t.strides[3] = dims[1];
	}
	return plan_tensor(b, &t);
}

static cudnn_descriptor window(struct plan_build *b, const struct conv_problem *problem)
{
	int type = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
	int64_t spatial = SPATIAL;
	cudnn_descriptor made = plan_part(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

	plan_set(b, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	plan_set(b, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	plan_set(b, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
	plan_set(b, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, SPATIAL,
		 problem->before);
	plan_set(b, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, SPATIAL,
		 problem->after);
	plan_set(b, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, SPATIAL,
		 problem->strides);
	plan_set(b, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, SPATIAL,
		 problem->dilations);
	plan_finalise(b, made, "window");
	return made;
}

static cudnn_descriptor convolution(struct plan_build *b, const struct conv_problem *problem,
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
	cudnn_descriptor of = window(b, problem), made = plan_part(b, forms[problem->kind].type);

	plan_set_part(b, made, forms[problem->kind].window, of);
	plan_set_part(b, made, forms[problem->kind].x, x);
	plan_set_part(b, made, forms[problem->kind].w, w);
	plan_set_part(b, made, forms[problem->kind].y, y);
	plan_set(b, made, forms[problem->kind].alpha, CUDNN_TYPE_FLOAT, 1, &one);
	plan_set(b, made, forms[problem->kind].beta, CUDNN_TYPE_FLOAT, 1, &zero);
	plan_finalise(b, made, "convolution");
	return made;
}

/* Appends y = mode(*result, second) to the graph; *result becomes the new value: y after the last
 * operation, else a virtual tensor. */
static cudnn_descriptor append(struct plan_build *b, const struct conv_problem *problem, int mode,
			       cudnn_descriptor *result, cudnn_descriptor second, enum uid uid,
			       cudnn_descriptor y)
{
	cudnn_descriptor next =
		uid == UID_Y ? y
			     : tensor(b, uid, DTYPE_F32, problem->y, problem->channels_last, true);
	cudnn_descriptor made = plan_pointwise(
		b,
		&(struct plan_function){.mode = mode, .x = *result, .second = second, .y = next});

	*result = next;
	return made;
}

/* Builds the graph: the convolution, then sum, bias and ReLU. */
static cudnn_descriptor graph(struct plan_build *b, const struct conv_planner *planner,
			      const struct conv_problem *problem)
{
	const int64_t row[RANK] = {1, problem->y[1], 1, 1};
	bool last = problem->channels_last;
	cudnn_descriptor operations[4];
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
	return plan_graph(b, planner->handle, operations, count);
}

/* The engine of a configuration and its notes. */
static void look_up_engine(const struct cudnn *cudnn, cudnn_descriptor configuration,
			   struct cudnn_plan *plan)
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

static bool allowed(const struct conv_problem *problem, const struct cudnn_plan *plan)
{
	return !(plan->notes & conv_forbidden_notes(problem)) &&
	       !(problem->strict && plan->engine == CONV_ENGINE_INEXACT);
}

/* Finalises an allowed configuration; false if the library cannot, or if the workspace is too
 * large. */
static bool try_plan(const struct conv_planner *planner, const struct conv_problem *problem,
		     cudnn_descriptor configuration, struct cudnn_plan *out)
{
	struct plan_build b = {.cudnn = planner->cudnn, .plan = out};

	*out = (struct cudnn_plan){.engine = -1};
	look_up_engine(planner->cudnn, configuration, out);
	if (!allowed(problem, out))
		return false;
	plan_of_configuration(&b, planner->handle, planner->device, configuration);
	return plan_finish(&b, CONV_WORKSPACE_BYTES);
}

/* Allowed plans, best first by the heuristics. */
struct search {
	const struct conv_planner *planner;
	const struct conv_problem *problem;
	struct cudnn_plan found[MEASURED_MAX];
	int count, wanted;
};

static void search_mode(struct search *s, cudnn_descriptor of, int mode)
{
	const struct cudnn *cudnn = s->planner->cudnn;
	cudnn_descriptor made[PLAN_CONFIGURATIONS_MAX];
	int made_count,
		count = plan_heuristics(cudnn, s->planner->handle ? NULL : s->planner->device, of,
					mode, made, &made_count);

	for (int i = 0; i < made_count; i++) {
		struct cudnn_plan *plan = &s->found[s->count];

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
		const struct cudnn_plan *plan = &s->found[i];
		const struct cudnn_plan *other = best < 0 ? NULL : &s->found[best];

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
				struct cudnn_plan *out, struct error *err)
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
			cudnn_plan_release(s->planner->cudnn, &s->found[i]);
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
				  struct cudnn_plan *out, struct error *err)
{
	struct cudnn_plan parts = {0}; /* of the graph */
	struct plan_build b = {.cudnn = planner->cudnn, .plan = &parts};
	struct search s = {.planner = planner,
			   .problem = problem,
			   .wanted = planner->measure ? MEASURED_MAX : 1};
	cudnn_descriptor of = graph(&b, planner, problem);
	enum prony_status status = cudnn_check(planner->cudnn, b.status, b.what, name, err);

	if (status == PRONY_OK)
		status = search(&s, of, name, out, err);
	if (status != PRONY_OK) {
		cudnn_plan_release(planner->cudnn, &parts);
		return status;
	}
	/* A plan may refer to its graph as long as it is used. */
	memcpy(out->parts + out->part_count, parts.parts,
	       (size_t)parts.part_count * sizeof(parts.parts[0]));
	out->part_count += parts.part_count;
	return PRONY_OK;
}

/* Loads a plan; false if the library does not take it. */
static bool load(const struct conv_planner *planner, const char *json, struct cudnn_plan *out)
{
	struct plan_build b = {.cudnn = planner->cudnn, .plan = out};

	*out = (struct cudnn_plan){.engine = -1};
	out->execution = plan_part(&b, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	plan_set(&b, out->execution, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
		 &planner->handle);
	plan_set(&b, out->execution, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
		 (int64_t)strlen(json), json);
	return plan_finish(&b, CONV_WORKSPACE_BYTES);
}

enum prony_status conv_plan_make(const struct conv_planner *planner,
				 const struct conv_problem *problem, const char *name,
				 struct cudnn_plan *out, struct error *err)
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

char *conv_plan_json(const struct cudnn *cudnn, const struct cudnn_plan *plan)
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
				const struct conv_problem *problem, const struct cudnn_plan *plan,
				const struct conv_data *data, const char *name, struct error *err)
{
	int64_t ids[] = {UID_X, UID_W, UID_Y, UID_Z, UID_BIAS}, count = 3;
	void *addresses[] = {data->x, data->w, data->y, data->z, data->bias};

	if (problem->sum)
		count++;
	if (problem->bias) {
		ids[count] = UID_BIAS;
		addresses[count++] = data->bias;
	}
	return plan_run(cudnn, handle, plan, ids, addresses, count, data->workspace,
			conv_kind_word(problem->kind), name, err);
}

enum prony_status conv_device(const struct cudnn *cudnn, const char *json, cudnn_descriptor *out,
			      struct error *err)
{
	struct cudnn_plan parts = {0};
	struct plan_build b = {.cudnn = cudnn, .plan = &parts};
	cudnn_descriptor made = plan_part(&b, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
	enum prony_status status;

	plan_set(&b, made, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
		 (int64_t)strlen(json), json);
	plan_finalise(&b, made, "description");
	status = cudnn_check(cudnn, b.status, b.what, "device", err);
	if (status == PRONY_OK)
		*out = made;
	else
		cudnn_plan_release(cudnn, &parts);
	return status;
}
