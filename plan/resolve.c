/* Checks the words of a spec and locates frameworks, networks and data sets. */
#include "plan/resolve_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/strbuf.h"
#include "datasets/text.h"
#include "plan/own_model.h"

#define WORDS_SHOWN_BYTES 600 /* of the list of known words in a message */
#define EVERYTHING "all" /* every framework that is not harness-only; every network of the zoo */

/* Sets the error: "suite.yaml:3: networks: unknown network "lenett"; did you mean lenet? Known:
 * mlp, lenet". */
static enum prony_status unknown_word(const struct spec_word *word, const char *kind,
				      const char *nearest, const char *known, struct error *err)
{
	return error_set(err, origin_status(word->origin),
			 "%s: unknown %s \"%.80s\"%s%s%s Known: %s", word->origin, kind, word->text,
			 nearest ? "; did you mean " : ".", nearest ? nearest : "",
			 nearest ? "?" : "", known);
}

/* Checks a word of a vocabulary; numbers and switches are already canonical (spec/). */
static enum prony_status check_word(enum axis_id axis, const struct spec_word *word,
				    struct expansion *e, const char **canonical, struct error *err)
{
	struct error wrong = ERROR_INIT;
	char text[CELL_WORD_BYTES];

	if (axis_canonical(&axes[axis], word->text, text, &wrong) != PRONY_OK)
		return error_set(err, origin_status(word->origin), "%s: %s", word->origin,
				 wrong.text);
	*canonical = arena_strdup(&e->plan->arena, text);
	return PRONY_OK;
}

static enum prony_status unknown_framework(const struct spec_word *word,
					   const struct registry *registry, const char *name,
					   struct error *err)
{
	struct strbuf known;

	strbuf_init(&known, WORDS_SHOWN_BYTES);
	for (size_t i = 0; i < registry->count; i++)
		if (i == 0 || strcmp(registry->rows[i].name, registry->rows[i - 1].name) != 0)
			strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", registry->rows[i].name);
	strbuf_puts(&known, ", and all");
	enum prony_status status = unknown_word(
		word, "framework", framework_nearest(registry, name), strbuf_text(&known), err);
	strbuf_release(&known);
	return status;
}

/* Checks every "+" word of a framework whose options are known, before anything is started. */
static enum prony_status check_options(const struct spec_word *word,
				       const struct plan_settings *settings,
				       const struct framework *framework, const char *options,
				       struct error *err)
{
	struct error wrong = ERROR_INIT;

	if (framework->any_option) {
		if (settings->judge_options &&
		    settings->judge_options(framework, options, &wrong) != PRONY_OK)
			return error_set(err, origin_status(word->origin), "%s: %s", word->origin,
					 wrong.text);
		return PRONY_OK;
	}
	const char **names = memory_alloc((framework->option_count + 1) * sizeof(*names));
	enum prony_status status = PRONY_OK;
	struct strbuf known;

	strbuf_init(&known, WORDS_SHOWN_BYTES);
	for (size_t i = 0; i < framework->option_count; i++) {
		names[i] = framework->options[i].name;
		strbuf_printf(&known, "%s+%s", i > 0 ? ", " : "", names[i]);
	}
	while (status == PRONY_OK && *options) {
		size_t length = strcspn(options, ",");
		char typed[CELL_WORD_BYTES];

		snprintf(typed, sizeof(typed), "%.*s", (int)length, options);
		const char *near = word_nearest(typed, names, framework->option_count);
		if (!framework_option(framework, options, length))
			status = error_set(err, origin_status(word->origin),
					   "%s: %s has no option +%s%s%s%s %s%s", word->origin,
					   framework->name, typed, near ? "; did you mean +" : ";",
					   near ? near : "", near ? "?" : "",
					   !known.length ? "it has none"
					   : near	 ? "It has "
							 : "it has ",
					   strbuf_text(&known));
		options += length + (options[length] == ',');
	}
	strbuf_release(&known);
	free(names);
	return status;
}

