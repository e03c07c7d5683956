/* Folders of environments: their names and their manifests. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "frameworks/folders_internal.h"

bool framework_environment_valid(const char *environment)
{
	if (environment[0] == '.' || strlen(environment) > 60)
		return false;
	for (const char *c = environment; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return false;
	return true;
}

enum prony_status framework_check_environment(const struct framework *framework,
					      const char *environment, struct error *err)
{
	return !environment || framework_environment_valid(environment)
		       ? PRONY_OK
		       : error_set(err, PRONY_USAGE,
				   "%s@%s: invalid environment name; use letters, digits, '.', '_' "
				   "and '-', not beginning with '.'",
				   framework->name, environment);
}

const char *words_joined(const struct word_list *list, struct arena *arena)
{
	const char *text = "";

	for (size_t i = 0; i < list->count; i++)
		text = arena_printf(arena, "%s%s%s", text, i ? "," : "", list->words[i]);
	return text;
}

/* Python refuses a virtual environment whose path contains a colon. */
const char *framework_environment_name(const struct framework *framework, const char *environment,
				       struct arena *arena)
{
	bool named = environment && *environment;
	bool own = *framework->backend && !framework->shared_environment;

	return arena_printf(arena, "%s%s%s%s%s", framework->name, named ? "@" : "",
			    named ? environment : "", own ? "=" : "",
			    own ? framework->backend : "");
}

const char *framework_folder(const struct framework *framework, const char *environment,
			     struct arena *arena)
{
	const char *const *folders;

	framework_folders(framework, environment, arena, &folders);
	return folders[0];
}

size_t framework_folders(const struct framework *framework, const char *environment,
			 struct arena *arena, const char *const **folders)
{
	const char *name = framework_environment_name(framework, environment, arena);
	char *homes[PATH_DATA_HOMES_MAX];
	size_t count = path_data_homes(homes);
	const char **paths = arena_array(arena, count, sizeof(*paths));

	for (size_t i = 0; i < count; i++) {
		paths[i] = arena_printf(arena, "%s/frameworks/%s", homes[i], name);
		free(homes[i]);
	}
	*folders = paths;
	return count;
}

/* Whether the name is among them. */
static bool is_listed(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

size_t framework_environments(const struct framework *framework, struct arena *arena,
			      const char *const **names)
{
	const char *const *patterns;
	size_t places = framework_folders(framework, "*", arena, &patterns);
	bool own = *framework->backend && !framework->shared_environment;
	size_t count = 0, after = own ? strlen(framework->backend) + 1 : 0;
	const char **found = NULL;

	for (size_t i = 0; i < places; i++) {
		glob_t matches;
		size_t more = memory_glob(patterns[i], GLOB_ONLYDIR, &matches);
		const char **both = arena_array(arena, count + more + 1, sizeof(*both));

		for (size_t k = 0; k < count; k++)
			both[k] = found[k];
		found = both;
		for (size_t k = 0; k < more; k++) {
			const char *name = strrchr(matches.gl_pathv[k], '@') + 1;

			name = arena_strndup(arena, name, strlen(name) - after);
			if (!is_listed(found, count, name))
				found[count++] = name;
		}
		globfree(&matches);
	}
	*names = found;
	return count;
}

const char *framework_variable(const char *spelling, const char *suffix, struct arena *arena)
{
	char *variable = arena_printf(arena, "PRONY_%s_%s", spelling, suffix);

	for (char *c = variable; *c; c++)
		*c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
	return variable;
}

/* Reads {path: bytes} of a manifest; skips invalid entries. */
static void read_files(json_t *all, struct arena *arena, struct manifest *out)
{
	out->files = arena_array(arena, json_object_size(all), sizeof(*out->files));
	for (void *at = json_object_iter(all); at; at = json_object_iter_next(all, at))
		if (json_is_integer(json_object_iter_value(at)))
			out->files[out->file_count++] = (struct installed_file){
				.path = arena_strdup(arena, json_object_iter_key(at)),
				.bytes = json_integer_value(json_object_iter_value(at))};
}

static json_t *written_files(const struct manifest *manifest)
{
	json_t *files = json_object();

	for (size_t i = 0; i < manifest->file_count && files; i++)
		if (json_object_set_new(files, manifest->files[i].path,
					json_integer(manifest->files[i].bytes)) != 0) {
			json_decref(files);
			files = NULL;
		}
	return files;
}

bool manifest_read(const char *folder, struct arena *arena, struct manifest *out)
{
	const char *path = arena_printf(arena, "%s/%s", folder, MANIFEST_NAME);
	json_t *document = NULL;

	*out = (struct manifest){.lock = "", .lock_sha256 = "", .version = "", .entry = ""};
	if (json_read_file(path, MANIFEST_BYTES_MAX, &document, NULL) != PRONY_OK)
		return false;
	out->lock = arena_strdup(arena, json_string_or(document, "lock", ""));
	out->lock_sha256 = arena_strdup(arena, json_string_or(document, "lock_sha256", ""));
	out->version = arena_strdup(arena, json_string_or(document, "version", ""));
	out->entry = arena_strdup(arena, json_string_or(document, "entry", ""));
	read_files(json_object_get(document, "files"), arena, out);
	json_decref(document);
	return out->entry[0] != '\0';
}

enum prony_status manifest_write(const char *folder, const char *framework,
				 const struct manifest *manifest, struct error *err)
{
	char *path = path_join(folder, MANIFEST_NAME);
	json_t *document = json_pack("{ss ss ss ss ss so}", "framework", framework, "version",
				     manifest->version, "lock", manifest->lock, "lock_sha256",
				     manifest->lock_sha256, "entry", manifest->entry, "files",
				     written_files(manifest));
	char *text = document ? json_dumps(document, JSON_INDENT(2)) : NULL;
	enum prony_status status =
		text ? file_write_atomic(path, text, strlen(text), err)
		     : error_set(err, PRONY_BAD_INPUT,
				 "%s: the text of the lock, or the name of a file, is not UTF-8",
				 path);

	free(text);
	json_decref(document);
	free(path);
	return status;
}
