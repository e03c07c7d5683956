/* A network in MXNet: its arrays, its executors, and the prepared calls of a step. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_MODEL_H
#define PRONY_ADAPTERS_MXNET_MXNET_MODEL_H

#include "adapters/mxnet/mxnet_recurrent.h"
#include "adapters/mxnet/mxnet_symbol.h"
#include "bundle/recipe.h"

/* The number of weights per fused update call: the default of MXNet's own optimisers
 * (MXNET_OPTIMIZER_AGGREGATION_SIZE). */
#define MX_UPDATE_GROUP 4
#define MX_UPDATE_ARRAYS 4 /* weight, gradient, optimiser states */
#define MX_UPDATE_OPTIONS 7

/* In evaluation each executor keeps reordered copies of the weights. Up to this size every slot has
 * its own executor on the slot's batch, and a step copies nothing. Above it there is one executor,
 * and a step first copies the slot's batch to it, as MXNet's own Module does: a user's process does
 * not hold eight copies of the weights, and networks of that size compute for milliseconds on an
 * image that is copied in about ten microseconds. Recurrent layers also use one executor, because
 * their operator keeps the data for its backward pass outside the memory that executors share. */
#define MX_SHARED_WEIGHTS_BYTES (16 << 20)

struct mx_ranks;

struct mx_parameter {
	const struct value *value; /* of the graph, borrowed */
	/* NULL if not needed: gradient, state, and AdamW's second state */
	struct mx_ndarray *weight, *gradient, *state, *square;
	const struct mx_recurrent *layer; /* its vectors hold weight and gradient; else NULL */
};

/* A running statistic or a constant. */
struct mx_constant {
	const struct value *value; /* of the graph, borrowed */
	struct mx_ndarray *array;
};

/* A resident batch. */
struct mx_slot {
	struct mx_ndarray **inputs, **labels; /* as many as the model has */
};

/* A bound symbol and its heads. */
struct mx_program {
	struct mx_executor *executor;
	struct mx_ndarray *logits, *objective; /* objective NULL without a loss */
};

/* One call of an operator, with prepared arguments, so that a step allocates nothing here. */
struct mx_call {
	const struct mx_operator *operator;
	int input_count, output_count, option_count;
	struct mx_ndarray *inputs[MX_UPDATE_GROUP * MX_UPDATE_ARRAYS + 1];
	struct mx_ndarray *outputs[MX_UPDATE_GROUP];
	const char *keys[MX_UPDATE_OPTIONS], *values[MX_UPDATE_OPTIONS];
	char text[MX_UPDATE_OPTIONS][24 * MX_UPDATE_GROUP];
};

struct mx_model {
	const struct mx_api *api;
	struct arena arena; /* for all lists below */
	const struct graph *graph;
	struct mx_symbol *symbol;
	struct mx_parameter *parameters; /* in graph order */
	int parameter_count;
	struct mx_recurrent *recurrents; /* in graph order */
	int recurrent_count;
	struct mx_constant *states; /* in graph order */
	int state_count;
	struct mx_slot *slots;
	struct mx_program *programs; /* one per slot, or one for all slots */
	int slot_count, program_count;
	int input_count, label_count; /* no labels without a loss */
	struct mx_slot bound;	      /* arrays of the single program; else NULL */
	struct mx_call *copies;	      /* copy each slot's inputs and labels to `bound`; else NULL */
	struct mx_call *updates;
	int update_count;
	double beta1, beta2, epsilon; /* of AdamW */
	int64_t adamw_updates;	      /* so far */
	struct mx_ndarray *scale;     /* of AdamW's gradients; NULL: another optimiser */
	const struct mx_ranks *ranks; /* that sum the gradients; NULL: one rank */
	bool loss, train;
};

/* Builds the network for the recipe's stage. `ranks` is borrowed until the release. On failure the
 * model is half-built and must be released. */
enum prony_status mx_model_init(struct mx_model *model, const struct mx_api *api,
				const struct graph *graph, const struct recipe *recipe,
				const struct tensor_set *weights, struct mx_ranks *ranks,
				struct error *err);
void mx_model_release(struct mx_model *model);

/* The program that runs a slot's batch. */
struct mx_program *mx_model_program(const struct mx_model *model, int slot);

/* Creates programs on the model's arrays, as many as the model has. Their list is valid until the
 * model is released. If `shared` is not NULL, its programs lend them their memory and must be
 * released after them. *out is set on failure too, to the programs created so far. */
enum prony_status mx_model_bind(struct mx_model *model, struct mx_executor *shared,
				struct mx_program **out, struct error *err);
/* Frees executors and heads, but not the list. */
void mx_programs_release(const struct mx_api *api, const struct mx_program *programs, int count);

/* Issues a step on a slot; returns before the step is finished. */
enum prony_status mx_model_step(struct mx_model *model, int slot, struct error *err);

/* Issues a prepared call. This function and those below are defined in mxnet_update.c. */
enum prony_status mx_call_run(const struct mx_api *api, struct mx_call *call, struct error *err);

/* Prepares the update calls of a model whose parameters exist. */
enum prony_status mx_updates_init(struct mx_model *model, const struct recipe *recipe,
				  struct error *err);

/* Issues the updates; returns before they are finished. */
enum prony_status mx_updates_run(struct mx_model *model, struct error *err);

#endif
