/* Private to frameworks/: the state and the steps of an installation. */
#ifndef PRONY_FRAMEWORKS_INSTALL_INTERNAL_H
#define PRONY_FRAMEWORKS_INSTALL_INTERNAL_H

#include <stdint.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "frameworks/folders_internal.h"
#include "frameworks/lock.h"

/* An installation in progress. Strings are in the arena. */
struct install {
	const struct framework *framework;
	const char *environment; /* "" or ENV */
	const char *spelling;	 /* "pytorch@1.13" */
	const struct install_sink *sink;
	struct arena arena;
	struct lock lock;
	const char *
		python; /* venv: the interpreter that creates it; unpack: an interpreter with pip */
	const char *folder; /* final folder */
	/*
	 * Working folders: tree/ is renamed to `folder` at the end; wheels/ and tmp/ are deleted.
	 */
	const char *staging, *tree, *wheels, *temporary;
	int lock_fd; /* -1 when not locked */
};

/* Fills in paths and names; end with arena_release. PRONY_USAGE for an invalid environment name,
 * PRONY_BAD_INPUT for a broken descriptor; then there is nothing to release. */
enum prony_status install_begin(struct install *install, const struct framework *framework,
				const char *environment, const struct install_sink *sink,
				struct error *err);

/* Chooses the lock and the interpreter. *needed: whether anything must be installed; if not, the
 * reason was reported. PRONY_MISSING when an interpreter, a lock or a system library is missing. */
enum prony_status install_prepare(struct install *install, bool *needed, struct error *err);

/* Installs what was prepared, after waiting for other installations of it. */
enum prony_status install_carry_out(struct install *install, struct error *err);

/* The interpreter of a virtual environment, below its folder. */
#define VENV_ENTRY "bin/python"

/* Makes a virtual environment in the folder and takes its interpreter. */
enum prony_status install_venv(struct install *install, const char *python, const char *folder,
			       struct error *err);

/* The free space of a folder's disk; -1 when it is unknown. */
int64_t install_free_mb(const char *folder);

/* The most disk space that the installation takes while it runs. */
int64_t install_disk_mb(const struct install *install);

/* Call it after install_begin, whatever the outcome. */
void install_end(struct install *install, enum prony_status status);

/* PRONY_MISSING when the folder exists and prony did not make it. An empty folder is removed. */
enum prony_status install_may_replace(const struct install *install, struct error *err);

/* Atomically replaces the folder by the tree; the old content ends up in staging. */
enum prony_status install_put_in_place(const struct install *install, struct error *err);

/* Reports a line of progress: "NAME: text". */
void install_say(const struct install *install, const char *format, ...) PRONY_PRINTF(2, 3);
bool install_stopped(const struct install *install);

/* Runs a program while holding the installation's lock, with empty stdin. `line` (may be NULL)
 * receives every line of output, *output (initialised by the caller) the last 64 KiB. The program's
 * process group is ended when the user stops the installation or limit_ns has passed.
 * PRONY_BAD_INPUT, with how it ended, when its exit code is not 0. */
enum prony_status install_child(const struct install *install, const char *const *argv,
				int64_t limit_ns,
				void (*line)(const struct install *install, const char *text),
				struct strbuf *output, struct error *err);

/* Finds an interpreter with pip; if needed makes a temporary environment below staging. */
enum prony_status install_find_pip(struct install *install, struct error *err);

/* An interpreter of `version` that can create environments, or NULL; *looked says where it was
 * searched. */
const char *install_find_python(struct install *install, const char *version,
				struct strbuf *looked);

/* Installs the pip version that the lock asks for: the pip of an old Python cannot read today's
 * wheels, and today's pip does not run on it. */
enum prony_status install_own_pip(struct install *install, struct error *err);

/* Adds the remedy when the text of a failure (ours, venv's or pip's) says that the disk is full. */
enum prony_status install_explain_full(const struct install *install, enum prony_status status,
				       struct error *err);

/*
 * Runs pip download into install->wheels, or pip install into the environment of install->python.
 */
enum prony_status install_pip(struct install *install, const char *subcommand, struct error *err);

/* Applies the descriptor's repairs to `tree` and reports the reason of each. */
enum prony_status install_repair(struct install *install, struct error *err);

/* The path in `tree` of a repair, in the arena. Its folder may be a pattern, which must match
 * exactly one folder (PRONY_BAD_INPUT). */
enum prony_status install_repair_path(struct install *install,
				      const struct framework_repair *repair, const char **out,
				      struct error *err);

/* Fills in the manifest's files from `tree`, in the arena: all files of a library, or the repaired
 * files of an environment. */
enum prony_status install_list_files(struct install *install, struct manifest *manifest,
				     struct error *err);

/* Starts a worker from `tree` that loads the framework. *says (in the arena): its version and those
 * of its libraries. */
enum prony_status install_try(struct install *install, const char *entry, const char **says,
			      struct error *err);

/* Locks a framework's folder. The lock is held until *fd and its copies in children are closed. */
enum prony_status install_lock(const char *folder, const struct install_sink *sink,
			       const char *spelling, int *fd, struct error *err);

/* The staging folder of an installation, on the same file system, so that it can be renamed. */
const char *install_staging(const char *folder, struct arena *arena);

#endif
