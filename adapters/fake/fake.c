/* The adapter fake: runs the executor, and fails or errs as its options request. */
#include "adapters/fake/fake.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "adapters/checks.h"
#include "adapters/fake/executor.h"
#include "adapters/fake/fake_profile.h"
#include "adapters/fake/options_internal.h"
#include "adapters/fake/reduce.h"
#include "adapters/reasons.h"
#include "base/clock.h"

/* The gate runs three updates on three batches; timed processes rotate over more. */
#define GATE_SLOTS_MAX 3
#define FLOOD_BYTES ((size_t)256 << 10)
#define LONG_LINE_BYTES ((size_t)2 << 20)
#define OOM_BLOCK_MIB 16
#define OOM_NAP_NS INT64_C(10000000)
#define TF32_BITS 11 /* significant bits, the leading 1 included */
#define HOUR_NS (INT64_C(3600) * 1000000000)

struct fed {
	struct tensor input, labels; /* labels: data is NULL if there are none */
};

struct fake {
	struct fake_options options;
	struct executor executor;
	struct recipe recipe;
	int swapped;	   /* value whose channels the mutant swaps, or VALUE_NONE */
	struct fed *slots; /* owned; recipe.slots of them */
	int64_t steps;	   /* steps so far */
	int slot_count;	   /* 0 before open */
	int rank;
	struct reduce reduce;
};

/* `supports` has no session, so the options of the session are stored for the process. */
static struct fake_options process_options = FAKE_OPTIONS_INIT;

/* Returns true if faults are active: all but one at hello can be limited to the gate or to timed
 * processes. */
static bool is_active(const struct fake *fake)
{
	bool gate = fake->slot_count <= GATE_SLOTS_MAX;

	if (fake->options.only_rank >= 0 && fake->options.only_rank != fake->rank)
		return false;
	if (fake->slot_count == 0)
		return true;
	return !(fake->options.gate_only && !gate) && !(fake->options.timed_only && gate);
}

static void write_fully(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);

		if (written <= 0)
			return;
		bytes += written;
		length -= (size_t)written;
	}
}

/* Writes binary data, and lines that a careless parent would read as replies. */
static void flood(size_t bytes)
{
	static const char lines[] = "{\"id\": 1, \"ok\": true}\n"
				    "{\"id\": 2, \"ok\": false, \"status\": \"crashed\"}\n"
				    "\x1b[2J\x00\xff\xfe\r\n%s%n\t{{{\"\n";

	for (size_t done = 0; done < bytes; done += sizeof lines) {
		write_fully(STDOUT_FILENO, lines, sizeof lines - 1);
		write_fully(STDERR_FILENO, lines, sizeof lines - 1);
	}
}

/* Starts a grandchild. The middle process ends at once, so that the grandchild loses its parent. */
static void leave_grandchild(void)
{
	pid_t child = fork();

	if (child != 0)
		return;
	if (setsid() < 0 || fork() != 0)
		_exit(0);
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	for (;;)
		pause();
}

static _Noreturn void crash(void)
{
	struct rlimit no_core = {0, 0};

	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	abort();
}

/* Uses up memory. The process asks to be the kernel's first choice, so that other processes are
 * spared. It grows by less than 2 GiB a second, so that a parent that checks at intervals sees it
 * before the machine is full. */
static _Noreturn void exhaust_memory(int64_t limit_mib)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "w");

	if (file) {
		fputs("1000", file);
		fclose(file);
	}
	for (int64_t mib = 0; limit_mib == 0 || mib < limit_mib; mib += OOM_BLOCK_MIB) {
		char *block = malloc((size_t)OOM_BLOCK_MIB << 20);

		if (!block)
			abort(); /* like C++ on std::bad_alloc */
		memset(block, 0x5a, (size_t)OOM_BLOCK_MIB << 20);
		/* Hides from the compiler that the block is never read. */
		__asm__ volatile("" : : "r"(block) : "memory");
		clock_sleep_until_ns(clock_monotonic_ns() + OOM_NAP_NS);
	}
	raise(SIGKILL);
	abort();
}

/* Runs the faults of a place before its work; returns the status for the adapter to return. */
static enum prony_status strike(struct fake *fake, enum fake_place place, struct error *err)
{
	const struct fake_options *o = &fake->options;

