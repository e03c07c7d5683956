#include "cli/run_part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "study/parts.h"

enum { RUN_ID_MAX = 64 };

static bool parse(const char *text, int64_t *part, int64_t *parts)
{
	char *end = NULL, again[48];
	*part = strtol(text, &end, 10);
	*parts = *end == '/' ? strtol(end + 1, NULL, 10) : 0;
	/* One spelling each: not "01/2", "+1/2" or " 1/2". */
	snprintf(again, sizeof again, "%lld/%lld", (long long)*part, (long long)*parts);
	return !strcmp(text, again) && *part >= 1 && *part <= *parts && *parts <= RUN_PARTS_MAX;
}

enum prony_status run_part_check(const struct run_options *options, struct error *err)
{
	int64_t part, parts;
	if (options->run_id && !options->part && !options->launch)
		return error_set(err, PRONY_USAGE,
				 "--run-id is for a run in parts: add --part I/N");
	if (!options->part)
		return PRONY_OK;
	if (options->run_id && (!*options->run_id || strlen(options->run_id) > RUN_ID_MAX))
		return error_set(err, PRONY_USAGE,
				 "--run-id takes a word of at most %d characters, such as june",
				 RUN_ID_MAX);
	if (!parse(options->part, &part, &parts))
		return error_set(err, PRONY_USAGE,
				 "--part takes I/N, such as 3/8 with I from 1 to N and N up to %d, "
				 "not '%.40s'",
				 RUN_PARTS_MAX, options->part);
	if (options->baseline || options->save_baseline)
		return error_set(
			err, PRONY_USAGE,
			"a part is not compared with a baseline: import all parts, then use "
			"prony compare");
	return PRONY_OK;
}

/* Whether the word is an option of `rows`; *value: whether the next word is its value. */
static bool is_own(const char *word, const struct option *rows, bool *value)
{
	*value = false;
	for (const struct option *row = rows; row->name && !strncmp(word, "--", 2); row++) {
		size_t length = strlen(row->name);
		if (strncmp(word + 2, row->name, length) != 0 ||
		    (word[2 + length] && word[2 + length] != '='))
			continue;
		*value = row->kind != OPTION_FLAG && !word[2 + length];
		return true;
	}
	return false;
}

size_t run_words(const struct cli_call *call, const struct option *own, const char **words)
{
	size_t count = 0;
	bool value;
	for (int i = 1; i < call->argc; i++) {
		if (is_own(call->argv[i], own, &value))
			i += value;
		else
			words[count++] = call->argv[i];
	}
	return count;
}

char *run_part_array_job(void)
{
	const char *slurm = getenv("SLURM_ARRAY_JOB_ID"), *pbs = getenv("PBS_JOBID");
	const char *lsf = getenv("LSB_JOBID"), *index = getenv("LSB_JOBINDEX");
	if (slurm && *slurm)
		return memory_strdup(slurm);
	/* "17[3].server": the index is the task's. */
	if (pbs && strchr(pbs, '['))
		return memory_printf("%.*s", (int)strcspn(pbs, "["), pbs);
	return memory_strdup(lsf && index && strcmp(index, "0") != 0 ? lsf : "");
}

static void say(const struct job *job, const struct parts *parts, size_t cells, const char *id)
{
	size_t tables = 0;
	for (int i = 0; i < parts->count; i++)
		tables += parts->tables[i];
	cli_say("part %lld of %d of run %.8s: %zu of %zu tables, %zu of %zu cells\n",
		(long long)job->part.part, parts->count, job->meta.uid,
		parts->tables[job->part.part - 1], tables, job->selection.plan.count, cells);
	if (!*id)
		cli_say("without a job's id, the cells, the options and the number of parts "
			"identify "
			"the run; to measure it again, give another --run-id\n");
}

void run_part_take(struct job *job)
{
	int64_t part, count;
	struct parts parts;
	size_t cells = job->selection.plan.count;
	if (!job->options->part || !parse(job->options->part, &part, &count))
		return;
	char *id =
		job->options->run_id ? memory_strdup(job->options->run_id) : run_part_array_job();
	parts_deal(&job->selection.plan, &job->selection.spec, (int)count, job->selection.cpu_count,
		   &parts);
	parts_keep(&parts, (int)part - 1, &job->selection.plan);
	job->part = (struct run_part){.part = part, .parts = count, .cells = (int64_t)cells};
	parts_uid(&job->selection.spec, (int)count, id, job->meta.uid);
	say(job, &parts, cells, id);
	parts_release(&parts);
	free(id);
}
