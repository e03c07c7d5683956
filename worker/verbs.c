/* Executes the verbs of the protocol, except hello and profile, which have their own files. */
#include "worker/verbs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "worker/loop.h"
#include "worker/verbs_internal.h"

/* More resident batches than this is a damaged bundle, not a measurement. */
#define SLOTS_MAX (1 << 20)

typedef enum prony_status serve_function(struct worker *w, const json_t *request, json_t *reply,
					 struct error *err);

void worker_init(struct worker *w, const struct adapter *adapter, const char *library,
		 const char *option)
{
	*w = (struct worker){
		.adapter = adapter,
		.session = {.library = library, .option = option ? option : ""},
		.progress = PROGRESS_STARTED,
	};
	results_init(&w->results);
	ring_init(&w->ring);
}

static void drop_bundle(struct worker *w)
{
	if (!w->folder)
		return;
	bundle_release(&w->bundle);
	free(w->folder);
	w->folder = NULL;
}

static void close_adapter(struct worker *w)
{
	if (!w->close_owed)
		return;
	w->close_owed = false;
	w->adapter->close(&w->session);
}

void worker_release(struct worker *w)
{
	if (!w)
		return;
	close_adapter(w);
	free(w->session.private_data);
	w->session.private_data = NULL;
	free(w->fed);
	w->fed = NULL;
	drop_bundle(w);
	ring_release(&w->ring);
	results_release(&w->results);
}

const char *worker_status_word(enum prony_status status)
{
	switch (status) {
	case PRONY_UNSUPPORTED:
		return "unsupported";
	case PRONY_MISSING:
		return "missing";
	case PRONY_OUT_OF_MEMORY:
	case PRONY_NOMEM:
		return "out-of-memory";
	case PRONY_BAD_INPUT:
	case PRONY_PROTOCOL:
	case PRONY_INVALID:
		return "invalid";
	default:
		return "crashed";
	}
}

/* Loads the bundle that the request names, unless it is already loaded. */
static enum prony_status load_bundle(struct worker *w, const json_t *request, struct error *err)
{
	const char *folder;
	enum prony_status status = json_get_string(request, "bundle", &folder, err);

	if (status != PRONY_OK)
		return status;
	if (w->folder && strcmp(w->folder, folder) == 0)
		return PRONY_OK;
	drop_bundle(w);
	status = bundle_open(folder, &w->bundle, err);
	if (status == PRONY_OK &&
	    (w->bundle.recipe.slots < 1 || w->bundle.recipe.slots > SLOTS_MAX))
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s/%s: recipe: slots is %d; it must be 1 to %d", folder,
				   BUNDLE_CASE_FILE, w->bundle.recipe.slots, SLOTS_MAX);
	if (status != PRONY_OK) {
		bundle_release(&w->bundle);
		/* Any failure to read it is an error of the request, which named it; nothing has
		 * changed. */
		if (err && status != PRONY_NOMEM)
			err->code = status = PRONY_BAD_INPUT;
		return status;
	}
	w->folder = memory_strdup(folder);
	return PRONY_OK;
}

/* Adds to `why` what the framework reported at hello as unsupported, in case its adapter did not
 * object. */
static void check_probe(const struct worker *w, struct strbuf *why)
{
	const struct recipe *recipe = &w->bundle.recipe;

	/* A framework with its own loader also supports the stage load. */
	if (!(w->probe.stages & 1u << recipe->stage) &&
	    !(recipe->stage == STAGE_LOAD && w->bundle.has_data))
		strbuf_printf(why, "stage %s is not supported", stage_name(recipe->stage));
	if (!(w->probe.precisions & 1u << recipe->precision))
		strbuf_printf(why, "%sprecision %s is not supported%s%s", why->length ? "; " : "",
			      precision_name(recipe->precision),
			      w->probe.instruction_set[0] ? " with the instruction set " : "",
			      w->probe.instruction_set);
}

static enum prony_status serve_supports(struct worker *w, const json_t *request, json_t *reply,
					struct error *err)
{
	struct error why = ERROR_INIT;
	struct strbuf reasons;
	enum prony_status status = load_bundle(w, request, err);

	if (status != PRONY_OK)
		return status;
	strbuf_init(&reasons, ERROR_TEXT_BYTES);
	status = verbs_supports(w, &why);
	if (status == PRONY_UNSUPPORTED)
		strbuf_puts(&reasons, why.text[0] ? why.text : "the adapter gave no reason");
	else
		check_probe(w, &reasons);
	if (status == PRONY_OK || status == PRONY_UNSUPPORTED) {
		verbs_add(reply, "supported", json_boolean(reasons.length == 0));
		if (reasons.length)
			verbs_add(reply, "reason", json_string(strbuf_text(&reasons)));
		status = PRONY_OK;
	} else {
		status = error_set(err, status, "%s", why.text);
	}
	strbuf_release(&reasons);
	return status;
}

