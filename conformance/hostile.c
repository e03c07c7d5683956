/* worker-check: invalid requests. The worker must refuse each, and close must still work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "bundle/bundle.h"
#include "conformance/check_internal.h"

#define DEPTH 2000 /* nested arrays: a parser with unlimited recursion crashes here */

/* Checks a refusal against docs/worker-protocol.md: this status, and a line of text. */
static enum prony_status check_refusal(const json_t *reply, const char *wanted, struct error *why)
{
	const char *status = json_string_or(reply, "status", "");
	const char *text = json_string_or(reply, "error", "");
	if (json_is_true(json_object_get(reply, "ok")))
		return error_set(why, PRONY_INVALID, "it accepts it");
	if (strcmp(status, wanted) != 0)
		return error_set(why, PRONY_INVALID,
				 "its refusal has the status '%s' instead of '%s'", status, wanted);
	if (!*text || strchr(text, '\n'))
		return error_set(why, PRONY_INVALID,
				 "its refusal needs 'error', a message of one line");
	return PRONY_OK;
}

static enum prony_status refuse_raw(struct check_session *session, const char *bytes, size_t length,
				    const char *wanted, struct error *why)
{
	json_t *reply = NULL;
	enum prony_status status = client_send_raw(session->client, bytes, length, 0, &reply, why);
	if (status == PRONY_OK)
		status = check_refusal(reply, wanted, why);
	json_decref(reply);
	return status;
}

/* `members` follow "id": "\"verb\": \"run\", \"steps\": 0". */
static enum prony_status refuse_as(struct check_session *session, const char *members,
				   const char *wanted, struct error *why)
{
	char line[800];
	int length =
		snprintf(line, sizeof line, "{\"id\": %lld%s%s}",
			 (long long)client_next_id(session->client), *members ? ", " : "", members);
	enum prony_status status = refuse_raw(session, line, (size_t)length, wanted, why);
	error_prefix(why, "%.200s", line);
	return status;
}

static enum prony_status refuse(struct check_session *session, const char *members,
				struct error *why)
{
	return refuse_as(session, members, "invalid", why);
}

static enum prony_status refuse_all(struct check_session *session, const char *const *rows,
				    struct error *why)
{
	enum prony_status status = PRONY_OK;
	for (; *rows && status == PRONY_OK; rows++)
		status = refuse(session, *rows, why);
	return status;
}

#define HELLO                                                                                      \
	"\"verb\": \"hello\", \"backend\": \"\", \"options\": [], \"protocol\": 2, \"device\": "   \
	"\"cpu\", "
#define ALONE "\"rank\": 0, \"world_size\": 1"
#define RUN "\"verb\": \"run\", \"steps\": 1, \"sync\": \"end\", \"every\": 1, \"slot\": 0"

enum place { AT_START, AT_GREETED, AT_OPENED, AT_BUILT, AT_RAN, AT_FAILED };

/* The table "States" of docs/worker-protocol.md: in which states each request is allowed. */
static const struct {
	const char *members;
	bool names_bundle;
	unsigned legal;
} verbs[] = {
	{HELLO ALONE, false, 1u << AT_START},
	{"\"verb\": \"supports\"", true, 1u << AT_GREETED},
	{"\"verb\": \"open\"", true, 1u << AT_GREETED},
	{"\"verb\": \"build\"", false, 1u << AT_OPENED},
	{"\"verb\": \"feed\", \"slot\": 0, \"batch\": 0", false, 1u << AT_BUILT | 1u << AT_RAN},
	{RUN, false, 1u << AT_RAN}, /* no slot was fed in these states */
	{"\"verb\": \"read\", \"what\": \"weights\"", false, 1u << AT_BUILT | 1u << AT_RAN},
	{"\"verb\": \"read\", \"what\": \"logits\"", false, 1u << AT_RAN},
	{"\"verb\": \"read\", \"what\": \"loss\"", false, 1u << AT_RAN},
	{"\"verb\": \"read\", \"what\": \"gradients\"", false, 1u << AT_RAN},
	/* hello announced no profile */
	{"\"verb\": \"profile\", \"what\": \"layers\", \"steps\": 1, \"slot\": 0", false, 0},
	{"\"verb\": \"dance\"", false, 0},
};

