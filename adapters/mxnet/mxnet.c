/* The adapter of MXNet: probing, sessions, batches, steps and readouts. */
#include "adapters/mxnet/mxnet.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/checks.h"
#include "adapters/mxnet/mxnet_loader.h"
#include "adapters/mxnet/mxnet_model.h"
#include "adapters/mxnet/mxnet_profile.h"
#include "adapters/mxnet/mxnet_ranks.h"
#include "adapters/probe.h"
#include "adapters/reasons.h"
#include "adapters/threads.h"

struct mx_state {
	struct mx_api api;
	bool loaded;
	struct mx_model model;
	struct mx_loader loader;
	struct mx_ranks ranks;
	float *numbers; /* buffer for the largest integer tensor of a batch, converted to floats */
	int last_slot;	/* of the last step; -1 = none yet */
	struct mx_profile profile;
};

/* libgomp reads OMP_NUM_THREADS once, when it is loaded. MXNet checks at the same moment whether
 * the variable is set; if not, it uses half the cores on x86, because of hyper-threads. The process
 * is already bound to the cores that the recipe requests; open sets and checks the number again. */
static void set_environment(void)
{
	cpu_set_t cores;
	char text[16];

	CPU_ZERO(&cores);
	if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
		snprintf(text, sizeof(text), "%d", CPU_COUNT(&cores));
		setenv("OMP_NUM_THREADS", text, 0);
	}
	setenv("MXNET_SUBGRAPH_VERBOSE", "0", 0);
	setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0", 0); /* prints a page per operator */
}

static enum prony_status describe(const struct mx_api *api, struct probe *found, struct error *err)
{
	const struct mx_feature *features = NULL;
	size_t count = 0;
	int version = 0, gpus = 0;
	enum prony_status status;

	status = mx_check(api, api->MXGetVersion(&version), "version", err);
	if (status == PRONY_OK)
		status = mx_check(api, api->MXGetGPUCount(&gpus), "count GPUs", err);
	if (status == PRONY_OK)
		status = mx_check(api, api->MXLibInfoFeatures(&features, &count), "features", err);
	if (status != PRONY_OK)
		return status;
	*found = (struct probe){
		.stages = PROBE_TRAINER,
		.precisions = 1u << PRECISION_FP32,
		.devices = {"cpu"},
		.device_count = 1,
	};
	for (int i = 0; i < gpus && found->device_count < ADAPTER_DEVICES_MAX; i++)
		snprintf(found->devices[found->device_count++], sizeof(found->devices[0]),
			 "cuda:%d", i);
	snprintf(found->version, sizeof(found->version), "%d.%d.%d", version / 10000,
		 version / 100 % 100, version % 100);
	if (api->openblas_get_config)
		probe_add_library(found, "openblas", api->openblas_get_config());
	for (size_t i = 0; i < count; i++) {
		if (!features[i].enabled)
			continue;
		/* linked statically into libmxnet.so: its version cannot be queried */
		if (strcmp(features[i].name, "MKLDNN") == 0)
			probe_add_library(found, "mkldnn", "built in");
		/* Listed from the oldest to the newest; MKL-DNN makes its own choice. */
		if (strncmp(features[i].name, "CPU_", 4) == 0)
			snprintf(found->instruction_set, sizeof(found->instruction_set),
				 "own kernels: %s", features[i].name);
	}
	return PRONY_OK;
}

static enum prony_status mxnet_probe(struct session *s, struct probe *found, struct error *err)
{
	struct mx_state *mx = s->private_data;
	enum prony_status status;

	status = probe_library_named(s, "mxnet", "libmxnet.so", err);
	if (status != PRONY_OK)
		return status;
	set_environment();
	status = mx_ranks_start(&mx->ranks, &s->target, s->library, err);
	if (status == PRONY_OK)
		status = mx_api_load(&mx->api, s->library, err);
	if (status != PRONY_OK)
		return status;
	mx->loaded = true;
	mx->last_slot = -1;
	if (strncmp(s->target.device, "cuda:", 5) == 0)
		mx->api.device = (struct mx_context){
			.device_type = MX_DEVICE_GPU,
			.device_id = (int32_t)strtol(s->target.device + 5, NULL, 10)};
	return describe(&mx->api, found, err);
}

