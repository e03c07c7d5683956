#include "frameworks/descriptor_values.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

enum prony_status reader_needs(struct reader *reader, const struct key *key,
			       const yaml_node_t *value, struct error *err)
{
	return yaml_file_wrong(&reader->yaml, value, err,
			       "%s must be %s, not %s; for example %s: %s", key->name, key->needs,
			       yaml_file_describe(&reader->yaml, value), key->name, key->example);
}

const char *reader_word(const yaml_node_t *value)
{
	const char *text = yaml_text(value);

	return text && *text && !yaml_is_nothing(value) ? text : NULL;
}

enum prony_status read_text(struct reader *reader, const struct key *key, const yaml_node_t *value,
			    void *target, struct error *err)
{
	const char *text = reader_word(value);

	if (!text || strchr(text, '\n'))
		return reader_needs(reader, key, value, err);
	*(const char **)((char *)target + key->offset) = arena_strdup(reader->yaml.arena, text);
	return PRONY_OK;
}

/* A text of zero or more lines. */
enum prony_status read_lines(struct reader *reader, const struct key *key, const yaml_node_t *value,
			     void *target, struct error *err)
{
	if (!yaml_text(value))
		return reader_needs(reader, key, value, err);
	*(const char **)((char *)target + key->offset) =
		arena_strdup(reader->yaml.arena, yaml_text(value));
	return PRONY_OK;
}

enum prony_status read_flag(struct reader *reader, const struct key *key, const yaml_node_t *value,
			    void *target, struct error *err)
{
	const char *text = reader_word(value);
	bool flag = text && strcmp(text, "true") == 0;

	if (!flag && (!text || strcmp(text, "false") != 0))
		return reader_needs(reader, key, value, err);
	*(bool *)((char *)target + key->offset) = flag;
	return PRONY_OK;
}

/* Reads a word or a list of words; passes each with its node to `take`. */
static enum prony_status
each_word(struct reader *reader, const struct key *key, const yaml_node_t *value,
	  enum prony_status (*take)(struct reader *reader, const struct key *key,
				    const yaml_node_t *node, void *member, struct error *err),
	  void *member, struct error *err)
{
	enum prony_status status = PRONY_OK;

	if (value->type == YAML_SCALAR_NODE)
		return reader_word(value) ? take(reader, key, value, member, err)
					  : reader_needs(reader, key, value, err);
	if (value->type != YAML_SEQUENCE_NODE ||
	    value->data.sequence.items.start == value->data.sequence.items.top)
		return reader_needs(reader, key, value, err);
	for (const yaml_node_item_t *item = value->data.sequence.items.start;
	     item < value->data.sequence.items.top && status == PRONY_OK; item++) {
		const yaml_node_t *node = yaml_file_node(&reader->yaml, *item);

		status = reader_word(node) ? take(reader, key, node, member, err)
					   : reader_needs(reader, key, node, err);
	}
	return status;
}

static enum prony_status add_word(struct reader *reader, const yaml_node_t *at, const char *word,
				  struct word_list *list, struct error *err)
{
	if (list->count == DESCRIPTOR_WORDS_MAX)
		return yaml_file_wrong(&reader->yaml, at, err,
				       "the list has more than %zu words; remove some",
				       DESCRIPTOR_WORDS_MAX);
	/* Doubles the capacity at powers of two; a list shared with another row is not changed. */
	if ((list->count & (list->count - 1)) == 0) {
		const char **words = arena_array(reader->yaml.arena,
						 list->count ? 2 * list->count : 1, sizeof(*words));

		if (list->count)
			memcpy(words, list->words, list->count * sizeof(*words));
		list->words = words;
	}
	list->words[list->count++] = word;
	return PRONY_OK;
}

static enum prony_status take_word(struct reader *reader, const struct key *key,
				   const yaml_node_t *node, void *member, struct error *err)
{
	(void)key;
	return add_word(reader, node, arena_strdup(reader->yaml.arena, yaml_text(node)), member,
			err);
}

enum prony_status read_words(struct reader *reader, const struct key *key, const yaml_node_t *value,
			     void *target, struct error *err)
{
	struct word_list *list = (void *)((char *)target + key->offset);

	*list = (struct word_list){.count = 0};
	return each_word(reader, key, value, take_word, list, err);
}

/* A brace at the beginning of a word must be a placeholder; other braces, as in JSON, are kept. */
static enum prony_status check_placeholders(struct reader *reader, const yaml_node_t *node,
					    struct error *err)
{
	size_t length;

