/* The registry of frameworks: which exist, where each is on this machine, how its worker is started
 * and how it is installed. A framework is a descriptor file (docs/descriptors.md). Nothing here
 * knows how to drive a framework. */
#ifndef PRONY_FRAMEWORKS_REGISTRY_H
#define PRONY_FRAMEWORKS_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "cell/vocabulary.h"

enum framework_kind {
	FRAMEWORK_BUILTIN, /* our own adapter, without a library: null, fake */
	FRAMEWORK_LIBRARY, /* our own adapter, which loads a shared library */
	FRAMEWORK_PYTHON,  /* python/worker.py in an interpreter that can import the module */
	FRAMEWORK_COMMAND  /* a program that speaks the worker protocol itself */
};

/* Devices that a cell may name besides cpu and cpu:N. */
enum framework_device {
	FRAMEWORK_CUDA = 1, /* cuda:N */
	FRAMEWORK_ANY = 2   /* any device that the worker reports, by its library's name */
};

struct word_list {
	const char **words;
	size_t count;
};

/* A "+" word of a framework's spelling and its settings. */
struct framework_option {
	const char *name, *help;
	const char *word; /* the word that the worker receives in the recipe's options; "" = none */
	struct word_list variables; /* NAME=VALUE */
	/* Formats of data sets that the framework's own loader reads with this option, instead of
	 * the framework's own list; the option then applies to --input native only. */
	struct word_list native_input;
	bool recomputes; /* then not all activations are kept in memory */
};

enum repair_kind { REPAIR_SYMLINK, REPAIR_WRITE_FILE, REPAIR_STUB_LIBRARY };

/* A repair step after an installation, in its folder. */
struct framework_repair {
	enum repair_kind kind;
	const char *why;
	const char *path;	  /* its folder may be a pattern that matches one folder */
	const char *text;	  /* target of the link; content of the file */
	struct word_list symbols; /* functions of a stub library */
};

/* A row of the registry: a framework, or one of its backends. */
struct framework {
	const char *name;    /* stored with results, so never renamed */
	const char *backend; /* "" if there is no choice */
	const char *summary;
	const char *file;   /* path of its descriptor; "--worker" for one from the command line */
	bool of_user;	    /* from the user, not from prony */
	const char *broken; /* why its descriptor is invalid (then the rest is empty); or NULL */
	enum framework_kind kind;
	const char *adapter;	     /* for `worker --adapter`; Python: a module name or a path */
	struct word_list command;    /* FRAMEWORK_COMMAND */
	struct word_list modules;    /* Python: modules that must be importable, "torch" */
	struct word_list pythons;    /* Python: versions with a lock, "3.12", best first */
	const char *library_pattern; /* glob below the environment's folder */
	const char *distribution;    /* the package's name in its dist-info, to find the version */
	const char *lock;	     /* stem of its lock files; NULL: the environment's name */
	bool shared_environment;    /* this backend shares the environment NAME[@ENV] with others */
	struct word_list variables; /* NAME=VALUE for its workers, with placeholders */
	bool any_option;	    /* the worker itself checks options */
	struct framework_option *options;
	size_t option_count;
	struct framework_repair *repairs;
	size_t repair_count;
	unsigned stages,
		precisions; /* bit sets of the most it can do; the worker has the final word */
	unsigned cuda_precisions;		 /* the same on cuda:N, besides those */
	unsigned lacks_stages, lacks_optimisers; /* bit sets; its stages prefill and decode too */
	unsigned loops;				 /* bit set of enum loop_mode */
	struct word_list native_input; /* formats of data sets that its own loader reads */
	const char *native_input_by;   /* the framework whose loader it uses; or NULL */
	bool fed_by_script;	       /* its loader is a script of the worker */
	unsigned devices;	       /* besides the CPU: bit set of enum framework_device */
	int cuda_newest;   /* newest compute capability of its builds, 86 for sm_86; 0: any */
	bool reads_onnx;   /* can run an ONNX file unchanged */
	const char *ranks; /* what sums over its ranks: "gloo", "mpi" (and starts them); or NULL */
	const char *no_ranks;  /* why nothing does; or NULL */
	bool harness_only;     /* null and fake: not part of "all" */
	bool clips;	       /* its worker clips gradients (recipe: clip_norm) */
	bool computes_nothing; /* null: no gate, no rank */
	bool floor;	       /* the reference of ratios: listed first */
};

struct registry {
	struct arena arena;
	struct framework
		*rows; /* order: the floor, others by name, harness-only ones, the user's */
	size_t count;
	const char **notes; /* messages for the user: ignored or wrong files, and why */
	size_t note_count;
};

/* Reads prony's descriptors (SHARE/descriptors) and the user's ($XDG_CONFIG_HOME/prony/frameworks).
 * A mistake in a user's file, or a name that is already used, becomes a note with file, line, key
 * and remedy, and the framework becomes a `broken` row. For prony's own files it is
 * PRONY_BAD_INPUT, or PRONY_MISSING when they do not exist. As root, files of other users are not
 * read, with a note. After success call registry_release. */
enum prony_status registry_load(struct registry *registry, struct error *err);
void registry_release(struct registry *registry);

/* Adds a worker from `prony run --worker NAME=COMMAND`. The command is split into words like a
 * shell does, with quotes and backslashes, but no shell runs. PRONY_USAGE. */
