/* worker-check: ordinary work, verb by verb, with a check of every claim in the replies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "bundle/bundle.h"
#include "conformance/check_internal.h"
#include "profile/read.h"

/* One run; its records must be contiguous, as the protocol's loop makes them. */
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
					   "record %zu does not begin at the end of the record "
					   "before; %lld ns lie between them",
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
	/* Blocks with a shorter last one, then a block longer than the run, then whole blocks. */
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
		return error_set(why, PRONY_INVALID, "found tensor '%s' where '%s' is expected",
				 tensor->name, name);
	if (tensor->dtype != DTYPE_F32 && !(wide_allowed && tensor->dtype == DTYPE_F64))
		return error_set(why, PRONY_INVALID, "%s is %s instead of F32", name,
				 dtype_name(tensor->dtype));
	if (!shape_equal(&tensor->shape, shape)) {
		char is[128], must[128];
		shape_text(&tensor->shape, is, sizeof is);
		shape_text(shape, must, sizeof must);
		return error_set(why, PRONY_INVALID, "%s has shape %s instead of %s", name, is,
				 must);
	}
	return check_finite(tensor, why);
}

/* Reads a single tensor with the name of the readout. */
static enum prony_status read_one(struct check_session *session, const char *what,
				  const struct shape *shape, bool wide_allowed, struct error *why)
{
	struct arena arena;
	struct tensor_set set;
	arena_init(&arena, 0);
	enum prony_status status = client_read(session->client, what, &arena, &set, why);
	if (status == PRONY_OK && set.count != 1)
		status = error_set(why, PRONY_INVALID,
				   "reading %s returned %zu tensors instead of one", what,
				   set.count);
	if (status == PRONY_OK)
		status = check_tensor(&set.tensors[0], what, shape, wide_allowed, why);
	arena_release(&arena);
	return status;
}

/* Reads all values of a kind; names, order and shapes must be the graph's. */
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
		status = error_set(why, PRONY_INVALID, "%s has %zu tensors instead of %zu", what,
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

/* A worker without a stage that ends before the update may have no gradients to return, and some
 * frameworks overwrite them in the update. The gate reads them in a stage without update. */
static enum prony_status read_gradients(struct check_session *session, struct error *why)
{
	if (!(session->checker->stages & 1u << STAGE_FORWARD_BACKWARD))
		return PRONY_OK;
	enum prony_status status = read_all(session, "gradients", VALUE_PARAMETER, why);
	if (status != PRONY_UNSUPPORTED)
		return status;
	*why = (struct error)ERROR_INIT;
	return PRONY_OK;
}

static enum prony_status read_state(struct check_session *session, struct error *why)
{
	return read_all(session, "state", VALUE_STATE, why);
}

/* Checks the profiles that it offers, if any. */
static enum prony_status
ask_profile(struct check_session *session, enum protocol_profile what,
	    enum prony_status (*take)(struct profile *profile, const char *path,
				      const struct profile_bracket *bracket, struct error *err),
	    struct error *why)
{
	struct profile profile = {.status = CELL_OK};
	struct profile_bracket bracket = {.steps = 3};
	if (!(session->checker->profiles & 1u << what))
		return PRONY_OK;
	char *path = path_join(session->bundle, BUNDLE_PROFILE_FILE);
	arena_init(&profile.arena, 0);
	enum prony_status status = client_profile(session->client, what, bracket.steps, 1, 0,
						  &bracket.begin_ns, &bracket.end_ns, why);
	if (status == PRONY_OK)
		status = take(&profile, path, &bracket, why);
	profile_release(&profile);
	free(path);
	return status;
}

static enum prony_status profile_layers(struct check_session *session, struct error *why)
{
	return ask_profile(session, PROFILE_LAYERS, profile_read_layers, why);
}

static enum prony_status profile_lines(struct check_session *session, struct error *why)
{
	return ask_profile(session, PROFILE_LINES, profile_read_lines, why);
}

static enum prony_status work_with_network(struct checker *checker, const char *name, int slots,
					   bool shared_memory, bool *refused, struct error *err)
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
		{"read weights", read_weights, true},
		{"read state", read_state, true},
		{"profile layers", profile_layers, false},
		{"profile lines", profile_lines, false},
		/* This one is last, because a worker that refuses it accepts nothing else. */
		{"read gradients", read_gradients, true},
		{"close", check_close, false},
		{NULL, NULL, false},
	};
	struct check_session session;
	bool passed = false;
	/* Announce a profile in one of the two sessions: it must make no other difference. */
	checker->profiled = shared_memory;
	enum prony_status status =
		check_session_start(checker, name, slots, shared_memory, &session, err);
	if (status == PRONY_OK)
		status = check_steps(&session, steps, &passed, err);
	checker->profiled = false;
	*refused = session.refused;
	checker->stopped = !passed;
	check_session_release(&session);
	return status;
}

enum prony_status check_work(struct checker *checker, const char *name, int slots,
			     bool shared_memory, struct error *err)
{
	bool refused = true;
	enum prony_status status = PRONY_OK;
	while (status == PRONY_OK && refused && checker->network < checker->network_count) {
		status = work_with_network(checker, name, slots, shared_memory, &refused, err);
		checker->network += refused;
	}
	if (status == PRONY_OK && refused)
		check_none_supported(checker, name);
	return status;
}
