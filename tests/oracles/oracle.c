/*
 * The reference interpreter on tensors from a file, for comparison with other programs:
 *
 *     oracle NETWORK BATCH [HEIGHT WIDTH] describe         parameters and states, as JSON
 *     oracle NETWORK BATCH [HEIGHT WIDTH] run IN OUT       IN and OUT are safetensors files
 *
 * IN holds all parameters and states (F32), and the inputs and labels by name. OUT gets, in F64,
 * `evaluation` (logits in evaluation mode), `logits` and `loss` (training mode, without dropout),
 * `gradient/NAME` of each parameter and `state/NAME` after the step. HEIGHT and WIDTH stand for
 * those of the network's own input; of a sequence HEIGHT is the length.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/safetensors.h"
#include "parity/reference.h"
#include "zoo/zoo.h"

struct oracle {
	struct arena arena;
	struct graph graph;
	struct reference reference;
	struct tensor_set in, out; /* `in` lies in the mapped file */
	struct mapped_file map;
};

static json_t *describe_value(const struct value *value)
{
	json_t *dims = json_array();

	for (int i = 0; i < value->shape.rank; i++)
		json_array_append_new(dims, json_integer(value->shape.dims[i]));
	return json_pack("{s:s, s:o, s:b}", "name", value->name, "shape", dims, "trained",
			 value->kind == VALUE_PARAMETER);
}

static void describe(const struct graph *graph)
{
	json_t *weights = json_array();

	for (int i = 0; i < graph->value_count; i++) {
		enum value_kind kind = graph->values[i].kind;

		if (kind == VALUE_PARAMETER || kind == VALUE_STATE)
			json_array_append_new(weights, describe_value(&graph->values[i]));
	}
	json_dumpf(weights, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(weights);
}

static enum prony_status keep(struct oracle *o, const char *prefix, const char *name, int value,
			      struct error *err)
{
	struct tensor *kept = &o->out.tensors[o->out.count];
	const char *full = arena_printf(&o->arena, "%s%s", prefix, name);
	const struct shape *shape = &o->graph.values[value].shape;
	enum prony_status status = tensor_new(&o->arena, full, DTYPE_F64, shape, kept, err);
	int64_t count;

	if (status != PRONY_OK)
		return status;
	memcpy(kept->data, reference_value(&o->reference, value, &count),
	       (size_t)tensor_bytes(kept));
	o->out.count++;
	return PRONY_OK;
}

/* What a training step leaves: gradients, running statistics. */
static enum prony_status keep_step(struct oracle *o, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < o->graph.value_count; i++) {
		const struct value *value = &o->graph.values[i];

		if (value->kind == VALUE_STATE)
			status = keep(o, "state/", value->name, i, err);
		if (value->kind == VALUE_PARAMETER && value->gradient != VALUE_NONE)
			status = keep(o, "gradient/", value->name, value->gradient, err);
	}
	return status;
}

static enum prony_status run_steps(struct oracle *o, struct error *err)
{
	struct recipe recipe;
	enum prony_status status;

	recipe_defaults(&recipe);
	recipe.dropout = false;
	recipe.stage = STAGE_FORWARD;
	status = reference_step(&o->reference, &recipe, false, err);
	if (status == PRONY_OK)
		status = keep(o, "", "evaluation", o->graph.logits, err);
	recipe.stage = STAGE_FORWARD_BACKWARD;
	if (status == PRONY_OK)
		status = reference_step(&o->reference, &recipe, false, err);
	if (status == PRONY_OK)
		status = keep(o, "", "logits", o->graph.logits, err);
	if (status == PRONY_OK)
		status = keep(o, "", "loss", o->graph.loss, err);
	if (status == PRONY_OK)
		status = keep_step(o, err);
	return status;
}

/* The tensors of IN that have the names of these values. */
static enum prony_status find_tensors(struct oracle *o, const int *values, int count,
				      const struct tensor **out, struct error *err)
{
	struct tensor *found = arena_array(&o->arena, (size_t)count, sizeof(*found));

	for (int i = 0; i < count; i++) {
		const char *name = o->graph.values[values[i]].name;
		const struct tensor *tensor = tensor_find(&o->in, name);

		if (!tensor)
			return error_set(err, PRONY_BAD_INPUT, "`%s` is missing", name);
		found[i] = *tensor;
	}
	*out = found;
	return PRONY_OK;
}

static enum prony_status run(struct oracle *o, const char *in, const char *out, struct error *err)
{
	int inputs[NETWORK_MAX_INPUTS], labels[1];
	struct batch batch = {.input_count = graph_inputs(&o->graph, inputs, NETWORK_MAX_INPUTS),
			      .label_count = graph_labels(&o->graph, labels, 1)};
	enum prony_status status = graph_add_backward(&o->graph, err);

	if (status == PRONY_OK)
		status = safetensors_map_file(in, &o->arena, &o->map, &o->in, err);
	if (status == PRONY_OK)
		status = find_tensors(o, inputs, batch.input_count, &batch.inputs, err);
	if (status == PRONY_OK)
		status = find_tensors(o, labels, batch.label_count, &batch.labels, err);
	if (status != PRONY_OK)
		return status;
	o->out.tensors =
		arena_array(&o->arena, (size_t)o->graph.value_count + 3, sizeof(*o->out.tensors));
	status = reference_init(&o->reference, &o->graph, &o->in, err);
	if (status == PRONY_OK)
		status = reference_feed(&o->reference, batch, err);
	if (status == PRONY_OK)
		status = run_steps(o, err);
	if (status == PRONY_OK)
		status = safetensors_write_file(&o->out, out, err);
	return status;
}

static enum prony_status resize(struct network *network, int64_t height, int64_t width,
				struct error *err)
{
	if (network->tokens_max > 0)
		return network_at_length(network, height, network, err);
	network->inputs[0].dims[1] = height;
	network->inputs[0].dims[2] = width;
	return PRONY_OK;
}

static int usage(void)
{
	fputs("usage: oracle NETWORK BATCH [HEIGHT WIDTH] (describe | run IN OUT)\n", stderr);
	return 64;
}

int main(int argc, char **argv)
{
	const struct network *found = argc > 3 ? zoo_find(argv[1], NULL) : NULL;
	struct oracle o = {.map = {.bytes = NULL}};
	struct error err = ERROR_INIT;
	enum prony_status status = PRONY_OK;
	struct network network;
	int at = 3;

	if (found == NULL)
		return usage();
	network = *found;
	if (strcmp(argv[at], "describe") != 0 && strcmp(argv[at], "run") != 0) {
		if (argc < 6)
			return usage();
		status = resize(&network, strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10),
				&err);
		at = 5;
	}
	if (strcmp(argv[at], "run") == 0 && argc != at + 3)
		return usage();
	arena_init(&o.arena, 0);
	if (status == PRONY_OK)
		status = zoo_build(&network, strtoll(argv[2], NULL, 10), &o.graph, &err);
	if (status == PRONY_OK && strcmp(argv[at], "run") == 0)
		status = run(&o, argv[at + 1], argv[at + 2], &err);
	else if (status == PRONY_OK)
		describe(&o.graph);
	if (status != PRONY_OK)
		fprintf(stderr, "oracle: %s\n", err.text);
	reference_release(&o.reference);
	graph_release(&o.graph);
	safetensors_unmap(&o.map);
	arena_release(&o.arena);
	return status == PRONY_OK ? 0 : 1;
}
