/* Expands a spec into the cells of a plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frameworks/identity.h"
#include "plan/resolve_internal.h"

#define CELLS_MAX ((size_t)1 << 14) /* far more than any user would wait for */

/* An empty axis of data sets means the network's own data set. */
static size_t axis_length(const struct expansion *e, enum axis_id id)
{
	size_t count = e->asked.axes[id].count;

	return id == AXIS_DATASET && count == 0 ? 1 : count;
}

static enum prony_status count_points(const struct expansion *e, size_t *out, struct error *err)
{
	size_t total = 1;

	for (int id = 0; id < AXIS_COUNT; id++) {
		total *= axis_length(e, (enum axis_id)id);
		if (total > CELLS_MAX)
			return error_set(err, *e->spec->suite ? PRONY_BAD_INPUT : PRONY_USAGE,
					 "%s%sthe axes give more than %zu cells: shorten a list",
					 e->spec->suite, *e->spec->suite ? ": " : "", CELLS_MAX);
	}
	*out = total;
	return PRONY_OK;
}

/* Finds one combination: a word of each axis; NULL for the network's own data set. */
static void locate_point(const struct expansion *e, size_t number,
			 const struct spec_word *point[AXIS_COUNT])
{
	for (int place = AXIS_COUNT - 1; place >= 0; place--) {
		enum axis_id id = axis_in_order(place);
		const struct spec_list *list = &e->asked.axes[id];
		size_t length = axis_length(e, id);

		point[id] = list->count ? &list->words[number % length] : NULL;
		number /= length;
	}
}

static const struct framework_choice *choice_of(const struct expansion *e,
						const struct spec_word *const point[AXIS_COUNT])
{
	return &e->frameworks[point[AXIS_FRAMEWORK] - e->asked.axes[AXIS_FRAMEWORK].words];
}

static void note_once(struct plan *plan, const char *note)
{
	for (size_t i = 0; i < plan->note_count; i++)
		if (strcmp(plan->notes[i], note) == 0)
			return;
	plan_note(plan, note);
}

/* Returns that choice, or the one that replaces it for native input; adds a note once. */
static const struct framework_choice *runs_as(const struct expansion *e,
					      const struct spec_word *const point[AXIS_COUNT])
{
	const struct framework_choice *asked = choice_of(e, point);

	if (!asked->reader || strcmp(point[AXIS_INPUT]->text, input_mode_name(INPUT_NATIVE)) != 0)
		return asked;
	note_once(e->plan, arena_printf(&e->plan->arena,
					"prony cannot run the data loader of %s; for input native "
					"it uses %s, which has the same library's loader",
					asked->words.framework, asked->reader->words.framework));
	return asked->reader;
}

/* An empty list matches everything; `other` is a second spelling that matches too, or NULL. */
static bool list_matches(const struct spec_list *list, const char *word, const char *other)
{
	bool matches = list->count == 0;

	for (size_t i = 0; i < list->count && !matches; i++)
		matches = strcmp(list->words[i].text, word) == 0 ||
			  (other && strcmp(list->words[i].text, other) == 0);
	return matches;
}

/*
 * Rules are matched against the requested axes, not against what other rules changed in the cell.
 */
static bool rule_matches(const struct expansion *e, const struct spec_rule *rule,
			 const struct spec_word *const point[AXIS_COUNT],
			 const struct dataset_choice *dataset)
{
	const struct framework_choice *framework = choice_of(e, point);
	bool all = !framework->framework->harness_only &&
		   list_matches(&rule->axes[AXIS_FRAMEWORK], "all", NULL);

	for (int id = 0; id < AXIS_COUNT; id++) {
		const char *other = id == AXIS_FRAMEWORK ? framework->words.name
				    : id == AXIS_DATASET ? dataset->used->name
							 : NULL;
		const char *word = id == AXIS_DATASET ? dataset->asked->name : point[id]->text;

		if (!(id == AXIS_FRAMEWORK && all) && !list_matches(&rule->axes[id], word, other))
			return false;
	}
	return true;
}

static bool excluded(const struct expansion *e, const struct spec_word *const point[AXIS_COUNT],
		     const struct dataset_choice *dataset)
{
	for (size_t i = 0; i < e->spec->exclude_count; i++)
		if (rule_matches(e, &e->excludes[i], point, dataset))
			return true;
	return false;
}

/* Applies the override rules. Later rules win, value by value; options of the command line override
 * them all. */