static enum prony_status check_framework(const struct spec_word *word, struct expansion *e,
					 const char **canonical, struct error *err)
{
	struct error wrong = ERROR_INIT;
	struct cell cell = {0};

	if (strcmp(word->text, EVERYTHING) == 0) {
		*canonical = word->text;
		return PRONY_OK;
	}
	if (cell_parse_framework(word->text, &cell, &wrong) != PRONY_OK)
		return error_set(err, origin_status(word->origin), "%s: %s", word->origin,
				 wrong.text);
	const struct framework *known = framework_find(e->settings->registry, cell.name, NULL);
	if (!known)
		return unknown_framework(word, e->settings->registry, cell.name, err);
	if (known->broken)
		return error_set(err, PRONY_BAD_INPUT, "%s: %s", word->origin, known->broken);
	*canonical = arena_strdup(&e->plan->arena, cell.framework);
	/* A backend that it lacks is judged with the rest of the cell. */
	const struct framework *row =
		framework_find(e->settings->registry, cell.name, cell.backend);
	return check_options(word, e->settings, row ? row : known, cell.options, err);
}

const struct network *expansion_network(const struct expansion *e, const char *word)
{
	for (size_t i = 0; i < e->plan->file_count; i++) {
		if (strcmp(e->plan->files[i]->name, word) == 0)
			return &e->plan->files[i]->network;
	}
	return zoo_find(word, NULL);
}

/* Opens an ONNX file or a model in Python; files with the same content are one network. */
static enum prony_status check_network_file(const struct spec_word *word, struct expansion *e,
					    const char **canonical, struct error *err)
{
	struct plan *plan = e->plan;
	struct error why = ERROR_INIT;
	struct network_file *file, **files;
	const struct network_given given = {
		.shapes = {e->spec->shapes, e->spec->shape_count, e->shapes_used},
		.fills = {e->spec->fills, e->spec->fill_count, e->fills_used}};
	enum prony_status status =
		own_model_is(word->text)
			? own_model_open(e->settings->registry, word->text, &given, &file, &why)
			: network_file_open(word->text, &given, &file, &why);

	if (status == PRONY_USAGE)
		return error_set(err, status, "%s", why.text);
	if (status != PRONY_OK)
		return error_set(err, status, "%s: %s", word->origin, why.text);
	*canonical = arena_strdup(&plan->arena, file->name);
	if (expansion_network(e, file->name)) {
		network_file_free(file);
		return PRONY_OK;
	}
	files = arena_array(&plan->arena, plan->file_count + 1, sizeof(*files));
	if (plan->file_count > 0)
		memcpy(files, plan->files, plan->file_count * sizeof(*files));
	files[plan->file_count++] = file;
	plan->files = files;
	if (file->remark)
		plan_note(plan, file->remark);
	return PRONY_OK;
}

static enum prony_status check_network(const struct spec_word *word, struct expansion *e,
				       const char **canonical, struct error *err)
{
	const char *nearest = NULL;
	struct strbuf known;

	if (own_model_is(word->text) || network_is_file(word->text) ||
	    network_check_ending(word->text, NULL) != PRONY_OK)
		return check_network_file(word, e, canonical, err);
	if (strcmp(word->text, EVERYTHING) == 0 || zoo_find(word->text, &nearest)) {
		*canonical = word->text;
		return PRONY_OK;
	}
	strbuf_init(&known, WORDS_SHOWN_BYTES);
	for (size_t i = 0; i < zoo_network_count; i++)
		strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", zoo_networks[i]->name);
	strbuf_puts(&known, ", all, ONNX files (FILE.onnx) and models in PyTorch (FILE.py:NAME)");
	enum prony_status status = unknown_word(word, "network", nearest, strbuf_text(&known), err);
	strbuf_release(&known);
	return status;
}

const struct dataset *expansion_find_dataset(const struct expansion *e, const char *word)
{
	for (size_t i = 0; i < e->text_count; i++)
		if (strcmp(e->texts[i]->name, word) == 0)
			return e->texts[i];
	return dataset_find(word);
}

static bool is_text_file(const char *word)
{
	size_t length = strlen(word);

	return length > 4 && strcmp(word + length - 4, ".txt") == 0;
}

static enum prony_status check_text_file(const struct spec_word *word, struct expansion *e,
					 const char **canonical, struct error *err)
{
	struct error why = ERROR_INIT;
	const struct dataset *text, **texts;
	enum prony_status status = text_dataset(word->text, &e->plan->arena, &text, &why);

	if (status != PRONY_OK)
		return error_set(err, status, "%s: %s", word->origin, why.text);
	*canonical = text->name;
	if (expansion_find_dataset(e, text->name))
		return PRONY_OK;
	texts = arena_array(&e->plan->arena, e->text_count + 1, sizeof(*texts));
	if (e->text_count > 0)
		memcpy(texts, e->texts, e->text_count * sizeof(*texts));
	texts[e->text_count++] = text;
	e->texts = texts;
	return PRONY_OK;
}

