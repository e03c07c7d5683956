/* Profiles with TensorFlow's own tracing (RunOptions.trace_level SOFTWARE_TRACE). The RunMetadata
 * of a traced run says when each operation ran and in which thread. */
#include "adapters/tensorflow/tf_profile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/step_stats.pb-c.h"

#define NAME_BYTES 320

/* RunOptions { trace_level (1): SOFTWARE_TRACE (1) } */
static const struct tf_buffer trace = {.data = "\x08\x01", .length = 2};

enum prony_status tf_profile_begin(struct tf_model *model, struct error *err)
{
	model->profile = (struct tf_profile){.metadata = model->api->TF_NewBuffer()};
	if (!model->profile.metadata)
		return error_set(err, PRONY_NOMEM, "no memory for a profile");
	model->profile.options = &trace;
	return PRONY_OK;
}

void tf_profile_stop(struct tf_model *model)
{
	if (model->profile.metadata)
		model->api->TF_DeleteBuffer(model->profile.metadata);
	model->profile = (struct tf_profile){.options = NULL};
}

/* Returns the number in the name of an operation of prony: "p.conv1.12",
 * "p.conv1.12-0-Transpose..."; -1 for an operation that TensorFlow added. */
static int number_of(const char *name)
{
	size_t length = strcspn(name, "/-:");
	const char *dot = NULL;

	for (size_t i = 0; i < length; i++)
		if (name[i] == '.')
			dot = name + i;
	if (strncmp(name, "p.", 2) != 0 || !dot || !isdigit((unsigned char)dot[1]))
		return -1;
	return (int)strtol(dot + 1, NULL, 10);
}

static int node_of(const struct tf_model *model, int number)
{
	for (int i = 0; number >= 0 && i < model->graph->node_count; i++)
		if (number >= model->t.made[i].first && number < model->t.made[i].end)
			return i;
	return -1;
}

/* Returns "Conv2D" for "p.conv1.12 = Conv2D(...)". */
static const char *kind_of(const char *label, char out[NAME_BYTES])
{
	const char *at = strstr(label, " = ");

	if (!at)
		return NULL;
	snprintf(out, NAME_BYTES, "%.*s", (int)strcspn(at + 3, "("), at + 3);
	return out;
}

