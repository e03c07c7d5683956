/* Starts and prepares the workers of a cell's process. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/files.h"
#include "base/json.h"
#include "bundle/safetensors.h"
#include "run/streaming.h"
#include "run/team.h"

#define MODEL_OUTPUTS_MAX_BYTES ((size_t)1 << 28)

static size_t logits_bytes(const struct graph *graph)
{
	return (size_t)shape_elements(&graph->values[graph->logits].shape) * sizeof(double);
}

/* Returns the size of the largest read: all weights, or the logits of one batch (the gate's may be
 * larger than the cell's), each with names and padding. For a model file run unchanged it is
 * unknown, so a large value is used: memory that is not written takes no space. */
static size_t largest_read(const struct workload *work)
{
	if (work->is_model)
		return MODEL_OUTPUTS_MAX_BYTES;
	size_t weights = safetensors_image_bytes(&work->weights);
	size_t most = logits_bytes(&work->graph);
	size_t gate = work->has_gate_case ? logits_bytes(&work->gate_graph) : 0;

	most = gate > most ? gate : most;
	return weights > most ? weights : most;
}

/* Makes an empty folder in the bundle's and puts it into the worker's variables in place of the
 * folder where its framework keeps compiled code. */
static enum prony_status empty_caches(const struct launch *launch, struct arena *arena,
				      const char *const **rows, struct error *err)
{
	const char *warm = launch->cell->cache_folder;
	const char *cold = arena_printf(arena, "%s/caches", launch->folder);
	size_t count = 0;

	enum prony_status status = directory_remove(cold, err); /* of the process before */
	if (status == PRONY_OK)
		status = directory_make(cold, err);
	while ((*rows)[count])
		count++;
	const char **replaced = arena_array(arena, count + 1, sizeof *replaced);
	for (size_t i = 0; i < count; i++) {
		const char *row = (*rows)[i], *at = strstr(row, warm);
		replaced[i] = at ? arena_printf(arena, "%.*s%s%s", (int)(at - row), row, cold,
						at + strlen(warm))
				 : row;
	}
	*rows = replaced;
	return status;
}

enum prony_status team_launch(struct team *team, const struct launch *launch, size_t records,
			      enum input_mode input, struct error *err)
{
	const char *const *environment = launch->cell->worker_environment;
	enum prony_status status = PRONY_OK;
	struct arena arena;

	arena_init(&arena, 0);
	if (launch->cell->cache_folder)
		status = empty_caches(launch, &arena, &environment, err);
	const struct client_spec spec = {
		.argv = launch->cell->worker_argv,
		.environment = environment,
		.self = launch->settings->self,
		.launcher = launch->cell->launcher,
		.target = &launch->cell->target,
		.bundle = launch->folder,
		.cpus = launch->cpus,
		.cpu_count = launch->cpu_count,
		.tensors_bytes = largest_read(launch->work) + 65536,
		.records_capacity = records,
		.input_times = input != INPUT_RESIDENT,
		.ring_bytes = input == INPUT_STREAM ? streaming_ring_bytes(launch) : 0,
		.memory_limit_bytes = launch->settings->limits.memory_limit_bytes,
		.timeout_ns = launch->settings->limits.request_timeout_ns,
		.stop = launch->settings->stop,
		.profile = launch->profile,
	};
	if (status == PRONY_OK)
		status = team_start(team, &spec, err);
	arena_release(&arena);
	return status;
}

/* The context of the checks of replies. */
struct preparation {
	const struct team *team;
	const struct launch *launch;
	const struct recipe *recipe;
	struct worker_facts *facts;
	int64_t feed_ns; /* of one batch, the longest of all workers */
};

static void copy_members(json_t *to, json_t *from, const char *const *keys)
{
	for (; *keys; keys++) {
		json_t *value = json_object_get(from, *keys);
		if (value)
			json_object_set(to, *keys, value);
	}
}

static void keep_longest(int64_t *longest, int64_t value)
{
	if (value > *longest)
		*longest = value;
}

/* Returns a duration that a worker states, limited to the time that passed on prony's clock. */
static int64_t stated_ns(const json_t *reply, const char *key, int64_t passed_ns)
{
	int64_t stated = json_int_or(reply, key, passed_ns);
	return stated < 0 || stated > passed_ns ? passed_ns : stated;
}

/* PRONY_PROTOCOL for a negative duration. */
static enum prony_status check_duration(const json_t *reply, const char *key, struct error *err)
{
	int64_t stated = json_int_or(reply, key, 0);
	return stated >= 0 ? PRONY_OK
			   : error_set(err, PRONY_PROTOCOL,
				       "the worker states %s %lld; a duration is at least 0", key,
				       (long long)stated);
}

