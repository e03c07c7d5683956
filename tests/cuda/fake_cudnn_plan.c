/* The fake of cuDNN: engines, heuristics, workspaces, and plans as text. */
#include "tests/cuda/fake_cudnn.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/cuda/fake_driver.h"

#define ALL_KINDS 7u
#define WEIGHTS (1u << FAKE_GRAD_WEIGHT)

enum {
	TENSOR_CORE = CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
	DOWN = CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
	FFT = CUDNN_NUMERICAL_NOTE_FFT,
	UNORDERED = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
	WINOGRAD = CUDNN_NUMERICAL_NOTE_WINOGRAD,
	TILE = CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
	STRICT_NAN = CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP
};

/*
 * The engines in the order of the heuristics, after what cuDNN 9.19 answers for an H100: in fp32
 * those with tensor cores are first, none without them is for every layout without a workspace,
 * engine 17 bears no note and is wrong. Other numbers are invented.
 */
static const struct fake_engine engines[] = {
	/* fp32 */
	{67, FAKE_TF32, {TENSOR_CORE}, 1, WORKSPACE_IF_PLANAR, true, ALL_KINDS, false},
	{68, FAKE_BF16, {TENSOR_CORE, DOWN}, 2, WORKSPACE_NONE, true, ALL_KINDS, false},
	{4, FAKE_COARSE, {WINOGRAD, TILE}, 2, WORKSPACE_NONE, true, ALL_KINDS, false},
	{5, FAKE_COARSE, {FFT}, 1, WORKSPACE_NONE, true, ALL_KINDS, false},
	{60, FAKE_EXACT, {0}, 0, WORKSPACE_NONE, true, ALL_KINDS, true},
	{61, FAKE_EXACT, {0}, 0, WORKSPACE_HUGE, true, ALL_KINDS, false},
	{17, FAKE_OFF, {0}, 0, WORKSPACE_NONE, true, ALL_KINDS, false},
	{20, FAKE_UNORDERED, {UNORDERED}, 1, WORKSPACE_NONE, true, WEIGHTS, false},
	{70, FAKE_EXACT, {0}, 0, WORKSPACE_IF_LAST, true, ALL_KINDS, false},
	{0, FAKE_EXACT, {STRICT_NAN}, 1, WORKSPACE_NONE, true, ALL_KINDS & ~WEIGHTS, false},
	/* 16 bits */
	{60, FAKE_EXACT, {TENSOR_CORE}, 1, WORKSPACE_NONE, false, ALL_KINDS, true},
	{62, FAKE_EXACT, {TENSOR_CORE}, 1, WORKSPACE_IF_PLANAR, false, ALL_KINDS, false},
	{61, FAKE_EXACT, {TENSOR_CORE}, 1, WORKSPACE_HUGE, false, ALL_KINDS, false},
	{28, FAKE_EXACT, {0}, 0, WORKSPACE_NONE, false, ALL_KINDS, false},
};

enum { ENGINES = sizeof(engines) / sizeof(engines[0]) };

/* Of attention and its gradients. */
static const struct fake_engine network_engine = {
	2, FAKE_EXACT, {TENSOR_CORE}, 1, WORKSPACE_NONE, false, 0, false};

enum { NETWORK_WORKSPACE = 256 };

static bool is_wide(const struct fake_problem *p)
{
	return p->x.type == CUDNN_DATA_FLOAT && p->w.type == CUDNN_DATA_FLOAT &&
	       p->y.type == CUDNN_DATA_FLOAT;
}