/* Turns "NAME=value;NAME=value" into an object. */
static json_t *settings_object(const char *text)
{
	json_t *object = json_object();

	while (*text) {
		size_t length = strcspn(text, ";");
		size_t name = strcspn(text, "=;");
		size_t value = name < length ? name + 1 : length;

		if (name > 0) {
			char *key = memory_printf("%.*s", (int)name, text);

			verbs_add(object, key, json_stringn(text + value, length - value));
			free(key);
		}
		text += length + (text[length] == ';');
	}
	return object;
}

static uint32_t current_mxcsr(void)
{
#if defined(__SSE__)
	return _mm_getcsr();
#else
	return 0;
#endif
}

static enum prony_status serve_open(struct worker *w, const json_t *request, json_t *reply,
				    struct error *err)
{
	struct effective effective = {.threads = 0};
	enum prony_status status = load_bundle(w, request, err);

	if (status != PRONY_OK)
		return status;
	int64_t begin_ns = clock_monotonic_ns();
	status = w->adapter->open(&w->session, &w->bundle.recipe, &effective, err);
	verbs_add_duration(reply, "open_ns", begin_ns);
	if (status != PRONY_OK)
		return verbs_adapter_result(w, status, "open", err);
	/*
	 * This thread executes the steps, unless the adapter reported the register of another one.
	 */
	if (effective.mxcsr == 0)
		effective.mxcsr = current_mxcsr();
	verbs_add(reply, "device", json_string(effective.device));
	verbs_add(reply, "threads", json_integer(effective.threads));
	verbs_add(reply, "precision", json_string(precision_name(effective.precision)));
	if (effective.mxcsr != 0)
		verbs_add(reply, "mxcsr", json_integer(effective.mxcsr));
	if (effective.settings[0])
		verbs_add(reply, "settings", settings_object(effective.settings));
	if (w->bundle.recipe.input == INPUT_STREAM)
		status = ring_lay_out(&w->ring, &w->bundle, w->results.ring, w->results.ring_bytes,
				      err);
	if (status != PRONY_OK)
		return verbs_adapter_result(w, status, "open", err);
	w->fed = memory_alloc((size_t)w->bundle.recipe.slots * sizeof *w->fed);
	memset(w->fed, 0, (size_t)w->bundle.recipe.slots * sizeof *w->fed);
	w->progress = PROGRESS_OPENED;
	return PRONY_OK;
}

static json_t *count_or_null(int64_t count)
{
	return count < 0 ? json_null() : json_integer(count);
}

static enum prony_status serve_build(struct worker *w, const json_t *request, json_t *reply,
				     struct error *err)
{
	struct built built = {.parameters = -1, .macs = -1};
	int64_t begin_ns = clock_monotonic_ns();
	enum prony_status status = verbs_build(w, &built, err);

	(void)request;
	verbs_add_duration(reply, "build_ns", begin_ns);
	if (status != PRONY_OK)
		return verbs_adapter_result(w, status, "build", err);
	verbs_add(reply, "parameters", count_or_null(built.parameters));
	verbs_add(reply, "macs", count_or_null(built.macs));
	if (built.notes[0])
		verbs_add(reply, "notes", json_string(built.notes));
	w->progress = PROGRESS_BUILT;
	return PRONY_OK;
}

static enum prony_status serve_feed(struct worker *w, const json_t *request, json_t *reply,
				    struct error *err)
{
	const struct bundle *bundle = &w->bundle;
	int64_t batches = bundle->is_model ? bundle->recipe.slots
					   : (int64_t)bundle->inputs.count /
						     graph_inputs(&bundle->graph, NULL, 0);
	int64_t slot = 0, batch = 0;
	enum prony_status status =
		verbs_get_index(request, "slot", bundle->recipe.slots, &slot, err);

	if (bundle->recipe.input != INPUT_RESIDENT)
		return error_set(err, PRONY_PROTOCOL, "with input %s, batches are not fed",
				 input_mode_name(bundle->recipe.input));
	if (status == PRONY_OK)
		status = verbs_get_index(request, "batch", batches, &batch, err);
	if (status != PRONY_OK)
		return status;
	int64_t begin_ns = clock_monotonic_ns();
	status = verbs_feed(w, (int)slot, batch, err);
	verbs_add_duration(reply, "feed_ns", begin_ns);
	if (status != PRONY_OK)
		return verbs_adapter_result(w, status, "feed", err);
	w->fed[slot] = true;
	return PRONY_OK;
}

