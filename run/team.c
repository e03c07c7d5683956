#include "run/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum prony_status run_emit(const struct run_caller *caller, const struct run_event *event,
			   struct error *err)
{
	return caller->event ? caller->event(caller->context, event, err) : PRONY_OK;
}

void launch_event(const struct launch *launch, enum run_event_kind kind, const char *text)
{
	struct run_event event = {
		.kind = kind, .cell = launch->index, .round = launch->round, .text = text};
	run_emit(launch->caller, &event, NULL);
}

enum prony_status emit_framework(const struct run_caller *caller, size_t cell,
				 const json_t *details, struct error *err)
{
	struct run_event event = {.kind = EVENT_FRAMEWORK, .cell = cell, .details = details};
	return details ? run_emit(caller, &event, err) : PRONY_OK;
}

enum prony_status team_start(struct team *team, const struct client_spec *spec, struct error *err)
{
	size_t wanted = (size_t)spec->target->world_size;
	enum prony_status status = PRONY_OK;
	team->count = 0;
	if (wanted > CLIENTS_MAX)
		return error_set(err, PRONY_INTERNAL,
				 "%zu workers requested, at most %d are supported", wanted,
				 CLIENTS_MAX);
	while (team->count < wanted && status == PRONY_OK) {
		size_t rank = team->count++;
		struct team_member *member = &team->members[rank];
		member->spec = *spec;
		member->target = *spec->target;
		member->target.rank = (int)rank;
		member->spec.target = &member->target;
		team->clients[rank] = NULL;
		status = client_start(&member->spec, &team->clients[rank], err);
	}
	return status;
}

void team_watch_rest(struct team *team,
		     int64_t (*rested_ns)(void *context, int64_t from_ns, int64_t to_ns),
		     void *context)
{
	for (size_t i = 0; i < team->count; i++) {
		team->members[i].spec.rested_ns = rested_ns;
		team->members[i].spec.rested_context = context;
	}
}

enum prony_status team_request(struct team *team, enum protocol_verb verb, json_t *members,
			       team_check *check, void *context, struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < team->count && status == PRONY_OK; i++)
		status = client_ask(team->clients[i], verb, json_deep_copy(members), 0, err);
	json_decref(members);
	if (status == PRONY_OK)
		status = client_await(team->clients, team->count, err);
	for (size_t i = 0; i < team->count && status == PRONY_OK; i++) {
		struct client_reply reply;
		status = client_take_reply(team->clients[i], &reply, err);
		if (status != PRONY_OK)
			break;
		status = check(context, i, &reply, err);
		json_decref(reply.json);
	}
	return status;
}

static int64_t took_ns(const struct client_window *window)
{
	return window->records[window->count - 1].end_ns - window->records[0].begin_ns;
}

static int64_t longest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

enum prony_status team_run(struct team *team, int64_t steps, enum sync_mode sync, int64_t every,
			   int64_t slot, int64_t timeout_ns, struct client_window *out,
			   struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < team->count && status == PRONY_OK; i++)
		status =
			client_ask_run(team->clients[i], steps, sync, every, slot, timeout_ns, err);
	if (status == PRONY_OK)
		status = client_await(team->clients, team->count, err);
	for (size_t i = 0; i < team->count && status == PRONY_OK; i++) {
		struct client_window window;
		status = client_take_window(team->clients[i], steps, sync, every, &window, err);
		if (status != PRONY_OK)
			break;
		struct client_window slowest =
			i == 0 || took_ns(&window) > took_ns(out) ? window : *out;
		if (i > 0) {
			slowest.wait_ns = longest(window.wait_ns, out->wait_ns);
			slowest.copy_ns = longest(window.copy_ns, out->copy_ns);
			slowest.rested_ns = longest(window.rested_ns, out->rested_ns);
		}
		*out = slowest;
	}
	return status;
}

enum prony_status team_read(struct team *team, const char *what, struct arena *arena,
			    struct tensor_set *out, struct error *err)
{
	return client_read(team->clients[0], what, arena, out, err);
}

enum prony_status team_read_loss(struct team *team, double *loss, struct error *err)
{
	struct arena arena;
	struct tensor_set set;
	arena_init(&arena, 0);
	enum prony_status status = team_read(team, "loss", &arena, &set, err);
	if (status == PRONY_OK) {
		const struct tensor *tensor = tensor_find(&set, "loss");
		if (!tensor || shape_elements(&tensor->shape) != 1 ||
		    (tensor->dtype != DTYPE_F32 && tensor->dtype != DTYPE_F64))
			status = error_set(err, PRONY_PROTOCOL,
					   "the worker returned no scalar 'loss'");
		else
			*loss = tensor->dtype == DTYPE_F64 ? *(const double *)tensor->data
							   : (double)*(const float *)tensor->data;
	}
	arena_release(&arena);
	return status;
}

/* Copies a set out of shared memory, because the next read overwrites it. */
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

enum prony_status team_read_kept(struct team *team, const char *what, struct arena *arena,
				 struct tensor_set *out, struct error *err)
{
	struct arena scratch;
	struct tensor_set set;
	arena_init(&scratch, 0);
	enum prony_status status = team_read(team, what, &scratch, &set, err);
	if (status == PRONY_OK)
		keep_set(arena, &set, out);
	arena_release(&scratch);
	return status;
}

void team_end(struct team *team, struct client_end *out)
{
	*out = (struct client_end){.rss_peak_bytes = -1, .user_ns = -1, .system_ns = -1};
	for (size_t i = 0; i < team->count; i++) {
		struct client_end end = {.rss_peak_bytes = -1, .user_ns = -1, .system_ns = -1};
		client_end(team->clients[i], &end);
		if (i == 0) {
			*out = end;
			continue;
		}
		/* The sum is known only if it is known for every worker. */
		bool known = out->rss_peak_bytes >= 0 && end.rss_peak_bytes >= 0;
		out->rss_peak_bytes = known ? out->rss_peak_bytes + end.rss_peak_bytes : -1;
		known = out->user_ns >= 0 && end.user_ns >= 0;
		out->user_ns = known ? out->user_ns + end.user_ns : -1;
		out->system_ns = known ? out->system_ns + end.system_ns : -1;
		out->left_over += end.left_over;
		if (out->clean && !end.clean) {
			char *log = out->log;
			out->log = end.log;
			end.log = log;
			memcpy(out->how, end.how, sizeof out->how);
			out->signalled = end.signalled;
			out->exited_zero = end.exited_zero;
			out->clean = false;
		}
		free(end.log);
	}
	team->count = 0;
}
