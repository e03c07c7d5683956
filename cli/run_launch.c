#include "cli/run_launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/identity.h"
#include "base/memory.h"
#include "base/words.h"
#include "cli/agent.h"
#include "cli/batch_queue.h"
#include "cli/launch_node.h"
#include "cli/machine_lock.h"
#include "cli/run_part.h"
#include "study/parts.h"

#define SECOND_NS INT64_C(1000000000)
#define POLL_MS 500
#define HERE "{node}"
/* prony run ends so when all is measured, and cells are not ok. */
#define CODE_NOT_OK 1

/* The options that are not for the nodes. */
static const struct option own_rows[] = {{.name = "launch", .kind = OPTION_STRING},
					 {.name = "node-list", .kind = OPTION_LIST},
					 {.name = "every-node", .kind = OPTION_FLAG},
					 {.name = "run-id", .kind = OPTION_STRING},
					 {.name = "resume", .kind = OPTION_FLAG},
					 {.name = "store", .kind = OPTION_STRING},
					 {.name = "report", .kind = OPTION_STRING},
					 {.name = "format", .kind = OPTION_CHOICE},
					 {.name = NULL}};

/* The state of a run on several nodes. */
struct launch {
	struct job *job;
	const struct cli_call *call;
	struct arena arena;
	const char **names;	   /* of the nodes */
	struct launch_node *nodes; /* one for each part; with --every-node for each name */
	size_t count, name_count;
	const char *id;	    /* --run-id of the parts */
	char *folder;	    /* of stores that come */
	json_t *frameworks; /* spelling -> text: what each node must have */
};

enum prony_status run_launch_check(const struct run_options *o, const struct cli_call *call,
				   struct error *err)
{
	if (!o->launch && (o->node_list.count > 0 || o->every_node))
		return error_set(err, PRONY_USAGE,
				 "--%s needs --launch COMMAND, such as --launch 'ssh {node}'",
				 o->every_node ? "every-node" : "node-list");
	if (!o->launch)
		return PRONY_OK;
	if (strcmp(call->command->syntax.name, "run") != 0)
		return error_set(err, PRONY_USAGE, "--launch is for prony run");
	if (o->part || o->baseline || o->save_baseline || o->keep_proofs || o->keep_bundle ||
	    o->show_command)
		return error_set(err, PRONY_USAGE,
				 "--launch deals the parts and sends back stores: leave out "
				 "--part, --baseline, --save-baseline, --keep-proofs, "
				 "--keep-bundle and --show-command");
	if (o->every_node && (o->resume || o->run_id || o->name))
		return error_set(err, PRONY_USAGE,
				 "--every-node makes a new run of each node: leave out --resume, "
				 "--run-id and --name");
	if (o->resume && !o->run_id)
		return error_set(err, PRONY_USAGE,
				 "--launch --resume needs the --run-id that the first command "
				 "printed");
	if (strcmp(o->launch, "srun") != 0 && !strstr(o->launch, HERE))
		return error_set(err, PRONY_USAGE,
				 "--launch: write " HERE " where the node's name belongs, as in "
				 "'ssh " HERE "', or srun alone");
	return PRONY_OK;
}

static enum prony_status add_name(struct launch *launch, const char *name, size_t length,
				  struct error *err)
{
	const char *word = arena_strndup(&launch->arena, name, length);
	if (length == 0 || *word == '-' || word[strcspn(word, " \t\r'\"\\")])
		return error_set(err, PRONY_USAGE, "--node-list: '%.80s' is not the name of a node",
				 word);
	for (size_t i = 0; i < launch->name_count; i++)
		if (!strcmp(launch->names[i], word))
			return error_set(err, PRONY_USAGE, "--node-list: %.80s is there twice",
					 word);
	if (launch->name_count == RUN_PARTS_MAX)
		return error_set(err, PRONY_USAGE, "--node-list: at most %d nodes", RUN_PARTS_MAX);
	launch->names[launch->name_count++] = word;
	return PRONY_OK;
}