static enum prony_status check_dataset(const struct spec_word *word, struct expansion *e,
				       const char **canonical, struct error *err)
{
	struct strbuf known;

	if (is_text_file(word->text))
		return check_text_file(word, e, canonical, err);
	if (dataset_find(word->text) || strcmp(word->text, OWN_DATASET) == 0) {
		*canonical = word->text;
		return PRONY_OK;
	}
	strbuf_init(&known, WORDS_SHOWN_BYTES);
	for (size_t i = 0; i < dataset_count; i++)
		strbuf_printf(&known, "%s, ", dataset_table[i].name);
	strbuf_puts(&known, "text files (FILE.txt), and " OWN_DATASET ", each network's");
	enum prony_status status = unknown_word(word, "data set", dataset_nearest(word->text),
						strbuf_text(&known), err);
	strbuf_release(&known);
	return status;
}

static enum prony_status check_device(const struct spec_word *word, struct expansion *e,
				      const char **canonical, struct error *err)
{
	struct error wrong = ERROR_INIT;
	struct device device;

	(void)e;
	if (device_parse(word->text, &device, &wrong) != PRONY_OK)
		return error_set(err, origin_status(word->origin), "%s: %s", word->origin,
				 wrong.text);
	*canonical = word->text;
	return PRONY_OK;
}

static enum prony_status check(enum axis_id axis, const struct spec_word *word, struct expansion *e,
			       const char **canonical, struct error *err)
{
	switch (axis) {
	case AXIS_FRAMEWORK:
		return check_framework(word, e, canonical, err);
	case AXIS_NETWORK:
		return check_network(word, e, canonical, err);
	case AXIS_DATASET:
		return check_dataset(word, e, canonical, err);
	case AXIS_DEVICE:
		return check_device(word, e, canonical, err);
	default:
		return check_word(axis, word, e, canonical, err);
	}
}

/* Lists the words that "all" means; returns their number. */
static size_t everything(enum axis_id axis, struct expansion *e, const char *origin,
			 struct spec_word *words)
{
	const struct registry *registry = e->settings->registry;
	size_t count = 0;

	if (axis == AXIS_NETWORK) {
		for (; count < zoo_network_count; count++)
			words[count] = (struct spec_word){zoo_networks[count]->name, origin};
		return count;
	}
	for (size_t f = 0; f < registry->count; f++)
		if (!registry->rows[f].harness_only && !registry->rows[f].broken)
			words[count++] = (struct spec_word){
				framework_spelling(&registry->rows[f], NULL, &e->plan->arena),
				origin};
	return count;
}

static enum prony_status canonical_list(const struct spec_list *list, enum axis_id axis,
					bool expand_all, struct expansion *e, struct spec_list *out,
					struct error *err)
{
	size_t of_all = axis == AXIS_NETWORK ? zoo_network_count : e->settings->registry->count;
	size_t room = list->count + (expand_all ? of_all * list->count : 0);
	struct spec_word *words = arena_array(&e->plan->arena, room ? room : 1, sizeof(*words));
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		const char *text = NULL;
		enum prony_status status = check(axis, &list->words[i], e, &text, err);

		if (status != PRONY_OK)
			return status;
		if (expand_all && strcmp(text, EVERYTHING) == 0)
			count += everything(axis, e, list->words[i].origin, words + count);
		else
			words[count++] = (struct spec_word){text, list->words[i].origin};
	}
	*out = (struct spec_list){.words = words, .count = count};
	return PRONY_OK;
}

/* Makes a rule's words canonical. In a rule a framework's name stands for all its variants, so
 * "all" frameworks stays one word there. */
static enum prony_status canonical_rule(const struct spec_rule *rule, bool of_plan,
					struct expansion *e, struct spec_rule *out,
					struct error *err)
{
	enum prony_status status = PRONY_OK;