static enum prony_status mxnet_supports(const struct target *target, const struct graph *graph,
					const struct recipe *recipe, struct error *why)
{
	(void)target;
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	/* Operator fusion is on by default; a variant runs without it. */
	reasons_add_training(&reasons, graph, recipe, 1u << PRECISION_FP32);
	reasons_add_types(&reasons, graph);
	mx_symbol_refusals(graph, &reasons);
	return reasons_finish(&reasons, why);
}

/* A function that runs on the engine's own thread, the thread that computes. */
struct engine_visit {
	const struct mx_api *api;
	int threads_wanted, threads_found;
	uint32_t mxcsr;
	pthread_t thread;
};

static void visit_engine(void *run_context, void *argument)
{
	struct engine_visit *visit = argument;

	(void)run_context;
	visit->api->omp_set_num_threads(visit->threads_wanted);
	visit->threads_found = visit->api->omp_get_max_threads();
	visit->mxcsr = threads_mxcsr();
	visit->thread = pthread_self();
}

static void describe_settings(const struct recipe *recipe, int ranks, struct effective *effective)
{
	static const char *const updates[OPTIMISER_COUNT] = {
		[OPTIMISER_SGD] = "multi_sgd_update,aggregation=4",
		[OPTIMISER_MOMENTUM] = "multi_sgd_mom_update,aggregation=4",
		[OPTIMISER_RMSPROP] = "rmsprop_update,epsilon=inside_root",
		[OPTIMISER_ADAMW] = "_multi_adamw_update,aggregation=4",
	};
	_Static_assert(MX_UPDATE_GROUP == 4, "the settings above state the group size");

	snprintf(effective->settings, sizeof(effective->settings),
		 "OMP_NUM_THREADS=%s;MXNET_ENGINE_TYPE=%s;MXNET_CPU_WORKER_NTHREADS=%s;"
		 "MXNET_MKLDNN_ENABLED=%s;MXNET_SUBGRAPH_BACKEND=%s;MXNET_EXEC_BULK_EXEC_TRAIN=%s;"
		 "MXNET_EXEC_BULK_EXEC_INFERENCE=%s;update=%s%s%s",
		 probe_environment("OMP_NUM_THREADS", "unset"),
		 probe_environment("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),
		 probe_environment("MXNET_CPU_WORKER_NTHREADS", "1"),
		 probe_environment("MXNET_MKLDNN_ENABLED", "1"),
		 probe_environment("MXNET_SUBGRAPH_BACKEND", "MKLDNN"),
		 probe_environment("MXNET_EXEC_BULK_EXEC_TRAIN", "1"),
		 probe_environment("MXNET_EXEC_BULK_EXEC_INFERENCE", "1"),
		 recipe->stage == STAGE_TRAIN ? updates[recipe->optimiser] : "none",
		 recipe->input == INPUT_NATIVE ? ";loader=ImageRecordIter" : "",
		 ranks > 1 ? ";data_parallel=dist_sync" : "");
}

static enum prony_status mxnet_open(struct session *s, const struct recipe *recipe,
				    struct effective *effective, struct error *err)
{
	struct mx_state *mx = s->private_data;
	const struct mx_api *api = &mx->api;
	struct engine_visit visit = {.api = api, .threads_wanted = recipe->threads};
	enum prony_status status;

	if (!mx->loaded)
		return error_set(err, PRONY_INTERNAL, "open before probe");
	status = mx_check(api, api->MXSetNumOMPThreads(recipe->threads), "set threads", err);
	if (status == PRONY_OK)
		status = mx_check(api,
				  api->MXEnginePushSync(visit_engine, &visit, NULL, &api->device,
							NULL, 0, NULL, 0, NULL, 0, "prony"),
				  "run on the engine's thread", err);
	if (status == PRONY_OK)
		status = mx_check(api, api->MXNDArrayWaitAll(), "wait for the engine", err);
	if (status == PRONY_OK)
		status = mx_ranks_join(&mx->ranks, api, err);
	if (status != PRONY_OK)
		return status;
	/* MXNet copies large arrays with OpenMP on the calling thread, which is this one, and
	 * libgomp then keeps a second team. With more threads than processors libgomp shortens its
	 * spinning (gomp_throttled_spin_count): the engine's own team then slept at the end of each
	 * parallel region, and LeNet's training took 22 ms instead of 12. A script that gets its
	 * batches from MXNet does not have this problem. */
	if (!pthread_equal(visit.thread, pthread_self()))
		api->omp_set_num_threads(1);
	*effective = (struct effective){
		.precision = PRECISION_FP32,
		.threads = visit.threads_found,
		.mxcsr = visit.mxcsr,
	};
	snprintf(effective->device, sizeof(effective->device), "%s", s->target.device);
	describe_settings(recipe, s->target.world_size, effective);
	return PRONY_OK;
}

static bool has_lrn(const struct graph *graph)
{
	for (int i = 0; i < graph->forward_count; i++)
		if (graph->nodes[i].op == OP_LRN)
			return true;
	return false;
}

static enum prony_status describe_built(const struct mx_model *model, const struct graph *graph,
					struct built *built, struct error *err)
{
	char fused[256];
	enum prony_status status =
		mx_fused_nodes(model->api, model->programs[0].executor, fused, sizeof(fused), err);

	if (status != PRONY_OK)
		return status;
	built->parameters = 0;
	for (int i = 0; i < model->parameter_count; i++)
		built->parameters += mx_array_elements(model->api, model->parameters[i].weight);
	snprintf(built->notes, sizeof(built->notes), "fused nodes: %s; %s%s%s%s", fused,
		 model->copies ? "one executor: each step copies its batch to it"
			       : "one executor per slot, with shared weights and memory",
		 model->loss && model->state_count > 0 ? "; running variance divided by n" : "",
		 model->loss && has_lrn(graph) ? "; LRN composed of other operators, because the "
						 "gradient of MXNet's LRN is wrong"
					       : "",
		 model->recurrent_count > 0 ? "; second biases of recurrent layers stay zero" : "");
	return PRONY_OK;
}

static size_t largest_of_batch(const struct graph *graph)
{
	int64_t largest = 1;

	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		int64_t elements = shape_elements(&value->shape);

		if ((value->kind == VALUE_INPUT || value->kind == VALUE_LABEL) &&
		    elements > largest)
			largest = elements;
	}
	return (size_t)largest;
}

