/* The verb hello: reads the target, checks that it is available, and replies with the framework's
 * description. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "worker/verbs_internal.h"

enum prony_status verbs_adapter_result(struct worker *w, enum prony_status status, const char *call,
				       struct error *err)
{
	if (status == PRONY_OK)
		return PRONY_OK;
	w->progress = PROGRESS_FAILED;
	/* If the adapter set no message, this one is used. */
	return error_set(err, status, "%s of adapter %s failed: %s", call, w->adapter->name,
			 prony_status_text(status));
}

void verbs_add(json_t *object, const char *key, json_t *value)
{
	/* Fails only without memory or for text that is not UTF-8. */
	if (json_object_set_new(object, key, value) != 0)
		json_object_set_new(object, key, json_null());
}

void verbs_add_duration(json_t *reply, const char *key, int64_t begin_ns)
{
	verbs_add(reply, key, json_integer(clock_monotonic_ns() - begin_ns));
}

static enum prony_status map_shared(struct worker *w, const json_t *request, bool *mapped,
				    struct error *err)
{
	json_t *shared = json_object_get(request, "shared_memory");
	int64_t fd, bytes;
	enum prony_status status;

	*mapped = false;
	if (!shared || json_is_null(shared))
		return PRONY_OK;
	if (!json_is_object(shared))
		return error_set(err, PRONY_PROTOCOL, "hello: shared_memory must be an object");
	status = json_get_int(shared, "fd", &fd, err);
	if (status == PRONY_OK)
		status = json_get_int(shared, "bytes", &bytes, err);
	if (status != PRONY_OK)
		return status;
	if (fd < 0 || fd > INT32_MAX)
		return error_set(err, PRONY_PROTOCOL, "hello: %" PRId64 " is not a file descriptor",
				 fd);
	return results_map(&w->results, (int)fd, bytes, mapped, err);
}

/* Takes over the descriptors of the ring of batches, if there is one; the worker then owns them. */
static enum prony_status take_ring(struct worker *w, const json_t *request, struct error *err)
{
	json_t *ring = json_object_get(request, "ring");
	int64_t fds[2];

	if (!ring || json_is_null(ring))
		return PRONY_OK;
	if (!json_is_object(ring))
		return error_set(err, PRONY_PROTOCOL, "hello: ring must be an object");
	enum prony_status status = json_get_int(ring, "ready_fd", &fds[0], err);
	if (status == PRONY_OK)
		status = json_get_int(ring, "free_fd", &fds[1], err);
	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < 2; i++)
		if (fds[i] < 0 || fds[i] > INT32_MAX || fds[0] == fds[1] ||
		    fcntl((int)fds[i], F_SETFD, FD_CLOEXEC) < 0)
			return error_set(err, PRONY_PROTOCOL,
					 "hello: ring: %" PRId64
					 " is not a valid descriptor of a pipe",
					 fds[i]);
	w->ring.ready_fd = (int)fds[0];
	w->ring.free_fd = (int)fds[1];
	return PRONY_OK;
}

static json_t *words_of(unsigned set, int count, const char *(*name)(int))
{
	json_t *array = json_array();

	for (int i = 0; i < count; i++)
		if (set & 1u << i)
			json_array_append_new(array, json_string(name(i)));
	return array;
}

static const char *stage_word(int stage)
{
	return stage_name((enum stage)stage);
}

static const char *precision_word(int precision)
{
	return precision_name((enum precision)precision);
}

static const char *profile_word(int profile)
{
	return protocol_profile_name((enum protocol_profile)profile);
}

static json_t *devices_of(const struct probe *probe)
{
	json_t *array = json_array();

	for (int i = 0; i < probe->device_count && i < ADAPTER_DEVICES_MAX; i++)
		json_array_append_new(array, json_string(probe->devices[i]));
	return array;
}

static void describe_probe(const struct worker *w, json_t *reply)
{
	const struct probe *probe = &w->probe;
	json_t *libraries = json_object();

	for (int i = 0; i < probe->library_count && i < ADAPTER_VERSIONS_MAX; i++)
		verbs_add(libraries, probe->libraries[i].name,
			  json_string(probe->libraries[i].version));
	verbs_add(reply, "protocol", json_integer(PROTOCOL_VERSION));
	verbs_add(reply, "name", json_string(w->adapter->name));
	verbs_add(reply, "version", json_string(probe->version));
	verbs_add(reply, "libraries", libraries);
	verbs_add(reply, "devices", devices_of(probe));
	verbs_add(reply, "precisions",
		  words_of(probe->precisions, PRECISION_ASKED, precision_word));
	verbs_add(reply, "stages", words_of(probe->stages, STAGE_COUNT, stage_word));
	if (probe->instruction_set[0])
		verbs_add(reply, "instruction_set", json_string(probe->instruction_set));
	verbs_add(reply, "profiles",
		  words_of(w->adapter->profile ? 1u << PROFILE_LAYERS : 0, PROFILE_COUNT,
			   profile_word));
	if (!w->adapter->profile && w->adapter->no_profile)
		verbs_add(reply, "no_layers", json_string(w->adapter->no_profile));
	if (w->session.target.world_size > 1)
		verbs_add(reply, "collectives",
			  json_string(probe->collectives[0] ? probe->collectives
							    : w->adapter->collectives));
	verbs_add(reply, "rank", json_integer(w->session.target.rank));
	verbs_add(reply, "world_size", json_integer(w->session.target.world_size));
}

