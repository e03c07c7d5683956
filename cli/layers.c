/* `prony layers`: runs each distinct layer of a network as a network of its own. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/run_options.h"
#include "graph/extract.h"
#include "onnx/onnx.h"
#include "report/layers.h"
#include "zoo/source.h"

/* No other dimension of the networks is a multiple of it, so that the batch is told apart. */
#define LAYER_BATCH 31
#define SEED 1

/* The distinct layers of a network. */
struct split {
	const struct network *network;
	struct graph graph;
	struct layer *layers; /* by forward_count */
	int layer_count;
	struct distinct {
		char digest[65];
		int layer, times;
	} * distinct;
	int distinct_count;
	int left_out; /* layers that no file can have */
	char *folder;
	struct strbuf words; /* for -n: the network and the files */
};

static bool is_attention(const struct node *nodes, const struct layer *layer)
{
	bool softmax = false;

	for (int i = 0; i < layer->count; i++)
		softmax |= nodes[layer->nodes[i]].op == OP_SOFTMAX;
	return softmax && layer->count >= 3;
}

/* Adds "Conv3x3-BN-Relu.20x24x24": operators and the shape of the output without the batch. */
static void name_layer(const struct split *split, const struct layer *layer, struct strbuf *out)
{
	const struct shape *shape = &split->graph.values[layer->output].shape;
	const struct node *nodes = split->graph.nodes, *first = &nodes[layer->nodes[0]];
	const char *separator = ".";

	if (is_attention(nodes, layer)) {
		strbuf_puts(out, "Attention");
	} else {
		for (int i = 0; i < layer->count; i++) {
			enum op op = nodes[layer->nodes[i]].op;
			strbuf_printf(out, "%s%s", i ? "-" : "",
				      op == OP_BATCH_NORM ? "BN" : operator_name(op));
			if (i == 0 && (op == OP_CONV || op == OP_CONV_TRANSPOSE)) {
				shape = &split->graph.values[first->inputs[1]].shape;
				strbuf_printf(out, "%lldx%lld", (long long)shape->dims[2],
					      (long long)shape->dims[3]);
			}
		}
		shape = &split->graph.values[layer->output].shape;
	}
	for (int i = 1; i < shape->rank; i++, separator = "x")
		strbuf_printf(out, "%s%lld", separator, (long long)shape->dims[i]);
}

static enum prony_status write_layer(struct split *split, int number, const struct graph *graph,
				     struct error *err)
{
	const struct distinct *distinct = &split->distinct[number];
	struct arena arena;
	struct tensor_set weights;
	struct strbuf name;
	void *bytes = NULL;
	size_t length = 0;

	strbuf_init(&name, 0);
	strbuf_printf(&name, LAYER_NAME_FORMAT, split->network->name, number + 1, distinct->times);
	name_layer(split, &split->layers[distinct->layer], &name);
	strbuf_puts(&name, ".onnx");
	char *path = path_join(split->folder, strbuf_text(&name));
	arena_init(&arena, 0);
	enum prony_status status = graph_initial_weights(graph, SEED, &arena, &weights, err);
	if (status == PRONY_OK)
		status = onnx_export(graph, &weights, &bytes, &length, err);
	if (status == PRONY_OK)
		status = file_write_atomic(path, bytes, length, err);
	if (status == PRONY_OK)
		strbuf_printf(&split->words, ",%s", path);
	arena_release(&arena);
	strbuf_release(&name);
	free(bytes);
	free(path);
	return status;
}

/* Counts a layer, or adds it as a new one. */
static void count_layer(struct split *split, int layer)
{
	struct graph graph;
	struct error why = ERROR_INIT;
	struct distinct *found = split->distinct;
	char digest[65];

	if (graph_extract(&split->graph, &split->layers[layer], &graph, &why) != PRONY_OK) {
		split->left_out++;
		return;
	}
	graph_digest(&graph, digest, &why);
	graph_release(&graph);
	while (found < split->distinct + split->distinct_count && strcmp(found->digest, digest))
		found++;
	if (found == split->distinct + split->distinct_count) {
		*found = (struct distinct){.layer = layer};
		memcpy(found->digest, digest, sizeof digest);
		split->distinct_count++;
	}
	found->times++;
}