/* Checks the words that a worker says about itself: they become part of tables and files. */
static enum prony_status check_words(const json_t *reply, struct error *err)
{
	static const char *const needed[] = {"name", "version"};
	const char *where = json_find_control(reply);
	if (where)
		return error_set(err, PRONY_PROTOCOL,
				 "the worker's hello has a control character in %s", where);
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!*json_string_or(reply, needed[i], ""))
			return error_set(err, PRONY_PROTOCOL,
					 "the worker's hello has no %s; it must be a text",
					 needed[i]);
	return PRONY_OK;
}

/* Returns the profiles of the reply that this program knows. */
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

/* Checks what only workers of several ranks must say. */
static enum prony_status check_rank(const struct client *client, const json_t *reply,
				    struct error *err)
{
	if (!client_uses_shared_memory(client))
		return error_set(err, PRONY_UNSUPPORTED,
				 "workers of several ranks must map shared memory");
	if (!*json_string_or(reply, "collectives", ""))
		return error_set(err, PRONY_PROTOCOL,
				 "the worker's hello has no collectives; with several ranks it "
				 "must name what sums the gradients");
	return PRONY_OK;
}

static enum prony_status check_hello(void *context, size_t rank, const struct client_reply *reply,
				     struct error *err)
{
	static const char *const keys[] = {
		"name",	  "version",	     "libraries",   "devices", "precisions",
		"stages", "instruction_set", "collectives", NULL};
	struct preparation *p = context;
	struct worker_facts *facts = p->facts;
	enum prony_status status = PRONY_OK;
	if (json_int_or(reply->json, "protocol", -1) != PROTOCOL_VERSION)
		status = error_set(err, PRONY_PROTOCOL, "the worker speaks protocol %lld, not %d",
				   (long long)json_int_or(reply->json, "protocol", -1),
				   PROTOCOL_VERSION);
	if (status == PRONY_OK)
		status = check_words(reply->json, err);
	if (status == PRONY_OK)
		status = check_duration(reply->json, "import_ns", err);
	if (status == PRONY_OK && p->team->count > 1)
		status = check_rank(p->team->clients[rank], reply->json, err);
	if (status == PRONY_OK && p->launch->cell->worker_name)
		status = client_check_name(reply->json, p->launch->cell->worker_name, err);
	int64_t passed_ns = reply->received_ns - client_started_ns(p->team->clients[rank]);
	int64_t import_ns = stated_ns(reply->json, "import_ns", passed_ns);
	keep_longest(&facts->import_ns, import_ns);
	keep_longest(&facts->spawn_ns, passed_ns - import_ns);
	if (rank > 0)
		return status;
	copy_members(facts->details, reply->json, keys);
	facts->profiles = profiles_of(reply->json);
	snprintf(facts->no_layers, sizeof facts->no_layers, "%s",
		 json_string_or(reply->json, "no_layers", ""));
	return status;
}

static enum prony_status check_supports(void *context, size_t rank,
					const struct client_reply *reply, struct error *err)
{
	(void)context, (void)rank;
	if (json_bool_or(reply->json, "supported", false))
		return PRONY_OK;
	return error_set(err, PRONY_UNSUPPORTED, "%s",
			 json_string_or(reply->json, "reason", "the worker gave no reason"));
}

/* Checks that what took effect is what was requested; otherwise the result would stand in the wrong
 * row. */
static enum prony_status check_effective(const json_t *reply, const struct recipe *recipe,
					 const struct target *target, struct worker_facts *facts,
					 struct error *err)
{
	const char *precision = json_string_or(reply, "precision", "");
	const char *device = json_string_or(reply, "device", "");
	facts->threads = json_int_or(reply, "threads", RECORD_NONE);
	facts->mxcsr = json_int_or(reply, "mxcsr", RECORD_NONE);
	snprintf(facts->precision, sizeof facts->precision, "%s", precision);
	if (strcmp(precision, precision_name(recipe->precision)))
		return error_set(err, PRONY_INVALID,
				 "requested precision %s, but the worker uses '%s'",
				 precision_name(recipe->precision), precision);
	if (strcmp(device, target->device))
		return error_set(err, PRONY_INVALID,
				 "requested device %s, but the worker uses '%s'", target->device,
				 device);
	if (facts->threads != recipe->threads)
		return error_set(err, PRONY_INVALID,
				 "requested %d threads, but the worker uses %lld", recipe->threads,
				 (long long)facts->threads);
	return PRONY_OK;
}

