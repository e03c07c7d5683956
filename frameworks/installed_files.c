/* Lists the files of an installation besides pip's own packages: those extracted from wheels and
 * those repaired. Their paths and sizes go into the manifest, so that damage can be detected later.
 */
#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "frameworks/install_internal.h"

/* Of a link take its own size: its target is another file, perhaps not ours. */
static enum prony_status add(struct install *install, const char *path, struct manifest *manifest,
			     size_t *room, struct error *err)
{
	struct stat info;

	if (lstat(path, &info) != 0)
		return error_errno(err, PRONY_IO, errno, "cannot read the attributes of %s", path);
	manifest->files = arena_grow(&install->arena, manifest->files, manifest->file_count, room,
				     sizeof(*manifest->files));
	manifest->files[manifest->file_count++] = (struct installed_file){
		.path = arena_strdup(&install->arena, path + strlen(install->tree) + 1),
		.bytes = info.st_size};
	return PRONY_OK;
}

static enum prony_status add_all(struct install *install, struct manifest *manifest, size_t *room,
				 struct error *err)
{
	char *const roots[] = {(char *)install->tree, NULL};
	enum prony_status status = PRONY_OK;
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;

	errno = walk ? 0 : errno;
	while (walk && status == PRONY_OK && (entry = fts_read(walk)))
		if (entry->fts_info != FTS_D && entry->fts_info != FTS_DP)
			status = add(install, entry->fts_path, manifest, room, err);
	if (status == PRONY_OK && errno)
		status = error_errno(err, PRONY_IO, errno, "cannot list the files of %s",
				     install->tree);
	if (walk)
		fts_close(walk);
	return status;
}

enum prony_status install_list_files(struct install *install, struct manifest *manifest,
				     struct error *err)
{
	const struct framework *framework = install->framework;
	enum prony_status status = PRONY_OK;
	size_t room = 0;

	/* pip lists the other files of a virtual environment (packages.c). */
	if (install->lock.kind != LOCK_VENV)
		return add_all(install, manifest, &room, err);
	for (size_t i = 0; i < framework->repair_count && status == PRONY_OK; i++) {
		const char *path = NULL;

		status = install_repair_path(install, &framework->repairs[i], &path, err);
		if (status == PRONY_OK)
			status = add(install, path, manifest, &room, err);
	}
	return status;
}

const char *framework_files_fault(const char *folder, const struct manifest *manifest,
				  struct arena *arena)
{
	for (size_t i = 0; i < manifest->file_count; i++) {
		const struct installed_file *file = &manifest->files[i];
		const char *path = arena_printf(arena, "%s/%s", folder, file->path);
		struct stat info;

		if (lstat(path, &info) != 0)
			return arena_printf(arena, "%s is missing", path);
		if (info.st_size != file->bytes)
			return arena_printf(arena, "%s has %lld bytes instead of %lld", path,
					    (long long)info.st_size, (long long)file->bytes);
	}
	return NULL;
}
