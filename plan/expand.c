#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frameworks/identity.h"
#include "plan/resolve.h"

#define CELLS_MAX ((size_t)1 << 14) /* far beyond what anybody waits for */

/* The stable order of plan.h, outermost first. */
enum axis {
	AXIS_NETWORK,
	AXIS_DATASET,
	AXIS_STAGE,
	AXIS_BATCH,
	AXIS_PRECISION,
	AXIS_DEVICE,
	AXIS_INPUT,
	AXIS_SYNC,
	AXIS_OPTIMISER,
	AXIS_FRAMEWORK,
	AXIS_COUNT
};

static const struct spec_list *axis_list(const struct spec_rule *axes, int axis)
{
	const struct spec_list *lists[AXIS_COUNT] = {
		[AXIS_NETWORK] = &axes->networks,     [AXIS_DATASET] = &axes->datasets,
		[AXIS_STAGE] = &axes->stages,	      [AXIS_BATCH] = &axes->batches,
		[AXIS_PRECISION] = &axes->precisions, [AXIS_DEVICE] = &axes->devices,
		[AXIS_INPUT] = &axes->inputs,	      [AXIS_SYNC] = &axes->syncs,
		[AXIS_OPTIMISER] = &axes->optimisers, [AXIS_FRAMEWORK] = &axes->frameworks,
	};

	return lists[axis];
}

/* One combination: the word of each axis; "" for the network's own data set. */
struct point {
	const char *words[AXIS_COUNT];
	size_t framework;
	bool dataset_strict, batch_fixed; /* named on the command line, which has the last word */
};

/* An empty axis of data sets stands for the network's own one. */
static size_t axis_length(const struct expansion *e, int axis)
{
	size_t count = axis_list(&e->axes, axis)->count;

	return axis == AXIS_DATASET && count == 0 ? 1 : count;
}

static enum prony_status count_points(const struct expansion *e, size_t *out, struct error *err)
{
	size_t total = 1;

	for (int axis = 0; axis < AXIS_COUNT; axis++) {
		total *= axis_length(e, axis);
		if (total > CELLS_MAX)
			return error_set(err, *e->spec->suite ? PRONY_BAD_INPUT : PRONY_USAGE,
					 "%s%sthe axes make more than %zu cells: shorten a list",
					 e->spec->suite, *e->spec->suite ? ": " : "", CELLS_MAX);
	}
	*out = total;
	return PRONY_OK;
}

static void locate_point(const struct expansion *e, size_t number, struct point *point)
{
	point->dataset_strict = false;
	point->batch_fixed = false;
	for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
		const struct spec_list *list = axis_list(&e->axes, axis);
		size_t length = axis_length(e, axis), at = number % length;

		number /= length;
		point->words[axis] = list->count ? list->words[at].text : "";
		if (axis == AXIS_FRAMEWORK)
			point->framework = at;
		if (axis == AXIS_DATASET && list->count)
			point->dataset_strict = origin_is_option(list->words[at].origin);
		if (axis == AXIS_BATCH)
			point->batch_fixed = origin_is_option(list->words[at].origin);
	}
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

/* Rules see the axes as they were asked for, whatever another rule did to the cell. */
static bool rule_matches(const struct expansion *e, const struct spec_rule *rule,
			 const struct point *point, const struct dataset_choice *dataset)
{
	const struct framework_choice *framework = &e->frameworks[point->framework];
	bool all =
		!framework->framework->harness_only && list_matches(&rule->frameworks, "all", NULL);

	for (int axis = 0; axis < AXIS_COUNT; axis++) {
		const char *word = point->words[axis], *other = NULL;

		if (axis == AXIS_FRAMEWORK)
			other = framework->words.name;
		if (axis == AXIS_DATASET) {
			word = dataset->asked->name;
			other = dataset->used->name;
		}
		if (!(axis == AXIS_FRAMEWORK && all) &&
		    !list_matches(axis_list(rule, axis), word, other))
			return false;
	}
	return true;
}

