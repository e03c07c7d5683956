/* `prony worker-check`: checks whether a worker follows the protocol and computes correctly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/machine_lock.h"
#include "cli/memory_limit.h"
#include "conformance/check.h"
#include "zoo/zoo.h"

#define SECOND_NS INT64_C(1000000000)

struct worker_check_options {
	const char *level, *format, *device, *keep_bundle;
	struct option_list networks;
	long long timeout, memory_limit;
} worker_check_options = {.level = "protocol", .format = "table", .timeout = 60};

static const char *const levels[] = {"protocol", "numeric", NULL};

const struct option worker_check_option_rows[] = {
	{CHOICE_OPTION(struct worker_check_options, level, "level", levels, "LEVEL",
		       "what to check; numeric adds the parity gate")},
	{.name = "network",
	 .letter = 'n',
	 .kind = OPTION_LIST,
	 .offset = offsetof(struct worker_check_options, networks),
	 .metavar = "NETWORK",
	 .help = "networks to compute (default: mlp,lenet); networks that the worker refuses are "
		 "skipped, but at least one must pass"},
	{.letter = 'D',
	 TEXT_OPTION(struct worker_check_options, device, "device", "DEVICE",
		     "device requested from the worker, such as cuda:0 (default: cpu)")},
	{TEXT_OPTION(struct worker_check_options, keep_bundle, "keep-bundle", "DIR",
		     "keep the case bundles in this folder")},
	{INT_OPTION(struct worker_check_options, timeout, "timeout", 1, 86400, "SECONDS",
		    "time limit of a request (default: 60)")},
	{.name = "memory-limit",
	 .kind = OPTION_MIB,
	 .offset = offsetof(struct worker_check_options, memory_limit),
	 .min = 16,
	 .max = 1 << 30,
	 .help = "limit of the worker's resident memory, such as 1536 or 2GiB (default: 90 % of "
		 "the available memory)"},
	CLI_OPTION_FORMAT(struct worker_check_options),
	{.name = NULL},
};

struct printer {
	json_t *rows; /* NULL: text output, line by line */
	int passed, skipped;
};

static void print_result(void *context, const char *check, enum check_outcome outcome,
			 const char *detail, const struct gate_check *figures, size_t figure_count)
{
	static const char *const words[] = {
		[CHECK_PASSED] = "ok", [CHECK_FAILED] = "FAILED", [CHECK_SKIPPED] = "skipped"};
	struct printer *printer = context;
	printer->passed += outcome == CHECK_PASSED;
	printer->skipped += outcome == CHECK_SKIPPED;
	if (printer->rows) {
		json_t *row = json_pack("{s:s, s:s, s:s}", "check", check, "outcome",
					outcome == CHECK_FAILED ? "failed" : words[outcome],
					"detail", detail);
		if (figures)
			json_object_set_new(row, "figures", json_array());
		for (size_t i = 0; i < figure_count; i++)
			json_array_append_new(json_object_get(row, "figures"),
					      gate_check_to_json(&figures[i]));
		json_array_append_new(printer->rows, row);
		return;
	}
	cli_out("%-7s %s%s%s\n", words[outcome], check, *detail ? ": " : "", detail);
	for (size_t i = 0; i < figure_count; i++) {
		char text[CHECK_FIGURE_BYTES];
		check_figure_text(&figures[i], text);
		cli_out("        %-4s %s\n", figures[i].passed ? "ok" : "off", text);
	}
	cli_finish_output(); /* flush, because the worker may take long over the next check */
}

/* Everything after the first word that is not our option belongs to the worker: put "--" before it.
 * All our options except help take a value. NULL without memory; the caller frees it. */
