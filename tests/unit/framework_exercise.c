#include "framework_exercise.h"

#include <glob.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/files.h"
#include "bundle/safetensors.h"
#include "onnx/onnx.h"
#include "parity/reference.h"
#include "unit_test.h"

#define SEED 7
#define BOUND_LOGITS 1e-5
#define BOUND_GRADIENTS 1e-4
#define BOUND_CHANGE 1e-3
#define BOUND_LOSS 1e-5
#define BOUND_STATE 1e-5

const char *exercise_library(const char *variable, const char *pattern)
{
	static char found[4096];
	const char *named = getenv(variable);
	char *home = path_data_home();
	char *text = memory_printf("%s/frameworks/%s", home, pattern);
	glob_t matches = {0};

	free(home);
	if (named && named[0] != '\0') {
		free(text);
		return named;
	}
	if (glob(text, GLOB_BRACE, NULL, &matches) == 0 && matches.gl_pathc > 0) {
		snprintf(found, sizeof(found), "%s", matches.gl_pathv[matches.gl_pathc - 1]);
		globfree(&matches);
		free(text);
		return found;
	}
	printf("1..0 # SKIP not installed: neither %s nor %s\n", variable, text);
	free(text);
	exit(77);
}

static int odd_layers(struct builder *b, int input)
{
	const struct attributes uneven = {.kernel = {3, 3},
					  .strides = {1, 1},
					  .dilations = {1, 1},
					  .pads = {0, 1, 2, 1},
					  .group = 1};
	const struct attributes pool = {.kernel = {3, 3},
					.strides = {2, 2},
					.dilations = {1, 1},
					.pads = {1, 1, 1, 1},
					.ceil_mode = true};
	const struct attributes none = {0};
	int weight = build_parameter(b, "uneven.weight", 4, (const int64_t[]){4, 3, 3, 3},
				     FILL_HE_NORMAL, 27);
	int x = build_node(b, OP_CONV, "uneven", (const int[]){input, weight}, 2, &uneven);
	int y = build_relu(b, "relu", build_conv(b, "even", x, 4, 3, 1, 1));

	x = build_node(b, OP_ADD, "add", (const int[]){x, y}, 2, &none);
	x = build_node(b, OP_MAX_POOL, "pool", &x, 1, &pool);
	return build_linear(b, "fc", build_flatten(b, "flatten", x), 5);
}

const struct network exercise_network_odd = {
	.name = "odd",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 10, 11}}},
	.input_count = 1,
	.classes = 5,
	.layers = odd_layers,
};

static int wide_layers(struct builder *b, int input)
{
	int x = build_relu(b, "relu", build_linear(b, "fc1", input, 6000));

	return build_linear(b, "fc2", x, 10);
}

const struct network exercise_network_wide = {
	.name = "wide",
	.inputs = {{.name = "input", .rank = 1, .dims = {784}}},
	.input_count = 1,
	.classes = 10,
	.layers = wide_layers,
};

/* Fills the inputs with the numbers for which the bounds of networks with one input were
 * determined. */
static void fill_slot(struct exercise *e, int slot)
{
	struct random random;

	random_init(&random, SEED + (uint64_t)slot);
	for (int64_t i = 0; i < shape_elements(&e->inputs[slot].shape); i++)
		((float *)e->inputs[slot].data)[i] = (float)random_normal(&random);
	for (int64_t i = 0; i < shape_elements(&e->labels[slot].shape); i++)
		((int64_t *)e->labels[slot].data)[i] =
			(int64_t)random_below(&random, (uint64_t)graph_classes(&e->graph));
}

void exercise_fill(struct exercise *e)
{
	struct tensor_set *x = &e->all_inputs, *y = &e->all_labels;

	batches_draw(&e->graph, SEED, 0, EXERCISE_SLOTS, e->labels_ignored, &e->arena, x, y, NULL);
	for (size_t slot = 0; slot < EXERCISE_SLOTS; slot++) {
		struct batch batch = batch_at(&e->graph, x, y, slot);

		e->inputs[slot] = batch.inputs[0];
		e->labels[slot] = batch.labels[0];
		if (batch.input_count == 1)
			fill_slot(e, (int)slot);
	}
}

