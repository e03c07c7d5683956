/* The XLA adapter: probe, client, build, steps and readouts. */
#include "adapters/xla/xla.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/checks.h"
#include "adapters/probe.h"
#include "adapters/reasons.h"
#include "adapters/threads.h"
#include "adapters/xla/buffers.h"
#include "adapters/xla/compiled.h"
#include "adapters/xla/emit.h"
#include "adapters/xla/pjrt.h"
#include "base/parallel.h"

struct slot {
	struct pjrt_buffer **batch; /* in the order of the program's last arguments */
};

struct xla_state {
	struct pjrt pjrt;
	int threads; /* number that the client was started with */
	struct arena arena;
	const struct graph *graph; /* borrowed */
	struct program program;
	struct pjrt_executable *executable;
	char types[128]; /* types of the program's values */
	/* The buffers of the program. Those of the batch belong to a slot and are only set during a
	 * call. */
	struct pjrt_buffer **arguments, **results;
	int batch, batch_count; /* the batch's arguments: first, number */
	struct slot *slots;
	int slot_count;
	bool built, stepped;
};

#define XLA_PRECISIONS (1u << PRECISION_FP32 | 1u << PRECISION_BF16)

/* The client takes its number of threads from NPROC, otherwise from the processors that this
 * process is bound to. */
static enum prony_status start(struct xla_state *xla, int threads, struct error *err)
{
	char text[16];

	pjrt_stop(&xla->pjrt);
	snprintf(text, sizeof(text), "%d", threads);
	setenv("NPROC", text, 1);
	xla->threads = threads;
	return pjrt_start(&xla->pjrt, err);
}

/* Writes "cpu", "cuda:0", "tpu:0" and so on. */
static void name_device(const struct pjrt *pjrt, size_t index, char out[TARGET_WORD_BYTES])
{
	const char *platform = pjrt->platform;

	if (pjrt_is_cpu(pjrt))
		snprintf(out, TARGET_WORD_BYTES, "cpu");
	else
		snprintf(out, TARGET_WORD_BYTES, "%s:%zu",
			 strcmp(platform, "gpu") == 0 ? "cuda" : platform, index);
	for (char *at = out; *at; at++)
		*at = (char)tolower((unsigned char)*at);
}

static void describe(const struct pjrt *pjrt, struct probe *found)
{
	char text[160];

	*found = (struct probe){
		.stages = PROBE_TRAINER,
		.precisions = XLA_PRECISIONS,
	};
	snprintf(found->version, sizeof(found->version), "PJRT %d.%d", pjrt->api->version.major,
		 pjrt->api->version.minor);
	if (pjrt_attribute(pjrt, "stablehlo_current_version", text, sizeof(text)))
		probe_add_library(found, "stablehlo", text);
	if (pjrt_attribute(pjrt, "xla_version", text, sizeof(text)))
		probe_add_library(found, "xla", text);
	pjrt_platform_version(pjrt, text, sizeof(text));
	probe_add_library(found, pjrt->platform, text);
	probe_add_processor(found, "compiled for it by LLVM");
	for (size_t i = 0; i < pjrt->device_count && i < ADAPTER_DEVICES_MAX; i++)
		name_device(pjrt, i, found->devices[found->device_count++]);
}

static enum prony_status xla_probe(struct session *s, struct probe *found, struct error *err)
{
	struct xla_state *xla = s->private_data;
	enum prony_status status;

	status = probe_library_named(s, "xla", "a PJRT plug-in", err);
	if (status == PRONY_OK)
		status = pjrt_load(&xla->pjrt, s->library, err);
	if (status == PRONY_OK)
		status = start(xla, parallel_cores(), err);
	if (status == PRONY_OK)
		describe(&xla->pjrt, found);
	return status;
}

static enum prony_status xla_supports(const struct target *target, const struct graph *graph,
				      const struct recipe *recipe, struct error *why)
{
	(void)target;
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	reasons_add_training(&reasons, graph, recipe, XLA_PRECISIONS);
	reasons_add_types(&reasons, graph);
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		const struct attributes *a = &node->attributes;

		if (!emit_knows(node->op))
			reasons_add_operator(&reasons, node);
		/* select_and_scatter ignores dilation: for windows of 3 with dilation 2 over 8
		 * elements it expects 6 results instead of 4. */
		if (node->op == OP_MAX_POOL && recipe->stage != STAGE_FORWARD &&
		    (a->dilations[0] > 1 || a->dilations[1] > 1))
			reasons_add(
				&reasons,
				"MaxPool %s: XLA cannot compute the gradient of a dilated window",
				node->name);
	}
	return reasons_finish(&reasons, why);
}

