/* Parses suite files; docs/suites.md has the grammar. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "spec/spec_internal.h"
#include "spec/suite_file_internal.h"

#define NUMBER_MAX 1e9

static const struct yaml_kind suite_kind = {
	.noun = "suite",
	.example = "networks: lenet",
	.page = "docs/suites.md",
	.remedy = "give the path of a suite file, or a name that prony list suites shows",
};

enum value_kind {
	VALUE_TEXT,
	VALUE_LINE,
	VALUE_EFFORT,
	VALUE_UNTIL,
	VALUE_INT,
	VALUE_INT64,
	VALUE_UINT64
};

/* A key with a single value: its target, its bounds, what to write in a message. */
struct suite_key {
	const char *name, *needs, *example;
	enum value_kind kind;
	size_t offset;
	double min, max;
};

#define SPEC(member) offsetof(struct spec, member)
#define RULE(member) offsetof(struct spec_rule, member)

/* Rows shared by suites and overrides; only the target differs. */
#define STEPS_ROW(where)                                                                           \
	{                                                                                          \
		.name = "steps", .needs = "a whole number from 1 to 1000000000", .example = "100", \
		.kind = VALUE_INT64, .offset = (where), .min = 1, .max = NUMBER_MAX                \
	}
#define WARM_UP_ROW(where)                                                                         \
	{                                                                                          \
		.name = "warm-up-steps", .needs = "a whole number from 0 to 1000000000",           \
		.example = "20", .kind = VALUE_INT64, .offset = (where), .min = 0,                 \
		.max = NUMBER_MAX                                                                  \
	}
#define COUNT_ROW(key, where, least, like)                                                         \
	{                                                                                          \
		.name = (key), .needs = "a whole number from " #least " to 1000000000",            \
		.example = (like), .kind = VALUE_INT64, .offset = (where), .min = (least),         \
		.max = NUMBER_MAX                                                                  \
	}
static const struct suite_key settings[] = {
	{.name = "summary",
	 .needs = "a line of text",
	 .example = "what it is for",
	 .kind = VALUE_TEXT,
	 .offset = SPEC(summary)},
	{.name = "effort",
	 .needs = "quick, default or rigorous",
	 .example = "quick",
	 .kind = VALUE_EFFORT,
	 .offset = SPEC(effort)},
	STEPS_ROW(SPEC(steps)),
	WARM_UP_ROW(SPEC(warm_up_steps)),
	{.name = "repeat",
	 .needs = "a whole number from 1 to 10000",
	 .example = "3",
	 .kind = VALUE_INT,
	 .offset = SPEC(repeat),
	 .min = 1,
	 .max = 10000},
	{.name = "quick-repeat",
	 .needs = "a whole number from 1 to 10000",
	 .example = "3",
	 .kind = VALUE_INT,
	 .offset = SPEC(quick_repeat),
	 .min = 1,
	 .max = 10000},
	{.name = "seed",
	 .needs = "a whole number from 0 to 2147483647",
	 .example = "1",
	 .kind = VALUE_UINT64,
	 .offset = SPEC(seed),
	 .min = 0,
	 .max = INT32_MAX},
	{.name = "origin",
	 .needs = "one line with the benchmark that the suite repeats and its year",
	 .example = "vgg-benchmarks, 2017",
	 .kind = VALUE_LINE,
	 .offset = SPEC(origin)},
	COUNT_ROW("loss-every", SPEC(loss_every), 1, "10"),
	{.name = "until",
	 .needs = UNTIL_NEEDS,
	 .example = UNTIL_EXAMPLE,
	 .kind = VALUE_UNTIL,
	 .offset = SPEC(until)},
	COUNT_ROW("evaluate-every", SPEC(until.every), 1, "100"),
	COUNT_ROW("max-steps", SPEC(until.most), 2, "5000"),
	COUNT_ROW("samples", SPEC(samples), 1, "1000"),
	COUNT_ROW("epochs", SPEC(epochs), 2, "4"),
};