static enum prony_status parse_run(struct worker *w, const json_t *request, struct loop_plan *plan,
				   struct error *err)
{
	const char *sync_word;
	enum sync_mode sync;
	enum prony_status status = verbs_parse_steps(w, request, plan, err);

	if (status == PRONY_OK)
		status = json_get_string(request, "sync", &sync_word, err);
	if (status != PRONY_OK)
		return status;
	if (!sync_mode_parse(sync_word, &sync))
		return error_set(err, PRONY_PROTOCOL,
				 "sync must be end, step or blocks, not \"%.40s\"", sync_word);
	plan->every = sync == SYNC_STEP ? 1 : plan->steps;
	if (sync != SYNC_BLOCKS)
		return PRONY_OK;
	status = json_get_int(request, "every", &plan->every, err);
	if (status != PRONY_OK)
		return status;
	if (plan->every < 1)
		return error_set(err, PRONY_PROTOCOL, "every must be at least 1, not %" PRId64,
				 plan->every);
	return PRONY_OK;
}

static enum prony_status serve_run(struct worker *w, const json_t *request, json_t *reply,
				   struct error *err)
{
	struct loop_plan plan;
	enum prony_status status = parse_run(w, request, &plan, err);

	if (status != PRONY_OK)
		return status;
	int64_t count = loop_records(&plan);
	status = results_reserve(&w->results, count, err);
	if (status != PRONY_OK)
		return status;
	ring_begin(&w->ring);
	own_loader_begin(&w->own);
	status = loop_run(w->adapter, &w->session, &plan, w->results.records, err);
	if (status != PRONY_OK)
		return verbs_adapter_result(w, status, "step", err);
	w->record_count = count;
	w->progress = PROGRESS_RAN;
	verbs_add(reply, "steps", json_integer(plan.steps));
	verbs_add(reply, "records", json_integer(count));
	if (plan.ring || plan.own) {
		verbs_add(reply, "wait_ns", json_integer(w->ring.wait_ns + w->own.wait_ns));
		verbs_add(reply, "copy_ns", json_integer(w->ring.copy_ns + w->own.copy_ns));
	}
	verbs_add(reply, "begin_at_ns", json_integer(w->results.records[0].begin_ns));
	verbs_add(reply, "end_at_ns", json_integer(w->results.records[count - 1].end_ns));
	return PRONY_OK;
}

static enum prony_status check_read(const struct worker *w, enum readout what, struct error *err)
{
	const struct recipe *recipe = &w->bundle.recipe;
	bool of_a_step = what == READ_LOGITS || what == READ_LOSS || what == READ_GRADIENTS ||
			 what == READ_OUTPUTS;

	if (w->bundle.is_model != (what == READ_OUTPUTS))
		return error_set(err, PRONY_PROTOCOL, "%s cannot be read from %s",
				 readout_name(what),
				 w->bundle.is_model ? "an unchanged model file" : "a graph");

	if (of_a_step && w->progress != PROGRESS_RAN)
		return error_set(err, PRONY_PROTOCOL, "%s cannot be read before the first step",
				 readout_name(what));
	if (recipe->stage == STAGE_LOAD)
		return error_set(err, PRONY_PROTOCOL, "stage load computes nothing to read");
	if ((what == READ_LOSS || what == READ_GRADIENTS) &&
	    (recipe->stage == STAGE_FORWARD || w->bundle.graph.loss == VALUE_NONE))
		return error_set(err, PRONY_PROTOCOL, "stage %s has no %s",
				 stage_name(recipe->stage), readout_name(what));
	return PRONY_OK;
}

static void add_values(const struct graph *graph, enum value_kind kind, struct arena *arena,
		       struct tensor_set *set)
{
	set->tensors = arena_array(arena, (size_t)graph->value_count, sizeof *set->tensors);
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind == kind)
			set->tensors[set->count++] = (struct tensor){
				.name = value->name, .dtype = DTYPE_F32, .shape = value->shape};
	}
}