static enum prony_status choose_device(struct session *s, char *kind, size_t kind_bytes,
				       struct error *err)
{
	struct xla_state *xla = s->private_data;
	char name[TARGET_WORD_BYTES];

	for (size_t i = 0; i < xla->pjrt.device_count; i++) {
		name_device(&xla->pjrt, i, name);
		if (strcmp(name, s->target.device) == 0)
			return pjrt_choose(&xla->pjrt, i, kind, kind_bytes, err);
	}
	name_device(&xla->pjrt, 0, name);
	return error_set(err, PRONY_UNSUPPORTED,
			 "there is no device %s: the plug-in has %zu devices, and the first is %s",
			 s->target.device, xla->pjrt.device_count, name);
}

static bool on_cpu(const struct session *s)
{
	return strcmp(s->target.device, "cpu") == 0;
}

static enum prony_status xla_open(struct session *s, const struct recipe *recipe,
				  struct effective *effective, struct error *err)
{
	struct xla_state *xla = s->private_data;
	const char *flags = getenv("XLA_FLAGS");
	char kind[64] = "";
	enum prony_status status = PRONY_OK;

	if (!xla->pjrt.client)
		return error_set(err, PRONY_INTERNAL, "open before probe");
	if (xla->threads != recipe->threads && on_cpu(s))
		status = start(xla, recipe->threads, err);
	if (status == PRONY_OK)
		status = choose_device(s, kind, sizeof(kind), err);
	if (status != PRONY_OK)
		return status;
	/* build reads the precision back from the compiled program and fails if it differs. */
	*effective = (struct effective){
		.precision = recipe->precision,
		.threads = on_cpu(s) ? threads_count("XLAEigen") : recipe->threads,
		.mxcsr = threads_mxcsr(),
	};
	snprintf(effective->device, sizeof(effective->device), "%s", s->target.device);
	snprintf(effective->settings, sizeof(effective->settings),
		 "NPROC=%d;XLA_FLAGS=%s;device_kind=%s;layout=nhwc;donation=%s;"
		 "products=%s;rmsprop_epsilon=inside%s",
		 recipe->threads, flags ? flags : "", kind,
		 recipe->stage == STAGE_TRAIN ? "weights,moments,statistics" : "statistics",
		 on_cpu(s) ? "default" : "highest",
		 recipe->precision == PRECISION_BF16 ? ";low_precision=activations and copies of "
						       "weights"
						     : "");
	return PRONY_OK;
}

/* Fills an argument with its value before the first step. */
static enum prony_status fill_argument(struct xla_state *xla, const struct recipe *recipe,
				       const struct tensor_set *weights, int i, struct error *err)
{
	const struct port *port = &xla->program.arguments[i];
	const uint64_t random[2] = {recipe->seed, 0};
	const struct tensor *tensor = NULL;
	enum prony_status status;

	switch (port->role) {
	case ROLE_PARAMETER:
	case ROLE_STATE:
		status = check_weight(weights, &xla->graph->values[port->value], &tensor, err);
		return status == PRONY_OK
			       ? buffer_from_floats(&xla->pjrt, tensor->data, &tensor->shape, port,
						    &xla->arguments[i], err)
			       : status;
	case ROLE_MOMENT:
	case ROLE_SQUARE:
	case ROLE_UPDATES:
		return buffer_of_zeros(&xla->pjrt, port, &xla->arguments[i], err);
	case ROLE_RANDOM:
		return pjrt_upload(&xla->pjrt, random, PJRT_U64, &port->hlo.shape,
				   &xla->arguments[i], err);
	case ROLE_INPUT:
	case ROLE_LABELS:
		return PRONY_OK; /* belongs to a slot */
	default:
		return error_set(err, PRONY_INTERNAL, "argument %d has no role", i);
	}
}

static void describe_built(const struct xla_state *xla, struct built *built)
{
	*built = (struct built){.macs = xla->program.macs};
	for (int i = 0; i < xla->program.argument_count; i++)
		if (xla->program.arguments[i].role == ROLE_PARAMETER)
			built->parameters += pjrt_elements(&xla->pjrt, xla->arguments[i]);
	snprintf(built->notes, sizeof(built->notes),
		 "one program of %zu KiB of StableHLO; %d of %d arguments are overwritten%s; %s",
		 xla->program.bytes / 1024, xla->program.kept, xla->program.argument_count,
		 xla->program.kept > 0 ? "; running variance divided by n" : "", xla->types);
}