static enum prony_status mxnet_build(struct session *s, struct graph *graph,
				     const struct recipe *recipe, const struct tensor_set *weights,
				     struct built *built, struct error *err)
{
	struct mx_state *mx = s->private_data;
	struct built done = {.macs = -1};
	enum prony_status status = mxnet_supports(&s->target, graph, recipe, err);

	if (status != PRONY_OK)
		return status;
	mx->numbers = calloc(largest_of_batch(graph), sizeof(mx->numbers[0]));
	if (!mx->numbers)
		return error_set(err, PRONY_NOMEM, "no memory for the numbers of a batch");
	status = mx_model_init(&mx->model, &mx->api, graph, recipe, weights, &mx->ranks, err);
	if (status == PRONY_OK)
		status = mx_symbol_measure(&mx->api, graph, mx->model.symbol, &done.macs, err);
	if (status == PRONY_OK)
		status = describe_built(&mx->model, graph, &done, err);
	if (status == PRONY_OK)
		status = mx_check(&mx->api, mx->api.MXRandomSeed((int)(recipe->seed & 0x7fffffff)),
				  "seed", err);
	if (status == PRONY_OK)
		*built = done;
	return status;
}

/* Integers are converted to floats, because MXNet's indices and labels are floats. */
static enum prony_status feed_array(struct mx_state *mx, struct mx_ndarray *array,
				    const struct tensor *tensor, struct error *err)
{
	int64_t count = shape_elements(&tensor->shape);
	const void *data = tensor->data;

	for (int64_t i = 0; tensor->dtype == DTYPE_I64 && i < count; i++)
		mx->numbers[i] = (float)((const int64_t *)data)[i];
	for (int64_t i = 0; tensor->dtype == DTYPE_I32 && i < count; i++)
		mx->numbers[i] = (float)((const int32_t *)data)[i];
	return mx_check(
		&mx->api,
		mx->api.MXNDArraySyncCopyFromCPU(
			array, tensor->dtype == DTYPE_F32 ? data : mx->numbers, (size_t)count),
		"copy the batch", err);
}