/* Adds the names in a text that separates them by this character. */
static enum prony_status add_names(struct launch *launch, const char *text, char separator,
				   struct error *err)
{
	enum prony_status status = PRONY_OK;
	while (*text && status == PRONY_OK) {
		const char *end = strchrnul(text, separator);
		status = add_name(launch, text, (size_t)(end - text), err);
		text = end + (*end == separator);
	}
	return status;
}

static enum prony_status find_names(struct launch *launch, struct error *err)
{
	static const char *const argv[] = {"scontrol", "show", "hostnames", NULL};
	const struct option_list *list = &launch->job->options->node_list;
	enum prony_status status = PRONY_OK;
	char *output = NULL;
	launch->names = arena_array(&launch->arena, RUN_PARTS_MAX, sizeof *launch->names);
	for (size_t i = 0; i < list->count && status == PRONY_OK; i++)
		status = add_names(launch, list->values[i], ',', err);
	if (status != PRONY_OK || launch->name_count > 0)
		return status;
	const char *job = getenv("SLURM_JOB_NODELIST");
	if (!job || !*job)
		return error_set(err, PRONY_USAGE,
				 "this is not in a job of Slurm: name the nodes with --node-list "
				 "a,b");
	status = queue_command(argv, &output, err);
	if (status == PRONY_OK)
		status = add_names(launch, output, '\n', err);
	free(output);
	return status;
}

/* The command line of a node, in the arena. */
static enum prony_status node_argv(struct launch *launch, const char *node, const char ***out,
				   struct error *err)
{
	static const char srun[] = "srun --overlap --nodes=1 --ntasks=1 --cpu-bind=none "
				   "--nodelist=" HERE;
	const char *text = launch->job->options->launch, *word;
	bool wrong = false;
	size_t count = 0;
	if (!strcmp(text, "srun"))
		text = srun;
	const char **argv = arena_array(&launch->arena, strlen(text) + 4, sizeof *argv);
	while ((word = words_next(&text, &launch->arena, &wrong))) {
		struct strbuf filled;
		strbuf_init(&filled, 0);
		for (const char *at; (at = strstr(word, HERE)); word = at + strlen(HERE)) {
			strbuf_add(&filled, word, (size_t)(at - word));
			strbuf_puts(&filled, node);
		}
		strbuf_puts(&filled, word);
		argv[count++] = arena_strdup(&launch->arena, strbuf_text(&filled));
		strbuf_release(&filled);
	}
	if (wrong || count == 0)
		return error_set(err, PRONY_USAGE, "--launch: %s: %s",
				 wrong ? "there is no closing quote" : "there is no command",
				 launch->job->options->launch);
	if (strcmp(argv[count - 1], "agent") != 0) {
		argv[count++] = launch->job->selection.self;
		argv[count++] = "agent";
	}
	argv[count] = NULL;
	*out = argv;
	return PRONY_OK;
}

/* The frameworks of the plan with their texts here. Workers of --worker are the node's business. */
static json_t *frameworks_here(struct launch *launch)
{
	const struct plan *plan = &launch->job->selection.plan;
	json_t *found = json_object();
	struct strbuf text;
	strbuf_init(&text, 0);
	for (size_t i = 0; i < plan->count; i++) {
		const struct framework_location *place = plan->cells[i].location;
		if (!place || !place->framework || place->framework->kind == FRAMEWORK_COMMAND)
			continue;
		const char *name =
			framework_spelling(place->framework, place->environment, &launch->arena);
		if (json_object_get(found, name))
			continue;
		strbuf_clear(&text);
		agent_framework_text(place, &text);
		json_object_set_new(found, name, json_string(strbuf_text(&text)));
	}
	strbuf_release(&text);
	return found;
}

/* Makes a node for each part, and prints which tables it has; or one for each name. Names beyond
 * the tables are not used. */
