#include "frameworks/registry.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/strbuf.h"
#include "base/words.h"
#include "cell/cell.h"
#include "frameworks/descriptor.h"

#define EVERY_FRAMEWORK "all" /* used in lists, so no framework may have this name */
#define FILES_MAX 256
#define SUFFIX ".yaml"
#define NEAREST_MAX 512

/* As root, ignore a file of another user, because it decides what root would run. */
static bool is_foreign(const char *path)
{
	struct stat info;

	return geteuid() == 0 && stat(path, &info) == 0 && info.st_uid != 0;
}

static void note(struct registry *registry, const char *text)
{
	const char **notes =
		arena_array(&registry->arena, registry->note_count + 1, sizeof(*notes));

	if (registry->note_count)
		memcpy(notes, registry->notes, registry->note_count * sizeof(*notes));
	notes[registry->note_count++] = text;
	registry->notes = notes;
}

static void add_rows(struct registry *registry, const struct framework *rows, size_t count)
{
	struct framework *all =
		arena_array(&registry->arena, registry->count + count, sizeof(*all));

	if (registry->count)
		memcpy(all, registry->rows, registry->count * sizeof(*all));
	memcpy(all + registry->count, rows, count * sizeof(*all));
	registry->rows = all;
	registry->count += count;
}

static enum prony_status add_file(struct registry *registry, const char *path, bool of_user,
				  struct error *err)
{
	struct framework rows[DESCRIPTOR_BACKENDS_MAX];
	size_t count = 0;
	enum prony_status status =
		descriptor_read(path, of_user, &registry->arena, rows, &count, err);
	if (status == PRONY_OK && strcmp(rows[0].name, EVERY_FRAMEWORK) == 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: \"" EVERY_FRAMEWORK
				 "\" means every framework; choose another name",
				 path);
	const struct framework *existing =
		status == PRONY_OK ? framework_find(registry, rows[0].name, NULL) : NULL;
	if (existing)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: the name %s is already used by %s; choose another one", path,
				 rows[0].name, existing->file);
	if (status == PRONY_OK)
		add_rows(registry, rows, count);
	return status;
}

/* Adds a row for a framework with a broken descriptor, if its file name is a valid name. */
static void add_broken(struct registry *registry, const char *path, const char *why)
{
	const char *file = strrchr(path, '/') + 1;
	struct framework row = {.backend = "",
				.summary = "its descriptor is invalid",
				.file = path,
				.of_user = true,
				.broken = why,
				.kind = FRAMEWORK_COMMAND,
				.distribution = ""};
	struct cell cell = {0};

	row.name = arena_strndup(&registry->arena, file, strlen(file) - strlen(SUFFIX));
	if (cell_parse_framework(row.name, &cell, NULL) == PRONY_OK &&
	    strcmp(cell.name, row.name) == 0 && strcmp(row.name, EVERY_FRAMEWORK) != 0 &&
	    !framework_find(registry, row.name, NULL))
		add_rows(registry, &row, 1);
}

/* A broken user file must not affect the others. */
static enum prony_status add_own_file(struct registry *registry, const char *path,
				      struct error *err)
{
	struct error why = ERROR_INIT;

	if (is_foreign(path)) {
		note(registry,
		     arena_printf(&registry->arena,
				  "%s is ignored, because prony runs as root and the file belongs "
				  "to another user; change its owner to root, or run as its owner",
				  path));
		return PRONY_OK;
	}
	enum prony_status status = add_file(registry, path, true, &why);
	if (status == PRONY_NOMEM)
		return error_set(err, status, "%s", why.text);
	if (status != PRONY_OK) {
		note(registry,
		     arena_printf(&registry->arena, "%s; this framework is ignored", why.text));
		add_broken(registry, path, arena_strdup(&registry->arena, why.text));
	}
	return PRONY_OK;
}

static enum prony_status add_tree_file(struct registry *registry, const char *path,
				       struct error *err)
{
	return add_file(registry, path, false, err);
}

static int is_descriptor(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), end = strlen(SUFFIX);

	return entry->d_name[0] != '.' && length > end &&
	       strcmp(entry->d_name + length - end, SUFFIX) == 0;
}

