/* Private to frameworks/: names of folders and variables, and the manifest. */
#ifndef PRONY_FRAMEWORKS_FOLDERS_INTERNAL_H
#define PRONY_FRAMEWORKS_FOLDERS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "frameworks/descriptor.h"
#include "frameworks/registry.h"

#define MANIFEST_NAME "manifest.json"
#define MANIFEST_BYTES_MAX ((size_t)1024 * 1024)

/* "native", "pytorch@1.13", "keras3=jax": name of the environment's folder and of its lock. */
const char *framework_environment_name(const struct framework *framework, const char *environment,
				       struct arena *arena);
/* DATA/frameworks/NAME[@ENV][=BACKEND], where it is installed. */
const char *framework_folder(const struct framework *framework, const char *environment,
			     struct arena *arena);
/* That folder, then the same below the folders that are shared (path_data_homes), in the arena. */
size_t framework_folders(const struct framework *framework, const char *environment,
			 struct arena *arena, const char *const **folders);
/*
 * "PRONY_PYTORCH_1_13_PYTHON": upper case; every character other than letters and digits becomes _.
 */
const char *framework_variable(const char *spelling, const char *suffix, struct arena *arena);
/* Values of the placeholders in commands and variables. Strings are in the arena. */
void placeholder_values(const struct framework_location *place, int threads, struct arena *arena,
			const char *values[PLACEHOLDER_COUNT]);

/* Whether the name can be part of a path: letters, digits, ".", "_" and "-", not starting with a
 * dot. */
bool framework_environment_valid(const char *environment);
/* PRONY_USAGE when the environment (NULL: none) has no such name. */
enum prony_status framework_check_environment(const struct framework *framework,
					      const char *environment, struct error *err);

/* A file that prony added to an installation. */
struct installed_file {
	const char *path; /* path below the folder */
	int64_t bytes;	  /* size; of a link: its own */
};

/* The manifest of an installation. Strings are in the arena; "" when absent. */
struct manifest {
	const char *lock;	 /* file name of the lock */
	const char *lock_sha256; /* SHA-256 of the lock file */
	const char *version;	 /* of the framework */
	const char *entry; /* library or interpreter, relative to the folder; absolute if prony did
			      not install it */
	/* Files extracted from wheels and repaired files, but not what pip installed. Manifests of
	 * earlier versions list none and are valid too. */
	struct installed_file *files;
	size_t file_count;
};

/* False when there is no valid manifest; the folder then counts as not installed. */
bool manifest_read(const char *folder, struct arena *arena, struct manifest *out);
enum prony_status manifest_write(const char *folder, const char *framework,
				 const struct manifest *manifest, struct error *err);

/* The first of those files that is missing or has another size, in the arena; NULL when all are
 * intact. */
const char *framework_files_fault(const char *folder, const struct manifest *manifest,
				  struct arena *arena);

/* The library in a folder that matches the descriptor's pattern; NULL if there is none. */
const char *framework_library_in(const char *folder, const struct framework *framework,
				 struct arena *arena);

/* "3.12,3.11", in the arena. */
const char *words_joined(const struct word_list *list, struct arena *arena);

/* What an interpreter reports about modules. Strings are in the arena. */
struct python_answer {
	bool ran;   /* it is a working interpreter */
	bool found; /* it can import the modules */
	const char *executable, *version;
};

/* Asks the interpreter with find_spec, which imports nothing; takes at most 10 s. Answers are
 * cached below DATA/cache until the interpreter or a folder of its module path changes. Scripts
 * (version managers' shims) are asked every time, because they depend on more than themselves. */
void python_ask(const char *interpreter, const struct framework *framework, struct arena *arena,
		struct python_answer *answer);

/* The first package of an environment with a missing or changed file ("package torch-2.15.0 is
 * damaged: torch/version.py is gone"), in the arena; NULL when all are intact. Compares sizes with
 * pip's own lists: a fifth of a second for 20,000 files. */
const char *framework_packages_fault(const char *folder, struct arena *arena);

#endif