static const struct suite_key override_values[] = {
	STEPS_ROW(RULE(steps)),
	WARM_UP_ROW(RULE(warm_up_steps)),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Contexts of keys; each has its own list of known keys. */
#define INSTEAD "precisions-instead"
enum section { SECTION_SUITE, SECTION_EXCLUDE, SECTION_OVERRIDE };
static const char *const section_keys[] = {
	[SECTION_SUITE] = NULL, [SECTION_EXCLUDE] = "exclude", [SECTION_OVERRIDE] = "override"};

/* The axis that a key sets: a list, or with `one` a single value. AXIS_COUNT for other keys. */
static enum axis_id find_axis(const char *key, bool one)
{
	int id = 0;

	while (id < AXIS_COUNT && strcmp(one ? axes[id].singular : axes[id].plural, key) != 0)
		id++;
	return id == AXIS_COUNT || (one && !axes[id].settable) ? AXIS_COUNT : (enum axis_id)id;
}

static size_t known_keys(enum section section, const char **names)
{
	const struct suite_key *rows = section == SECTION_SUITE ? settings : override_values;
	size_t row_count = section == SECTION_SUITE	 ? COUNT(settings)
			   : section == SECTION_OVERRIDE ? COUNT(override_values)
							 : 0;
	size_t count = 0;

	for (int id = 0; id < AXIS_COUNT; id++)
		names[count++] = axes[id].plural;
	for (int id = 0; id < AXIS_COUNT && section != SECTION_EXCLUDE; id++)
		if (axes[id].settable)
			names[count++] = axes[id].singular;
	for (size_t i = 0; i < row_count; i++)
		names[count++] = rows[i].name;
	if (section == SECTION_SUITE) {
		names[count++] = INSTEAD;
		names[count++] = section_keys[SECTION_EXCLUDE];
		names[count++] = section_keys[SECTION_OVERRIDE];
	}
	return count;
}

static enum prony_status unknown_key(const struct suite_file *file, const yaml_node_t *key,
				     enum section section, struct error *err)
{
	const char *names[2 * AXIS_COUNT + COUNT(settings) + COUNT(override_values) + 3];
	size_t count = known_keys(section, names);

	return yaml_file_unknown_key(&file->yaml, key, section_keys[section], names, count, err);
}

static const char *example_of(enum axis_id axis)
{
	return axes[axis].type == AXIS_INT ? "16, 32" : "one, another";
}

/* Adds a scalar of an axis: comma-separated words or ranges. */
static enum prony_status add_words(struct suite_file *file, const yaml_node_t *node,
				   enum axis_id axis, const char *key, struct spec_list *out,
				   struct error *err)
{
	const char *text = yaml_text(node);
	size_t before = out->count;

	if (!text || yaml_is_nothing(node) || *text == '\0')
		return yaml_file_wrong(
			&file->yaml, node, err, "%s: needs a word, not %s; write %s: [%s]", key,
			yaml_file_describe(&file->yaml, node), key, example_of(axis));
	if (strlen(text) > SUITE_WORD_BYTES_MAX)
		return yaml_file_wrong(
			&file->yaml, node, err,
			"%s: \"%.40s...\" is longer than %zu letters; write several words "
			"as a list",
			key, text, SUITE_WORD_BYTES_MAX);
	enum prony_status status = spec_list_add_words(
		file->spec, axis, text, yaml_file_origin(&file->yaml, node, key), out, err);
	file->words += out->count - before;
	if (status == PRONY_OK && file->words > SUITE_WORDS_MAX)
		return yaml_file_wrong(&file->yaml, node, err,
				       "%s: the suite has more than %zu words; shorten it", key,
				       SUITE_WORDS_MAX);
	return status;
}

/* A word, or a list of words. */
static enum prony_status read_axis(struct suite_file *file, const yaml_node_t *value,
				   enum axis_id axis, const char *key, struct spec_list *out,
				   struct error *err)
{
	struct spec_list list = {.count = 0};
	enum prony_status status = PRONY_OK;

	if (value->type == YAML_SCALAR_NODE) {
		status = add_words(file, value, axis, key, &list, err);
	} else if (value->type == YAML_MAPPING_NODE) {
		return yaml_file_wrong(
			&file->yaml, value, err,
			"%s: needs a word or a list of words, not a mapping; write %s: [%s]", key,
			key, example_of(axis));
	} else {
		const yaml_node_item_t *item = value->data.sequence.items.start;

		if (item == value->data.sequence.items.top)
			return yaml_file_wrong(
				&file->yaml, value, err,
				"%s: the list is empty; add a word or remove the key", key);
		for (; item < value->data.sequence.items.top && status == PRONY_OK; item++)
			status = add_words(file, yaml_file_node(&file->yaml, *item), axis, key,
					   &list, err);
	}
	if (status == PRONY_OK)
		*out = list;
	return status;
}

/* Reads a single value of an axis; commas and ranges are not allowed. */
static enum prony_status read_one(struct suite_file *file, const yaml_node_t *node,
				  enum axis_id axis, struct spec_list *out, struct error *err)
{
	const struct axis *row = &axes[axis];
	const char *text = yaml_text(node);
	char canonical[CELL_WORD_BYTES];
	bool quoted = text && node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;

	if (!text || yaml_is_nothing(node) || (quoted && row->type != AXIS_SWITCH) ||
	    axis_canonical(row, text, canonical, NULL) != PRONY_OK)
		return yaml_file_wrong(&file->yaml, node, err, "%s: needs %s, not %s; write %s: %s",
				       row->singular, row->needs,
				       yaml_file_describe(&file->yaml, node), row->singular,
				       row->example);
	*out = (struct spec_list){.count = 0};
	spec_list_add(file->spec, out, canonical,
		      yaml_file_origin(&file->yaml, node, row->singular));
	return PRONY_OK;
}

static bool parse_number(const char *text, double *out)
{
	char *end;

	if (strspn(text, "0123456789") != strlen(text))
		return false;
	*out = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*out);
}

