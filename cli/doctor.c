/* `prony doctor`: reports what on this machine spoils a measurement, and the remedy. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/ceilings.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/framework_word.h"
#include "cli/machine_lock.h"
#include "diagnose/machine.h"
#include "diagnose/measured.h"
#include "frameworks/registry.h"
#include "report/compare.h"
#include "store/machine_figures.h"

enum { FINDINGS_MAX = 64 };

struct doctor_options {
	const char *format;
	bool record, measure;
} doctor_options = {.format = "table"};

/* How long the processors are observed. */
#define WATCH_NS INT64_C(500000000)
/* Longer would not improve the result: the best of many attempts counts. */
#define EACH_NS INT64_C(200000000)

const struct option doctor_option_rows[] = {
	{FLAG_OPTION(
		struct doctor_options, record, "record",
		"print the machine record that is stored with every result, as JSON, and stop")},
	{FLAG_OPTION(struct doctor_options, measure, "measure",
		     "measure the peak of processors and memory (some seconds) and store it for "
		     "later runs")},
	CLI_OPTION_FORMAT(struct doctor_options),
	{.name = NULL},
};

static const char *level_name(enum finding_level level)
{
	static const char *const names[] = {"ok", "note", "warning"};

	return names[level];
}

/* --measure: measures the ceilings again. */
static void measure(const struct doctor_options *options, struct error *err)
{
	json_t *record = machine_record("");
	const json_t *ceilings = NULL;
	int lock = -1;
	enum prony_status status = machine_lock(NULL, &lock, err);

	if (status == PRONY_OK) {
		status = ceilings_renew(record, EACH_NS, &ceilings, err);
		close(lock);
	}
	if (status == PRONY_OK && strcmp(options->format, "json") == 0)
		cli_print_json(ceilings);
	else if (status == PRONY_OK)
		ceilings_print(ceilings);
	json_decref(record);
}

/* Prints earlier measurements of this machine, or how to make them. */
static void print_measured(void)
{
	json_t *record = machine_record("");

	measured_add(record);
	const json_t *ceilings = measured_part(record, "ceilings");
	double floor = machine_noise_floor(record);
	struct strbuf elsewhere;
	strbuf_init(&elsewhere, 0);
	cli_out("\n");
	if (ceilings)
		ceilings_print(ceilings);
	else
		cli_out("Peak of processors and memory: not measured (prony doctor --measure)\n");
	if (floor > 0)
		cli_out("Noise floor: %.2g %% (prony selftest, %s)\n", 100 * floor,
			json_string_or(measured_part(record, "noise"), "measured_at", "?"));
	else
		cli_out("Smallest detectable slowdown: not measured (prony selftest)\n");
	if (floor > 0 && compare_noise_elsewhere(record, &elsewhere))
		cli_out("The noise floor was measured under other conditions: %s (to repeat: prony "
			"selftest)\n",
			strbuf_text(&elsewhere));
	strbuf_release(&elsewhere);
	json_decref(record);
}

static void print_json(const struct finding *findings, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array,
				      json_pack("{s:s, s:s, s:s, s:s}", "check", findings[i].check,
						"level", level_name(findings[i].level), "value",
						findings[i].value, "remedy", findings[i].remedy));
	cli_print_json(array);
	json_decref(array);
}

static void print_text(const struct finding *findings, size_t count)
{
	static const struct table_column columns[] = {
		{"check", "check", TABLE_LEFT},
		{"level", "level", TABLE_LEFT},
		{"found", "value", TABLE_LEFT},
	};
	struct table *table = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t warnings = 0;

	for (size_t i = 0; i < count; i++) {
		table_row(table);
		table_cell(table, findings[i].check, NULL);
		table_cell(table, level_name(findings[i].level), NULL);
		table_cell(table, findings[i].value, NULL);
		if (*findings[i].remedy)
			table_note(table, findings[i].remedy);
		warnings += findings[i].level == FINDING_WARNING;
	}
	cli_print_table(table, "table");
	table_free(table);
	if (warnings)
		cli_out("\n%zu of %zu checks found something that disturbs measurements.\n",
			warnings, count);
	else
		cli_out("\nFound nothing that disturbs measurements.\n");
}

/* Checks whether an installed framework is intact; a fault is a finding. Returns the number of
 * installations. */
static size_t check_framework(const struct framework *framework, const char *environment,
			      size_t *installed, struct finding *out)
{
	struct framework_location place = {.framework = framework};
	struct arena arena;
	size_t count = 0;

	arena_init(&arena, 0);
	if (framework_locate(framework, environment, &arena, &place, NULL) == PRONY_OK) {
		const char *fault = framework_fault(&place, &arena);
		const char *spelling = framework_spelling(framework, environment, &arena);

		*installed += place.origin == ORIGIN_INSTALLED;
		if (fault) {
			*out = (struct finding){.level = FINDING_WARNING, .check = "framework"};
			snprintf(out->value, sizeof(out->value), "%s: %s", spelling, fault);
			snprintf(out->remedy, sizeof(out->remedy),
				 "prony framework install %s reinstalls it", spelling);
			count = 1;
		}
	}
	arena_release(&arena);
	return count;
}

/* Finds environments installed by prony with missing files. */
static size_t framework_findings(struct finding *out, size_t capacity)
{
	struct registry registry;
	size_t count = 0, installed = 0;

	if (cli_registry(&registry, NULL) != PRONY_OK)
		return 0;
	for (size_t i = 0; i < registry.count; i++) {
		const struct framework *row = &registry.rows[i];
		const char *const *found;
		size_t environments = framework_environments(row, &registry.arena, &found);

		for (size_t k = 0; k <= environments && count + 1 < capacity; k++)
			count += check_framework(row, k ? found[k - 1] : "", &installed,
						 &out[count]);
	}
	registry_release(&registry);
	if (count == 0 && capacity > 0) {
		out[count] = (struct finding){.level = FINDING_OK, .check = "frameworks"};
		snprintf(out[count++].value, sizeof(out->value), "%zu installed, none damaged",
			 installed);
	}
	return count;
}

int command_doctor(const struct cli_call *call, struct error *err)
{
	struct finding findings[FINDINGS_MAX];

	(void)call;
	if (doctor_options.measure) {
		measure(&doctor_options, err);
		return 0;
	}
	if (doctor_options.record) {
		json_t *record = machine_record("");

		measured_add(record);
		cli_print_json(record);
		json_decref(record);
		return 0;
	}
	size_t count = machine_findings("", WATCH_NS, findings, FINDINGS_MAX);
	count += framework_findings(findings + count, FINDINGS_MAX - count);
	if (strcmp(doctor_options.format, "json") == 0) {
		print_json(findings, count);
	} else {
		print_text(findings, count);
		print_measured();
	}
	return 0;
}
