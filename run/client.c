#include "run/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "bundle/bundle.h"
#include "run/logbuf.h"
#include "run/shared.h"
#include "samplers/procfs.h"

/* Descriptor numbers in the worker (and the guard's own two). */
enum { FD_LIFE = 3, FD_REPORT = 4, FD_REQUEST = 5, FD_REPLY = 6, FD_SHARED = 7 };

#define TICK_NS INT64_C(250000000)        /* how often limits are looked at while waiting */
#define CLOSE_WAIT_NS INT64_C(10000000000) /* a framework may take a while to unload */
#define REAP_WAIT_NS INT64_C(20000000000)
/* A reply may follow its window late by so much; a worker that claims far less time than passed lies. */
#define UNEXPLAINED_NS INT64_C(1000000000)

struct client {
	const struct client_spec *spec; /* borrowed until client_end */
	pid_t guard, worker;
	int request_fd, reply_fd, life_fd, report_fd, log_fd; /* ours; -1 when closed */
	struct strbuf line, report;
	struct logbuf log;
	struct shared shared;
	bool uses_shared, said_hello, broken, closed;
	bool over_memory;
	int64_t next_id, started_ns, oom_kills;
	char *read_file; /* map of the last read's file, for workers without shared memory */
	size_t read_file_bytes;
	struct step_record *records_file;
	char how[128];
	int64_t rss_peak_bytes, user_ns, system_ns;
	bool ended, exited_zero;
	int exec_errno;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void forget_read(struct client *client)
{
	free(client->read_file);
	client->read_file = NULL;
}

/* All pipes of a worker; index 0 is read from, 1 written to. */
struct pipes {
	int life[2], report[2], request[2], reply[2], log[2];
};

static enum prony_status make_pipes(struct pipes *pipes, struct error *err)
{
	int(*all[])[2] = {&pipes->life, &pipes->report, &pipes->request, &pipes->reply, &pipes->log};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		(*all[i])[0] = (*all[i])[1] = -1;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (pipe2(*all[i], O_CLOEXEC))
			return error_errno(err, PRONY_INTERNAL, errno, "cannot make a pipe for a worker");
	return PRONY_OK;
}

static void close_pipes(struct pipes *pipes)
{
	int *all[] = {pipes->life, pipes->report, pipes->request, pipes->reply, pipes->log};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		close_fd(&all[i][0]);
		close_fd(&all[i][1]);
	}
}

static void cpu_list(const struct client_spec *spec, char *out, size_t bytes)
{
	snprintf(out, bytes, "-");
	size_t used = 0;
	for (int i = 0; spec->cpus && i < spec->cpu_count && used + 12 < bytes; i++)
		used += (size_t)snprintf(out + used, bytes - used, "%s%d", i ? "," : "", spec->cpus[i]);
}

/* argv of the guard: self guard LIFE REPORT CPUS -- worker... */
static enum prony_status guard_argv(const struct client_spec *spec, const char *cpus,
                                    const char ***out, struct error *err)
{
	static const char life[] = "3", report[] = "4";
	size_t count = 0;
	while (spec->argv[count])
		count++;
	const char **argv = calloc(count + 7, sizeof *argv);
	if (!argv)
		return error_set(err, PRONY_NOMEM, "no memory for a command line");
	const char *head[] = {spec->self, "guard", life, report, cpus, "--"};
	memcpy(argv, head, sizeof head);
	memcpy(argv + 6, spec->argv, count * sizeof *argv);
	*out = argv;
	return PRONY_OK;
}

/* The worker's environment rows with the numbers of its channels added. */
static const char **worker_environment(const struct client_spec *spec)
{
	size_t count = 0;
	while (spec->environment && spec->environment[count])
		count++;
	const char **rows = calloc(count + 3, sizeof *rows);
	if (!rows)
		return NULL;
	if (count)
		memcpy(rows, spec->environment, count * sizeof *rows);
	rows[count] = PROTOCOL_ENV_REQUEST "=5";
	rows[count + 1] = PROTOCOL_ENV_REPLY "=6";
	return rows;
}