static bool excluded(const struct expansion *e, const struct point *point,
		     const struct dataset_choice *dataset)
{
	for (size_t i = 0; i < e->spec->exclude_count; i++)
		if (rule_matches(e, &e->excludes[i], point, dataset))
			return true;
	return false;
}

/* Later rules win, member by member. */
static void override(const struct expansion *e, const struct point *point,
		     const struct dataset_choice *dataset, struct plan_cell *cell)
{
	for (size_t i = 0; i < e->spec->override_count; i++) {
		const struct spec_rule *rule = &e->overrides[i];

		if (!rule_matches(e, rule, point, dataset))
			continue;
		if (rule->batch > 0 && !point->batch_fixed)
			cell->cell.batch = rule->batch;
		if (rule->steps >= 0)
			cell->steps = rule->steps;
		if (rule->warm_up_steps >= 0)
			cell->warm_up_steps = rule->warm_up_steps;
		if (rule->learning_rate >= 0)
			cell->recipe.learning_rate = rule->learning_rate;
	}
}

static void fill_words(const struct expansion *e, const struct point *point,
		       const struct dataset_choice *dataset, struct plan_cell *out)
{
	struct cell *cell = &out->cell;

	*cell = e->frameworks[point->framework].words;
	snprintf(cell->network, sizeof(cell->network), "%s", point->words[AXIS_NETWORK]);
	snprintf(cell->dataset, sizeof(cell->dataset), "%s", dataset->used->name);
	snprintf(cell->device, sizeof(cell->device), "%s", point->words[AXIS_DEVICE]);
	precision_parse(point->words[AXIS_PRECISION], &cell->precision);
	stage_parse(point->words[AXIS_STAGE], &cell->stage);
	input_mode_parse(point->words[AXIS_INPUT], &cell->input);
	sync_mode_parse(point->words[AXIS_SYNC], &cell->sync);
	optimiser_parse(point->words[AXIS_OPTIMISER], &cell->optimiser);
	/* Without an update it would only make two cells of one. */
	if (cell->stage != STAGE_TRAIN)
		cell->optimiser = OPTIMISER_SGD;
	cell->batch = strtoll(point->words[AXIS_BATCH], NULL, 10);
	cell->dropout = e->spec->dropout;
}

/* What the cell's words mean to a worker. */
static void fill_recipe(const struct expansion *e, const struct framework *framework,
			const struct cell *cell, struct recipe *recipe)
{
	const struct spec *spec = e->spec;
	bool cpu = strncmp(cell->device, "cpu", 3) == 0;
	int threads = 0;

	recipe_defaults(recipe);
	device_parse(cell->device, &threads, NULL);
	snprintf(recipe->framework, sizeof(recipe->framework), "%s", cell->framework);
	snprintf(recipe->options, sizeof(recipe->options), "%s",
		 framework_option_words(framework, cell->options, &e->plan->arena));
	snprintf(recipe->backend, sizeof(recipe->backend), "%s", cell->backend);
	/* How many cores is told by the threads. */
	snprintf(recipe->device, sizeof(recipe->device), "%s", cpu ? "cpu" : cell->device);
	recipe->threads = threads > 0 ? threads : e->settings->cores;
	recipe->stage = cell->stage;
	recipe->precision = cell->precision;
	recipe->slots = PLAN_SLOTS;
	recipe->input = cell->input;
	recipe->optimiser = cell->optimiser;
	recipe->learning_rate = spec->learning_rate;
	recipe->momentum = spec->momentum;
	recipe->weight_decay = spec->weight_decay;
	recipe->dropout = cell->dropout;
	recipe->seed = spec->seed;
}

