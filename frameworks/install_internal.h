/* What the files of an installation share. */
#ifndef PRONY_FRAMEWORKS_INSTALL_INTERNAL_H
#define PRONY_FRAMEWORKS_INSTALL_INTERNAL_H

#include <stdint.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "frameworks/folders_internal.h"
#include "frameworks/lock.h"

/* One installation on its way. Strings in the arena. */
struct install {
	const struct framework *framework;
	const char *environment; /* "" or ENV */
	const char *spelling;	 /* "pytorch@1.13" */
	const struct install_sink *sink;
	struct arena arena;
	struct lock lock;
	const char *python; /* venv: the interpreter that makes it; unpack: one that has pip */
	const char *folder; /* where it ends up */
	/* Everything until then: tree/ is renamed to `folder`, wheels/ and tmp/ are thrown away. */
	const char *staging, *tree, *wheels, *temporary;
	int lock_fd; /* -1 when not taken */
};

/* Fills in the paths and names of an installation; then arena_release. PRONY_USAGE for a wrong name
 * of an environment, PRONY_BAD_INPUT for a descriptor that is broken: then there is nothing to
 * release. */
enum prony_status install_begin(struct install *install, const struct framework *framework,
				const char *environment, const struct install_sink *sink,
				struct error *err);

/*
 * Chooses the lock and the interpreter. *needed: whether there is something to install; else it has
 * been said why not. PRONY_MISSING for an interpreter, a lock or a library of the system.
 */
enum prony_status install_prepare(struct install *install, bool *needed, struct error *err);

/* Installs what was prepared, when no other one does it any more. */
enum prony_status install_carry_out(struct install *install, struct error *err);

/* How much of the disk it takes at most while that goes on. */
int64_t install_disk_mb(const struct install *install);

/* After install_begin, whatever came of it. */
void install_end(struct install *install, enum prony_status status);

/* PRONY_MISSING when the folder is there and not ours; an empty one goes away. */
enum prony_status install_may_replace(const struct install *install, struct error *err);

/* The tree takes the folder's place at once; what was there ends up in staging. */
enum prony_status install_put_in_place(const struct install *install, struct error *err);

/* One line of progress: "NAME: text". */
void install_say(const struct install *install, const char *format, ...) PRONY_PRINTF(2, 3);
bool install_stopped(const struct install *install);

/*
 * Runs a program below the installation's lock, stdin empty, and follows what it prints: `line`
 * gets every line (may be NULL), *output the last 64 KiB (initialised by the caller). The program's
 * whole process group ends when the user stops the installation or `limit_ns` is over.
 * PRONY_BAD_INPUT when it does not exit with 0, with how it ended as the text.
 */
enum prony_status install_child(const struct install *install, const char *const *argv,
				int64_t limit_ns,
				void (*line)(const struct install *install, const char *text),
				struct strbuf *output, struct error *err);

/* An interpreter with pip, where needed in a throw-away environment of its own below staging. */
enum prony_status install_find_pip(struct install *install, struct error *err);

/* An interpreter of `version` that can make environments, or NULL; *looked says where it was
 * looked. */
const char *install_find_python(struct install *install, const char *version,
				struct strbuf *looked);

/* Where the lock asks for another pip than the environment came with: an old Python's own cannot
 * read today's wheels, and today's does not run there. */
enum prony_status install_own_pip(struct install *install, struct error *err);

/* Of a failure whose text says that the disk is full (ours, venv's, pip's): with the remedy. */
enum prony_status install_explain_full(const struct install *install, enum prony_status status,
				       struct error *err);

/* pip download into install->wheels, or pip install into the environment install->python belongs
 * to. */
enum prony_status install_pip(struct install *install, const char *subcommand, struct error *err);

/* Does what the descriptor says is to be repaired in `tree`, saying why. */
enum prony_status install_repair(struct install *install, struct error *err);

/* Where in `tree` a repair is made, in the arena; its folder may be a pattern, which has to mean
 * one folder (PRONY_BAD_INPUT). */
enum prony_status install_repair_path(struct install *install,
				      const struct framework_repair *repair, const char **out,
				      struct error *err);

/* Fills in the manifest's files, in the arena, as they lie in `tree` now: all of a library's, and
 * of an environment those that were repaired. */
enum prony_status install_list_files(struct install *install, struct manifest *manifest,
				     struct error *err);

/* Starts a worker on what lies in `tree` and lets it load the framework. *says (in the arena): its
 * version and those of its libraries. */
enum prony_status install_try(struct install *install, const char *entry, const char **says,
			      struct error *err);

/* The lock of a framework's folder; ends when *fd and every copy of it in a child is closed. */
enum prony_status install_lock(const char *folder, const struct install_sink *sink,
			       const char *spelling, int *fd, struct error *err);

/* Staging folder of an installation; below the same folder, so that it can be renamed. */
const char *install_staging(const char *folder, struct arena *arena);

#endif
