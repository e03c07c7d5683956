#include "run/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "bundle/safetensors.h"
#include "run/streaming.h"

#define MODEL_OUTPUTS_MAX_BYTES ((size_t)1 << 28)

enum prony_status run_emit(const struct run_caller *caller, const struct run_event *event,
			   struct error *err)
{
	return caller->event ? caller->event(caller->context, event, err) : PRONY_OK;
}

void drive_event(const struct drive *drive, enum run_event_kind kind, const char *text)
{
	struct run_event event = {
		.kind = kind, .cell = drive->index, .round = drive->round, .text = text};
	run_emit(drive->caller, &event, NULL);
}

enum prony_status emit_framework(const struct run_caller *caller, size_t cell,
				 const json_t *details, struct error *err)
{
	struct run_event event = {.kind = EVENT_FRAMEWORK, .cell = cell, .details = details};
	return details ? run_emit(caller, &event, err) : PRONY_OK;
}

/* The largest read is all weights, or the logits of one batch; each with names and padding. Of a
 * file as it is nobody knows it: memory that is not written is not there. */
static size_t largest_read(const struct workload *work)
{
	if (work->is_model)
		return MODEL_OUTPUTS_MAX_BYTES;
	size_t weights = safetensors_image_bytes(&work->weights);
	const struct value *logits = &work->graph.values[work->graph.logits];
	size_t most = (size_t)shape_elements(&logits->shape) * sizeof(double);
	return weights > most ? weights : most;
}

enum prony_status session_start(const struct drive *drive, struct client_spec *spec,
				const char *folder, size_t records, enum input_mode input,
				struct client **out, struct error *err)
{
	*spec = (struct client_spec){
		.argv = drive->cell->worker_argv,
		.environment = drive->cell->worker_environment,
		.self = drive->settings->self,
		.target = &drive->cell->target,
		.bundle = folder,
		.cpus = drive->cpus,
		.cpu_count = drive->cpu_count,
		.tensors_bytes = largest_read(drive->work) + 65536,
		.records_capacity = records,
		.input_times = input != INPUT_RESIDENT,
		.ring_bytes = input == INPUT_STREAM ? streaming_ring_bytes(drive) : 0,
		.memory_limit_bytes = drive->settings->limits.memory_limit_bytes,
		.timeout_ns = drive->settings->limits.request_timeout_ns,
		.stop = drive->settings->stop,
		.profile = drive->profile,
	};
	return client_start(spec, out, err);
}

static void copy_members(json_t *to, json_t *from, const char *const *keys)
{
	for (; *keys; keys++) {
		json_t *value = json_object_get(from, *keys);
		if (value)
			json_object_set(to, *keys, value);
	}
}

/* A duration that a worker states, believed only up to what passed on our clock. */
static int64_t stated_ns(const json_t *reply, const char *key, int64_t passed_ns)
{
	int64_t stated = json_int_or(reply, key, passed_ns);
	return stated < 0 || stated > passed_ns ? passed_ns : stated;
}

/* Those that this program knows. */
static unsigned profiles_of(const json_t *reply)
{
	const json_t *words = json_object_get(reply, "profiles");
	unsigned set = 0;
	for (size_t i = 0; i < json_array_size(words); i++) {
		enum protocol_profile profile =
			protocol_profile_parse(json_string_value(json_array_get(words, i)));
		if (profile != PROFILE_COUNT)
			set |= 1u << profile;
	}
	return set;
}

