/* The interface of an adapter for a framework with a C interface: one table, one session per
 * process. The harness owns the loop and the clock; adapters never read time. Adapters are listed
 * in adapters/registry.c. */
#ifndef PRONY_ADAPTERS_ADAPTER_H
#define PRONY_ADAPTERS_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/profile.h"
#include "base/error.h"
#include "bundle/loader_data.h"
#include "bundle/recipe.h"
#include "bundle/safetensors.h"
#include "bundle/target.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "graph/model_file.h"
#include "graph/tensor.h"

#define ADAPTER_ABI 2
#define ADAPTER_VERSIONS_MAX 8
#define ADAPTER_DEVICES_MAX 16

/* What a framework reports about itself. */
struct probe {
	char version[64];
	struct {
		char name[32], version[160];
	} libraries[ADAPTER_VERSIONS_MAX]; /* its math libraries: {"onednn", "3.2.0"} */
	int library_count;
	char devices[ADAPTER_DEVICES_MAX][TARGET_WORD_BYTES]; /* found here: {"cpu", "cuda:0"} */
	int device_count;
	char collectives[160]; /* more exactly than adapter.collectives, with its version; or "" */
	unsigned stages, precisions; /* bit sets: 1u << STAGE_TRAIN, 1u << PRECISION_BF16 */
	/* The instructions that it says it uses; if it does not say, how it chooses and among
	 * which. */
	char instruction_set[160];
};

/* The settings that took effect, read back from the framework if possible, and compared with the
 * recipe. */
struct effective {
	char device[64];
	enum precision precision;
	int threads;
	uint32_t mxcsr; /* MXCSR of the stepping thread: FTZ and DAZ are the framework's own default
			 */
	char settings[512]; /* switches that change speed, "NAME=value;..." */
};

/* What the framework built. */
struct built {
	int64_t parameters; /* trained elements, counted on the framework's own arrays; -1 = unknown
			     */
	int64_t macs; /* of one forward batch, counted on the framework's own graph; -1 = unknown */
	char notes[512]; /* what it fused or folded, if known */
};

enum readout {
	READ_LOGITS,  /* of the last step: batch x classes */
	READ_LOSS,    /* of the last step: scalar, before its update */
	READ_WEIGHTS, /* current parameters, in graph order and prony's layouts (OIHW, [out, in]) */
	READ_GRADIENTS, /* of the last step, same order */
	READ_STATE,	/* running statistics */
	READ_OUTPUTS, /* of the last step on a model file run unchanged; not through adapter.read */
	READ_COUNT
};
const char *readout_name(enum readout what);
bool readout_parse(const char *word, enum readout *out);

struct session {
	const char *library;  /* path to load; NULL for built-in adapters */
	const char *option;   /* private options of null and fake: "crash@step=3"; "" = none */
	struct target target; /* set before probe */
	bool profiled;	      /* profiled steps will be requested; set before probe */
	/* The file that the weights given to build lie in, for engines that can read it themselves;
	 * borrowed until close, NULL: there is none. */
	const struct mapped_file *weights_file;
	size_t message_max; /* of an ONNX file that an engine gets, in bytes; 0: protobuf's limit */
	void *private_data; /* private_size bytes, zeroed before open */
};

/* For engines that run a user's ONNX file unchanged, forward. These functions replace those of the
 * same name in struct adapter; probe, open, step, sync and close are called as usual. */
struct adapter_files {
	/* The file is borrowed until close. */
	enum prony_status (*build)(struct session *s, const struct model_file *model,
				   const struct recipe *recipe, struct built *built,
				   struct error *err);
	/*
	 * `inputs`: all inputs of the model, in its order, types and shapes; borrowed until close.
	 */
	enum prony_status (*feed)(struct session *s, int slot, const struct tensor *inputs,
				  struct error *err);
	/* All outputs of the last step in the model's order. The list is in `arena`; the data are
	 * borrowed until the next step. */
	enum prony_status (*outputs)(struct session *s, struct arena *arena, struct tensor_set *out,
				     struct error *err);
};

/* For adapters whose framework reports what a step consists of, or that can time its parts. Steps
 * without profiling must cost the same with it and without. Data that `begin` needs (a model's
 * bytes) are kept only if session.profiled is set. */