static enum prony_status spawn(struct client *client, struct pipes *pipes, struct error *err)
{
	const struct client_spec *spec = client->spec;
	char cpus[1024];
	cpu_list(spec, cpus, sizeof cpus);
	const char **argv = NULL, **environment = worker_environment(spec);
	enum prony_status status = guard_argv(spec, cpus, &argv, err);
	if (status == PRONY_OK && !environment)
		status = error_set(err, PRONY_NOMEM, "no memory for an environment");
	if (status == PRONY_OK) {
		struct process_fd fds[] = {
			{.parent = pipes->log[1], .child = 1},      {.parent = pipes->log[1], .child = 2},
			{.parent = pipes->life[0], .child = FD_LIFE}, {.parent = pipes->report[1], .child = FD_REPORT},
			{.parent = pipes->request[0], .child = FD_REQUEST},
			{.parent = pipes->reply[1], .child = FD_REPLY},
			{.parent = client->shared.fd, .child = FD_SHARED},
		};
		struct process_spec process = {.argv = argv, .environment = environment, .fds = fds,
		                               .fd_count = sizeof fds / sizeof *fds, .new_group = true};
		client->started_ns = clock_monotonic_ns();
		status = process_start(&process, &client->guard, err);
	}
	free(argv);
	free(environment);
	return status;
}

enum prony_status client_start(const struct client_spec *spec, struct client **out,
                               struct error *err)
{
	struct client *client = calloc(1, sizeof *client);
	if (!client)
		return error_set(err, PRONY_NOMEM, "no memory for a worker's state");
	*out = client;
	client->spec = spec;
	client->request_fd = client->reply_fd = client->life_fd = client->report_fd = client->log_fd = -1;
	client->rss_peak_bytes = client->user_ns = client->system_ns = -1;
	client->oom_kills = procfs_oom_kills();
	client->next_id = 1;
	strbuf_init(&client->line, PROTOCOL_LINE_BYTES_MAX);
	strbuf_init(&client->report, 4096);
	logbuf_init(&client->log);
	struct pipes pipes;
	enum prony_status status = make_pipes(&pipes, err);
	if (status == PRONY_OK)
		status = shared_init(&client->shared, spec->records_capacity, spec->tensors_bytes, err);
	if (status == PRONY_OK)
		status = spawn(client, &pipes, err);
	if (status == PRONY_OK) {
		int *ours[] = {&client->life_fd, &client->request_fd};
		int *theirs[] = {&pipes.life[1], &pipes.request[1]};
		for (int i = 0; i < 2; i++) {
			*ours[i] = *theirs[i];
			*theirs[i] = -1;
		}
		client->report_fd = pipes.report[0], pipes.report[0] = -1;
		client->reply_fd = pipes.reply[0], pipes.reply[0] = -1;
		client->log_fd = pipes.log[0], pipes.log[0] = -1;
		fcntl(client->log_fd, F_SETFL, O_NONBLOCK);
		fcntl(client->report_fd, F_SETFL, O_NONBLOCK);
		fcntl(client->reply_fd, F_SETFL, O_NONBLOCK);
	}
	close_pipes(&pipes);
	return status;
}

static void drain_log(struct client *client)
{
	char chunk[16384];
	/* At most 1 MiB a turn, so that a flood cannot keep us from the reply. */
	for (int turn = 0; client->log_fd >= 0 && turn < 64; turn++) {
		ssize_t got = read(client->log_fd, chunk, sizeof chunk);
		if (got > 0) {
			logbuf_add(&client->log, chunk, (size_t)got);
			continue;
		}
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			close_fd(&client->log_fd);
		return;
	}
}