	*out = *rule;
	for (int id = 0; id < AXIS_COUNT && status == PRONY_OK; id++)
		status = canonical_list(&rule->axes[id], (enum axis_id)id,
					id == AXIS_NETWORK || (of_plan && id == AXIS_FRAMEWORK), e,
					&out->axes[id], err);
	return status;
}

static enum prony_status canonical_rules(const struct spec_rule *rules, size_t count,
					 struct expansion *e, struct spec_rule **out,
					 struct error *err)
{
	enum prony_status status = PRONY_OK;

	*out = arena_array(&e->plan->arena, count ? count : 1, sizeof(**out));
	for (size_t i = 0; i < count && status == PRONY_OK; i++)
		status = canonical_rule(&rules[i], false, e, &(*out)[i], err);
	return status;
}

static enum prony_status locate(const struct expansion *e, struct framework_choice *choice,
				struct error *err)
{
	struct framework_location *place = arena_alloc(&e->plan->arena, sizeof(*place));

	choice->location = place;
	return framework_locate(choice->framework, choice->words.environment, &e->plan->arena,
				place, err);
}

static enum prony_status locate_framework(struct expansion *e, size_t number, struct error *err)
{
	const struct spec_word *word = &e->asked.axes[AXIS_FRAMEWORK].words[number];
	struct framework_choice *choice = &e->frameworks[number];
	struct error wrong = ERROR_INIT;
	enum prony_status status = cell_parse_framework(word->text, &choice->words, &wrong);
	size_t same = 0;

	if (status == PRONY_OK) {
		const struct registry *registry = e->settings->registry;
		const char *name = choice->words.name;

		/* A backend that it lacks is judged with the rest of the cell. */
		choice->framework = framework_find(registry, name, choice->words.backend);
		if (!choice->framework)
			choice->framework = framework_find(registry, name, NULL);
		while (same < number && (e->frameworks[same].framework != choice->framework ||
					 strcmp(e->frameworks[same].words.environment,
						choice->words.environment) != 0))
			same++;
		/* Locating may start interpreters, so repeated words use the earlier result. */
		if (same < number)
			choice->location = e->frameworks[same].location;
		else
			status = locate(e, choice, &wrong);
	}
	if (status == PRONY_USAGE)
		return error_set(err, origin_status(word->origin), "%s: %s", word->origin,
				 wrong.text);
	return status == PRONY_OK ? PRONY_OK : error_set(err, status, "%s", wrong.text);
}

static bool reads_natively(const struct expansion *e)
{
	const struct spec_list *inputs = &e->asked.axes[AXIS_INPUT];
	bool natively = false;

	for (size_t i = 0; i < inputs->count; i++)
		natively |= strcmp(inputs->words[i].text, input_mode_name(INPUT_NATIVE)) == 0;
	return natively;
}

/* Locates the framework that replaces this one for native input. An environment and options belong
 * to their own framework, so such a choice is never replaced. */
static enum prony_status locate_reader(struct expansion *e, struct framework_choice *choice,
				       struct error *err)
{
	const struct registry *registry = e->settings->registry;
	const char *name = choice->framework->native_input_by;
	const struct framework *framework = name ? framework_find(registry, name, NULL) : NULL;
	struct framework_choice *reader;

	if (!framework || *choice->words.environment || *choice->words.options)
		return PRONY_OK;
	choice->reader = reader = arena_alloc(&e->plan->arena, sizeof(*reader));
	*reader = (struct framework_choice){.framework = framework};
	enum prony_status status = cell_parse_framework(name, &reader->words, err);
	return status == PRONY_OK ? locate(e, reader, err) : status;
}

static enum prony_status locate_frameworks(struct expansion *e, struct error *err)
{
	size_t count = e->asked.axes[AXIS_FRAMEWORK].count;
	enum prony_status status = PRONY_OK;

	e->frameworks = arena_array(&e->plan->arena, count ? count : 1, sizeof(*e->frameworks));
	for (size_t i = 0; i < count && status == PRONY_OK; i++)
		status = locate_framework(e, i, err);
	for (size_t i = 0; i < count && status == PRONY_OK && reads_natively(e); i++)
		status = locate_reader(e, &e->frameworks[i], err);
	return status;
}