static enum prony_status mxnet_feed(struct session *s, int slot, struct batch batch,
				    struct error *err)
{
	struct mx_state *mx = s->private_data;
	const struct mx_model *model = &mx->model;
	bool with_labels = model->loss && check_takes_labels(model->graph);
	enum prony_status status = check_slot(slot, model->slot_count, err);

	if (status == PRONY_OK)
		status = check_batch(model->graph, batch, with_labels, err);
	if (status == PRONY_OK && with_labels && batch.labels[0].shape.rank == 1)
		status = check_no_ignored(batch, err);
	for (int i = 0; status == PRONY_OK && i < model->input_count; i++)
		status = feed_array(mx, model->slots[slot].inputs[i], &batch.inputs[i], err);
	for (int i = 0; status == PRONY_OK && with_labels && i < model->label_count; i++)
		status = feed_array(mx, model->slots[slot].labels[i], &batch.labels[i], err);
	return status;
}

static enum prony_status mxnet_step(struct session *s, int slot, struct error *err)
{
	struct mx_state *mx = s->private_data;
	enum prony_status status = check_slot(slot, mx->model.slot_count, err);

	if (status != PRONY_OK)
		return status;
	mx->last_slot = slot;
	return mx_model_step(&mx->model, slot, err);
}

static enum prony_status mxnet_sync(struct session *s, struct error *err)
{
	struct mx_state *mx = s->private_data;

	return mx_check(&mx->api, mx->api.MXNDArrayWaitAll(), "wait", err);
}

static enum prony_status copy_out(const struct mx_api *api, struct mx_ndarray *array,
				  const struct tensor *out, struct error *err)
{
	int64_t elements = shape_elements(&out->shape);

	if (out->dtype != DTYPE_F32 || elements != mx_array_elements(api, array))
		return error_set(err, PRONY_INTERNAL, "%s can only be read as F32 in its own shape",
				 out->name ? out->name : "tensor");
	return mx_check(api, api->MXNDArraySyncCopyToCPU(array, out->data, (size_t)elements),
			"read", err);
}

static const struct mx_parameter *find_parameter(const struct mx_model *model, const char *name)
{
	for (int i = 0; i < model->parameter_count; i++) {
		if (strcmp(model->parameters[i].value->name, name) == 0)
			return &model->parameters[i];
	}
	return NULL;
}

static enum prony_status read_parameters(const struct mx_model *model, bool gradients,
					 const struct tensor_set *out, struct error *err)
{
	enum prony_status status = PRONY_OK;

	if (gradients && !model->loss)
		return error_set(err, PRONY_UNSUPPORTED, "the stage forward computes no gradients");
	for (size_t i = 0; status == PRONY_OK && i < out->count; i++) {
		const struct tensor *tensor = &out->tensors[i];
		const struct mx_parameter *parameter = find_parameter(model, tensor->name);

		if (!parameter)
			return error_set(err, PRONY_INTERNAL, "no parameter %s", tensor->name);
		status = copy_out(model->api, gradients ? parameter->gradient : parameter->weight,
				  tensor, err);
		if (status == PRONY_OK && parameter->layer && parameter->layer->node->op == OP_LSTM)
			mx_gates_to_graph(tensor->data, shape_elements(&tensor->shape));
	}
	return status;
}

static enum prony_status read_states(const struct mx_model *model, const struct tensor_set *out,
				     struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; status == PRONY_OK && i < out->count; i++) {
		int found = 0;

		while (found < model->state_count &&
		       strcmp(model->states[found].value->name, out->tensors[i].name) != 0)
			found++;
		if (found == model->state_count)
			return error_set(err, PRONY_INTERNAL, "no state %s", out->tensors[i].name);
		status = copy_out(model->api, model->states[found].array, &out->tensors[i], err);
	}
	return status;
}

/*
 * -log of the probability of the label. If the probability is too small for a float, it is computed
 * from the logits.
 */
