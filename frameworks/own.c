/* Adopts an environment that the user made: prony's folder gets a manifest that points to it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "frameworks/install_internal.h"

/* Resolves the links of the folder but not the last one: the link in a virtual environment leads to
 * the interpreter without that environment. NULL when the folder does not exist. */
static const char *whole_path(const char *path, struct arena *arena)
{
	const char *slash = strrchr(path, '/');
	const char *folder = slash ? arena_strndup(arena, path, (size_t)(slash - path)) : ".";
	char *real = realpath(*folder ? folder : "/", NULL);
	const char *whole = real ? arena_printf(arena, "%s/%s", strcmp(real, "/") == 0 ? "" : real,
						slash ? slash + 1 : path)
				 : NULL;

	free(real);
	return whole;
}

static enum prony_status own_python(const struct install *install, const char *path,
				    const char **entry, struct error *err)
{
	struct arena *arena = (struct arena *)&install->arena;
	const struct framework *framework = install->framework;
	const char *program =
		file_is_directory(path) ? arena_printf(arena, "%s/bin/python", path) : path;
	struct python_answer answer;

	*entry = whole_path(program, arena);
	if (!*entry || !file_exists(*entry))
		return error_set(err, PRONY_MISSING,
				 "%s: --own %s: there is no %s; give an interpreter, or the folder "
				 "of a virtual environment",
				 install->spelling, path, program);
	python_ask(*entry, framework, arena, &answer);
	if (!answer.ran)
		return error_set(err, PRONY_MISSING,
				 "%s: --own %s: %s is not a working Python interpreter",
				 install->spelling, path, *entry);
	if (!answer.found)
		return error_set(err, PRONY_MISSING,
				 "%s: --own %s: %s has no module %s; install it there, or give "
				 "another environment",
				 install->spelling, path, *entry,
				 words_joined(&framework->modules, arena));
	return PRONY_OK;
}

static enum prony_status own_library(const struct install *install, const char *path,
				     const char **entry, struct error *err)
{
	struct arena *arena = (struct arena *)&install->arena;
	bool folder = file_is_directory(path);
	const char *found = folder ? framework_library_in(path, install->framework, arena)
			    : file_has_bytes(path) ? path
						   : NULL;

	*entry = found ? whole_path(found, arena) : NULL;
	if (*entry)
		return PRONY_OK;
	return error_set(err, PRONY_MISSING,
			 "%s: --own %s: %s; give the library, or the folder that contains %s",
			 install->spelling, path,
			 folder ? "the folder does not contain the library"
				: "there is no such file",
			 install->framework->library_pattern);
}

/* Builds it in staging like any installation: complete and tested, or not at all. */
static enum prony_status take_over(struct install *install, const char *entry, struct error *err)
{
	const char *says = "";
	enum prony_status status = directory_remove(install->staging, err);

	if (status == PRONY_OK)
		status = directory_make(install->staging, err);
	if (status == PRONY_OK)
		status = directory_make(install->tree, err);
	if (status == PRONY_OK) {
		install->lock.version = "";
		install_say(install, "testing it in a worker");
		status = install_try(install, entry, &says, err);
		if (status != PRONY_OK && status != PRONY_INTERRUPTED)
			error_prefix(err,
				     "%s: nothing was changed, because --own %s does not work here",
				     install->spelling, entry);
	}
	if (status == PRONY_OK) {
		struct arena *arena = &install->arena;
		const struct manifest manifest = {
			.lock = "",
			.lock_sha256 = "",
			.version = arena_strndup(arena, says, strcspn(says, " ")),
			.entry = entry};

		status = manifest_write(install->tree, install->framework->name, &manifest, err);
	}
	if (status == PRONY_OK)
		status = install_put_in_place(install, err);
	if (status == PRONY_OK)
		install_say(install, "version %s; from now on prony uses %s", says, entry);
	directory_remove(install->staging, NULL);
	return status;
}

enum prony_status framework_own(const struct framework *framework, const char *environment,
				const char *path, const struct install_sink *sink,
				struct error *err)
{
	struct install install;
	const char *entry = NULL;
	enum prony_status status = install_begin(&install, framework, environment, sink, err);

	if (status != PRONY_OK)
		return status;
	if (framework->kind == FRAMEWORK_PYTHON)
		status = own_python(&install, path, &entry, err);
	else if (framework->kind == FRAMEWORK_LIBRARY)
		status = own_library(&install, path, &entry, err);
	else
		status = error_set(
			err, PRONY_USAGE,
			"%s: --own is not possible: it has no environment but is started by %s",
			install.spelling, framework->file);
	if (status == PRONY_OK)
		status =
			install_lock(install.folder, sink, install.spelling, &install.lock_fd, err);
	if (status == PRONY_OK)
		status = install_may_replace(&install, err);
	if (status == PRONY_OK)
		status = take_over(&install, entry, err);
	if (install.lock_fd >= 0)
		close(install.lock_fd);
	arena_release(&install.arena);
	return status;
}
