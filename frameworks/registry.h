/*
 * The registry: which frameworks exist, where each is found on this machine, how its worker is
 * started, how it is installed. Knows nothing of how a framework is driven.
 */
#ifndef PRONY_FRAMEWORKS_REGISTRY_H
#define PRONY_FRAMEWORKS_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "cell/vocabulary.h"

enum framework_kind {
	FRAMEWORK_BUILTIN, /* an adapter of ours that needs no library: null, fake */
	FRAMEWORK_LIBRARY, /* an adapter of ours that loads a shared library */
	FRAMEWORK_PYTHON   /* python/worker.py in an interpreter that can import a module */
};

struct framework {
	const char *name; /* stored with results: never renamed */
	const char *summary;
	enum framework_kind kind;
	const char *adapter;	/* name for `worker --adapter` */
	const char *options;	/* "+" words with commas, "" none; NULL: its worker judges them */
	const char *recomputes; /* the option under which it does not keep all activations */
	const char *module;	/* Python: what must be importable, "torch" */
	const char *library_pattern; /* glob below the environment's folder */
	const char *distribution;    /* the package's name in its dist-info, for the version */
	unsigned stages, precisions; /* bit sets of what it can at best; a worker's word is final */
	bool cuda;		     /* can use a GPU */
	bool harness_only;	     /* null and fake: never part of "all" */
	bool computes_nothing;	     /* null: exempt from the gate and from ranking */
	bool essential;		     /* `make run` fails when it cannot be installed */
	const char *pythons;	     /* Python: versions with a lock, "3.12,3.11" */
};

extern const struct framework framework_registry[];
extern const size_t framework_count;
const struct framework *framework_find(const char *name);
/* For "did you mean"; NULL when none is near. */
const char *framework_nearest(const char *name);

enum framework_origin {
	ORIGIN_NONE,
	ORIGIN_NAMED,	   /* by the user: PRONY_<NAME>_LIBRARY, PRONY_<NAME>_PYTHON */
	ORIGIN_INSTALLED,  /* `prony framework install` */
	ORIGIN_DISCOVERED, /* an interpreter on PATH or in an active environment */
	ORIGIN_BUILTIN
};
const char *framework_origin_name(enum framework_origin origin);

/* Where a framework was found. Strings are in the caller's arena. */
struct framework_place {
	const struct framework *framework;
	const char *environment; /* "" or the ENV of NAME@ENV */
	enum framework_origin origin;
	const char *library;	 /* kind library */
	const char *interpreter; /* kind Python */
	const char *version;	 /* from the package's metadata, without loading it; "" unknown */
	const char *folder;	 /* the environment's folder; "" when not ours */
	const char *reason;	 /* set when missing: what was looked for, where, and the remedy */
};

/*
 * Finds a framework in the order named, installed, discovered. Cheap: no framework is loaded;
 * discovery looks for the module's folder with one short run of each candidate interpreter
 * (find_spec, no import), cached below the data folder by interpreter path and modification time.
 * PRONY_OK with place->origin ORIGIN_NONE and a reason when it is missing.
 */
enum prony_status framework_locate(const struct framework *framework, const char *environment,
				   struct arena *arena, struct framework_place *place,
				   struct error *err);

/*
 * argv and environment rows (both NULL-terminated, in the arena) that start the worker of a located
 * framework. `self` is our own executable, `option` goes to the adapters null and fake.
 */
enum prony_status framework_worker_command(const struct framework_place *place, const char *self,
					   const char *option, int threads, struct arena *arena,
					   const char *const **argv,
					   const char *const **environment, struct error *err);

/* Reports progress of an installation, a line at a time, and hears of the user's impatience. */
struct install_sink {
	void (*line)(void *context, const char *text);
	void *context;
	const volatile int
		*stop; /* set by a signal handler: clean up, PRONY_INTERRUPTED; may be NULL */
};

/*
 * Installs a framework from its lock file into DATA/frameworks/NAME (or NAME@ENV): downloads by
 * hash, unpacks or makes a virtual environment, tries it, and only then renames it into place.
 * Idempotent and quick when the same lock is already installed. PRONY_MISSING says which
 * interpreter version is needed, where it was looked for and what to do. One installation of a
 * framework at a time: a second one waits. NAME@ENV needs a lock of that name; PRONY_MISSING says
 * where it is looked for.
 */
enum prony_status framework_install(const struct framework *framework, const char *environment,
				    const struct install_sink *sink, struct error *err);

/* Removes what framework_install made; PRONY_MISSING when there is nothing. */
enum prony_status framework_remove(const struct framework *framework, const char *environment,
				   struct error *err);

#endif
