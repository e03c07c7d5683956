/* The table of built-in networks, and how their graphs are built. */
#include "zoo/zoo.h"

#include <string.h>

#include "base/nearest.h"
#include "zoo/networks_internal.h"

/* clang-format off */
const struct network *const zoo_networks[] = {
	&zoo_mlp,
	&zoo_lenet,
	&zoo_cnn,
	&zoo_irnn,
	&zoo_lstm,
	&zoo_tagger,
	&zoo_alexnet,
	&zoo_alexnet_lrn,
	&zoo_alexnet_tf,
	&zoo_vgg16,
	&zoo_googlenet,
	&zoo_googlenet_lrn,
	&zoo_inception3,
	&zoo_resnet50,
	&zoo_resnet152,
	&zoo_densenet161,
	&zoo_nasnet,
	&zoo_vit_b16,
	&zoo_alexnet_cifar,
	&zoo_resnet50_cifar,
	&zoo_googlenet_cifar,
	&zoo_vgg16_cifar,
	&zoo_vit_small,
	&zoo_unet,
	&zoo_gpt2,
	&zoo_gpt2_bytes,
	&zoo_bert_base,
	&zoo_bert_tiny,
	&zoo_llama_small,
	&zoo_llama_tiny,
};
/* clang-format on */
const size_t zoo_network_count = sizeof(zoo_networks) / sizeof(zoo_networks[0]);

const struct network *zoo_find(const char *name, const char **nearest)
{
	const char *names[sizeof(zoo_networks) / sizeof(zoo_networks[0])];

	for (size_t i = 0; i < zoo_network_count; i++) {
		if (strcmp(zoo_networks[i]->name, name) == 0)
			return zoo_networks[i];
		names[i] = zoo_networks[i]->name;
	}
	if (nearest != NULL)
		*nearest = word_nearest(name, names, zoo_network_count);
	return NULL;
}

bool network_takes_data_sets(const struct network *network)
{
	return network->input_count == 1 && network->inputs[0].dtype == DTYPE_F32 &&
	       network->label_rank == 0 && !(network->labels_ignored > 0);
}

bool network_takes_text(const struct network *network)
{
	const struct network_input *input = &network->inputs[0];

	return network->input_count == 1 && input->dtype == DTYPE_I64 && input->rank == 1 &&
	       network->label_rank == 1 && network->label_dims[0] == input->dims[0] &&
	       !(network->labels_ignored > 0) && network->classes > UINT8_MAX;
}

double network_gate_rate(const struct network *network, enum optimiser optimiser)
{
	if ((optimiser == OPTIMISER_RMSPROP || optimiser == OPTIMISER_ADAMW) &&
	    network->gate_rmsprop_rate > 0)
		return network->gate_rmsprop_rate;
	return network->gate_learning_rate;
}

enum prony_status zoo_build_step(const struct network *network, int64_t batch, int64_t tokens,
				 enum stage stage, struct graph *out, struct error *err)
{
	struct graph graph;
	struct builder builder = {.graph = &graph, .error = ERROR_INIT};
	struct cache_step cache = {.rows = tokens + CACHE_ROOM, .positions = VALUE_NONE};
	bool cached = stage_has_cache(stage);
	const int64_t one = 1;
	enum prony_status status;
	int input, output;

	graph_init(&graph, network->name);
	input = build_input(&builder, "tokens", DTYPE_I64, batch, 1,
			    stage == STAGE_DECODE ? &one : &tokens);
	if (stage == STAGE_DECODE)
		cache.positions = build_input(&builder, "position", DTYPE_I64, batch, 0, NULL);
	output = network->step(&builder, input, cached ? &cache : NULL);
	status = build_finish(&builder, output, 1, cached ? &one : &tokens, err);
	if (status != PRONY_OK) {
		graph_release(&graph);
		return status;
	}
	*out = graph;
	return PRONY_OK;
}

enum prony_status zoo_build(const struct network *network, int64_t batch, struct graph *out,
			    struct error *err)
{
	struct graph graph;
	struct builder builder = {.graph = &graph, .error = ERROR_INIT};
	enum prony_status status;
	int input = VALUE_NONE, output;

	if (stage_has_cache(network->stage))
		return zoo_build_step(network, batch, network->tokens, network->stage, out, err);
	graph_init(&graph, network->name);
	for (int i = 0; i < network->input_count; i++) {
		const struct network_input *in = &network->inputs[i];
		int value = build_input(&builder, in->name, in->dtype, batch, in->rank, in->dims);

		input = i == 0 ? value : input;
	}
	output = network->layers(&builder, input);
	if (network->half_squares)
		status = build_finish_half_squares(&builder, output, err);
	else
		status = build_finish(&builder, output, network->label_rank, network->label_dims,
				      err);
	if (status != PRONY_OK) {
		graph_release(&graph);
		return status;
	}
	*out = graph;
	return PRONY_OK;
}

/* A table of which only rows are gathered is not read as a whole. */
static bool is_read_whole(const struct graph *graph, int parameter)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		for (int k = 0; k < node->input_count; k++)
			if (node->inputs[k] == parameter && (node->op != OP_GATHER || k > 0))
				return true;
	}
	return false;
}

/* Of the caches, the rows of the prompt and of the step's token. */
static void count_reads(const struct graph *graph, struct network *network)
{
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		int64_t elements = shape_elements(&value->shape);

		if (value->kind == VALUE_PARAMETER && is_read_whole(graph, i))
			network->weights_read += elements;
		if (value->kind == VALUE_STATE && graph_state_present(graph, i) != VALUE_NONE)
			network->caches_read +=
				elements / (network->tokens + CACHE_ROOM) * (network->tokens + 1);
	}
}

enum prony_status network_at_length(const struct network *network, int64_t tokens,
				    struct network *out, struct error *err)
{
	struct network other = *network;
	struct graph graph;
	enum prony_status status;

	for (int i = 0; i < other.input_count; i++)
		other.inputs[i].dims[0] = tokens;
	other.label_dims[0] = tokens;
	other.tokens = tokens;
	status = zoo_build(&other, 1, &graph, err);
	if (status != PRONY_OK)
		return status;
	other.macs = graph_macs(&graph);
	other.weights_read = other.caches_read = 0;
	if (other.stage == STAGE_DECODE)
		count_reads(&graph, &other);
	graph_release(&graph);
	*out = other;
	return PRONY_OK;
}

enum prony_status network_at_stage(const struct network *network, enum stage stage,
				   struct network *out, struct error *err)
{
	struct network other = *network;
	int64_t room = stage == STAGE_DECODE ? CACHE_ROOM : 0;

	other.stage = stage;
	if (!network->step)
		return error_set(err, PRONY_UNSUPPORTED,
				 "stage %s: %.80s is no language model with key-value caches",
				 stage_name(stage), network->name);
	if (network->tokens + room > network->tokens_max)
		return error_set(err, PRONY_UNSUPPORTED,
				 "stage %s: a prompt of %lld tokens and %lld more are above the "
				 "%lld positions of %.80s; use --sequence %lld",
				 stage_name(stage), (long long)network->tokens, (long long)room,
				 (long long)network->tokens_max, network->name,
				 (long long)(network->tokens_max - room));
	return network_at_length(&other, network->tokens, out, err);
}