	if (o->faults == 0 || !is_active(fake) || (place == AT_STEP && fake->steps < o->after))
		return PRONY_OK;
	if (fake_options_strike(o, FAULT_GARBAGE_STDOUT, place))
		flood(place == AT_STEP ? 1 : FLOOD_BYTES);
	if (fake_options_strike(o, FAULT_GRANDCHILD, place))
		leave_grandchild();
	if (fake_options_strike(o, FAULT_CRASH, place))
		crash();
	if (fake_options_strike(o, FAULT_EXIT, place))
		_exit((int)o->exit_code);
	while (fake_options_strike(o, FAULT_HANG, place))
		pause();
	if (fake_options_strike(o, FAULT_OOM, place))
		exhaust_memory(o->oom_mib);
	if (fake_options_strike(o, FAULT_OOM_REPLY, place))
		return error_set(err, PRONY_OUT_OF_MEMORY, "fake: out of memory, as requested");
	if (fake_options_strike(o, FAULT_FAIL, place))
		return error_set(err, PRONY_CRASHED, "fake: failed, as requested");
	return PRONY_OK;
}

static enum prony_status fake_judge_options(const char *words, struct error *why)
{
	struct fake_options options = FAKE_OPTIONS_INIT;

	return fake_options_parse(words, &options, why);
}

static enum prony_status fake_probe(struct session *s, struct probe *found, struct error *err)
{
	struct fake *fake = s->private_data;
	enum prony_status status;

	fake->options = (struct fake_options)FAKE_OPTIONS_INIT;
	status = fake_options_parse(s->option, &fake->options, err);
	if (status != PRONY_OK)
		return status;
	status = fake_options_parse(s->target.options, &fake->options, err);
	if (status != PRONY_OK)
		return status;
	process_options = fake->options;
	fake->rank = s->target.rank;
	if (fake->options.missing)
		return error_set(err, PRONY_MISSING, "fake: not installed, as requested");
	status = strike(fake, AT_HELLO, err);
	if (status != PRONY_OK)
		return status;
	*found = (struct probe){
		.version = PRONY_VERSION,
		.stages = 1u << STAGE_FORWARD | 1u << STAGE_FORWARD_BACKWARD | 1u << STAGE_TRAIN,
		.precisions = 1u << PRECISION_FP32 | 1u << PRECISION_TF32,
		/* The second device is the CPU again, under a name that only the library knows. */
		.devices = {"cpu", "fake:0"},
		.device_count = 2,
	};
	return PRONY_OK;
}

static enum prony_status fake_supports(const struct target *target, const struct graph *graph,
				       const struct recipe *recipe, struct error *why)
{
	(void)target;
	enum prony_status status = executor_supports(graph, why);
	struct strbuf reasons;

	(void)recipe;
	if (process_options.unsupported)
		return error_set(why, PRONY_UNSUPPORTED, "fake: supports nothing, as requested");
	strbuf_init(&reasons, 0);
	reasons_add_inputs(&reasons, graph);
	return status == PRONY_OK ? reasons_finish(&reasons, why) : status;
}

/* Sets the reported values, which may be false: the arithmetic always runs on one thread. */
static void claim(const struct fake *fake, const struct recipe *recipe, struct effective *effective)
{
	static const enum precision claims[] = {
		[WRONG_PRECISION_BF16] = PRECISION_BF16,
		[WRONG_PRECISION_FP16] = PRECISION_FP16,
		[WRONG_PRECISION_TF32] = PRECISION_TF32,
		[WRONG_PRECISION_FP32] = PRECISION_FP32,
	};

	*effective = (struct effective){
		.precision = recipe->precision,
		.threads = recipe->threads,
		.settings = "rmsprop_epsilon=outside",
	};
	if (!is_active(fake))
		return;
	if (fake->options.each_maximum == EACH_MAXIMUM_SAID ||
	    fake->options.each_maximum == EACH_MAXIMUM_CLAIMED)
		snprintf(effective->settings, sizeof effective->settings,
			 "rmsprop_epsilon=outside;equal_maxima=each");
	if (fake->options.wrong_threads)
		effective->threads++;
	if (fake->options.wrong_precision)
		effective->precision = claims[fake->options.wrong_precision];
}

static enum prony_status fake_open(struct session *s, const struct recipe *recipe,
				   struct effective *effective, struct error *err)
{
	struct fake *fake = s->private_data;
	enum prony_status status;

