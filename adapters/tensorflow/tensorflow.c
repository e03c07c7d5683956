/* The TensorFlow adapter: probe, session, build and readouts. */
#include "adapters/tensorflow/tensorflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/checks.h"
#include "adapters/probe.h"
#include "adapters/reasons.h"
#include "adapters/tensorflow/tf_profile.h"
#include "adapters/threads.h"
#include "base/parallel.h"

/* The differences between the supported libraries. */
struct series {
	const char *version;	    /* prefix of TF_Version */
	const char *name, *library; /* for messages; file name of the library */
	unsigned precisions;
	bool onednn;	 /* the oneDNN kernels can be switched off */
	int pools, idle; /* a session starts pools * intra + inter + idle threads */
	/* The library of 1.15 is its Python module. It leaves 161 functions and objects of Python
	 * undefined; the C interface needs none of them. `python`: a library in the same folder
	 * that defines these names (made when the framework is installed). `python_variable`:
	 * environment variable with another library to use instead, such as libpython3.7m.so.1.0.
	 * It is loaded first, with global symbols. NULL: not needed. */
	const char *python, *python_variable;
};

static const struct series series_2 = {
	.version = "2.",
	.name = "tensorflow",
	.library = "libtensorflow_cc.so.2",
	.precisions = 1u << PRECISION_FP32 | 1u << PRECISION_BF16,
	.onednn = true,
	.pools = 1,
	.idle = 1, /* the thread that infers shapes */
};

static const struct series series_1 = {
	.version = "1.15",
	.name = "tensorflow1",
	.library = "_pywrap_tensorflow_internal.so",
	.precisions = 1u << PRECISION_FP32,
	.pools = 2, /* one belongs to the device XLA_CPU */
	.idle = 4,
	.python = "libpython_names.so",
	.python_variable = "PRONY_TENSORFLOW1_LIBPYTHON",
};

struct tf_state {
	const struct series *series;
	struct tf_api api;
	struct tf_running running;
	struct tf_model model;
	struct arena arena;
	bool loaded;
};

/* Finds the library that defines Python's names; NULL if none is needed. */
static enum prony_status find_python(const struct series *series, const char *library,
				     struct arena *arena, const char **out, struct error *err)
{
	const char *named = series->python ? getenv(series->python_variable) : NULL;
	const char *slash = strrchr(library, '/');
	const char *beside;

	*out = NULL;
	if (!series->python)
		return PRONY_OK;
	beside = arena_printf(arena, "%.*s%s", slash ? (int)(slash - library) + 1 : 0, library,
			      series->python);
	*out = named && *named ? named : beside;
	if (access(*out, R_OK) == 0 || (named && *named))
		return PRONY_OK;
	return error_set(
		err, PRONY_MISSING,
		"%s needs the symbols of libpython3.7, and %s is missing; run 'prony framework "
		"install tensorflow1' or set %s to the path of libpython3.7m.so.1.0",
		library, beside, series->python_variable);
}

/* Called before the library is loaded, because it reads the variables once. */
static enum prony_status set_environment(const struct tf_state *tf, const struct target *target,
					 struct error *err)
{
	setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
	if (target_has_option(target, "nchw") && target_has_option(target, "nhwc"))
		return error_set(err, PRONY_UNSUPPORTED,
				 "options nchw and nhwc exclude each other");
	if (target_has_option(target, "noonednn")) {
		if (!tf->series->onednn)
			return error_set(err, PRONY_UNSUPPORTED,
					 "option noonednn: this build has no oneDNN");
		setenv("TF_ENABLE_ONEDNN_OPTS", "0", 1);
	}
	if (target_has_option(target, "xla"))
		setenv("TF_XLA_FLAGS", "--tf_xla_cpu_global_jit", 0);
	return PRONY_OK;
}