/* Sets names, types and shapes of what is read; the data are placed later. */
static void list_tensors(const struct graph *graph, enum readout what, struct arena *arena,
			 struct tensor_set *set)
{
	if (what == READ_WEIGHTS || what == READ_GRADIENTS) {
		add_values(graph, VALUE_PARAMETER, arena, set);
		return;
	}
	if (what == READ_STATE) {
		add_values(graph, VALUE_STATE, arena, set);
		return;
	}
	set->tensors = arena_alloc(arena, sizeof *set->tensors);
	set->count = 1;
	*set->tensors = (struct tensor){.name = readout_name(what), .dtype = DTYPE_F64};
	if (what == READ_LOGITS) {
		set->tensors->dtype = DTYPE_F32;
		set->tensors->shape = graph->values[graph->logits].shape;
	}
}

static enum prony_status serve_read(struct worker *w, const json_t *request, json_t *reply,
				    struct error *err)
{
	const char *word;
	enum readout what;
	struct arena arena;
	struct tensor_set set = {.count = 0};
	void *image;
	size_t bytes;
	enum prony_status status = json_get_string(request, "what", &word, err);

	if (status != PRONY_OK)
		return status;
	if (!readout_parse(word, &what))
		return error_set(err, PRONY_PROTOCOL, "unknown \"what\": \"%.40s\"", word);
	status = check_read(w, what, err);
	if (status != PRONY_OK)
		return status;
	arena_init(&arena, 0);
	if (what == READ_OUTPUTS) {
		status = verbs_read_outputs(w, &arena, &image, &bytes, err);
	} else {
		list_tensors(&w->bundle.graph, what, &arena, &set);
		status = results_lay_out(&w->results, &arena, &set, &image, &bytes, err);
		if (status == PRONY_OK) {
			status = w->adapter->sync(&w->session, err);
			if (status == PRONY_OK)
				status = w->adapter->read(&w->session, what, &set, err);
			status = verbs_adapter_result(w, status, "read", err);
		}
	}
	if (status == PRONY_OK)
		status = results_store_image(&w->results, w->folder, image, bytes, err);
	if (status == PRONY_OK)
		verbs_add(reply, "bytes", json_integer((json_int_t)bytes));
	arena_release(&arena);
	return status;
}

/* The adapter is closed after the reply is sent: see worker.c. */
static enum prony_status serve_close(struct worker *w, const json_t *request, json_t *reply,
				     struct error *err)
{
	(void)w, (void)request, (void)reply, (void)err;
	return PRONY_OK;
}

/* The first and the last progress at which each verb is allowed. */
static const struct verb_row {
	serve_function *serve;
	enum progress first, last;
} verb_rows[VERB_COUNT] = {
	[VERB_HELLO] = {verbs_hello, PROGRESS_STARTED, PROGRESS_STARTED},
	[VERB_SUPPORTS] = {serve_supports, PROGRESS_GREETED, PROGRESS_GREETED},
	[VERB_OPEN] = {serve_open, PROGRESS_GREETED, PROGRESS_GREETED},
	[VERB_BUILD] = {serve_build, PROGRESS_OPENED, PROGRESS_OPENED},
	[VERB_FEED] = {serve_feed, PROGRESS_BUILT, PROGRESS_RAN},
	[VERB_RUN] = {serve_run, PROGRESS_BUILT, PROGRESS_RAN},
	[VERB_READ] = {serve_read, PROGRESS_BUILT, PROGRESS_RAN},
	[VERB_PROFILE] = {verbs_profile, PROGRESS_RAN, PROGRESS_RAN},
	[VERB_CLOSE] = {serve_close, PROGRESS_STARTED, PROGRESS_FAILED},
};

enum prony_status worker_serve_verb(struct worker *w, enum protocol_verb verb,
				    const json_t *request, json_t *reply, struct error *err)
{
	static const char *const places[] = {
		[PROGRESS_STARTED] = "before hello", [PROGRESS_GREETED] = "after hello",
		[PROGRESS_OPENED] = "after open",    [PROGRESS_BUILT] = "after build",
		[PROGRESS_RAN] = "after run",	     [PROGRESS_FAILED] = "after a failed request",
	};
	const struct verb_row *row = &verb_rows[verb];

	w->record_count = 0;
	if (w->progress < row->first || w->progress > row->last)
		return error_set(err, PRONY_PROTOCOL, "%s cannot come %s", protocol_verb_name(verb),
				 places[w->progress]);
	enum prony_status status = row->serve(w, request, reply, err);

	if (status == PRONY_OK && w->adapter && w->adapter->tamper)
		w->adapter->tamper(&w->session, protocol_verb_name(verb), reply,
				   (int64_t *)w->results.records, w->record_count);
	if (status == PRONY_OK && w->record_count > 0)
		status = results_store_records(&w->results, w->folder, w->record_count, err);
	return status;
}
