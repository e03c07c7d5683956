/* A network in a session of TensorFlow: its graph, its variables, its resident batches, its step.
 */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_MODEL_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_MODEL_H

#include "adapters/tensorflow/tf_session.h"
#include "adapters/tensorflow/tf_weights.h"
#include "bundle/recipe.h"
#include "graph/batch.h"

/* Something that a step leaves behind to be read: a resource with its read. */
struct tf_result {
	struct tf_output handle, read;
};

/* An input or the labels. */
struct tf_part {
	int value; /* of the graph */
	enum tf_type type;
	struct shape shape;	/* as it lies */
	struct tf_output slots; /* the resources of all slots, as one tensor */
};

/*
 * The batches of all slots are resources. A step reads the one that the resource `index` names and
 * moves `index` on to the next, so that slots in rotation cost no second run and no feed.
 */
struct tf_slots {
	int count, next;		    /* the slot that the next step will read */
	struct tf_output index;		    /* the resource */
	struct tf_part *parts;		    /* of a batch: the inputs, then the labels */
	int part_count;			    /* no labels where none are read */
	struct tf_output *placeholders;	    /* of a slot's number, then of the parts */
	struct tf_tensor **fed;		    /* room for what feeds them */
	struct tf_operation *feed, *choose; /* put a batch into a slot; set index */
};

/* While steps are looked at: tf_profile.h. */
#define TF_PROFILE_THREADS 64
struct tf_profile {
	const struct tf_buffer *options;      /* of a step; NULL: nobody looks */
	struct tf_buffer *metadata;	      /* what the last step said */
	uint32_t threads[TF_PROFILE_THREADS]; /* TensorFlow's numbers of those that were met */
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
	bool train, backward;	    /* stages */
};

/*
 * Builds the network in the session's graph (the graph gets our backward pass where the stage has
 * one) and fills the variables. On failure the model is half-built: release it.
 */
enum prony_status tf_model_init(struct tf_model *model, const struct tf_api *api,
				const struct tf_running *running, struct graph *graph,
				const struct recipe *recipe, bool last,
				const struct tensor_set *weights, struct error *err);
void tf_model_release(struct tf_model *model);

/* Makes a batch that fits the graph resident in a slot. */
enum prony_status tf_model_feed(struct tf_model *model, int slot, struct batch batch,
				struct error *err);
enum prony_status tf_model_step(struct tf_model *model, int slot, struct error *err);

/* The elements of a variable (see struct tf_variable) or result into a tensor to delete. */
enum prony_status tf_model_fetch(struct tf_model *model, const struct tf_output *what, int count,
				 struct tf_tensor **out, struct error *err);

/* tf_update.c: what a training step ends with. */

/* Appends the update of every trained variable to `targets`, and to `start` what gives the
 * optimiser's own variables their first value. Each adds at most 3 entries a variable. */
void tf_updates_build(struct tf_model *model, const struct recipe *recipe,
		      struct tf_operation **targets, int *target_count, struct tf_operation **start,
		      int *start_count);
/* Appends what moves the running statistics of a training stage. */
void tf_statistics_build(struct tf_model *model, struct tf_operation **targets, int *count);
/* Appends what keeps the gradients for reading: stage forward-backward. */
void tf_gradients_build(struct tf_model *model, struct tf_operation **targets, int *count);

#endif
