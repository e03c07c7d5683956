#include "run/gate_cache.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"

#define CPUINFO_BYTES_MAX ((size_t)16 << 20)

/*
 * Adds the lines of the first processor in /proc/cpuinfo that determine which code can run on it.
 */
static void add_cpu(struct digest *digest)
{
	static const char *const names[] = {"model name", "flags", "Features", "CPU implementer",
					    "CPU part"};
	char *text = NULL, *rest;
	size_t length;

	if (file_read("/proc/cpuinfo", CPUINFO_BYTES_MAX, &text, &length, NULL) != PRONY_OK)
		return;
	rest = text;
	for (char *line; (line = strsep(&rest, "\n")) && *line;)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (!strncmp(line, names[i], strlen(names[i])))
				digest_add_text(digest, line);
	free(text);
}

static void identify_machine(char hex[DIGEST_HEX_BYTES])
{
	struct utsname names = {0};
	struct digest digest;

	uname(&names);
	digest_begin(&digest);
	digest_add_text(&digest, names.machine);
	digest_add_text(&digest, gnu_get_libc_version());
	add_cpu(&digest);
	digest_end(&digest, hex);
}

void gate_cache_open(struct gate_cache *out, const char *self)
{
	*out = (struct gate_cache){0};
	if (digest_file(self, out->program, NULL) != PRONY_OK)
		return;
	identify_machine(out->machine);
	cache_open(GATE_CACHE, GATE_CACHE_LIMIT_BYTES, &out->cache);
}

void gate_cache_close(struct gate_cache *cache)
{
	cache_close(&cache->cache);
}

/*
 * Whether no library's computation depends on this variable; all other inherited variables count.
 */
