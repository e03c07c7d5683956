/* What the files of this folder share: names of folders and variables, and the manifest. */
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

/* "native", "pytorch@1.13", "keras3=jax": the name of its folder and of its lock. */
const char *framework_environment_name(const struct framework *framework, const char *environment,
				       struct arena *arena);
/* DATA/frameworks/NAME[@ENV][=BACKEND]. */
const char *framework_folder(const struct framework *framework, const char *environment,
			     struct arena *arena);
/* "PRONY_PYTORCH_1_13_PYTHON": upper-case, everything else than letters and digits becomes _. */
const char *framework_variable(const char *spelling, const char *suffix, struct arena *arena);
/* What the placeholders of commands and variables stand for. Strings in the arena. */
void placeholder_values(const struct framework_place *place, int threads, struct arena *arena,
			const char *values[PLACEHOLDER_COUNT]);

/* Letters, digits, ".", "_" and "-", not starting with a dot: it becomes part of a path. */
bool framework_environment_valid(const char *environment);

/* A file that prony put into an installation. */
struct kept_file {
	const char *path; /* below the folder */
	int64_t bytes;	  /* of a link: its own */
};

/* What an installation says of itself. Strings in the arena, "" when absent. */
struct manifest {
	const char *lock;	 /* file name of the lock */
	const char *lock_sha256; /* of the lock's bytes */
	const char *version;	 /* of the framework */
	const char *entry;	 /* library or interpreter, below the folder; absolute: of others */
	/* What came out of wheels and what was repaired, but not what pip installed. None in the
	 * manifests of earlier versions, which are as good. */
	struct kept_file *files;
	size_t file_count;
};

/* False when there is none or it is damaged; then the folder counts as not installed. */
bool manifest_read(const char *folder, struct arena *arena, struct manifest *out);
enum prony_status manifest_write(const char *folder, const char *framework,
				 const struct manifest *manifest, struct error *err);

/* The first of those files that is gone or has another size, in the arena; NULL when all are whole.
 */
const char *framework_files_fault(const char *folder, const struct manifest *manifest,
				  struct arena *arena);

/* The library that a folder has, by the descriptor's pattern; NULL when it has none. */
const char *framework_library_in(const char *folder, const struct framework *framework,
				 struct arena *arena);

/* "3.12,3.11", in the arena. */
const char *words_joined(const struct word_list *list, struct arena *arena);

/* What an interpreter says about modules. Strings in the arena. */
struct python_answer {
	bool ran;   /* it is a working interpreter */
	bool found; /* it can import the modules */
	const char *executable, *version;
};

/*
 * Asks with find_spec, which imports nothing; at most 10 s. Answers are kept below DATA/cache until
 * the interpreter or a folder of its module path changes. Scripts (version managers' shims) are
 * asked each time, because what they start depends on more than themselves.
 */
void python_ask(const char *interpreter, const struct framework *framework, struct arena *arena,
		struct python_answer *answer);

/*
 * The first package of an environment's folder of which a file is gone or has another size than it
 * was installed with ("package torch-2.15.0 is damaged: torch/version.py is gone"), in the arena;
 * NULL when all are whole. Reads what pip wrote down and asks for sizes: a fifth of a second for
 * 20,000 files.
 */
const char *framework_packages_fault(const char *folder, struct arena *arena);

#endif