/* One line of the guard: the worker's pid, or how it ended. */
static void take_report(struct client *client, const char *line, size_t length)
{
	json_t *json = NULL;
	if (json_parse(line, length, "the guard", &json, NULL))
		return;
	client->worker = (pid_t)json_int_or(json, "pid", client->worker);
	client->exec_errno = (int)json_int_or(json, "exec_errno", client->exec_errno);
	if (json_object_get(json, "code")) {
		struct process_end end = {.signalled = json_bool_or(json, "signalled", false),
		                          .code = (int)json_int_or(json, "code", -1)};
		process_end_text(&end, client->how, sizeof client->how);
		client->rss_peak_bytes = json_int_or(json, "max_rss_bytes", -1);
		client->user_ns = json_int_or(json, "user_ns", -1);
		client->system_ns = json_int_or(json, "system_ns", -1);
		client->ended = true;
		client->exited_zero = !end.signalled && end.code == 0;
	}
	json_decref(json);
}

static void drain_report(struct client *client)
{
	char chunk[1024];
	while (client->report_fd >= 0) {
		ssize_t got = read(client->report_fd, chunk, sizeof chunk);
		if (got > 0) {
			strbuf_add(&client->report, chunk, (size_t)got);
			continue;
		}
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			close_fd(&client->report_fd);
		break;
	}
	const char *text = strbuf_text(&client->report), *newline;
	while ((newline = strchr(text, '\n'))) {
		take_report(client, text, (size_t)(newline - text));
		text = newline + 1;
	}
	char *rest = strdup(text);
	strbuf_clear(&client->report);
	if (rest)
		strbuf_puts(&client->report, rest);
	free(rest);
}

/* Waits at most until the deadline for anything from worker or guard, and takes in logs and reports. */
static void wait_for_input(struct client *client, int64_t deadline_ns)
{
	int64_t now = clock_monotonic_ns();
	int64_t wait = deadline_ns - now < TICK_NS ? deadline_ns - now : TICK_NS;
	struct pollfd fds[3] = {{.fd = client->reply_fd, .events = POLLIN},
	                        {.fd = client->log_fd, .events = POLLIN},
	                        {.fd = client->report_fd, .events = POLLIN}};
	poll(fds, 3, wait > 0 ? (int)((wait + 999999) / 1000000) : 0);
	if (fds[1].revents)
		drain_log(client);
	if (fds[2].revents)
		drain_report(client);
}

static bool stop_wanted(const struct client *client)
{
	return client->spec->stop && *client->spec->stop;
}

/* Whether the worker's tree grew over its limit; then it is ended at once. */
static bool over_memory(struct client *client)
{
	int64_t limit = client->spec->memory_limit_bytes;
	if (limit <= 0 || client->worker <= 0)
		return false;
	if (procfs_tree_rss_bytes(client->worker) > limit)
		client->over_memory = true;
	return client->over_memory;
}

/* The last line that the worker printed, which usually says why it died. */
static void last_words(struct client *client, char *out, size_t bytes)
{
	char *log = logbuf_text(&client->log);
	out[0] = '\0';
	if (!log)
		return;
	size_t length = strlen(log);
	while (length && (log[length - 1] == '\n' || log[length - 1] == ' '))
		log[--length] = '\0';
	const char *line = strrchr(log, '\n');
	if (length)
		snprintf(out, bytes, "; it last printed: %.300s", line ? line + 1 : log);
	free(log);
}

/* The worker's end of the reply channel is closed: waits for the guard's word and says what happened. */
static enum prony_status died(struct client *client, const char *verb, struct error *err)
{
	client->broken = true;
	int64_t deadline = clock_monotonic_ns() + INT64_C(5000000000);
	while (!client->ended && !client->exec_errno && client->report_fd >= 0 &&
	       clock_monotonic_ns() < deadline) {
		close_fd(&client->reply_fd);
		wait_for_input(client, deadline);
	}
	drain_log(client);
	if (client->exec_errno)
		return error_errno(err, PRONY_MISSING, client->exec_errno, "cannot start '%s'",
		                   client->spec->argv[0]);
	char words[400];
	last_words(client, words, sizeof words);
	bool killed = client->ended && strstr(client->how, "signal 9");
	if (killed && client->oom_kills >= 0 && procfs_oom_kills() > client->oom_kills)
		return error_set(err, PRONY_OUT_OF_MEMORY,
		                 "the kernel killed the worker for lack of memory during %s", verb);
	return error_set(err, PRONY_CRASHED, "the worker ended during %s: %s%s", verb,
	                 client->ended ? client->how : "it closed its reply channel", words);
}

