/* Profiles from MXNet's own profiler. Its engine reports an operator's name and time, but not its
 * node in the network. Only executors with a callback after each node give the node: they run the
 * nodes one by one, while others pass many at once to the engine. So a second set of executors
 * replaces the first, the callback waits for each node, and the operators that the engine ran
 * before the end of the wait belong to that node. */
#include "adapters/mxnet/mxnet_profile.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/mxnet/mxnet_trace.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"

#define FILE_BYTES_MAX ((size_t)512 << 20)
#define MARK_NAME "prony mark"
/* The tolerance for times that are truncated to whole microseconds, on two clocks. */
#define SLACK_NS 2000

static void add_mark(struct mx_profile *profile, const char *node, size_t length)
{
	profile->marks = arena_grow(&profile->arena, profile->marks, profile->count, &profile->room,
				    sizeof(*profile->marks));
	char *name = arena_array(&profile->arena, length + 1, 1);

	memcpy(name, node, length);
	profile->marks[profile->count++] =
		(struct mx_mark){.at_ns = profile->now_ns(),
				 .node = name,
				 .backward = profile->nodes >= profile->forward_nodes};
	profile->nodes++;
}

/* Called for each output of each node when it is passed to the engine: "conv1_output",
 * "fc_backward_output0". This function owns the array. */
static void ran_node(const char *output, struct mx_ndarray *array, void *context)
{
	struct mx_profile *profile = context;
	const struct mx_api *api = profile->model->api;
	const char *suffix = NULL;

	for (const char *at = output; (at = strstr(at, "_output")) != NULL; at++)
		suffix = at;
	size_t length = suffix ? (size_t)(suffix - output) : strlen(output);

	api->MXNDArrayFree(array);
	/* All steps have as many outputs as the first. The last node of a step may have several. */
	if (profile->step_outputs && profile->outputs % profile->step_outputs == 0)
		profile->nodes = 0;
	profile->outputs++;
	if (profile->count < PROFILE_EVENTS_MAX) {
		const char *last = profile->nodes ? profile->marks[profile->count - 1].node : "";

		/* Skips further outputs of the same node. sync reports errors of the wait. */
		if (strncmp(last, output, length) != 0 || last[length] != '\0') {
			api->MXNDArrayWaitAll();
			add_mark(profile, output, length);
		}
	}
}

/* Creates executors with the callback, which use the memory of the first ones. */
static enum prony_status replace(struct mx_profile *profile, struct error *err)
{
	struct mx_model *model = profile->model;
	struct mx_program *programs = NULL;
	enum prony_status status =
		mx_model_bind(model, model->programs[0].executor, &programs, err);

	for (int i = 0; status == PRONY_OK && i < model->program_count; i++)
		status = mx_check(model->api,
				  model->api->MXExecutorSetMonitorCallbackEX(programs[i].executor,
									     ran_node, profile, 0),
				  "set the monitor", err);
	if (status != PRONY_OK) {
		mx_programs_release(model->api, programs, model->program_count);
		return status;
	}
	profile->plain = model->programs;
	model->programs = programs;
	return PRONY_OK;
}

static enum prony_status switch_profiler(const struct mx_profile *profile, bool on,
					 struct error *err)
{
	static const char *const keys[] = {"filename",		 "profile_symbolic",
					   "profile_imperative", "profile_memory",
					   "profile_api",	 "continuous_dump"};
	const struct mx_api *api = profile->model->api;
	char *path = path_join(profile->folder, "trace.json");
	const char *const values[] = {path, "1", "1", "0", "0", "0"};
	enum prony_status status = PRONY_OK;

	if (on)
		status =
			mx_check(api,
				 api->MXSetProcessProfilerConfig(
					 (int)(sizeof(keys) / sizeof(keys[0])), keys, values, NULL),
				 "set up its profiler", err);
	if (status == PRONY_OK)
		status = mx_check(api, api->MXSetProcessProfilerState(on, 0, NULL),
				  on ? "start its profiler" : "stop its profiler", err);
	free(path);
	return status;
}