static enum prony_status compile(struct session *s, struct graph *graph,
				 const struct recipe *recipe, struct error *err)
{
	struct xla_state *xla = s->private_data;
	enum prony_status status =
		emit_program(graph, recipe, !on_cpu(s), &xla->arena, &xla->program, err);

	if (status == PRONY_OK)
		status = pjrt_compile(&xla->pjrt, xla->program.text, xla->program.bytes,
				      &xla->executable, err);
	free(xla->program.text);
	xla->program.text = NULL;
	if (status == PRONY_OK)
		status = compiled_check(&xla->pjrt, xla->executable, recipe->precision, xla->types,
					sizeof(xla->types), err);
	return status;
}

static void make_slots(struct xla_state *xla, int count)
{
	const struct program *program = &xla->program;

	while (program->arguments[xla->batch].role != ROLE_INPUT)
		xla->batch++;
	xla->batch_count = program->argument_count - xla->batch;
	xla->slots = arena_array(&xla->arena, (size_t)count, sizeof(*xla->slots));
	for (int i = 0; i < count; i++)
		xla->slots[i].batch = arena_array(&xla->arena, (size_t)xla->batch_count,
						  sizeof(*xla->slots[i].batch));
	xla->slot_count = count;
}

static enum prony_status xla_build(struct session *s, struct graph *graph,
				   const struct recipe *recipe, const struct tensor_set *weights,
				   struct built *built, struct error *err)
{
	struct xla_state *xla = s->private_data;
	enum prony_status status = xla_supports(&s->target, graph, recipe, err);

	if (status != PRONY_OK)
		return status;
	xla->graph = graph;
	arena_init(&xla->arena, 0);
	xla->built = true;
	status = compile(s, graph, recipe, err);
	if (status != PRONY_OK)
		return status;
	xla->arguments = arena_array(&xla->arena, (size_t)xla->program.argument_count,
				     sizeof(*xla->arguments));
	xla->results =
		arena_array(&xla->arena, (size_t)xla->program.result_count, sizeof(*xla->results));
	make_slots(xla, recipe->slots);
	for (int i = 0; status == PRONY_OK && i < xla->program.argument_count; i++)
		status = fill_argument(xla, recipe, weights, i, err);
	if (status == PRONY_OK)
		describe_built(xla, built);
	return status;
}

static enum prony_status xla_feed(struct session *s, int slot, struct batch batch,
				  struct error *err)
{
	struct xla_state *xla = s->private_data;
	bool with_labels = xla->batch_count > batch.input_count;
	enum prony_status status = check_slot(slot, xla->slot_count, err);

	if (status == PRONY_OK)
		status = check_batch(xla->graph, batch, with_labels, err);
	if (status == PRONY_OK && with_labels && batch.labels[0].shape.rank == 1)
		status = check_no_ignored(batch, err);
	for (int i = 0; status == PRONY_OK && i < xla->batch_count; i++) {
		const struct tensor *tensor = i < batch.input_count
						      ? &batch.inputs[i]
						      : &batch.labels[i - batch.input_count];
		struct pjrt_buffer *buffer = NULL;

		status = buffer_from_tensor(&xla->pjrt, tensor,
					    &xla->program.arguments[xla->batch + i], &buffer, err);
		if (status != PRONY_OK)
			return status;
		pjrt_free(&xla->pjrt, xla->slots[slot].batch[i]);
		xla->slots[slot].batch[i] = buffer;
	}
	return status;
}

static enum prony_status xla_step(struct session *s, int slot, struct error *err)
{
	struct xla_state *xla = s->private_data;
	const struct program *program = &xla->program;
	size_t bytes = (size_t)xla->batch_count * sizeof(*xla->arguments);
	enum prony_status status;

	if (slot < 0 || slot >= xla->slot_count || !xla->slots[slot].batch[0])
		return error_set(err, PRONY_INTERNAL, "slot %d was not fed", slot);
	for (int i = program->kept; i < program->result_count; i++)
		pjrt_free(&xla->pjrt, xla->results[i]);
	memset(xla->results, 0, (size_t)program->result_count * sizeof(*xla->results));
	memcpy(&xla->arguments[xla->batch], xla->slots[slot].batch, bytes);
	status = pjrt_execute(&xla->pjrt, xla->executable, xla->arguments,
			      (size_t)program->argument_count, xla->results, err);
	memset(&xla->arguments[xla->batch], 0, bytes);
	if (status != PRONY_OK)
		return status;
	/* The results took over the memory of these arguments; only their handles are freed. */
	for (int i = 0; i < program->kept; i++) {
		pjrt_free(&xla->pjrt, xla->arguments[i]);
		xla->arguments[i] = xla->results[i];
		xla->results[i] = NULL;
	}
	xla->stepped = true;
	return PRONY_OK;
}

