#include "run/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/launcher.h"
#include "run/rendezvous.h"

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

/* The rank's part of what all ranks share. */
static void share_of_rank(const struct client_spec *all, int rank, int ranks,
			  struct client_spec *out)
{
	int each = all->cpu_count / ranks;

	if (ranks == 1)
		return;
	if (all->cpus && each > 0) {
		out->cpus = all->cpus + rank * each;
		out->cpu_count = each;
	}
	out->memory_limit_bytes = all->memory_limit_bytes / ranks;
}

enum prony_status team_start(struct team *team, const struct client_spec *spec, struct error *err)
{
	size_t wanted = (size_t)spec->target->world_size;
	enum prony_status status = PRONY_OK;
	struct client_spec shared = *spec;
	team->count = 0;
	team->launcher = NULL;
	team->target = *spec->target;
	shared.target = &team->target;
	if (wanted > CLIENTS_MAX)
		return error_set(err, PRONY_INTERNAL,
				 "%zu workers requested, at most %d are supported", wanted,
				 CLIENTS_MAX);
	if (wanted > 1)
		status = rendezvous_make(spec->bundle, &team->target, err);
	if (wanted > 1 && spec->launcher && status == PRONY_OK)
		status = launcher_start(spec->launcher, &shared, &team->launcher, err);
	while (team->count < wanted && status == PRONY_OK) {
		size_t rank = team->count++;
		struct team_member *member = &team->members[rank];
		member->spec = *spec;
		share_of_rank(spec, (int)rank, (int)wanted, &member->spec);
		member->target = team->target;
		member->target.rank = (int)rank;
		member->spec.target = &member->target;
		if (team->launcher)
			member->spec.join_fd = launcher_join_fd(team->launcher, (int)rank);
		team->clients[rank] = NULL;
		status = client_start(&member->spec, &team->clients[rank], err);
	}
	return status;
}

/* Adds the rank to the error, unless the launcher was killed, which ends all; returns the status.
 */
static enum prony_status of_rank(const struct team *team, size_t rank, enum prony_status status,
				 struct error *err)
{
	if (status == PRONY_CRASHED && team->launcher && launcher_lost(team->launcher, err))
		return status;
	if (status != PRONY_OK && team->count > 1)
		error_prefix(err, "rank %zu of %zu", rank, team->count);
	return status;
}

/* Waits for the replies of all. */
static enum prony_status await(struct team *team, struct error *err)
{
	size_t failed = 0;
	enum prony_status status = client_await(team->clients, team->count, &failed, err);
	char silent[128] = "";
	if (status != PRONY_TIMEOUT || team->count == 1)
		return of_rank(team, failed, status, err);
	/* One that hangs makes those hang that wait for it. */
	for (size_t i = 0; i < team->count; i++)
		if (!client_answered(team->clients[i]))
			snprintf(silent + strlen(silent), sizeof silent - strlen(silent), " %zu",
				 i);
	error_prefix(err, "of %zu ranks these did not answer:%s", team->count, silent);
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

enum prony_status team_request_each(struct team *team, enum protocol_verb verb,
				    json_t *const *members, team_check *check, void *context,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < team->count; i++) {
		if (status == PRONY_OK)
			status = of_rank(team, i,
					 client_ask(team->clients[i], verb, members[i], 0, err),
					 err);
		else
			json_decref(members[i]);
	}
	if (status == PRONY_OK)
		status = await(team, err);
	for (size_t i = 0; i < team->count && status == PRONY_OK; i++) {
		struct client_reply reply;
		status = of_rank(team, i, client_take_reply(team->clients[i], &reply, err), err);
		if (status != PRONY_OK)
			break;
		status = of_rank(team, i, check(context, i, &reply, err), err);
		json_decref(reply.json);
	}
	return status;
}