static void fill_cell(const struct expansion *e, const struct point *point,
		      const struct dataset_choice *dataset, struct plan_cell *cell)
{
	const struct framework_choice *framework = &e->frameworks[point->framework];

	*cell = (struct plan_cell){
		.status = CELL_PENDING,
		.explicit_ = e->spec->frameworks_explicit,
		.harness = framework->framework->harness_only,
		.ungated = framework->framework->computes_nothing,
		.network = expansion_network(e, point->words[AXIS_NETWORK]),
		.dataset = dataset->used,
		.data_folder = dataset->folder,
		.place = framework->place,
		.origin = framework_origin_name(framework->place.origin),
		.worker_name = framework->framework->name,
		.steps = e->spec->steps,
		.warm_up_steps = e->spec->warm_up_steps,
	};
	fill_words(e, point, dataset, cell);
	fill_recipe(e, cell->place.framework, &cell->cell, &cell->recipe);
	override(e, point, dataset, cell);
	cell->recipe.batch = cell->cell.batch;
	cell_key(&cell->cell, cell->key);
	cell_hash(&cell->cell, cell->hash);
}

/* Open addressing over the cells so far, by their hashes: index + 1, 0 = free. */
struct seen {
	size_t *slots, mask;
};

/* True when it was not there and now is. */
static bool seen_add(struct seen *seen, const struct plan_cell *cells, size_t index)
{
	size_t at = strtoull(cells[index].hash, NULL, 16) & seen->mask;

	for (; seen->slots[at] != 0; at = (at + 1) & seen->mask)
		if (strcmp(cells[seen->slots[at] - 1].key, cells[index].key) == 0)
			return false;
	seen->slots[at] = index + 1;
	return true;
}

/* In place of a network's data set that nobody asked for by name; why is said once. */
static const struct dataset *synthetic_instead(struct expansion *e, const char *name,
					       const char *why)
{
	const char *note = arena_printf(
		&e->plan->arena, "%s %s: networks that take it get synthetic data", name, why);
	bool said = false;

	for (size_t i = 0; i < e->plan->note_count && !said; i++)
		said = strcmp(e->plan->notes[i], note) == 0;
	if (!said)
		plan_note(e->plan, note);
	return dataset_find("synthetic");
}

static enum prony_status own_dataset(struct expansion *e, const struct point *point,
				     const struct dataset_choice **out, struct error *err)
{
	const struct network *network = expansion_network(e, point->words[AXIS_NETWORK]);
	const char *named = point->words[AXIS_DATASET];
	const char *name = *named ? named : network->dataset;
	const struct dataset *dataset = dataset_find(name);

	if (!dataset)
		dataset = synthetic_instead(e, name, "cannot be read yet");
	enum prony_status status = expansion_dataset(e, dataset, point->dataset_strict, out, err);
	if (status == PRONY_OK && !*named && (*out)->reason)
		status = expansion_dataset(
			e, synthetic_instead(e, name, "is not here (see prony data list)"), false,
			out, err);
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
		struct point point;

		locate_point(e, i, &point);
		status = own_dataset(e, &point, &dataset, err);
		if (status != PRONY_OK || excluded(e, &point, dataset))
			continue;
		fill_cell(e, &point, dataset, cell);
		if (!seen_add(&seen, plan->cells, plan->count))
			continue;
		plan->count++;
		status = judge_cell(e, dataset, cell, err);
	}
	return status;
}

enum prony_status plan_expand(const struct spec *spec, const struct plan_settings *settings,
			      struct plan *out, struct error *err)
{
	struct plan plan = {0};
	struct expansion e = {.spec = spec, .settings = settings, .plan = &plan};
	size_t total = 0;

	arena_init(&plan.arena, 0);
	enum prony_status status = expansion_resolve(&e, err);
	if (status == PRONY_OK)
		status = count_points(&e, &total, err);
	if (status == PRONY_OK)
		status = expand_points(&e, total, err);
	if (status == PRONY_OK && plan.count == 0)
		status = error_set(err, *spec->suite ? PRONY_BAD_INPUT : PRONY_USAGE,
				   "%s%snothing is left to run: an axis is empty or everything is "
				   "excluded",
				   spec->suite, *spec->suite ? ": " : "");
	if (status != PRONY_OK) {
		plan_release(&plan);
		return status;
	}
	*out = plan;
	return PRONY_OK;
}

bool plan_cell_identity(const struct plan_cell *cell, struct digest *digest)
{
	return framework_identity(&cell->place, digest);
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
