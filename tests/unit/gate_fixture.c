#include "gate_fixture.h"

#include "unit_test.h"
#include "zoo/zoo.h"

static void draw_stroke(struct random *random, float *picture)
{
	double row = 5 + 18 * random_uniform(random), column = 5 + 18 * random_uniform(random);
	double down = random_uniform(random) - 0.5, right = random_uniform(random) - 0.5;

	for (int i = 0; i < 14; i++) {
		int at = (int)(row + down * i) * 28 + (int)(column + right * i);

		picture[at] = (float)((double)(1 + random_below(random, 255)) / 255.0);
		if (at + 1 < 784)
			picture[at + 1] = picture[at];
	}
}

static void draw_batch(struct random *random, enum pictures pictures, struct tensor *x,
		       struct tensor *y)
{
	for (int64_t n = 0; n < y->shape.dims[0]; n++) {
		int64_t elements = shape_elements(&x->shape) / x->shape.dims[0];
		float *picture = (float *)x->data + n * elements;

		for (int64_t i = 0; i < elements && pictures == NOISE; i++)
			picture[i] = (float)random_uniform(random);
		for (int i = 0; i < 3 && pictures == STROKES; i++)
			draw_stroke(random, picture);
		((int64_t *)y->data)[n] = (int64_t)random_below(random, 10);
	}
}

void fixture_init(struct fixture *f, const char *name, enum stage stage, enum optimiser optimiser,
		  enum pictures pictures, uint64_t seed)
{
	fixture_init_in(f, name, PRECISION_FP32, stage, optimiser, pictures, seed);
}

void fixture_init_in(struct fixture *f, const char *name, enum precision precision,
		     enum stage stage, enum optimiser optimiser, enum pictures pictures,
		     uint64_t seed)
{
	fixture_init_of(f, zoo_find(name, NULL), precision, stage, optimiser, pictures, seed);
}

static void make(struct fixture *f, const struct network *network, enum precision precision,
		 enum stage stage, enum optimiser optimiser, double clip_norm,
		 enum pictures pictures, uint64_t seed)
{
	struct error err = ERROR_INIT;
	struct recipe cell;
	struct random random;

	*f = (struct fixture){0};
	arena_init(&f->arena, 0);
	recipe_defaults(&cell);
	cell.precision = precision;
	cell.stage = stage;
	cell.optimiser = optimiser;
	cell.rho = 0.9;
	cell.epsilon = 1e-7;
	cell.weight_decay = 5e-4;
	cell.clip_norm = clip_norm;
	if (optimiser == OPTIMISER_ADAMW) {
		cell.epsilon = RECIPE_ADAMW_EPSILON;
		cell.weight_decay = 0.1;
	}
	cell.batch = 64;
	gate_recipe(&cell, network_gate_rate(network, optimiser), &f->recipe);
	/* Smaller batches: a test has less time than a gate. */
	if (network->macs > INT64_C(1) << 26)
		f->recipe.batch = 4;
	check(zoo_build(network, f->recipe.batch, &f->forward, &err), &err);
	check(zoo_build(network, f->recipe.batch, &f->graph, &err), &err);
	check(graph_add_backward(&f->graph, &err), &err);
	check(graph_initial_weights(&f->forward, seed, &f->arena, &f->weights, &err), &err);
	f->inputs.tensors = arena_array(&f->arena, GATE_UPDATES, sizeof(struct tensor));
	f->labels.tensors = arena_array(&f->arena, GATE_UPDATES, sizeof(struct tensor));
	f->inputs.count = f->labels.count = GATE_UPDATES;
	random_init(&random, seed);
	for (int i = 0; i < GATE_UPDATES; i++) {
		struct tensor *x = &f->inputs.tensors[i], *y = &f->labels.tensors[i];

		check(tensor_new(&f->arena, "x", DTYPE_F32,
				 &f->forward.values[graph_input(&f->forward, 0)].shape, x, &err),
		      &err);
		check(tensor_new(&f->arena, "y", DTYPE_I64,
				 &f->forward.values[graph_label(&f->forward, 0)].shape, y, &err),
		      &err);
		draw_batch(&random, pictures, x, y);
	}
	if (gate_rate_is_open(&f->recipe, &f->forward, true))
		check(gate_settle_rate(
			      &f->recipe, &f->forward, &f->weights,
			      (struct batch){&f->inputs.tensors[0], &f->labels.tensors[0], 1, 1},
			      NULL, &err),
		      &err);
	check(gate_settle_clip(&f->recipe, &f->forward, &f->weights, &f->inputs, &f->labels, NULL,
			       &err),
	      &err);
	check(gate_reference_init(&f->reference, &f->forward, &f->recipe, &f->weights, &f->inputs,
				  &f->labels, NULL, &err),
	      &err);
}

void fixture_init_of(struct fixture *f, const struct network *network, enum precision precision,
		     enum stage stage, enum optimiser optimiser, enum pictures pictures,
		     uint64_t seed)
{
	make(f, network, precision, stage, optimiser, 0, pictures, seed);
}

void fixture_init_clipping(struct fixture *f, const char *name, enum optimiser optimiser,
			   enum pictures pictures, uint64_t seed)
{
	make(f, zoo_find(name, NULL), PRECISION_FP32, STAGE_TRAIN, optimiser, 1, pictures, seed);
}

void fixture_release(struct fixture *f)
{
	gate_reference_release(&f->reference);
	graph_release(&f->forward);
	graph_release(&f->graph);
	arena_release(&f->arena);
}