/* Compares a name; operation names have "_" in place of characters that are not allowed. */
static bool is_name(const char *text, size_t length, const char *name)
{
	if (strlen(name) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (text[i] != name[i] && (text[i] != '_' || isalnum((unsigned char)name[i])))
			return false;
	return true;
}

/* Returns the product in a fused operation. The operation has the name of the last fused node:
 * "p.relu1.31 = _FusedConv2D(p.batch.28, p.conv1.weight.2, ...)". The product is the node with that
 * weight. */
static int product_of(const struct tf_model *model, const char *label)
{
	const struct graph *graph = model->graph;
	const char *type = strstr(label, " = "), *open = type ? strchr(type, '(') : NULL;
	const char *weight = open ? strstr(open, ", p.") : NULL, *fused = strstr(label, "Fused");

	if (!weight || !fused || fused > open)
		return -1;
	weight += strlen(", p.");
	size_t length = strcspn(weight, ",)");
	while (length > 0 && weight[length - 1] != '.')
		length--;
	for (int i = 0; length > 0 && i < graph->forward_count; i++)
		if (graph->nodes[i].input_count > 1 && graph->nodes[i].inputs[1] >= 0 &&
		    is_name(weight, length - 1, graph->values[graph->nodes[i].inputs[1]].name))
			return i;
	return -1;
}

static void describe(const struct tf_model *model, const PronyTf__NodeExecStats *stats,
		     struct profile_event *event)
{
	const struct graph *graph = model->graph;
	int number = number_of(stats->node_name), node = node_of(model, number);
	int product = product_of(model, stats->timeline_label);

	if (product >= 0)
		node = product;

	if (number >= model->updates.first && number < model->updates.end) {
		event->pass = "update";
		event->kind = "Update"; /* an update consists of several operations */
	} else if (node >= 0) {
		event->pass = node < graph->forward_count ? "forward" : "backward";
		if (node >= graph->forward_count)
			node = graph->nodes[node].differentiates;
		event->layer = node >= 0 ? graph->nodes[node].name : NULL;
	}
}

/* Maps a thread to a small number; the last number is shared by all threads beyond the table. */
static int thread_of(struct tf_profile *profile, uint32_t id)
{
	int i = 0;

	while (i < profile->thread_count && profile->threads[i] != id)
		i++;
	if (i == profile->thread_count && i < TF_PROFILE_THREADS)
		profile->threads[profile->thread_count++] = id;
	return i < TF_PROFILE_THREADS ? i : TF_PROFILE_THREADS - 1;
}

static enum prony_status add_operation(const PronyTf__NodeExecStats *stats, struct tf_model *model,
				       int64_t step, struct profile_log *log, struct error *err)
{
	char kind[NAME_BYTES];
	struct profile_event event = {
		.name = stats->node_name,
		.kind = kind_of(stats->timeline_label, kind),
		.begin_ns = stats->all_start_nanos + stats->op_start_rel_nanos,
		.duration_ns = stats->op_end_rel_nanos - stats->op_start_rel_nanos,
		.step = step,
		.thread = thread_of(&model->profile, stats->thread_id)};

	if (event.begin_ns < 0 || event.duration_ns < 0)
		return error_set(err, PRONY_INVALID,
				 "operation %.60s in TensorFlow's profile ends before it begins",
				 stats->node_name);
	describe(model, stats, &event);
	return profile_log_add(log, &event, err);
}

enum prony_status tf_profile_read(const void *bytes, size_t length, struct tf_model *model,
				  int64_t step, struct profile_log *log, struct error *err)
{
	PronyTf__RunMetadata *metadata = prony_tf__run_metadata__unpack(NULL, length, bytes);
	enum prony_status status = PRONY_OK;
	size_t before = log->count;

	if (!metadata)
		return error_set(err, PRONY_INVALID, "TensorFlow's profile cannot be read");
	for (size_t i = 0; metadata->step_stats && i < metadata->step_stats->n_dev_stats; i++) {
		const PronyTf__DeviceStepStats *device = metadata->step_stats->dev_stats[i];

		for (size_t k = 0; status == PRONY_OK && k < device->n_node_stats; k++)
			status = add_operation(device->node_stats[k], model, step, log, err);
	}
	prony_tf__run_metadata__free_unpacked(metadata, NULL);
	if (status == PRONY_OK && log->count == before)
		status = error_set(err, PRONY_INVALID, "TensorFlow's profile has no operations");
	return status;
}

enum prony_status tf_profile_stepped(struct tf_model *model, int64_t step, struct profile_log *log,
				     struct error *err)
{
	struct tf_profile *profile = &model->profile;
	enum prony_status status = tf_profile_read(
		profile->metadata->data, profile->metadata->length, model, step, log, err);

	/* A run needs an empty buffer. */
	model->api->TF_DeleteBuffer(profile->metadata);
	profile->metadata = model->api->TF_NewBuffer();
	if (status == PRONY_OK && !profile->metadata)
		status = error_set(err, PRONY_NOMEM, "no memory for a profile");
	return status;
}

/* Returns the difference between the harness's clock and TensorFlow's, which is the time of day. No
 * operation runs outside its step. This bounds the difference to a few microseconds; the middle is
 * returned. */
static int64_t clocks_apart(const int64_t *instants, const struct profile_log *log)
{
	int64_t low = INT64_MIN, high = INT64_MAX;

	for (size_t i = 0; i < log->count; i++) {
		const struct profile_event *event = &log->events[i];
		int64_t from = instants[2 * event->step] - event->begin_ns;
		int64_t to = instants[2 * event->step + 1] - event->begin_ns - event->duration_ns;

		low = from > low ? from : low;
		high = to < high ? to : high;
	}
	return low / 2 + high / 2;
}

void tf_profile_end(struct tf_model *model, const int64_t *instants, struct profile_log *log)
{
	int64_t apart = clocks_apart(instants, log);

	for (size_t i = 0; i < log->count; i++) {
		struct profile_event *event = &log->events[i];
		int64_t begin = instants[2 * event->step], end = instants[2 * event->step + 1];

		/* The time of day may have been changed during the steps. */
		event->begin_ns += apart;
		profile_event_cut(event, begin, end);
	}
	tf_profile_stop(model);
}