int fake_engines(const struct fake_problem *problem, int mode, const struct fake_engine **out,
		 int room)
{
	const char *only = getenv("FAKE_CUDNN_ENGINE");
	bool wide = is_wide(problem);
	int count = 0;

	if (problem->network.operation_count > 0) {
		out[0] = &network_engine;
		return 1;
	}
	/* Seen: no engine cuts off at 0 without a bias before. */
	if ((problem->has_relu || problem->has_sum) && !problem->has_bias)
		return 0;
	if (problem->has_bias && getenv("FAKE_CUDNN_PLAIN"))
		return 0;
	for (int i = 0; i < ENGINES && count < room; i++) {
		const struct fake_engine *e = &engines[i];
		bool tiles = e->note_count == 2 && e->notes[0] == WINOGRAD;

		if (e->wide != wide || !(e->for_kinds & 1u << problem->kind) ||
		    (tiles && (problem->w.dims[2] != 3 || problem->strides[0] != 1)) ||
		    (only && e->id != strtol(only, NULL, 10)) ||
		    (mode == CUDNN_HEUR_MODE_FALLBACK && e->workspace == WORKSPACE_HUGE))
			continue;
		out[count++] = e;
	}
	return count;
}

int64_t fake_workspace(const struct fake_problem *problem, const struct fake_engine *engine)
{
	bool last = problem->x.strides[1] == 1 && problem->y.strides[1] == 1;

	if (problem->network.operation_count > 0)
		return NETWORK_WORKSPACE;
	switch (engine->workspace) {
	case WORKSPACE_NONE:
		return 0;
	case WORKSPACE_HUGE:
		return INT64_C(1) << 40;
	default:
		return last == (engine->workspace == WORKSPACE_IF_LAST)
			       ? fake_extent(&problem->x) + fake_extent(&problem->y) + 131
			       : 0;
	}
}

static json_t *numbers(const int64_t *values, int count)
{
	json_t *list = json_array();

	for (int i = 0; i < count; i++)
		json_array_append_new(list, json_integer(values[i]));
	return list;
}

static json_t *tensor_text(const struct fake_tensor *t)
{
	return json_pack("{s:I, s:i, s:o, s:o, s:I}", "name", (json_int_t)t->uid, "dataType",
			 t->type, "dim", numbers(t->dims, 4), "stride", numbers(t->strides, 4),
			 "ptrAlignment", (json_int_t)t->alignment);
}

char *fake_plan_text(const struct fake_problem *problem, const struct fake_engine *engine,
		     int capability)
{
	const struct fake_problem *p = problem;
	json_t *graph = json_pack(
		"{s:i, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f}", "kind",
		(int)p->kind, "hasRelu", p->has_relu, "hasBias", p->has_bias, "pre",
		numbers(p->pre, 2), "post", numbers(p->post, 2), "stride", numbers(p->strides, 2),
		"dilation", numbers(p->dilations, 2), "X", tensor_text(&p->x), "W",
		tensor_text(&p->w), "Y", tensor_text(&p->y), "alpha", p->alpha, "beta", p->beta);
	json_t *plan;
	char *text;

	/* Seen: plans with code compiled at run time cannot be loaded. */
	if (p->network.operation_count > 0) {
		json_decref(graph);
		return memory_strdup("{}");
	}

	json_object_set_new(graph, "out", tensor_text(&p->out));
	if (p->has_sum)
		json_object_set_new(graph, "z", tensor_text(&p->z));
	if (p->has_bias)
		json_object_set_new(graph, "bias", tensor_text(&p->bias));
	plan = json_pack("{s:i, s:o, s:{s:i}, s:{s:i, s:b}}", "cudnnVersion", FAKE_VERSION,
			 "operationGraph", graph, "GPUProfile", "deviceVer", capability * 10,
			 "engine", "engineId", engine->id, "wide", engine->wide);
	text = json_dumps(plan, JSON_COMPACT);
	json_decref(plan);
	return text;
}

static bool read_numbers(json_t *list, int64_t *out, int count)
{
	for (int i = 0; i < count; i++) {
		json_t *number = json_array_get(list, (size_t)i);

		if (!json_is_integer(number))
			return false;
		out[i] = json_integer_value(number);
	}
	return true;
}

