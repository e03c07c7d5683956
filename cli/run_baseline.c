#include "cli/run_baseline.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/compare_options.h"
#include "cli/results.h"
#include "cli/run_outcome.h"
#include "study/baseline.h"

enum prony_status baseline_check_options(const struct run_options *options, unsigned allowed,
					 struct error *err)
{
	enum prony_status status = PRONY_OK;
	double threshold;
	if (options->name)
		status = run_name_check(options->name, err);
	if (status == PRONY_OK && options->save_baseline)
		status = run_name_check(options->save_baseline, err);
	if (status == PRONY_OK)
		status = threshold_parse(options->threshold, &threshold, err);
	if (status != PRONY_OK)
		return status;
	if (options->name && options->save_baseline)
		return error_set(err, PRONY_USAGE,
				 "--name and --save-baseline both name the run: remove one");
	if (!options->baseline && (options->threshold || options->force))
		return error_set(err, PRONY_USAGE, "--%s is for --baseline",
				 options->threshold ? "threshold" : "force");
	if (!options->baseline && allowed & RUN_ALLOW_INCONCLUSIVE)
		return error_set(err, PRONY_USAGE, "--allow inconclusive is for --baseline");
	if (options->gate_only && (options->baseline || options->save_baseline))
		return error_set(err, PRONY_USAGE,
				 "--gate-only measures no times, so --baseline and --save-baseline "
				 "cannot be used with it");
	return PRONY_OK;
}

/* Whether --save-baseline gives the baseline's name to a run for the first time. */
static enum prony_status baseline_is_new(const struct job *job, bool *is_new, struct error *err)
{
	const char *name = job->options->save_baseline;
	struct run_extent found;
	struct error none = ERROR_INIT;
	struct store *store = NULL;
	*is_new = false;
	if (!name || strcmp(name, job->options->baseline) != 0)
		return PRONY_OK;
	char *file = store_file(job->options->store);
	bool there = file_exists(file);
	free(file);
	enum prony_status status =
		there ? store_open(job->options->store, true, &store, err) : PRONY_OK;
	if (status == PRONY_OK)
		*is_new = !there || store_find_run(store, name, &found, &none) == PRONY_BAD_INPUT;
	store_close(store);
	return status;
}

enum prony_status baseline_load(struct job *job, struct error *err)
{
	const char *word = job->options->baseline;
	bool is_new = false;
	if (!word)
		return PRONY_OK;
	enum prony_status status = baseline_is_new(job, &is_new, err);
	if (is_new || status != PRONY_OK)
		return status;
	status = results_load_run(job->options->store, word, 0, &job->baseline, err);
	if (status != PRONY_OK) {
		error_prefix(err, "--baseline %s (--save-baseline NAME saves one)", word);
		return status;
	}
	job->baseline_loaded = true;
	return baseline_check(&job->baseline, word, &job->selection.plan, job->machine,
			      job->options->force, err);
}

enum prony_status baseline_is_older(const struct job *job, struct error *err)
{
	if (!job->baseline_loaded || job->baseline.meta.id != job->meta.id)
		return PRONY_OK;
	return error_set(err, PRONY_BAD_INPUT,
			 "the baseline '%s' is run %lld, the run that --resume continues; use an "
			 "older baseline",
			 job->options->baseline, (long long)job->meta.id);
}

void baseline_release(struct job *job)
{
	if (job->baseline_loaded)
		stored_run_release(&job->baseline);
	job->baseline_loaded = false;
}

static void print(const struct compare *compare)
{
	struct strbuf text;
	strbuf_init(&text, 0);
	strbuf_putc(&text, '\n');
	compare_render(compare, cli_colour(), cli_width(), &text);
	cli_page(strbuf_text(&text));
	strbuf_release(&text);
}

static void say_comparison(const struct job *job, const struct compare *compare)
{
	const char *name = job->options->baseline;
	size_t open = compare->verdicts[VERDICT_INCONCLUSIVE];
	if (compare->broken)
		cli_say("prony: %zu cell%s ok in the baseline '%s' but not in this run\n",
			compare->broken, compare->broken == 1 ? " is" : "s are", name);
	if (job->gate != COMPARE_EXIT_UNDECIDED || job->allowed & RUN_ALLOW_INCONCLUSIVE)
		return;
	if (open == 0)
		cli_say("prony: no cell has figures both here and in the baseline '%s'\n", name);
	else
		cli_say("prony: %zu cell%s may be slower than in the baseline '%s' "
			"(INCONCLUSIVE): measure longer (--repeat, --rigorous) on a quiet "
			"machine, or accept it with --allow inconclusive\n",
			open, open == 1 ? "" : "s", name);
}

enum prony_status baseline_compare(struct job *job, const struct stored_run *run, json_t *json,
				   struct error *err)
{
	struct compare_settings settings = {.force = job->options->force};
	struct compare compare;
	enum prony_status status =
		threshold_parse(job->options->threshold, &settings.threshold, err);
	if (status != PRONY_OK || !job->baseline_loaded)
		return status;
	compare_init(&compare, &(struct compare_side){&job->baseline, NULL},
		     &(struct compare_side){run, NULL}, &settings);
	if (json)
		json_object_set_new(json, "comparison", compare_to_json(&compare));
	else
		print(&compare);
	status = compare_allow(&compare, job->options->force, err);
	job->gate = (int)compare_exit(&compare);
	job->improved = compare.verdicts[VERDICT_FASTER] > 0;
	say_comparison(job, &compare);
	compare_release(&compare);
	return status;
}

/* Returns why the run does not get the name; NULL: it does. */
static const char *obstacle(const struct job *job, bool failed)
{
	if (job->gate == COMPARE_EXIT_SLOWER)
		return "the run is slower than the baseline";
	if (failed || job->gate == COMPARE_EXIT_BROKEN)
		return "not every requested cell is ok";
	if (job->gate == COMPARE_EXIT_UNDECIDED)
		return "the run may be slower than the baseline (INCONCLUSIVE)";
	return NULL;
}

enum prony_status baseline_save(struct job *job, bool failed, struct error *err)
{
	const char *name = job->options->save_baseline, *why = obstacle(job, failed);
	if (!name)
		return PRONY_OK;
	if (why) {
		cli_say("prony: not saved as '%s': %s\n", name, why);
		return PRONY_OK;
	}
	if (job->baseline_loaded && !strcmp(job->baseline.meta.name, name) && !job->improved) {
		cli_say("prony: '%s' stays run %lld, because no cell is faster: small slowdowns "
			"add up against it\n",
			name, (long long)job->baseline.meta.id);
		return PRONY_OK;
	}
	enum prony_status status = store_run_name(job->store, job->meta.id, name, true, err);
	if (status == PRONY_OK)
		cli_say("saved as '%s': run %lld%s\n", name, (long long)job->meta.id,
			job->options->baseline && !job->baseline_loaded
				? "; there was no such run, so nothing was compared"
				: "");
	return status;
}