static void mark_time(void *run_context, void *argument)
{
	struct mx_profile *profile = argument;

	(void)run_context;
	profile->marked_ns = profile->now_ns();
}

/* Runs a function in the engine, so that its time is known on both clocks. */
static enum prony_status compare_clocks(struct mx_profile *profile, struct error *err)
{
	const struct mx_api *api = profile->model->api;
	enum prony_status status =
		mx_check(api,
			 api->MXEnginePushSync(mark_time, profile, NULL, &api->device, NULL, 0,
					       NULL, 0, NULL, 0, MARK_NAME),
			 "run on the engine's thread", err);

	return status == PRONY_OK ? mx_check(api, api->MXNDArrayWaitAll(), "wait", err) : status;
}

/* A step without its update, which also gives the number of nodes in the forward pass. */
static enum prony_status warm(struct mx_profile *profile, int slot, struct error *err)
{
	const struct mx_model *model = profile->model;
	const struct mx_api *api = model->api;
	struct mx_executor *executor = mx_model_program(model, slot)->executor;
	enum prony_status status =
		mx_check(api, api->MXExecutorForward(executor, model->loss), "forward", err);

	profile->forward_nodes = profile->nodes;
	if (status == PRONY_OK && model->loss)
		status = mx_check(api, api->MXExecutorBackwardEx(executor, 0, NULL, 1), "backward",
				  err);
	if (status == PRONY_OK)
		status = mx_check(api, api->MXNDArrayWaitAll(), "wait", err);
	profile->step_outputs = profile->outputs;
	profile->outputs = 0;
	profile->count = 0;
	profile->nodes = 0;
	return status;
}

enum prony_status mx_profile_begin(struct mx_profile *profile, struct mx_model *model, int slot,
				   int64_t (*now_ns)(void), struct error *err)
{
	*profile = (struct mx_profile){.model = model, .now_ns = now_ns};
	arena_init(&profile->arena, 0);
	enum prony_status status = directory_make_temporary("prony-mxnet-", &profile->folder, err);
	if (status == PRONY_OK)
		status = replace(profile, err);
	if (status == PRONY_OK)
		status = mx_executor_symbol(model->api, model->programs[0].executor,
					    &profile->optimised, err);
	if (status == PRONY_OK)
		status = warm(profile, slot < 0 ? 0 : slot, err);
	if (status == PRONY_OK)
		status = switch_profiler(profile, true, err);
	if (status == PRONY_OK)
		status = compare_clocks(profile, err);
	if (status != PRONY_OK)
		mx_profile_release(profile);
	return status;
}

void mx_profile_release(struct mx_profile *profile)
{
	struct mx_model *model = profile->model;

	if (!model)
		return;
	if (profile->folder)
		switch_profiler(profile, false, NULL);
	if (profile->plain) {
		model->api->MXNDArrayWaitAll();
		mx_programs_release(model->api, model->programs, model->program_count);
		model->programs = profile->plain;
	}
	if (profile->folder)
		directory_remove(profile->folder, NULL);
	free(profile->folder);
	json_decref(profile->optimised);
	arena_release(&profile->arena);
	*profile = (struct mx_profile){.model = NULL};
}

/* The first operator of a fused node; NULL if the node is not fused. */
static const char *first_of(const json_t *optimised, const char *node)
{
	const json_t *nodes = json_object_get(optimised, "nodes");

	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *one = json_array_get(nodes, i);
		const json_t *inner = json_object_get(
			json_array_get(json_object_get(one, "subgraphs"), 0), "nodes");

		if (!inner || strcmp(json_string_or(one, "name", ""), node) != 0)
			continue;
		for (size_t k = 0; k < json_array_size(inner); k++)
			if (strcmp(json_string_or(json_array_get(inner, k), "op", ""), "null") != 0)
				return json_string_or(json_array_get(inner, k), "name", NULL);
	}
	return NULL;
}