static enum prony_status check_open(void *context, size_t rank, const struct client_reply *reply,
				    struct error *err)
{
	static const char *const keys[] = {"settings", NULL};
	struct preparation *p = context;
	keep_longest(&p->facts->open_ns,
		     stated_ns(reply->json, "open_ns", reply->received_ns - reply->sent_ns));
	enum prony_status status = check_duration(reply->json, "open_ns", err);
	if (status != PRONY_OK)
		return status;
	if (rank == 0)
		copy_members(p->facts->details, reply->json, keys);
	return check_effective(reply->json, p->recipe, &p->launch->cell->target, p->facts, err);
}

/* Reads a count; -1 means unknown, other negative numbers are errors. */
static enum prony_status take_count(const json_t *reply, const char *key, int64_t *out,
				    struct error *err)
{
	const json_t *value = json_object_get(reply, key);
	*out = -1;
	if (!value || json_is_null(value))
		return PRONY_OK;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return error_set(err, PRONY_INVALID,
				 "%s in its reply to build must be a whole number from 0, or null "
				 "if unknown",
				 key);
	*out = json_integer_value(value);
	return PRONY_OK;
}

static enum prony_status check_build(void *context, size_t rank, const struct client_reply *reply,
				     struct error *err)
{
	static const char *const keys[] = {"notes", NULL};
	struct preparation *p = context;
	keep_longest(&p->facts->build_ns,
		     stated_ns(reply->json, "build_ns", reply->received_ns - reply->sent_ns));
	enum prony_status status = check_duration(reply->json, "build_ns", err);
	if (status == PRONY_OK)
		status = take_count(reply->json, "parameters", &p->facts->parameters, err);
	if (status == PRONY_OK)
		status = take_count(reply->json, "macs", &p->facts->macs, err);
	if (rank == 0)
		copy_members(p->facts->details, reply->json, keys);
	return status;
}

static enum prony_status check_feed(void *context, size_t rank, const struct client_reply *reply,
				    struct error *err)
{
	struct preparation *p = context;
	(void)rank;
	keep_longest(&p->feed_ns,
		     stated_ns(reply->json, "feed_ns", reply->received_ns - reply->sent_ns));
	return check_duration(reply->json, "feed_ns", err);
}

/* Feeds one batch of a slot: rank r of R is fed batch slot * R + r (parts_of_ranks.h). */
static enum prony_status feed_slot(struct team *team, int slot, struct preparation *p,
				   struct error *err)
{
	json_t *members[CLIENTS_MAX];
	p->feed_ns = 0;
	for (size_t rank = 0; rank < team->count; rank++)
		members[rank] = json_pack("{s:i, s:i}", "slot", slot, "batch",
					  slot * (int)team->count + (int)rank);
	return team_request_each(team, VERB_FEED, members, check_feed, p, err);
}

static enum prony_status feed_slots(struct team *team, struct preparation *p, struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (int slot = 0; slot < p->recipe->slots && status == PRONY_OK; slot++) {
		status = feed_slot(team, slot, p, err);
		p->facts->feed_ns += p->feed_ns;
	}
	return status;
}

enum prony_status team_prepare(struct team *team, const struct launch *launch,
			       const struct recipe *recipe, struct worker_facts *facts,
			       struct error *err)
{
	*facts = (struct worker_facts){.threads = RECORD_NONE,
				       .mxcsr = RECORD_NONE,
				       .parameters = -1,
				       .macs = -1,
				       .details = json_object()};
	struct preparation p = {team, launch, recipe, facts, 0};
	json_object_set_new(facts->details, "origin", json_string(launch->cell->origin));
	json_object_set_new(facts->details, "contender", json_string(launch->cell->cell.framework));
	launch_event(launch, EVENT_STAGE, "import");
	enum prony_status status = team_request(team, VERB_HELLO, NULL, check_hello, &p, err);
	if (status == PRONY_OK)
		status = team_request(team, VERB_SUPPORTS,
				      json_pack("{s:s}", "bundle", launch->folder), check_supports,
				      &p, err);
	if (status == PRONY_OK) {
		launch_event(launch, EVENT_STAGE, "open");
		status = team_request(team, VERB_OPEN, json_pack("{s:s}", "bundle", launch->folder),
				      check_open, &p, err);
	}
	if (status == PRONY_OK) {
		launch_event(launch, EVENT_STAGE, "build");
		status = team_request(team, VERB_BUILD, NULL, check_build, &p, err);
	}
	if (status == PRONY_OK && recipe->input == INPUT_RESIDENT)
		status = feed_slots(team, &p, err);
	return status;
}

void worker_facts_release(struct worker_facts *facts)
{
	json_decref(facts->details);
	facts->details = NULL;
}