/* Reads until one whole line is there. */
static enum prony_status await_line(struct client *client, const char *verb, int64_t deadline_ns,
                                    struct error *err)
{
	for (;;) {
		char chunk[65536];
		ssize_t got = read(client->reply_fd, chunk, sizeof chunk);
		if (got > 0) {
			if (client->line.length + (size_t)got > PROTOCOL_LINE_BYTES_MAX)
				return error_set(err, PRONY_PROTOCOL, "the reply to %s is longer than 1 MiB", verb);
			strbuf_add(&client->line, chunk, (size_t)got);
			if (memchr(chunk, '\n', (size_t)got))
				return PRONY_OK;
			continue;
		}
		if (got == 0)
			return died(client, verb, err);
		if (errno != EAGAIN && errno != EINTR)
			return error_errno(err, PRONY_INTERNAL, errno, "cannot read from the worker");
		if (stop_wanted(client))
			return error_set(err, PRONY_INTERRUPTED, "interrupted");
		if (over_memory(client))
			return error_set(err, PRONY_OUT_OF_MEMORY,
			                 "the worker's processes grew over %lld MiB of resident memory during %s",
			                 (long long)(client->spec->memory_limit_bytes >> 20), verb);
		if (clock_monotonic_ns() >= deadline_ns)
			return error_set(err, PRONY_TIMEOUT, "no reply to %s in time", verb);
		wait_for_input(client, deadline_ns);
	}
}

static enum prony_status send_request(struct client *client, const char *verb, json_t *request,
                                      struct error *err)
{
	char *text = json_dumps(request, JSON_COMPACT);
	if (!text)
		return error_set(err, PRONY_INTERNAL, "cannot write the request %s", verb);
	size_t length = strlen(text), sent = 0;
	text[length++] = '\n'; /* in place of the terminator: the length is known from here on */
	enum prony_status status = PRONY_OK;
	while (sent < length && status == PRONY_OK) {
		ssize_t written = write(client->request_fd, text + sent, length - sent);
		if (written > 0)
			sent += (size_t)written;
		else if (errno == EPIPE)
			status = died(client, verb, err);
		else if (errno != EINTR)
			status = error_errno(err, PRONY_INTERNAL, errno, "cannot write to the worker");
	}
	free(text);
	return status;
}

/* An ok:false reply as status and text. */
static enum prony_status refused(const json_t *reply, const char *verb, struct error *err)
{
	const char *word = json_string_or(reply, "status", "crashed");
	const char *text = json_string_or(reply, "error", "it gave no reason");
	static const struct {
		const char *word;
		enum prony_status status;
	} known[] = {{"unsupported", PRONY_UNSUPPORTED}, {"missing", PRONY_MISSING},
	             {"out-of-memory", PRONY_OUT_OF_MEMORY}, {"invalid", PRONY_INVALID}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(word, known[i].word))
			return error_set(err, known[i].status, "%s", text);
	return error_set(err, PRONY_CRASHED, "%s failed: %s", verb, text);
}

