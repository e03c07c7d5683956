/*
 * The registry: which frameworks exist, where each is found on this machine, how its worker is
 * started, how it is installed. A framework is a descriptor file (docs/descriptors.md); nothing
 * here knows how one is driven.
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
	FRAMEWORK_PYTHON,  /* python/worker.py in an interpreter that can import a module */
	FRAMEWORK_COMMAND  /* a program that speaks the protocol by itself */
};

/* What may stand in a cell's place of a device, beside cpu and cpu:N. */
enum framework_device {
	FRAMEWORK_CUDA = 1, /* cuda:N */
	FRAMEWORK_ANY = 2   /* whatever the worker finds, by the name that its library gives it */
};

struct word_list {
	const char **words;
	size_t count;
};

/* A "+" word of a framework's spelling, and what it sets. */
struct framework_option {
	const char *name, *help;
	const char *word;	    /* what the worker gets in the recipe's options; "" = nothing */
	struct word_list variables; /* NAME=VALUE */
	/* Formats of data sets that the framework's own loader reads with it, instead of the
	 * framework's: then it is an option of --input native alone. */
	struct word_list native_input;
	bool recomputes; /* then not all activations are kept */
};

enum repair_kind { REPAIR_SYMLINK, REPAIR_WRITE_FILE, REPAIR_STUB_LIBRARY };

/* A step after an installation, below its folder. */
struct framework_repair {
	enum repair_kind kind;
	const char *why;
	const char *path;	  /* its folder may be a pattern that one folder matches */
	const char *text;	  /* where the link leads to; what the file holds */
	struct word_list symbols; /* of a stub library */
};

/* One framework, or one of its backends: a row of the registry. */
struct framework {
	const char *name;    /* stored with results: never renamed */
	const char *backend; /* "" where it has none to choose from */
	const char *summary;
	const char *file; /* its descriptor, "--worker" for one of the command line */
	bool of_user;	  /* not one of the tree's */
	const char
		*broken; /* what is wrong with its descriptor, which has no more to say; or NULL */
	enum framework_kind kind;
	const char *adapter;	     /* for `worker --adapter`; Python: a name, or a path of ours */
	struct word_list command;    /* FRAMEWORK_COMMAND */
	struct word_list modules;    /* Python: what must be importable, "torch" */
	struct word_list pythons;    /* Python: versions with a lock, "3.12", the best first */
	const char *library_pattern; /* glob below the environment's folder */
	const char *distribution;    /* the package's name in its dist-info, for the version */
	const char *lock;	     /* stem of its lock files; NULL: the environment's own name */
	bool shared_environment;     /* a backend that lives in NAME[@ENV] with others */
	struct word_list variables;  /* NAME=VALUE for its workers, placeholders not replaced */
	bool any_option;	     /* its worker judges options */
	struct framework_option *options;
	size_t option_count;
	struct framework_repair *repairs;
	size_t repair_count;
	unsigned stages, precisions; /* bit sets of what it can at best; a worker's word is final */
	unsigned loops;		     /* bit set of enum loop_mode */
	struct word_list native_input; /* formats of data sets that its own loader reads */
	const char *native_input_by;   /* the framework that has this library's loader; or NULL */
	bool fed_by_script;	       /* that loader is a script of the worker's */
	unsigned devices;	       /* beside the CPU: bit set of enum framework_device */
	bool reads_onnx;	       /* can be given an ONNX file as it is */
	bool harness_only;	       /* null and fake: never part of "all" */
	bool computes_nothing;	       /* null: exempt from the gate and from ranking */
	bool floor;		       /* what the others are related to: listed first */
};

struct registry {
	struct arena arena;
	struct framework *rows; /* the floor, others by name, harness-only ones, the user's */
	size_t count;
	const char **notes; /* for the user: files that are ignored or wrong, and why */
	size_t note_count;
};

/*
 * Reads the descriptors of the tree (SHARE/descriptors) and the user's
 * ($XDG_CONFIG_HOME/prony/frameworks). A mistake in one of the user's, or a name that is taken, is
 * noted with file, line, key and remedy, and its framework is a row that is `broken`; one of the
 * tree's is PRONY_BAD_INPUT, and PRONY_MISSING when they are not there. With root's rights a file
 * of somebody else is not read, and noted. After success registry_release.
 */
