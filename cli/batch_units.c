#include "cli/batch_units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/batch_queue.h"
#include "store/store.h"
#include "study/parts.h"

#define JOBS_BYTES_MAX (16 << 20)

static char *jobs_path(const struct units *units)
{
	return path_join(units->folder, "jobs");
}

static struct unit *find(const struct units *units, const char *name)
{
	for (size_t i = 0; i < units->count; i++)
		if (!strcmp(units->at[i].name, name))
			return &units->at[i];
	return NULL;
}

static void add_unit(struct units *units, const char *name)
{
	if (find(units, name))
		return;
	units->at = arena_grow(&units->arena, units->at, units->count, &units->capacity,
			       sizeof *units->at);
	units->at[units->count++] = (struct unit){.name = arena_strdup(&units->arena, name)};
}

static void add_job(struct units *units, int64_t id, const char *node)
{
	units->jobs = arena_grow(&units->arena, units->jobs, units->job_count, &units->job_capacity,
				 sizeof *units->jobs);
	units->jobs[units->job_count++] = (struct unit_job){
		.id = id, .node = *node ? arena_strdup(&units->arena, node) : NULL};
	if (*node)
		add_unit(units, node);
}

/* Its store is a file of that name. */
static bool is_node(const char *name)
{
	return *name != '.' && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
						  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")];
}

enum prony_status units_init(struct units *units, const char *folder, const struct spec *spec,
			     int parts, struct error *err)
{
	char *path, *text = NULL, *rest, *line, number[24], node[256];
	int number_of_line = 0;
	size_t length;
	enum prony_status status = PRONY_OK;

	*units = (struct units){.folder = folder, .spec = spec, .parts = parts};
	arena_init(&units->arena, 0);
	for (int part = 1; part <= parts; part++) {
		snprintf(number, sizeof number, "%d", part);
		add_unit(units, number);
	}
	path = jobs_path(units);
	if (file_exists(path))
		status = file_read(path, JOBS_BYTES_MAX, &text, &length, err);
	for (rest = text; rest && (line = strsep(&rest, "\n"));) {
		int64_t id = 0;
		*node = '\0';
		number_of_line++;
		if (!*line)
			continue;
		if (sscanf(line, "%" SCNd64 " %255s", &id, node) < 1 || id <= 0 ||
		    (*node && !is_node(node))) {
			status = error_set(err, PRONY_BAD_INPUT,
					   "%s:%d: is no job's id, alone or with its node; correct "
					   "the line, or take another --folder",
					   path, number_of_line);
			break;
		}
		add_job(units, id, node);
	}
	free(text);
	free(path);
	return status;
}

void units_release(struct units *units)
{
	if (units->folder)
		arena_release(&units->arena);
}

enum prony_status units_find_nodes(struct units *units, const struct option_list *options,
				   struct error *err)
{
	char partition[200] = "", *output = NULL, *rest, *line;

	for (size_t i = 0; i < options->count; i++) {
		const char *given = options->values[i];
		if (!strncmp(given, "--partition=", 12))
			snprintf(partition, sizeof partition, "%s", given);
		else if (!strncmp(given, "-p", 2))
			snprintf(partition, sizeof partition, "--partition=%s",
				 given + 2 + strspn(given + 2, " "));
	}
	const char *const argv[] = {
		"sinfo", "-h", "-N", "-t", "idle", "-o", "%N", *partition ? partition : NULL, NULL};
	enum prony_status status = queue_command(argv, &output, err);
	if (status != PRONY_OK)
		return status;
	for (rest = output; (line = strsep(&rest, "\n"));)
		if (*line)
			add_unit(units, line);
	free(output);
	if (units->count == 0)
		return error_set(err, PRONY_MISSING, "sinfo: no node is idle");
	return PRONY_OK;
}

int64_t units_run_id(const struct units *units)
{
	return units->job_count > 0 ? units->jobs[0].id : 0;
}

void units_uid(const struct units *units, char uid[33])
{
	char id[24];

	snprintf(id, sizeof id, "%" PRId64, units_run_id(units));
	parts_uid(units->spec, units->parts, id, uid);
}