/* Lists the devices. If the build has kernels for GPUs, a session reports their number. */
static enum prony_status find_devices(struct tf_state *tf, struct probe *found, struct error *err)
{
	/* The process is bound to the recipe's cores; the first session fixes the threads. */
	const struct tf_configuration any = {
		.intra_threads = parallel_cores(), .inter_threads = parallel_cores(), .gpu = 0};
	struct tf_buffer *kernels = tf->api.TF_GetRegisteredKernelsForOp("MatMul", tf->api.status);
	enum prony_status status = tf_check(&tf->api, "get its kernels", err);
	bool gpu = status == PRONY_OK && memmem(kernels->data, kernels->length, "GPU", 3);
	struct tf_running running = {0};
	int count = 0;

	if (kernels)
		tf->api.TF_DeleteBuffer(kernels);
	snprintf(found->devices[found->device_count++], sizeof(found->devices[0]), "cpu");
	if (!gpu)
		return status;
	status = tf_session_open(&running, &tf->api, &any, err);
	if (status == PRONY_OK)
		status = tf_session_devices(&running, &tf->api, "GPU", &count, err);
	tf_session_close(&running, &tf->api);
	for (int i = 0; i < count && found->device_count < ADAPTER_DEVICES_MAX; i++)
		snprintf(found->devices[found->device_count++], sizeof(found->devices[0]),
			 "cuda:%d", i);
	return status;
}

static enum prony_status probe_series(const struct series *series, struct session *s,
				      struct probe *found, struct error *err)
{
	struct tf_state *tf = s->private_data;
	const char *python = NULL;
	enum prony_status status;

	tf->series = series;
	arena_init(&tf->arena, 0);
	status = probe_library_named(s, series->name, series->library, err);
	if (status == PRONY_OK)
		status = set_environment(tf, &s->target, err);
	if (status == PRONY_OK)
		status = find_python(series, s->library, &tf->arena, &python, err);
	if (status == PRONY_OK)
		status = tf_api_load(&tf->api, s->library, python, err);
	if (status != PRONY_OK)
		return status;
	tf->loaded = true;
	*found = (struct probe){
		.stages = PROBE_TRAINER,
		.precisions = series->precisions,
	};
	snprintf(found->version, sizeof(found->version), "%s", tf->api.TF_Version());
	if (strncmp(found->version, series->version, strlen(series->version)) != 0)
		return error_set(err, PRONY_MISSING,
				 "TensorFlow %s in %s is not supported: version %s is needed",
				 found->version, s->library, series->version);
	/* Eigen and, if present, oneDNN are built in; their versions cannot be queried. */
	probe_add_processor(found, series->onednn ? "Eigen as it was built, oneDNN by cpuid"
						  : "Eigen as it was built");
	return find_devices(tf, found, err);
}

static enum prony_status tensorflow_probe(struct session *s, struct probe *found, struct error *err)
{
	return probe_series(&series_2, s, found, err);
}

static enum prony_status tensorflow1_probe(struct session *s, struct probe *found,
					   struct error *err)
{
	return probe_series(&series_1, s, found, err);
}

static enum prony_status supports(const struct graph *graph, const struct recipe *recipe,
				  const struct series *series, struct error *why)
{
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	reasons_add_training(&reasons, graph, recipe, series->precisions);
	reasons_add_types(&reasons, graph);
	tf_refusals(graph, recipe->stage != STAGE_FORWARD, series == &series_1, &reasons);
	return reasons_finish(&reasons, why);
}

static enum prony_status tensorflow_supports(const struct target *target, const struct graph *graph,
					     const struct recipe *recipe, struct error *why)
{
	(void)target;
	return supports(graph, recipe, &series_2, why);
}

static enum prony_status tensorflow1_supports(const struct target *target,
					      const struct graph *graph,
					      const struct recipe *recipe, struct error *why)
{
	(void)target;
	return supports(graph, recipe, &series_1, why);
}

/* Returns the threads inside an operation, computed from the number of threads that the session
 * started. Returns the requested number if this series cannot have started that many. */
static int threads_of(const struct series *series, const struct tf_configuration *asked,
		      int started)
{
	int left = started - asked->inter_threads - series->idle;

	/* The server of a rank has threads of its own. */
	if (asked->rank || left <= 0 || left % series->pools != 0)
		return asked->intra_threads;
	return left / series->pools;
}

