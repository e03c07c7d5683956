/* Expands a spec into cells, asks the registry, and says why some cannot run. */
#ifndef PRONY_PLAN_PLAN_H
#define PRONY_PLAN_PLAN_H

#include <jansson.h>

#include "base/digest.h"
#include "bundle/recipe.h"
#include "bundle/target.h"
#include "cell/cell.h"
#include "datasets/converted.h"
#include "zoo/source.h"

struct framework;
struct framework_place;
struct registry;
struct spec;

struct plan_cell {
	struct cell cell;
	char key[CELL_KEY_BYTES], hash[CELL_HASH_BYTES];
	enum cell_status status; /* CELL_PENDING when it can be tried; else why not */
	const char *reason;	 /* set with every other status */
	bool explicit_;		 /* asked for by name: not ok means exit code 1 */
	bool ungated; /* computes nothing (null, or the stage load): no gate, no loss check */
	const struct network *network;
	const struct dataset *dataset;
	const char *data_folder;    /* NULL for synthetic */
	struct converted converted; /* input native: what its loader reads in the place of these
				       files; without a format: they themselves. In the arena */
	const struct framework_place *place; /* frameworks/registry.h */
	struct recipe recipe;
	struct target target;
	int64_t steps, warm_up_steps; /* fixed; 0 and -1 = by the protocol */
	int64_t epoch_steps; /* of a block of the window, which is an epoch; 0 = by the protocol */
	int64_t epoch_ns;    /* one that would take longer has fewer steps; 0 = all of them */
	int64_t loss_every;  /* the loss is read after the first and each so many steps; 0 = not so
			      */
	const char *origin;  /* where its framework comes from: "installed" */
	const char *worker_name; /* that it has to say in hello; NULL: whatever it says */
	const char *const *worker_argv, *const *worker_environment; /* NULL unless pending */
};

struct plan {
	struct arena arena;
	struct plan_cell *cells;
	size_t count;
	const char **notes; /* for the user: "mnist is not here: mnist-sample is used" */
	size_t note_count;
	struct network_file **files; /* ONNX models that cells name; freed with the plan */
	size_t file_count;
};

struct plan_settings {
	const struct registry *registry; /* has to outlive the plan */
	const char *data_folder;	 /* --data */
	const char *self;		 /* our executable */
	int cores;	       /* allowed physical cores of this machine, for device "cpu" */
	int gpus;	       /* of this machine, for devices "cuda:N" */
	int64_t memory_bytes;  /* a cell may take; 0 = the machine's physical memory */
	const char *memory_of; /* what that is, for messages; may be NULL */
	/* Of frameworks that leave options to their worker, where that can be told without one; may
	 * be NULL. */
	enum prony_status (*judge_options)(const struct framework *framework, const char *options,
					   struct error *why);
};

/*
 * The product of the axes less the excludes, in a stable order (that of cell/axes.h, the framework
 * innermost), duplicates dropped. "all" = every
 * framework that is not harness-only, native first; one that is not here has missing cells with its
 * reason. A data set that a suite or a network names is replaced by its sample where only that is
 * here. A network may be the path of an ONNX file; a file that is broken is PRONY_BAD_INPUT. For
 * words that are not known (with origin, nearest name and the list), too many cells and none:
 * PRONY_BAD_INPUT when a suite said so, PRONY_USAGE when the command line did. The plan borrows the
 * spec's strings: release it first.
 */
enum prony_status plan_expand(const struct spec *spec, const struct plan_settings *settings,
			      struct plan *out, struct error *err);
void plan_release(struct plan *plan);

/*
 * Adds what decides, before it is started, what a cell's framework computes
 * (frameworks/identity.h). False where its files are not ours to vouch for.
 */
bool plan_cell_identity(const struct plan_cell *cell, struct digest *digest);

/* What would run, for --dry-run: array of objects, new reference. */
json_t *plan_to_json(const struct plan *plan);

#endif
