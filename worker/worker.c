#include "worker/worker.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "worker/channel.h"
#include "worker/verbs.h"

/* Adds the outcome to the reply: {"id", "ok": true, ...} or {"id", "ok": false, "status", "error"}.
 * The id is that of the request (borrowed, may be NULL), or null if it has none. */
static json_t *finish_reply(json_t *reply, const json_t *request, enum prony_status status,
			    const struct error *err)
{
	json_t *id = json_object_get(request, "id");

	id = json_is_integer(id) ? json_incref(id) : json_null();
	if (status != PRONY_OK) {
		json_decref(reply);
		return json_pack("{so sb ss ss}", "id", id, "ok", 0, "status",
				 worker_status_word(status), "error",
				 err->text[0] ? err->text : prony_status_text(status));
	}
	if (json_object_get(reply, "id")) /* the fake adapter has set another one */
		json_decref(id);
	else
		json_object_set_new(reply, "id", id);
	json_object_set_new(reply, "ok", json_true());
	return reply;
}

static enum prony_status parse_request(const char *line, size_t length, json_t **request,
				       enum protocol_verb *verb, struct error *err)
{
	const char *name;
	int64_t id;
	enum prony_status status = json_parse(line, length, "request", request, err);

	if (status != PRONY_OK)
		return status;
	if (!json_is_object(*request))
		return error_set(err, PRONY_PROTOCOL, "a request must be a JSON object");
	status = json_get_int(*request, "id", &id, err);
	if (status == PRONY_OK)
		status = json_get_string(*request, "verb", &name, err);
	if (status != PRONY_OK)
		return status;
	*verb = protocol_verb_parse(name);
	if (*verb == VERB_COUNT)
		return error_set(err, PRONY_PROTOCOL, "unknown verb \"%.40s\"", name);
	return PRONY_OK;
}

/* Serves one line; *closed is set by a close that was understood. */
static enum prony_status serve_line(struct worker *worker, const struct error *refusal,
				    struct channel *channel, const char *line, size_t length,
				    bool *closed, struct error *err)
{
	struct error why = ERROR_INIT;
	enum protocol_verb verb = VERB_COUNT;
	json_t *request = NULL, *reply = json_object();
	enum prony_status status = parse_request(line, length, &request, &verb, &why);

	if (status == PRONY_OK && refusal->code != PRONY_OK && verb != VERB_CLOSE)
		status = error_set(&why, refusal->code, "%s", refusal->text);
	else if (status == PRONY_OK)
		status = worker_serve_verb(worker, verb, request, reply, &why);
	reply = finish_reply(reply, request, status, &why);
	*closed = status == PRONY_OK && verb == VERB_CLOSE;
	status = channel_write(channel, reply, err);
	json_decref(reply);
	json_decref(request);
	return status;
}

/* Replies to a line that was too long, so that a parent never waits in vain. */
static enum prony_status refuse_line(struct channel *channel, const struct error *why,
				     struct error *err)
{
	json_t *reply = finish_reply(json_object(), NULL, why->code, why);
	enum prony_status status = channel_write(channel, reply, err);

	json_decref(reply);
	return status;
}

static enum prony_status serve_all(struct worker *worker, const struct error *refusal,
				   struct channel *channel, struct error *err)
{
	bool closed = false;
	enum prony_status status = PRONY_OK;

	while (status == PRONY_OK && !closed) {
		struct error problem = ERROR_INIT;
		const char *line;
		size_t length;

		status = channel_read(channel, &line, &length, &problem);
		if (status == PRONY_PROTOCOL)
			status = refuse_line(channel, &problem, err);
		else if (status != PRONY_OK)
			error_set(err, status, "%s", problem.text);
		else if (!line)
			break;
		else
			status = serve_line(worker, refusal, channel, line, length, &closed, err);
	}
	return status;
}

static int worker_serve(const struct adapter *adapter, const struct worker_options *options,
			int request_fd, int reply_fd, struct error *err)
{
	struct error refusal = ERROR_INIT;
	struct channel channel;
	struct worker worker;

	if (!adapter)
		error_set(&refusal, PRONY_MISSING, "there is no adapter \"%.64s\"",
			  options->adapter ? options->adapter : "");
	else if (adapter->absent_reason)
		error_set(&refusal, PRONY_MISSING, "%s: %s", adapter->name, adapter->absent_reason);
	else
		adapter_check(adapter, &refusal);
	worker_init(&worker, adapter, options->library, options->option);
	channel_init(&channel, request_fd, reply_fd);
	enum prony_status status = serve_all(&worker, &refusal, &channel, err);

	worker_release(&worker);
	channel_release(&channel);
	return prony_status_exit(status);
}

/* Returns the descriptor that an environment variable names, set to be closed when the framework
 * starts programs. */
static enum prony_status environment_fd(const char *name, int *out, struct error *err)
{
	const char *text = getenv(name);
	char *end;

	if (!text)
		return error_set(err, PRONY_USAGE,
				 "%s is not set; prony run starts workers (to test one, use prony "
				 "worker-check)",
				 name);
	long fd = strtol(text, &end, 10);
	if (end == text || *end || fd < 0 || fd > INT32_MAX || fcntl((int)fd, F_GETFD) < 0)
		return error_set(err, PRONY_USAGE,
				 "%s is \"%.40s\", which is not an open descriptor", name, text);
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return error_set(err, PRONY_USAGE, "%s: descriptor %ld cannot be used", name, fd);
	*out = (int)fd;
	return PRONY_OK;
}

int worker_main(const struct worker_options *options, struct error *err)
{
	int request_fd = -1, reply_fd = -1;
	enum prony_status status = environment_fd(PROTOCOL_ENV_REQUEST, &request_fd, err);

	if (status == PRONY_OK)
		status = environment_fd(PROTOCOL_ENV_REPLY, &reply_fd, err);
	if (status != PRONY_OK)
		return prony_status_exit(status);
	return worker_serve(adapter_find(options->adapter), options, request_fd, reply_fd, err);
}
