/*
 * The adapter of a framework with a C interface: one table, one session per process. The harness
 * owns loop and clock; adapters never read time. Registered in adapters/registry.c.
 */
#ifndef PRONY_ADAPTERS_ADAPTER_H
#define PRONY_ADAPTERS_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/profile.h"
#include "base/error.h"
#include "bundle/loader_data.h"
#include "bundle/recipe.h"
#include "bundle/target.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "graph/model_file.h"
#include "graph/tensor.h"

#define ADAPTER_ABI 2
#define ADAPTER_VERSIONS_MAX 8
#define ADAPTER_DEVICES_MAX 16

/* What a framework says of itself. */
struct probe {
	char version[64];
	struct {
		char name[32], version[160];
	} libraries[ADAPTER_VERSIONS_MAX]; /* its math libraries: {"onednn", "3.2.0"} */
	int library_count;
	char devices[ADAPTER_DEVICES_MAX][TARGET_WORD_BYTES]; /* found here: {"cpu", "cuda:0"} */
	int device_count;
	unsigned stages, precisions; /* bit sets: 1u << STAGE_TRAIN, 1u << PRECISION_BF16 */
	/* That it says it uses; of one that does not say, how it chooses, and out of what. */
	char instruction_set[160];
};

/* What really took effect, read back from the framework where it can be; compared with the recipe.
 */
struct effective {
	char device[64];
	enum precision precision;
	int threads;
	uint32_t mxcsr; /* of the thread that steps: FTZ and DAZ are the framework's own default */
	char settings[512]; /* switches that change speed, "NAME=value;..." */
};

/* What the framework built. */
struct built {
	int64_t parameters; /* elements that it trains, counted on its own arrays; -1 = cannot say
			     */
	int64_t macs;	    /* of one forward batch, counted on its own graph; -1 = cannot say */
	char notes[512];    /* what it fused or folded, where that is known */
};

enum readout {
	READ_LOGITS,	/* of the last step: batch x classes */
	READ_LOSS,	/* of the last step: scalar, before its update */
	READ_WEIGHTS,	/* parameters now, in graph order and our layouts (OIHW, [out, in]) */
	READ_GRADIENTS, /* of the last step, same order */
	READ_STATE,	/* running statistics */
	READ_OUTPUTS,	/* of the last step on a file as it is; not through adapter.read */
	READ_COUNT
};
const char *readout_name(enum readout what);
bool readout_parse(const char *word, enum readout *out);

struct session {
	const char *library;  /* path to load; NULL for built-in adapters */
	const char *option;   /* private knobs of null and fake: "crash@step=3"; "" = none */
	struct target target; /* set before probe */
	bool profiled;	      /* steps will be asked for that are profiled; set before probe */
	void *private_data;   /* private_size bytes, zeroed before open */
};

/*
 * A user's ONNX file as it is, forward: of engines that read such files. The functions of the same
 * name in struct adapter are not called then; probe, open, step, sync and close are.
 */
struct adapter_files {
	/* The file is borrowed until close. */
	enum prony_status (*build)(struct session *s, const struct model_file *model,
				   const struct recipe *recipe, struct built *built,
				   struct error *err);
	/* `inputs`: as many tensors as the model has, in its order, types and shapes; borrowed
	 * until close. */
	enum prony_status (*feed)(struct session *s, int slot, const struct tensor *inputs,
				  struct error *err);
	/* All outputs of the last step in the model's order; the list is in `arena`, the data are
	 * borrowed until the next step. */
	enum prony_status (*outputs)(struct session *s, struct arena *arena, struct tensor_set *out,
				     struct error *err);
};

/*
 * What a step consists of: of adapters whose framework says it, or which can time its parts. Steps
 * that nobody asked to profile must cost the same with it and without. What has to be kept for
 * `begin` (a model's bytes) is kept only where session.profiled is set.
 */
struct adapter_profile {
	/* From here on `steps` steps, and no others, are profiled. `now_ns` is the harness' clock.
	 * Work that is needed for it, a second compilation say, is done here, not in the steps. */
	enum prony_status (*begin)(struct session *s, int64_t steps, int64_t (*now_ns)(void),
				   struct error *err);
	/* After each of these steps and its sync, outside of its time; may be NULL. */
	enum prony_status (*stepped)(struct session *s, int64_t step, struct profile_log *log,
				     struct error *err);
	/* Stops, and adds what was seen that `stepped` has not added. instants: begin and end of
	 * each step. */
	enum prony_status (*end)(struct session *s, const int64_t *instants, int64_t steps,
				 struct profile_log *log, struct error *err);
};