static void override(const struct expansion *e, const struct spec_word *const point[AXIS_COUNT],
		     const struct dataset_choice *dataset, struct plan_cell *cell)
{
	for (size_t i = 0; i < e->spec->override_count; i++) {
		const struct spec_rule *rule = &e->overrides[i];

		if (!rule_matches(e, rule, point, dataset))
			continue;
		for (int id = 0; id < AXIS_COUNT; id++)
			if (rule->values[id] && !origin_is_option(point[id]->origin))
				axis_set(&axes[id], rule->values[id], &cell->cell);
		if (rule->steps >= 0)
			cell->steps = rule->steps;
		if (rule->warm_up_steps >= 0)
			cell->warm_up_steps = rule->warm_up_steps;
	}
}

static void fill_words(const struct framework_choice *framework,
		       const struct spec_word *const point[AXIS_COUNT],
		       const struct dataset_choice *dataset, struct cell *cell)
{
	*cell = framework->words;
	for (int id = 0; id < AXIS_COUNT; id++)
		if (id != AXIS_FRAMEWORK && id != AXIS_NETWORK && id != AXIS_DATASET)
			axis_set(&axes[id], point[id]->text, cell);
	snprintf(cell->network, sizeof(cell->network), "%s", point[AXIS_NETWORK]->text);
	snprintf(cell->dataset, sizeof(cell->dataset), "%s", dataset->used->name);
}

/* If a framework lacks the precision, uses the first of the suite's alternatives that it has; adds
 * a note once. */
static void other_precision(const struct expansion *e, struct plan_cell *cell)
{
	const struct spec_list *instead = &e->spec->precisions_instead;
	const struct framework *framework = cell->location->framework;
	unsigned can = framework_precisions(framework, cell->cell.device);
	enum precision asked = cell->cell.precision;

	for (size_t i = 0; i < instead->count && !(can & 1u << asked); i++) {
		enum precision other;

		if (!precision_parse(instead->words[i].text, &other) || !(can & 1u << other))
			continue;
		cell->cell.precision = other;
		note_once(e->plan, arena_printf(&e->plan->arena, "%s has no %s: using %s instead",
						framework->name, precision_name(asked),
						precision_name(other)));
		return;
	}
}

/* A file that is run unchanged computes in its own precision, whatever its engine can be asked for.
 */
static bool has_own_precision(const struct plan_cell *cell)
{
	return network_is_as_it_is(cell->network) &&
	       cell->cell.precision == cell->network->file->precision;
}

static void file_precision(struct plan_cell *cell)
{
	if (network_is_as_it_is(cell->network) && cell->cell.precision == PRECISION_FP32)
		cell->cell.precision = cell->network->file->precision;
}

/* Sets a screening's batch, and the learning rate in proportion to it (Goyal et al., "Accurate,
 * Large Minibatch SGD", 2017): with the rate for eight times as many samples, the loss of VGG-16
 * becomes infinite within the few steps. Values from the command line are kept. */
static void screen(const struct spec *spec, const struct spec_word *const point[AXIS_COUNT],
		   struct cell *cell)
{
	int64_t whole = cell->batch;

	if (origin_is_option(point[AXIS_BATCH]->origin))
		return;
	cell->batch = spec_screened_batch(spec, whole);
	if (cell->stage == STAGE_TRAIN && !origin_is_option(point[AXIS_LEARNING_RATE]->origin))
		cell->learning_rate *= (double)cell->batch / (double)whole;
}

/* CNTK takes seven minutes for 128 samples of ResNet-50 on two cores without AVX-512
 * (docs/results). */
#define SCREENING_EPOCH_NS INT64_C(30000000000)

#define EPOCH_EVALUATIONS 4
#define UNTIL_EPOCHS 20

/* A training until a target begins with the first step of a process. It has whole intervals between
 * evaluations behind that step. */
static void derive_until(const struct spec *spec, struct plan_cell *cell)
{
	struct until *until = &cell->until;
	int64_t epoch = cell->dataset->train_count / cell->cell.batch;

	*until = spec->until;
	if (!until->goal)
		return;
	epoch = epoch > 0 ? epoch : 1;
	if (until->every == 0)
		until->every = (epoch + EPOCH_EVALUATIONS - 1) / EPOCH_EVALUATIONS;
	if (spec->until.every == 0 && until->most > 0 && until->every >= until->most)
		until->every = until->most - 1;
	if (until->most == 0)
		until->most = UNTIL_EPOCHS * epoch;
	int64_t intervals = (until->most - 1) / until->every;
	until->most = 1 + until->every * (intervals > 0 ? intervals : 1);
	cell->steps = until->most - 1;
	cell->warm_up_steps = 0;
}