/* Stores the value; false when it does not fit the row. A quoted number is a text. */
static bool take_value(struct suite_file *file, const struct suite_key *row,
		       const yaml_node_t *node, void *target)
{
	const char *text = yaml_text(node);
	bool whole =
		row->kind == VALUE_INT || row->kind == VALUE_INT64 || row->kind == VALUE_UINT64;
	void *member = (char *)target + row->offset;
	double number = 0;

	if (!text || yaml_is_nothing(node))
		return false;
	if (whole) {
		if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE ||
		    !parse_number(text, &number) || number < row->min || number > row->max)
			return false;
	}
	switch (row->kind) {
	case VALUE_TEXT:
		*(const char **)member = arena_strdup(&file->spec->arena, text);
		return true;
	case VALUE_LINE:
		if (*text == '\0' || strchr(text, '\n'))
			return false;
		*(const char **)member = arena_strdup(&file->spec->arena, text);
		return true;
	case VALUE_EFFORT:
		return effort_parse(text, member);
	case VALUE_UNTIL:
		return until_parse(text, member);
	case VALUE_INT:
		*(int *)member = (int)number;
		return true;
	case VALUE_INT64:
		*(int64_t *)member = (int64_t)number;
		return true;
	case VALUE_UINT64:
		*(uint64_t *)member = (uint64_t)number;
		return true;
	}
	return false;
}

static enum prony_status read_value(struct suite_file *file, const struct suite_key *row,
				    const yaml_node_t *node, void *target, struct error *err)
{
	if (take_value(file, row, node, target))
		return PRONY_OK;
	return yaml_file_wrong(&file->yaml, node, err, "%s: needs %s, not %s; write %s: %s",
			       row->name, row->needs, yaml_file_describe(&file->yaml, node),
			       row->name, row->example);
}

static const struct suite_key *find_key(const struct suite_key *rows, size_t count,
					const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

static enum prony_status read_rule_key(struct suite_file *file, const yaml_node_t *key,
				       const yaml_node_t *value, enum section section,
				       struct spec_rule *rule, struct error *err)
{
	const char *name = yaml_text(key);
	enum axis_id axis = find_axis(name, false), one = find_axis(name, true);
	struct spec_list value_list;
	const struct suite_key *row =
		section == SECTION_OVERRIDE
			? find_key(override_values, COUNT(override_values), name)
			: NULL;

	if (axis != AXIS_COUNT)
		return read_axis(file, value, axis, name, &rule->axes[axis], err);
	if (row)
		return read_value(file, row, value, rule, err);
	if (one == AXIS_COUNT || section != SECTION_OVERRIDE)
		return unknown_key(file, key, section, err);
	enum prony_status status = read_one(file, value, one, &value_list, err);
	if (status == PRONY_OK)
		rule->values[one] = value_list.words[0].text;
	return status;
}

/* An empty rule would exclude everything or change nothing, so refuse it. */
static enum prony_status check_rule(const struct suite_file *file, const yaml_node_t *node,
				    enum section section, const struct spec_rule *rule,
				    struct error *err)
{
	bool changes = rule->steps >= 0 || rule->warm_up_steps >= 0;
	size_t words = 0;

	for (int id = 0; id < AXIS_COUNT; id++) {
		words += rule->axes[id].count;
		changes |= rule->values[id] != NULL;
	}
	if (words == 0)
		return yaml_file_wrong(
			&file->yaml, node, err,
			"%s: selects no cells; add an axis, for example networks: lenet",
			section_keys[section]);
	if (section == SECTION_OVERRIDE && !changes)
		return yaml_file_wrong(&file->yaml, node, err,
				       "override: changes nothing; add steps, warm-up-steps or an "
				       "axis with one value, for example batch: 16");
	return PRONY_OK;
}

static enum prony_status read_rule(struct suite_file *file, const yaml_node_t *node,
				   enum section section, struct spec_rule *rule, struct error *err)
{
	enum prony_status status = PRONY_OK;

	if (node->type != YAML_MAPPING_NODE)
		return yaml_file_wrong(
			&file->yaml, node, err,
			"%s: needs a mapping of axes, not %s; write - networks: lenet",
			section_keys[section], yaml_file_describe(&file->yaml, node));
	*rule = (struct spec_rule){.steps = -1, .warm_up_steps = -1};
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top && status == PRONY_OK; pair++)
		status =
			read_rule_key(file, yaml_file_node(&file->yaml, pair->key),
				      yaml_file_node(&file->yaml, pair->value), section, rule, err);
	return status == PRONY_OK ? check_rule(file, node, section, rule, err) : status;
}