/*
 * The framework's own data loader (input native): of adapters whose framework has one. The stage
 * load calls open, next and close alone, and no build before.
 */
struct adapter_loader {
	/* Pure and cheap: PRONY_OK, or PRONY_UNSUPPORTED with the reason. */
	enum prony_status (*supports)(const struct loader_data *data, const struct graph *graph,
				      const struct recipe *recipe, struct error *why);
	/* Starts it, after build; it may load from here on. Data and graph are borrowed until
	 * close. */
	enum prony_status (*open)(struct session *s, const struct loader_data *data,
				  const struct graph *graph, const struct recipe *recipe,
				  struct error *err);
	/* Returns when the next batch is there; they never end. */
	enum prony_status (*next)(struct session *s, struct error *err);
	/* Makes the batch of the last `next` resident in a slot, as feed does. */
	enum prony_status (*take)(struct session *s, int slot, struct error *err);
};

struct adapter {
	uint32_t abi;
	const char *name, *summary; /* name is stored with results: never renamed */
	const char *absent_reason;  /* set: listed, never run */
	/* The words that a target may have, with commas between them; "" = none; NULL: probe judges
	 * them. */
	const char *options;
	/* Optional, where `options` is NULL: of words with commas between them, before there is a
	 * session. PRONY_UNSUPPORTED names the one that is wrong. */
	enum prony_status (*judge_options)(const char *words, struct error *why);
	size_t private_size;

	/* Applies the target, loads the library and reports, the devices too; called first and
	 * once. */
	enum prony_status (*probe)(struct session *s, struct probe *found, struct error *err);

	/* Pure and cheap: PRONY_OK, or PRONY_UNSUPPORTED with the reason (all operators at once).
	 */
	enum prony_status (*supports)(const struct graph *graph, const struct recipe *recipe,
				      struct error *why);

	/* Takes the target's device and the recipe's threads. */
	enum prony_status (*open)(struct session *s, const struct recipe *recipe,
				  struct effective *effective, struct error *err);

	/*
	 * Translates and compiles the graph for the recipe's stage and loads the weights
	 * (parameters and states by name). The graph is forward only; an adapter that wants our
	 * backward pass calls graph_add_backward itself (it owns a private copy: worker passes a
	 * mutable graph, borrowed until close). Weights are borrowed during the call.
	 */
	enum prony_status (*build)(struct session *s, struct graph *graph,
				   const struct recipe *recipe, const struct tensor_set *weights,
				   struct built *built, struct error *err);

	/* Makes a batch resident in slot 0..slots-1: a tensor for each input and label of the
	 * graph, in their order, types and shapes; no labels for forward without loss. Data are
	 * borrowed until close. Called before the timed region. */
	enum prony_status (*feed)(struct session *s, int slot, struct batch batch,
				  struct error *err);

	/* Issues one step of the recipe's stage on a slot; may return before it is finished. In
	 * steady state it allocates nothing and logs nothing. */
	enum prony_status (*step)(struct session *s, int slot, struct error *err);

	/* Returns when all issued work is finished. */
	enum prony_status (*sync)(struct session *s, struct error *err);

	/* Fills every element of tensors whose names, dtypes (F32; loss F64 or F32), shapes and
	 * data the caller set up. The data lie in what goes to the parent: they hold anything, and
	 * are aligned for their dtype, no more. */
	enum prony_status (*read)(struct session *s, enum readout what, struct tensor_set *out,
				  struct error *err);

	/* Called exactly once, even after a failed open. */
	void (*close)(struct session *s);

	const struct adapter_files *files;     /* optional */
	const struct adapter_profile *profile; /* optional */
	const char *no_profile;		       /* why there is none; optional */
	const struct adapter_loader *loader;   /* optional */

	/*
	 * Optional; only the fake adapter has it, to test the parent: may falsify the reply to a
	 * verb before it is sent, and the `count` step records (pairs of begin and end) of a run.
	 */
	void (*tamper)(struct session *s, const char *verb, json_t *reply, int64_t *instants,
		       int64_t count);
};

/* NULL-terminated; adapters that were not built stay in it with absent_reason. */
extern const struct adapter *const adapter_registry[];
const struct adapter *adapter_find(const char *name);

/* PRONY_INTERNAL when a required member is missing: checked at worker start and by a test. */
enum prony_status adapter_check(const struct adapter *adapter, struct error *err);

#endif