enum prony_status registry_add_worker(struct registry *registry, const char *text,
				      struct error *err);

/*
 * The row of a name and backend; with backend NULL the first row of that name. NULL when unknown.
 */
const struct framework *framework_find(const struct registry *registry, const char *name,
				       const char *backend);
/* The most precisions that it can have on a device, a bit set. */
unsigned framework_precisions(const struct framework *framework, const char *device);
/* A near name for "did you mean"; NULL when there is none. */
const char *framework_nearest(const struct registry *registry, const char *name);
/* "NAME[@ENV][:BACKEND]". */
const char *framework_spelling(const struct framework *framework, const char *environment,
			       struct arena *arena);
/* The option of that name; NULL if there is none. */
const struct framework_option *framework_option(const struct framework *framework, const char *name,
						size_t length);
/* The words that the worker receives for a cell's options ("a,b"); in the arena. */
const char *framework_option_words(const struct framework *framework, const char *options,
				   struct arena *arena);

enum framework_origin {
	ORIGIN_NONE,
	ORIGIN_NAMED,	   /* by the user: PRONY_<NAME>_LIBRARY, PRONY_<NAME>_PYTHON, a command */
	ORIGIN_INSTALLED,  /* `prony framework install` */
	ORIGIN_DISCOVERED, /* an interpreter on PATH or in an active environment */
	ORIGIN_BUILTIN
};
const char *framework_origin_name(enum framework_origin origin);

/* The location of a framework on this machine. Strings are in the caller's arena. */
struct framework_location {
	const struct framework *framework;
	const char *environment; /* "" or the ENV of NAME@ENV */
	enum framework_origin origin;
	const char *library;	 /* kind library */
	const char *interpreter; /* kind Python */
	const char *program;	 /* kind command: the first word, as started */
	const char *version;  /* from the package's metadata, without loading it; "" when unknown */
	const char *folder;   /* the environment's folder; "" if prony did not install it */
	const char *reason;   /* set when missing: the cause and the remedy */
	const char *searched; /* where, if it was found nowhere; or NULL */
};

/* Finds a framework: first where the user named it, then installed, then discovered. No framework
 * is loaded. Discovery runs each candidate interpreter briefly to find the module's folder
 * (find_spec, no import) and caches the answer below the data folder by interpreter path and
 * modification time. Returns PRONY_OK with place->origin ORIGIN_NONE and a reason when it is
 * missing. */
enum prony_status framework_locate(const struct framework *framework, const char *environment,
				   struct arena *arena, struct framework_location *place,
				   struct error *err);

/* The names of the environments NAME@ENV that are installed; *names is in the arena. */
size_t framework_environments(const struct framework *framework, struct arena *arena,
			      const char *const **names);

/* The folder {cache} of descriptors, in the arena: what the framework keeps between processes. */
const char *framework_cache_folder(const struct framework_location *place, struct arena *arena);

/* argv and environment rows (both NULL-terminated, in the arena) that start the worker of a located
 * framework. `self` is our own executable. `options` are the cell's, "a,b" (may be NULL): their
 * variables are set, and the adapters null and fake receive them as words. */
enum prony_status framework_worker_command(const struct framework_location *place, const char *self,
					   const char *options, int threads, struct arena *arena,
					   const char *const **argv,
					   const char *const **environment, struct error *err);

/* Receives progress of an installation line by line, and tells it to stop. */
struct install_sink {
	void (*line)(void *context, const char *text);
	void *context;
	const volatile int *stop; /* set by a signal handler: clean up and return PRONY_INTERRUPTED;
				     may be NULL */
};

/* One framework to install, and the outcome. */
struct install_item {
	const struct framework *framework;
	const char *environment;
	enum prony_status status;
	struct error error; /* ERROR_INIT; PRONY_INTERRUPTED when it was not started */
};

/* Installs frameworks from their lock files into DATA/frameworks/NAME[@ENV][=BACKEND], at most
 * `jobs` at a time and no more than the disk has room for: downloads by hash, unpacks or makes a
 * virtual environment, repairs it, tests it, and only then renames it into place. Quick when the
 * same lock is installed already. PRONY_MISSING says which interpreter version or lock is needed,
 * where it was searched and what to do. Two installations of the same framework wait for each
 * other. Frameworks that share an environment are installed one after the other. Reports all sizes
 * first. Continues after a failure; returns the status of the first failure, PRONY_INTERRUPTED when
 * the user stopped it. The sink receives one line at a time, from any thread. */
enum prony_status framework_install_many(struct install_item *items, size_t count, size_t jobs,
					 const struct install_sink *sink);

/* Uses an environment of the user instead of installing one: `path` is an interpreter, a library,
 * or the folder of either. It is tested and remembered like an installation. prony never changes
 * it, not even in framework_remove. */
enum prony_status framework_own(const struct framework *framework, const char *environment,
				const char *path, const struct install_sink *sink,
				struct error *err);

/* What is wrong with an installation (its interpreter does not run, a file is missing or has
 * another size), in the arena; NULL when it is intact or absent. Imports nothing. */
const char *framework_fault(const struct framework_location *place, struct arena *arena);

/* Removes what framework_install_many made; PRONY_MISSING when there is none. */
enum prony_status framework_remove(const struct framework *framework, const char *environment,
				   struct error *err);

#endif