static enum prony_status read_rules(struct suite_file *file, const yaml_node_t *value,
				    enum section section, struct spec_rule **out, size_t *out_count,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;
	struct spec_rule *rules;
	size_t count;

	if (value->type != YAML_SEQUENCE_NODE)
		return yaml_file_wrong(&file->yaml, value, err,
				       "%s: needs a list of mappings, not %s; begin each with a "
				       "dash: - networks: lenet",
				       section_keys[section],
				       yaml_file_describe(&file->yaml, value));
	count = (size_t)(value->data.sequence.items.top - value->data.sequence.items.start);
	if (count > SUITE_RULES_MAX)
		return yaml_file_wrong(&file->yaml, value, err,
				       "%s: %zu rules are too many; at most %zu",
				       section_keys[section], count, SUITE_RULES_MAX);
	rules = arena_array(&file->spec->arena, count ? count : 1, sizeof(*rules));
	for (size_t i = 0; i < count && status == PRONY_OK; i++)
		status = read_rule(file,
				   yaml_file_node(&file->yaml, value->data.sequence.items.start[i]),
				   section, &rules[i], err);
	if (status != PRONY_OK)
		return status;
	*out = rules;
	*out_count = count;
	return PRONY_OK;
}

static enum prony_status read_key(struct suite_file *file, const yaml_node_t *key,
				  const yaml_node_t *value, struct error *err)
{
	struct spec *spec = file->spec;
	const char *name = yaml_text(key);
	enum axis_id axis = find_axis(name, false), one = find_axis(name, true);
	const struct suite_key *row = find_key(settings, COUNT(settings), name);

	if (axis != AXIS_COUNT)
		return read_axis(file, value, axis, name, &spec->axes[axis], err);
	if (one != AXIS_COUNT)
		return read_one(file, value, one, &spec->axes[one], err);
	if (row)
		return read_value(file, row, value, spec, err);
	if (strcmp(name, INSTEAD) == 0)
		return read_axis(file, value, AXIS_PRECISION, name, &spec->precisions_instead, err);
	if (strcmp(name, section_keys[SECTION_EXCLUDE]) == 0)
		return read_rules(file, value, SECTION_EXCLUDE, &spec->excludes,
				  &spec->exclude_count, err);
	if (strcmp(name, section_keys[SECTION_OVERRIDE]) == 0)
		return read_rules(file, value, SECTION_OVERRIDE, &spec->overrides,
				  &spec->override_count, err);
	return unknown_key(file, key, SECTION_SUITE, err);
}

static enum prony_status check_epochs(const struct suite_file *file, const yaml_node_t *root,
				      struct error *err)
{
	if ((file->spec->samples > 0) == (file->spec->epochs > 0))
		return PRONY_OK;
	return yaml_file_wrong(&file->yaml, root, err,
			       "%s: needs %s, too; write samples: 1000 and epochs: 4",
			       file->spec->samples > 0 ? "samples" : "epochs",
			       file->spec->samples > 0 ? "epochs" : "samples");
}

/* The suite's name is the file name without its extension. */
static const char *suite_name(const char *path, struct arena *arena)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');

	return arena_strndup(arena, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

enum prony_status spec_read_file(struct spec *spec, const char *path, struct error *err)
{
	struct spec draft = *spec;
	struct suite_file file = {
		.yaml = {.path = path, .kind = &suite_kind, .arena = &draft.arena}, .spec = &draft};
	enum prony_status status = yaml_file_load(&file.yaml, err);

	if (status == PRONY_OK) {
		const yaml_node_t *root = yaml_document_get_root_node(&file.yaml.document);

		for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
		     pair < root->data.mapping.pairs.top && status == PRONY_OK; pair++)
			status = read_key(&file, yaml_file_node(&file.yaml, pair->key),
					  yaml_file_node(&file.yaml, pair->value), err);
		if (status == PRONY_OK)
			status = check_epochs(&file, root, err);
		yaml_file_release(&file.yaml);
	}
	if (status == PRONY_OK) {
		draft.suite = suite_name(path, &draft.arena);
		draft.cells_explicit = false;
		*spec = draft;
	} else {
		/* What was read so far stays in the arena unused. */
		spec->arena = draft.arena;
	}
	return status;
}