static bool is_idle_variable(const char *row)
{
	static const char *const names[] = {
		"_=",	       "COLUMNS=",	"COLORTERM=",  "DBUS_",
		"DISPLAY=",    "EDITOR=",	"HIST",	       "HOSTNAME=",
		"JOURNAL_",    "LESS",		"LINES=",      "LS_COLORS=",
		"MAKE",	       "MFLAGS=",	"OLDPWD=",     "PAGER=",
		"PRONY_LOCK=", "PRONY_SHARED=", "PS1=",	       "PWD=",
		"SHLVL=",      "SSH_",		"TERM",	       "TMUX",
		"VISUAL=",     "WINDOW",	"XAUTHORITY=", "XDG_RUNTIME_DIR=",
		"XDG_SESSION_"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(row, names[i], strlen(names[i])))
			return true;
	return false;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_variables(const struct plan_cell *cell, struct digest *digest)
{
	size_t count = 0, kept = 0;

	for (const char *const *row = cell->worker_environment; row && *row; row++)
		digest_add_text(digest, *row);
	digest_add_text(digest, NULL);
	while (environ[count])
		count++;
	char **rows = memory_alloc((count + 1) * sizeof(*rows));
	for (size_t i = 0; i < count; i++)
		if (!is_idle_variable(environ[i]))
			rows[kept++] = environ[i];
	qsort(rows, kept, sizeof(*rows), by_text);
	for (size_t i = 0; i < kept; i++)
		digest_add_text(digest, rows[i]);
	free(rows);
}

/* Adds the words of the worker's command and, for a Python file, all files beside it. */
static void add_worker(const struct plan_cell *cell, struct digest *digest)
{
	for (const char *const *word = cell->worker_argv; word && *word; word++) {
		const char *ending = strrchr(*word, '.');

		digest_add_text(digest, *word);
		if ((*word)[0] != '/' || !ending || strcmp(ending, ".py") != 0)
			continue;
		char *folder = memory_strdup(*word);
		*strrchr(folder, '/') = '\0';
		digest_add_tree(digest, folder);
		free(folder);
	}
}

/* Adds the file of MPI's launcher, which decides on the library that sums. */
static void add_launcher(const struct plan_cell *cell, struct digest *digest)
{
	char *found = process_find(cell->launcher), *file = found ? realpath(found, NULL) : NULL;

	digest_add_text(digest, file);
	free(file);
	free(found);
}

/* Adds the description and files of the framework; false if prony did not install these files. */
static bool identify_framework(struct gate_cache *cache, const struct plan_cell *cell)
{
	struct digest digest;

	if (!strcmp(cache->framework, cell->cell.framework))
		return cache->framework_known;
	digest_begin(&digest);
	cache->framework_known = plan_cell_identity(cell, &digest);
	digest_end(&digest, cache->framework_files);
	snprintf(cache->framework, sizeof(cache->framework), "%s", cell->cell.framework);
	return cache->framework_known;
}

bool gate_cache_key(struct gate_cache *cache, const struct plan_cell *cell,
		    const struct workload *work, char key[DIGEST_HEX_BYTES])
{
	const struct recipe *recipe = &cell->recipe;
	struct digest digest;

	/* For other devices neither the model nor the driver is known here. */
	if (!cache->cache.folder || (strcmp(cell->target.device, "cpu") != 0 && !cell->gpu) ||
	    !identify_framework(cache, cell))
		return false;
	digest_begin(&digest);
	digest_add_text(&digest, work->gate_key);
	digest_add(&digest, &recipe->precision, sizeof(recipe->precision));
	digest_add_text(&digest, cell->gpu);
	digest_add_text(&digest, cell->cell.framework);
	digest_add_text(&digest, cell->target.backend);
	digest_add_text(&digest, cell->target.options);
	digest_add(&digest, &recipe->threads, sizeof(recipe->threads));
	digest_add(&digest, &cell->target.world_size, sizeof(cell->target.world_size));
	add_launcher(cell, &digest);
	digest_add_text(&digest, cache->program);
	digest_add_text(&digest, cache->machine);
	digest_add_text(&digest, cache->framework_files);
	add_worker(cell, &digest);
	add_variables(cell, &digest);
	digest_end(&digest, key);
	return true;
}

bool gate_cache_read(const struct gate_cache *cache, const char *key, struct kept_gate *out)
{
	struct cache_entry entry = {0};
	json_t *kept = NULL;
	struct error why = ERROR_INIT;
	bool whole =
		cache_read(&cache->cache, key, &entry, &why) == PRONY_OK &&
		json_parse(entry.payload, entry.length, "kept verdict", &kept, &why) == PRONY_OK;
	json_t *evidence = json_object_get(kept, "evidence");
	const char *date = json_string_or(kept, "date", NULL);

	whole = whole && date && json_is_object(evidence);
	if (whole) {
		json_object_set_new(evidence, "cached", json_string(date));
		*out = (struct kept_gate){.evidence = json_incref(evidence),
					  .log = memory_strdup(json_string_or(kept, "log", ""))};
	}
	json_decref(kept);
	free(entry.file);
	return whole;
}

void gate_cache_write(const struct gate_cache *cache, const char *key,
		      const struct gate_outcome *outcome)
{
	char date[32];
	time_t now = time(NULL);
	struct tm utc;
	struct error why = ERROR_INIT;

	if (outcome->status != CELL_OK || !gmtime_r(&now, &utc))
		return;
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
	json_t *kept =
		json_pack("{s:s, s:o, s:s}", "date", date, "evidence",
			  gate_outcome_evidence(outcome), "log", outcome->log ? outcome->log : "");
	char *text = kept ? json_dumps(kept, JSON_COMPACT) : NULL;
	if (text) {
		size_t length = strlen(text);
		char *file = memory_alloc(CACHE_HEAD_BYTES + length);
		memcpy(file + CACHE_HEAD_BYTES, text, length);
		cache_write(&cache->cache, key, file, CACHE_HEAD_BYTES + length, &why);
		free(file);
	}
	free(text);
	json_decref(kept);
}

void kept_gate_release(struct kept_gate *kept)
{
	json_decref(kept->evidence);
	free(kept->log);
	*kept = (struct kept_gate){0};
}

bool gate_cache_agrees(const json_t *evidence, const json_t *details)
{
	static const char *const keys[] = {"name", "version", "libraries", "instruction_set"};
	const json_t *framework = json_object_get(evidence, "framework");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const json_t *then = json_object_get(framework, keys[i]);
		const json_t *now = json_object_get(details, keys[i]);

		if ((then || now) && !json_equal(then, now))
			return false;
	}
	return true;
}
