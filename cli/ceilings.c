/* `prony ceilings`: measures the peak performance of this machine in a child process. */
#include "cli/ceilings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "ceilings/ceilings.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "diagnose/machine.h"
#include "diagnose/measured.h"
#include "frameworks/registry.h"
#include "report/format.h"

enum { OUTPUT_BYTES = 1 << 16, CPUS_MAX_HERE = 1024, EACH_MS_MAX = 60000 };
#define MILLISECOND_NS INT64_C(1000000)
#define CHILD_TIMEOUT_NS (INT64_C(300000) * MILLISECOND_NS)

struct ceilings_options {
	const char *library, *reason, *cpus;
	long long each_ms;
} ceilings_options = {.each_ms = 200};

const struct option ceilings_option_rows[] = {
	{TEXT_OPTION(struct ceilings_options, library, "library", "FILE", "libdnnl.so.3")},
	{TEXT_OPTION(struct ceilings_options, reason, "reason", "TEXT", "why there is no library")},
	{TEXT_OPTION(struct ceilings_options, cpus, "cpus", "N,N",
		     "one logical processor per core")},
	{INT_OPTION(struct ceilings_options, each_ms, "each", 1, EACH_MS_MAX, "MS",
		    "time for each figure")},
	{.name = NULL},
};

/* Parses "0,2" into numbers. Returns their count, 0 when it is not such a list. */
static int parse_cpus(const char *text, int *out)
{
	int count = 0;

	for (const char *at = text; at && *at && count < CPUS_MAX_HERE;) {
		char *end;
		long cpu = strtol(at, &end, 10);
		if (end == at || cpu < 0 || cpu >= CPUS_MAX_HERE || (*end && *end != ','))
			return 0;
		out[count++] = (int)cpu;
		at = *end ? end + 1 : end;
	}
	return count;
}

int command_ceilings(const struct cli_call *call, struct error *err)
{
	int cpus[CPUS_MAX_HERE];
	struct ceilings found;
	struct ceilings_settings settings = {.library = ceilings_options.library,
					     .no_library = ceilings_options.reason,
					     .cpus = cpus,
					     .cpu_count = parse_cpus(ceilings_options.cpus, cpus),
					     .each_ns = ceilings_options.each_ms * MILLISECOND_NS};

	(void)call;
	if (settings.cpu_count == 0)
		error_set(err, PRONY_USAGE, "prony ceilings needs --cpus N,N");
	else
		ceilings_measure(&settings, &found, err);
	if (err->code != PRONY_OK)
		return 0;
	json_t *json = ceilings_to_json(&found, settings.cpu_count);
	char *text = json_dumps(json, JSON_COMPACT);
	if (!text)
		memory_exhausted("the ceilings");
	cli_out("\n%s\n", text);
	free(text);
	json_decref(json);
	return 0;
}

/*
 * The path of native's library, in the registry's arena; NULL with the reason when there is none.
 */
static const char *find_library(struct registry *registry, const char **why, struct error *err)
{
	for (size_t i = 0; i < registry->count; i++) {
		struct framework_location place;
		if (!registry->rows[i].floor)
			continue;
		if (framework_locate(&registry->rows[i], "", &registry->arena, &place, err) !=
		    PRONY_OK)
			return NULL;
		*why = place.reason;
		return place.library;
	}
	*why = "the framework native is missing";
	return NULL;
}

/* Parses the last line that the child printed. */
static enum prony_status read_answer(const char *output, const struct process_end *end,
				     json_t **out, struct error *err)
{
	struct error ignored = ERROR_INIT;
	const char *line = strrchr(output, '{');
	char how[96];

	while (line && line > output && line[-1] != '\n')
		line--;
	process_end_text(end, how, sizeof how);
	if (end->signalled || end->code || !line ||
	    json_parse(line, strlen(line), "prony ceilings", out, &ignored) != PRONY_OK)
		return error_set(err, PRONY_CRASHED,
				 "measuring the machine's peak failed (%s): %.300s", how, output);
	return PRONY_OK;
}