/* Sets what follows from other settings. With epochs, the first epoch is the first step and the
 * warm-up, and the others are the steps of the window. A screening sets the batch, on which the
 * steps of its epochs depend. A screening uses epochs only for frameworks' own loops: with single
 * steps, epochs add nothing to the effort's window. */
static void derive(const struct expansion *e, const struct spec_word *const point[AXIS_COUNT],
		   struct plan_cell *cell)
{
	const struct spec *spec = e->spec;

	screen(spec, point, &cell->cell);
	cell->loss_every = spec->loss_every;
	derive_until(spec, cell);
	if (spec->samples <= 0 || (spec_screens(spec) && cell->cell.loop == LOOP_STEP))
		return;
	cell->epoch_steps = (spec->samples + cell->cell.batch - 1) / cell->cell.batch;
	if (spec_screens(spec) && cell->steps <= 0 && cell->warm_up_steps < 0)
		cell->epoch_ns = SCREENING_EPOCH_NS;
	if (cell->steps <= 0)
		cell->steps = (spec->epochs - 1) * cell->epoch_steps;
	if (cell->warm_up_steps < 0)
		cell->warm_up_steps = cell->epoch_steps - 1;
}

/* Translates the cell's words into the worker's recipe. */
static void fill_recipe(const struct expansion *e, const struct cell *cell, struct recipe *recipe)
{
	int cores = device_of(cell->device).cores;

	recipe_defaults(recipe);
	recipe->threads = cores > 0 ? cores : e->settings->cores;
	recipe->slots = PLAN_SLOTS;
	recipe->seed = e->spec->seed;
#define SAME(member) recipe->member = cell->member;
#define OWN(member)
#define X(id, member, type, enumeration, recipe, ...) recipe(member)
	CELL_AXES(X)
#undef X
#undef SAME
#undef OWN
	if (recipe->stage != STAGE_TRAIN)
		recipe->clip_norm = 0;
	if (recipe->optimiser == OPTIMISER_ADAMW)
		recipe->epsilon = RECIPE_ADAMW_EPSILON;
	if (stage_has_cache(cell->stage))
		recipe->stage = STAGE_FORWARD;
	/* The worker treats both the same. */
	if (recipe->input == INPUT_SYNTHETIC)
		recipe->input = INPUT_RESIDENT;
	if (recipe->input == INPUT_COLD)
		recipe->input = INPUT_STREAM;
}

/* The stage load measures the loader that would work during a run, so other inputs mean
 * stream. */
static void settle_load(struct cell *cell)
{
	if (cell->stage == STAGE_LOAD && cell->input != INPUT_NATIVE && cell->input != INPUT_COLD)
		cell->input = INPUT_STREAM;
}

