/* A worker process of worker-check: starts it, prepares a network with fed slots, closes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "bundle/safetensors.h"
#include "conformance/check_internal.h"

enum { CHECK_BATCH = 8 };
#define CHECK_SEED 1

void check_cell(const struct checker *checker, const struct network *network, enum stage stage,
		struct plan_cell *out)
{
	*out = (struct plan_cell){
		.status = CELL_PENDING,
		.network = network,
		.dataset = dataset_find("synthetic"),
		.origin = "named",
		.worker_argv = checker->spec->argv,
	};
	struct cell *cell = &out->cell;
	cell_defaults(cell);
	cell_parse_framework("worker", cell, NULL);
	cell->precision = checker->precision;
	cell->batch = CHECK_BATCH;
	cell->stage = stage;
	cell->sync = SYNC_END;
	cell->dropout = false;
	snprintf(cell->dataset, sizeof cell->dataset, "synthetic");
	snprintf(cell->network, sizeof cell->network, "%s", network->name);
	snprintf(cell->device, sizeof cell->device, "%s", checker->device);
	target_defaults(&out->target);
	target_set_device(&out->target, checker->device);
	struct recipe *recipe = &out->recipe;
	recipe_defaults(recipe);
	recipe->threads = 1;
	recipe->stage = stage;
	recipe->precision = checker->precision;
	recipe->batch = CHECK_BATCH;
	recipe->dropout = false;
	cell_key(cell, out->key);
	cell_hash(cell, out->hash);
}

static enum stage check_stage(const struct checker *checker)
{
	static const enum stage order[] = {STAGE_TRAIN, STAGE_FORWARD_BACKWARD, STAGE_FORWARD};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (checker->stages & 1u << order[i])
			return order[i];
	return STAGE_TRAIN;
}

enum prony_status check_session_start(struct checker *checker, const char *name, int slots,
				      bool shared_memory, struct check_session *out,
				      struct error *err)
{
	const struct check_spec *spec = checker->spec;
	*out = (struct check_session){.checker = checker, .name = name};
	check_cell(checker, checker->networks[checker->network], check_stage(checker), &out->cell);
	out->cell.recipe.slots = slots;
	enum prony_status status = workload_init(&out->work, &out->cell, CHECK_SEED, err);
	out->prepared = true;
	if (status != PRONY_OK)
		return status;
	out->bundle = path_join(checker->folder, shared_memory ? "shared" : "files");
	out->spec = (struct client_spec){
		.argv = spec->argv,
		.self = spec->self,
		.target = &out->cell.target,
		.bundle = out->bundle,
		.tensors_bytes = safetensors_image_bytes(&out->work.weights) + 65536,
		.records_capacity = CHECK_RECORDS,
		.memory_limit_bytes = spec->memory_limit_bytes,
		.timeout_ns = spec->timeout_ns,
		.stop = spec->stop,
		.no_shared_memory = !shared_memory,
		.profile = checker->profiled,
	};
	return client_start(&out->spec, &out->client, err);
}

void check_session_end(struct check_session *session, struct client_end *end)
{
	client_end(session->client, end);
	session->client = NULL;
}

void check_session_release(struct check_session *session)
{
	client_end(session->client, NULL);
	if (session->bundle && !session->checker->spec->keep)
		directory_remove(session->bundle, NULL);
	free(session->bundle);
	if (session->prepared)
		workload_release(&session->work);
}

/* Whether the outcome is prony's own and says nothing about the worker. */
static bool is_our_own(enum prony_status status)
{
	return status == PRONY_INTERRUPTED || status == PRONY_NOMEM || status == PRONY_INTERNAL ||
	       status == PRONY_IO;
}

void check_report(struct checker *checker, const char *session, const char *name,
		  enum check_outcome outcome, const char *detail, const struct gate_check *figures,
		  size_t figure_count)
{
	char check[96];
	snprintf(check, sizeof check, "%s: %s", session, name);
	checker->checks++;
	checker->failures += outcome == CHECK_FAILED;
	checker->sink->result(checker->sink->context, check, outcome, detail, figures,
			      figure_count);
}

void check_none_supported(struct checker *checker, const char *session)
{
	char detail[512] = "it supports no ";
	size_t used = strlen(detail);
	for (size_t i = 0; i < checker->network_count && used < sizeof detail; i++)
		used += (size_t)snprintf(detail + used, sizeof detail - used, "%s%s", i ? ", " : "",
					 checker->networks[i]->name);
	check_report(checker, session, "a network", CHECK_FAILED, detail, NULL, 0);
}