static double sample_loss(const float *probabilities, const float *logits, int64_t classes,
			  int64_t label)
{
	double sum = 0, largest = (double)logits[0];

	if (!(probabilities[label] < FLT_MIN))
		return -log((double)probabilities[label]);
	for (int64_t i = 1; i < classes; i++)
		largest = fmax(largest, (double)logits[i]);
	for (int64_t i = 0; i < classes; i++)
		sum += exp((double)logits[i] - largest);
	return log(sum) + largest - (double)logits[label];
}

static enum prony_status compute_loss(struct mx_state *mx, double *out, struct error *err)
{
	const struct mx_program *program = mx_model_program(&mx->model, mx->last_slot);
	int64_t batch = graph_batch(mx->model.graph), classes = graph_classes(mx->model.graph);
	size_t count = (size_t)(batch * classes);
	float *heads = calloc(2 * count, sizeof(heads[0]));
	double sum = 0;
	enum prony_status status;

	if (!heads)
		return error_set(err, PRONY_NOMEM, "no memory for the probabilities");
	status =
		mx_check(&mx->api, mx->api.MXNDArraySyncCopyToCPU(program->objective, heads, count),
			 "read the probabilities", err);
	if (status == PRONY_OK)
		status = mx_check(
			&mx->api,
			mx->api.MXNDArraySyncCopyToCPU(program->logits, heads + count, count),
			"read the logits", err);
	if (status == PRONY_OK)
		status = mx_check(
			&mx->api,
			mx->api.MXNDArraySyncCopyToCPU(mx->model.slots[mx->last_slot].labels[0],
						       mx->numbers, (size_t)batch),
			"read the labels", err);
	for (int64_t i = 0; status == PRONY_OK && i < batch; i++)
		sum += sample_loss(heads + i * classes, heads + (int64_t)count + i * classes,
				   classes, (int64_t)mx->numbers[i]);
	free(heads);
	if (status == PRONY_OK)
		*out = sum / (double)batch;
	return status;
}

/* Half the sum of the squares of the logits, in double. */
static enum prony_status compute_squares(struct mx_state *mx, double *out, struct error *err)
{
	const struct mx_program *program = mx_model_program(&mx->model, mx->last_slot);
	int64_t count = mx_array_elements(&mx->api, program->logits);
	float *logits = count > 0 ? calloc((size_t)count, sizeof(logits[0])) : NULL;
	double sum = 0;
	enum prony_status status;

	if (!logits)
		return error_set(err, PRONY_NOMEM, "no memory for the logits");
	status = mx_check(&mx->api,
			  mx->api.MXNDArraySyncCopyToCPU(program->logits, logits, (size_t)count),
			  "read the logits", err);
	for (int64_t i = 0; i < count; i++)
		sum += (double)logits[i] * (double)logits[i];
	free(logits);
	if (status == PRONY_OK)
		*out = sum / 2;
	return status;
}

/* The objective is the loss. */
static enum prony_status read_mean(struct mx_state *mx, double *out, struct error *err)
{
	const struct mx_program *program = mx_model_program(&mx->model, mx->last_slot);
	float loss;
	enum prony_status status =
		mx_check(&mx->api, mx->api.MXNDArraySyncCopyToCPU(program->objective, &loss, 1),
			 "read the loss", err);

	if (status == PRONY_OK)
		*out = (double)loss;
	return status;
}

static enum prony_status read_loss(struct mx_state *mx, const struct tensor_set *out,
				   struct error *err)
{
	double loss = NAN;

	if (!mx->model.loss)
		return error_set(err, PRONY_UNSUPPORTED, "the stage forward computes no loss");
	if (shape_elements(&out->tensors[0].shape) != 1 ||
	    (out->tensors[0].dtype != DTYPE_F64 && out->tensors[0].dtype != DTYPE_F32))
		return error_set(err, PRONY_INTERNAL,
				 "the loss can only be read as an F64 or F32 scalar");
	const struct graph *graph = mx->model.graph;
	enum prony_status status;