static void fill_target(const struct expansion *e, const struct framework *framework,
			const struct cell *cell, struct target *target)
{
	target_defaults(target);
	target_set_device(target, cell->device);
	target->world_size = device_of(cell->device).ranks;
	snprintf(target->backend, sizeof(target->backend), "%s", cell->backend);
	const char *words = framework_option_words(framework, cell->options, &e->plan->arena);
	bool fit = cell->loop == LOOP_FIT;

	/*
	 * The owner of the loop is one more option word for the worker (docs/worker-protocol.md).
	 */
	snprintf(target->options, sizeof(target->options), "%s%s%s", words,
		 fit && *words ? "," : "", fit ? loop_mode_name(LOOP_FIT) : "");
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The cell's network is that of its stage. judge_cell says why if there is none. */
static void settle_stage(const struct expansion *e, struct plan_cell *cell)
{
	struct network *other;
	struct error why = ERROR_INIT;

	if (!stage_has_cache(cell->cell.stage))
		return;
	for (size_t i = 0; i < e->plan->count; i++) {
		const struct network *known = e->plan->cells[i].network;

		if (known->stage == cell->cell.stage && known->tokens == cell->cell.sequence &&
		    known->name == cell->network->name) {
			cell->network = known;
			return;
		}
	}
	other = arena_alloc(&e->plan->arena, sizeof(*other));
	if (network_at_stage(cell->network, cell->cell.stage, other, &why) == PRONY_OK)
		cell->network = other;
}

/* Resolves the length of a cell's sequences: the network's own, or the one that was asked for; 0
 * if its length is fixed. Cells of one length share a network. */
static void settle_length(const struct expansion *e, struct plan_cell *cell)
{
	const struct network *network = cell->network;
	struct network *other;
	struct error why = ERROR_INIT;

	if (network->tokens_max == 0)
		cell->cell.sequence = 0;
	else if (cell->cell.sequence == 0 && cell->cell.stage == STAGE_DECODE)
		cell->cell.sequence = least(network->tokens, network->tokens_max - CACHE_ROOM);
	else if (cell->cell.sequence == 0)
		cell->cell.sequence = network->tokens;
	/* judge_cell refuses a length that is too great. */
	if (cell->cell.sequence == 0 || cell->cell.sequence == network->tokens ||
	    cell->cell.sequence > network->tokens_max)
		return;
	for (size_t i = 0; i < e->plan->count; i++) {
		const struct network *known = e->plan->cells[i].network;

		if (known->tokens == cell->cell.sequence && known->name == network->name &&
		    known->stage == network->stage) {
			cell->network = known;
			return;
		}
	}
	other = arena_alloc(&e->plan->arena, sizeof(*other));
	if (network_at_length(network, cell->cell.sequence, other, &why) == PRONY_OK)
		cell->network = other;
}

static void fill_cell(const struct expansion *e, const struct spec_word *const point[AXIS_COUNT],
		      const struct dataset_choice *dataset, struct plan_cell *cell)
{
	const struct framework_choice *framework = runs_as(e, point);

	*cell = (struct plan_cell){
		.status = CELL_PENDING,
		.explicit_ = e->spec->cells_explicit,
		.ungated = framework->framework->computes_nothing,
		.network = expansion_network(e, point[AXIS_NETWORK]->text),
		.dataset = dataset->used,
		.data_folder = dataset->folder,
		.location = framework->location,
		.origin = framework_origin_name(framework->location->origin),
		.worker_name = framework->framework->name,
		.steps = e->spec->steps,
		.warm_up_steps = e->spec->warm_up_steps,
	};
	fill_words(framework, point, dataset, &cell->cell);
	override(e, point, dataset, cell);
	if (e->spec->batch_per_rank)
		cell->cell.batch *= device_of(cell->cell.device).ranks;
	other_precision(e, cell);
	file_precision(cell);
	settle_length(e, cell);
	settle_stage(e, cell);
	derive(e, point, cell);
	settle_load(&cell->cell);
	cell->ungated |= cell->cell.stage == STAGE_LOAD;
	fill_recipe(e, &cell->cell, &cell->recipe);
	if (has_own_precision(cell))
		cell->recipe.precision = PRECISION_FP32;
	fill_target(e, cell->location->framework, &cell->cell, &cell->target);
	cell_key(&cell->cell, cell->key);
	cell_hash(&cell->cell, cell->hash);
}

/* A hash table of the cells so far, with open addressing: index + 1, 0 = free. */
struct seen {
	size_t *slots, mask;
};

/* Adds a cell; true if it is new. */
static bool seen_add(struct seen *seen, const struct plan_cell *cells, size_t index)
{
	size_t at = strtoull(cells[index].hash, NULL, 16) & seen->mask;

	for (; seen->slots[at] != 0; at = (at + 1) & seen->mask)
		if (strcmp(cells[seen->slots[at] - 1].key, cells[index].key) == 0)
			return false;
	seen->slots[at] = index + 1;
	return true;
}

/* Returns the synthetic data set, which replaces a network's missing one unless it was named; adds
 * a note once. */
static const struct dataset *synthetic_instead(struct expansion *e, const char *name)
{
	note_once(e->plan,
		  arena_printf(
			  &e->plan->arena,
			  "%s is not installed (prony data list): its networks use synthetic data",
			  name));
	return dataset_find("synthetic");
}

static enum prony_status own_dataset(struct expansion *e,
				     const struct spec_word *const point[AXIS_COUNT],
				     const struct dataset_choice **out, struct error *err)
{
	const struct network *network = expansion_network(e, point[AXIS_NETWORK]->text);
	const struct spec_word *named = point[AXIS_DATASET];
	bool own = named && strcmp(named->text, OWN_DATASET) == 0;
	const char *name = named && !own ? named->text : network->dataset;
	const struct dataset *dataset = expansion_find_dataset(e, name);

	enum prony_status status =
		expansion_dataset(e, dataset, named && origin_is_option(named->origin), out, err);
	if (status == PRONY_OK && !named && (*out)->reason)
		status = expansion_dataset(e, synthetic_instead(e, name), false, out, err);
	return status;
}

static enum prony_status expand_points(struct expansion *e, size_t total, struct error *err)
{
	struct plan *plan = e->plan;
	struct seen seen = {.mask = 1};
	enum prony_status status = PRONY_OK;

	while (seen.mask < 2 * total)
		seen.mask *= 2;
	seen.slots = arena_array(&plan->arena, seen.mask, sizeof(*seen.slots));
	seen.mask--;
	plan->cells = arena_array(&plan->arena, total ? total : 1, sizeof(*plan->cells));
	for (size_t i = 0; i < total && status == PRONY_OK; i++) {
		struct plan_cell *cell = &plan->cells[plan->count];
		const struct dataset_choice *dataset = NULL;
		const struct spec_word *point[AXIS_COUNT];

		locate_point(e, i, point);
		status = own_dataset(e, point, &dataset, err);
		if (status != PRONY_OK || excluded(e, point, dataset))
			continue;
		fill_cell(e, point, dataset, cell);
		if (!seen_add(&seen, plan->cells, plan->count))
			continue;
		plan->count++;
		status = judge_cell(e, dataset, cell, err);
	}
	return status;
}

/* A length that no network of the plan takes would be ignored silently. */
static enum prony_status check_lengths(const struct spec *spec, const struct plan *plan,
				       struct error *err)
{
	const struct spec_list *lengths = &spec->axes[AXIS_SEQUENCE];

	for (size_t i = 0; i < plan->count; i++)
		if (plan->cells[i].network->tokens_max > 0)
			return PRONY_OK;
	for (size_t i = 0; i < lengths->count; i++)
		if (strcmp(lengths->words[i].text, "0") != 0)
			return error_set(err, *spec->suite ? PRONY_BAD_INPUT : PRONY_USAGE,
					 "%s: %s tokens: no network of the plan takes sequences of "
					 "a chosen length; leave it out, or add -n gpt2",
					 lengths->words[i].origin, lengths->words[i].text);
	return PRONY_OK;
}

static bool is_same_work(const struct cell *a, const struct cell *b)
{
	bool same = true;

	for (int id = 0; id < AXIS_COUNT; id++)
		same &= id == AXIS_FRAMEWORK || axis_equal(&axes[id], a, b);
	return same;
}

/* The first contender of a comparison that can run trains with all seeds, the others with few. */
static void share_seeds(const struct spec *spec, struct plan *plan)
{
	for (size_t i = 0; spec->until.goal && i < plan->count; i++) {
		struct plan_cell *cell = &plan->cells[i];
		size_t first = 0;

		while (first < i && (plan->cells[first].status != CELL_PENDING ||
				     !is_same_work(&plan->cells[first].cell, &cell->cell)))
			first++;
		cell->repeat = first == i ? spec->repeat : spec_other_seeds(spec);
	}
}

enum prony_status plan_expand(const struct spec *spec, const struct plan_settings *settings,
			      struct plan *out, struct error *err)
{
	struct plan plan = {0};
	const struct network_memory *memories = NULL;
	struct expansion e = {
		.spec = spec, .settings = settings, .plan = &plan, .memories = &memories};
	size_t total = 0;

	arena_init(&plan.arena, 0);
	enum prony_status status = expansion_resolve(&e, err);
	if (status == PRONY_OK)
		status = count_points(&e, &total, err);
	if (status == PRONY_OK)
		status = expand_points(&e, total, err);
	if (status == PRONY_OK)
		share_seeds(spec, &plan);
	if (status == PRONY_OK && plan.count == 0)
		status = error_set(err, *spec->suite ? PRONY_BAD_INPUT : PRONY_USAGE,
				   "%s%sno cell is left to run: an axis is empty, or the rules "
				   "exclude every cell",
				   spec->suite, *spec->suite ? ": " : "");
	if (status == PRONY_OK)
		status = check_lengths(spec, &plan, err);
	if (status != PRONY_OK) {
		plan_release(&plan);
		return status;
	}
	*out = plan;
	return PRONY_OK;
}

bool plan_cell_identity(const struct plan_cell *cell, struct digest *digest)
{
	return framework_identity(cell->location, digest);
}

void plan_release(struct plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; i < plan->file_count; i++)
		network_file_free(plan->files[i]);
	arena_release(&plan->arena);
	*plan = (struct plan){0};
}