/* Sends everything that is not allowed in this state. */
static enum prony_status out_of_place(struct check_session *session, enum place place,
				      struct error *why)
{
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs && status == PRONY_OK; i++) {
		char members[600];
		snprintf(members, sizeof members, "%s%s%.400s%s", verbs[i].members,
			 verbs[i].names_bundle ? ", \"bundle\": \"" : "",
			 verbs[i].names_bundle ? session->bundle : "",
			 verbs[i].names_bundle ? "\"" : "");
		if (!(verbs[i].legal & 1u << place))
			status = refuse(session, members, why);
	}
	return status;
}

#define OUT_OF_PLACE(name, place)                                                                  \
	static enum prony_status name(struct check_session *session, struct error *why)            \
	{                                                                                          \
		return out_of_place(session, place, why);                                          \
	}
OUT_OF_PLACE(early, AT_START)
OUT_OF_PLACE(after_hello, AT_GREETED)
OUT_OF_PLACE(after_open, AT_OPENED)
OUT_OF_PLACE(after_build, AT_BUILT)
OUT_OF_PLACE(after_run, AT_RAN)
OUT_OF_PLACE(after_failure, AT_FAILED)

static enum prony_status bad_hello(struct check_session *session, struct error *why)
{
	static const char *const rows[] = {
		"\"verb\": \"hello\"",
		HELLO "\"rank\": 1, \"world_size\": 1",
		HELLO "\"rank\": -1, \"world_size\": 1",
		HELLO "\"rank\": 0, \"world_size\": 0",
		"\"verb\": \"hello\", \"backend\": \"\", \"options\": [], \"protocol\": 1, "
		"\"device\": "
		"\"cpu\", " ALONE,
		"\"verb\": \"hello\", \"backend\": \"\", \"options\": \"x\", \"protocol\": 2, "
		"\"device\": \"cpu\", " ALONE,
		"\"verb\": \"hello\", \"backend\": \"\", \"options\": [], \"protocol\": 2, "
		"\"device\": "
		"7, " ALONE,
		NULL};
	return refuse_all(session, rows, why);
}

/* Asks for something that the worker does not have; it must fail, and only close is left. */
static enum prony_status has_not(struct check_session *session, const char *members,
				 struct error *why)
{
	return refuse_as(session, members, "unsupported", why);
}

static enum prony_status unknown_option(struct check_session *session, struct error *why)
{
	return has_not(session,
		       "\"verb\": \"hello\", \"backend\": \"\", \"options\": [\"no-such-option\"], "
		       "\"protocol\": 2, \"device\": \"cpu\", " ALONE,
		       why);
}

static enum prony_status unknown_backend(struct check_session *session, struct error *why)
{
	return has_not(session,
		       "\"verb\": \"hello\", \"backend\": \"no-such-backend\", \"options\": [], "
		       "\"protocol\": 2, \"device\": \"cpu\", " ALONE,
		       why);
}

static enum prony_status unknown_device(struct check_session *session, struct error *why)
{
	return has_not(session,
		       "\"verb\": \"hello\", \"backend\": \"\", \"options\": [], \"protocol\": 2, "
		       "\"device\": \"cuda:4095\", " ALONE,
		       why);
}

/* A run that would write beyond the records region; files have no limit. */
static enum prony_status too_many_records(struct check_session *session, struct error *why)
{
	char members[200];
	if (!client_uses_shared_memory(session->client))
		return PRONY_OK;
	snprintf(
		members, sizeof members,
		"\"verb\": \"run\", \"steps\": %lld, \"sync\": \"step\", \"every\": 1, \"slot\": 0",
		(long long)client_record_room(session->client) + 1);
	return refuse(session, members, why);
}

static enum prony_status work_goes_on(struct check_session *session, struct error *why)
{
	struct client_window window;
	return client_run(session->client, 5, SYNC_STEP, 1, 0, 0, &window, why);
}

static enum prony_status no_loss_forward(struct check_session *session, struct error *why)
{
	static const char *const rows[] = {"\"verb\": \"read\", \"what\": \"loss\"",
					   "\"verb\": \"read\", \"what\": \"gradients\"", NULL};
	return session->cell.recipe.stage == STAGE_FORWARD ? refuse_all(session, rows, why)
							   : PRONY_OK;
}

static enum prony_status not_json(struct check_session *session, struct error *why)
{
	static const char bytes[] = "\x00\xff\xfe not { json";
	return refuse_raw(session, bytes, sizeof bytes - 1, "invalid", why);
}