enum prony_status check_conclude(struct checker *checker, const char *session, const char *name,
				 enum prony_status status, const struct error *why,
				 struct error *err)
{
	if (is_our_own(status))
		return error_set(err, status, "%s", why->text);
	check_report(checker, session, name, status == PRONY_OK ? CHECK_PASSED : CHECK_FAILED,
		     status == PRONY_OK ? "" : why->text, NULL, 0);
	return PRONY_OK;
}

enum prony_status check_steps(struct check_session *session, const struct check_step *steps,
			      bool *passed, struct error *err)
{
	enum prony_status status = PRONY_OK;
	*passed = true;
	for (; steps->run && *passed && status == PRONY_OK; steps++) {
		if (steps->training && session->cell.recipe.stage == STAGE_FORWARD)
			continue;
		struct error why = ERROR_INIT;
		enum prony_status outcome = steps->run(session, &why);
		*passed = outcome == PRONY_OK;
		if (session->refused) {
			check_report(session->checker, session->name, steps->name, CHECK_SKIPPED,
				     why.text, NULL, 0);
			break;
		}
		status = check_conclude(session->checker, session->name, steps->name, outcome, &why,
					err);
	}
	return status;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);
	return length >= tail && !strcmp(text + length - tail, end);
}

static enum prony_status check_durations(const json_t *reply, int64_t passed_ns, struct error *why)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)reply, key, value)
	{
		if (!ends_with(key, "_ns") || ends_with(key, "_at_ns"))
			continue;
		if (!json_is_integer(value) || json_integer_value(value) < 0)
			return error_set(why, PRONY_INVALID,
					 "%s must be an integer number of nanoseconds", key);
		if (json_integer_value(value) > passed_ns)
			return error_set(
				why, PRONY_INVALID, "%s is %lld ns, but only %lld ns passed", key,
				(long long)json_integer_value(value), (long long)passed_ns);
	}
	return PRONY_OK;
}

enum prony_status check_ask(struct check_session *session, enum protocol_verb verb, json_t *members,
			    json_t **reply, struct error *why)
{
	int64_t sent, received;
	json_t *answer = NULL;
	enum prony_status status =
		client_request(session->client, verb, members, 0, &answer, &sent, &received, why);
	/* A worker may load its framework before it reads the first request. */
	if (verb == VERB_HELLO)
		sent = client_started_ns(session->client);
	if (status == PRONY_OK)
		status = check_durations(answer, received - sent, why);
	if (status == PRONY_OK && reply)
		*reply = answer;
	else
		json_decref(answer);
	return status;
}

static enum prony_status need_text(const json_t *reply, const char *key, struct error *why)
{
	const char *text = json_string_value(json_object_get(reply, key));
	return text && *text ? PRONY_OK
			     : error_set(why, PRONY_INVALID, "%s must be a non-empty string", key);
}

static enum prony_status need_integer(const json_t *reply, const char *key, int64_t *out,
				      struct error *why)
{
	const json_t *value = json_object_get(reply, key);
	if (!json_is_integer(value))
		return error_set(why, PRONY_INVALID, "%s must be an integer", key);
	*out = json_integer_value(value);
	return PRONY_OK;
}

/* Checks an array of non-empty words and passes each on. */
static enum prony_status need_words(const json_t *reply, const char *key,
				    bool (*take)(void *context, const char *word), void *context,
				    struct error *why)
{
	const json_t *words = json_object_get(reply, key);
	if (!json_array_size(words))
		return error_set(why, PRONY_INVALID, "%s must be a non-empty array of strings",
				 key);
	for (size_t i = 0; i < json_array_size(words); i++) {
		const char *word = json_string_value(json_array_get(words, i));
		if (!word || !take(context, word))
			return error_set(why, PRONY_INVALID, "%s holds %s%s%s", key,
					 word ? "'" : "",
					 word ? word : "an element that is not a string",
					 word ? "', which the protocol does not define" : "");
	}
	return PRONY_OK;
}

static bool take_stage(void *context, const char *word)
{
	struct checker *checker = context;
	enum stage stage;
	if (!stage_parse(word, &stage) || strcmp(word, stage_name(stage)) != 0)
		return false;
	checker->stages |= 1u << stage;
	return true;
}

static bool take_precision(void *context, const char *word)
{
	struct checker *checker = context;
	enum precision precision;
	if (!precision_parse(word, &precision) || precision >= PRECISION_ASKED ||
	    strcmp(word, precision_name(precision)) != 0)
		return false;
	checker->precisions |= 1u << precision;
	return true;
}

static bool take_profile(void *context, const char *word)
{
	struct checker *checker = context;
	enum protocol_profile profile = protocol_profile_parse(word);
	if (profile == PROFILE_COUNT)
		return false;
	checker->profiles |= 1u << profile;
	return true;
}

static bool take_device(void *context, const char *word)
{
	struct checker *checker = context;
	checker->device_found = checker->device_found || !strcmp(word, checker->device);
	return *word && strlen(word) < sizeof checker->device;
}