	if (!check_takes_labels(graph))
		status = compute_squares(mx, &loss, err);
	else if (mx_ignores_labels(graph))
		status = read_mean(mx, &loss, err);
	else
		status = compute_loss(mx, &loss, err);
	if (status != PRONY_OK)
		return status;
	if (out->tensors[0].dtype == DTYPE_F64)
		*(double *)out->tensors[0].data = loss;
	else
		*(float *)out->tensors[0].data = (float)loss;
	return PRONY_OK;
}

static enum prony_status mxnet_read(struct session *s, enum readout what, struct tensor_set *out,
				    struct error *err)
{
	struct mx_state *mx = s->private_data;
	enum prony_status status = check_readout(what, mx->last_slot >= 0, out, err);

	if (status != PRONY_OK)
		return status;
	switch (what) {
	case READ_LOGITS:
		return copy_out(&mx->api, mx_model_program(&mx->model, mx->last_slot)->logits,
				&out->tensors[0], err);
	case READ_LOSS:
		return read_loss(mx, out, err);
	case READ_WEIGHTS:
	case READ_GRADIENTS:
		return read_parameters(&mx->model, what == READ_GRADIENTS, out, err);
	case READ_STATE:
		return read_states(&mx->model, out, err);
	default:
		return error_set(err, PRONY_INTERNAL, "unknown readout %d", (int)what);
	}
}

static void mxnet_close(struct session *s)
{
	struct mx_state *mx = s->private_data;

	if (!mx->loaded) {
		mx_ranks_release(&mx->ranks, NULL);
		return;
	}
	/* A failure of the last steps was or will be reported by sync; it changes nothing here. */
	mx->api.MXNDArrayWaitAll();
	mx_loader_release(&mx->loader);
	mx_profile_release(&mx->profile);
	mx_model_release(&mx->model);
	mx_ranks_release(&mx->ranks, &mx->api);
	free(mx->numbers);
	mx->api.MXNotifyShutdown(); /* otherwise its threads outlive their data at exit */
	*mx = (struct mx_state){0};
}

static enum prony_status loader_open(struct session *s, const struct loader_data *data,
				     const struct graph *graph, const struct recipe *recipe,
				     struct error *err)
{
	struct mx_state *mx = s->private_data;

	return mx_loader_open(&mx->loader, &mx->api, data, graph, recipe, err);
}

static enum prony_status loader_next(struct session *s, struct error *err)
{
	struct mx_state *mx = s->private_data;

	return mx_loader_next(&mx->loader, err);
}

static enum prony_status loader_take(struct session *s, int slot, struct error *err)
{
	struct mx_state *mx = s->private_data;

	if (slot < 0 || slot >= mx->model.slot_count)
		return error_set(err, PRONY_INTERNAL, "there is no slot %d (%d slots)", slot,
				 mx->model.slot_count);
	return mx_loader_take(&mx->loader, &mx->model.slots[slot], err);
}

static const struct adapter_loader mxnet_loader = {
	.supports = mx_loader_supports,
	.open = loader_open,
	.next = loader_next,
	.take = loader_take,
};

static enum prony_status profile_begin(struct session *s, int64_t steps, int64_t (*now_ns)(void),
				       struct error *err)
{
	struct mx_state *mx = s->private_data;

	(void)steps;
	return mx_profile_begin(&mx->profile, &mx->model, mx->last_slot, now_ns, err);
}

static enum prony_status profile_end(struct session *s, const int64_t *instants, int64_t steps,
				     struct profile_log *log, struct error *err)
{
	struct mx_state *mx = s->private_data;

	return mx_profile_end(&mx->profile, instants, steps, log, err);
}

static const struct adapter_profile profile = {.begin = profile_begin, .end = profile_end};

const struct adapter adapter_mxnet = {
	.abi = ADAPTER_ABI,
	.name = "mxnet",
	.summary = "Apache MXNet 1.9 through its C interface",
	.private_size = sizeof(struct mx_state),
	.options = "",
	.collectives = "parameter server",
	.probe = mxnet_probe,
	.supports = mxnet_supports,
	.open = mxnet_open,
	.build = mxnet_build,
	.feed = mxnet_feed,
	.step = mxnet_step,
	.sync = mxnet_sync,
	.read = mxnet_read,
	.close = mxnet_close,
	.loader = &mxnet_loader,
	.profile = &profile,
};