enum prony_status team_request(struct team *team, enum protocol_verb verb, json_t *members,
			       team_check *check, void *context, struct error *err)
{
	json_t *each[CLIENTS_MAX];
	for (size_t i = 0; i < team->count; i++)
		each[i] = json_deep_copy(members);
	json_decref(members);
	return team_request_each(team, verb, each, check, context, err);
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
		status = of_rank(
			team, i,
			client_ask_run(team->clients[i], steps, sync, every, slot, timeout_ns, err),
			err);
	if (status == PRONY_OK)
		status = await(team, err);
	for (size_t i = 0; i < team->count && status == PRONY_OK; i++) {
		struct client_window window;
		status = of_rank(
			team, i,
			client_take_window(team->clients[i], steps, sync, every, &window, err),
			err);
		if (status != PRONY_OK)
			break;
		team->members[i].began_ns = window.records[0].begin_ns;
		team->members[i].took_ns = took_ns(&window);
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

enum prony_status team_read_rank(struct team *team, size_t rank, const char *what,
				 struct arena *arena, struct tensor_set *out, struct error *err)
{
	return of_rank(team, rank, client_read(team->clients[rank], what, arena, out, err), err);
}

enum prony_status team_read(struct team *team, const char *what, struct arena *arena,
			    struct tensor_set *out, struct error *err)
{
	return team_read_rank(team, 0, what, arena, out, err);
}

/* Adds the loss of one rank. */
static enum prony_status add_loss(struct team *team, size_t rank, double *sum, struct error *err)
{
	struct arena arena;
	struct tensor_set set;
	arena_init(&arena, 0);
	enum prony_status status = team_read_rank(team, rank, "loss", &arena, &set, err);
	if (status == PRONY_OK) {
		const struct tensor *tensor = tensor_find(&set, "loss");
		if (!tensor || shape_elements(&tensor->shape) != 1 ||
		    (tensor->dtype != DTYPE_F32 && tensor->dtype != DTYPE_F64))
			status = error_set(err, PRONY_PROTOCOL,
					   "the worker returned no scalar 'loss'");
		else
			*sum += tensor->dtype == DTYPE_F64 ? *(const double *)tensor->data
							   : (double)*(const float *)tensor->data;
	}
	arena_release(&arena);
	return status;
}

enum prony_status team_read_loss(struct team *team, double *loss, struct error *err)
{
	enum prony_status status = PRONY_OK;
	double sum = 0;
	for (size_t i = 0; i < team->count && status == PRONY_OK; i++)
		status = add_loss(team, i, &sum, err);
	if (status == PRONY_OK)
		*loss = sum / (double)team->count;
	return status;
}

enum prony_status team_read_logits(struct team *team, struct arena *arena, struct tensor *out,
				   struct error *err)
{
	struct tensor_set set;
	enum prony_status status = team_read_kept(team, "logits", arena, &set, err);
	const struct tensor *first = status == PRONY_OK ? tensor_find(&set, "logits") : NULL;
	*out = first ? *first : (struct tensor){.name = NULL};
	if (!first || team->count == 1)
		return status;
	size_t bytes = (size_t)tensor_bytes(first);
	out->shape.dims[0] *= (int64_t)team->count;
	out->data = arena_alloc(arena, bytes * team->count);
	memcpy(out->data, first->data, bytes);
	for (size_t i = 1; i < team->count && status == PRONY_OK; i++) {
		status = team_read_rank(team, i, "logits", arena, &set, err);
		const struct tensor *next = status == PRONY_OK ? tensor_find(&set, "logits") : NULL;
		if (status == PRONY_OK && (!next || !shape_equal(&next->shape, &first->shape) ||
					   next->dtype != first->dtype))
			status = error_set(err, PRONY_PROTOCOL,
					   "the logits of rank %zu have not the shape of rank 0's",
					   i);
		if (status == PRONY_OK)
			memcpy((char *)out->data + i * bytes, next->data, bytes);
	}
	return status;
}

/* Compares the weights of a rank with those of rank 0, each in its own shared memory. */
static enum prony_status compare_weights(size_t rank, const struct tensor_set *first,
					 const struct tensor_set *own, struct error *err)
{
	for (size_t i = 0; i < first->count; i++) {
		const struct tensor *a = &first->tensors[i], *b = tensor_find(own, a->name);
		if (!b || b->dtype != a->dtype || !shape_equal(&a->shape, &b->shape) ||
		    memcmp(a->data, b->data, (size_t)tensor_bytes(a)) != 0)
			return error_set(err, PRONY_MISMATCH,
					 "rank %zu holds other weights than rank 0 (%.160s)", rank,
					 a->name);
	}
	return PRONY_OK;
}

enum prony_status team_check_weights(struct team *team, struct error *err)
{
	struct arena arena;
	struct tensor_set first, own;
	enum prony_status status = PRONY_OK;
	if (team->count < 2)
		return PRONY_OK;
	arena_init(&arena, 0);
	status = team_read(team, "weights", &arena, &first, err);
	for (size_t i = 1; i < team->count && status == PRONY_OK; i++) {
		status = team_read_rank(team, i, "weights", &arena, &own, err);
		if (status == PRONY_OK)
			status = compare_weights(i, &first, &own, err);
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

/* Lets all ranks close together, since a framework's own end may be collective. An error is seen at
 * their ends. */
static void close_all(struct team *team)
{
	struct error ignored = ERROR_INIT;
	size_t failed;
	for (size_t i = 0; i < team->count; i++)
		if (!team->clients[i] || !client_listens(team->clients[i]))
			return;
	for (size_t i = 0; i < team->count; i++)
		if (client_ask(team->clients[i], VERB_CLOSE, NULL, 0, &ignored) != PRONY_OK)
			return;
	if (client_await(team->clients, team->count, &failed, &ignored) != PRONY_OK)
		return;
	for (size_t i = 0; i < team->count; i++) {
		struct client_reply reply;
		if (client_take_reply(team->clients[i], &reply, &ignored) == PRONY_OK)
			json_decref(reply.json);
	}
}

void team_end(struct team *team, struct client_end *out)
{
	if (team->count > 1)
		close_all(team);
	/* MPI's end waits for all ranks, so none may be asked alone. */
	for (size_t i = 0; team->launcher && i < team->count; i++)
		if (team->clients[i] && client_listens(team->clients[i]))
			client_give_up(team->clients[i]);
	*out = (struct client_end){.rss_peak_bytes = -1, .user_ns = -1, .system_ns = -1};
	for (size_t i = 0; i < team->count; i++) {
		struct client_end end = {.rss_peak_bytes = -1, .user_ns = -1, .system_ns = -1};
		client_end(team->clients[i], &end);
		team->members[i].rss_peak_bytes = end.rss_peak_bytes;
		team->members[i].user_ns = end.user_ns;
		team->members[i].system_ns = end.system_ns;
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
	launcher_end(team->launcher);
	team->launcher = NULL;
	if (team->target.world_size > 1)
		rendezvous_remove(&team->target);
	team->count = 0;
}
