/* Writes and reads the cached answers of the reference. */
#include "parity/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "bundle/safetensors.h"
#include "graph/graph_json.h"

/* Version of the source that computes the answers; tools/reference-version generates the file. */
extern const char reference_version[];

static void add_set(struct digest *digest, const struct tensor_set *set)
{
	digest_add(digest, &set->count, sizeof(set->count));
	for (size_t i = 0; i < set->count; i++) {
		const struct tensor *tensor = &set->tensors[i];

		digest_add_text(digest, tensor->name);
		digest_add(digest, &tensor->dtype, sizeof(tensor->dtype));
		digest_add(digest, &tensor->shape.rank, sizeof(tensor->shape.rank));
		digest_add(digest, tensor->shape.dims,
			   (size_t)tensor->shape.rank * sizeof(tensor->shape.dims[0]));
		digest_add(digest, tensor->data, (size_t)tensor_bytes(tensor));
	}
}

static void add_json(struct digest *digest, json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	digest_add_text(digest, text);
	free(text);
	json_decref(json);
}

void answers_key(const char *what, const struct answers_case *of, char key[DIGEST_HEX_BYTES])
{
	struct recipe recipe = *of->recipe;
	struct digest digest;

	recipe.threads = 0;
	/* The loss is exact. */
	recipe.precision =
		strcmp(what, "loss") == 0 ? PRECISION_FP32 : gate_reference_precision(of->recipe);
	digest_begin(&digest);
	digest_add_text(&digest, reference_version);
	digest_add_text(&digest, what);
	digest_add(&digest, &of->chosen, sizeof(of->chosen));
	add_json(&digest, recipe_to_json(&recipe));
	add_json(&digest, graph_to_json(of->graph));
	for (int i = 0; i < of->graph->forward_count; i++)
		if (of->graph->nodes[i].attributes.ranks > 1)
			digest_add(&digest, &of->graph->nodes[i].attributes.ranks,
				   sizeof(of->graph->nodes[i].attributes.ranks));
	add_set(&digest, of->weights);
	add_set(&digest, of->inputs);
	add_set(&digest, of->labels);
	digest_end(&digest, key);
}

/* The figures of an answer that are not tensors, in the order of the file. */
enum { FIGURES = 4 + 3 * GATE_UPDATES };

static void visit_figures(struct gate_expected *e, double *figures, bool reading)
{
	double inside = e->epsilon_inside, kinks = (double)e->kinks, turned = (double)e->turned;
	double *rows[FIGURES] = {&inside, &kinks, &turned, &e->whole_length_slack};

	for (int i = 0; i < GATE_UPDATES; i++) {
		rows[4 + i] = &e->loss[i];
		rows[4 + GATE_UPDATES + i] = &e->logits_slack[i];
		rows[4 + 2 * GATE_UPDATES + i] = &e->loss_slack[i];
	}
	for (int i = 0; i < FIGURES; i++) {
		if (reading)
			*rows[i] = figures[i];
		else
			figures[i] = *rows[i];
	}
	e->epsilon_inside = inside != 0;
	e->kinks = (int64_t)kinks;
	e->turned = (int64_t)turned;
}

static void put(struct tensor_set *set, const char *name, struct shape shape, void *data)
{
	if (shape_elements(&shape) > 0)
		set->tensors[set->count++] = (struct tensor){
			.name = name, .dtype = DTYPE_F64, .shape = shape, .data = data};
}

static struct shape vector(size_t elements)
{
	int64_t dims[] = {(int64_t)elements};

	return shape_make(1, dims);
}

static void put_tensors(struct tensor_set *set, struct arena *arena, int answer, const char *what,
			const struct tensor_set *from)
{
	for (size_t i = 0; i < from->count; i++)
		put(set, arena_printf(arena, "%d.%s.%s", answer, what, from->tensors[i].name),
		    from->tensors[i].shape, from->tensors[i].data);
}

static void put_answer(struct tensor_set *set, struct arena *arena, int answer,
		       const struct gate_expected *from)
{
	struct gate_expected copy = *from;
	const size_t tensors = from->gradients.count + from->change.count;
	double *figures = arena_array(arena, FIGURES, sizeof(*figures));
	const struct {
		const char *what;
		double *data;
		size_t count;
	} vectors[] = {{"figures", figures, FIGURES},
		       {"tensor_slack", from->tensor_slack, tensors},
		       {"length_slack", from->length_slack, tensors},
		       {"state_slack", from->state_slack, from->state.count}};

	visit_figures(&copy, figures, false);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		put(set, arena_printf(arena, "%d.%s", answer, vectors[i].what),
		    vector(vectors[i].count), vectors[i].data);
	for (int i = 0; i < GATE_UPDATES; i++)
		put(set, arena_printf(arena, "%d.logits.%d", answer, i), from->logits[i].shape,
		    from->logits[i].data);
	put_tensors(set, arena, answer, "gradient", &from->gradients);
	put_tensors(set, arena, answer, "change", &from->change);
	put_tensors(set, arena, answer, "state", &from->state);
}

