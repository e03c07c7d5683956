/* A network in MXNet: its arrays, one executor per slot, the prepared update calls. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_MODEL_H
#define PRONY_ADAPTERS_MXNET_MXNET_MODEL_H

#include "adapters/mxnet/mxnet_symbol.h"
#include "networks/recipe.h"

/* Weights that one fused update call takes: the default of MXNet's own optimisers
 * (MXNET_OPTIMIZER_AGGREGATION_SIZE). */
#define MX_UPDATE_GROUP 4
#define MX_UPDATE_ARRAYS 3 /* weight, gradient, optimiser state */
#define MX_UPDATE_OPTIONS 6

struct mx_parameter {
	const struct value *value;		      /* of the graph, borrowed */
	struct mx_ndarray *weight, *gradient, *state; /* gradient and state NULL where not wanted */
};

struct mx_slot {
	struct mx_ndarray *input, *label;
	struct mx_executor *executor;
	struct mx_ndarray *logits, *probabilities; /* heads of the executor */
};

/* One call of an update operator, its arguments prepared so that a step allocates nothing here. */
struct mx_update {
	const struct mx_operator *operator;
	int input_count, output_count, option_count;
	struct mx_ndarray *inputs[MX_UPDATE_GROUP * MX_UPDATE_ARRAYS];
	struct mx_ndarray *outputs[MX_UPDATE_GROUP];
	const char *keys[MX_UPDATE_OPTIONS], *values[MX_UPDATE_OPTIONS];
	char text[MX_UPDATE_OPTIONS][24 * MX_UPDATE_GROUP];
};

struct mx_model {
	const struct mx_api *api;
	const struct graph *graph;
	struct mx_symbol *symbol;
	struct mx_parameter *parameters; /* in graph order */
	int parameter_count;
	struct mx_slot *slots;
	int slot_count;
	struct mx_update *updates;
	int update_count;
	bool loss, train;
};

/* Builds everything for the recipe's stage; on failure the model is half-built: release it. */
enum prony_status mx_model_init(struct mx_model *model, const struct mx_api *api,
				const struct graph *graph, const struct recipe *recipe,
				const struct tensor_set *weights, struct error *err);
void mx_model_release(struct mx_model *model);

/* Prepares the update calls of a model whose parameters exist. Defined in mxnet_update.c. */
enum prony_status mx_updates_init(struct mx_model *model, const struct recipe *recipe,
				  struct error *err);

/* Issues the updates; returns before they are done. */
enum prony_status mx_updates_run(struct mx_model *model, struct error *err);

#endif