/* `used`: for each of the texts "NAME=...", whether a file has such an input. */
static enum prony_status check_used(const char *option, const char *const *texts, size_t count,
				    const bool *used, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (!used[i])
			return error_set(err, PRONY_USAGE,
					 "%s %.100s: no ONNX file in this run has an input with "
					 "that name",
					 option, texts[i]);
	return PRONY_OK;
}

enum prony_status expansion_resolve(struct expansion *e, struct error *err)
{
	const struct spec *spec = e->spec;
	struct arena *arena = &e->plan->arena;
	struct spec_rule asked = {0};
	enum prony_status status;

	e->shapes_used = arena_array(arena, spec->shape_count + 1, sizeof(*e->shapes_used));
	e->fills_used = arena_array(arena, spec->fill_count + 1, sizeof(*e->fills_used));
	memcpy(asked.axes, spec->axes, sizeof(asked.axes));
	status = canonical_rule(&asked, true, e, &e->asked, err);
	if (status == PRONY_OK)
		status = canonical_rules(spec->excludes, spec->exclude_count, e, &e->excludes, err);
	if (status == PRONY_OK)
		status = canonical_rules(spec->overrides, spec->override_count, e, &e->overrides,
					 err);
	if (status == PRONY_OK)
		status =
			check_used("--shape", spec->shapes, spec->shape_count, e->shapes_used, err);
	if (status == PRONY_OK)
		status = check_used("--input", spec->fills, spec->fill_count, e->fills_used, err);
	if (status == PRONY_OK)
		status = locate_frameworks(e, err);
	/* Twice each: named strictly and not. */
	e->datasets = arena_array(arena, 2 * (dataset_count + e->text_count), sizeof(*e->datasets));
	return status;
}

void plan_note(struct plan *plan, const char *text)
{
	/* The array doubles at powers of two; the old one stays in the arena. */
	if ((plan->note_count & (plan->note_count - 1)) == 0) {
		size_t capacity = plan->note_count == 0 ? 1 : plan->note_count * 2;
		const char **notes = arena_array(&plan->arena, capacity, sizeof(*notes));

		if (plan->note_count > 0)
			memcpy(notes, plan->notes, plan->note_count * sizeof(*notes));
		plan->notes = notes;
	}
	plan->notes[plan->note_count++] = arena_strdup(&plan->arena, text);
}

/* Locates a data set; if it is not here, choice->reason says where it was searched. */
static enum prony_status look_for(const struct expansion *e, const struct dataset *dataset,
				  struct dataset_choice *choice, struct error *err)
{
	struct arena *arena = &e->plan->arena;
	struct error why = ERROR_INIT;
	char *folder = NULL;
	enum prony_status status = dataset_locate(dataset, e->settings->data_folder, &folder, &why);

	if (status == PRONY_MISSING) {
		choice->reason = arena_strdup(arena, why.text);
		return PRONY_OK;
	}
	if (status != PRONY_OK)
		return error_set(err, status, "%s", why.text);
	choice->used = dataset;
	choice->folder = folder ? arena_strdup(arena, folder) : NULL;
	choice->reason = NULL;
	free(folder);
	return PRONY_OK;
}

enum prony_status expansion_dataset(struct expansion *e, const struct dataset *asked, bool strict,
				    const struct dataset_choice **out, struct error *err)
{
	struct arena *arena = &e->plan->arena;
	struct dataset_choice found = {.asked = asked, .used = asked, .strict = strict};

	for (size_t i = 0; i < e->dataset_count; i++) {
		if (e->datasets[i].asked == asked && e->datasets[i].strict == strict) {
			*out = &e->datasets[i];
			return PRONY_OK;
		}
	}
	enum prony_status status = look_for(e, asked, &found, err);
	const char *reason = found.reason;
	const struct dataset *sample = asked;
	/* A sample may have a smaller sample itself. */
	while (status == PRONY_OK && found.reason && !strict && sample->sample) {
		sample = dataset_find(sample->sample);
		status = look_for(e, sample, &found, err);
	}
	if (found.reason)
		found.reason = reason;
	else if (sample != asked)
		plan_note(e->plan, arena_printf(arena,
						"%s is not installed: using %s instead (to get all "
						"of it: prony data fetch %s)",
						asked->name, sample->name, asked->name));
	if (status != PRONY_OK)
		return status;
	e->datasets[e->dataset_count] = found;
	*out = &e->datasets[e->dataset_count++];
	return PRONY_OK;
}
