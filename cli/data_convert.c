/* `prony data convert`: converts data sets to the formats that frameworks read themselves. */
#include "cli/data.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "datasets/convert.h"

/* Shows progress: one live line on a terminal, otherwise a line per tenth. */
struct watch {
	const char *folder;
	bool live;
	int64_t tenth;
};

static void show_progress(void *context, int64_t done, int64_t total)
{
	struct watch *watch = context;

	if (watch->live) {
		char *line = memory_printf("%s: %" PRId64 " of %" PRId64 " samples", watch->folder,
					   done, total);

		cli_live_line(done < total ? line : "");
		free(line);
	} else if (done * 10 / total > watch->tenth) {
		watch->tenth = done * 10 / total;
		cli_say("%s: %" PRId64 " of %" PRId64 " samples\n", watch->folder, done, total);
	}
}

static void show_broken(void *context, const char *text)
{
	const struct watch *watch = context;

	if (watch->live)
		cli_live_line("");
	cli_say("prony: %s\n", text);
}

static void show_result(const struct convert_request *request, const struct convert_result *result)
{
	cli_out("%s: %" PRId64 " samples as %s", request->folder, result->written,
		request->format->name);
	if (result->was_whole)
		cli_out(", already there");
	else if (result->resumed_at > 0)
		cli_out(", continued at sample %" PRId64, result->resumed_at);
	cli_out("\n");
}

/* Returns the exit code. Skipped broken samples set *left_out instead. */
static int convert(struct convert_request *request, int *left_out)
{
	struct watch watch = {.folder = request->folder, .live = cli_is_live()};
	struct convert_result result = {0};
	struct error err = ERROR_INIT;

	request->context = &watch;
	request->progress = show_progress;
	request->broken = show_broken;
	enum prony_status status = data_convert(request, &result, &err);
	if (watch.live)
		cli_live_line("");
	if (status != PRONY_OK)
		return cli_fail(&err);
	show_result(request, &result);
	if (result.broken == 0)
		return 0;
	error_set(&err, PRONY_BAD_INPUT,
		  "%s: %" PRId64 " of %" PRId64 " samples are broken and were left out",
		  request->source, result.broken, result.broken + result.written);
	*left_out = cli_fail(&err);
	return 0;
}

/* The real path of the existing part of a path; "" if nothing of it exists. */
static void real_beginning(const char *path, char out[PATH_MAX])
{
	char *part = memory_strdup(path), *slash;

	while (!realpath(part, out)) {
		*out = '\0';
		if (!*part || strcmp(part, "/") == 0 || strcmp(part, ".") == 0)
			break;
		slash = strrchr(part, '/');
		if (slash)
			slash[slash == part] = '\0';
		else
			memcpy(part, ".", 2);
	}
	free(part);
}

/* Output inside a data set's own folder would become part of the data set. */
static enum prony_status check_apart(const char *source, const char *output, struct error *err)
{
	char from[PATH_MAX], to[PATH_MAX];

	real_beginning(source, from);
	real_beginning(output, to);
	size_t length = strlen(from);
	if (length == 0 || strncmp(to, from, length) != 0 || (to[length] && to[length] != '/'))
		return PRONY_OK;
	return error_set(err, PRONY_USAGE,
			 "-o %s is inside %s, the data to convert; choose a folder outside of it",
			 output, source);
}

/* Converts both parts of a data set, each into its own folder. */
static int convert_dataset(const struct dataset *dataset, const struct data_request *request,
			   struct convert_request *wanted)
{
	struct error err = ERROR_INIT;
	char *folder = NULL;
	int exit_code = 0;

	if (dataset_locate(dataset, request->options->data, &folder, &err) != PRONY_OK)
		return cli_fail(&err);
	if (!folder) {
		error_set(&err, PRONY_USAGE,
			  "%s is generated during a run, so there is nothing to convert",
			  dataset->name);
		return cli_fail(&err);
	}
	if (check_apart(folder, request->options->output, &err) != PRONY_OK)
		exit_code = cli_fail(&err);
	/* Skipped samples in one part do not stop the other. */
	int left_out = 0;
	for (int i = 0; i < 2 && exit_code == 0; i++) {
		const char *part = dataset_part(i == 0);
		char *output = path_join(request->options->output, part);
		char *source = memory_printf("%s, %s", dataset->name, part);

		wanted->folder = output;
		wanted->source = source;
		exit_code =
			samples_open(dataset, folder, i == 0, &wanted->samples, &err) == PRONY_OK
				? convert(wanted, &left_out)
				: cli_fail(&err);
		samples_close(wanted->samples);
		wanted->samples = NULL;
		free(source);
		free(output);
	}
	free(folder);
	return exit_code ? exit_code : left_out;
}

static int convert_path(const char *path, const struct data_request *request,
			struct convert_request *wanted)
{
	const struct data_format *format;
	struct error err = ERROR_INIT;
	enum prony_status status = data_format_recognise(path, &format, &err);

	if (status == PRONY_OK)
		status = check_apart(path, request->options->output, &err);
	if (status == PRONY_OK)
		status = samples_open_path(format, path, &wanted->samples, &err);
	if (status != PRONY_OK)
		return cli_fail(&err);
	wanted->folder = request->options->output;
	wanted->source = path;
	int left_out = 0, exit_code = convert(wanted, &left_out);
	samples_close(wanted->samples);
	return exit_code ? exit_code : left_out;
}

/* Finds the format of --to; the message lists all formats. */
static const struct data_format *find_written(const char *word, struct error *err)
{
	const struct data_format *format;
	struct strbuf words;

	strbuf_init(&words, ERROR_TEXT_BYTES / 2);
	for (size_t i = 0; (format = data_format_written(i)); i++) {
		if (word && strcmp(word, format->name) == 0)
			break;
		strbuf_printf(&words, "%s%s", i > 0 ? ", " : "", format->name);
	}
	if (!format && word)
		error_set(err, PRONY_USAGE,
			  "--to %s: prony cannot write this format; use one of %s", word,
			  strbuf_text(&words));
	else if (!format)
		error_set(err, PRONY_USAGE, "prony data convert needs --to FORMAT, one of %s",
			  strbuf_text(&words));
	strbuf_release(&words);
	return format;
}

int data_convert_action(const struct data_request *request)
{
	const struct data_options *options = request->options;
	struct error err = ERROR_INIT;
	struct convert_request wanted = {.format = find_written(options->to, &err),
					 .size = (int)options->size};

	if (!wanted.format)
		return cli_fail(&err);
	if (!options->output || request->count != 1) {
		error_set(&err, PRONY_USAGE,
			  "prony data convert needs one data set, file or folder, and -o DIR, for "
			  "example: prony data convert cifar10 --to %s -o DIR",
			  wanted.format->name);
		return cli_fail(&err);
	}
	const char *name = request->names[0];
	if (!dataset_find(name) && (strchr(name, '/') || file_exists(name)))
		return convert_path(name, request, &wanted);
	const struct dataset *dataset = data_find(name, &err);
	return dataset ? convert_dataset(dataset, request, &wanted) : cli_fail(&err);
}