/* Parses the line in client->line and checks it against the request. */
static enum prony_status take_reply(struct client *client, const char *verb, json_t **reply,
                                    struct error *err)
{
	const char *text = strbuf_text(&client->line);
	const char *newline = memchr(text, '\n', client->line.length);
	size_t length = (size_t)(newline - text);
	struct error why = ERROR_INIT;
	json_t *json = NULL;
	if (length + 1 != client->line.length)
		return error_set(err, PRONY_PROTOCOL, "more than one line in reply to %s", verb);
	if (json_parse(text, length, "reply", &json, &why) || !json_is_object(json)) {
		json_decref(json);
		return error_set(err, PRONY_PROTOCOL, "the reply to %s is not a JSON object: %.200s", verb,
		                 why.code ? why.text : text);
	}
	enum prony_status status = PRONY_OK;
	if (json_int_or(json, "id", -1) != client->next_id)
		status = error_set(err, PRONY_PROTOCOL, "the reply to %s has id %lld instead of %lld", verb,
		                   (long long)json_int_or(json, "id", -1), (long long)client->next_id);
	else if (!json_is_boolean(json_object_get(json, "ok")))
		status = error_set(err, PRONY_PROTOCOL, "the reply to %s has no boolean 'ok'", verb);
	else if (!json_is_true(json_object_get(json, "ok")))
		status = refused(json, verb, err);
	if (status == PRONY_OK)
		*reply = json;
	else
		json_decref(json);
	return status;
}

static void add_hello_members(struct client *client, json_t *request)
{
	json_object_set_new(request, "protocol", json_integer(PROTOCOL_VERSION));
	json_object_set_new(request, "shared_memory",
	                    json_pack("{s:i, s:I}", "fd", FD_SHARED, "bytes",
	                              (json_int_t)client->shared.bytes));
}

enum prony_status client_request(struct client *client, enum protocol_verb verb, json_t *members,
                                 int64_t timeout_ns, json_t **reply, int64_t *sent_ns,
                                 int64_t *received_ns, struct error *err)
{
	const char *name = protocol_verb_name(verb);
	json_t *request = members ? members : json_object(), *answer = NULL;
	json_object_set_new(request, "id", json_integer(client->next_id));
	json_object_set_new(request, "verb", json_string(name));
	if (verb == VERB_HELLO)
		add_hello_members(client, request);
	strbuf_clear(&client->line);
	int64_t sent = clock_monotonic_ns();
	enum prony_status status = send_request(client, name, request, err);
	if (status == PRONY_OK)
		status = await_line(client, name,
		                    sent + (timeout_ns > 0 ? timeout_ns : client->spec->timeout_ns), err);
	int64_t received = clock_monotonic_ns();
	if (status == PRONY_OK)
		status = take_reply(client, name, &answer, err);
	json_decref(request);
	client->next_id++;
	if (status == PRONY_TIMEOUT || status == PRONY_PROTOCOL || status == PRONY_INTERRUPTED ||
	    status == PRONY_OUT_OF_MEMORY || status == PRONY_CRASHED)
		client->broken = true;
	if (status != PRONY_OK)
		return status;
	if (verb == VERB_HELLO) {
		client->said_hello = true;
		client->uses_shared = json_bool_or(answer, "shared_memory", false);
	}
	client->closed = verb == VERB_CLOSE;
	if (sent_ns)
		*sent_ns = sent;
	if (received_ns)
		*received_ns = received;
	if (reply)
		*reply = answer;
	else
		json_decref(answer);
	return PRONY_OK;
}

/* Step records: in shared memory, or read from the bundle's file. */
static enum prony_status fetch_records(struct client *client, int64_t count,
                                       const struct step_record **out, struct error *err)
{
	if (client->uses_shared) {
		*out = shared_records(&client->shared);
		return PRONY_OK;
	}
	char *path = path_join(client->spec->bundle, BUNDLE_RECORDS_FILE), *bytes = NULL;
	size_t length = 0, wanted = (size_t)count * sizeof **out;
	enum prony_status status = path ? file_read(path, wanted + 1, &bytes, &length, err)
	                                : error_set(err, PRONY_NOMEM, "no memory");
	if (status == PRONY_OK && length != wanted) {
		status = error_set(err, PRONY_PROTOCOL, "%s holds %zu bytes instead of %zu", path, length,
		                   wanted);
		free(bytes);
	} else if (status == PRONY_OK) {
		free(client->records_file);
		client->records_file = (struct step_record *)(void *)bytes;
		*out = client->records_file;
	} else {
		status = PRONY_PROTOCOL;
	}
	free(path);
	return status;
}

