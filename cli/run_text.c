#include "cli/run_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/listing.h"
#include "report/history.h"
#include "report/summary.h"
#include "report/text.h"

enum { WHAT_COLUMNS = 40 };

const struct table_column run_columns[] = {
	{"RUN", "id", TABLE_RIGHT},
	{"NAME", "name", TABLE_LEFT},
	{"STARTED", "started", TABLE_LEFT},
	{"CELLS", "cells", TABLE_RIGHT},
	{"OK", "ok", TABLE_RIGHT},
	{"WHAT", "what", TABLE_LEFT},
	{"HOST", "place", TABLE_LEFT},
	{"TAGS", "tags", TABLE_LEFT},
	{.title = NULL},
};

void run_say(const struct run_extent *run)
{
	const struct run_meta *meta = &run->meta;
	char when[32];
	struct strbuf line;
	clock_format_utc(meta->started_wall_ns, when, sizeof when);
	strbuf_init(&line, 0);
	strbuf_printf(&line, "run %lld (%.8s)%s%s%s%s, %s, on %s%s: %lld cell%s, %lld process%s",
		      (long long)meta->id, meta->uid, *meta->name ? " " : "", meta->name,
		      *meta->suite ? ", " : "", meta->suite, when, run_place(meta),
		      meta->finished_wall_ns == RECORD_NONE ? ", unfinished" : "",
		      (long long)run->cells, run->cells == 1 ? "" : "s", (long long)run->processes,
		      run->processes == 1 ? "" : "es");
	char *clean = text_line(strbuf_text(&line));
	cli_say("%s\n", clean);
	free(clean);
	strbuf_release(&line);
}

/* Returns what was requested: the suite, or the beginning of the words after `prony run`. */
static json_t *what(const struct run_meta *meta)
{
	static const char words[] = "prony run ";
	const char *command = meta->command;
	if (*meta->suite)
		return text_json(meta->suite);
	if (!strncmp(command, words, sizeof words - 1))
		command += sizeof words - 1;
	char *line = text_line(command);
	size_t bytes = text_fit(line, WHAT_COLUMNS);
	char *cut = memory_printf("%.*s%s", (int)bytes, line, line[bytes] ? "..." : "");
	json_t *text = *cut ? json_string(cut) : json_null();
	free(cut);
	free(line);
	return text;
}

static json_t *run_row(const struct run_extent *run)
{
	const struct run_meta *meta = &run->meta;
	char when[32];
	json_t *row = json_object();
	clock_format_utc(meta->started_wall_ns, when, sizeof when);
	json_object_set_new(row, "id", json_integer(meta->id));
	json_object_set_new(row, "uid", text_json(meta->uid));
	json_object_set_new(row, "name", text_json_or_null(meta->name));
	json_object_set_new(row, "tags", words_to_json(meta->tags));
	json_object_set_new(row, "suite", text_json_or_null(meta->suite));
	json_object_set_new(row, "what", what(meta));
	json_object_set_new(row, "command", text_json_or_null(meta->command));
	json_object_set_new(row, "started", text_json(when));
	json_object_set_new(row, "started_wall_ns", json_integer(meta->started_wall_ns));
	json_object_set_new(row, "finished_wall_ns",
			    meta->finished_wall_ns == RECORD_NONE
				    ? json_null()
				    : json_integer(meta->finished_wall_ns));
	json_object_set_new(row, "effort", text_json(meta->effort));
	json_object_set_new(row, "host", text_json_or_null(meta->host));
	json_object_set_new(row, "version", text_json_or_null(meta->version));
	json_object_set_new(row, "cells", json_integer(run->cells));
	json_object_set_new(row, "ok", json_integer(run->ok));
	json_object_set_new(row, "processes", json_integer(run->processes));
	json_object_set_new(row, "node", text_json_or_null(meta->node));
	json_object_set_new(row, "place", text_json_or_null(run_place(meta)));
	return row;
}

json_t *run_rows(const char *store_file, const char *tag, struct error *err)
{
	struct store *store = NULL;
	struct run_extent *runs = NULL;
	size_t count = 0;
	struct arena arena;
	json_t *rows = NULL;
	arena_init(&arena, 0);
	enum prony_status status = store_open(store_file, true, &store, err);
	if (status == PRONY_OK)
		status = store_list_runs(store, tag, &arena, &runs, &count, err);
	if (status == PRONY_OK) {
		rows = json_array();
		for (size_t i = 0; i < count; i++)
			json_array_append_new(rows, run_row(&runs[i]));
	}
	store_close(store);
	arena_release(&arena);
	return rows;
}