static void swap_floats(float *a, float *b, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		float kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

/* Exchanges input channels 0 and 1 of the weights of a convolution or full layer. */
static void swap_channels(struct executor *ex, const char *name)
{
	int index = graph_find_value(ex->graph, name);
	const struct shape *shape = &ex->graph->values[index].shape;
	int64_t per_output = shape_elements(shape) / shape->dims[0];
	int64_t plane = per_output / shape->dims[1];

	assert_true(shape->dims[1] > 1);
	for (int64_t o = 0; o < shape->dims[0]; o++) {
		float *first = ex->values[index] + o * per_output;

		swap_floats(first, first + plane, plane);
	}
}

struct tensor executor_view(const struct executor *ex, int value)
{
	const struct value *v = &ex->graph->values[value];

	return (struct tensor){v->name, DTYPE_F32, v->shape, ex->values[value]};
}

static struct tensor_set read_values(struct fixture *f, const struct executor *ex,
				     enum value_kind kind, bool gradients)
{
	struct tensor_set set = {0};

	set.tensors = arena_array(&f->arena, (size_t)f->graph.value_count, sizeof(struct tensor));
	for (int i = 0; i < f->graph.value_count; i++) {
		struct error err = ERROR_INIT;
		const struct value *value = &f->graph.values[i];
		struct tensor *copy = &set.tensors[set.count];

		if (value->kind != kind)
			continue;
		struct tensor view = executor_view(ex, gradients ? value->gradient : i);
		check(tensor_new(&f->arena, value->name, DTYPE_F32, &value->shape, copy, &err),
		      &err);
		memcpy(copy->data, view.data, (size_t)tensor_bytes(copy));
		set.count++;
	}
	return set;
}

void play(struct fixture *f, const struct framework *framework, struct outcome *out)
{
	struct error err = ERROR_INIT;
	struct recipe recipe = f->recipe;
	SCOPED(executor) ex;

	*out = (struct outcome){
		.observed = {.parameters = graph_parameter_count(&f->forward), .macs = -1}};
	check(executor_init(&ex, &f->graph, &f->weights, &err), &err);
	ex.settings.operand_bits = framework->operand_bits > 0 ? framework->operand_bits : 24;
	ex.settings.order_seed = framework->order_seed;
	ex.settings.chunk = framework->chunk;
	ex.settings.epsilon_inside = framework->epsilon_inside;
	ex.settings.frozen = framework->frozen;
	ex.settings.rate_factor = framework->rate_factor > 0 ? framework->rate_factor : 1;
	ex.settings.rate_spares = framework->rate_spares;
	ex.settings.norm_epsilon = framework->norm_epsilon;
	ex.settings.norm_momentum = framework->norm_momentum;
	ex.settings.unbiased = framework->unbiased;
	ex.settings.clips_each = framework->clips_each;
	ex.settings.clips_values = framework->clips_values;
	if (framework->without_clip)
		recipe.clip_norm = 0;
	if (framework->without_momentum)
		recipe.momentum = 0;
	if (framework->without_decay)
		recipe.weight_decay = 0;
	recipe.beta1 = framework->beta1 > 0 ? framework->beta1 : recipe.beta1;
	recipe.beta2 = framework->beta2 > 0 ? framework->beta2 : recipe.beta2;
	recipe.epsilon = framework->epsilon > 0 ? framework->epsilon : recipe.epsilon;
	if (framework->swapped)
		swap_channels(&ex, framework->swapped);
	for (int i = 0; i < GATE_UPDATES; i++) {
		struct tensor x = f->inputs.tensors[i];
		float *pictures = x.data;

		for (int64_t n = 0; n < recipe.batch && framework->swapped_input; n++)
			swap_floats(pictures + n * 784 + 12 * 28, pictures + n * 784 + 15 * 28, 28);
		executor_step(&ex, &recipe, &x, &f->labels.tensors[i]);
		for (int64_t n = 0; n < recipe.batch && framework->swapped_input; n++)
			swap_floats(pictures + n * 784 + 12 * 28, pictures + n * 784 + 15 * 28, 28);
		struct tensor view = executor_view(&ex, f->graph.logits);
		check(tensor_new(&f->arena, "logits", DTYPE_F32, &view.shape, &out->logits[i],
				 &err),
		      &err);
		memcpy(out->logits[i].data, view.data, (size_t)tensor_bytes(&view));
		out->observed.logits[i] = &out->logits[i];
		out->observed.loss[i] =
			recipe.stage == STAGE_FORWARD ? NAN : (double)ex.values[f->graph.loss][0];
	}
	if (recipe.stage == STAGE_FORWARD_BACKWARD)
		out->gradients = read_values(f, &ex, VALUE_PARAMETER, true);
	if (recipe.stage == STAGE_TRAIN)
		out->weights = read_values(f, &ex, VALUE_PARAMETER, false);
	out->state = read_values(f, &ex, VALUE_STATE, false);
	out->observed.gradients = &out->gradients;
	out->observed.weights = &out->weights;
	out->observed.state = framework->without_state ? NULL : &out->state;
}

enum prony_status judge_figures(struct fixture *f, const struct outcome *outcome,
				struct gate_verdict *verdict, struct error *err)
{
	return gate_compare(&f->reference, &f->forward, &f->recipe, &f->labels, &outcome->observed,
			    &f->arena, verdict, err);
}

enum prony_status judge(struct fixture *f, const struct outcome *outcome, double *ratio,
			struct error *err)
{
	struct gate_verdict found;
	enum prony_status status = judge_figures(f, outcome, &found, err);

	assert_int_equal(status == PRONY_OK, found.passed);
	if (ratio)
		*ratio = found.worst_ratio;
	return status;
}

enum prony_status verdict(struct fixture *f, const struct framework *framework, double *ratio,
			  struct error *err)
{
	struct outcome outcome;

	play(f, framework, &outcome);
	return judge(f, &outcome, ratio, err);
}