/* Adds the files of a folder sorted by name; a missing folder is empty. */
static enum prony_status add_folder(struct registry *registry, const char *folder, bool of_user,
				    struct error *err)
{
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, is_descriptor, alphasort);
	enum prony_status status = PRONY_OK;

	if (count < 0)
		memory_check(errno);
	for (int i = 0; i < count; i++) {
		if (i == FILES_MAX && status == PRONY_OK)
			status = error_set(err, PRONY_BAD_INPUT, "%s has more than %d descriptors",
					   folder, FILES_MAX);
		if (status == PRONY_OK)
			status = (of_user ? add_own_file : add_tree_file)(
				registry,
				arena_printf(&registry->arena, "%s/%s", folder, entries[i]->d_name),
				err);
		free(entries[i]);
	}
	free(entries);
	return status;
}

/* Installed descriptors are in SHARE; in the source tree below frameworks/. */
static enum prony_status add_tree(struct registry *registry, struct error *err)
{
	static const char *const places[] = {"descriptors", "frameworks/descriptors"};
	char *share = path_share();
	const char *folder = NULL;

	for (size_t i = 0; share && i < sizeof(places) / sizeof(places[0]); i++) {
		const char *place = arena_printf(&registry->arena, "%s/%s", share, places[i]);

		if (!folder && file_is_directory(place))
			folder = place;
	}
	free(share);
	if (!folder)
		return error_set(err, PRONY_MISSING,
				 "descriptors/, the folder of the frameworks, was not found near "
				 "the program; install the program again, or set PRONY_SHARE to "
				 "the folder that contains descriptors/");
	return add_folder(registry, folder, false, err);
}

static int rank(const struct framework *row)
{
	return row->of_user ? 3 : row->harness_only ? 2 : row->floor ? 0 : 1;
}

/* A stable sort: files come sorted by name, backends in the order of their file. */
static void sort_rows(struct registry *registry)
{
	for (size_t i = 1; i < registry->count; i++) {
		struct framework row = registry->rows[i];
		size_t at = i;

		for (; at > 0 && rank(&registry->rows[at - 1]) > rank(&row); at--)
			registry->rows[at] = registry->rows[at - 1];
		registry->rows[at] = row;
	}
}

enum prony_status registry_load(struct registry *registry, struct error *err)
{
	*registry = (struct registry){.count = 0};
	arena_init(&registry->arena, 0);
	char *home = path_config_home();
	const char *own = arena_printf(&registry->arena, "%s/frameworks", home);
	enum prony_status status = add_tree(registry, err);

	free(home);
	if (status == PRONY_OK)
		status = add_folder(registry, own, true, err);
	if (status == PRONY_OK)
		sort_rows(registry);
	else
		registry_release(registry);
	return status;
}

void registry_release(struct registry *registry)
{
	arena_release(&registry->arena);
	*registry = (struct registry){.count = 0};
}

static enum prony_status split_words(const char *text, struct arena *arena, struct word_list *out,
				     struct error *err)
{
	const char *rest = text, *word;
	bool wrong = false;

	out->words = arena_array(arena, strlen(text) + 1, sizeof(*out->words));
	for (out->count = 0; (word = words_next(&rest, arena, &wrong)) != NULL && !wrong;)
		out->words[out->count++] = word;
	if (wrong)
		return error_set(err, PRONY_USAGE, "--worker: there is no closing quote in: %s",
				 text);
	return PRONY_OK;
}

enum prony_status registry_add_worker(struct registry *registry, const char *text,
				      struct error *err)
{
	const char *equals = strchr(text, '=');
	struct framework row = {.backend = "",
				.summary = "a worker given on the command line",
				.file = "--worker",
				.of_user = true,
				.kind = FRAMEWORK_COMMAND,
				.distribution = "",
				.stages = (1u << STAGE_LOAD) - 1,
				.precisions = (1u << PRECISION_ASKED) - 1,
				.loops = 1u << LOOP_STEP,
				.clips = true,
				.devices = FRAMEWORK_CUDA | FRAMEWORK_ANY,
				.any_option = true};
	struct cell cell = {0};