static void deal(struct launch *launch)
{
	const struct selection *s = &launch->job->selection;
	bool whole = launch->job->options->every_node;
	struct parts parts;
	size_t tables = 0;
	parts_deal(&s->plan, &s->spec, (int)launch->name_count, s->cpu_count, &parts);
	for (int i = 0; i < parts.count; i++)
		tables += parts.tables[i];
	launch->count = whole || tables > launch->name_count ? launch->name_count : tables;
	launch->nodes = arena_array(&launch->arena, launch->count + 1, sizeof *launch->nodes);
	if (launch->count < launch->name_count)
		cli_say("the run has %zu table%s, so %zu of %zu nodes are used\n", tables,
			tables == 1 ? "" : "s", launch->count, launch->name_count);
	for (size_t i = 0; i < launch->count; i++) {
		launch->nodes[i] = (struct launch_node){.name = launch->names[i],
							.part = whole ? 0 : (int)i + 1};
		if (!whole)
			cli_say("%s: part %zu of %zu, %zu table%s\n", launch->names[i], i + 1,
				launch->count, parts.tables[i], parts.tables[i] == 1 ? "" : "s");
	}
	parts_release(&parts);
}

/* Which run the parts are of. */
static void identify(struct launch *launch)
{
	const struct run_options *o = launch->job->options;
	struct tm now;
	char text[32] = "";
	time_t at = time(NULL);
	if (gmtime_r(&at, &now))
		strftime(text, sizeof text, "%Y%m%d-%H%M%S", &now);
	launch->id =
		o->run_id ? o->run_id : arena_printf(&launch->arena, "%s-%d", text, (int)getpid());
	parts_uid(&launch->job->selection.spec, (int)launch->count, launch->id,
		  launch->job->meta.uid);
}

/* The request to a node's agent, a line; the caller frees it. */
static char *request_of(const struct launch *launch, size_t i)
{
	const struct launch_node *node = &launch->nodes[i];
	const char **words = memory_alloc(((size_t)launch->call->argc + 1) * sizeof *words);
	size_t count = run_words(launch->call, own_rows, words);
	json_t *array = json_array(), *asked = json_array();
	const char *name;
	json_t *text;
	char *here = realpath(".", NULL), part[24];
	for (size_t at = 0; at < count; at++)
		json_array_append_new(array, json_string(words[at]));
	snprintf(part, sizeof part, "%d/%zu", node->part, launch->count);
	const char *const own[] = {"--part", part, "--run-id", launch->id, "--resume"};
	for (size_t at = 0; node->part && at < sizeof own / sizeof *own; at++)
		json_array_append_new(array, json_string(own[at]));
	json_object_foreach(launch->frameworks, name, text)
		json_array_append_new(asked, json_string(name));
	char *store = node->part ? memory_printf("%s-%d.db", launch->job->meta.uid, node->part)
				 : memory_printf("%s-node%zu.db", launch->id, i);
	json_t *request = json_pack("{s:o, s:s, s:s, s:o}", "words", array, "store", store,
				    "directory", here ? here : "", "frameworks", asked);
	char *line = json_dumps(request, JSON_COMPACT);
	json_decref(request);
	free(store);
	free(here);
	free(words);
	return line;
}

/* Lets the agent begin, or fails its node if it differs from what each node must have. */
static void check_hello(struct launch *launch, struct launch_node *node, const json_t *hello)
{
	const char *sha256 = json_string_value(json_object_get(hello, "sha256"));
	const char *version = json_string_value(json_object_get(hello, "version"));
	const json_t *theirs = json_object_get(hello, "frameworks");
	const char *name;
	json_t *text;
	void *next;
	if (!sha256 || strcmp(sha256, identity_sha256()) != 0) {
		launch_node_fail(node,
				 "its prony (%.20s, %.12s) is another executable than this one "
				 "(%.12s); install the same on each node",
				 version ? version : "?", sha256 ? sha256 : "?", identity_sha256());
		return;
	}
	json_object_foreach_safe(launch->frameworks, next, name, text)
	{
		const char *here = json_string_value(text);
		const char *there = json_string_value(json_object_get(theirs, name));
		if (!there)
			there = "missing";
		/* What is not here, where nothing is measured, is held against the first node that
		 * has it. */
		if (!strcmp(here, "missing")) {
			json_object_set_new(launch->frameworks, name, json_string(there));
		} else if (strcmp(here, there) != 0) {
			launch_node_fail(node,
					 "%s: %s there, but %s elsewhere; install the same on each "
					 "node (prony framework install %s)",
					 name, there, here, name);
			return;
		}
	}
	launch_node_say(node, "go");
}