	fake->slots = calloc((size_t)recipe->slots, sizeof *fake->slots);
	if (!fake->slots)
		return error_set(err, PRONY_NOMEM, "no memory for %d slots", recipe->slots);
	fake->slot_count = recipe->slots;
	status = strike(fake, AT_OPEN, err);
	if (status != PRONY_OK)
		return status;
	claim(fake, recipe, effective);
	snprintf(effective->device, sizeof effective->device, "%s", s->target.device);
	return PRONY_OK;
}

/* Exchanges rows 0 and 1 of an array whose first dimension is channels. */
static void swap_channels(const struct shape *shape, float *data)
{
	int64_t row = shape_elements(shape) / shape->dims[0];

	for (int64_t i = 0; i < row; i++) {
		float kept = data[i];

		data[i] = data[row + i];
		data[row + i] = kept;
	}
}

/* Returns the first parameter of at least rank `rank`, with at least two rows if `rank` is above 0;
 * or VALUE_NONE. */
static int first_parameter(const struct graph *graph, int rank)
{
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind == VALUE_PARAMETER && value->shape.rank >= rank &&
		    (rank == 0 || value->shape.dims[0] >= 2))
			return i;
	}
	return VALUE_NONE;
}

/* Sets up mistakes that real adapters make; the parity gate must reject each of them. */
static void make_mutant(struct fake *fake, const struct graph *graph)
{
	const struct fake_options *o = &fake->options;
	struct executor_settings *settings = &fake->executor.settings;
	int first = first_parameter(graph, 0);

	if (o->no_momentum && fake->recipe.optimiser == OPTIMISER_MOMENTUM)
		fake->recipe.momentum = 0;
	if (o->tf32)
		settings->operand_bits = TF32_BITS;
	settings->frozen_biases = o->no_bias_gradient;
	settings->clips_each = o->clips_each;
	settings->rate_factor = o->lr_scale;
	settings->each_maximum =
		o->each_maximum == EACH_MAXIMUM_SAID || o->each_maximum == EACH_MAXIMUM_UNSAID;
	/* The first layer's parameters: "conv1.weight", "conv1.bias". */
	if (o->frozen_layer && first != VALUE_NONE) {
		const char *name = graph->values[first].name;

		settings->frozen = arena_strndup(&fake->executor.arena, name,
						 strcspn(name, ".") + (strchr(name, '.') != NULL));
	}
	if (o->swapped_channels)
		fake->swapped = first_parameter(graph, 2);
	if (fake->swapped != VALUE_NONE)
		swap_channels(&graph->values[fake->swapped].shape,
			      fake->executor.values[fake->swapped]);
}

static enum prony_status fake_build(struct session *s, struct graph *graph,
				    const struct recipe *recipe, const struct tensor_set *weights,
				    struct built *built, struct error *err)
{
	struct fake *fake = s->private_data;
	enum prony_status status = strike(fake, AT_BUILD, err);

	if (status == PRONY_OK && recipe->stage != STAGE_FORWARD)
		status = graph_add_backward(graph, err);
	if (status == PRONY_OK)
		status = executor_init(&fake->executor, graph, weights, err);
	if (status != PRONY_OK)
		return status;
	fake->recipe = *recipe;
	fake->swapped = VALUE_NONE;
	if (recipe->precision == PRECISION_TF32)
		fake->executor.settings.operand_bits = TF32_BITS;
	if (is_active(fake))
		make_mutant(fake, graph);
	status = reduce_open(&fake->reduce, &s->target, &fake->executor,
			     is_active(fake) ? (int)fake->options.reduce : 0, err);
	if (status != PRONY_OK)
		return status;
	*built = (struct built){
		.parameters = graph_parameter_count(graph),
		.macs = graph_macs(graph),
		.notes = "plain loops, nothing fused",
	};
	return PRONY_OK;
}

static enum prony_status fake_feed(struct session *s, int slot, struct batch batch,
				   struct error *err)
{
	struct fake *fake = s->private_data;
	bool training = fake->recipe.stage != STAGE_FORWARD;
	enum prony_status status = strike(fake, AT_FEED, err);

	if (status == PRONY_OK)
		status = check_batch(fake->executor.graph, batch, training, err);
	if (status == PRONY_OK)
		status = check_no_ignored(batch, err);
	if (status != PRONY_OK)
		return status;
	fake->slots[slot] = (struct fed){.input = batch.inputs[0]};
	if (batch.label_count > 0)
		fake->slots[slot].labels = batch.labels[0];
	return PRONY_OK;
}

