/* Removes an environment that prony installed. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/files.h"
#include "frameworks/install_internal.h"

/* Explains why it is still listed: it is in a folder that is shared. */
static enum prony_status not_ours(const char *const *folders, size_t count, const char *spelling,
				  struct error *err)
{
	for (size_t i = 1; i < count; i++)
		if (file_exists(folders[i]))
			return error_set(err, PRONY_MISSING,
					 "%s is shared with other users, in %s; prony removes only "
					 "what is in %s",
					 spelling, folders[i], folders[0]);
	return error_set(err, PRONY_MISSING, "%s is not installed: there is no %s", spelling,
			 folders[0]);
}

static enum prony_status remove_folder(const char *folder, const char *spelling,
				       struct arena *arena, struct error *err)
{
	const char *manifest = arena_printf(arena, "%s/%s", folder, MANIFEST_NAME);
	const char *away = install_staging(folder, arena);

	if (!file_exists(manifest))
		return error_set(err, PRONY_MISSING,
				 "%s: prony did not create the folder %s; remove it yourself",
				 spelling, folder);
	/* Rename it first, so that nobody finds half a framework. */
	enum prony_status status = directory_remove(away, err);
	if (status == PRONY_OK && rename(folder, away) != 0)
		status = error_errno(err, PRONY_IO, errno, "cannot rename %s to %s", folder, away);
	return status == PRONY_OK ? directory_remove(away, err) : status;
}

enum prony_status framework_remove(const struct framework *framework, const char *environment,
				   struct error *err)
{
	struct arena arena;
	int lock = -1;

	enum prony_status status = framework_check_environment(framework, environment, err);
	if (status != PRONY_OK)
		return status;
	arena_init(&arena, 0);
	const char *spelling = framework_spelling(framework, environment, &arena);
	const char *const *folders;
	size_t count = framework_folders(framework, environment, &arena, &folders);
	if (framework->broken)
		status = error_set(err, PRONY_BAD_INPUT, "%s", framework->broken);
	else if (framework->kind == FRAMEWORK_BUILTIN)
		status = error_set(err, PRONY_MISSING, "%s is part of prony and cannot be removed",
				   framework->name);
	else if (framework->kind == FRAMEWORK_COMMAND)
		status = error_set(err, PRONY_MISSING, "%s is started by %s: nothing was installed",
				   framework->name, framework->file);
	else
		status = install_lock(folders[0], NULL, spelling, &lock, err);
	if (status == PRONY_OK)
		status = file_exists(folders[0]) ? remove_folder(folders[0], spelling, &arena, err)
						 : not_ours(folders, count, spelling, err);
	if (lock >= 0)
		close(lock);
	arena_release(&arena);
	return status;
}