char *units_store(const struct units *units, const struct unit *unit)
{
	return memory_printf("%s/parts/%s.db", units->folder, unit->name);
}

/* Whether the store is that of a part of this run, and the part is finished. */
static enum prony_status judge_part(const struct units *units, const char *path, const char *name,
				    const struct run_meta *meta, bool *finished, struct error *err)
{
	char uid[33];

	units_uid(units, uid);
	if (strcmp(uid, meta->uid) != 0)
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: is of another run; use the same suite, options and --nodes as "
			"before, or another --folder",
			path);
	*finished = false;
	for (size_t i = 0; i < meta->part_count; i++)
		*finished |= meta->parts[i].part == strtol(name, NULL, 10) &&
			     meta->parts[i].finished_wall_ns != RECORD_NONE;
	return PRONY_OK;
}

static enum prony_status look_at_store(const struct units *units, struct unit *unit,
				       struct error *err)
{
	struct store *store = NULL;
	struct run_extent *runs = NULL;
	struct arena arena;
	size_t count = 0;
	bool finished = false;
	char *path = units_store(units, unit);
	enum prony_status status = PRONY_OK;

	arena_init(&arena, 0);
	if (file_exists(path)) {
		status = store_open(path, true, &store, err);
		if (status == PRONY_OK)
			status = store_list_runs(store, NULL, &arena, &runs, &count, err);
		if (status == PRONY_OK && count > 0 && units->parts)
			status = judge_part(units, path, unit->name, &runs[0].meta, &finished, err);
		else if (status == PRONY_OK && count > 0)
			finished = runs[0].meta.finished_wall_ns != RECORD_NONE;
		if (finished)
			unit->state = UNIT_HERE;
		else if (unit->state == UNIT_MISSING)
			unit->state = UNIT_PARTLY;
	}
	store_close(store);
	arena_release(&arena);
	free(path);
	return status;
}

static void note_task(void *context, int64_t job, int64_t index)
{
	struct units *units = context;

	for (size_t i = 0; i < units->job_count; i++) {
		const struct unit_job *own = &units->jobs[i];
		struct unit *unit = NULL;
		if (own->id == job && own->node)
			unit = find(units, own->node);
		else if (own->id == job && index >= 0 && index < units->parts)
			unit = &units->at[index];
		if (unit && unit->state != UNIT_HERE)
			unit->state = UNIT_QUEUED;
	}
}

enum prony_status units_look(struct units *units, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < units->count; i++)
		if (units->at[i].state != UNIT_HERE)
			units->at[i].state = UNIT_MISSING;
	/* First the queue: a task that ends meanwhile has its store. */
	if (units->job_count > 0)
		status = queue_tasks(note_task, units, err);
	for (size_t i = 0; i < units->count && status == PRONY_OK; i++)
		if (units->at[i].state != UNIT_HERE)
			status = look_at_store(units, &units->at[i], err);
	return status;
}

size_t units_in(const struct units *units, enum unit_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < units->count; i++)
		count += units->at[i].state == state;
	return count;
}

enum prony_status units_submitted(struct units *units, int64_t job, struct unit *node,
				  struct error *err)
{
	struct strbuf text;
	char *path = jobs_path(units);

	add_job(units, job, node ? node->name : "");
	strbuf_init(&text, 0);
	for (size_t i = 0; i < units->job_count; i++)
		strbuf_printf(&text, "%" PRId64 "%s%s\n", units->jobs[i].id,
			      units->jobs[i].node ? " " : "",
			      units->jobs[i].node ? units->jobs[i].node : "");
	enum prony_status status = file_write_atomic(path, strbuf_text(&text), text.length, err);
	for (size_t i = 0; i < units->count; i++) {
		struct unit *unit = &units->at[i];
		if (node ? unit != node : unit->state == UNIT_HERE || unit->state == UNIT_QUEUED)
			continue;
		unit->state = UNIT_QUEUED;
		unit->submitted = true;
	}
	strbuf_release(&text);
	free(path);
	return status;
}
