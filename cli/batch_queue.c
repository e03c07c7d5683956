#include "cli/batch_queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "cli/machine_lock.h"

#define COMMAND_NS INT64_C(120000000000)
#define OUTPUT_BYTES (16 << 20)

enum prony_status queue_command(const char *const *argv, char **output, struct error *err)
{
	const struct process_spec spec = {.argv = argv, .new_group = true, .stop = &stop_wanted};
	struct process_end end;
	char how[64], *text = NULL;
	struct error why = ERROR_INIT;
	enum prony_status status = process_run(&spec, COMMAND_NS, OUTPUT_BYTES, &text, &end, &why);
	if (status == PRONY_MISSING)
		error_set(
			err, status,
			"no %s here: run this where Slurm's commands are, or use --print and take "
			"the script there",
			argv[0]);
	else if (status != PRONY_OK)
		error_set(err, status, "%s", why.text);
	if (status == PRONY_OK && (end.signalled || end.code != 0)) {
		process_end_text(&end, how, sizeof how);
		status = error_set(err, PRONY_IO, "%s: %s: %.*s", argv[0], how,
				   (int)strcspn(text, "\n"), text);
	}
	if (status == PRONY_OK)
		*output = text;
	else
		free(text);
	return status;
}

enum prony_status queue_submit(const char *script, const char *const *options, size_t count,
			       int64_t *job, struct error *err)
{
	const char **argv = memory_alloc((count + 4) * sizeof *argv);
	char *output = NULL, *end;
	argv[0] = "sbatch";
	argv[1] = "--parsable";
	for (size_t i = 0; i < count; i++)
		argv[2 + i] = options[i];
	argv[2 + count] = script;
	argv[3 + count] = NULL;
	enum prony_status status = queue_command(argv, &output, err);
	free(argv);
	if (status != PRONY_OK)
		return status;
	/* "17" or "17;cluster"; a site's filter may say something before. */
	const char *line = output;
	for (const char *at = output; (at = strchr(at, '\n')) && at[1];)
		line = ++at;
	*job = strtoll(line, &end, 10);
	if (end == line || *job <= 0)
		status =
			error_set(err, PRONY_IO, "sbatch: no job id in its answer: %.200s", output);
	free(output);
	return status;
}

enum prony_status queue_tasks(void (*visit)(void *context, int64_t job, int64_t index),
			      void *context, struct error *err)
{
	char user[24], *output = NULL, *rest, *line;
	const char *const argv[] = {"squeue", "-h", "-r", "-u", user, "-o", "%F %K", NULL};
	snprintf(user, sizeof user, "%u", geteuid());
	enum prony_status status = queue_command(argv, &output, err);
	if (status != PRONY_OK)
		return status;
	for (rest = output; (line = strsep(&rest, "\n"));) {
		int64_t job, index;
		int found = sscanf(line, "%" SCNd64 " %" SCNd64, &job, &index);
		if (found > 0)
			visit(context, job, found == 2 ? index : -1);
	}
	free(output);
	return PRONY_OK;
}