static enum prony_status write_set(const struct cache *cache, const char *key,
				   const struct tensor_set *set, struct error *err)
{
	size_t bytes = safetensors_image_bytes(set);

	if (!cache->folder || bytes == 0 || (int64_t)bytes > cache->limit_bytes / 2)
		return PRONY_OK;
	char *file = malloc(CACHE_HEAD_BYTES + bytes);
	if (!file)
		return error_set(err, PRONY_NOMEM,
				 "not enough memory for %zu bytes of reference results", bytes);
	enum prony_status status =
		safetensors_write_image(set, file + CACHE_HEAD_BYTES, bytes, err);
	if (status == PRONY_OK)
		status = cache_write(cache, key, file, CACHE_HEAD_BYTES + bytes, err);
	free(file);
	return status;
}

/* The figures that a file has once: the rate, the number of answers, parameters and MACs, and the
 * norm at which the gate clips. */
enum { TOTALS = 5 };

enum prony_status answers_write(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
				const struct gate_reference *reference, const struct recipe *gate,
				struct error *err)
{
	double totals[TOTALS] = {gate->learning_rate, reference->expected_count,
				 (double)reference->parameters, (double)reference->macs,
				 gate->clip_norm};
	struct tensor_set set = {0};
	struct arena arena;
	size_t most = 1;

	arena_init(&arena, 0);
	for (int i = 0; i < reference->expected_count; i++) {
		const struct gate_expected *e = &reference->expected[i];
		most += 4 + GATE_UPDATES + e->gradients.count + e->change.count + e->state.count;
	}
	set.tensors = arena_array(&arena, most, sizeof(*set.tensors));
	put(&set, "totals", vector(TOTALS), totals);
	for (int i = 0; i < reference->expected_count; i++)
		put_answer(&set, &arena, i, &reference->expected[i]);
	enum prony_status status = write_set(cache, key, &set, err);
	arena_release(&arena);
	return status;
}

/* State of reading a file. Any mismatch with the graph sets `whole` to false. */
struct reading {
	const struct tensor_set *set;
	struct arena *arena;
	bool whole;
};

/* Copies the data of the tensor with that name and shape; NULL if it has no elements. */
static double *take(struct reading *r, const char *name, const struct shape *shape)
{
	const struct tensor *tensor = tensor_find(r->set, name);
	int64_t bytes = shape_elements(shape) * (int64_t)sizeof(double);

	if (bytes <= 0)
		return NULL;
	if (!tensor || tensor->dtype != DTYPE_F64 || !shape_equal(&tensor->shape, shape)) {
		r->whole = false;
		return NULL;
	}
	double *data = arena_alloc(r->arena, (size_t)bytes);
	memcpy(data, tensor->data, (size_t)bytes);
	return data;
}

static double *take_vector(struct reading *r, const char *name, size_t elements)
{
	struct shape shape = vector(elements);

	return take(r, name, &shape);
}

static void take_tensor(struct reading *r, const char *prefix, const struct value *value,
			struct tensor_set *to)
{
	struct tensor *tensor = &to->tensors[to->count++];

	*tensor = (struct tensor){.name = arena_strdup(r->arena, value->name),
				  .dtype = DTYPE_F64,
				  .shape = value->shape};
	tensor->data = take(r, arena_printf(r->arena, "%s.%s", prefix, value->name), &value->shape);
}

static void take_tensors(struct reading *r, int answer, const struct answers_case *of,
			 struct gate_expected *out)
{
	const struct graph *graph = of->graph;
	bool training = of->recipe->stage == STAGE_TRAIN;
	struct tensor_set *parameters = training ? &out->change : &out->gradients;
	const char *what =
		arena_printf(r->arena, "%d.%s", answer, training ? "change" : "gradient");
	const char *state = arena_printf(r->arena, "%d.state", answer);
	size_t values = (size_t)graph->value_count;