static enum prony_status check_records(const struct step_record *records, int64_t count,
                                       int64_t sent_ns, int64_t received_ns, struct error *err)
{
	int64_t last = sent_ns;
	for (int64_t i = 0; i < count; i++) {
		if (records[i].begin_ns < last)
			return error_set(err, PRONY_INVALID, "record %lld begins %lld ns before %s",
			                 (long long)i, (long long)(last - records[i].begin_ns),
			                 i ? "the one before it ended" : "it was asked to run");
		if (records[i].end_ns < records[i].begin_ns)
			return error_set(err, PRONY_INVALID, "record %lld ends before it begins", (long long)i);
		last = records[i].end_ns;
	}
	if (last > received_ns)
		return error_set(err, PRONY_INVALID, "it claims %lld ns more time than passed",
		                 (long long)(last - received_ns));
	int64_t bracket = received_ns - sent_ns, claimed = last - records[0].begin_ns;
	if (bracket - claimed > UNEXPLAINED_NS + bracket / 10)
		return error_set(err, PRONY_INVALID, "it claims %.3f s for a request that took %.3f s",
		                 (double)claimed * 1e-9, (double)bracket * 1e-9);
	return PRONY_OK;
}

static int64_t expected_records(int64_t steps, enum sync_mode sync, int64_t every)
{
	if (sync == SYNC_STEP)
		return steps;
	return sync == SYNC_END ? 1 : (steps + every - 1) / every;
}

enum prony_status client_run(struct client *client, int64_t steps, enum sync_mode sync,
                             int64_t every, int64_t slot, int64_t timeout_ns,
                             struct client_window *out, struct error *err)
{
	int64_t wanted = expected_records(steps, sync, every), sent, received;
	if ((size_t)wanted > client->spec->records_capacity)
		return error_set(err, PRONY_INTERNAL, "%lld records do not fit", (long long)wanted);
	json_t *members = json_pack("{s:I, s:s, s:I, s:I}", "steps", (json_int_t)steps, "sync",
	                            sync_mode_name(sync), "every", (json_int_t)every, "slot",
	                            (json_int_t)slot);
	json_t *reply = NULL;
	enum prony_status status =
		client_request(client, VERB_RUN, members, timeout_ns, &reply, &sent, &received, err);
	if (status != PRONY_OK)
		return status;
	const struct step_record *records = NULL;
	if (json_int_or(reply, "steps", -1) != steps || json_int_or(reply, "records", -1) != wanted)
		status = error_set(err, PRONY_INVALID,
		                   "asked for %lld steps in %lld records, it claims %lld in %lld",
		                   (long long)steps, (long long)wanted,
		                   (long long)json_int_or(reply, "steps", -1),
		                   (long long)json_int_or(reply, "records", -1));
	if (status == PRONY_OK)
		status = fetch_records(client, wanted, &records, err);
	if (status == PRONY_OK)
		status = check_records(records, wanted, sent, received, err);
	if (status == PRONY_OK && (json_int_or(reply, "begin_at_ns", -1) != records[0].begin_ns ||
	                           json_int_or(reply, "end_at_ns", -1) != records[wanted - 1].end_ns))
		status = error_set(err, PRONY_INVALID, "reply and records disagree about begin or end");
	if (status == PRONY_OK)
		*out = (struct client_window){.records = records, .count = (size_t)wanted, .steps = steps};
	json_decref(reply);
	return status;
}

