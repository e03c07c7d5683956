/* The exit code of `prony run`. */
#include "cli/run_outcome.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/compare_options.h"

enum { NOT_OK_SHOWN = 3 };

const char *const run_allow_words[] = {"inconclusive", "unsupported", NULL};

static enum prony_status allow_word(const char *word, unsigned *allowed, struct error *err)
{
	size_t count = 0;
	for (; run_allow_words[count]; count++) {
		if (strcmp(word, run_allow_words[count]) != 0)
			continue;
		*allowed |= 1U << count;
		return PRONY_OK;
	}
	const char *near = word_nearest(word, run_allow_words, count);
	return error_set(err, PRONY_USAGE, "--allow takes %s and %s, not '%.100s'%s%s%s",
			 run_allow_words[0], run_allow_words[1], word,
			 near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

enum prony_status run_allow_parse(const struct option_list *list, unsigned *allowed,
				  struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < list->count && status == PRONY_OK; i++) {
		char *words = memory_strdup(list->values[i]), *rest = words;
		while (rest && status == PRONY_OK)
			status = allow_word(strsep(&rest, ","), allowed, err);
		free(words);
	}
	return status;
}

/* Whether a cell makes the run a failure. A cell that is only requested by a suite or by `all` may
 * be missing or unsupported. */
static bool is_failure(const struct job *job, size_t cell)
{
	enum cell_status status = job->study.cells[cell].status;
	bool lenient = status == CELL_UNSUPPORTED || status == CELL_MISSING;
	if (status == CELL_UNSUPPORTED && job->allowed & RUN_ALLOW_UNSUPPORTED)
		return false;
	return status != CELL_OK && (job->selection.plan.cells[cell].explicit_ || !lenient);
}

/* Whether --allow unsupported would make the run a success. */
static bool only_unsupported(const struct job *job)
{
	for (size_t i = 0; i < job->selection.plan.count; i++)
		if (is_failure(job, i) && job->study.cells[i].status != CELL_UNSUPPORTED)
			return false;
	return true;
}

/* Names the first cells that are not ok: all of them, or those that are failures. */
static void say_not_ok(const struct job *job, bool all, size_t count)
{
	struct strbuf text;
	char title[200];
	size_t shown = 0, last = 0;
	strbuf_init(&text, 0);
	for (size_t i = 0; i < job->selection.plan.count && shown < NOT_OK_SHOWN; i++) {
		if (!all && !is_failure(job, i))
			continue;
		last = i;
		progress_cell_title(&job->selection.plan.cells[i], title, sizeof title);
		enum cell_status status = job->study.cells[i].status;
		strbuf_printf(&text, "%s%s (%s)", shown++ ? ", " : "", title,
			      status == CELL_PENDING ? "not finished" : cell_status_name(status));
	}
	if (count > shown)
		strbuf_printf(&text, " and %zu more", count - shown);
	if (study_refused(&job->study))
		strbuf_printf(&text,
			      "; the budget of %s had no time for a reference or gate: give a "
			      "longer one, or add --resume",
			      job->options->budget);
	else if (study_unfinished(&job->study) > 0)
		strbuf_printf(&text,
			      study_began(&job->study, job->options->gate_only)
				      ? "; the budget of %s is used up; to continue, add --resume "
					"to the command"
				      : "; the budget of %s is too short for any process; give a "
					"longer one, or --quick",
			      job->options->budget);
	bool absent = false;
	for (size_t i = 0; i < job->selection.plan.count; i++)
		absent = absent || (job->study.cells[i].status == CELL_MISSING &&
				    job->selection.plan.cells[i].location->origin == ORIGIN_NONE);
	/* For a single cell the reason of the plan is shown. */
	const char *reason =
		count == 1 && shown == 1 ? job->selection.plan.cells[last].reason : NULL;
	cli_say("prony: %s: %s%s%s%s\n", all ? "no cell is ok" : "not ok", strbuf_text(&text),
		reason ? ": " : "", reason ? reason : "",
		all && absent && !reason
			? "; 'prony list frameworks' says what is here and how to get the rest"
		: !all && only_unsupported(job) ? "; --allow unsupported accepts this"
						: "");
	strbuf_release(&text);
}

bool run_has_failed(const struct job *job)
{
	size_t good = 0, failures = 0;
	for (size_t i = 0; i < job->selection.plan.count; i++) {
		good += job->study.cells[i].status == CELL_OK;
		failures += is_failure(job, i);
	}
	if (good > 0 && failures == 0)
		return false;
	say_not_ok(job, good == 0, good == 0 ? job->selection.plan.count : failures);
	return true;
}

int run_exit(const struct job *job, bool failed)
{
	if (job->gate == COMPARE_EXIT_SLOWER)
		return COMPARE_EXIT_SLOWER;
	if (failed || job->gate == COMPARE_EXIT_BROKEN)
		return COMPARE_EXIT_BROKEN;
	return job->allowed & RUN_ALLOW_INCONCLUSIVE ? 0 : job->gate;
}
