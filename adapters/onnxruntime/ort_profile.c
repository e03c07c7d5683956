/* Profiles with ONNX Runtime's own profiler: a second session on the same model with
 * EnableProfiling. At its end it writes an event per node of the optimised graph, in whole
 * microseconds. */
#include "adapters/onnxruntime/ort_profile.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"

/* Runs of the second session before profiling: the first runs lay out its memory. */
enum { WARM_RUNS = 3 };
#define FILE_BYTES_MAX ((size_t)256 << 20)
#define RUN_EVENT "model_run"
#define KERNEL_SUFFIX "_kernel_time"

enum prony_status ort_profile_keep(struct ort_state *ort, const void *model, size_t length,
				   struct error *err)
{
	ort->profile.model = malloc(length ? length : 1);
	if (!ort->profile.model)
		return error_set(err, PRONY_NOMEM, "no memory for a copy of the model");
	memcpy(ort->profile.model, model, length);
	ort->profile.length = length;
	return PRONY_OK;
}

/* Replaces the first session by the second. */
static enum prony_status make_session(struct ort_state *ort, struct error *err)
{
	const struct ort_api *api = ort->api;
	struct ort_session *plain = ort->session;
	char *prefix = path_join(ort->profile.folder, "trace");
	enum prony_status status = ort_check(api, api->enable_profiling(ort->options, prefix),
					     "switch profiling on", err);

	free(prefix);
	if (status != PRONY_OK)
		return status;
	ort->session = NULL;
	status = ort_make_session(ort, ort->profile.model, ort->profile.length, err);
	struct ort_status *off = api->disable_profiling(ort->options);
	if (off)
		api->release_status(off);
	if (status != PRONY_OK) {
		api->release_session(ort->session);
		ort->session = plain;
		return status;
	}
	ort->profile.plain = plain;
	return PRONY_OK;
}

static enum prony_status profile_begin(struct session *s, int64_t steps, int64_t (*now_ns)(void),
				       struct error *err)
{
	struct ort_state *ort = s->private_data;

	(void)steps, (void)now_ns;
	if (ort->streams)
		return error_set(err, PRONY_UNSUPPORTED,
				 "with +throughput several steps run at once; profile without it");
	if (!ort->profile.model)
		return error_set(err, PRONY_INTERNAL,
				 "the model's bytes were not kept for a profile");
	enum prony_status status =
		directory_make_temporary("prony-ort-", &ort->profile.folder, err);
	if (status == PRONY_OK)
		status = make_session(ort, err);
	for (int i = 0; status == PRONY_OK && i < WARM_RUNS; i++)
		status = ort_compute(ort, ort->last_slot, err);
	return status;
}

/* Ends the second session, which writes its file; the first session is used again. */
static void end_session(struct ort_state *ort)
{
	if (!ort->profile.plain)
		return;
	ort->api->release_session(ort->session);
	ort->session = ort->profile.plain;
	ort->profile.plain = NULL;
}

static enum prony_status read_file(const char *folder, json_t **out, struct error *err)
{
	char *pattern = path_join(folder, "trace*");
	glob_t found;
	enum prony_status status;

	if (memory_glob(pattern, 0, &found) != 1)
		status = error_set(err, PRONY_INVALID,
				   "ONNX Runtime wrote no profile when its session ended");
	else
		status = json_read_file(found.gl_pathv[0], FILE_BYTES_MAX, out, err);
	globfree(&found);
	free(pattern);
	return status;
}

void ort_profile_release(struct ort_state *ort)
{
	end_session(ort);
	if (ort->profile.folder)
		directory_remove(ort->profile.folder, NULL);
	free(ort->profile.folder);
	free(ort->profile.model);
	ort->profile = (struct ort_profile){.model = NULL};
}

static bool is_run(const json_t *event)
{
	return !strcmp(json_string_or(event, "name", ""), RUN_EVENT);
}

