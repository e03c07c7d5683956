/* `prony agent`: measures on its node what the parent at the other end of the standard streams asks
 * for, below a guard, so that the end of the channel ends everything. */
#include "cli/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/identity.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/framework_word.h"
#include "store/store.h"

#define END_NS INT64_C(2000000000)
#define REPORT_BYTES_MAX 4096

struct agent {
	struct strbuf input;
	json_t *request;
	char *store, *copy;		 /* of the run; what is sent */
	int text_fd, report_fd, life_fd; /* of the guard; -1: closed */
	struct strbuf report;
	pid_t guard;
	bool cut;	    /* the channel has ended */
	bool stop, stopped; /* wanted; the run was told */
};

void agent_framework_text(const struct framework_location *place, struct strbuf *out)
{
	char hex[DIGEST_HEX_BYTES];
	struct error ignored = ERROR_INIT;
	if (place->origin == ORIGIN_NONE)
		strbuf_puts(out, "missing");
	else
		strbuf_puts(out, *place->version ? place->version : "a version that is unknown");
	if (place->framework->floor && place->library &&
	    digest_file(place->library, hex, &ignored) == PRONY_OK)
		strbuf_printf(out, " (library %.12s)", hex);
}

static void send_bytes(struct agent *agent, const void *bytes, size_t length)
{
	agent->cut = agent->cut || !file_write_all(STDOUT_FILENO, bytes, length);
}

static void send_head(struct agent *agent, const char *kind, int64_t length)
{
	char head[64];
	snprintf(head, sizeof head, "%s %lld\n", kind, (long long)length);
	send_bytes(agent, head, strlen(head));
}

static void send_text(struct agent *agent, const char *kind, const char *text, size_t length)
{
	send_head(agent, kind, (int64_t)length);
	send_bytes(agent, text, length);
	send_bytes(agent, "\n", 1);
}

/* Reads from the channel once; false at its end. */
static bool read_channel(struct agent *agent)
{
	char bytes[4096];
	ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
	if (got < 0 && errno == EINTR)
		return true;
	if (got > 0)
		strbuf_add(&agent->input, bytes, (size_t)got);
	agent->cut = agent->cut || got <= 0 || agent->input.truncated;
	return !agent->cut;
}

/* Takes a line out of what was read; NULL if there is none. The caller frees it. */
static char *take_line(struct agent *agent)
{
	const char *text = strbuf_text(&agent->input), *end = strchr(text, '\n');
	if (!end)
		return NULL;
	char *line = memory_printf("%.*s", (int)(end - text), text), *rest = memory_strdup(end + 1);
	strbuf_clear(&agent->input);
	strbuf_puts(&agent->input, rest);
	free(rest);
	return line;
}

/* Waits for the next line; NULL when the channel ends. */
static char *wait_line(struct agent *agent)
{
	char *line;
	while (!(line = take_line(agent)))
		if (!read_channel(agent))
			return NULL;
	return line;
}

/* Waits for this line; false when another one comes or the channel ends. */
static bool expect(struct agent *agent, const char *word)
{
	char *line = wait_line(agent);
	bool right = line && !strcmp(line, word);
	free(line);
	return right;
}

