/* The verbs whose results are more than a line: step records of run, tensors of read. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "bundle/bundle.h"
#include "client/client_internal.h"

/* A reply may follow its window by so much; a worker that claims far less time than passed is
 * wrong. Correct workers in Python came up to 2 s late on two cores with ten other processes. */
#define UNEXPLAINED_NS INT64_C(3000000000)

static void keep_records(struct client *client, void *records, const struct step_record **out)
{
	free(client->records);
	client->records = records;
	*out = records;
}

/* Reads step records from shared memory or from the bundle's file. They are copied, so that the
 * worker cannot change them between the check and their use. */
static enum prony_status fetch_records(struct client *client, int64_t count,
				       const struct step_record **out, struct error *err)
{
	if (client->uses_shared) {
		size_t held = (size_t)count * sizeof **out;
		keep_records(client,
			     memcpy(memory_alloc(held), shared_records(&client->shared), held),
			     out);
		return PRONY_OK;
	}
	char *path = path_join(client->spec->bundle, BUNDLE_RECORDS_FILE), *bytes = NULL;
	size_t length = 0, wanted = (size_t)count * sizeof **out;
	/* One byte more, to detect a file that is too long. */
	enum prony_status status = file_read(path, wanted + 1, &bytes, &length, err);
	if (status != PRONY_OK) {
		status = PRONY_PROTOCOL;
	} else if (length != wanted) {
		status = error_set(err, PRONY_PROTOCOL, "%s has %zu bytes instead of %zu", path,
				   length, wanted);
		free(bytes);
	} else {
		keep_records(client, bytes, out);
	}
	free(path);
	return status;
}

/* Returns how much of the time outside the steps the worker computed nothing, so that no work is
 * hidden in it. Some frameworks' loops wait for a thread of their own before they return
 * (docs/frameworks-python.md). */
static int64_t rested_ns(const struct client *client, int64_t from_ns, int64_t to_ns)
{
	const struct client_spec *spec = client->spec;
	return spec->rested_ns ? spec->rested_ns(spec->rested_context, from_ns, to_ns) : 0;
}

static enum prony_status check_records(const struct client *client,
				       const struct step_record *records, int64_t count,
				       int64_t sent_ns, int64_t received_ns, int64_t *rested,
				       struct error *err)
{
	int64_t last = sent_ns;
	for (int64_t i = 0; i < count; i++) {
		if (records[i].begin_ns < last)
			return error_set(
				err, PRONY_INVALID, "record %lld begins %llu ns before %s",
				(long long)i,
				(unsigned long long)last - (unsigned long long)records[i].begin_ns,
				i ? "the end of the record before" : "the request was sent");
		if (records[i].end_ns < records[i].begin_ns)
			return error_set(err, PRONY_INVALID, "record %lld ends before it begins",
					 (long long)i);
		last = records[i].end_ns;
	}
	/* All are at least sent_ns, which is not negative: no difference overflows below. */
	if (last > received_ns)
		return error_set(err, PRONY_INVALID,
				 "its records end %lld ns after its reply arrived",
				 (long long)(last - received_ns));
	int64_t bracket = received_ns - sent_ns, claimed = last - records[0].begin_ns;
	int64_t unexplained = bracket - claimed, most = UNEXPLAINED_NS + bracket / 10;
	*rested = unexplained > most ? rested_ns(client, sent_ns, records[0].begin_ns) +
					       rested_ns(client, last, received_ns)
				     : 0;
	if (unexplained - *rested > most)
		return error_set(err, PRONY_INVALID,
				 "its records cover %.3f s of a request that took %.3f s",
				 (double)claimed * 1e-9, (double)bracket * 1e-9);
	return PRONY_OK;
}

static int64_t expected_records(int64_t steps, enum sync_mode sync, int64_t every)
{
	if (sync == SYNC_STEP)
		return steps;
	return sync == SYNC_END ? 1 : (steps + every - 1) / every;
}

/* Takes the records of a reply to run after checking every claim of the reply. */
static enum prony_status take_window(struct client *client, const json_t *reply, int64_t steps,
				     int64_t wanted, int64_t sent_ns, int64_t received_ns,
				     struct client_window *out, struct error *err)
{
	const struct step_record *records = NULL;
	int64_t rested = 0;
	int64_t said_steps = json_int_or(reply, "steps", -1);
	int64_t said_records = json_int_or(reply, "records", -1);
	if (said_steps != steps || said_records != wanted)
		return error_set(
			err, PRONY_INVALID,
			"%lld steps in %lld records were requested, but it reports %lld in %lld",
			(long long)steps, (long long)wanted, (long long)said_steps,
			(long long)said_records);
	enum prony_status status = fetch_records(client, wanted, &records, err);
	if (status == PRONY_OK)
		status = check_records(client, records, wanted, sent_ns, received_ns, &rested, err);
	if (status == PRONY_OK &&
	    (json_int_or(reply, "begin_at_ns", -1) != records[0].begin_ns ||
	     json_int_or(reply, "end_at_ns", -1) != records[wanted - 1].end_ns))
		status =
			error_set(err, PRONY_INVALID,
				  "the begin or end in the reply differs from that of the records");
	if (status == PRONY_OK)
		*out = (struct client_window){
			.records = records, .count = (size_t)wanted, .rested_ns = rested};
	return status;
}

/*
 * Reads the time that the worker says it spent on batches; it must lie within the time that passed.
 */