/* Stores the abilities that later checks need. */
static enum prony_status take_abilities(struct checker *checker, const json_t *reply,
					bool session_profiled, struct error *why)
{
	const json_t *profiles = json_object_get(reply, "profiles");
	checker->stages = checker->precisions = checker->profiles = 0;
	checker->device_found = false;
	enum prony_status status = need_words(reply, "devices", take_device, checker, why);
	if (status == PRONY_OK && !checker->device_found)
		status = error_set(why, PRONY_INVALID,
				   "devices does not contain %s, the device in hello",
				   checker->device);
	if (status == PRONY_OK)
		status = need_words(reply, "stages", take_stage, checker, why);
	if (status == PRONY_OK)
		status = need_words(reply, "precisions", take_precision, checker, why);
	/* The member is optional. */
	if (status == PRONY_OK &&
	    (json_array_size(profiles) || (profiles && !json_is_array(profiles))))
		status = need_words(reply, "profiles", take_profile, checker, why);
	/* Only a session that announced a profile may ask for one. */
	if (!session_profiled)
		checker->profiles = 0;
	if (status == PRONY_OK && checker->stages == 1u << STAGE_LOAD)
		status = error_set(why, PRONY_INVALID, "stages has no stage that computes");
	for (int i = PRECISION_ASKED - 1; i >= 0; i--)
		if (checker->precisions & 1u << i)
			checker->precision = (enum precision)i;
	return status;
}

static enum prony_status check_greeting(struct check_session *session, const json_t *reply,
					struct error *why)
{
	int64_t protocol = 0, rank = 0, world = 0, import_ns = 0;
	enum prony_status status = need_integer(reply, "protocol", &protocol, why);
	if (status == PRONY_OK && protocol != PROTOCOL_VERSION)
		status = error_set(why, PRONY_INVALID, "protocol is %lld instead of %d",
				   (long long)protocol, PROTOCOL_VERSION);
	if (status == PRONY_OK)
		status = need_text(reply, "name", why);
	if (status == PRONY_OK)
		status = need_text(reply, "version", why);
	if (status == PRONY_OK && !json_is_object(json_object_get(reply, "libraries")))
		status = error_set(why, PRONY_INVALID, "libraries must be an object");
	if (status == PRONY_OK && !json_is_boolean(json_object_get(reply, "shared_memory")))
		status = error_set(why, PRONY_INVALID, "shared_memory must be true or false");
	if (status == PRONY_OK)
		status = need_integer(reply, "rank", &rank, why);
	if (status == PRONY_OK)
		status = need_integer(reply, "world_size", &world, why);
	if (status == PRONY_OK &&
	    (rank != session->cell.target.rank || world != session->cell.target.world_size))
		status = error_set(why, PRONY_INVALID,
				   "its rank is %lld of %lld, but hello requested %d of %d",
				   (long long)rank, (long long)world, session->cell.target.rank,
				   session->cell.target.world_size);
	if (status == PRONY_OK)
		status = need_integer(reply, "import_ns", &import_ns, why);
	if (status == PRONY_OK && import_ns < 0)
		status = error_set(why, PRONY_INVALID, "import_ns must be at least 0");
	if (status == PRONY_OK && json_find_control(reply))
		status = error_set(why, PRONY_INVALID, "%s has a control character",
				   json_find_control(reply));
	return status == PRONY_OK
		       ? take_abilities(session->checker, reply, session->spec.profile, why)
		       : status;
}

/* Writes a bundle that fits the worker's abilities. */
static enum prony_status write_bundle(struct check_session *session, struct error *why)
{
	const struct checker *checker = session->checker;
	int slots = session->cell.recipe.slots;
	check_cell(checker, session->cell.network, check_stage(checker), &session->cell);
	session->cell.recipe.slots = slots;
	return workload_write_bundle(&session->work, &session->cell, false, session->bundle, why);
}

enum prony_status check_hello(struct check_session *session, struct error *why)
{
	json_t *reply = NULL;
	enum prony_status status = check_ask(session, VERB_HELLO, NULL, &reply, why);
	if (status == PRONY_OK)
		status = check_greeting(session, reply, why);
	json_decref(reply);
	return status == PRONY_OK ? write_bundle(session, why) : status;
}

static json_t *bundle_member(const struct check_session *session)
{
	return json_pack("{s:s}", "bundle", session->bundle);
}