static enum prony_status times_of(const json_t *event, int64_t *at_us, int64_t *took_us,
				  struct error *err)
{
	*at_us = json_int_or(event, "ts", -1);
	*took_us = json_int_or(event, "dur", -1);
	if (*at_us >= 0 && *took_us >= 0)
		return PRONY_OK;
	return error_set(err, PRONY_INVALID,
			 "an event in ONNX Runtime's profile lacks an integer ts or dur: %.60s",
			 json_string_or(event, "name", "(no name)"));
}

/* Adds a node of a run that began at `run_us` and belongs to step `step`. */
static enum prony_status add_node(const json_t *event, int64_t run_us, const int64_t *instants,
				  int64_t step, struct profile_log *log, struct error *err)
{
	int64_t at_us, took_us, begin = instants[2 * step], end = instants[2 * step + 1];
	char *name = memory_strdup(json_string_or(event, "name", ""));
	size_t length = strlen(name), suffix = strlen(KERNEL_SUFFIX);
	enum prony_status status = times_of(event, &at_us, &took_us, err);

	if (length > suffix && !strcmp(name + length - suffix, KERNEL_SUFFIX))
		name[length - suffix] = '\0';
	if (status == PRONY_OK) {
		int64_t at = begin + (at_us - run_us) * 1000, took = took_us * 1000;

		/* Whole microseconds may exceed the step by one. */
		took = took < end - begin ? took : end - begin;
		at = at + took > end ? end - took : at;
		const struct profile_event node = {
			.name = name,
			.kind = json_string_or(json_object_get(event, "args"), "op_name", NULL),
			.pass = "forward",
			.begin_ns = at > begin ? at : begin,
			.duration_ns = took,
			.step = step};
		status = profile_log_add(log, &node, err);
	}
	free(name);
	return status;
}

/* Events are in the order of their ends, so a run follows its nodes. */
static enum prony_status add_run(const json_t *events, size_t first, size_t run,
				 const int64_t *instants, int64_t step, struct profile_log *log,
				 struct error *err)
{
	int64_t run_us, took_us;
	enum prony_status status = times_of(json_array_get(events, run), &run_us, &took_us, err);

	for (size_t i = first; status == PRONY_OK && i < run; i++) {
		const json_t *event = json_array_get(events, i);

		if (!strcmp(json_string_or(event, "cat", ""), "Node") &&
		    json_int_or(event, "ts", -1) >= run_us)
			status = add_node(event, run_us, instants, step, log, err);
	}
	return status;
}

enum prony_status ort_profile_read(const json_t *events, const int64_t *instants, int64_t steps,
				   struct profile_log *log, struct error *err)
{
	enum prony_status status = PRONY_OK;
	size_t count = json_array_size(events), first = 0;
	int64_t runs = 0, step;

	for (size_t i = 0; i < count; i++)
		runs += is_run(json_array_get(events, i));
	if (!json_is_array(events) || runs < steps)
		return error_set(err, PRONY_INVALID,
				 "ONNX Runtime's profile has only %lld of %lld steps",
				 (long long)runs, (long long)steps);
	step = steps - runs; /* runs before the profiled steps have negative numbers */
	for (size_t i = 0; status == PRONY_OK && i < count; i++) {
		if (!is_run(json_array_get(events, i)))
			continue;
		if (step >= 0)
			status = add_run(events, first, i, instants, step, log, err);
		first = i + 1;
		step++;
	}
	return status;
}

static enum prony_status profile_end(struct session *s, const int64_t *instants, int64_t steps,
				     struct profile_log *log, struct error *err)
{
	struct ort_state *ort = s->private_data;
	json_t *events = NULL;

	end_session(ort);
	enum prony_status status = read_file(ort->profile.folder, &events, err);
	if (status == PRONY_OK)
		status = ort_profile_read(events, instants, steps, log, err);
	json_decref(events);
	directory_remove(ort->profile.folder, NULL);
	free(ort->profile.folder);
	ort->profile.folder = NULL;
	return status;
}

const struct adapter_profile ort_adapter_profile = {.begin = profile_begin, .end = profile_end};
