/* Plans kept in XDG_CACHE_HOME/prony/cuda-plans/DEVICE-sm_NN-cudnn-VERSION.json: {"plans": {KEY:
 * {"plan": TEXT, "ms": ..., "error": ...}}}. The same file in cache/cuda-plans of a shared folder
 * (path_data_homes) is read too. Processes may write the file at the same time: each
 * one adds its plans to the file as it is then, and replaces it at once. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cuda/conv_plan.h"
#include "base/files.h"
#include "base/memory.h"

#define FOLDER "cuda-plans"
/* A plan has 2 to 100 kB. */
#define FILE_MAX_BYTES ((size_t)256 << 20)

struct plan_cache {
	char *folder, *file;
	json_t *plans; /* by key */
	json_t *added; /* the new ones */
};

/* The object "plans" of the file, or an empty one. */
static json_t *read_plans(const char *file)
{
	json_t *document = NULL, *plans = NULL;
	struct error ignored = ERROR_INIT;

	if (!file_exists(file) ||
	    json_read_file(file, FILE_MAX_BYTES, &document, &ignored) != PRONY_OK ||
	    json_get_object(document, "plans", &plans, &ignored) != PRONY_OK)
		plans = json_object();
	else
		json_incref(plans);
	json_decref(document);
	return plans;
}

/* Adds the plans of shared folders that the user does not have. */
static void add_shared(json_t *plans, const char *name)
{
	char *homes[PATH_DATA_HOMES_MAX];
	size_t count = path_data_homes(homes);

	for (size_t i = 1; i < count; i++) { /* the first is the user's own */
		char *file = memory_printf("%s/cache/" FOLDER "/%s", homes[i], name);
		json_t *shared = read_plans(file);

		(void)json_object_update_missing(plans, shared);
		json_decref(shared);
		free(file);
	}
	for (size_t i = 0; i < count; i++)
		free(homes[i]);
}

struct plan_cache *plan_cache_open(const struct cudnn *cudnn, const char *device, int capability)
{
	struct plan_cache *cache = memory_alloc(sizeof(*cache));
	char *home = path_cache_home(), *name, version[32];

	cudnn_version_text(cudnn, version, sizeof(version));
	name = memory_printf("%s-sm_%d-cudnn-%s.json", device, capability, version);
	for (char *c = name; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			*c = '-';
	}
	cache->folder = path_join(home, FOLDER);
	cache->file = path_join(cache->folder, name);
	cache->plans = read_plans(cache->file);
	add_shared(cache->plans, name);
	cache->added = json_object();
	free(name);
	free(home);
	return cache;
}

const char *plan_cache_find(const struct plan_cache *cache, const char *key, double *ms,
			    double *error)
{
	const json_t *entry = json_object_get(cache->plans, key);

	*ms = json_real_or(entry, "ms", 0);
	*error = json_real_or(entry, "error", 0);
	return json_string_or(entry, "plan", NULL);
}

void plan_cache_add(struct plan_cache *cache, const char *key, const char *plan, double ms,
		    double error)
{
	json_t *entry = json_pack("{s:s, s:o, s:o}", "plan", plan, "ms", json_number(ms), "error",
				  json_number(error));

	(void)json_object_set(cache->plans, key, entry);
	(void)json_object_set_new(cache->added, key, entry);
}

void plan_cache_write(struct plan_cache *cache)
{
	json_t *plans, *document;
	struct error ignored = ERROR_INIT;
	char *text;

	if (json_object_size(cache->added) == 0)
		return;
	plans = read_plans(cache->file);
	document = json_object();
	(void)json_object_update(plans, cache->added);
	(void)json_object_set_new(document, "plans", plans);
	text = json_dumps(document, JSON_INDENT(1) | JSON_SORT_KEYS);
	if (directory_make(cache->folder, &ignored) == PRONY_OK)
		(void)file_write_atomic(cache->file, text, strlen(text), &ignored);
	free(text);
	json_decref(document);
	(void)json_object_clear(cache->added);
}

void plan_cache_close(struct plan_cache *cache)
{
	if (!cache)
		return;
	plan_cache_write(cache);
	json_decref(cache->plans);
	json_decref(cache->added);
	free(cache->folder);
	free(cache->file);
	free(cache);
}