	for (const char *at = yaml_text(node); (at = strchr(at, '{')) != NULL; at++) {
		size_t word = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz");

		if (word > 0 && at[word + 1] == '}' &&
		    placeholder_at(at, &length) == PLACEHOLDER_COUNT) {
			const char *name = arena_strndup(reader->yaml.arena, at + 1, word);
			const char *nearest =
				word_nearest(name, placeholder_names, PLACEHOLDER_COUNT);

			return yaml_file_wrong(&reader->yaml, node, err,
					       "unknown placeholder {%s}%s%s%s; known are {here}, "
					       "{folder}, {cache} and {threads}",
					       name, nearest ? " (did you mean {" : "",
					       nearest ? nearest : "", nearest ? "}?)" : "");
		}
	}
	return PRONY_OK;
}

static enum prony_status take_argument(struct reader *reader, const struct key *key,
				       const yaml_node_t *node, void *member, struct error *err)
{
	enum prony_status status = check_placeholders(reader, node, err);

	return status == PRONY_OK ? take_word(reader, key, node, member, err) : status;
}

enum prony_status read_command(struct reader *reader, const struct key *key,
			       const yaml_node_t *value, void *target, struct error *err)
{
	struct framework *row = target;

	/* A plain string would look like a shell command. */
	if (value->type != YAML_SEQUENCE_NODE)
		return reader_needs(reader, key, value, err);
	row->kind = FRAMEWORK_COMMAND;
	return each_word(reader, key, value, take_argument, &row->command, err);
}

static bool is_variable(const char *name)
{
	if (isdigit((unsigned char)*name))
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return false;
	return *name != '\0';
}

/* A backend's variables are added to those of its framework. */
enum prony_status read_variables(struct reader *reader, const struct key *key,
				 const yaml_node_t *value, void *target, struct error *err)
{
	struct word_list *list = (void *)((char *)target + key->offset), own = {.count = 0};
	enum prony_status status = PRONY_OK;

	if (value->type != YAML_MAPPING_NODE)
		return reader_needs(reader, key, value, err);
	for (size_t i = 0; i < list->count && status == PRONY_OK; i++)
		status = add_word(reader, value, list->words[i], &own, err);
	for (const yaml_node_pair_t *pair = value->data.mapping.pairs.start;
	     pair < value->data.mapping.pairs.top && status == PRONY_OK; pair++) {
		const yaml_node_t *name = yaml_file_node(&reader->yaml, pair->key);
		const yaml_node_t *text = yaml_file_node(&reader->yaml, pair->value);

		if (!is_variable(yaml_text(name)))
			return yaml_file_wrong(
				&reader->yaml, name, err,
				"%s: invalid variable name \"%.60s\"; use letters, digits and _",
				key->name, yaml_text(name));
		if (!yaml_text(text) || strchr(yaml_text(text), '\n'))
			return reader_needs(reader, key, text, err);
		status = check_placeholders(reader, text, err);
		if (status == PRONY_OK)
			status = add_word(reader, text,
					  arena_printf(reader->yaml.arena, "%s=%s", yaml_text(name),
						       yaml_text(text)),
					  &own, err);
	}
	*list = own;
	return status;
}

static enum prony_status take_stage(struct reader *reader, const struct key *key,
				    const yaml_node_t *node, void *member, struct error *err)
{
	enum stage stage;

	if (!stage_parse(yaml_text(node), &stage))
		return reader_needs(reader, key, node, err);
	*(unsigned *)member |= 1u << stage;
	return PRONY_OK;
}

static enum prony_status take_precision(struct reader *reader, const struct key *key,
					const yaml_node_t *node, void *member, struct error *err)
{
	enum precision precision;

	if (!precision_parse(yaml_text(node), &precision) || precision >= PRECISION_ASKED)
		return reader_needs(reader, key, node, err);
	*(unsigned *)member |= 1u << precision;
	return PRONY_OK;
}

static enum prony_status take_loop(struct reader *reader, const struct key *key,
				   const yaml_node_t *node, void *member, struct error *err)
{
	enum loop_mode loop;

	if (!loop_mode_parse(yaml_text(node), &loop))
		return reader_needs(reader, key, node, err);
	*(unsigned *)member |= 1u << loop;
	return PRONY_OK;
}

static enum prony_status take_device(struct reader *reader, const struct key *key,
				     const yaml_node_t *node, void *member, struct error *err)
{
	static const struct {
		const char *word;
		unsigned bit;
	} known[] = {{"cpu", 0}, {"cuda", FRAMEWORK_CUDA}, {"any", FRAMEWORK_ANY}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(yaml_text(node), known[i].word) != 0)
			continue;
		*(unsigned *)member |= known[i].bit;
		return PRONY_OK;
	}
	return reader_needs(reader, key, node, err);
}