/*
 * The node of the operator that ran at `at_ns` in a step: the first node whose wait ended after it.
 */
static const struct mx_mark *mark_after(const struct mx_profile *profile, int64_t at_ns,
					int64_t end_ns)
{
	size_t low = 0, high = profile->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (profile->marks[middle].at_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < profile->count && profile->marks[low].at_ns <= end_ns ? &profile->marks[low]
									   : NULL;
}

static enum prony_status add_event(const struct mx_profile *profile,
				   const struct mx_trace_event *from, int64_t offset_ns,
				   const int64_t *instants, int64_t steps, struct profile_log *log,
				   struct error *err)
{
	struct profile_event event = {.name = from->name,
				      .kind = from->name,
				      .begin_ns = from->begin_us * 1000 + offset_ns,
				      .duration_ns = (from->end_us - from->begin_us) * 1000};
	int64_t middle = event.begin_ns + event.duration_ns / 2;

	event.step = profile_step_at(instants, steps, middle);
	if (event.step < 0) /* before the steps, or between them */
		return PRONY_OK;
	int64_t begin = instants[2 * event.step], end = instants[2 * event.step + 1];
	const struct mx_mark *mark = mark_after(profile, middle, end);

	if (event.begin_ns < begin - SLACK_NS ||
	    event.begin_ns + event.duration_ns > end + SLACK_NS)
		return error_set(err, PRONY_INVALID,
				 "event %.60s in MXNet's profile extends beyond its step",
				 from->name);
	profile_event_cut(&event, begin, end);
	/* The copy of a batch precedes the first node; updates follow the last. */
	if (mark && strcmp(from->name, "_copyto") != 0) {
		event.name = mark->node;
		event.layer = first_of(profile->optimised, mark->node);
		event.pass = mark->backward ? "backward" : "forward";
	} else if (!mark && strstr(from->name, "_update")) {
		event.pass = "update";
	}
	return profile_log_add(log, &event, err);
}

static enum prony_status add_events(const struct mx_profile *profile, const struct mx_trace *trace,
				    const int64_t *instants, int64_t steps, struct profile_log *log,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;
	int64_t offset_ns = 0, last_us = INT64_MIN;
	bool known = false;

	for (size_t i = 0; status == PRONY_OK && i < trace->count; i++) {
		const struct mx_trace_event *event = &trace->events[i];

		if (!strcmp(event->name, MARK_NAME)) {
			offset_ns = profile->marked_ns - (event->begin_us + event->end_us) * 500;
			known = true;
		} else if (known && event->begin_us >= last_us) {
			/* An operator that ran inside another is part of it. */
			last_us = event->end_us;
			status = add_event(profile, event, offset_ns, instants, steps, log, err);
		}
	}
	if (status == PRONY_OK && !known)
		status = error_set(err, PRONY_INVALID,
				   "MXNet's profile does not contain prony's mark");
	return status;
}

enum prony_status mx_profile_end(struct mx_profile *profile, const int64_t *instants, int64_t steps,
				 struct profile_log *log, struct error *err)
{
	const struct mx_api *api = profile->model->api;
	struct mx_trace trace = {.count = 0};
	char *path = path_join(profile->folder, "trace.json"), *text = NULL;
	size_t length = 0;
	enum prony_status status = switch_profiler(profile, false, err);

	if (status == PRONY_OK)
		status = mx_check(api, api->MXDumpProcessProfile(1, 0, NULL), "write its profile",
				  err);
	if (status == PRONY_OK)
		status = file_read(path, FILE_BYTES_MAX, &text, &length, err);
	if (status == PRONY_OK)
		status = mx_trace_read(text, length, &profile->arena, &trace, err);
	if (status == PRONY_OK)
		status = add_events(profile, &trace, instants, steps, log, err);
	free(text);
	free(path);
	mx_profile_release(profile);
	return status;
}