static enum prony_status say_hello(const struct drive *drive, struct client *client,
				   struct session_facts *facts, struct error *err)
{
	static const char *const keys[] = {"name",	 "version", "libraries",       "devices",
					   "precisions", "stages",  "instruction_set", NULL};
	json_t *reply = NULL;
	int64_t sent, received;
	drive_event(drive, EVENT_STAGE, "import");
	enum prony_status status =
		client_request(client, VERB_HELLO, NULL, 0, &reply, &sent, &received, err);
	if (status != PRONY_OK)
		return status;
	if (json_int_or(reply, "protocol", -1) != PROTOCOL_VERSION)
		status = error_set(err, PRONY_PROTOCOL, "the worker speaks protocol %lld, not %d",
				   (long long)json_int_or(reply, "protocol", -1), PROTOCOL_VERSION);
	if (status == PRONY_OK && drive->cell->worker_name)
		status = client_check_name(reply, drive->cell->worker_name, err);
	facts->import_ns = stated_ns(reply, "import_ns", received - client_started_ns(client));
	facts->spawn_ns = received - client_started_ns(client) - facts->import_ns;
	copy_members(facts->details, reply, keys);
	facts->profiles = profiles_of(reply);
	snprintf(facts->no_layers, sizeof facts->no_layers, "%s",
		 json_string_or(reply, "no_layers", ""));
	json_decref(reply);
	return status;
}

static enum prony_status ask_support(struct client *client, const char *folder, struct error *err)
{
	json_t *reply = NULL;
	enum prony_status status =
		client_request(client, VERB_SUPPORTS, json_pack("{s:s}", "bundle", folder), 0,
			       &reply, NULL, NULL, err);
	if (status != PRONY_OK)
		return status;
	if (!json_bool_or(reply, "supported", false))
		status = error_set(err, PRONY_UNSUPPORTED, "%s",
				   json_string_or(reply, "reason", "the worker gave no reason"));
	json_decref(reply);
	return status;
}

/* What took effect must be what was asked for, or the figure would stand in the wrong row. */
static enum prony_status check_effective(const json_t *reply, const struct recipe *recipe,
					 const struct target *target, struct session_facts *facts,
					 struct error *err)
{
	const char *precision = json_string_or(reply, "precision", "");
	const char *device = json_string_or(reply, "device", "");
	facts->threads = json_int_or(reply, "threads", RECORD_NONE);
	facts->mxcsr = json_int_or(reply, "mxcsr", RECORD_NONE);
	snprintf(facts->precision, sizeof facts->precision, "%s", precision);
	if (strcmp(precision, precision_name(recipe->precision)))
		return error_set(err, PRONY_INVALID, "asked for precision %s, '%s' took effect",
				 precision_name(recipe->precision), precision);
	if (strcmp(device, target->device))
		return error_set(err, PRONY_INVALID, "asked for device %s, '%s' took effect",
				 target->device, device);
	if (facts->threads != recipe->threads)
		return error_set(err, PRONY_INVALID, "asked for %d threads, %lld took effect",
				 recipe->threads, (long long)facts->threads);
	return PRONY_OK;
}

static enum prony_status open_worker(const struct drive *drive, struct client *client,
				     const struct recipe *recipe, const char *folder,
				     struct session_facts *facts, struct error *err)
{
	static const char *const keys[] = {"settings", NULL};
	json_t *reply = NULL;
	int64_t sent, received;
	drive_event(drive, EVENT_STAGE, "open");
	enum prony_status status =
		client_request(client, VERB_OPEN, json_pack("{s:s}", "bundle", folder), 0, &reply,
			       &sent, &received, err);
	if (status != PRONY_OK)
		return status;
	facts->open_ns = stated_ns(reply, "open_ns", received - sent);
	copy_members(facts->details, reply, keys);
	status = check_effective(reply, recipe, &drive->cell->target, facts, err);
	json_decref(reply);
	return status;
}

/* -1 for one that the worker cannot tell; no other negative number means that. */
static enum prony_status take_count(const json_t *reply, const char *key, int64_t *out,
				    struct error *err)
{
	const json_t *value = json_object_get(reply, key);
	*out = -1;
	if (!value || json_is_null(value))
		return PRONY_OK;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return error_set(err, PRONY_INVALID,
				 "its reply to build has no count of %s: a whole number from 0, or "
				 "null where it cannot tell",
				 key);
	*out = json_integer_value(value);
	return PRONY_OK;
}

