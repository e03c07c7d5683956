#include "frameworks/lock.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "frameworks/folders_internal.h"

#define LOCK_BYTES_MAX ((size_t)1024 * 1024)
#define MEGABYTES_MAX 1000000

/* Position of a line in the lock, for messages. */
struct place {
	const char *path;
	int line;
	struct arena *arena;
};

static enum prony_status add_word(const struct place *at, const char *key, const char *word,
				  struct lock_words *list, struct error *err)
{
	if (list->count == LOCK_WORDS_MAX)
		return error_set(err, PRONY_BAD_INPUT, "%s:%d: %s has more than %d words", at->path,
				 at->line, key, LOCK_WORDS_MAX);
	list->words[list->count++] = word;
	return PRONY_OK;
}

static enum prony_status add_words(const struct place *at, const char *key, const char *value,
				   struct lock_words *list, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (const char *word = value; *word && status == PRONY_OK;) {
		size_t length = strcspn(word, " ");
		if (length > 0)
			status = add_word(at, key, arena_strndup(at->arena, word, length), list,
					  err);
		word += length + (word[length] == ' ');
	}
	return status;
}

static enum prony_status set_megabytes(const struct place *at, const char *key, const char *value,
				       int64_t *out, struct error *err)
{
	char *end = NULL;
	long number = strtol(value, &end, 10);

	if (end == value || *end || number < 0 || number > MEGABYTES_MAX)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s:%d: %s is '%s'; it must be a number of MB", at->path, at->line,
				 key, value);
	*out = number;
	return PRONY_OK;
}

static enum prony_status set_kind(const struct place *at, const char *value, struct lock *lock,
				  struct error *err)
{
	if (strcmp(value, "unpack") != 0 && strcmp(value, "venv") != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s:%d: kind is '%s'; it must be unpack or venv", at->path,
				 at->line, value);
	lock->kind = strcmp(value, "venv") == 0 ? LOCK_VENV : LOCK_UNPACK;
	return PRONY_OK;
}

static enum prony_status set_key(const struct place *at, const char *key, const char *value,
				 struct lock *lock, struct error *err)
{
	const struct {
		const char *key;
		const char **text;
	} texts[] = {{"framework", &lock->framework},
		     {"version", &lock->version},
		     {"python", &lock->python},
		     {"pip", &lock->pip},
		     {"library", &lock->library}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(key, texts[i].key) == 0)
			*texts[i].text = value;
	if (strcmp(key, "kind") == 0)
		return set_kind(at, value, lock, err);
	if (strcmp(key, "download-mb") == 0)
		return set_megabytes(at, key, value, &lock->download_mb, err);
	if (strcmp(key, "disk-mb") == 0)
		return set_megabytes(at, key, value, &lock->disk_mb, err);
	if (strcmp(key, "pip-arguments") == 0)
		return add_words(at, key, value, &lock->pip_arguments, err);
	if (strcmp(key, "keep") == 0)
		return add_word(at, key, value, &lock->keep, err);
	if (strcmp(key, "needs") == 0)
		return add_word(at, key, value, &lock->needs, err);
	return PRONY_OK;
}

/* Reads the lines "# key: value" before the first requirement. */
static enum prony_status read_header(const char *text, const char *path, struct arena *arena,
				     struct lock *lock, struct error *err)
{
	struct place at = {.path = path, .arena = arena};
	enum prony_status status = PRONY_OK;

	for (const char *line = text; *line && status == PRONY_OK;) {
		size_t length = strcspn(line, "\n");
		const char *colon = memchr(line, ':', length);
		at.line++;
		if (length > 0 && line[0] != '#')
			break;
		if (colon && length > 2) {
			const char *key =
				arena_strndup(arena, line + 2, (size_t)(colon - line - 2));
			const char *value = colon + 1 + strspn(colon + 1, " ");
			size_t rest = value <= line + length ? (size_t)(line + length - value) : 0;
			while (rest > 0 && (value[rest - 1] == ' ' || value[rest - 1] == '\r'))
				rest--;
			status = set_key(&at, key, arena_strndup(arena, value, rest), lock, err);
		}
		line += length + (line[length] == '\n');
	}
	return status;
}

/* Checks "21.3.1 SHA256"; both become part of a requirement. */
static bool is_pip(const char *text)
{
	size_t version = strspn(text, "0123456789.");

	return version > 0 && text[version] == ' ' &&
	       strspn(text + version + 1, "0123456789abcdef") == 64 && !text[version + 65];
}