enum prony_status read_stages(struct reader *reader, const struct key *key,
			      const yaml_node_t *value, void *target, struct error *err)
{
	unsigned *bits = (void *)((char *)target + key->offset);

	*bits = 0;
	return each_word(reader, key, value, take_stage, bits, err);
}

static enum prony_status take_lack(struct reader *reader, const struct key *key,
				   const yaml_node_t *node, void *target, struct error *err)
{
	struct framework *row = target;
	enum optimiser optimiser;
	enum stage stage;

	if (stage_parse(yaml_text(node), &stage))
		row->lacks_stages |= 1u << stage;
	else if (optimiser_parse(yaml_text(node), &optimiser))
		row->lacks_optimisers |= 1u << optimiser;
	else
		return reader_needs(reader, key, node, err);
	return PRONY_OK;
}

enum prony_status read_lacks(struct reader *reader, const struct key *key, const yaml_node_t *value,
			     void *target, struct error *err)
{
	struct framework *row = target;

	row->lacks_stages = row->lacks_optimisers = 0;
	return each_word(reader, key, value, take_lack, row, err);
}

enum prony_status read_precisions(struct reader *reader, const struct key *key,
				  const yaml_node_t *value, void *target, struct error *err)
{
	unsigned *bits = (void *)((char *)target + key->offset);

	*bits = 0;
	return each_word(reader, key, value, take_precision, bits, err);
}

enum prony_status read_loops(struct reader *reader, const struct key *key, const yaml_node_t *value,
			     void *target, struct error *err)
{
	unsigned *bits = (void *)((char *)target + key->offset);

	*bits = 0;
	return each_word(reader, key, value, take_loop, bits, err);
}

enum prony_status read_devices(struct reader *reader, const struct key *key,
			       const yaml_node_t *value, void *target, struct error *err)
{
	unsigned *bits = (void *)((char *)target + key->offset);

	*bits = 0;
	return each_word(reader, key, value, take_device, bits, err);
}

/* A compute capability as NVIDIA's compiler writes it. */
enum prony_status read_capability(struct reader *reader, const struct key *key,
				  const yaml_node_t *value, void *target, struct error *err)
{
	const char *word = reader_word(value);
	size_t digits = word && strncmp(word, "sm_", 3) == 0 ? strspn(word + 3, "0123456789") : 0;

	if (digits < 2 || digits > 3 || word[3 + digits])
		return reader_needs(reader, key, value, err);
	*(int *)((char *)target + key->offset) = (int)strtol(word + 3, NULL, 10);
	return PRONY_OK;
}

enum prony_status read_environment(struct reader *reader, const struct key *key,
				   const yaml_node_t *value, void *target, struct error *err)
{
	struct framework *row = target;
	const char *word = reader_word(value);

	row->shared_environment = word && strcmp(word, "shared") == 0;
	if (!row->shared_environment && (!word || strcmp(word, "own") != 0))
		return reader_needs(reader, key, value, err);
	return PRONY_OK;
}

enum prony_status read_adapter(struct reader *reader, const struct key *key,
			       const yaml_node_t *value, void *target, struct error *err)
{
	struct framework *row = target;

	/* Results are stored under the adapter's own name. */
	if (reader->of_user)
		return yaml_file_wrong(&reader->yaml, value, err,
				       "adapter: is only for prony's own frameworks; use command: "
				       "for your own worker, or python: for an adapter in Python");
	row->kind = FRAMEWORK_BUILTIN; /* changed when a library is named */
	return read_text(reader, key, value, target, err);
}

/* A module name in python/adapters, or a file path relative to the descriptor. */
enum prony_status read_python(struct reader *reader, const struct key *key,
			      const yaml_node_t *value, void *target, struct error *err)
{
	struct framework *row = target;
	enum prony_status status = read_text(reader, key, value, target, err);
	const char *slash = strrchr(reader->yaml.path, '/');
	size_t length = status == PRONY_OK ? strlen(row->adapter) : 0;

	row->kind = FRAMEWORK_PYTHON;
	if (length > 3 && strcmp(row->adapter + length - 3, ".py") == 0 && row->adapter[0] != '/')
		row->adapter = arena_printf(reader->yaml.arena, "%.*s%s",
					    slash ? (int)(slash - reader->yaml.path) + 1 : 0,
					    reader->yaml.path, row->adapter);
	return status;
}