/* All results of a run become ready together, and steps run in order. */
static enum prony_status xla_sync(struct session *s, struct error *err)
{
	struct xla_state *xla = s->private_data;

	if (!xla->stepped)
		return PRONY_OK;
	return pjrt_wait(&xla->pjrt, xla->results[xla->program.result_count - 1], err);
}

/* Returns the buffer with that role for the value of that name (NULL: any), and its port. */
static struct pjrt_buffer *find_buffer(const struct xla_state *xla, enum role role,
				       const char *name, const struct port **port)
{
	const struct program *program = &xla->program;

	for (int i = 0; i < program->argument_count + program->result_count; i++) {
		bool argument = i < program->argument_count;
		int at = argument ? i : i - program->argument_count;
		const struct port *found =
			argument ? &program->arguments[at] : &program->results[at];
		struct pjrt_buffer *buffer = argument ? xla->arguments[at] : xla->results[at];

		if (buffer && found->role == role &&
		    (!name || strcmp(xla->graph->values[found->value].name, name) == 0)) {
			*port = found;
			return buffer;
		}
	}
	return NULL;
}

static enum prony_status read_tensor(const struct xla_state *xla, enum role role, const char *name,
				     const struct tensor *out, struct error *err)
{
	const struct port *port = NULL;
	struct pjrt_buffer *buffer = find_buffer(xla, role, name, &port);
	float loss;
	enum prony_status status;

	if (!buffer)
		return error_set(err, PRONY_UNSUPPORTED, "the program does not compute %s",
				 name ? name : "this readout");
	if (role == ROLE_LOSS && out->dtype == DTYPE_F64) {
		status = pjrt_download(&xla->pjrt, buffer, 0, &loss, sizeof(loss), err);
		if (status == PRONY_OK)
			*(double *)out->data = (double)loss;
		return status;
	}
	status = check_read_shape(out, &xla->graph->values[port->value].shape, err);
	if (status != PRONY_OK)
		return status;
	return buffer_to_floats(&xla->pjrt, buffer, port, &out->shape, out->data, err);
}

static enum prony_status xla_read(struct session *s, enum readout what, struct tensor_set *out,
				  struct error *err)
{
	static const enum role roles[READ_COUNT] = {
		[READ_LOGITS] = ROLE_LOGITS,	  [READ_LOSS] = ROLE_LOSS,
		[READ_WEIGHTS] = ROLE_PARAMETER,  [READ_STATE] = ROLE_STATE,
		[READ_GRADIENTS] = ROLE_GRADIENT,
	};
	struct xla_state *xla = s->private_data;
	bool named = what != READ_LOGITS && what != READ_LOSS;
	enum prony_status status = check_readout(what, xla->stepped, out, err);

	for (size_t i = 0; status == PRONY_OK && i < out->count; i++)
		status = read_tensor(xla, roles[what], named ? out->tensors[i].name : NULL,
				     &out->tensors[i], err);
	return status;
}

static void xla_close(struct session *s)
{
	struct xla_state *xla = s->private_data;

	if (!xla->pjrt.api)
		return;
	if (xla->stepped)
		xla_sync(s, NULL);
	for (int i = 0; xla->arguments && i < xla->program.argument_count; i++)
		pjrt_free(&xla->pjrt, xla->arguments[i]);
	for (int i = 0; xla->results && i < xla->program.result_count; i++)
		pjrt_free(&xla->pjrt, xla->results[i]);
	for (int i = 0; i < xla->slot_count; i++)
		for (int k = 0; k < xla->batch_count; k++)
			pjrt_free(&xla->pjrt, xla->slots[i].batch[k]);
	pjrt_executable_free(&xla->pjrt, xla->executable);
	pjrt_stop(&xla->pjrt);
	if (xla->built)
		arena_release(&xla->arena);
	*xla = (struct xla_state){.threads = 0};
}

const struct adapter adapter_xla = {
	.abi = ADAPTER_ABI,
	.name = "xla",
	.summary = "XLA through the PJRT C interface, any plug-in",
	.private_size = sizeof(struct xla_state),
	.options = "",
	.probe = xla_probe,
	.supports = xla_supports,
	.open = xla_open,
	.build = xla_build,
	.feed = xla_feed,
	.step = xla_step,
	.sync = xla_sync,
	.read = xla_read,
	.close = xla_close,
	.no_profile = "the CPU plug-in has no profiler; profile jax, which has the same compiler",
};