static void describe(const struct tf_state *tf, const struct target *target,
		     const struct tf_configuration *c, int started, struct effective *effective)
{
	snprintf(effective->device, sizeof(effective->device), "%s", target->device);
	snprintf(effective->settings, sizeof(effective->settings),
		 "intra_op_threads=%d;inter_op_threads=%d;threads_started=%d;layout=%s;xla=%s;"
		 "TF_XLA_FLAGS=%s;TF_ENABLE_ONEDNN_OPTS=%s;rmsprop_epsilon=inside%s",
		 c->intra_threads, c->inter_threads, started,
		 target_has_option(target, "nchw") ? "NCHW" : "NHWC",
		 c->xla ? "auto-clustering" : "off", probe_environment("TF_XLA_FLAGS", ""),
		 probe_environment("TF_ENABLE_ONEDNN_OPTS",
				   tf->series->onednn ? "default" : "not built"),
		 c->rank ? ";data_parallel=CollectiveReduce" : "");
}

static enum prony_status tf_open(struct session *s, const struct recipe *recipe,
				 struct effective *effective, struct error *err)
{
	struct tf_state *tf = s->private_data;
	const char *device = s->target.device;
	struct tf_configuration wanted = {
		.intra_threads = recipe->threads,
		.inter_threads = recipe->threads,
		.xla = target_has_option(&s->target, "xla"),
		.gpu = -1,
	};
	uint32_t mxcsr = 0;
	enum prony_status status;
	int before, started;

	if (!tf->loaded)
		return error_set(err, PRONY_INTERNAL, "open before probe");
	if (s->target.world_size > 1)
		wanted.rank = &s->target;
	if (strncmp(device, "cuda", 4) == 0)
		wanted.gpu = (int)strtol(device + strcspn(device, ":") + 1, NULL, 10);
	before = threads_count("");
	status = tf_session_open(&tf->running, &tf->api, &wanted, err);
	started = threads_count("") - before;
	if (status == PRONY_OK)
		status = tf_session_mxcsr(&tf->running, &tf->api, &mxcsr, err);
	if (status != PRONY_OK)
		return status;
	/* Types belong to the operations of the graph. build reads them back and fails if they
	 * differ. */
	*effective = (struct effective){
		.precision = recipe->precision,
		.threads = threads_of(tf->series, &wanted, started),
		.mxcsr = mxcsr,
	};
	describe(tf, &s->target, &wanted, started, effective);
	return PRONY_OK;
}

/*
 * Checks the types that TensorFlow infers for products; open could only report the requested type.
 */
static enum prony_status check_precision(const struct tf_emit *e, enum precision asked,
					 struct error *err)
{
	bool bf16 = asked == PRECISION_BF16;

	if (e->products[bf16] > 0 ? bf16 || e->products[1] == 0 : e->products[!bf16] == 0)
		return PRONY_OK;
	return error_set(err, PRONY_INVALID,
			 "asked for precision %s, but TensorFlow computes %d products in float and "
			 "%d in bfloat16",
			 precision_name(asked), e->products[0], e->products[1]);
}

static enum prony_status tf_build(struct session *s, struct graph *graph,
				  const struct recipe *recipe, const struct tensor_set *weights,
				  struct built *built, struct error *err)
{
	struct tf_state *tf = s->private_data;
	enum prony_status status = supports(graph, recipe, tf->series, err);

	if (status == PRONY_OK)
		status = tf_model_init(&tf->model, &tf->api, &tf->running, graph, recipe,
				       !target_has_option(&s->target, "nchw"), weights, err);
	if (status == PRONY_OK)
		status = check_precision(&tf->model.t.e, recipe->precision, err);
	if (status != PRONY_OK)
		return status;
	*built = (struct built){.macs = tf->model.t.e.macs};
	for (int i = 0; i < tf->model.weights.variable_count; i++) {
		struct shape shape =
			tf_shape_of(&tf->model.t.e, tf->model.weights.variables[i].read);

		if (tf->model.weights.variables[i].trained)
			built->parameters += shape_elements(&shape);
	}
	snprintf(built->notes, sizeof(built->notes),
		 "%d operations before TensorFlow rewrites the graph; %d products in float, %d in "
		 "bfloat16; a step is one run without feeds and fetches",
		 tf->model.t.e.count, tf->model.t.e.products[0], tf->model.t.e.products[1]);
	return PRONY_OK;
}