static void spin_until_ns(int64_t instant_ns)
{
	while (clock_monotonic_ns() < instant_ns)
		continue;
}

/* Reads the clock, unlike adapters of frameworks, because this adapter simulates a known delay. */
static enum prony_status fake_step(struct session *s, int slot, struct error *err)
{
	struct fake *fake = s->private_data;
	const struct fake_options *o = &fake->options;
	const struct fed *batch = &fake->slots[slot];
	int64_t begin_ns = o->step_ns > 0 ? clock_monotonic_ns() : 0;
	enum prony_status status = strike(fake, AT_STEP, err);

	if (status != PRONY_OK)
		return status;
	executor_step(&fake->executor, &fake->recipe, &batch->input,
		      batch->labels.data ? &batch->labels : NULL);
	fake->steps++;
	if (o->delay_ns > 0 && is_active(fake))
		spin_until_ns(clock_monotonic_ns() + o->delay_ns);
	if (o->step_ns > 0 && is_active(fake))
		spin_until_ns(begin_ns + o->step_ns);
	if (o->cold_ns > 0 && fake->steps == 1 && is_active(fake))
		spin_until_ns(clock_monotonic_ns() + o->cold_ns);
	return PRONY_OK;
}

static enum prony_status fake_sync(struct session *s, struct error *err)
{
	(void)s, (void)err; /* a step is finished when it returns */
	return PRONY_OK;
}

static double claimed_loss(const struct fake *fake)
{
	const struct graph *graph = fake->executor.graph;
	double loss = (double)fake->executor.values[graph->loss][0];

	if (!is_active(fake))
		return loss;
	if (fake->options.nan_loss == NAN_LOSS_FIRST ||
	    (fake->options.nan_loss == NAN_LOSS_LAST && fake->steps > GATE_SLOTS_MAX))
		return NAN;
	return loss;
}

static enum prony_status read_loss(const struct fake *fake, struct tensor *out, struct error *err)
{
	double loss = claimed_loss(fake);
	float rounded = (float)loss;

	if (out->dtype == DTYPE_F64)
		memcpy(out->data, &loss, sizeof loss);
	else if (out->dtype == DTYPE_F32)
		memcpy(out->data, &rounded, sizeof rounded);
	else
		return error_set(err, PRONY_INTERNAL, "the loss can only be read as F64 or F32");
	return PRONY_OK;
}

static enum prony_status read_logits(const struct fake *fake, struct tensor *out, struct error *err)
{
	const struct graph *graph = fake->executor.graph;
	const struct value *logits = &graph->values[graph->logits];

	if (out->dtype != DTYPE_F32 || !shape_equal(&out->shape, &logits->shape))
		return error_set(err, PRONY_INTERNAL,
				 "logits can only be read as F32 in their own shape");
	memcpy(out->data, fake->executor.values[graph->logits], (size_t)tensor_bytes(out));
	if (fake->options.wrong_logits && is_active(fake))
		*(float *)out->data += 1;
	return PRONY_OK;
}

/* Copies parameters or states by name, or the gradients of parameters. */
static enum prony_status read_all(const struct fake *fake, bool gradients, struct tensor_set *out,
				  struct error *err)
{
	const struct executor *executor = &fake->executor;

	for (size_t i = 0; i < out->count; i++) {
		struct tensor *tensor = &out->tensors[i];
		int value = graph_find_value(executor->graph, tensor->name), source = value;

		if (gradients && value != VALUE_NONE)
			source = executor->graph->values[value].gradient;
		if (source < 0 || !executor->values[source] || tensor->dtype != DTYPE_F32)
			return error_set(err, PRONY_INTERNAL, "%s cannot be read as F32",
					 tensor->name);
		memcpy(tensor->data, executor->values[source], (size_t)tensor_bytes(tensor));
		if (value == fake->swapped)
			swap_channels(&tensor->shape, tensor->data);
	}
	return PRONY_OK;
}

static enum prony_status fake_read(struct session *s, enum readout what, struct tensor_set *out,
				   struct error *err)
{
	struct fake *fake = s->private_data;
	enum prony_status status = strike(fake, AT_READ, err);

