/* A network in a TensorFlow session: graph, variables, resident batches and step. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_MODEL_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_MODEL_H

#include "adapters/tensorflow/tf_session.h"
#include "adapters/tensorflow/tf_weights.h"
#include "bundle/recipe.h"
#include "graph/batch.h"

/* A result of a step that is kept for reading: a resource and its read. */
struct tf_result {
	struct tf_output handle, read;
};

/* An input or the labels. */
struct tf_part {
	int value; /* value of the graph */
	enum tf_type type;
	struct shape shape;	/* in memory order */
	struct tf_output slots; /* the resources of all slots, as one tensor */
};

/* The batches of all slots are resources. A step reads the slot in the resource `index` and
 * advances `index` to the next slot, so that rotating slots need no second run and no feed. */
struct tf_slots {
	int count, next;		    /* slot of the next step */
	struct tf_output index;		    /* the resource */
	struct tf_part *parts;		    /* parts of a batch: inputs, then labels */
	int part_count;			    /* without labels if none are read */
	struct tf_output *placeholders;	    /* slot number, then the parts */
	struct tf_tensor **fed;		    /* array for the fed tensors */
	struct tf_operation *feed, *choose; /* fills a slot; sets index */
};

/* Data for profiling: tf_profile.h. */
#define TF_PROFILE_THREADS 64
struct tf_profile {
	const struct tf_buffer *options;      /* of a step; NULL: no profiling */
	struct tf_buffer *metadata;	      /* output of the last step */
	uint32_t threads[TF_PROFILE_THREADS]; /* TensorFlow's thread numbers so far */
	int thread_count;
};

struct tf_model {
	const struct tf_api *api;
	const struct graph *graph;
	struct arena arena;
	struct tf_translation t;
	struct tf_weights weights;
	struct tf_slots slots;
	struct tf_result logits, loss;
	struct tf_operation *step;
	struct tf_range updates; /* operations that update weights */
	struct tf_profile profile;
	struct tf_session *session; /* borrowed, like its graph */
	bool train, backward;	    /* from the stage */
	int ranks;		    /* whose gradients a step averages */
};

/* Builds the network in the session's graph and fills the variables. `graph` gets prony's backward
 * pass if the stage needs it. On failure the model is partly built; release it. */
enum prony_status tf_model_init(struct tf_model *model, const struct tf_api *api,
				const struct tf_running *running, struct graph *graph,
				const struct recipe *recipe, bool last,
				const struct tensor_set *weights, struct error *err);
void tf_model_release(struct tf_model *model);

/* Stores a batch in a slot; it must fit the graph. */
enum prony_status tf_model_feed(struct tf_model *model, int slot, struct batch batch,
				struct error *err);
enum prony_status tf_model_step(struct tf_model *model, int slot, struct error *err);

/* Fetches variables (see struct tf_variable) or results into tensors that the caller deletes. */
enum prony_status tf_model_fetch(struct tf_model *model, const struct tf_output *what, int count,
				 struct tf_tensor **out, struct error *err);

/* tf_update.c: the last operations of a training step. */

/* Appends the update of every trained variable to `targets`, and the operations that initialise the
 * optimiser's variables to `start`. Each gets at most 3 entries per variable. */
void tf_updates_build(struct tf_model *model, const struct recipe *recipe,
		      struct tf_operation **targets, int *target_count, struct tf_operation **start,
		      int *start_count);
/* Appends the updates of the running statistics in a training stage. */
void tf_statistics_build(struct tf_model *model, struct tf_operation **targets, int *count);
/* Appends the operations that keep the gradients for reading: stage forward-backward. */
void tf_gradients_build(struct tf_model *model, struct tf_operation **targets, int *count);

#endif