static enum prony_status tf_feed(struct session *s, int slot, struct batch batch, struct error *err)
{
	struct tf_state *tf = s->private_data;
	bool wants_labels = tf->model.slots.part_count > batch.input_count;
	enum prony_status status = check_slot(slot, tf->model.slots.count, err);

	if (status == PRONY_OK)
		status = check_batch(tf->model.graph, batch, wants_labels, err);
	if (status == PRONY_OK && wants_labels && batch.labels[0].shape.rank == 1)
		status = check_no_ignored(batch, err);
	return status == PRONY_OK ? tf_model_feed(&tf->model, slot, batch, err) : status;
}

static enum prony_status tf_step(struct session *s, int slot, struct error *err)
{
	struct tf_state *tf = s->private_data;
	enum prony_status status = check_slot(slot, tf->model.slots.count, err);

	return status == PRONY_OK ? tf_model_step(&tf->model, slot, err) : status;
}

/* A run returns when its operations are finished, also on a GPU. */
static enum prony_status tf_sync(struct session *s, struct error *err)
{
	(void)s;
	(void)err;
	return PRONY_OK;
}

static enum prony_status read_result(struct tf_model *model, const struct tf_result *result,
				     int value, const struct tensor *out, struct error *err)
{
	struct arrangement order = layouts_arrangement(&model->t.layouts, value);
	int64_t elements = shape_elements(&out->shape);
	struct tf_tensor *tensor = NULL;
	enum prony_status status;

	if (!result->read.operation)
		return error_set(err, PRONY_UNSUPPORTED, "the stage forward computes no %s",
				 model->graph->values[value].name);
	status = tf_model_fetch(model, &result->read, 1, &tensor, err);
	if (status != PRONY_OK)
		return status;
	const float *data = model->api->TF_TensorData(tensor);
	if (model->api->TF_TensorByteSize(tensor) != (size_t)elements * sizeof(float))
		status = error_set(err, PRONY_INTERNAL, "%s can only be read in its own shape",
				   out->name ? out->name : "tensor");
	else if (out->dtype == DTYPE_F64)
		*(double *)out->data = (double)data[0];
	else
		arrangement_copy(&order, elements, data, out->data, true);
	model->api->TF_DeleteTensor(tensor);
	return status;
}

static const struct tf_weight *find_weight(const struct tf_model *model, const char *name)
{
	for (int i = 0; i < model->weights.weight_count; i++) {
		const struct tf_weight *weight = &model->weights.weights[i];

		if (strcmp(model->graph->values[weight->value].name, name) == 0)
			return weight;
	}
	return NULL;
}

static enum prony_status check_stage(const struct tf_model *model, enum readout what,
				     struct error *err)
{
	if (what != READ_GRADIENTS || (model->backward && !model->train))
		return PRONY_OK;
	return error_set(err, PRONY_UNSUPPORTED,
			 "gradients can only be read in the stage forward-backward: %s",
			 model->train ? "train uses them up in its update"
				      : "forward computes none");
}

static enum prony_status read_weights(struct tf_model *model, bool gradients,
				      const struct tensor_set *out, struct error *err)
{
	size_t count = (size_t)model->weights.variable_count;
	struct tf_output *outputs = arena_array(&model->arena, count, sizeof(outputs[0]));
	struct tf_tensor **tensors = arena_array(&model->arena, count, sizeof(tensors[0]));
	enum prony_status status;

	for (size_t i = 0; i < count; i++) {
		const struct tf_variable *variable = &model->weights.variables[i];

		outputs[i] = variable->read;
		if (gradients && variable->trained)
			outputs[i] = tf_read(&model->t.e, variable->gradient, TF_TYPE_FLOAT);
	}
	status = tf_emit_end(&model->t.e, err);
	if (status == PRONY_OK)
		status = tf_model_fetch(model, outputs, (int)count, tensors, err);
	for (size_t i = 0; status == PRONY_OK && i < out->count; i++) {
		const struct tensor *tensor = &out->tensors[i];
		const struct tf_weight *weight = find_weight(model, tensor->name);

		if (!weight || tensor->dtype != DTYPE_F32 ||
		    shape_elements(&tensor->shape) != weight->elements)
			status = error_set(err, PRONY_INTERNAL,
					   "there is no weight %s of that shape", tensor->name);
		else
			tf_weight_copy(weight, tensor->data,
				       model->api->TF_TensorData(tensors[weight->variable]), false);
	}
	for (size_t i = 0; i < count; i++)
		if (tensors[i])
			model->api->TF_DeleteTensor(tensors[i]);
	return status;
}