	if (!equals || equals == text)
		return error_set(err, PRONY_USAGE,
				 "--worker: \"%.80s\" is not NAME=COMMAND; for example --worker "
				 "'mine=python3 mine.py'",
				 text);
	row.name = arena_strndup(&registry->arena, text, (size_t)(equals - text));
	if (cell_parse_framework(row.name, &cell, NULL) != PRONY_OK ||
	    strcmp(cell.name, row.name) != 0)
		return error_set(err, PRONY_USAGE,
				 "--worker: invalid name \"%.60s\"; use at most %d lower-case "
				 "letters, digits, _ and -",
				 row.name, CELL_WORD_BYTES - 1);
	if (strcmp(row.name, EVERY_FRAMEWORK) == 0)
		return error_set(err, PRONY_USAGE,
				 "--worker: \"" EVERY_FRAMEWORK
				 "\" means every framework; choose another name");
	const struct framework *existing = framework_find(registry, row.name, NULL);
	if (existing)
		return error_set(err, PRONY_USAGE,
				 "--worker: the name %s is already used by %s; choose another one",
				 row.name, existing->file);
	enum prony_status status = split_words(equals + 1, &registry->arena, &row.command, err);
	if (status == PRONY_OK && row.command.count == 0)
		status = error_set(err, PRONY_USAGE, "--worker: %s has no command after '='",
				   row.name);
	if (status == PRONY_OK)
		add_rows(registry, &row, 1);
	return status;
}

const struct framework *framework_find(const struct registry *registry, const char *name,
				       const char *backend)
{
	for (size_t i = 0; name && i < registry->count; i++)
		if (strcmp(registry->rows[i].name, name) == 0 &&
		    (!backend || strcmp(registry->rows[i].backend, backend) == 0))
			return &registry->rows[i];
	return NULL;
}

unsigned framework_precisions(const struct framework *framework, const char *device)
{
	bool cuda = device_of(device).kind == DEVICE_CUDA;

	return framework->precisions | (cuda ? framework->cuda_precisions : 0);
}

const char *framework_nearest(const struct registry *registry, const char *name)
{
	const char *names[NEAREST_MAX];
	size_t count = 0;

	for (size_t i = 0; i < registry->count && count < NEAREST_MAX; i++)
		names[count++] = registry->rows[i].name;
	return word_nearest(name, names, count);
}

const char *framework_spelling(const struct framework *framework, const char *environment,
			       struct arena *arena)
{
	bool named = environment && *environment;

	return arena_printf(arena, "%s%s%s%s%s", framework->name, named ? "@" : "",
			    named ? environment : "", *framework->backend ? ":" : "",
			    framework->backend);
}

const struct framework_option *framework_option(const struct framework *framework, const char *name,
						size_t length)
{
	for (size_t i = 0; i < framework->option_count; i++)
		if (strlen(framework->options[i].name) == length &&
		    strncmp(framework->options[i].name, name, length) == 0)
			return &framework->options[i];
	return NULL;
}

const char *framework_option_words(const struct framework *framework, const char *options,
				   struct arena *arena)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	for (const char *name = options; *name;) {
		size_t length = strcspn(name, ",");
		const struct framework_option *option = framework_option(framework, name, length);
		/* Keep an unknown option, so that the worker refuses it. */
		const char *word = option ? option->word : arena_strndup(arena, name, length);

		if (*word)
			strbuf_printf(&text, "%s%s", text.length ? "," : "", word);
		name += length + (name[length] == ',');
	}
	const char *kept = arena_strdup(arena, strbuf_text(&text));
	strbuf_release(&text);
	return kept;
}

const char *framework_origin_name(enum framework_origin origin)
{
	static const char *const names[] = {
		[ORIGIN_NONE] = "none",		  [ORIGIN_NAMED] = "named",
		[ORIGIN_INSTALLED] = "installed", [ORIGIN_DISCOVERED] = "discovered",
		[ORIGIN_BUILTIN] = "builtin",
	};

	return (unsigned)origin < sizeof(names) / sizeof(names[0]) ? names[origin] : "?";
}