static enum prony_status take_input_times(const json_t *reply, struct client_window *window,
					  struct error *err)
{
	const struct step_record *records = window->records;
	int64_t passed = records[window->count - 1].end_ns - records[0].begin_ns;
	window->wait_ns = json_int_or(reply, "wait_ns", -1);
	window->copy_ns = json_int_or(reply, "copy_ns", -1);
	if (window->wait_ns >= 0 && window->copy_ns >= 0 && window->wait_ns <= passed &&
	    window->copy_ns <= passed - window->wait_ns)
		return PRONY_OK;
	return error_set(
		err, PRONY_INVALID,
		"its reply to run has wait_ns %lld and copy_ns %lld, but only %lld ns passed",
		(long long)window->wait_ns, (long long)window->copy_ns, (long long)passed);
}

enum prony_status client_ask_run(struct client *client, int64_t steps, enum sync_mode sync,
				 int64_t every, int64_t slot, int64_t timeout_ns, struct error *err)
{
	int64_t wanted = expected_records(steps, sync, every);
	if ((size_t)wanted > client->spec->records_capacity)
		return error_set(err, PRONY_INTERNAL, "there is no room for %lld records",
				 (long long)wanted);
	json_t *members = json_pack("{s:I, s:s, s:I, s:I}", "steps", (json_int_t)steps, "sync",
				    sync_mode_name(sync), "every", (json_int_t)every, "slot",
				    (json_int_t)slot);
	return client_ask(client, VERB_RUN, members, timeout_ns, err);
}

enum prony_status client_take_window(struct client *client, int64_t steps, enum sync_mode sync,
				     int64_t every, struct client_window *out, struct error *err)
{
	struct client_reply reply;
	enum prony_status status = client_take_reply(client, &reply, err);
	if (status != PRONY_OK)
		return status;
	status = take_window(client, reply.json, steps, expected_records(steps, sync, every),
			     reply.sent_ns, reply.received_ns, out, err);
	if (status == PRONY_OK && client->spec->input_times)
		status = take_input_times(reply.json, out, err);
	json_decref(reply.json);
	return status;
}

enum prony_status client_run(struct client *client, int64_t steps, enum sync_mode sync,
			     int64_t every, int64_t slot, int64_t timeout_ns,
			     struct client_window *out, struct error *err)
{
	size_t failed;
	enum prony_status status =
		client_ask_run(client, steps, sync, every, slot, timeout_ns, err);
	if (status == PRONY_OK)
		status = client_await(&client, 1, &failed, err);
	return status == PRONY_OK ? client_take_window(client, steps, sync, every, out, err)
				  : status;
}

enum prony_status client_profile(struct client *client, enum protocol_profile what, int64_t steps,
				 int64_t slot, int64_t timeout_ns, int64_t *sent_ns,
				 int64_t *received_ns, struct error *err)
{
	json_t *members = json_pack("{s:s, s:I, s:I}", "what", protocol_profile_name(what), "steps",
				    (json_int_t)steps, "slot", (json_int_t)slot);
	json_t *reply = NULL;
	int64_t sent, received;
	enum prony_status status = client_request(client, VERB_PROFILE, members, timeout_ns, &reply,
						  &sent, &received, err);
	if (status != PRONY_OK)
		return status;
	int64_t begin = json_int_or(reply, "begin_at_ns", INT64_MIN);
	int64_t end = json_int_or(reply, "end_at_ns", INT64_MAX);
	if (json_int_or(reply, "steps", -1) != steps)
		status = error_set(err, PRONY_INVALID, "it profiled %lld steps instead of %lld",
				   (long long)json_int_or(reply, "steps", -1), (long long)steps);
	else if (begin < sent || end < begin || end > received)
		status = error_set(
			err, PRONY_INVALID,
			"the profiled steps began before the request or ended after the reply");
	json_decref(reply);
	if (status == PRONY_OK) {
		*sent_ns = sent;
		*received_ns = received;
	}
	return status;
}

/* Reads the safetensors image of a read from shared memory or from the bundle's file. */
static enum prony_status fetch_image(struct client *client, int64_t bytes, const void **image,
				     struct error *err)
{
	if (client->uses_shared) {
		if (bytes < 8 || (uint64_t)bytes > client->shared.layout.tensors_bytes)
			return error_set(err, PRONY_PROTOCOL,
					 "it says that it read %lld bytes, which is not possible",
					 (long long)bytes);
		*image = shared_tensors(&client->shared);
		return PRONY_OK;
	}
	char *path = path_join(client->spec->bundle, BUNDLE_READ_FILE), *file = NULL;
	size_t length = 0;
	enum prony_status status =
		file_read(path, client->spec->tensors_bytes + 4096, &file, &length, err);
	if (status != PRONY_OK) {
		status = PRONY_PROTOCOL;
	} else if ((int64_t)length != bytes) {
		status = error_set(err, PRONY_PROTOCOL, "%s has %zu bytes instead of %lld", path,
				   length, (long long)bytes);
		free(file);
	} else {
		free(client->read_file);
		client->read_file = file;
		*image = file;
	}
	free(path);
	return status;
}

enum prony_status client_read(struct client *client, const char *what, struct arena *arena,
			      struct tensor_set *out, struct error *err)
{
	json_t *reply = NULL;
	const void *image = NULL;
	enum prony_status status = client_request(
		client, VERB_READ, json_pack("{s:s}", "what", what), 0, &reply, NULL, NULL, err);
	if (status != PRONY_OK)
		return status;
	int64_t bytes = json_int_or(reply, "bytes", -1);
	status = fetch_image(client, bytes, &image, err);
	if (status == PRONY_OK &&
	    safetensors_read_image(image, (size_t)bytes, what, arena, out, err))
		status = PRONY_PROTOCOL;
	json_decref(reply);
	return status;
}
