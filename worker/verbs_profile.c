/* The verb profile: runs steps outside any window and writes the framework's report about each. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "worker/verbs_internal.h"

#define STEPS_MAX 100000

/* Runs the steps one by one; instants: begin and end of each. */
static enum prony_status profile_steps(struct worker *w, const struct loop_plan *plan,
				       int64_t *instants, struct profile_log *log,
				       struct error *err)
{
	const struct adapter *adapter = w->adapter;
	int slot = plan->slot;
	enum prony_status status = adapter->sync(&w->session, err);

	for (int64_t i = 0; status == PRONY_OK && i < plan->steps; i++) {
		instants[2 * i] = clock_monotonic_ns();
		status = adapter->step(&w->session, slot, err);
		if (status == PRONY_OK)
			status = adapter->sync(&w->session, err);
		instants[2 * i + 1] = clock_monotonic_ns();
		if (status == PRONY_OK && adapter->profile->stepped)
			status = adapter->profile->stepped(&w->session, i, log, err);
		slot = slot + 1 < plan->slots ? slot + 1 : 0;
	}
	return status;
}

static json_t *event_json(const struct profile_event *event)
{
	json_t *json = json_pack("{s:s, s:I, s:I, s:i}", "name", event->name, "duration_ns",
				 (json_int_t)event->duration_ns, "step", (json_int_t)event->step,
				 "thread", event->thread);

	if (!json) /* a name that is not UTF-8 */
		return NULL;
	if (event->begin_ns != PROFILE_UNPLACED)
		verbs_add(json, "begin_ns", json_integer(event->begin_ns));
	if (event->kind)
		verbs_add(json, "operator", json_string(event->kind));
	if (event->layer)
		verbs_add(json, "layer", json_string(event->layer));
	if (event->pass)
		verbs_add(json, "pass", json_string(event->pass));
	if (event->device)
		verbs_add(json, "device", json_string(event->device));
	if (event->bytes > 0)
		verbs_add(json, "bytes", json_integer(event->bytes));
	return json;
}

/* Adds the value, whose reference is taken, after a comma unless it is the first. */
static enum prony_status add_value(struct file_writer *writer, json_t *value, bool first,
				   struct error *err)
{
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
	char *line = memory_printf("%s%s", first ? "" : ",\n", text ? text : "null");
	enum prony_status status = file_writer_add(writer, line, strlen(line), err);

	free(line);
	free(text);
	json_decref(value);
	return status;
}

static enum prony_status add_text(struct file_writer *writer, const char *text, struct error *err)
{
	return file_writer_add(writer, text, strlen(text), err);
}

static enum prony_status write_parts(struct file_writer *writer, const int64_t *instants,
				     int64_t steps, const struct profile_log *log,
				     struct error *err)
{
	enum prony_status status = add_text(writer, "{\"steps\": [\n", err);

	for (int64_t i = 0; status == PRONY_OK && i < steps; i++)
		status = add_value(writer,
				   json_pack("[I, I]", (json_int_t)instants[2 * i],
					     (json_int_t)instants[2 * i + 1]),
				   i == 0, err);
	if (status == PRONY_OK)
		status = add_text(writer, "],\n\"events\": [\n", err);
	for (size_t i = 0; status == PRONY_OK && i < log->count; i++)
		status = add_value(writer, event_json(&log->events[i]), i == 0, err);
	return status == PRONY_OK ? add_text(writer, "]}\n", err) : status;
}

static enum prony_status write_profile(const char *folder, const int64_t *instants, int64_t steps,
				       const struct profile_log *log, struct error *err)
{
	char *path = path_join(folder, BUNDLE_PROFILE_FILE);
	struct file_writer *writer = NULL;
	enum prony_status status = file_writer_open(path, &writer, err);

	if (status == PRONY_OK) {
		/* A part that fails has released the writer. */
		status = write_parts(writer, instants, steps, log, err);
		if (status == PRONY_OK)
			status = file_writer_finish(writer, err);
	}
	free(path);
	return status;
}

static enum prony_status parse_profile(struct worker *w, const json_t *request,
				       struct loop_plan *plan, struct error *err)
{
	const char *what = NULL;
	enum prony_status status = json_get_string(request, "what", &what, err);

	if (status == PRONY_OK)
		status = verbs_parse_steps(w, request, plan, err);
	if (status != PRONY_OK)
		return status;
	if (protocol_profile_parse(what) != PROFILE_LAYERS || !w->adapter->profile)
		return error_set(err, PRONY_PROTOCOL, "%s has no profile of \"%.40s\"",
				 w->adapter->name, what);
	if (!w->session.profiled)
		return error_set(err, PRONY_PROTOCOL, "hello did not request a profile");
	if (plan->ring)
		return error_set(err, PRONY_PROTOCOL,
				 "profiles are only possible with input resident");
	if (plan->steps > STEPS_MAX)
		return error_set(err, PRONY_PROTOCOL, "steps must be at most %d, not %" PRId64,
				 STEPS_MAX, plan->steps);
	return PRONY_OK;
}

/* Runs the steps with the framework's profiler on. */
static enum prony_status profile(struct worker *w, const struct loop_plan *plan, int64_t *instants,
				 struct profile_log *log, struct error *err)
{
	const struct adapter_profile *profile = w->adapter->profile;
	enum prony_status status =
		profile->begin(&w->session, plan->steps, clock_monotonic_ns, err);

	if (status == PRONY_OK)
		status = profile_steps(w, plan, instants, log, err);
	if (status == PRONY_OK)
		status = profile->end(&w->session, instants, plan->steps, log, err);
	return verbs_adapter_result(w, status, "profile", err);
}

enum prony_status verbs_profile(struct worker *w, const json_t *request, json_t *reply,
				struct error *err)
{
	struct loop_plan plan;
	struct profile_log log;
	enum prony_status status = parse_profile(w, request, &plan, err);

	if (status != PRONY_OK)
		return status;
	int64_t *instants = memory_alloc((size_t)plan.steps * 2 * sizeof *instants);

	profile_log_init(&log);
	status = profile(w, &plan, instants, &log, err);
	if (status == PRONY_OK)
		status = write_profile(w->folder, instants, plan.steps, &log, err);
	if (status == PRONY_OK) {
		verbs_add(reply, "steps", json_integer(plan.steps));
		verbs_add(reply, "begin_at_ns", json_integer(instants[0]));
		verbs_add(reply, "end_at_ns", json_integer(instants[2 * plan.steps - 1]));
		verbs_add(reply, "events", json_integer((json_int_t)log.count));
	}
	profile_log_release(&log);
	free(instants);
	return status;
}
