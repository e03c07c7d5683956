#include "client/client.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/process_tree.h"
#include "client/client_internal.h"

/* Turns an ok:false reply into a status and a text. */
static enum prony_status refused(const json_t *reply, const char *verb, struct error *err)
{
	const char *word = json_string_or(reply, "status", "crashed");
	const char *text = json_string_or(reply, "error", "it gave no reason");
	static const struct {
		const char *word;
		enum prony_status status;
	} known[] = {{"unsupported", PRONY_UNSUPPORTED},
		     {"missing", PRONY_MISSING},
		     {"out-of-memory", PRONY_OUT_OF_MEMORY},
		     {"invalid", PRONY_INVALID}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(word, known[i].word))
			return error_set(err, known[i].status, "%s", text);
	return error_set(err, PRONY_CRASHED, "%s failed: %s", verb, text);
}

/* Parses client->line and checks that it is the reply to a request with this id. The id may be null
 * if the worker could not read it; then the reply must be a refusal. */
static enum prony_status take_reply(struct client *client, const char *verb, int64_t id,
				    json_t **reply, struct error *err)
{
	const char *text = strbuf_text(&client->line);
	const char *newline = memchr(text, '\n', client->line.length);
	size_t length = (size_t)(newline - text);
	struct error why = ERROR_INIT;
	json_t *json = NULL;
	client->broken = true; /* until the line is known to be a reply */
	if (json_parse(text, length, "reply", &json, &why) || !json_is_object(json)) {
		json_decref(json);
		return error_set(err, PRONY_PROTOCOL,
				 "the reply to %s is not a JSON object: %.200s", verb,
				 why.code ? why.text : text);
	}
	/*
	 * Checked after the first line, because how much of the rest has arrived by now is chance.
	 */
	if (length + 1 != client->line.length) {
		json_decref(json);
		return error_set(err, PRONY_PROTOCOL, "the reply to %s has more than one line",
				 verb);
	}
	enum prony_status status = PRONY_OK;
	const json_t *ok = json_object_get(json, "ok"), *stated = json_object_get(json, "id");
	bool unread = json_is_null(stated) && json_is_false(ok);
	if (!unread && (!json_is_integer(stated) || json_integer_value(stated) != id)) {
		char *shown = stated ? json_dumps(stated, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
		status = error_set(err, PRONY_PROTOCOL,
				   "the reply to %s has id %.40s instead of %lld", verb,
				   shown ? shown : "none", (long long)id);
		free(shown);
	} else if (!json_is_boolean(ok)) {
		status =
			error_set(err, PRONY_PROTOCOL, "the reply to %s has no boolean 'ok'", verb);
	}
	if (status != PRONY_OK) {
		json_decref(json);
		return status;
	}
	client->broken = false;
	*reply = json;
	return PRONY_OK;
}

static void add_hello_members(struct client *client, json_t *request)
{
	struct target alone;
	target_defaults(&alone);
	json_t *target = target_to_json(client->spec->target ? client->spec->target : &alone);
	json_object_update(request, target);
	json_decref(target);
	json_object_set_new(request, "protocol", json_integer(PROTOCOL_VERSION));
	if (client->spec->profile)
		json_object_set_new(request, "profile", json_true());
	if (!client->spec->no_shared_memory)
		json_object_set_new(request, "shared_memory",
				    json_pack("{s:i, s:I}", "fd", FD_SHARED, "bytes",
					      (json_int_t)client->shared.bytes));
	if (client->spec->ring_bytes)
		json_object_set_new(
			request, "ring",
			json_pack("{s:i, s:i}", "ready_fd", FD_READY, "free_fd", FD_FREE));
}

/* Returns the request as a line without its newline; takes the members' reference. */
static char *write_request(struct client *client, enum protocol_verb verb, json_t *members)
{
	json_t *request = members ? members : json_object();
	json_object_set_new(request, "id", json_integer(client->next_id));
	json_object_set_new(request, "verb", json_string(protocol_verb_name(verb)));
	if (verb == VERB_HELLO)
		add_hello_members(client, request);
	char *text = json_dumps(request, JSON_COMPACT);
	json_decref(request);
	return text;
}

/* Sends a line; `length` excludes the terminator, which is replaced by the newline. */
static enum prony_status send_line(struct client *client, const char *verb, char *line,
				   size_t length, int64_t timeout_ns, struct error *err)
{
	client->asked = (struct client_request_state){
		.id = client->next_id++, .patience_ns = client_patience_ns(client, timeout_ns)};
	/* Otherwise a death while sending would be explained by the rest of the last reply. */
	strbuf_clear(&client->line);
	client->asked.sent_ns = clock_monotonic_ns();
	client->asked.deadline_ns = client->asked.sent_ns + client->asked.patience_ns;
	/* One write, so that nothing comes between. */
	line[length] = '\n';
	enum prony_status status = client_may_ask(client, verb, err);
	return status == PRONY_OK
		       ? client_send(client, verb, line, length + 1, client->asked.deadline_ns, err)
		       : status;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The error of a line that refuses its request. */
static enum prony_status refusal(struct client *client, struct error *err)
{
	json_t *reply = NULL;
	const char *verb = protocol_verb_name(client->asked.verb);
	enum prony_status status = take_reply(client, verb, client->asked.id, &reply, err);

	if (status == PRONY_OK)
		status = refused(reply, verb, err);
	json_decref(reply);
	return status;
}

/* How long others may take after one of them refused: for the end of a worker that died. */
#define REFUSED_WAIT_NS INT64_C(1000000000)

/* Whether a whole line refuses its request. */
static bool line_refuses(const struct client *client)
{
	json_t *reply = json_loads(strbuf_text(&client->line), JSON_DISABLE_EOF_CHECK, NULL);
	bool refuses = json_is_false(json_object_get(reply, "ok"));

	json_decref(reply);
	return refuses;
}

/* Waits until each client has a whole line; *failed: the client that the error is about. */
static enum prony_status await_lines(struct client *const *clients, size_t count, const char *verb,
				     size_t *failed, struct error *err)
{
	enum prony_status status = PRONY_OK;
	size_t refused = count;
	int64_t latest_ns = INT64_MAX;
	for (;;) {
		int64_t deadline_ns = INT64_MAX;
		for (size_t i = 0; i < count && status == PRONY_OK; i++) {
			struct client_request_state *asked = &clients[i]->asked;
			*failed = i;
			if (asked->answered)
				continue;
			status = client_read_line(clients[i], verb,
						  earlier(asked->deadline_ns, latest_ns),
						  &asked->answered, err);
			if (!asked->answered) {
				deadline_ns = earlier(deadline_ns, asked->deadline_ns);
				continue;
			}
			asked->received_ns = clock_monotonic_ns();
			if (count > 1 && refused == count && line_refuses(clients[i])) {
				refused = i;
				latest_ns = asked->received_ns + REFUSED_WAIT_NS;
			}
		}
		bool over = status != PRONY_OK || deadline_ns == INT64_MAX;
		if (over && refused < count && (status == PRONY_OK || status == PRONY_TIMEOUT)) {
			*failed = refused;
			error_clear(err);
			return refusal(clients[refused], err);
		}
		if (over)
			return status;
		deadline_ns = earlier(deadline_ns, latest_ns);
		client_wait(clients, count, false, deadline_ns);
	}
}

/* Records what an ok reply promises; an error if the worker promises what it cannot do. */
static enum prony_status note_answer(struct client *client, enum protocol_verb verb,
				     const json_t *answer, struct error *err)
{
	if (verb == VERB_HELLO) {
		client->said_hello = true;
		client->uses_shared = json_bool_or(answer, "shared_memory", false);
		if (client->uses_shared && client->spec->no_shared_memory)
			return error_set(
				err, PRONY_PROTOCOL,
				"it says that it mapped shared memory, but none was offered");
	}
	client->closed = verb == VERB_CLOSE;
	return PRONY_OK;
}

enum prony_status client_ask(struct client *client, enum protocol_verb verb, json_t *members,
			     int64_t timeout_ns, struct error *err)
{
	const char *name = protocol_verb_name(verb);
	char *line = write_request(client, verb, members);
	if (!line)
		return error_set(err, PRONY_INTERNAL, "cannot write the request %s", name);
	enum prony_status status = send_line(client, name, line, strlen(line), timeout_ns, err);
	client->asked.verb = verb;
	free(line);
	return status;
}

enum prony_status client_await(struct client *const *clients, size_t count, size_t *failed,
			       struct error *err)
{
	enum prony_status status = await_lines(
		clients, count, protocol_verb_name(clients[0]->asked.verb), failed, err);
	/* The replies of the others are no longer awaited. */
	for (size_t i = 0; i < count && status != PRONY_OK; i++)
		clients[i]->broken |= !clients[i]->asked.answered;
	return status;
}

enum prony_status client_take_reply(struct client *client, struct client_reply *out,
				    struct error *err)
{
	const char *name = protocol_verb_name(client->asked.verb);
	json_t *answer = NULL;
	enum prony_status status = take_reply(client, name, client->asked.id, &answer, err);
	if (status == PRONY_OK && json_is_false(json_object_get(answer, "ok")))
		status = refused(answer, name, err);
	if (status == PRONY_OK)
		status = note_answer(client, client->asked.verb, answer, err);
	if (status != PRONY_OK) {
		json_decref(answer);
		return status;
	}
	*out = (struct client_reply){.json = answer,
				     .sent_ns = client->asked.sent_ns,
				     .received_ns = client->asked.received_ns};
	return PRONY_OK;
}

enum prony_status client_request(struct client *client, enum protocol_verb verb, json_t *members,
				 int64_t timeout_ns, json_t **reply, int64_t *sent_ns,
				 int64_t *received_ns, struct error *err)
{
	struct client_reply answer;
	size_t failed;
	enum prony_status status = client_ask(client, verb, members, timeout_ns, err);
	if (status == PRONY_OK)
		status = client_await(&client, 1, &failed, err);
	if (status == PRONY_OK)
		status = client_take_reply(client, &answer, err);
	if (status != PRONY_OK)
		return status;
	if (sent_ns)
		*sent_ns = answer.sent_ns;
	if (received_ns)
		*received_ns = answer.received_ns;
	if (reply)
		*reply = answer.json;
	else
		json_decref(answer.json);
	return PRONY_OK;
}

enum prony_status client_check_name(const json_t *reply, const char *name, struct error *err)
{
	const char *said = json_string_or(reply, "name", "");

	if (!strcmp(said, name))
		return PRONY_OK;
	return error_set(err, PRONY_INVALID,
			 "the worker of %s says in hello that its name is \"%.60s\"; correct its "
			 "hello, or the name in its descriptor",
			 name, said);
}

enum prony_status client_send_raw(struct client *client, const char *bytes, size_t length,
				  int64_t timeout_ns, json_t **reply, struct error *err)
{
	char *line = malloc(length + 1);
	if (!line)
		return error_set(err, PRONY_NOMEM, "not enough memory for a line of %zu bytes",
				 length);
	if (length)
		memcpy(line, bytes, length);
	enum prony_status status = send_line(client, "a raw line", line, length, timeout_ns, err);
	size_t failed;
	if (status == PRONY_OK)
		status = await_lines(&client, 1, "a raw line", &failed, err);
	if (status == PRONY_OK)
		status = take_reply(client, "a raw line", client->asked.id, reply, err);
	free(line);
	return status;
}

int64_t client_next_id(const struct client *client)
{
	return client->next_id;
}

int64_t client_started_ns(const struct client *client)
{
	return client->started_ns;
}

pid_t client_guard(const struct client *client)
{
	return client->guard;
}

bool client_answered(const struct client *client)
{
	return client->asked.answered;
}

bool client_listens(const struct client *client)
{
	return client->said_hello && !client->broken && !client->closed;
}

bool client_uses_shared_memory(const struct client *client)
{
	return client->uses_shared;
}

int64_t client_record_room(const struct client *client)
{
	return (int64_t)(client->shared.layout.records_bytes / sizeof(struct step_record));
}