enum prony_status registry_load(struct registry *registry, struct error *err);
void registry_release(struct registry *registry);

/* Adds one for `prony run --worker NAME=COMMAND`: the command's words are split like a shell's,
 * with quotes and backslashes; no shell runs. PRONY_USAGE. */
enum prony_status registry_add_worker(struct registry *registry, const char *text,
				      struct error *err);

/* The row of a name and backend; with backend NULL the first of that name. NULL when unknown. */
const struct framework *framework_find(const struct registry *registry, const char *name,
				       const char *backend);
/* For "did you mean"; NULL when none is near. */
const char *framework_nearest(const struct registry *registry, const char *name);
/* "NAME[@ENV][:BACKEND]". */
const char *framework_spelling(const struct framework *framework, const char *environment,
			       struct arena *arena);
/* The option of that name, NULL when it has none. */
const struct framework_option *framework_option(const struct framework *framework, const char *name,
						size_t length);
/* What the worker gets of a cell's options ("a,b"); in the arena. */
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

/* Where a framework was found. Strings are in the caller's arena. */
struct framework_place {
	const struct framework *framework;
	const char *environment; /* "" or the ENV of NAME@ENV */
	enum framework_origin origin;
	const char *library;	 /* kind library */
	const char *interpreter; /* kind Python */
	const char *program;	 /* kind command: the first word, as it is started */
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

/* The names of the environments NAME@ENV that are installed; *names is in the arena. */
size_t framework_environments(const struct framework *framework, struct arena *arena,
			      const char *const **names);

/*
 * argv and environment rows (both NULL-terminated, in the arena) that start the worker of a located
 * framework. `self` is our own executable; `options` are the cell's, "a,b" (may be NULL): their
 * variables are set, and the adapters null and fake get them as words.
 */
enum prony_status framework_worker_command(const struct framework_place *place, const char *self,
					   const char *options, int threads, struct arena *arena,
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
 * Installs a framework from its lock file into DATA/frameworks/NAME[@ENV][=BACKEND]: downloads by
 * hash, unpacks or makes a virtual environment, repairs it, tries it, and only then renames it into
 * place. Idempotent and quick when the same lock is already installed. PRONY_MISSING says which
 * interpreter version is needed, where it was looked for and what to do. One installation of a
 * framework at a time: a second one waits. NAME@ENV needs a lock of that name; PRONY_MISSING says
 * where it is looked for.
 */
enum prony_status framework_install(const struct framework *framework, const char *environment,
				    const struct install_sink *sink, struct error *err);

/* One of several to install, and how it ended. */
struct install_item {
	const struct framework *framework;
	const char *environment;
	enum prony_status status;
	struct error error; /* ERROR_INIT; PRONY_INTERRUPTED for one that was not begun has none */
};

/*
 * Installs several as framework_install does, at most `jobs` at a time and no more than the disk
 * has room for while they are installed; those that share an environment one after the other. What
 * each downloads and takes is said before the first begins. Goes on after a failure; the status is
 * that of the first that failed, PRONY_INTERRUPTED when the user stopped it. Lines of several
 * threads reach the sink one at a time, from any of them.
 */
enum prony_status framework_install_many(struct install_item *items, size_t count, size_t jobs,
					 const struct install_sink *sink);

/*
 * Takes an environment that the user has for a framework instead of installing one: `path` is an
 * interpreter, a library, or the folder of either. It is tried, and remembered in place of an
 * installation; nothing of it is changed, by framework_remove neither.
 */
enum prony_status framework_own(const struct framework *framework, const char *environment,
				const char *path, const struct install_sink *sink,
				struct error *err);

/* What is wrong with what is installed (its interpreter does not run, a file is gone or has another
 * size), in the arena; NULL when nothing is, or nothing is installed. Imports nothing. */
const char *framework_fault(const struct framework_place *place, struct arena *arena);

/* Removes what framework_install made; PRONY_MISSING when there is nothing. */
enum prony_status framework_remove(const struct framework *framework, const char *environment,
				   struct error *err);

#endif
