#include "client/launcher.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "client/client_internal.h"

#define TICK_MS 100
#define VERSION_WAIT_NS INT64_C(20000000000)
#define VERSION_BYTES ((size_t)4096)
#define END_WAIT_NS INT64_C(5000000000)

struct launcher {
	struct client_spec spec; /* of the launcher as a worker */
	struct client *client;
	const char *program;
	struct arena arena;
	int listen_fd, joined[TARGET_RANKS_MAX]; /* -1: none */
};

/* What Open MPI needs to start more processes than it counts cores, to leave the binding to prony,
 * as root, and to keep its files where the run's are removed. Others need nothing. */
static size_t add_options(const struct launcher *launcher, const char *folder, const char **words,
			  size_t count)
{
	const char *const argv[] = {launcher->program, "--version", NULL};
	const struct process_spec process = {.argv = argv};
	struct process_end end;
	char *text = NULL;

	if (process_run(&process, VERSION_WAIT_NS, VERSION_BYTES, &text, &end, NULL) == PRONY_OK &&
	    (strstr(text, "Open MPI") || strstr(text, "OpenRTE"))) {
		const char *const rows[] = {"--oversubscribe",
					    "--bind-to",
					    "none",
					    "--mca",
					    "orte_tmpdir_base",
					    folder,
					    "--allow-run-as-root"};

		memcpy(words + count, rows, sizeof(rows));
		count += sizeof(rows) / sizeof(*rows) - (geteuid() != 0);
	}
	free(text);
	return count;
}

/* PROGRAM [OPTION]... -n R SELF guard --join SOCKET -- env [NAME=VALUE]... WORKER... */
static const char *const *make_argv(struct launcher *launcher, const struct client_spec *spec,
				    const char *socket_path)
{
	size_t rows = 0, argc = 0, count = 0;

	while (spec->environment && spec->environment[rows])
		rows++;
	while (spec->argv[argc])
		argc++;
	const char **words = arena_array(&launcher->arena, 2 * rows + argc + 24, sizeof(*words));
	words[count++] = launcher->program;
	count = add_options(launcher, spec->target->rendezvous.folder, words, count);
	const char *const middle[] = {
		"-n",	    arena_printf(&launcher->arena, "%d", spec->target->world_size),
		spec->self, "guard",
		"--join",   socket_path,
		"--",	    "env"};
	memcpy(words + count, middle, sizeof(middle));
	count += sizeof(middle) / sizeof(*middle);
	for (size_t i = 0; i < rows; i++) {
		if (!strchr(spec->environment[i], '='))
			words[count++] = "-u";
		words[count++] = spec->environment[i];
	}
	memcpy(words + count, spec->argv, argc * sizeof(*words));
	return words;
}

static enum prony_status listen_at(struct launcher *launcher, const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
	    sizeof(address.sun_path))
		return error_set(err, PRONY_IO,
				 "%s: this path is too long for a socket: set TMPDIR to a shorter "
				 "one",
				 path);
	launcher->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (launcher->listen_fd < 0 ||
	    bind(launcher->listen_fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(launcher->listen_fd, TARGET_RANKS_MAX) != 0)
		return error_errno(err, PRONY_IO, errno, "cannot listen at %s", path);
	return PRONY_OK;
}

/* Takes a connection; its process says its rank at once. */
static enum prony_status take_rank(struct launcher *launcher, int ranks, struct error *err)
{
	int32_t rank = -1;
	int fd = accept4(launcher->listen_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return error_errno(err, PRONY_IO, errno, "cannot take the connection of a rank");
	if (recv(fd, &rank, sizeof(rank), MSG_WAITALL) == sizeof(rank) && rank >= 0 &&
	    rank < ranks && launcher->joined[rank] < 0) {
		launcher->joined[rank] = fd;
		return PRONY_OK;
	}
	close(fd);
	return error_set(err, PRONY_INVALID,
			 "%s started rank %d, where ranks 0 to %d were expected, each once",
			 launcher->program, (int)rank, ranks - 1);
}

static bool has_ended(const struct client *client)
{
	return client->ended || client->report_fd < 0;
}

static enum prony_status ended_early(struct launcher *launcher, int ranks, struct error *err)
{
	char *log = log_buffer_text(&launcher->client->log), *rest = log, *part;
	struct strbuf words;