static bool read_tensor(json_t *text, struct fake_tensor *out)
{
	json_int_t uid, alignment;
	json_t *dims, *strides;

	if (json_unpack(text, "{s:I, s:i, s:o, s:o, s:I}", "name", &uid, "dataType", &out->type,
			"dim", &dims, "stride", &strides, "ptrAlignment", &alignment) != 0)
		return false;
	out->uid = uid;
	out->alignment = alignment;
	return read_numbers(dims, out->dims, 4) && read_numbers(strides, out->strides, 4);
}

static bool read_graph(json_t *graph, struct fake_problem *p)
{
	json_t *pre, *post, *strides, *dilations, *x, *w, *y, *out;
	int kind, relu, bias;

	if (json_unpack(graph, "{s:i, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:F, s:F, s:o}",
			"kind", &kind, "hasRelu", &relu, "hasBias", &bias, "pre", &pre, "post",
			&post, "stride", &strides, "dilation", &dilations, "X", &x, "W", &w, "Y",
			&y, "alpha", &p->alpha, "beta", &p->beta, "out", &out) != 0)
		return false;
	p->kind = (enum fake_kind)kind;
	p->has_relu = relu;
	p->has_bias = bias;
	p->has_sum = json_object_get(graph, "z") != NULL;
	return read_numbers(pre, p->pre, 2) && read_numbers(post, p->post, 2) &&
	       read_numbers(strides, p->strides, 2) && read_numbers(dilations, p->dilations, 2) &&
	       read_tensor(x, &p->x) && read_tensor(w, &p->w) && read_tensor(y, &p->y) &&
	       read_tensor(out, &p->out) &&
	       (!p->has_sum || read_tensor(json_object_get(graph, "z"), &p->z)) &&
	       (!bias || read_tensor(json_object_get(graph, "bias"), &p->bias));
}

static const struct fake_engine *find_engine(int id, bool wide)
{
	for (int i = 0; i < ENGINES; i++)
		if (engines[i].id == id && engines[i].wide == wide)
			return &engines[i];
	return NULL;
}

bool fake_plan_read(const char *text, size_t length, int capability, struct fake_problem *problem,
		    const struct fake_engine **engine, char why[128])
{
	json_t *plan = json_loadb(text, length, 0, NULL), *graph;
	int version, device, id, wide;
	bool ok = json_unpack(plan, "{s:i, s:o, s:{s:i}, s:{s:i, s:b}}", "cudnnVersion", &version,
			      "operationGraph", &graph, "GPUProfile", "deviceVer", &device,
			      "engine", "engineId", &id, "wide", &wide) == 0;

	*problem = (struct fake_problem){.kind = FAKE_FORWARD};
	*engine = ok ? find_engine(id, wide) : NULL;
	ok = ok && *engine && read_graph(graph, problem);
	snprintf(why, 128, "%s",
		 ok ? "the plan is of another version or device" : "the text is no plan");
	ok = ok && version == FAKE_VERSION && device == capability * 10;
	json_decref(plan);
	return ok;
}

int cuMemGetInfo_v2(size_t *left, size_t *total);

bool fake_has_context(void)
{
	size_t left, total;

	return cuMemGetInfo_v2(&left, &total) == 0;
}

char *fake_device_text(int device)
{
	return memory_printf("{\"multiProcessorCount\":%d,\"cudaDeviceId\":%d,\"deviceVer\":%d,"
			     "\"driverVer\":%d,\"deviceName\":\"%s\"}",
			     FAKE_CUDA_MULTIPROCESSORS, device, FAKE_CUDA_CAPABILITY * 10,
			     FAKE_CUDA_VERSION, FAKE_CUDA_NAME);
}

int fake_text_capability(const char *text)
{
	json_t *properties = json_loads(text, 0, NULL);
	json_int_t version = json_integer_value(json_object_get(properties, "deviceVer"));

	json_decref(properties);
	return (int)(version / 10);
}