struct batch exercise_batch(const struct exercise *e, int slot)
{
	return batch_at(&e->graph, &e->all_inputs, &e->all_labels, (size_t)slot);
}

static enum prony_status prepare(struct exercise *e, const struct network *network, int64_t batch,
				 struct error *err)
{
	arena_init(&e->arena, 0);
	TRY(zoo_build(network, batch, &e->graph, err));
	TRY(zoo_build(network, batch, &e->reference_graph, err));
	TRY(graph_add_backward(&e->reference_graph, err));
	TRY(graph_initial_weights(&e->graph, SEED, &e->arena, &e->weights, err));
	e->labels_ignored = network->labels_ignored;
	exercise_fill(e);
	recipe_defaults(&e->recipe);
	e->recipe.batch = batch;
	e->recipe.slots = EXERCISE_SLOTS;
	e->recipe.dropout = false;
	e->recipe.threads = 2;
	e->session.library = e->library;
	e->session.option = "";
	target_defaults(&e->session.target);
	e->session.private_data = arena_alloc(&e->arena, e->adapter->private_size);
	return PRONY_OK;
}

static _Noreturn void child(const struct adapter *adapter, const char *library,
			    const struct network *network, int64_t batch, exercise_body *body)
{
	static struct exercise e;
	struct error err = ERROR_INIT;
	enum prony_status status;

	/* In this child, cmocka's handlers would continue with the next test. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	signal(SIGSYS, SIG_DFL);
	alarm(120);
	e = (struct exercise){.adapter = adapter, .library = library};
	status = prepare(&e, network, batch, &err);
	if (status == PRONY_OK)
		status = body(&e, &err);
	adapter->close(&e.session);
	graph_release(&e.graph);
	graph_release(&e.reference_graph);
	arena_release(&e.arena);
	if (status != PRONY_OK)
		fprintf(stderr, "# %s, %s: %s: %s\n", adapter->name, network->name,
			prony_status_text(status), err.text);
	exit(status == PRONY_OK ? 0 : 1);
}

/* Returns the child's exit status as waitpid() gives it; -1 if the child could not be started. */
static int run_child(const struct adapter *adapter, const char *library,
		     const struct network *network, int64_t batch, exercise_body *body)
{
	int end = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		child(adapter, library, network, batch, body);
	if (pid < 0 || waitpid(pid, &end, 0) != pid)
		return -1;
	if (WIFSIGNALED(end))
		fprintf(stderr, "# %s, %s: signal %d\n", adapter->name, network->name,
			WTERMSIG(end));
	return end;
}

bool exercise_run(const struct adapter *adapter, const char *library, const struct network *network,
		  int64_t batch, exercise_body *body)
{
	int end = run_child(adapter, library, network, batch, body);

	/* As in a run, one crash of a framework is forgiven: MXNet 1.9.1 crashes in its own threads
	 * in about one of ten rounds of these tests. A crash of the native adapter is not forgiven.
	 */
	if (WIFSIGNALED(end) && strcmp(adapter->name, "native") != 0)
		end = run_child(adapter, library, network, batch, body);
	return WIFEXITED(end) && WEXITSTATUS(end) == 0;
}

enum prony_status exercise_open(struct exercise *e, struct error *err)
{
	const struct adapter *adapter = e->adapter;

	TRY(adapter->probe(&e->session, &e->probe, err));
	if (!e->probe.instruction_set[0])
		return error_set(err, PRONY_MISMATCH, "nothing is said of instructions");
	TRY(adapter->supports(&e->session.target, &e->graph, &e->recipe, err));
	TRY(adapter->open(&e->session, &e->recipe, &e->effective, err));
	TRY(adapter->build(&e->session, &e->graph, &e->recipe, &e->weights, &e->built, err));
	for (int slot = 0; slot < EXERCISE_SLOTS; slot++)
		TRY(adapter->feed(&e->session, slot, exercise_batch(e, slot), err));
	return PRONY_OK;
}

enum prony_status exercise_file(struct exercise *e, struct tensor *logits, struct error *err)
{
	const struct adapter *adapter = e->adapter;
	const struct value *input = &e->graph.values[graph_input(&e->graph, 0)];
	const struct value *output = &e->graph.values[e->graph.logits];
	struct model_file *file = arena_alloc(&e->arena, sizeof(*file));
	struct tensor *ends = arena_array(&e->arena, 2, sizeof(*ends));
	struct tensor_set outputs;
	void *bytes = NULL;

	ends[0] = e->inputs[0];
	ends[0].name = input->name;
	ends[1] = (struct tensor){.name = output->name, .dtype = DTYPE_F32};
	*file = (struct model_file){.inputs = {.tensors = &ends[0], .count = 1},
				    .outputs = {.tensors = &ends[1], .count = 1}};
	e->recipe.stage = STAGE_FORWARD;
	e->recipe.slots = 1;
	TRY(onnx_export(&e->graph, &e->weights, &bytes, &file->length, err));
	file->bytes = bytes;
	TRY(adapter->probe(&e->session, &e->probe, err));
	TRY(adapter->open(&e->session, &e->recipe, &e->effective, err));
	TRY(adapter->files->build(&e->session, file, &e->recipe, &e->built, err));
	TRY(adapter->files->feed(&e->session, 0, file->inputs.tensors, err));
	TRY(exercise_step(e, 0, err));
	TRY(adapter->files->outputs(&e->session, &e->arena, &outputs, err));
	*logits = outputs.tensors[0];
	return PRONY_OK; /* the engine uses the file's bytes until the process ends */
}

enum prony_status exercise_step(struct exercise *e, int slot, struct error *err)
{
	enum prony_status status = e->adapter->step(&e->session, slot, err);

	return status == PRONY_OK ? e->adapter->sync(&e->session, err) : status;
}

static void add_tensor(struct exercise *e, struct tensor_set *set, int value, enum dtype dtype)
{
	const struct value *row = &e->graph.values[value];

	tensor_new(&e->arena, row->name, dtype, &row->shape, &set->tensors[set->count++], NULL);
}

/* What the tensors are at once: an adapter that fills them later has not read. */
static struct tensor_set snapshot(struct exercise *e, const struct tensor_set *set)
{
	struct tensor_set out = {.tensors =
					 arena_array(&e->arena, set->count, sizeof(*out.tensors)),
				 .count = set->count};

	for (size_t i = 0; i < set->count; i++) {
		size_t bytes = (size_t)tensor_bytes(&set->tensors[i]);

		out.tensors[i] = set->tensors[i];
		out.tensors[i].data =
			memcpy(arena_alloc(&e->arena, bytes), set->tensors[i].data, bytes);
	}
	return out;
}

enum prony_status exercise_read(struct exercise *e, enum readout what, struct tensor_set *out,
				struct error *err)
{
	size_t room = (size_t)e->graph.value_count;
	int *indices = arena_array(&e->arena, room, sizeof(int));
	int count = graph_parameters(&e->graph, indices, (int)room);
	struct tensor_set set = {.tensors = arena_array(&e->arena, room, sizeof(struct tensor))};

	if (what == READ_STATE) {
		for (int i = 0; i < e->graph.value_count; i++)
			if (e->graph.values[i].kind == VALUE_STATE)
				add_tensor(e, &set, i, DTYPE_F32);
	} else if (what == READ_LOGITS)
		add_tensor(e, &set, e->graph.logits, DTYPE_F32);
	else if (what == READ_LOSS)
		add_tensor(e, &set, e->graph.loss, DTYPE_F64);
	else
		for (int i = 0; i < count; i++)
			add_tensor(e, &set, indices[i], DTYPE_F32);
	TRY(e->adapter->read(&e->session, what, &set, err));
	*out = snapshot(e, &set);
	return PRONY_OK;
}

enum prony_status exercise_compare(const char *name, const float *a, const double *b, int64_t count,
				   double bound, struct error *err)
{
	double difference = 0, size = 0;

	for (int64_t i = 0; i < count; i++) {
		difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
		size += b[i] * b[i];
	}
	difference = sqrt(difference);
	size = sqrt(size);
	if (!(size > 0) || !(difference <= bound * size))
		return error_set(err, PRONY_MISMATCH, "%s differs by %.3g of %.3g, bound %.3g",
				 name, difference, size, bound);
	return PRONY_OK;
}

/* Steps both the adapter and the reference on one batch. */
static enum prony_status step_both(struct exercise *e, struct reference *ref, int slot,
				   bool epsilon_inside, struct error *err)
{
	TRY(reference_feed(ref, exercise_batch(e, slot), err));

	TRY(reference_step(ref, &e->recipe, epsilon_inside, err));
	return exercise_step(e, slot, err);
}

static enum prony_status compare_logits(struct exercise *e, const struct reference *ref,
					struct error *err)
{
	struct tensor_set logits;
	int64_t count;
	const double *want = reference_value(ref, e->reference_graph.logits, &count);
	TRY(exercise_read(e, READ_LOGITS, &logits, err));

	return exercise_compare("logits", logits.tensors[0].data, want, count, BOUND_LOGITS, err);
}

static enum prony_status compare_loss(struct exercise *e, const struct reference *ref,
				      struct error *err)
{
	struct tensor_set loss;
	double want = reference_loss(ref);
	TRY(exercise_read(e, READ_LOSS, &loss, err));

	double have = *(const double *)loss.tensors[0].data;
	if (!(fabs(have - want) <= BOUND_LOSS * fabs(want)))
		return error_set(err, PRONY_MISMATCH, "loss is %.9g, not %.9g", have, want);
	return PRONY_OK;
}

enum prony_status exercise_forward(struct exercise *e, struct error *err)
{
	SCOPED(reference) ref = {0};

	e->recipe.stage = STAGE_FORWARD;
	TRY(reference_init(&ref, &e->reference_graph, &e->weights, err));
	TRY(exercise_open(e, err));
	for (int i = 0; i < EXERCISE_SLOTS + 1; i++) {
		TRY(step_both(e, &ref, i % EXERCISE_SLOTS, false, err));
		TRY(compare_logits(e, &ref, err));
	}
	return PRONY_OK;
}

enum prony_status exercise_data_file(struct exercise *e, struct error *err)
{
	static struct mapped_file map; /* until the child process ends */
	enum prony_status status;
	char *folder, *path;

	TRY(directory_make_temporary("prony-test-", &folder, err));
	path = path_join(folder, "weights.safetensors");
	status = safetensors_write_file(&e->weights, path, err);
	if (status == PRONY_OK)
		status = safetensors_map_file(path, &e->arena, &map, &e->weights, err);
	e->session.weights_file = &map;
	e->session.message_max = 16384;
	if (status == PRONY_OK)
		status = exercise_forward(e, err);
	directory_remove(folder, NULL);
	free(path);
	free(folder);
	return status;
}

enum prony_status exercise_in_flight(struct exercise *e, struct error *err)
{
	SCOPED(reference) ref = {0};

	e->recipe.stage = STAGE_FORWARD;
	TRY(reference_init(&ref, &e->reference_graph, &e->weights, err));
	TRY(exercise_open(e, err));
	for (int last = 0; last < EXERCISE_SLOTS; last++) {
		for (int i = 0; i < 2 * EXERCISE_SLOTS; i++)
			TRY(e->adapter->step(&e->session, (last + 1 + i) % EXERCISE_SLOTS, err));
		TRY(e->adapter->sync(&e->session, err));
		TRY(reference_feed(&ref, exercise_batch(e, last), err));
		TRY(reference_step(&ref, &e->recipe, false, err));
		TRY(compare_logits(e, &ref, err));
	}
	return PRONY_OK;
}

static enum prony_status compare_gradients(struct exercise *e, const struct reference *ref,
					   struct error *err)
{
	struct tensor_set gradients;
	int room = e->reference_graph.value_count;
	int *indices = arena_array(&e->arena, (size_t)room, sizeof(int));
	int count = graph_parameters(&e->reference_graph, indices, room);

	TRY(exercise_read(e, READ_GRADIENTS, &gradients, err));
	for (int i = 0; i < count; i++) {
		int64_t elements;
		int value = e->reference_graph.values[indices[i]].gradient;
		const double *want = reference_value(ref, value, &elements);

		TRY(exercise_compare(gradients.tensors[i].name, gradients.tensors[i].data, want,
				     elements, BOUND_GRADIENTS, err));
	}
	return PRONY_OK;
}

enum prony_status exercise_gradients(struct exercise *e, struct error *err)
{
	SCOPED(reference) ref = {0};

	e->recipe.stage = STAGE_FORWARD_BACKWARD;
	TRY(reference_init(&ref, &e->reference_graph, &e->weights, err));
	TRY(exercise_open(e, err));
	/* Ends on the first batch again: gradients must be fresh, not accumulated. */
	for (int i = 0; i < EXERCISE_SLOTS + 1; i++) {
		TRY(step_both(e, &ref, i % EXERCISE_SLOTS, false, err));
		TRY(compare_logits(e, &ref, err));
		TRY(compare_loss(e, &ref, err));
		TRY(compare_gradients(e, &ref, err));
	}
	return PRONY_OK;
}

/* Compares the changes of the weights: the weights themselves would agree even without training. */
static enum prony_status compare_changes(struct exercise *e, const struct reference *ref,
					 struct error *err)
{
	struct tensor_set weights;
	int room = e->reference_graph.value_count;
	int *indices = arena_array(&e->arena, (size_t)room, sizeof(int));
	int count = graph_parameters(&e->reference_graph, indices, room);

	TRY(exercise_read(e, READ_WEIGHTS, &weights, err));
	for (int i = 0; i < count; i++) {
		int64_t elements;
		const double *want = reference_value(ref, indices[i], &elements);
		const struct tensor *have = &weights.tensors[i];
		const float *start = tensor_find(&e->weights, have->name)->data;
		double *change = arena_array(&e->arena, (size_t)elements, sizeof(double));

		for (int64_t j = 0; j < elements; j++) {
			change[j] = want[j] - (double)start[j];
			((float *)have->data)[j] -= start[j];
		}
		TRY(exercise_compare(have->name, have->data, change, elements, BOUND_CHANGE, err));
	}
	return PRONY_OK;
}

/* Compares running statistics, if the adapter has any. */
static enum prony_status compare_states(struct exercise *e, const struct reference *ref,
					struct error *err)
{
	struct tensor_set states;

	TRY(exercise_read(e, READ_STATE, &states, err));
	for (size_t i = 0; i < states.count; i++) {
		const struct tensor *have = &states.tensors[i];
		int64_t elements;
		const double *want = reference_value(
			ref, graph_find_value(&e->reference_graph, have->name), &elements);

		TRY(exercise_compare(have->name, have->data, want, elements, BOUND_STATE, err));
	}
	return PRONY_OK;
}

enum prony_status exercise_updates(struct exercise *e, bool epsilon_inside, struct error *err)
{
	SCOPED(reference) ref = {0};

	e->recipe.stage = STAGE_TRAIN;
	TRY(reference_init(&ref, &e->reference_graph, &e->weights, err));
	TRY(exercise_open(e, err));
	for (int i = 0; i < EXERCISE_SLOTS; i++) {
		TRY(step_both(e, &ref, i, epsilon_inside, err));
		TRY(compare_loss(e, &ref, err));
	}
	TRY(compare_changes(e, &ref, err));
	TRY(compare_states(e, &ref, err));
	return PRONY_OK;
}

enum prony_status exercise_wrong_weight(struct exercise *e, struct error *err)
{
	struct reference ref = {0};
	const struct tensor *weight = &e->weights.tensors[0];
	struct error mismatch = ERROR_INIT;

	e->recipe.stage = STAGE_FORWARD;
	TRY(exercise_open(e, err)); /* the adapter has copied the weights */
	for (int64_t i = 0; i < shape_elements(&weight->shape); i++)
		((float *)weight->data)[i] *= 1.001f;
	TRY(reference_init(&ref, &e->reference_graph, &e->weights, err));
	TRY(step_both(e, &ref, 0, false, err));
	if (compare_logits(e, &ref, &mismatch) != PRONY_MISMATCH)
		return error_set(err, PRONY_MISMATCH, "a wrong weight went unnoticed");
	reference_release(&ref);
	return PRONY_OK;
}