	parameters->tensors = arena_array(r->arena, values, sizeof(struct tensor));
	out->state.tensors = arena_array(r->arena, values, sizeof(struct tensor));
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind == VALUE_PARAMETER && of->recipe->stage != STAGE_FORWARD)
			take_tensor(r, what, value, parameters);
		else if (gate_keeps_state(graph, i, of->recipe->stage))
			take_tensor(r, state, value, &out->state);
	}
}

static void take_answer(struct reading *r, int answer, const struct answers_case *of,
			struct gate_expected *out)
{
	const struct shape *logits = &of->graph->values[of->graph->logits].shape;
	char name[64];

	take_tensors(r, answer, of, out);
	size_t tensors = out->gradients.count + out->change.count;
	snprintf(name, sizeof(name), "%d.figures", answer);
	double *figures = take_vector(r, name, FIGURES);
	snprintf(name, sizeof(name), "%d.tensor_slack", answer);
	out->tensor_slack = take_vector(r, name, tensors);
	snprintf(name, sizeof(name), "%d.length_slack", answer);
	out->length_slack = take_vector(r, name, tensors);
	snprintf(name, sizeof(name), "%d.state_slack", answer);
	out->state_slack = take_vector(r, name, out->state.count);
	for (int i = 0; i < GATE_UPDATES; i++) {
		snprintf(name, sizeof(name), "%d.logits.%d", answer, i);
		out->logits[i] = (struct tensor){.name = "logits",
						 .dtype = DTYPE_F64,
						 .shape = *logits,
						 .data = take(r, name, logits)};
	}
	if (figures)
		visit_figures(out, figures, true);
}

static enum prony_status read_set(const struct cache *cache, const char *key, struct arena *scratch,
				  struct cache_entry *entry, struct tensor_set *set,
				  struct error *err)
{
	enum prony_status status = cache_read(cache, key, entry, err);
	struct error why = ERROR_INIT;

	if (status == PRONY_OK && safetensors_read_image(entry->payload, entry->length, "answers",
							 scratch, set, &why) != PRONY_OK)
		status = error_set(err, PRONY_MISSING, "%s", why.text);
	return status;
}

enum prony_status answers_read(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
			       const struct answers_case *of, struct gate_reference *out,
			       struct recipe *gate, struct error *err)
{
	struct gate_reference read = {.weights = *of->weights};
	struct cache_entry entry = {0};
	struct tensor_set set;
	struct arena scratch;

	arena_init(&scratch, 0);
	arena_init(&read.arena, 0);
	enum prony_status status = read_set(cache, key, &scratch, &entry, &set, err);
	if (status == PRONY_OK) {
		struct reading r = {.set = &set, .arena = &read.arena, .whole = true};
		const double *totals = take_vector(&r, "totals", TOTALS);

		r.whole = r.whole && totals[1] >= 1 && totals[1] <= GATE_MAX_ANSWERS;
		read.expected_count = r.whole ? (int)totals[1] : 0;
		for (int i = 0; i < read.expected_count; i++)
			take_answer(&r, i, of, &read.expected[i]);
		if (!r.whole) {
			status = error_set(err, PRONY_MISSING,
					   "the stored reference results do not match the graph");
		} else {
			gate->learning_rate = totals[0];
			gate->clip_norm = totals[4];
			read.parameters = (int64_t)totals[2];
			read.macs = (int64_t)totals[3];
			*out = read;
		}
	}
	if (status != PRONY_OK)
		arena_release(&read.arena);
	free(entry.file);
	arena_release(&scratch);
	return status;
}

enum prony_status answers_write_loss(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
				     double mean, double deviation, struct error *err)
{
	double figures[] = {mean, deviation};
	struct tensor tensor = {
		.name = "loss", .dtype = DTYPE_F64, .shape = vector(2), .data = figures};
	struct tensor_set set = {.tensors = &tensor, .count = 1};

	return write_set(cache, key, &set, err);
}

enum prony_status answers_read_loss(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
				    double *mean, double *deviation, struct error *err)
{
	struct cache_entry entry = {0};
	struct tensor_set set;
	struct arena scratch;

	arena_init(&scratch, 0);
	enum prony_status status = read_set(cache, key, &scratch, &entry, &set, err);
	if (status == PRONY_OK) {
		struct reading r = {.set = &set, .arena = &scratch, .whole = true};
		const double *figures = take_vector(&r, "loss", 2);

		if (r.whole) {
			*mean = figures[0];
			*deviation = figures[1];
		} else {
			status = error_set(err, PRONY_MISSING,
					   "the stored reference results contain no loss");
		}
	}
	free(entry.file);
	arena_release(&scratch);
	return status;
}
