/* worker-check: what no good parent sends. Each is answered with a refusal, and close still works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "bundle/bundle.h"
#include "conformance/check_internal.h"

#define DEPTH 2000 /* nested arrays: a parser that recurses without a limit ends here */

/* A refusal as docs/worker-protocol.md wants it: status and a line for a person. */
static enum prony_status check_refusal(const json_t *reply, struct error *why)
{
	static const char *const known[] = {"unsupported", "missing", "out-of-memory", "crashed",
					    "invalid"};
	const char *status = json_string_or(reply, "status", NULL);
	const char *text = json_string_or(reply, "error", "");
	bool is_known = false;
	if (json_is_true(json_object_get(reply, "ok")))
		return error_set(why, PRONY_INVALID, "it says ok to it");
	for (size_t i = 0; status && i < sizeof known / sizeof *known; i++)
		is_known = is_known || !strcmp(status, known[i]);
	if (!is_known)
		return error_set(why, PRONY_INVALID, "its refusal has the status '%s'",
				 status ? status : "");
	if (!*text || strchr(text, '\n'))
		return error_set(why, PRONY_INVALID,
				 "its refusal needs 'error', one line for a person");
	return PRONY_OK;
}

static enum prony_status refuse_raw(struct check_session *session, const char *bytes, size_t length,
				    struct error *why)
{
	json_t *reply = NULL;
	enum prony_status status = client_send_raw(session->client, bytes, length, 0, &reply, why);
	if (status == PRONY_OK)
		status = check_refusal(reply, why);
	json_decref(reply);
	return status;
}

/* `members` follow "id": "\"verb\": \"run\", \"steps\": 0". */
static enum prony_status refuse(struct check_session *session, const char *members,
				struct error *why)
{
	char line[512];
	int length =
		snprintf(line, sizeof line, "{\"id\": %lld%s%s}",
			 (long long)client_next_id(session->client), *members ? ", " : "", members);
	enum prony_status status = refuse_raw(session, line, (size_t)length, why);
	error_prefix(why, "%.200s", line);
	return status;
}

static enum prony_status refuse_all(struct check_session *session, const char *const *rows,
				    struct error *why)
{
	enum prony_status status = PRONY_OK;
	for (; *rows && status == PRONY_OK; rows++)
		status = refuse(session, *rows, why);
	return status;
}

static enum prony_status not_json(struct check_session *session, struct error *why)
{
	static const char bytes[] = "\x00\xff\xfe not { json";
	return refuse_raw(session, bytes, sizeof bytes - 1, why);
}

static enum prony_status not_an_object(struct check_session *session, struct error *why)
{
	static const char *const lines[] = {"[1, 2]", "7", "null", "\"hello\"", "{\"id\": 1"};
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < sizeof lines / sizeof *lines && status == PRONY_OK; i++) {
		status = refuse_raw(session, lines[i], strlen(lines[i]), why);
		error_prefix(why, "%s", lines[i]);
	}
	return status;
}

static enum prony_status deep(struct check_session *session, struct error *why)
{
	char line[DEPTH];
	memset(line, '[', sizeof line);
	return refuse_raw(session, line, sizeof line, why);
}

static enum prony_status too_long(struct check_session *session, struct error *why)
{
	size_t length = PROTOCOL_LINE_BYTES_MAX + 4096;
	char *line = malloc(length);
	if (!line)
		return error_set(why, PRONY_NOMEM, "no memory for a line of %zu bytes", length);
	memset(line, 'x', length);
	enum prony_status status = refuse_raw(session, line, length, why);
	free(line);
	return status;
}

static enum prony_status no_verb(struct check_session *session, struct error *why)
{
	static const char *const rows[] = {
		"", "\"verb\": \"dance\"", "\"verb\": 7", "\"verb\": null", "\"verb\": \"\"", NULL};
	return refuse_all(session, rows, why);
}

static enum prony_status too_early(struct check_session *session, struct error *why)
{
	static const char *const rows[] = {
		"\"verb\": \"run\", \"steps\": 1, \"sync\": \"end\", \"every\": 1, \"slot\": 0",
		"\"verb\": \"read\", \"what\": \"weights\"", NULL};
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
	if (status == PRONY_OK && end.signalled)
		status = error_set(why, PRONY_CRASHED, "%s instead of an exit", end.how);
	free(end.log);
	return status;
}

/* Unknown members change nothing: a parent of a later version may send some. */
static enum prony_status unknown_members(struct check_session *session, struct error *why)
{
	json_t *members = json_pack("{s:s, s:{s:[i]}, s:n}", "bundle", session->bundle, "x-later",
				    "list", 1, "x-null");
	json_t *reply = NULL;
	enum prony_status status = check_ask(session, VERB_SUPPORTS, members, &reply, why);
	if (status == PRONY_OK && !json_bool_or(reply, "supported", false))
		status = error_set(why, PRONY_INVALID, "it no longer supports what it did");
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

/* Some of these workers may refuse everything after their first refusal; so each group has its own.
 */
static const struct check_step before_work[] = {
	{"hello", check_hello, false},
	{"not JSON", not_json, false},
	{"not an object", not_an_object, false},
	{"nested too deep", deep, false},
	{"line over 1 MiB", too_long, false},
	{"unknown verb", no_verb, false},
	{"verbs too early", too_early, false},
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
	{"bad read", bad_read, false},
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
	{"stops at the end of requests", hang_up, false},
	{NULL, NULL, false},
};

enum prony_status check_hostile(struct checker *checker, struct error *err)
{
	static const struct {
		const char *name;
		const struct check_step *steps;
	} groups[] = {{"hostile lines", before_work},
		      {"hostile values", at_work},
		      {"hostile bundles", bad_bundles},
		      {"end", end_of_requests}};
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