enum prony_status ceilings_run(const char *self, const int *cpus, int cpu_count, int64_t each_ns,
			       json_t **out, struct error *err)
{
	struct registry registry = {.count = 0};
	const char *why = NULL;
	struct process_end end;
	char each[32], *output = NULL;
	struct strbuf list;
	enum prony_status status = registry_load(&registry, err);

	if (status != PRONY_OK)
		return status;
	const char *library = find_library(&registry, &why, err);
	strbuf_init(&list, 0);
	for (int i = 0; i < cpu_count; i++)
		strbuf_printf(&list, "%s%d", i > 0 ? "," : "", cpus[i]);
	snprintf(each, sizeof each, "%lld", (long long)(each_ns / MILLISECOND_NS));
	const char *const argv[] = {self,
				    "ceilings",
				    "--cpus",
				    strbuf_text(&list),
				    "--each",
				    each,
				    library ? "--library" : "--reason",
				    library ? library
				    : why   ? why
					    : "no oneDNN",
				    NULL};
	struct process_spec spec = {.argv = argv, .new_group = true};
	status = process_run(&spec, CHILD_TIMEOUT_NS, OUTPUT_BYTES, &output, &end, err);
	if (status == PRONY_OK)
		status = read_answer(output ? output : "", &end, out, err);
	free(output);
	strbuf_release(&list);
	registry_release(&registry);
	return status;
}

/* A ceiling is the best value ever seen: a busy machine lowers a measurement, nothing raises it. So
 * a stored value replaces a lower one. */
static void keep_best(json_t *found, const json_t *kept)
{
	static const char *const members[] = {"one", "all"};
	const char *name;
	json_t *row;

	json_object_foreach(found, name, row)
	{
		const json_t *old = json_object_get(kept, name);
		double one = json_real_or(row, "one", NAN), before = json_real_or(old, "one", NAN);
		for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
			if (json_real_or(old, members[i], NAN) > json_real_or(row, members[i], NAN))
				json_object_set(row, members[i], json_object_get(old, members[i]));
		if (before > one)
			json_object_set(row, "how", json_object_get(old, "how"));
	}
}

enum prony_status ceilings_renew(json_t *record, int64_t each_ns, const json_t **out,
				 struct error *err)
{
	char *self = path_self();
	int *cpus = memory_alloc(CPUS_MAX_HERE * sizeof *cpus);
	int count = machine_cores(cpus, CPUS_MAX_HERE);
	json_t *found = NULL;
	enum prony_status status = ceilings_run(self, cpus, count, each_ns, &found, err);

	if (status == PRONY_OK) {
		measured_add(record);
		keep_best(found, measured_part(record, "ceilings"));
		status = measured_keep(record, "ceilings", found, err);
	}
	if (status == PRONY_OK) {
		measured_add(record);
		*out = measured_part(record, "ceilings");
	}
	json_decref(found);
	free(cpus);
	free(self);
	return status;
}

static void rate_text(double value, bool bytes, char *out, size_t out_bytes)
{
	char text[FORMAT_BYTES];

	if (!bytes) {
		format_flops(value, NAN, out, out_bytes);
		return;
	}
	format_bytes(value, text, sizeof text);
	snprintf(out, out_bytes, "%s%s", text, isfinite(value) ? "/s" : "");
}

void ceilings_print(const json_t *ceilings)
{
	static const struct table_column columns[] = {{"at best", "what", TABLE_LEFT},
						      {"one core", "one", TABLE_RIGHT},
						      {"all cores", "all", TABLE_RIGHT},
						      {"how", "how", TABLE_LEFT}};
	struct table *table = table_new(columns, sizeof columns / sizeof columns[0]);
	static const char *const names[] = {
#define X(name, title, unit) #name,
		CEILINGS(X) CEILINGS_GPU(X)
#undef X
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const json_t *row = json_object_get(ceilings, names[i]);
		const char *absent = json_string_or(row, "absent", "");
		bool bytes = !strcmp(json_string_or(row, "unit", ""), "bytes/s");
		char one[FORMAT_BYTES + 8], all[FORMAT_BYTES + 8];
		if (!row)
			continue;
		rate_text(json_real_or(row, "one", NAN), bytes, one, sizeof one);
		rate_text(json_real_or(row, "all", NAN), bytes, all, sizeof all);
		table_row(table);
		table_cell(table, json_string_or(row, "what", names[i]), NULL);
		table_cell(table, one, NULL);
		table_cell(table, all, NULL);
		table_cell(table, *absent ? "-" : json_string_or(row, "how", ""), NULL);
		if (*absent)
			table_note(table, absent);
	}
	cli_print_table(table, "table");
	table_free(table);
}