/* Reads what must be known before the framework can be loaded; an error changes nothing. */
static enum prony_status parse_hello(const json_t *request, struct target *target, bool *profiled,
				     struct error *err)
{
	const json_t *profile = json_object_get(request, "profile");
	int64_t protocol;
	enum prony_status status = json_get_int(request, "protocol", &protocol, err);

	if (status == PRONY_OK && protocol != PROTOCOL_VERSION)
		status = error_set(err, PRONY_PROTOCOL,
				   "protocol %" PRId64 " is not supported; this worker uses %d",
				   protocol, PROTOCOL_VERSION);
	if (status == PRONY_OK)
		status = target_from_json(request, target, err);
	*profiled = json_is_true(profile);
	if (status == PRONY_OK && profile && !json_is_boolean(profile))
		status = error_set(err, PRONY_PROTOCOL, "profile must be true or false");
	error_prefix(err, "hello");
	return status;
}

/*
 * Checks for targets that no adapter supports, or not this one; the devices are known only later.
 */
static enum prony_status check_target(const struct adapter *adapter, const struct target *target,
				      struct error *err)
{
	if (target->world_size > 1 && !adapter->collectives)
		return error_set(err, PRONY_UNSUPPORTED,
				 "world_size %d: adapter %s has no data parallel training",
				 target->world_size, adapter->name);
	if (target->backend[0])
		return error_set(err, PRONY_UNSUPPORTED, "backend %s: %s has no backends",
				 target->backend, adapter->name);
	struct target known = {.device = ""};
	snprintf(known.options, sizeof known.options, "%s",
		 adapter->options ? adapter->options : target->options);
	for (const char *at = target->options; *at; at += strcspn(at, ","), at += *at == ',') {
		char word[TARGET_WORD_BYTES];

		snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
		if (!target_has_option(&known, word))
			return error_set(err, PRONY_UNSUPPORTED, "unknown option %s; known: %s",
					 word, *known.options ? known.options : "none");
	}
	return PRONY_OK;
}

static enum prony_status check_device(const struct adapter *adapter, const struct probe *probe,
				      const char *device, struct error *err)
{
	struct strbuf found;

	strbuf_init(&found, 0);
	for (int i = 0; i < probe->device_count && i < ADAPTER_DEVICES_MAX; i++) {
		if (strcmp(probe->devices[i], device) == 0) {
			strbuf_release(&found);
			return PRONY_OK;
		}
		strbuf_printf(&found, "%s%s", i > 0 ? ", " : "", probe->devices[i]);
	}
	enum prony_status status =
		error_set(err, PRONY_UNSUPPORTED, "device %s is not available; %s finds %s here",
			  device, adapter->name, found.length > 0 ? strbuf_text(&found) : "none");
	strbuf_release(&found);
	return status;
}

enum prony_status verbs_hello(struct worker *w, const json_t *request, json_t *reply,
			      struct error *err)
{
	bool mapped;
	enum prony_status status =
		parse_hello(request, &w->session.target, &w->session.profiled, err);

	if (status == PRONY_OK)
		status = map_shared(w, request, &mapped, err);
	if (status == PRONY_OK)
		status = take_ring(w, request, err);
	if (status != PRONY_OK)
		return status;
	status = check_target(w->adapter, &w->session.target, err);
	if (status != PRONY_OK)
		return verbs_adapter_result(w, status, "hello", err);
	if (w->adapter->private_size > 0) {
		w->session.private_data = memory_alloc(w->adapter->private_size);
		memset(w->session.private_data, 0, w->adapter->private_size);
	}
	int64_t begin_ns = clock_monotonic_ns();
	w->close_owed = true;
	status = w->adapter->probe(&w->session, &w->probe, err);
	if (status == PRONY_OK)
		status = check_device(w->adapter, &w->probe, w->session.target.device, err);
	verbs_add_duration(reply, "import_ns", begin_ns);
	if (status != PRONY_OK)
		return verbs_adapter_result(w, status, "probe", err);
	describe_probe(w, reply);
	verbs_add(reply, "shared_memory", json_boolean(mapped));
	w->progress = PROGRESS_GREETED;
	return PRONY_OK;
}
