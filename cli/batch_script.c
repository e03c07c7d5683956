#include "cli/batch_script.h"

#include <math.h>
#include <string.h>

/* A forecast knows nothing of the frameworks on the node, nor of a file system that is busy. */
#define TIME_FACTOR 2
#define TIME_LEAST_MINUTES 10
#define MINUTES_OF_DAY 1440

void shell_word(const char *word, struct strbuf *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./:=,+@%-";
	if (*word && !word[strspn(word, plain)]) {
		strbuf_puts(out, word);
		return;
	}
	strbuf_putc(out, '\'');
	for (; *word; word++)
		strbuf_puts(out, *word == '\'' ? "'\\''" : (char[]){*word, '\0'});
	strbuf_putc(out, '\'');
}

/* Whether the user gave the option, such as "--time", with or without a value. */
static bool is_given(const struct option_list *options, const char *key)
{
	size_t length = strlen(key);
	for (size_t i = 0; i < options->count; i++)
		if (!strncmp(options->values[i], key, length) &&
		    strchr("= ", options->values[i][length]))
			return true;
	return false;
}

static void add_option(const struct batch_script *script, const char *key, const char *value,
		       struct strbuf *out)
{
	if (!is_given(script->options, key))
		strbuf_printf(out, "#SBATCH %s%s%s\n", key, *value ? "=" : "", value);
}

static void add_options(const struct batch_script *script, struct strbuf *out)
{
	double minutes = ceil(fmax(script->seconds * TIME_FACTOR / 60, TIME_LEAST_MINUTES));
	struct strbuf value;
	strbuf_init(&value, 0);
	strbuf_printf(&value, "prony-%s", script->name);
	add_option(script, "--job-name", strbuf_text(&value), out);
	strbuf_printf(&value, "-%s.log", script->parts ? "%A_%a" : "%j");
	add_option(script, "--output", strbuf_text(&value), out);
	strbuf_clear(&value);
	if (script->parts) {
		strbuf_printf(&value, "0-%d", script->parts - 1);
		add_option(script, "--array", strbuf_text(&value), out);
		strbuf_clear(&value);
	}
	long whole = (long)fmin(minutes, 365.0 * MINUTES_OF_DAY);
	strbuf_printf(&value, "%ld-%02ld:%02ld:00", whole / MINUTES_OF_DAY,
		      whole % MINUTES_OF_DAY / 60, whole % 60);
	add_option(script, "--time", strbuf_text(&value), out);
	add_option(script, "--nodes", "1", out);
	add_option(script, "--exclusive", "", out);
	add_option(script, "--requeue", "", out);
	add_option(script, "--open-mode", "append", out);
	/* Before the limit prony stops and its results are saved. */
	add_option(script, "--signal", "B:TERM@60", out);
	for (size_t i = 0; i < script->options->count; i++)
		strbuf_printf(out, "#SBATCH %s\n", script->options->values[i]);
	strbuf_release(&value);
}

void batch_script_text(const struct batch_script *script, struct strbuf *out)
{
	strbuf_puts(out, "#!/bin/bash\n");
	add_options(script, out);
	strbuf_puts(out, "\nprony=");
	shell_word(script->prony, out);
	strbuf_puts(out, "\nfolder=");
	shell_word(script->folder, out);
	if (script->parts)
		strbuf_printf(
			out,
			"   # all nodes see it\n"
			"name=$((SLURM_ARRAY_TASK_ID + 1))           # of the part\n"
			"run=${PRONY_RUN_ID:-$SLURM_ARRAY_JOB_ID}    # one run of all parts\n");
	else
		strbuf_puts(out, "   # all nodes see it\n"
				 "name=$SLURMD_NODENAME\n"
				 "run=$SLURM_JOB_ID\n");
	strbuf_puts(out, "local=${TMPDIR:-/tmp}/prony-$UID\n"
			 "mkdir -m 700 \"$local\" 2>/dev/null\n"
			 "if [ ! -O \"$local\" ] || [ -L \"$local\" ]; then\n"
			 "\techo \"$local is not yours\" >&2; exit 1\n"
			 "fi\n"
			 "local=$local/$run-$name.db\n"
			 "shared=$folder/parts/$name.db\n"
			 "mkdir -p \"$folder/parts\"\n"
			 "# A task that was requeued goes on with what it has measured.\n"
			 "[ -e \"$local\" ] || cp \"$shared\" \"$local\" 2>/dev/null\n\n"
			 "\"$prony\" run ");
	strbuf_puts(out, script->words);
	if (script->parts)
		strbuf_printf(out, " \\\n\t--part \"$name/%d\" --run-id \"$run\"", script->parts);
	strbuf_puts(out,
		    " \\\n\t--store \"$local\" --resume &\n"
		    "trap 'kill -TERM $!' TERM\n"
		    "wait $!                                     # a signal ends it, too\n"
		    "wait $!; code=$?\n\n"
		    "# The import writes one file, also if prony was killed; it appears whole.\n"
		    "\"$prony\" import \"$local\" --store \"$shared.$SLURM_JOB_ID\" &&\n"
		    "\tmv -f \"$shared.$SLURM_JOB_ID\" \"$shared\" && rm -f \"$local\"\n"
		    "exit $code\n");
}