	/* Its messages are several lines between rules of dashes. */
	strbuf_init(&words, 300);
	while (rest && (part = strsep(&rest, "\n")))
		if (*part && strspn(part, "-") < strlen(part))
			strbuf_printf(&words, "%s%s", words.length ? " " : ": ", part);
	free(log);
	enum prony_status status = error_set(
		err, PRONY_CRASHED, "MPI's launcher %s ended before it had started %d ranks, %s%s",
		launcher->program, ranks, launcher->client->how, strbuf_text(&words));
	strbuf_release(&words);
	return status;
}

static enum prony_status await_ranks(struct launcher *launcher, const struct client_spec *spec,
				     struct error *err)
{
	int ranks = spec->target->world_size, count = 0;
	int64_t deadline_ns = clock_monotonic_ns() + spec->timeout_ns;
	enum prony_status status = PRONY_OK;

	while (count < ranks && status == PRONY_OK) {
		struct pollfd ready = {.fd = launcher->listen_fd, .events = POLLIN};

		if (poll(&ready, 1, TICK_MS) > 0) {
			status = take_rank(launcher, ranks, err);
			count++;
			continue;
		}
		client_wait(&launcher->client, 1, false, clock_monotonic_ns());
		if (launcher->client->exec_errno)
			return error_errno(err, PRONY_MISSING, launcher->client->exec_errno,
					   "cannot start '%s'", launcher->program);
		if (has_ended(launcher->client))
			return ended_early(launcher, ranks, err);
		if (client_interrupted(launcher->client))
			return error_set(err, PRONY_INTERRUPTED, "interrupted");
		if (clock_monotonic_ns() >= deadline_ns)
			return error_set(err, PRONY_TIMEOUT, "%s started %d of %d ranks in %.3g s",
					 launcher->program, count, ranks,
					 (double)spec->timeout_ns * 1e-9);
	}
	return status;
}

enum prony_status launcher_start(const char *program, const struct client_spec *spec,
				 struct launcher **out, struct error *err)
{
	struct launcher *launcher = calloc(1, sizeof(*launcher));

	*out = launcher;
	if (!launcher)
		return error_set(err, PRONY_NOMEM, "not enough memory for the state of a launcher");
	arena_init(&launcher->arena, 0);
	launcher->program = program;
	launcher->listen_fd = -1;
	for (int i = 0; i < TARGET_RANKS_MAX; i++)
		launcher->joined[i] = -1;
	const char *path =
		arena_printf(&launcher->arena, "%s/join", spec->target->rendezvous.folder);
	enum prony_status status = listen_at(launcher, path, err);
	if (status != PRONY_OK)
		return status;
	launcher->spec = (struct client_spec){
		.argv = make_argv(launcher, spec, path),
		.self = spec->self,
		.timeout_ns = spec->timeout_ns,
		.stop = spec->stop,
		.no_shared_memory = true,
	};
	status = client_start(&launcher->spec, &launcher->client, err);
	if (status != PRONY_OK)
		return status;
	/* It does not speak; its end of the channel would keep poll from waiting. */
	client_close_fd(&launcher->client->reply_fd);
	return await_ranks(launcher, spec, err);
}

int launcher_join_fd(const struct launcher *launcher, int rank)
{
	return launcher->joined[rank];
}

static void wait_for_end(const struct launcher *launcher)
{
	struct client *client = launcher->client;
	int64_t deadline_ns = clock_monotonic_ns() + END_WAIT_NS;

	while (!has_ended(client) && clock_monotonic_ns() < deadline_ns)
		client_wait(&client, 1, false, deadline_ns);
}

bool launcher_lost(struct launcher *launcher, struct error *err)
{
	struct client *client = launcher->client;

	client_drain_report(client);
	/* Its guard reaps it at once, but reports only when all below it has ended. */
	if (!has_ended(client) && (kill(client->worker, 0) == 0 || errno != ESRCH))
		return false;
	wait_for_end(launcher);
	if (client->ended && !client->signalled)
		return false;
	error_clear(err);
	error_set(err, PRONY_CRASHED, "MPI's launcher %s ended: %s", launcher->program,
		  client->ended ? client->how : "its guard was killed");
	return true;
}

void launcher_end(struct launcher *launcher)
{
	if (!launcher)
		return;
	if (launcher->client && launcher->client->guard > 0)
		wait_for_end(launcher);
	client_end(launcher->client, NULL);
	for (int i = 0; i < TARGET_RANKS_MAX; i++)
		client_close_fd(&launcher->joined[i]);
	client_close_fd(&launcher->listen_fd);
	arena_release(&launcher->arena);
	free(launcher);
}