static enum prony_status write_layers(struct split *split, struct error *err)
{
	enum prony_status status = PRONY_OK;
	char *home = path_cache_home();

	split->folder = memory_printf("%s/layers", home);
	free(home);
	if (strchr(split->folder, ','))
		return error_set(err, PRONY_USAGE,
				 "%s: networks are separated by commas, so the folder's name must "
				 "have none; set XDG_CACHE_HOME to another folder",
				 split->folder);
	status = directory_make(split->folder, err);
	for (int i = 0; status == PRONY_OK && i < split->distinct_count; i++) {
		struct graph graph;
		status = graph_extract(&split->graph, &split->layers[split->distinct[i].layer],
				       &graph, err);
		if (status != PRONY_OK)
			break;
		status = write_layer(split, i, &graph, err);
		graph_release(&graph);
	}
	return status;
}

static enum prony_status split_network(struct split *split, struct error *err)
{
	enum prony_status status = network_build(split->network, LAYER_BATCH, &split->graph, err);

	if (status != PRONY_OK)
		return status;
	size_t room = (size_t)split->graph.forward_count + 1;
	split->layers = memory_alloc(room * sizeof *split->layers);
	split->distinct = memory_alloc(room * sizeof *split->distinct);
	split->layer_count = graph_layers(&split->graph, split->layers);
	for (int i = 0; i < split->layer_count; i++)
		count_layer(split, i);
	status = write_layers(split, err);
	free(split->layers);
	free(split->distinct);
	free(split->folder);
	graph_release(&split->graph);
	return status;
}

/* The network of the options; layers have no loss, so they only run forward. */
static enum prony_status find_network(const struct run_options *options, const struct network **out,
				      struct error *err)
{
	const struct option_list *networks = &options->axes[AXIS_NETWORK];
	const struct option_list *stages = &options->axes[AXIS_STAGE];
	const char *name = networks->count > 0 ? networks->values[0] : axes[AXIS_NETWORK].initial;

	if (networks->count > 1 || strchr(name, ','))
		return error_set(err, PRONY_USAGE, "--networks: prony layers takes one network");
	if (stages->count > 1 || (stages->count == 1 && strcmp(stages->values[0], "forward") != 0))
		return error_set(err, PRONY_USAGE,
				 "--stages: layers have no loss, so they run forward only; leave "
				 "it out");
	*out = zoo_find(name, NULL);
	return *out ? PRONY_OK
		    : error_set(err, PRONY_USAGE,
				"--networks: \"%.80s\" is no built-in network; see prony list "
				"networks",
				name);
}

/* The layers have the length of the run. */
static enum prony_status take_length(const struct run_options *options, struct split *split,
				     struct network *shorter, struct error *err)
{
	const struct option_list *lengths = &options->axes[AXIS_SEQUENCE];
	int64_t length = lengths->count > 0 ? strtoll(lengths->values[0], NULL, 10) : 0;

	if (lengths->count > 1 || (lengths->count == 1 && strpbrk(lengths->values[0], ",.*+")))
		return error_set(err, PRONY_USAGE, "--sequence: prony layers takes one length");
	if (length <= 0 || length > split->network->tokens_max)
		return PRONY_OK; /* plan/ refuses what is wrong */
	enum prony_status status = network_at_length(split->network, length, shorter, err);
	split->network = shorter;
	return status;
}

int command_layers(const struct cli_call *call, struct error *err)
{
	struct run_options *options = &run_options;
	struct split split = {.network = NULL};
	struct network shorter;
	int code = 0;

	if (find_network(options, &split.network, err) != PRONY_OK ||
	    take_length(options, &split, &shorter, err) != PRONY_OK)
		return 0;
	strbuf_init(&split.words, 0);
	strbuf_puts(&split.words, split.network->name);
	if (split_network(&split, err) == PRONY_OK) {
		options->axes[AXIS_NETWORK] = (struct option_list){{strbuf_text(&split.words)}, 1};
		options->axes[AXIS_STAGE] = (struct option_list){{"forward"}, 1};
		if (split.left_out > 0)
			cli_say("%d of %d layers are left out, also of the sum: their input or "
				"result is not of the batch\n",
				split.left_out, split.layer_count);
		code = command_run(call, err);
	}
	strbuf_release(&split.words);
	return code;
}