static enum prony_status build_network(const struct drive *drive, struct client *client,
				       struct session_facts *facts, struct error *err)
{
	static const char *const keys[] = {"notes", NULL};
	json_t *reply = NULL;
	int64_t sent, received;
	drive_event(drive, EVENT_STAGE, "build");
	enum prony_status status =
		client_request(client, VERB_BUILD, NULL, 0, &reply, &sent, &received, err);
	if (status != PRONY_OK)
		return status;
	facts->build_ns = stated_ns(reply, "build_ns", received - sent);
	status = take_count(reply, "parameters", &facts->parameters, err);
	if (status == PRONY_OK)
		status = take_count(reply, "macs", &facts->macs, err);
	copy_members(facts->details, reply, keys);
	json_decref(reply);
	return status;
}

static enum prony_status feed_slots(struct client *client, int slots, struct session_facts *facts,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (int slot = 0; slot < slots && status == PRONY_OK; slot++) {
		json_t *reply = NULL;
		int64_t sent, received;
		status = client_request(client, VERB_FEED,
					json_pack("{s:i, s:i}", "slot", slot, "batch", slot), 0,
					&reply, &sent, &received, err);
		if (status == PRONY_OK)
			facts->feed_ns += stated_ns(reply, "feed_ns", received - sent);
		json_decref(reply);
	}
	return status;
}

enum prony_status session_prepare(const struct drive *drive, struct client *client,
				  const struct recipe *recipe, const char *folder,
				  struct session_facts *facts, struct error *err)
{
	*facts = (struct session_facts){.threads = RECORD_NONE,
					.mxcsr = RECORD_NONE,
					.parameters = -1,
					.macs = -1,
					.details = json_object()};
	json_object_set_new(facts->details, "origin", json_string(drive->cell->origin));
	enum prony_status status = say_hello(drive, client, facts, err);
	if (status == PRONY_OK)
		status = ask_support(client, folder, err);
	if (status == PRONY_OK)
		status = open_worker(drive, client, recipe, folder, facts, err);
	if (status == PRONY_OK)
		status = build_network(drive, client, facts, err);
	if (status == PRONY_OK && recipe->input == INPUT_RESIDENT)
		status = feed_slots(client, recipe->slots, facts, err);
	return status;
}

void session_facts_release(struct session_facts *facts)
{
	json_decref(facts->details);
	facts->details = NULL;
}

enum prony_status session_read_loss(struct client *client, double *loss, struct error *err)
{
	struct arena arena;
	struct tensor_set set;
	arena_init(&arena, 0);
	enum prony_status status = client_read(client, "loss", &arena, &set, err);
	if (status == PRONY_OK) {
		const struct tensor *tensor = tensor_find(&set, "loss");
		if (!tensor || shape_elements(&tensor->shape) != 1 ||
		    (tensor->dtype != DTYPE_F32 && tensor->dtype != DTYPE_F64))
			status = error_set(err, PRONY_PROTOCOL, "it read no scalar 'loss'");
		else
			*loss = tensor->dtype == DTYPE_F64 ? *(const double *)tensor->data
							   : (double)*(const float *)tensor->data;
	}
	arena_release(&arena);
	return status;
}

/* Copies a set out of shared memory, where the next read would overwrite it. */
static void keep_set(struct arena *arena, const struct tensor_set *set, struct tensor_set *out)
{
	out->count = set->count;
	out->tensors = arena_array(arena, set->count, sizeof *out->tensors);
	for (size_t i = 0; i < set->count; i++) {
		int64_t bytes = tensor_bytes(&set->tensors[i]);
		out->tensors[i] = set->tensors[i];
		out->tensors[i].name = arena_strdup(arena, set->tensors[i].name);
		out->tensors[i].data = arena_alloc(arena, bytes > 0 ? (size_t)bytes : 1);
		if (bytes > 0)
			memcpy(out->tensors[i].data, set->tensors[i].data, (size_t)bytes);
	}
}

enum prony_status session_read_kept(struct client *client, const char *what, struct arena *arena,
				    struct tensor_set *out, struct error *err)
{
	struct arena scratch;
	struct tensor_set set;
	arena_init(&scratch, 0);
	enum prony_status status = client_read(client, what, &scratch, &set, err);
	if (status == PRONY_OK)
		keep_set(arena, &set, out);
	arena_release(&scratch);
	return status;
}
