#include "diagnose/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "diagnose/sources.h"

/* The first of these variables that is set; the rows of Slurm (sbatch(1)), PBS (qsub(1B); Torque
 * has PBS_ARRAYID) and LSF (its configuration reference, "environment variables set for job
 * execution"). The task of an array is known to users by the array's number, not its own. */
static const struct {
	const char *member, *variables[5];
} rows[] = {
	{"node", {"SLURMD_NODENAME"}},
	{"job", {"SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}},
	{"array_task", {"SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX"}},
	{"partition", {"SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE"}},
	{"nodes_allocated", {"SLURM_JOB_NODELIST", "LSB_HOSTS"}},
};

enum { VALUE_LIMIT_BYTES = 1024 };

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	/* LSF sets 0 outside of an array. */
	return value && *value && !(!strcmp(name, "LSB_JOBINDEX") && !strcmp(value, "0")) ? value
											  : NULL;
}

static void put(json_t *record, const char *member, const char *text)
{
	json_t *value = json_stringn(text, strnlen(text, VALUE_LIMIT_BYTES));

	json_object_set_new(record, member, value ? value : json_string("(not UTF-8)"));
}

/* Puts the nodes of a file that has a line for each of their processors. */
static void put_file(json_t *record, const char *root, const char *path)
{
	char *text = source_text(root, path, NULL), *cursor = text, *line;
	const char *last = "";
	struct strbuf nodes;

	strbuf_init(&nodes, 0);
	while (text && (line = strsep(&cursor, "\n"))) {
		if (*line && strcmp(line, last) != 0)
			strbuf_printf(&nodes, "%s%s", nodes.length ? "," : "", line);
		last = line;
	}
	if (nodes.length)
		put(record, "nodes_allocated", strbuf_text(&nodes));
	strbuf_release(&nodes);
	free(text);
}

void job_add(json_t *informational, const char *root)
{
	const char *file = variable("PBS_NODEFILE");

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (const char *const *name = rows[i].variables; *name; name++)
			if (variable(*name)) {
				put(informational, rows[i].member, variable(*name));
				break;
			}
	if (file && !json_object_get(informational, "nodes_allocated"))
		put_file(informational, root, file);
	if ((variable("PBS_JOBID") || variable("LSB_JOBID")) &&
	    !json_object_get(informational, "node"))
		json_object_set(informational, "node", json_object_get(informational, "host"));
}