/* The safetensors image that a read left: in shared memory, or in the bundle's file. */
static enum prony_status fetch_image(struct client *client, int64_t bytes, const void **image,
                                     struct error *err)
{
	if (client->uses_shared) {
		if (bytes < 8 || (uint64_t)bytes > client->shared.header->tensors_bytes)
			return error_set(err, PRONY_PROTOCOL, "it claims to have read %lld bytes",
			                 (long long)bytes);
		*image = shared_tensors(&client->shared);
		return PRONY_OK;
	}
	char *path = path_join(client->spec->bundle, BUNDLE_READ_FILE);
	size_t length = 0;
	forget_read(client);
	enum prony_status status =
		path ? file_read(path, client->spec->tensors_bytes + 4096, &client->read_file, &length, err)
		     : error_set(err, PRONY_NOMEM, "no memory");
	if (status != PRONY_OK)
		status = PRONY_PROTOCOL;
	else if ((int64_t)length != bytes)
		status = error_set(err, PRONY_PROTOCOL, "%s holds %zu bytes instead of %lld", path, length,
		                   (long long)bytes);
	*image = client->read_file;
	free(path);
	return status;
}

enum prony_status client_read(struct client *client, const char *what, struct arena *arena,
                              struct tensor_set *out, struct error *err)
{
	json_t *reply = NULL;
	const void *image = NULL;
	enum prony_status status = client_request(client, VERB_READ, json_pack("{s:s}", "what", what), 0,
	                                          &reply, NULL, NULL, err);
	if (status != PRONY_OK)
		return status;
	int64_t bytes = json_int_or(reply, "bytes", -1);
	status = fetch_image(client, bytes, &image, err);
	if (status == PRONY_OK && safetensors_read_image(image, (size_t)bytes, what, arena, out, err))
		status = PRONY_PROTOCOL;
	json_decref(reply);
	return status;
}

/* Lets the guard finish (it ends the tree when the life pipe closes) and reaps it. */
static void reap(struct client *client)
{
	int64_t deadline = clock_monotonic_ns() + (client->closed ? CLOSE_WAIT_NS : 0);
	while (!client->ended && client->report_fd >= 0 && clock_monotonic_ns() < deadline)
		wait_for_input(client, deadline);
	close_fd(&client->life_fd);
	deadline = clock_monotonic_ns() + REAP_WAIT_NS;
	while (client->report_fd >= 0 && clock_monotonic_ns() < deadline)
		wait_for_input(client, deadline);
	struct process_end end;
	if (client->guard > 0 && process_wait(client->guard, REAP_WAIT_NS, &end, NULL) == PRONY_TIMEOUT) {
		kill(client->guard, SIGKILL);
		process_wait(client->guard, -1, &end, NULL);
	}
	drain_log(client);
}

void client_end(struct client *client, struct client_end *out)
{
	if (!client)
		return;
	if (client->guard > 0) {
		if (client->said_hello && !client->broken && !client->closed)
			client_request(client, VERB_CLOSE, NULL, CLOSE_WAIT_NS, NULL, NULL, NULL, NULL);
		close_fd(&client->request_fd);
		close_fd(&client->reply_fd);
		reap(client);
	}
	if (out) {
		*out = (struct client_end){.log = logbuf_text(&client->log),
		                           .rss_peak_bytes = client->rss_peak_bytes,
		                           .user_ns = client->user_ns, .system_ns = client->system_ns,
		                           .clean = client->closed && client->exited_zero};
		snprintf(out->how, sizeof out->how, "%s", client->how);
	}
	int *fds[] = {&client->request_fd, &client->reply_fd, &client->life_fd, &client->report_fd,
	              &client->log_fd};
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		close_fd(fds[i]);
	shared_release(&client->shared);
	logbuf_release(&client->log);
	strbuf_release(&client->line);
	strbuf_release(&client->report);
	forget_read(client);
	free(client->records_file);
	free(client);
}

int64_t client_started_ns(const struct client *client)
{
	return client->started_ns;
}

bool client_uses_shared_memory(const struct client *client)
{
	return client->uses_shared;
}

int64_t client_cpu_ns(const struct client *client)
{
	return client->worker > 0 ? procfs_cpu_ns(client->worker) : -1;
}