	if (status != PRONY_OK)
		return status;
	if (what == READ_LOSS)
		return read_loss(fake, &out->tensors[0], err);
	if (what == READ_LOGITS)
		return read_logits(fake, &out->tensors[0], err);
	return read_all(fake, what == READ_GRADIENTS, out, err);
}

static void fake_close(struct session *s)
{
	struct fake *fake = s->private_data;
	struct error ignored = ERROR_INIT;

	strike(fake, AT_CLOSE, &ignored); /* close cannot fail, but it can crash or hang */
	reduce_close(&fake->reduce);
	executor_release(&fake->executor);
	free(fake->slots);
	fake->slots = NULL;
}

/* Falsifies the records of a run and the instants in its reply. */
static void falsify_times(const struct fake_options *o, json_t *reply, int64_t *instants,
			  int64_t count)
{
	if (o->impossible_time == IMPOSSIBLE_TIME_LONG)
		instants[2 * count - 1] += HOUR_NS;
	if (o->impossible_time == IMPOSSIBLE_TIME_BEFORE)
		instants[0] -= HOUR_NS;
	for (int64_t i = 0; o->backwards_time && i < count; i++) {
		int64_t begin_ns = instants[2 * i];

		instants[2 * i] = instants[2 * i + 1];
		instants[2 * i + 1] = begin_ns;
	}
	json_object_set_new(reply, "begin_at_ns", json_integer(instants[0]));
	json_object_set_new(reply, "end_at_ns", json_integer(instants[2 * count - 1]));
}

/* Writes to the reply descriptor without the worker's knowledge, as a wild pointer might. */
static void write_to_parent(const char *bytes, size_t length)
{
	const char *number = getenv("PRONY_REPLY_FD");

	if (number)
		write_fully((int)strtol(number, NULL, 10), bytes, length);
}

static void fake_tamper(struct session *s, const char *verb, json_t *reply, int64_t *instants,
			int64_t count)
{
	static const char garbage[] = "\x00\xff\xfe not { json\n";
	static const char half[] = "{\"id\": 1, \"ok\": tr";
	struct fake *fake = s->private_data;
	enum fake_place place = fake_place_parse(verb);

	if (!fake || place == PLACE_COUNT || !is_active(fake))
		return;
	const struct fake_options *o = &fake->options;
	if (count > 0 && (o->impossible_time || o->backwards_time))
		falsify_times(o, reply, instants, count);
	if (place == AT_STEP && fake->steps < o->after)
		return;
	if (fake_options_strike(o, FAULT_GARBAGE_REPLY, place))
		write_to_parent(garbage, sizeof garbage - 1);
	if (fake_options_strike(o, FAULT_LONG_LINE, place)) {
		char *line = malloc(LONG_LINE_BYTES);

		if (line) {
			memset(line, 'x', LONG_LINE_BYTES);
			write_to_parent(line, LONG_LINE_BYTES);
		}
		free(line);
	}
	if (fake_options_strike(o, FAULT_HALF_REPLY, place)) {
		write_to_parent(half, sizeof half - 1);
		_exit(0);
	}
	if (fake_options_strike(o, FAULT_WRONG_ID, place))
		json_object_set_new(reply, "id", json_integer(INT32_MAX));
}

static enum prony_status profile_begin(struct session *s, int64_t steps, int64_t (*now_ns)(void),
				       struct error *err)
{
	struct fake *fake = s->private_data;

	return fake_profile_begin(&fake->executor, steps, now_ns, err);
}

static enum prony_status profile_end(struct session *s, const int64_t *instants, int64_t steps,
				     struct profile_log *log, struct error *err)
{
	struct fake *fake = s->private_data;

	return fake_profile_end(&fake->executor, instants, steps, log, err);
}

static const struct adapter_profile fake_profile = {.begin = profile_begin, .end = profile_end};

const struct adapter adapter_fake = {
	.abi = ADAPTER_ABI,
	.name = "fake",
	.summary = "an executor that fails on request, for testing prony",
	.collectives = "shared memory",
	.judge_options = fake_judge_options,
	.private_size = sizeof(struct fake),
	.probe = fake_probe,
	.supports = fake_supports,
	.open = fake_open,
	.build = fake_build,
	.feed = fake_feed,
	.step = fake_step,
	.sync = fake_sync,
	.read = fake_read,
	.close = fake_close,
	.tamper = fake_tamper,
	.profile = &fake_profile,
};
