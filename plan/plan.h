/* Expands a spec into cells, locates their frameworks through the registry, and states why some
 * cannot run. */
#ifndef PRONY_PLAN_PLAN_H
#define PRONY_PLAN_PLAN_H

#include <jansson.h>

#include "base/digest.h"
#include "base/gpu.h"
#include "bundle/recipe.h"
#include "bundle/target.h"
#include "cell/cell.h"
#include "cell/until.h"
#include "datasets/converted.h"
#include "zoo/source.h"

struct framework;
struct framework_location;
struct registry;
struct spec;

struct plan_cell {
	struct cell cell;
	char key[CELL_KEY_BYTES], hash[CELL_HASH_BYTES];
	enum cell_status status; /* CELL_PENDING if it can be tried; else why not */
	const char *reason;	 /* set with every other status */
	bool explicit_;		 /* requested by name: exit code 1 if not ok */
	bool ungated; /* computes nothing (null, or the stage load): no gate, no loss check */
	const struct network *network;
	const struct dataset *dataset;
	const char *data_folder;    /* NULL for synthetic */
	struct converted converted; /* input native: files that its loader reads instead of the data
				       set's; without a format: the data set's own. In the arena */
	const struct framework_location *location; /* frameworks/registry.h */
	struct recipe recipe;
	struct target target;
	int64_t steps, warm_up_steps; /* fixed; 0 and -1 = by the protocol */
	int64_t epoch_steps; /* of a block of the window, which is an epoch; 0 = by the protocol */
	int64_t epoch_ns;    /* a longer epoch gets fewer steps; 0 = all of them */
	struct until until;  /* of a training until a target: all members set; steps is the most */
	int repeat;	     /* its number of processes; 0 = that of the study */
	int64_t loss_every;  /* steps between readings of the loss, from the first step on; 0 = none
			      */
	const char *origin;  /* origin of its framework: "installed" */
	const char *
		gpu; /* "NVIDIA H200, sm_90, driver 580.159.04"; NULL: another device, or unknown */
	const char *worker_name; /* the name required in hello; NULL: any */
	const char *const *worker_argv, *const *worker_environment; /* NULL unless pending */
	const char *launcher; /* MPI's, which must start its ranks: "mpirun"; NULL */
	/* With cold caches: the folder in worker_environment that an empty one replaces. */
	const char *cache_folder;
};

struct plan {
	struct arena arena;
	struct plan_cell *cells;
	size_t count;
	const char **notes; /* for the user: "mnist is not here: mnist-3000 is used" */
	size_t note_count;
	struct network_file **files; /* ONNX models that cells name; freed with the plan */
	size_t file_count;
};

struct plan_settings {
	const struct registry *registry; /* must outlive the plan */
	const char *data_folder;	 /* --data */
	const char *self;		 /* prony's executable */
	int cores; /* allowed physical cores of this machine, for device "cpu" */
	/* Finds the GPUs of this machine, if there is a cell on "cuda:N" (the driver may need
	 * seconds); NULL: none */
	const struct gpus *(*gpus)(void);
	int64_t memory_bytes;  /* most memory of a cell; 0 = the machine's physical memory */
	const char *memory_of; /* a name for that limit, for messages; may be NULL */
	/* Checks the options of frameworks that leave them to their worker, if that is possible
	 * without a worker; may be NULL. */
	enum prony_status (*judge_options)(const struct framework *framework, const char *options,
					   struct error *why);
};

/* Makes the plan: the product of the axes without the excludes, in a stable order (that of
 * cell/axes.h, the framework innermost), without duplicates. "all" = every framework that is not
 * harness-only, native first; the cells of a framework that is not here are missing, with the
 * reason. A data set that a suite or a network names is replaced by its sample if only the sample
 * is here. A network may be the path of an ONNX file; a broken file is PRONY_BAD_INPUT. Unknown
 * words (reported with origin, nearest name and the list), too many cells and no cells:
 * PRONY_BAD_INPUT when caused by a suite, PRONY_USAGE when caused by the command line. The plan
 * borrows the spec's strings: release it before the spec. */
enum prony_status plan_expand(const struct spec *spec, const struct plan_settings *settings,
			      struct plan *out, struct error *err);
void plan_release(struct plan *plan);

/* Adds to the digest everything that determines the code of a cell's framework and is known before
 * it starts (frameworks/identity.h). False if prony did not install its files. */
bool plan_cell_identity(const struct plan_cell *cell, struct digest *digest);

/* Returns what would run, for --dry-run: array of objects, new reference. */
json_t *plan_to_json(const struct plan *plan);

#endif