struct adapter_profile {
	/* Starts profiling the next `steps` steps. `now_ns` is the harness's clock. Preparation,
	 * such as a second compilation, is done here, not in the steps. */
	enum prony_status (*begin)(struct session *s, int64_t steps, int64_t (*now_ns)(void),
				   struct error *err);
	/* Called after each of these steps and its sync, outside its time; may be NULL. */
	enum prony_status (*stepped)(struct session *s, int64_t step, struct profile_log *log,
				     struct error *err);
	/* Stops, and adds the events that `stepped` has not added. instants: begin and end of each
	 * step. */
	enum prony_status (*end)(struct session *s, const int64_t *instants, int64_t steps,
				 struct profile_log *log, struct error *err);
};

/* For adapters whose framework has its own data loader (input native). The stage load calls only
 * open, next and close, without build. */
struct adapter_loader {
	/* Pure and cheap: PRONY_OK, or PRONY_UNSUPPORTED with the reason. */
	enum prony_status (*supports)(const struct loader_data *data, const struct graph *graph,
				      const struct recipe *recipe, struct error *why);
	/* Starts the loader, after build; it may begin to load. Data and graph are borrowed until
	 * close. */
	enum prony_status (*open)(struct session *s, const struct loader_data *data,
				  const struct graph *graph, const struct recipe *recipe,
				  struct error *err);
	/* Returns when the next batch is available; batches never end. */
	enum prony_status (*next)(struct session *s, struct error *err);
	/* Makes the batch of the last `next` resident in a slot, like feed. */
	enum prony_status (*take)(struct session *s, int slot, struct error *err);
};

struct adapter {
	uint32_t abi;
	const char *name, *summary; /* name is stored with results, so it is never renamed */
	const char *absent_reason;  /* set: listed but never run */
	/* What sums the gradients of several ranks, "mpi"; NULL: it runs one rank only. Its step
	 * then averages the gradients over all ranks before the update. */
	const char *collectives;
	/*
	 * Option words that a target may have, comma-separated; "" = none; NULL: probe checks them.
	 */
	const char *options;
	/* Optional, when `options` is NULL: checks comma-separated words before there is a session.
	 * PRONY_UNSUPPORTED names the wrong one. */
	enum prony_status (*judge_options)(const char *words, struct error *why);
	size_t private_size;

	/* Applies the target, loads the library and reports about it, devices included. Called
	 * first, once. */
	enum prony_status (*probe)(struct session *s, struct probe *found, struct error *err);

	/* Has no side effects and is cheap: PRONY_OK, or PRONY_UNSUPPORTED with the reason, which
	 * names all unsupported operators. */
	enum prony_status (*supports)(const struct target *target, const struct graph *graph,
				      const struct recipe *recipe, struct error *why);

	/* Takes the device from the target and the threads from the recipe. */
	enum prony_status (*open)(struct session *s, const struct recipe *recipe,
				  struct effective *effective, struct error *err);

	/* Translates and compiles the graph for the recipe's stage and loads the weights
	 * (parameters and states by name). The graph is forward only; an adapter that needs prony's
	 * backward pass calls graph_add_backward (the graph is mutable and borrowed until close).
	 * Weights are borrowed during the call. */
	enum prony_status (*build)(struct session *s, struct graph *graph,
				   const struct recipe *recipe, const struct tensor_set *weights,
				   struct built *built, struct error *err);

	/* Makes a batch resident in a slot (0 to slots-1): a tensor per input and label of the
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
	 * data the caller prepared. The data lie in the image for the parent: they are
	 * uninitialised and aligned only for their dtype. */
	enum prony_status (*read)(struct session *s, enum readout what, struct tensor_set *out,
				  struct error *err);

	/* Called exactly once, even after a failed open. */
	void (*close)(struct session *s);

	const struct adapter_files *files;     /* optional */
	const struct adapter_profile *profile; /* optional */
	const char *no_profile;		       /* why there is none; optional */
	const struct adapter_loader *loader;   /* optional */

	/* Optional; only the fake adapter has it, to test the parent. It may falsify the reply to a
	 * verb before it is sent, and the `count` step records (pairs of begin and end) of a run.
	 */
	void (*tamper)(struct session *s, const char *verb, json_t *reply, int64_t *instants,
		       int64_t count);
};

/* NULL-terminated. Adapters that were not built are listed with absent_reason. */
extern const struct adapter *const adapter_registry[];
const struct adapter *adapter_find(const char *name);

/* PRONY_INTERNAL when a required member is missing: checked at worker start and by a test. */
enum prony_status adapter_check(const struct adapter *adapter, struct error *err);

#endif