static char **guard_command(int *argc, char **argv)
{
	static char dashes[] = "--";
	char **out = calloc((size_t)*argc + 2, sizeof *out);
	int at = 1, count = 0;
	if (!out)
		return NULL;
	while (at < *argc && argv[at][0] == '-' && strcmp(argv[at], "--") != 0) {
		bool letter = argv[at][1] != '-';
		bool alone = letter ? argv[at][1] == 'h' || (argv[at][1] && argv[at][2])
				    : strchr(argv[at], '=') || !strcmp(argv[at], "--help");
		at += alone ? 1 : 2;
	}
	for (int i = 0; i < *argc; i++) {
		if (i == at && strcmp(argv[i], "--") != 0)
			out[count++] = dashes;
		out[count++] = argv[i];
	}
	*argc = count;
	return out;
}

/* Finds zoo networks by name. */
static enum prony_status find_networks(const struct option_list *words, const struct network **out,
				       size_t *count, struct error *err)
{
	for (size_t i = 0; i < words->count; i++)
		for (const char *at = words->values[i]; *at; at += *at == ',') {
			char name[64];
			size_t length = strcspn(at, ",");
			const char *nearest = NULL;
			snprintf(name, sizeof name, "%.*s", (int)length, at);
			at += length;
			if (*count == OPTION_LIST_MAX)
				return error_set(err, PRONY_USAGE, "--network: at most %d",
						 OPTION_LIST_MAX);
			out[*count] = zoo_find(name, &nearest);
			if (!out[*count])
				return error_set(err, PRONY_USAGE,
						 "--network: no network \"%s\"%s%s; `prony list "
						 "networks` shows them",
						 name, nearest ? ", did you mean " : "",
						 nearest ? nearest : "");
			++*count;
		}
	return PRONY_OK;
}

static enum prony_status check_worker(const struct worker_check_options *options, const char *self,
				      const char *const *argv, struct printer *printer,
				      struct error *err)
{
	const struct network *networks[OPTION_LIST_MAX];
	size_t network_count = 0;
	enum prony_status status = find_networks(&options->networks, networks, &network_count, err);
	if (status == PRONY_OK && options->keep_bundle)
		status = directory_make(options->keep_bundle, err);
	if (status != PRONY_OK)
		return status;
	const struct check_spec spec = {
		.self = self,
		.argv = argv,
		.level = !strcmp(options->level, levels[0]) ? CHECK_PROTOCOL : CHECK_NUMERIC,
		.timeout_ns = options->timeout * SECOND_NS,
		.memory_limit_bytes = memory_limit_worker(options->memory_limit).bytes,
		.device = options->device,
		.networks = networks,
		.network_count = network_count,
		.keep = options->keep_bundle,
		.stop = &stop_wanted,
	};
	const struct check_sink sink = {.result = print_result, .context = printer};
	catch_signals();
	return worker_check(&spec, &sink, err);
}

static void run_checks(const struct worker_check_options *options, const char *const *argv,
		       struct error *err)
{
	bool as_json = !strcmp(options->format, "json");
	struct printer printer = {.rows = as_json ? json_array() : NULL};
	char *self = path_self();
	enum prony_status status = check_worker(options, self, argv, &printer, err);
	if (printer.rows)
		cli_print_json(printer.rows);
	else if (status == PRONY_OK)
		cli_out(printer.skipped ? "all %d checks passed, %d skipped\n"
					: "all %d checks passed\n",
			printer.passed, printer.skipped);
	json_decref(printer.rows);
	free(self);
}

int command_worker_check(const struct cli_call *call, struct error *err)
{
	int argc = call->argc, exit_code = 0;
	size_t count = 0;
	char **guarded = guard_command(&argc, call->argv);
	/*
	 * One more than cli_parse fills in, because the worker's command line must end with NULL.
	 */
	const char **words = calloc((size_t)argc + 1, sizeof *words);
	if (!guarded || !words)
		error_set(err, PRONY_NOMEM, "no memory for a command line");
	else if (!cli_parse(call->command, argc, guarded, words, &count, &exit_code))
		; /* help, or an error that was printed */
	else if (count)
		run_checks(&worker_check_options, words, err);
	else
		error_set(err, PRONY_USAGE,
			  "which worker? Give its command, for example: prony worker-check perl "
			  "tests/workers/null.pl");
	free(words);
	free(guarded);
	return exit_code;
}
