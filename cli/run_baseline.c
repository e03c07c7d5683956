#include "cli/run_baseline.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/compare_options.h"
#include "cli/results.h"
#include "study/baseline.h"

enum prony_status baseline_check_options(const struct run_options *options, struct error *err)
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
		return error_set(
			err, PRONY_USAGE,
			"--name and --save-baseline both give the run its name: leave one out");
	if (!options->baseline && (options->threshold || options->force))
		return error_set(err, PRONY_USAGE, "--%s is for --baseline",
				 options->threshold ? "threshold" : "force");
	if (options->gate_only && (options->baseline || options->save_baseline))
		return error_set(err, PRONY_USAGE,
				 "--gate-only times nothing: there is nothing to compare with a "
				 "baseline, or to save as one");
	return PRONY_OK;
}

enum prony_status baseline_load(struct job *job, struct error *err)
{
	const char *word = job->options->baseline;
	if (!word)
		return PRONY_OK;
	enum prony_status status =
		results_load_run(job->options->store, word, RESULTS_FIGURES, &job->baseline, err);
	if (status != PRONY_OK) {
		error_prefix(err, "--baseline %s (--save-baseline NAME makes one)", word);
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
			 "the baseline '%s' is run %lld, which --resume goes on with: a run is not "
			 "held against itself; name an older one",
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
	job->slower = compare.verdicts[VERDICT_SLOWER] > 0;
	job->broken = compare.broken > 0;
	if (job->broken)
		cli_say("prony: %zu cell%s ok in the baseline '%s' and not in this run\n",
			compare.broken, compare.broken == 1 ? " is" : "s are",
			job->options->baseline);
	compare_release(&compare);
	return status;
}

enum prony_status baseline_save(struct job *job, bool failed, struct error *err)
{
	const char *name = job->options->save_baseline;
	if (!name)
		return PRONY_OK;
	if (failed || job->slower) {
		cli_say("prony: not saved as '%s': %s\n", name,
			job->slower ? "it is slower than the baseline"
				    : "not every cell that was asked for is ok");
		return PRONY_OK;
	}
	enum prony_status status = store_run_name(job->store, job->meta.id, name, true, err);
	if (status == PRONY_OK)
		cli_say("saved as '%s': run %lld\n", name, (long long)job->meta.id);
	return status;
}