/* Marks the nodes whose parts are here, finished. False when no part of the run is here. */
static bool find_finished(struct launch *launch)
{
	struct stored_run run;
	struct error none = ERROR_INIT;
	if (store_load_run(launch->job->store, launch->job->meta.uid, STORE_FORGIVES, &run,
			   &none) != PRONY_OK)
		return false;
	for (size_t i = 0; i < run.meta.part_count; i++) {
		int64_t part = run.meta.parts[i].part;
		if (part <= (int64_t)launch->count &&
		    run.meta.parts[i].finished_wall_ns != RECORD_NONE)
			launch->nodes[part - 1].whole = true;
	}
	stored_run_release(&run);
	return true;
}

/* Takes over what an agent has sent. It keeps what is not finished, to continue. */
static void finish(struct launch *launch, struct launch_node *node)
{
	struct store_imported imported;
	struct error err = ERROR_INIT;
	bool here = node->store_whole &&
		    store_import(launch->job->store, node->store, &imported, &err) == PRONY_OK;
	unlink(node->store);
	if (here && node->part)
		find_finished(launch);
	else if (here)
		node->whole = node->code <= CODE_NOT_OK;
	if (node->whole || (here && !node->part))
		launch_node_say(node, "done");
	if (err.code)
		cli_say("%s: its results stay there: %s\n", node->name, err.text);
	else
		cli_say("%s: has ended with exit code %d%s\n", node->name, node->code,
			here ? "; its results are here" : " and sends no results");
}

/* Reads from one node, and follows what it says. */
static void attend(struct launch *launch, struct launch_node *node, const struct pollfd fds[2])
{
	int64_t limit_s = launch->job->options->timeout;
	json_t *hello = NULL;
	launch_node_read(node, fds[0].revents != 0, fds[1].revents != 0, &hello);
	if (hello)
		check_hello(launch, node, hello);
	json_decref(hello);
	if (node->state < NODE_ENDED && clock_monotonic_ns() - node->heard_ns > limit_s * SECOND_NS)
		launch_node_fail(node, "%s for %lld s (--timeout)",
				 node->state == NODE_STARTED ? "no answer" : "not a word",
				 (long long)limit_s);
	if (node->state == NODE_ENDED)
		finish(launch, node);
	else if (node->state == NODE_FAILED)
		cli_say("prony: %s: %s\n", node->name, node->error.text);
}

static bool is_open(const struct launch_node *node)
{
	return node->state == NODE_STARTED || node->state == NODE_RUNS;
}

/* Follows all agents to their ends. */
static void follow(struct launch *launch)
{
	struct pollfd *fds = memory_alloc((2 * launch->count + 1) * sizeof *fds);
	bool told = false;
	for (size_t open = 1; open > 0;) {
		for (size_t i = 0; i < launch->count; i++) {
			struct launch_node *node = &launch->nodes[i];
			bool polled = is_open(node);
			fds[2 * i] =
				(struct pollfd){.fd = polled ? node->out : -1, .events = POLLIN};
			fds[2 * i + 1] =
				(struct pollfd){.fd = polled ? node->text : -1, .events = POLLIN};
		}
		/* A signal ends it. */
		if (poll(fds, 2 * launch->count, POLL_MS) < 0)
			memset(fds, 0, 2 * launch->count * sizeof *fds);
		open = 0;
		for (size_t i = 0; i < launch->count; i++) {
			struct launch_node *node = &launch->nodes[i];
			if (!is_open(node))
				continue;
			attend(launch, node, &fds[2 * i]);
			if (stop_wanted && node->state == NODE_STARTED)
				launch_node_fail(node, "interrupted before its run began");
			else if (stop_wanted && !told)
				launch_node_say(node, "stop");
			open += is_open(node);
		}
		told = stop_wanted;
	}
	free(fds);
}