static enum prony_status tf_read_back(struct session *s, enum readout what, struct tensor_set *out,
				      struct error *err)
{
	struct tf_model *model = &((struct tf_state *)s->private_data)->model;
	enum prony_status status = check_stage(model, what, err);

	if (status == PRONY_OK)
		status = check_readout(what, model->slots.next >= 0, out, err);
	if (status != PRONY_OK)
		return status;
	if (what == READ_LOGITS)
		return read_result(model, &model->logits, model->graph->logits, &out->tensors[0],
				   err);
	if (what == READ_LOSS)
		return read_result(model, &model->loss, model->graph->loss, &out->tensors[0], err);
	return read_weights(model, what == READ_GRADIENTS, out, err);
}

static void tf_close(struct session *s)
{
	struct tf_state *tf = s->private_data;

	if (!tf->series)
		return;
	if (tf->loaded) {
		tf_profile_stop(&tf->model);
		tf_model_release(&tf->model);
		tf_session_close(&tf->running, &tf->api);
		tf_api_release(&tf->api);
	}
	arena_release(&tf->arena);
	*tf = (struct tf_state){0};
}

static enum prony_status profile_begin(struct session *s, int64_t steps, int64_t (*now_ns)(void),
				       struct error *err)
{
	struct tf_state *tf = s->private_data;

	(void)steps, (void)now_ns;
	if (strcmp(s->target.device, "cpu") != 0)
		return error_set(err, PRONY_UNSUPPORTED,
				 "on %s TensorFlow's trace shows when operations were submitted, "
				 "not how long they ran",
				 s->target.device);
	return tf_profile_begin(&tf->model, err);
}

static enum prony_status profile_stepped(struct session *s, int64_t step, struct profile_log *log,
					 struct error *err)
{
	struct tf_state *tf = s->private_data;

	return tf_profile_stepped(&tf->model, step, log, err);
}

static enum prony_status profile_end(struct session *s, const int64_t *instants, int64_t steps,
				     struct profile_log *log, struct error *err)
{
	struct tf_state *tf = s->private_data;

	(void)steps, (void)err;
	tf_profile_end(&tf->model, instants, log);
	return PRONY_OK;
}

static const struct adapter_profile profile = {
	.begin = profile_begin, .stepped = profile_stepped, .end = profile_end};

#define TENSORFLOW_MEMBERS                                                                         \
	.abi = ADAPTER_ABI, .private_size = sizeof(struct tf_state), .open = tf_open,              \
	.build = tf_build, .feed = tf_feed, .step = tf_step, .sync = tf_sync,                      \
	.read = tf_read_back, .close = tf_close, .profile = &profile,                              \
	.collectives = "ring over grpc"

const struct adapter adapter_tensorflow = {
	TENSORFLOW_MEMBERS,
	.name = "tensorflow",
	.summary = "TensorFlow 2 through its C interface",
	.options = "nhwc,nchw,xla,noonednn",
	.probe = tensorflow_probe,
	.supports = tensorflow_supports,
};

const struct adapter adapter_tensorflow1 = {
	TENSORFLOW_MEMBERS,
	.name = "tensorflow1",
	.summary = "TensorFlow 1.15 through its C interface",
	.options = "nhwc,nchw,xla",
	.probe = tensorflow1_probe,
	.supports = tensorflow1_supports,
};