static enum prony_status not_an_object(struct check_session *session, struct error *why)
{
	static const char *const lines[] = {"[1, 2]", "7", "null", "\"hello\"", "{\"id\": 1"};
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < sizeof lines / sizeof *lines && status == PRONY_OK; i++) {
		status = refuse_raw(session, lines[i], strlen(lines[i]), "invalid", why);
		error_prefix(why, "%s", lines[i]);
	}
	return status;
}

static enum prony_status deep(struct check_session *session, struct error *why)
{
	char line[DEPTH];
	memset(line, '[', sizeof line);
	return refuse_raw(session, line, sizeof line, "invalid", why);
}

static enum prony_status too_long(struct check_session *session, struct error *why)
{
	size_t length = PROTOCOL_LINE_BYTES_MAX + 4096;
	char *line = malloc(length);
	if (!line)
		return error_set(why, PRONY_NOMEM, "not enough memory for a line of %zu bytes",
				 length);
	memset(line, 'x', length);
	enum prony_status status = refuse_raw(session, line, length, "invalid", why);
	free(line);
	return status;
}

static enum prony_status no_verb(struct check_session *session, struct error *why)
{
	static const char *const rows[] = {
		"", "\"verb\": \"dance\"", "\"verb\": 7", "\"verb\": null", "\"verb\": \"\"", NULL};
	return refuse_all(session, rows, why);
}

static enum prony_status bad_feed(struct check_session *session, struct error *why)
{
	static const char *const rows[] = {"\"verb\": \"feed\", \"slot\": -1, \"batch\": 0",
					   "\"verb\": \"feed\", \"slot\": 4, \"batch\": 0",
					   "\"verb\": \"feed\", \"slot\": 0, \"batch\": 4000000000",
					   "\"verb\": \"feed\", \"slot\": \"first\", \"batch\": 0",
					   "\"verb\": \"feed\"",
					   NULL};
	return refuse_all(session, rows, why);
}

static enum prony_status bad_run(struct check_session *session, struct error *why)
{
	static const char *const rows[] = {
		"\"verb\": \"run\", \"steps\": 0, \"sync\": \"end\", \"slot\": 0",
		"\"verb\": \"run\", \"steps\": -3, \"sync\": \"step\", \"slot\": 0",
		"\"verb\": \"run\", \"steps\": 1, \"sync\": \"sometimes\", \"slot\": 0",
		"\"verb\": \"run\", \"steps\": 1, \"sync\": \"blocks\", \"every\": 0, \"slot\": 0",
		"\"verb\": \"run\", \"steps\": 1, \"sync\": \"end\", \"slot\": 4",
		"\"verb\": \"run\"",
		NULL};
	return refuse_all(session, rows, why);
}

static enum prony_status bad_read(struct check_session *session, struct error *why)
{
	static const char *const rows[] = {"\"verb\": \"read\", \"what\": \"mind\"",
					   "\"verb\": \"read\", \"what\": [\"loss\"]",
					   "\"verb\": \"read\"", NULL};
	return refuse_all(session, rows, why);
}

static enum prony_status hang_up(struct check_session *session, struct error *why)
{
	enum prony_status status = client_hang_up(session->client, 0, why);
	struct client_end end;
	check_session_end(session, &end);
	if (status == PRONY_OK && !end.exited_zero)
		status = error_set(why, PRONY_INVALID, "it must end with exit code 0: %s", end.how);
	free(end.log);
	return status;
}

/* Unknown members must be ignored, because later versions of prony may send some. */
static enum prony_status unknown_members(struct check_session *session, struct error *why)
{
	json_t *members = json_pack("{s:s, s:{s:[i]}, s:n}", "bundle", session->bundle, "x-later",
				    "list", 1, "x-null");
	json_t *reply = NULL;
	enum prony_status status = check_ask(session, VERB_SUPPORTS, members, &reply, why);
	if (status == PRONY_OK && !json_bool_or(reply, "supported", false))
		status = error_set(why, PRONY_INVALID,
				   "it no longer supports what it supported before");
	json_decref(reply);
	return status;
}