static enum prony_status start_all(struct launch *launch, struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < launch->count && status == PRONY_OK; i++) {
		struct launch_node *node = &launch->nodes[i];
		const char **argv = NULL;
		status = node_argv(launch, node->name, &argv, err);
		if (status != PRONY_OK || node->whole)
			continue;
		char *request = request_of(launch, i);
		launch_node_start(node, argv, request,
				  memory_printf("%s/%zu.db", launch->folder, i));
		free(request);
		if (node->state == NODE_FAILED)
			cli_say("prony: %s: %s\n", node->name, node->error.text);
	}
	return status;
}

/* Names the nodes that did not send all; returns whether there are any. */
static bool say_missing(const struct launch *launch)
{
	size_t missing = 0;
	bool failed = false;
	struct strbuf names;
	strbuf_init(&names, 0);
	for (size_t i = 0; i < launch->count; i++) {
		const struct launch_node *node = &launch->nodes[i];
		failed = failed || node->code != 0;
		if (!node->whole)
			strbuf_printf(&names, "%s%s", missing++ ? ", " : "", node->name);
	}
	if (missing > 0)
		cli_say("prony: %zu of %zu nodes did not measure all: %s\n", missing, launch->count,
			strbuf_text(&names));
	if (missing > 0 && !launch->job->options->every_node)
		cli_say("prony: to measure what is missing, add --resume --run-id %s\n",
			launch->id);
	strbuf_release(&names);
	return failed || missing > 0;
}

static enum prony_status run_on_nodes(struct launch *launch, int *exit_code, struct error *err)
{
	struct job *job = launch->job;
	struct run_extent found;
	enum prony_status status = store_open(job->options->store, false, &job->store, err);
	if (status == PRONY_OK && job->options->resume && !find_finished(launch))
		status =
			error_set(err, PRONY_USAGE,
				  "no part of a run with --run-id %s, these cells and %zu nodes is "
				  "here, so there is nothing to resume",
				  launch->id, launch->count);
	const char *name = job->options->name;
	/* The agents' stores do not have the names of this one. */
	if (status == PRONY_OK && name && !job->options->resume &&
	    store_find_run(job->store, name, &found, NULL) == PRONY_OK)
		status = error_set(
			err, PRONY_USAGE,
			"run %lld already has the name '%s': choose another, or remove it "
			"with 'prony tag %lld --name \"\"'",
			(long long)found.meta.id, name, (long long)found.meta.id);
	if (status == PRONY_OK)
		status = directory_make_temporary("prony-launch", &launch->folder, err);
	if (status == PRONY_OK)
		status = start_all(launch, err);
	if (status == PRONY_OK)
		follow(launch);
	for (size_t i = 0; i < launch->count; i++)
		launch_node_release(&launch->nodes[i]);
	if (launch->folder)
		directory_remove(launch->folder, NULL);
	if (status != PRONY_OK)
		return status;
	*exit_code = say_missing(launch);
	if (job->options->every_node)
		cli_say("to compare the nodes: prony show --by node\n");
	else if (store_find_run(job->store, job->meta.uid, &found, NULL) == PRONY_OK)
		job->meta.id = found.meta.id;
	return stop_wanted ? error_set(err, PRONY_INTERRUPTED, "interrupted") : PRONY_OK;
}

enum prony_status run_launch(struct job *job, const struct cli_call *call, int *exit_code,
			     struct error *err)
{
	struct launch launch = {.job = job, .call = call};
	arena_init(&launch.arena, 0);
	enum prony_status status = find_names(&launch, err);
	if (status == PRONY_OK) {
		deal(&launch);
		identify(&launch);
		launch.frameworks = frameworks_here(&launch);
		catch_signals();
	}
	if (status == PRONY_OK && !job->options->dry_run)
		status = run_on_nodes(&launch, exit_code, err);
	json_decref(launch.frameworks);
	free(launch.folder);
	arena_release(&launch.arena);
	return status;
}