static enum prony_status check(const struct lock *lock, struct error *err)
{
	const char *missing = !*lock->framework				       ? "framework"
			      : !*lock->version				       ? "version"
			      : lock->kind == LOCK_VENV && !*lock->python      ? "python"
			      : lock->kind == LOCK_UNPACK && !*lock->library   ? "library"
			      : lock->kind == LOCK_UNPACK && !lock->keep.count ? "keep"
									       : NULL;
	if (missing)
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: the key %s is missing; add a line '# %s: ...' before the first "
			"requirement",
			lock->path, missing, missing);
	if (*lock->pip && !is_pip(lock->pip))
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: pip is '%s'; it must be a version, a space and the SHA-256 "
				 "of the wheel",
				 lock->path, lock->pip);
	if (lock->library[0] == '/' || strstr(lock->library, ".."))
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: library is '%s'; it must be a path inside the wheel",
				 lock->path, lock->library);
	return PRONY_OK;
}

enum prony_status lock_read(const char *path, struct arena *arena, struct lock *out,
			    struct error *err)
{
	struct lock lock = {.path = arena_strdup(arena, path),
			    .framework = "",
			    .version = "",
			    .python = "",
			    .pip = "",
			    .library = ""};
	char *text = NULL;
	size_t length = 0;
	enum prony_status status = file_read(path, LOCK_BYTES_MAX, &text, &length, err);

	if (status != PRONY_OK)
		return status;
	const char *slash = strrchr(lock.path, '/');
	lock.name = slash ? slash + 1 : lock.path;
	digest_bytes(text, length, lock.sha256);
	status = read_header(text, lock.path, arena, &lock, err);
	if (status == PRONY_OK)
		status = check(&lock, err);
	if (status == PRONY_OK)
		*out = lock;
	free(text);
	return status;
}

const char *lock_stem(const struct framework *framework, const char *environment,
		      struct arena *arena)
{
	if (!framework->lock)
		return framework_environment_name(framework, environment, arena);
	return arena_printf(arena, "%s%s%s", framework->lock,
			    environment && *environment ? "@" : "", environment ? environment : "");
}

/* Whether "0.10" means the version of the lock: 0.10.2 matches, 0.101 does not. */
static bool lock_is_of_version(const char *path, const char *version, struct arena *arena)
{
	size_t length = strlen(version);
	struct lock lock;

	return lock_read(path, arena, &lock, NULL) == PRONY_OK &&
	       strncmp(lock.version, version, length) == 0 &&
	       (lock.version[length] == '.' || lock.version[length] == '\0');
}

const char *lock_find(const struct framework *framework, const char *environment,
		      const char *python, struct arena *arena)
{
	const char *file =
		arena_printf(arena, "%s%s%s.txt", lock_stem(framework, environment, arena),
			     python ? "-" : "", python ? python : "");
	char *home = path_data_home();
	char *share = path_share();
	/* Installed locks are in SHARE/locks; in the source tree below frameworks/. */
	const char *const candidates[] = {
		arena_printf(arena, "%s/locks/%s", home, file),
		share ? arena_printf(arena, "%s/locks/%s", share, file) : NULL,
		share ? arena_printf(arena, "%s/frameworks/locks/%s", share, file) : NULL,
	};
	const char *found = NULL;

	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]) && !found; i++)
		if (candidates[i] && file_exists(candidates[i]))
			found = candidates[i];
	free(share);
	free(home);
	if (!found && environment && *environment) {
		const char *usual = lock_find(framework, "", python, arena);
		found = usual && lock_is_of_version(usual, environment, arena) ? usual : NULL;
	}
	return found;
}

int64_t lock_download_mb(const struct framework *framework, const char *environment,
			 struct arena *arena)
{
	const char *path = NULL;
	struct lock lock;

	for (size_t i = 0; !path && i < framework->pythons.count; i++)
		path = lock_find(framework, environment, framework->pythons.words[i], arena);
	if (!path)
		path = lock_find(framework, environment, NULL, arena);
	return path && lock_read(path, arena, &lock, NULL) == PRONY_OK ? lock.download_mb : 0;
}

const char *lock_megabytes_text(int64_t mb, struct arena *arena)
{
	if (mb < 1000)
		return arena_printf(arena, "%lld MB", (long long)mb);
	return arena_printf(arena, "%.1f GB", (double)mb / 1000);
}
