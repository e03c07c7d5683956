/* worker-check: ordinary work, verb by verb, with everything that a reply claims looked at. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "conformance/check_internal.h"

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
			return error_set(why, PRONY_INVALID, "%s must be a count of nanoseconds",
					 key);
		if (json_integer_value(value) > passed_ns)
			return error_set(
				why, PRONY_INVALID, "%s claims %lld ns, but only %lld ns passed",
				key, (long long)json_integer_value(value), (long long)passed_ns);
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
	return text && *text
		       ? PRONY_OK
		       : error_set(why, PRONY_INVALID, "%s must be a text that is not empty", key);
}

static enum prony_status need_integer(const json_t *reply, const char *key, int64_t *out,
				      struct error *why)
{
	const json_t *value = json_object_get(reply, key);
	if (!json_is_integer(value))
		return error_set(why, PRONY_INVALID, "%s must be a whole number", key);
	*out = json_integer_value(value);
	return PRONY_OK;
}

/* An array of words that are not empty; each is handed on. */
static enum prony_status need_words(const json_t *reply, const char *key,
				    bool (*take)(void *context, const char *word), void *context,
				    struct error *why)
{
	const json_t *words = json_object_get(reply, key);
	if (!json_array_size(words))
		return error_set(why, PRONY_INVALID, "%s must be an array of at least one word",
				 key);
	for (size_t i = 0; i < json_array_size(words); i++) {
		const char *word = json_string_value(json_array_get(words, i));
		if (!word || !take(context, word))
			return error_set(why, PRONY_INVALID, "%s holds %s%s%s", key,
					 word ? "'" : "",
					 word ? word : "something that is not a word",
					 word ? "', which the protocol does not know" : "");
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
	if (!precision_parse(word, &precision) || strcmp(word, precision_name(precision)) != 0)
		return false;
	checker->precisions |= 1u << precision;
	return true;
}

static bool take_device(void *context, const char *word)
{
	struct checker *checker = context;
	checker->device_found = checker->device_found || !strcmp(word, checker->device);
	return *word && strlen(word) < sizeof checker->device;
}

/* What it can do, as the later checks need it. */
static enum prony_status take_abilities(struct checker *checker, const json_t *reply,
					struct error *why)
{
	checker->stages = checker->precisions = 0;
	checker->device_found = false;
	enum prony_status status = need_words(reply, "devices", take_device, checker, why);
	if (status == PRONY_OK && !checker->device_found)
		status = error_set(why, PRONY_INVALID, "devices lack %s, which hello named",
				   checker->device);
	if (status == PRONY_OK)
		status = need_words(reply, "stages", take_stage, checker, why);
	if (status == PRONY_OK)
		status = need_words(reply, "precisions", take_precision, checker, why);
	if (status == PRONY_OK && checker->stages == 1u << STAGE_LOAD)
		status = error_set(why, PRONY_INVALID, "stages has none that computes");
	for (int i = PRECISION_COUNT - 1; i >= 0; i--)
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
		status = error_set(why, PRONY_INVALID, "it speaks protocol %lld, not %d",
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
				   "it says rank %lld of %lld, hello said %d of %d",
				   (long long)rank, (long long)world, session->cell.target.rank,
				   session->cell.target.world_size);
	if (status == PRONY_OK)
		status = need_integer(reply, "import_ns", &import_ns, why);
	return status == PRONY_OK ? take_abilities(session->checker, reply, why) : status;
}

/* Writes the bundle as what the worker offers asks for. */
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
	else if (status == PRONY_OK && json_is_false(supported))
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
		status = error_set(why, PRONY_INVALID, "asked for device %s, '%s' took effect",
				   asked, device);
	if (status == PRONY_OK && strcmp(precision, precision_name(recipe->precision)) != 0)
		status = error_set(why, PRONY_INVALID, "asked for precision %s, '%s' took effect",
				   precision_name(recipe->precision), precision);
	if (status == PRONY_OK && threads != recipe->threads)
		status = error_set(why, PRONY_INVALID, "asked for %d thread, %lld took effect",
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
		return error_set(why, PRONY_INVALID, "%s must be a whole number or null", key);
	if (json_integer_value(value) != expected)
		return error_set(why, PRONY_INVALID, "%s are %lld, the network has %lld", key,
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
	/* Backwards, and the last slot twice: neither the order nor a second batch may matter. */
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

/* One run; its records must join, as the protocol's loop makes them. */
static enum prony_status run_steps(struct check_session *session, int64_t steps,
				   enum sync_mode sync, int64_t every, int64_t slot,
				   struct error *why)
{
	struct client_window window;
	enum prony_status status =
		client_run(session->client, steps, sync, every, slot, 0, &window, why);
	for (size_t i = 1; status == PRONY_OK && i < window.count; i++)
		if (window.records[i].begin_ns != window.records[i - 1].end_ns)
			status = error_set(why, PRONY_INVALID,
					   "record %zu does not begin where the one before it "
					   "ended: %lld ns are "
					   "nobody's",
					   i,
					   (long long)(window.records[i].begin_ns -
						       window.records[i - 1].end_ns));
	return status;
}

static enum prony_status run_first(struct check_session *session, struct error *why)
{
	return run_steps(session, 1, SYNC_END, 1, 0, why);
}

static enum prony_status run_end(struct check_session *session, struct error *why)
{
	return run_steps(session, 5, SYNC_END, 1, session->cell.recipe.slots - 1, why);
}

static enum prony_status run_each(struct check_session *session, struct error *why)
{
	return run_steps(session, 5, SYNC_STEP, 1, 1, why);
}

static enum prony_status run_blocks(struct check_session *session, struct error *why)
{
	/* The last block is shorter; then one that is longer than the run; then whole ones. */
	enum prony_status status = run_steps(session, 7, SYNC_BLOCKS, 3, 0, why);
	if (status == PRONY_OK)
		status = run_steps(session, 2, SYNC_BLOCKS, 100, 0, why);
	return status == PRONY_OK ? run_steps(session, 6, SYNC_BLOCKS, 3, 2, why) : status;
}

static enum prony_status check_finite(const struct tensor *tensor, struct error *why)
{
	int64_t count = shape_elements(&tensor->shape);
	for (int64_t i = 0; i < count; i++) {
		double value = tensor->dtype == DTYPE_F64
				       ? ((const double *)tensor->data)[i]
				       : (double)((const float *)tensor->data)[i];
		if (!isfinite(value))
			return error_set(why, PRONY_INVALID, "element %lld of %s is not finite",
					 (long long)i, tensor->name);
	}
	return PRONY_OK;
}

static enum prony_status check_tensor(const struct tensor *tensor, const char *name,
				      const struct shape *shape, bool wide_allowed,
				      struct error *why)
{
	if (strcmp(tensor->name, name) != 0)
		return error_set(why, PRONY_INVALID, "'%s' stands where '%s' belongs", tensor->name,
				 name);
	if (tensor->dtype != DTYPE_F32 && !(wide_allowed && tensor->dtype == DTYPE_F64))
		return error_set(why, PRONY_INVALID, "%s is %s instead of F32", name,
				 dtype_name(tensor->dtype));
	if (!shape_equal(&tensor->shape, shape)) {
		char is[128], must[128];
		shape_text(&tensor->shape, is, sizeof is);
		shape_text(shape, must, sizeof must);
		return error_set(why, PRONY_INVALID, "%s has the shape %s instead of %s", name, is,
				 must);
	}
	return check_finite(tensor, why);
}

/* Reads one tensor, named like what is read. */
static enum prony_status read_one(struct check_session *session, const char *what,
				  const struct shape *shape, bool wide_allowed, struct error *why)
{
	struct arena arena;
	struct tensor_set set;
	arena_init(&arena, 0);
	enum prony_status status = client_read(session->client, what, &arena, &set, why);
	if (status == PRONY_OK && set.count != 1)
		status = error_set(why, PRONY_INVALID, "reading %s gave %zu tensors instead of one",
				   what, set.count);
	if (status == PRONY_OK)
		status = check_tensor(&set.tensors[0], what, shape, wide_allowed, why);
	arena_release(&arena);
	return status;
}

/* Reads all values of a kind: names, order and shapes are the graph's. */
static enum prony_status read_all(struct check_session *session, const char *what,
				  enum value_kind kind, struct error *why)
{
	const struct graph *graph = &session->work.graph;
	struct arena arena;
	struct tensor_set set;
	size_t at = 0;
	arena_init(&arena, 0);
	enum prony_status status = client_read(session->client, what, &arena, &set, why);
	for (int i = 0; i < graph->value_count && status == PRONY_OK; i++) {
		const struct value *value = &graph->values[i];
		if (value->kind != kind)
			continue;
		status = at < set.count
				 ? check_tensor(&set.tensors[at], value->name, &value->shape, false,
						why)
				 : error_set(why, PRONY_INVALID, "%s lack %s", what, value->name);
		at++;
	}
	if (status == PRONY_OK && at != set.count)
		status = error_set(why, PRONY_INVALID, "%s hold %zu tensors instead of %zu", what,
				   set.count, at);
	arena_release(&arena);
	return status;
}

static enum prony_status read_logits(struct check_session *session, struct error *why)
{
	const struct graph *graph = &session->work.graph;
	return read_one(session, "logits", &graph->values[graph->logits].shape, false, why);
}

static enum prony_status read_loss(struct check_session *session, struct error *why)
{
	const struct shape scalar = {.rank = 0};
	return read_one(session, "loss", &scalar, true, why);
}

static enum prony_status read_weights(struct check_session *session, struct error *why)
{
	return read_all(session, "weights", VALUE_PARAMETER, why);
}

static enum prony_status read_gradients(struct check_session *session, struct error *why)
{
	return read_all(session, "gradients", VALUE_PARAMETER, why);
}

static enum prony_status read_state(struct check_session *session, struct error *why)
{
	return read_all(session, "state", VALUE_STATE, why);
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
		status = error_set(why, PRONY_INVALID, "%d process%s that it started outlived it",
				   end.left_over, end.left_over == 1 ? "" : "es");
	free(end.log);
	return status;
}

enum prony_status check_work(struct checker *checker, const char *name, int slots,
			     bool shared_memory, struct error *err)
{
	static const struct check_step steps[] = {
		{"hello", check_hello, false},
		{"supports", check_supports, false},
		{"open", check_open, false},
		{"build", check_build, false},
		{"feed", check_feed, false},
		{"run, first step", run_first, false},
		{"read loss", read_loss, true},
		{"read logits", read_logits, false},
		{"run, sync end", run_end, false},
		{"run, sync step", run_each, false},
		{"run, sync blocks", run_blocks, false},
		{"read loss again", read_loss, true},
		{"read gradients", read_gradients, true},
		{"read weights", read_weights, true},
		{"read state", read_state, true},
		{"close", check_close, false},
		{NULL, NULL, false},
	};
	struct check_session session;
	bool passed = false;
	enum prony_status status =
		check_session_start(checker, name, slots, shared_memory, &session, err);
	if (status == PRONY_OK)
		status = check_steps(&session, steps, &passed, err);
	checker->stopped = !passed;
	check_session_release(&session);
	return status;
}