/* A folder of the user alone below $TMPDIR or /tmp, which stays when the agent ends. */
static enum prony_status own_folder(char **out, struct error *err)
{
	const char *above = getenv("TMPDIR");
	struct stat info;
	char *path =
		memory_printf("%s/prony-agent-%u", above && *above ? above : "/tmp", geteuid());
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		error_errno(err, PRONY_IO, errno, "%s", path);
	else if (lstat(path, &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
		 (info.st_mode & 077) != 0)
		error_set(err, PRONY_IO, "%s is not a folder of yours alone (mode 700); remove it",
			  path);
	if (err->code != PRONY_OK) {
		free(path);
		return err->code;
	}
	*out = path;
	return PRONY_OK;
}

static enum prony_status read_request(struct agent *agent, struct error *err)
{
	const char *name, *directory;
	json_t *array;
	char *line = wait_line(agent), *folder = NULL;
	if (!line)
		return error_set(
			err, PRONY_USAGE,
			"prony agent is started by prony run --launch, which then tells it "
			"what to do");
	enum prony_status status =
		json_parse(line, strlen(line), "request to the agent", &agent->request, err);
	free(line);
	if (status == PRONY_OK)
		status = json_get_string(agent->request, "store", &name, err);
	if (status == PRONY_OK)
		status = json_get_string(agent->request, "directory", &directory, err);
	if (status == PRONY_OK)
		status = json_get_array(agent->request, "words", &array, err);
	if (status == PRONY_OK)
		status = json_get_array(agent->request, "frameworks", &array, err);
	if (status == PRONY_OK && strchr(name, '/'))
		status =
			error_set(err, PRONY_BAD_INPUT, "the agent's store: '%s' is no name", name);
	if (status == PRONY_OK)
		status = own_folder(&folder, err);
	if (status != PRONY_OK)
		return status;
	agent->store = path_join(folder, name);
	agent->copy = memory_printf("%s.sent", agent->store);
	free(folder);
	/* Another working directory matters only to relative paths, which are then not found. */
	if (*directory && chdir(directory) != 0)
		cli_say("%s is not on this node; the working directory is another one\n",
			directory);
	return PRONY_OK;
}

/* The versions here of the frameworks that the parent asks about. */
static enum prony_status versions(const json_t *spellings, json_t *out, struct error *err)
{
	struct registry registry;
	struct strbuf text;
	size_t index;
	json_t *spelling;
	enum prony_status status = cli_registry(&registry, err);
	if (status != PRONY_OK)
		return status;
	strbuf_init(&text, 0);
	json_array_foreach(spellings, index, spelling)
	{
		const struct framework *framework = NULL;
		const char *environment, *word = json_string_value(spelling);
		struct framework_location place;
		struct error ignored = ERROR_INIT;
		strbuf_clear(&text);
		if (word &&
		    framework_word(&registry, word, &framework, &environment, &ignored) ==
			    PRONY_OK &&
		    framework_locate(framework, environment, &registry.arena, &place, &ignored) ==
			    PRONY_OK)
			agent_framework_text(&place, &text);
		else
			strbuf_puts(&text, "missing");
		json_object_set_new(out, word ? word : "", json_string(strbuf_text(&text)));
	}
	strbuf_release(&text);
	registry_release(&registry);
	return PRONY_OK;
}

static enum prony_status say_hello(struct agent *agent, struct error *err)
{
	json_t *frameworks = json_object();
	enum prony_status status =
		versions(json_object_get(agent->request, "frameworks"), frameworks, err);
	json_t *hello = json_pack("{s:s, s:s, s:o}", "sha256", identity_sha256(), "version",
				  PRONY_VERSION, "frameworks", frameworks);
	char *text = json_dumps(hello, JSON_COMPACT);
	if (status == PRONY_OK)
		send_text(agent, "hello", text, strlen(text));
	free(text);
	json_decref(hello);
	return status;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Starts the run below a guard. Its output is not wanted, since the store has the results. */
static enum prony_status start_run(struct agent *agent, struct error *err)
{
	const json_t *words = json_object_get(agent->request, "words");
	size_t count = json_array_size(words);
	char *self = path_self();
	const char **argv = memory_alloc((count + 11) * sizeof *argv);
	const char *const head[] = {self, "guard", "3", "4", "-", "--", self, "run"};
	int text[2] = {-1, -1}, report[2] = {-1, -1}, life[2] = {-1, -1};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	enum prony_status status = PRONY_OK;
	memcpy(argv, head, sizeof head);
	for (size_t i = 0; i < count; i++) {
		const char *word = json_string_value(json_array_get(words, i));
		argv[8 + i] = word ? word : "";
	}
	argv[8 + count] = "--store";
	argv[9 + count] = agent->store;
	argv[10 + count] = NULL;
	if (null < 0 || pipe2(text, O_CLOEXEC) || pipe2(report, O_CLOEXEC) ||
	    pipe2(life, O_CLOEXEC))
		status = error_errno(err, PRONY_INTERNAL, errno, "cannot make a pipe");
	const struct process_fd fds[] = {{.parent = null, .child = 0},
					 {.parent = null, .child = 1},
					 {.parent = text[1], .child = 2},
					 {.parent = life[0], .child = 3},
					 {.parent = report[1], .child = 4}};
	const struct process_spec spec = {
		.argv = argv, .fds = fds, .fd_count = sizeof fds / sizeof *fds, .new_group = true};
	if (status == PRONY_OK)
		status = process_start(&spec, &agent->guard, err);
	close_fd(&null);
	close_fd(&text[1]);
	close_fd(&report[1]);
	close_fd(&life[0]);
	agent->text_fd = text[0];
	agent->report_fd = report[0];
	agent->life_fd = life[1];
	free(argv);
	free(self);
	return status;
}

/* Reads one of the run's descriptors and returns the number of bytes; closes it at its end. */
static size_t read_run(int *fd, char bytes[AGENT_CHUNK_BYTES])
{
	ssize_t got = read(*fd, bytes, AGENT_CHUNK_BYTES);
	if (got == 0 || (got < 0 && errno != EINTR))
		close_fd(fd);
	return got > 0 ? (size_t)got : 0;
}

/* Ends the run if that is wanted, once the guard has said its pid. */
static void obey(struct agent *agent)
{
	char *line;
	long long pid;
	while ((line = take_line(agent))) {
		agent->stop = agent->stop || !strcmp(line, "stop");
		free(line);
	}
	if (!agent->stop || agent->stopped ||
	    sscanf(strbuf_text(&agent->report), "{\"pid\": %lld", &pid) != 1)
		return;
	kill((pid_t)pid, SIGTERM);
	agent->stopped = true;
}

/* Relays the run's text until it has ended, or the channel. */
static void relay(struct agent *agent)
{
	char *bytes = memory_alloc(AGENT_CHUNK_BYTES);
	while (!agent->cut && (agent->report_fd >= 0 || agent->text_fd >= 0)) {
		struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
				       {.fd = agent->text_fd, .events = POLLIN},
				       {.fd = agent->report_fd, .events = POLLIN}};
		int ready = poll(fds, 3, AGENT_BEAT_MS);
		if (ready == 0)
			send_head(agent, "beat", 0);
		if (ready <= 0)
			continue;
		if (fds[1].revents) {
			size_t got = read_run(&agent->text_fd, bytes);
			if (got > 0)
				send_text(agent, "text", bytes, got);
		}
		if (fds[2].revents)
			strbuf_add(&agent->report, bytes, read_run(&agent->report_fd, bytes));
		if (fds[0].revents)
			read_channel(agent);
		obey(agent);
	}
	free(bytes);
}

/* The exit code of the run from the guard's second line, as a shell has it. */
static int exit_code(const struct agent *agent)
{
	const char *line = strchr(strbuf_text(&agent->report), '\n');
	json_t *end = NULL;
	int code = prony_status_exit(PRONY_INTERNAL);
	if (line && json_parse(line, strlen(line), "guard", &end, NULL) == PRONY_OK)
		code = (int)json_int_or(end, "code", code) +
		       (json_bool_or(end, "signalled", false) ? 128 : 0);
	json_decref(end);
	return code;
}

static enum prony_status send_file(struct agent *agent, const char *path, struct error *err)
{
	char *bytes = memory_alloc(AGENT_CHUNK_BYTES);
	int64_t left = file_bytes(path), at = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	send_head(agent, "store", left);
	while (fd >= 0 && at < left && !agent->cut) {
		ssize_t got = file_read_at(fd, at, bytes, AGENT_CHUNK_BYTES);
		if (got <= 0)
			break;
		send_bytes(agent, bytes, (size_t)got);
		at += got;
	}
	send_bytes(agent, "\n", 1);
	if (at < left && !agent->cut)
		error_errno(err, PRONY_IO, errno, "cannot read %s", path);
	close_fd(&fd);
	free(bytes);
	return err->code;
}

/* Sends what the run has stored: an import is one whole file, also if the run was killed. */
static enum prony_status send_store(struct agent *agent, struct error *err)
{
	struct store *copy = NULL;
	struct store_imported imported;
	if (!file_exists(agent->store))
		return PRONY_OK;
	unlink(agent->copy);
	enum prony_status status = store_open(agent->copy, false, &copy, err);
	if (status == PRONY_OK)
		status = store_import(copy, agent->store, &imported, err);
	store_close(copy);
	if (status == PRONY_OK)
		status = send_file(agent, agent->copy, err);
	unlink(agent->copy);
	return status;
}

/* The run, its text and its store. */
static enum prony_status measure(struct agent *agent, struct error *err)
{
	struct process_end end;
	char code[16];
	enum prony_status status = start_run(agent, err);
	if (status != PRONY_OK)
		return status;
	relay(agent);
	close_fd(&agent->life_fd);
	process_wait(agent->guard, agent->cut ? END_NS : -1, &end, err);
	if (agent->cut)
		return PRONY_OK;
	status = send_store(agent, err);
	snprintf(code, sizeof code, "%d", exit_code(agent));
	if (status == PRONY_OK)
		send_text(agent, "end", code, strlen(code));
	/* Otherwise the store stays, so that the run can be continued. */
	if (status == PRONY_OK && !agent->cut && expect(agent, "done"))
		unlink(agent->store);
	return status;
}

int command_agent(const struct cli_call *call, struct error *err)
{
	struct agent agent = {.text_fd = -1, .report_fd = -1, .life_fd = -1};
	(void)call;
	signal(SIGPIPE, SIG_IGN);
	strbuf_init(&agent.input, AGENT_LINE_BYTES_MAX);
	strbuf_init(&agent.report, REPORT_BYTES_MAX);
	enum prony_status status = read_request(&agent, err);
	if (status == PRONY_OK)
		status = say_hello(&agent, err);
	if (status == PRONY_OK && expect(&agent, "go"))
		measure(&agent, err);
	close_fd(&agent.text_fd);
	close_fd(&agent.report_fd);
	close_fd(&agent.life_fd);
	json_decref(agent.request);
	strbuf_release(&agent.input);
	strbuf_release(&agent.report);
	free(agent.store);
	free(agent.copy);
	return 0;
}