enum prony_status check_supports(struct check_session *session, struct error *why)
{
	json_t *reply = NULL;
	enum prony_status status =
		check_ask(session, VERB_SUPPORTS, bundle_member(session), &reply, why);
	const json_t *supported = json_object_get(reply, "supported");
	if (status == PRONY_OK && !json_is_boolean(supported))
		status = error_set(why, PRONY_INVALID, "supported must be true or false");
	session->refused = status == PRONY_OK && json_is_false(supported);
	if (session->refused)
		status = error_set(
			why, PRONY_UNSUPPORTED, "it does not support %s, stage %s, %s, on %s: %s",
			session->cell.cell.network, stage_name(session->cell.recipe.stage),
			precision_name(session->cell.recipe.precision), session->cell.target.device,
			json_string_or(reply, "reason", "it gave no 'reason'"));
	json_decref(reply);
	return status;
}

enum prony_status check_open(struct check_session *session, struct error *why)
{
	const struct recipe *recipe = &session->cell.recipe;
	const char *asked = session->cell.target.device;
	json_t *reply = NULL;
	int64_t threads = 0, open_ns;
	enum prony_status status =
		check_ask(session, VERB_OPEN, bundle_member(session), &reply, why);
	if (status == PRONY_OK)
		status = need_text(reply, "device", why);
	if (status == PRONY_OK)
		status = need_text(reply, "precision", why);
	if (status == PRONY_OK)
		status = need_integer(reply, "threads", &threads, why);
	if (status == PRONY_OK)
		status = need_integer(reply, "open_ns", &open_ns, why);
	const char *device = json_string_or(reply, "device", "");
	const char *precision = json_string_or(reply, "precision", "");
	const json_t *settings = json_object_get(reply, "settings");
	if (status == PRONY_OK && strcmp(device, asked) != 0)
		status = error_set(why, PRONY_INVALID, "device %s was requested, but '%s' is used",
				   asked, device);
	if (status == PRONY_OK && strcmp(precision, precision_name(recipe->precision)) != 0)
		status = error_set(why, PRONY_INVALID,
				   "precision %s was requested, but '%s' is used",
				   precision_name(recipe->precision), precision);
	if (status == PRONY_OK && threads != recipe->threads)
		status = error_set(why, PRONY_INVALID, "%d thread was requested, but %lld are used",
				   recipe->threads, (long long)threads);
	if (status == PRONY_OK && settings && !json_is_object(settings))
		status = error_set(why, PRONY_INVALID, "settings must be an object");
	json_decref(reply);
	return status;
}

static enum prony_status check_count(const json_t *reply, const char *key, int64_t expected,
				     struct error *why)
{
	const json_t *value = json_object_get(reply, key);
	if (json_is_null(value))
		return PRONY_OK;
	if (!json_is_integer(value))
		return error_set(why, PRONY_INVALID, "%s must be an integer or null", key);
	if (json_integer_value(value) != expected)
		return error_set(why, PRONY_INVALID, "%s is %lld, but the network has %lld", key,
				 (long long)json_integer_value(value), (long long)expected);
	return PRONY_OK;
}

enum prony_status check_build(struct check_session *session, struct error *why)
{
	const struct graph *graph = &session->work.graph;
	json_t *reply = NULL;
	int64_t build_ns;
	enum prony_status status = check_ask(session, VERB_BUILD, NULL, &reply, why);
	if (status == PRONY_OK)
		status = check_count(reply, "parameters", graph_parameter_count(graph), why);
	if (status == PRONY_OK)
		status = check_count(reply, "macs", graph_macs(graph), why);
	if (status == PRONY_OK)
		status = need_integer(reply, "build_ns", &build_ns, why);
	json_decref(reply);
	return status;
}

enum prony_status check_feed(struct check_session *session, struct error *why)
{
	enum prony_status status = PRONY_OK;
	/* Feed backwards, and the last slot twice: order and refeeding must not matter. */
	for (int i = session->cell.recipe.slots; i >= 0 && status == PRONY_OK; i--) {
		int slot = i % session->cell.recipe.slots;
		json_t *reply = NULL;
		int64_t feed_ns;
		status = check_ask(session, VERB_FEED,
				   json_pack("{s:i, s:i}", "slot", slot, "batch", slot), &reply,
				   why);
		if (status == PRONY_OK)
			status = need_integer(reply, "feed_ns", &feed_ns, why);
		json_decref(reply);
	}
	return status;
}

enum prony_status check_close(struct check_session *session, struct error *why)
{
	enum prony_status status = check_ask(session, VERB_CLOSE, NULL, NULL, why);
	if (status != PRONY_OK)
		return status;
	struct client_end end;
	check_session_end(session, &end);
	if (!end.clean)
		status = error_set(why, PRONY_INVALID,
				   "it must end with exit code 0 after its reply: %s", end.how);
	else if (end.left_over)
		status = error_set(why, PRONY_INVALID,
				   "%d process%s that it started still ran after it ended",
				   end.left_over, end.left_over == 1 ? "" : "es");
	free(end.log);
	return status;
}