static enum prony_status no_bundle(struct check_session *session, struct error *why)
{
	static const char *const rows[] = {
		"\"verb\": \"supports\"", "\"verb\": \"supports\", \"bundle\": 5",
		"\"verb\": \"supports\", \"bundle\": \"/nonexistent/prony\"", NULL};
	return refuse_all(session, rows, why);
}

static enum prony_status damaged_bundle(struct check_session *session, struct error *why)
{
	static const char *const contents[] = {"", "{", "[]", "{\"schema\": 1, \"recipe\": 3}"};
	char *path = path_join(session->bundle, BUNDLE_CASE_FILE), members[400];
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < sizeof contents / sizeof *contents && status == PRONY_OK; i++) {
		status = file_write_atomic(path, contents[i], strlen(contents[i]), why);
		snprintf(members, sizeof members, "\"verb\": \"open\", \"bundle\": \"%.300s\"",
			 session->bundle);
		if (status == PRONY_OK)
			status = refuse(session, members, why);
		error_prefix(why, "%s holds '%s'", BUNDLE_CASE_FILE, contents[i]);
	}
	free(path);
	return status;
}

/* hello requests for things that the worker does not have. */
#define REFUSED_HELLO(rows, name, run)                                                             \
	static const struct check_step rows[] = {                                                  \
		{name, run, false},                                                                \
		{"after a failed request", after_failure, false},                                  \
		{"close after refusals", check_close, false},                                      \
		{NULL, NULL, false},                                                               \
	}
REFUSED_HELLO(option_not_there, "unknown option", unknown_option);
REFUSED_HELLO(backend_not_there, "unknown backend", unknown_backend);
REFUSED_HELLO(device_not_there, "unknown device", unknown_device);

static const struct check_step before_work[] = {
	{"before hello", early, false},
	{"bad hello", bad_hello, false},
	{"hello", check_hello, false},
	{"not JSON", not_json, false},
	{"not an object", not_an_object, false},
	{"nested too deep", deep, false},
	{"line over 1 MiB", too_long, false},
	{"unknown verb", no_verb, false},
	{"close after refusals", check_close, false},
	{NULL, NULL, false},
};
static const struct check_step places[] = {
	{"hello", check_hello, false},
	{"after hello", after_hello, false},
	{"open", check_open, false},
	{"after open", after_open, false},
	{"build", check_build, false},
	{"after build", after_build, false},
	{"feed", check_feed, false},
	{"run after refusals", work_goes_on, false},
	{"after run", after_run, false},
	{"no loss in the stage forward", no_loss_forward, false},
	{"close after refusals", check_close, false},
	{NULL, NULL, false},
};
static const struct check_step at_work[] = {
	{"hello", check_hello, false},
	{"unknown members", unknown_members, false},
	{"open", check_open, false},
	{"build", check_build, false},
	{"feed", check_feed, false},
	{"bad feed", bad_feed, false},
	{"bad run", bad_run, false},
	{"records beyond their region", too_many_records, false},
	{"bad read", bad_read, false},
	{"run after refusals", work_goes_on, false},
	{"close after refusals", check_close, false},
	{NULL, NULL, false},
};
static const struct check_step bad_bundles[] = {
	{"hello", check_hello, false},
	{"no bundle", no_bundle, false},
	{"damaged bundle", damaged_bundle, false},
	{"close after refusals", check_close, false},
	{NULL, NULL, false},
};
static const struct check_step end_of_requests[] = {
	{"hello", check_hello, false},
	{"open", check_open, false},
	{"build", check_build, false},
	{"feed", check_feed, false},
	{"stops at the end of requests", hang_up, false},
	{NULL, NULL, false},
};

enum prony_status check_hostile(struct checker *checker, struct error *err)
{
	static const struct {
		const char *name;
		const struct check_step *steps;
	} groups[] = {{"hostile lines", before_work},	{"places", places},
		      {"hello", option_not_there},	{"hello", backend_not_there},
		      {"hello", device_not_there},	{"hostile values", at_work},
		      {"hostile bundles", bad_bundles}, {"end", end_of_requests}};
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < sizeof groups / sizeof *groups && status == PRONY_OK; i++) {
		struct check_session session;
		bool passed;
		status = check_session_start(checker, groups[i].name, CHECK_SLOTS, true, &session,
					     err);
		if (status == PRONY_OK)
			status = check_steps(&session, groups[i].steps, &passed, err);
		check_session_release(&session);
	}
	return status;
}
