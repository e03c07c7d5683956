#include "frameworks/descriptor.h"

#include <ctype.h>
#include <string.h>

#include "base/nearest.h"
#include "base/strbuf.h"
#include "base/yaml_file.h"
#include "cell/cell.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define WORDS_MAX ((size_t)256)
#define SUFFIX ".yaml"

static const struct yaml_kind descriptor_kind = {
	.noun = "framework descriptor",
	.example = "name: mine",
	.page = "docs/frameworks.md",
	.remedy = "make it readable, or move it away",
};

/* Where keys stand; each place has its own known ones, and a struct that they fill. */
enum place { PLACE_ROOT, PLACE_WORKER, PLACE_BACKEND, PLACE_OPTION, PLACE_REPAIR };
static const char *const place_names[] = {
	[PLACE_ROOT] = NULL,	    [PLACE_WORKER] = "worker",	[PLACE_BACKEND] = "backends",
	[PLACE_OPTION] = "options", [PLACE_REPAIR] = "repairs",
};

struct reader {
	struct yaml_file yaml;
	bool of_user;
	const yaml_node_t *worker, *options, *backends; /* where they stand; NULL when not */
};

struct key {
	const char *name;
	unsigned places; /* bit set of enum place */
	enum prony_status (*read)(struct reader *reader, const struct key *key,
				  const yaml_node_t *value, void *target, struct error *err);
	size_t offset; /* of the member in the place's struct */
	const char *needs, *example;
	bool of_tree; /* not in a user's file */
};

static enum prony_status needs(struct reader *reader, const struct key *key,
			       const yaml_node_t *value, struct error *err)
{
	return yaml_file_wrong(&reader->yaml, value, err, "%s: needs %s and has %s; write %s: %s",
			       key->name, key->needs, yaml_file_describe(&reader->yaml, value),
			       key->name, key->example);
}

static const char *word_of(const yaml_node_t *value)
{
	const char *text = yaml_text(value);

	return text && *text && !yaml_is_nothing(value) ? text : NULL;
}

static enum prony_status read_text(struct reader *reader, const struct key *key,
				   const yaml_node_t *value, void *target, struct error *err)
{
	const char *text = word_of(value);

	if (!text || strchr(text, '\n'))
		return needs(reader, key, value, err);
	*(const char **)((char *)target + key->offset) = arena_strdup(reader->yaml.arena, text);
	return PRONY_OK;
}

/* Several lines, or none. */
static enum prony_status read_lines(struct reader *reader, const struct key *key,
				    const yaml_node_t *value, void *target, struct error *err)
{
	if (!yaml_text(value))
		return needs(reader, key, value, err);
	*(const char **)((char *)target + key->offset) =
		arena_strdup(reader->yaml.arena, yaml_text(value));
	return PRONY_OK;
}

static enum prony_status read_flag(struct reader *reader, const struct key *key,
				   const yaml_node_t *value, void *target, struct error *err)
{
	const char *text = word_of(value);
	bool flag = text && strcmp(text, "true") == 0;

	if (!flag && (!text || strcmp(text, "false") != 0))
		return needs(reader, key, value, err);
	*(bool *)((char *)target + key->offset) = flag;
	return PRONY_OK;
}

/* A word, or a list of words; each of them with its node to `take`. */
static enum prony_status
each_word(struct reader *reader, const struct key *key, const yaml_node_t *value,
	  enum prony_status (*take)(struct reader *reader, const struct key *key,
				    const yaml_node_t *node, void *member, struct error *err),
	  void *member, struct error *err)
{
	enum prony_status status = PRONY_OK;

	if (value->type == YAML_SCALAR_NODE)
		return word_of(value) ? take(reader, key, value, member, err)
				      : needs(reader, key, value, err);
	if (value->type != YAML_SEQUENCE_NODE ||
	    value->data.sequence.items.start == value->data.sequence.items.top)
		return needs(reader, key, value, err);
	for (const yaml_node_item_t *item = value->data.sequence.items.start;
	     item < value->data.sequence.items.top && status == PRONY_OK; item++) {
		const yaml_node_t *node = yaml_file_node(&reader->yaml, *item);

		status = word_of(node) ? take(reader, key, node, member, err)
				       : needs(reader, key, node, err);
	}
	return status;
}

static enum prony_status add_word(struct reader *reader, const yaml_node_t *at, const char *word,
				  struct word_list *list, struct error *err)
{
	if (list->count == WORDS_MAX)
		return yaml_file_wrong(&reader->yaml, at, err, "more than %zu words; shorten it",
				       WORDS_MAX);
	/* Doubles at powers of two; a list that another row has as well stays as it is. */
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

static enum prony_status read_words(struct reader *reader, const struct key *key,
				    const yaml_node_t *value, void *target, struct error *err)
{
	struct word_list *list = (void *)((char *)target + key->offset);

	*list = (struct word_list){.count = 0};
	return each_word(reader, key, value, take_word, list, err);
}

static const char *const placeholder_names[] = {
#define X(id, name) name,
	PLACEHOLDERS(X)
#undef X
};

/* The placeholder that begins at an opening brace, with its length; PLACEHOLDER_COUNT for none. */
static enum placeholder placeholder_at(const char *text, size_t *length)
{
	for (int i = 0; i < PLACEHOLDER_COUNT; i++) {
		size_t name = strlen(placeholder_names[i]);

		if (strncmp(text + 1, placeholder_names[i], name) == 0 && text[name + 1] == '}') {
			*length = name + 2;
			return (enum placeholder)i;
		}
	}
	return PLACEHOLDER_COUNT;
}

const char *placeholders_replace(const char *text, const char *const values[PLACEHOLDER_COUNT],
				 struct arena *arena)
{
	struct strbuf out;
	size_t length;

	strbuf_init(&out, 0);
	while (*text) {
		enum placeholder which =
			*text == '{' ? placeholder_at(text, &length) : PLACEHOLDER_COUNT;

		if (which != PLACEHOLDER_COUNT) {
			strbuf_puts(&out, values[which]);
			text += length;
		} else {
			strbuf_putc(&out, *text++);
		}
	}
	const char *kept = arena_strdup(arena, strbuf_text(&out));
	strbuf_release(&out);
	return kept;
}

/* A brace that begins a word is meant as a placeholder; others, as in JSON, are kept. */
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
					       "nothing is called {%s}%s%s%s; there are {here}, "
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

static enum prony_status read_command(struct reader *reader, const struct key *key,
				      const yaml_node_t *value, void *target, struct error *err)
{
	struct framework *row = target;

	/* One string would be taken for a shell's. */
	if (value->type != YAML_SEQUENCE_NODE)
		return needs(reader, key, value, err);
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

/* Added to those that the row has already: a backend's to its framework's. */
static enum prony_status read_variables(struct reader *reader, const struct key *key,
					const yaml_node_t *value, void *target, struct error *err)
{
	struct word_list *list = (void *)((char *)target + key->offset), own = {.count = 0};
	enum prony_status status = PRONY_OK;

	if (value->type != YAML_MAPPING_NODE)
		return needs(reader, key, value, err);
	for (size_t i = 0; i < list->count && status == PRONY_OK; i++)
		status = add_word(reader, value, list->words[i], &own, err);
	for (const yaml_node_pair_t *pair = value->data.mapping.pairs.start;
	     pair < value->data.mapping.pairs.top && status == PRONY_OK; pair++) {
		const yaml_node_t *name = yaml_file_node(&reader->yaml, pair->key);
		const yaml_node_t *text = yaml_file_node(&reader->yaml, pair->value);

		if (!is_variable(yaml_text(name)))
			return yaml_file_wrong(&reader->yaml, name, err,
					       "%s: \"%.60s\" is no name of a variable; use "
					       "letters, digits and _",
					       key->name, yaml_text(name));
		if (!yaml_text(text) || strchr(yaml_text(text), '\n'))
			return needs(reader, key, text, err);
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
		return needs(reader, key, node, err);
	*(unsigned *)member |= 1u << stage;
	return PRONY_OK;
}

static enum prony_status take_precision(struct reader *reader, const struct key *key,
					const yaml_node_t *node, void *member, struct error *err)
{
	enum precision precision;

	if (!precision_parse(yaml_text(node), &precision))
		return needs(reader, key, node, err);
	*(unsigned *)member |= 1u << precision;
	return PRONY_OK;
}

static enum prony_status take_device(struct reader *reader, const struct key *key,
				     const yaml_node_t *node, void *member, struct error *err)
{
	bool cuda = strcmp(yaml_text(node), "cuda") == 0;

	if (!cuda && strcmp(yaml_text(node), "cpu") != 0)
		return needs(reader, key, node, err);
	*(bool *)member |= cuda;
	return PRONY_OK;
}

static enum prony_status read_stages(struct reader *reader, const struct key *key,
				     const yaml_node_t *value, void *target, struct error *err)
{
	unsigned *bits = (void *)((char *)target + key->offset);

	*bits = 0;
	return each_word(reader, key, value, take_stage, bits, err);
}

static enum prony_status read_precisions(struct reader *reader, const struct key *key,
					 const yaml_node_t *value, void *target, struct error *err)
{
	unsigned *bits = (void *)((char *)target + key->offset);

	*bits = 0;
	return each_word(reader, key, value, take_precision, bits, err);
}

static enum prony_status read_devices(struct reader *reader, const struct key *key,
				      const yaml_node_t *value, void *target, struct error *err)
{
	bool *cuda = (void *)((char *)target + key->offset);

	*cuda = false;
	return each_word(reader, key, value, take_device, cuda, err);
}

static enum prony_status read_environment(struct reader *reader, const struct key *key,
					  const yaml_node_t *value, void *target, struct error *err)
{
	struct framework *row = target;
	const char *word = word_of(value);

	row->shared_environment = word && strcmp(word, "shared") == 0;
	if (!row->shared_environment && (!word || strcmp(word, "own") != 0))
		return needs(reader, key, value, err);
	return PRONY_OK;
}

static enum prony_status read_adapter(struct reader *reader, const struct key *key,
				      const yaml_node_t *value, void *target, struct error *err)
{
	struct framework *row = target;

	row->kind = FRAMEWORK_BUILTIN; /* until a library is named */
	return read_text(reader, key, value, target, err);
}

/* A name of python/adapters, or the path of a file; relative to the descriptor. */
static enum prony_status read_python(struct reader *reader, const struct key *key,
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

/* Kept for after the rest: what backends and options add to depends on nothing's order. */
static enum prony_status remember(struct reader *reader, const struct key *key,
				  const yaml_node_t *value, void *target, struct error *err)
{
	const yaml_node_t **place = strcmp(key->name, "worker") == 0	? &reader->worker
				    : strcmp(key->name, "options") == 0 ? &reader->options
									: &reader->backends;

	(void)target;
	(void)err;
	*place = value;
	return PRONY_OK;
}

static enum prony_status read_repairs(struct reader *reader, const struct key *key,
				      const yaml_node_t *value, void *target, struct error *err);

#define ROW(member) offsetof(struct framework, member)
#define OPTION(member) offsetof(struct framework_option, member)
#define REPAIR(member) offsetof(struct framework_repair, member)
#define ROOT (1u << PLACE_ROOT)
#define WORKER (1u << PLACE_WORKER)
#define BACKEND (1u << PLACE_BACKEND)

static const struct key keys[] = {
	{"name", ROOT, read_text, ROW(name), "a word", "mine", false},
	{"summary", ROOT | BACKEND, read_text, ROW(summary), "a line of text",
	 "my own executor in Rust", false},
	{"worker", ROOT, remember, 0, "", "", false},
	{"adapter", WORKER, read_adapter, ROW(adapter), "a name of adapters/", "native", false},
	{"library", WORKER, read_text, ROW(library_pattern),
	 "a pattern of the library's path in its environment", "lib/libmine.so*", false},
	{"python", WORKER, read_python, ROW(adapter),
	 "an adapter: a name of python/adapters/, or a file", "mine.py", false},
	{"module", WORKER | BACKEND, read_words, ROW(modules), "what Python must find",
	 "[keras, jax]", false},
	{"distribution", WORKER | BACKEND, read_text, ROW(distribution),
	 "the name of the package that has the version", "torch", false},
	{"versions", WORKER | BACKEND, read_words, ROW(pythons), "versions of Python with a lock",
	 "[\"3.12\", \"3.11\"]", false},
	{"lock", WORKER | BACKEND, read_text, ROW(lock), "the name of a lock without .txt",
	 "keras2", false},
	{"command", WORKER, read_command, 0, "a list of words, without a shell",
	 "[python3, \"{here}/mine.py\"]", false},
	{"environment", BACKEND, read_environment, 0, "own or shared", "shared", false},
	{"variables", ROOT | BACKEND, read_variables, ROW(variables), "names with texts",
	 "{MINE_THREADS: \"{threads}\"}", false},
	{"options", ROOT, remember, 0, "", "", false},
	{"backends", ROOT, remember, 0, "", "", false},
	{"stages", ROOT | BACKEND, read_stages, ROW(stages),
	 "forward, forward-backward and train, or some of them", "[forward, train]", false},
	{"precisions", ROOT | BACKEND, read_precisions, ROW(precisions),
	 "fp32, tf32, fp16 and bf16, or some of them", "[fp32]", false},
	{"devices", ROOT | BACKEND, read_devices, ROW(cuda), "cpu, cuda or both", "[cpu, cuda]",
	 false},
	{"repairs", ROOT | BACKEND, read_repairs, 0, "a list of steps, each with its reason",
	 "[{why: it is looked for there, symlink: lib/liba.so.1, to: liba.so.1.2}]", false},
	{"harness-only", ROOT, read_flag, ROW(harness_only), "true or false", "true", true},
	{"computes-nothing", ROOT, read_flag, ROW(computes_nothing), "true or false", "true", true},
	{"essential", ROOT, read_flag, ROW(essential), "true or false", "true", true},
	{"floor", ROOT, read_flag, ROW(floor), "true or false", "true", true},

	{"help", 1u << PLACE_OPTION, read_text, OPTION(help), "a line of text", "what it changes",
	 false},
	{"word", 1u << PLACE_OPTION, read_text, OPTION(word), "what the worker is told", "nhwc",
	 false},
	{"variables", 1u << PLACE_OPTION, read_variables, OPTION(variables), "names with texts",
	 "{MINE_LAYOUT: nhwc}", false},
	{"recomputes", 1u << PLACE_OPTION, read_flag, OPTION(recomputes), "true or false", "true",
	 false},

	{"why", 1u << PLACE_REPAIR, read_text, REPAIR(why), "the reason",
	 "it asks for a library that it never calls", false},
	{"symlink", 1u << PLACE_REPAIR, read_text, REPAIR(path), "a path in the environment",
	 "lib/liba.so.1", false},
	{"to", 1u << PLACE_REPAIR, read_text, REPAIR(text), "where the link leads to",
	 "liba.so.1.2", false},
	{"write-file", 1u << PLACE_REPAIR, read_text, REPAIR(path), "a path in the environment",
	 "etc/mine.cfg", false},
	{"text", 1u << PLACE_REPAIR, read_lines, REPAIR(text), "what the file holds", "quiet=1",
	 false},
	{"stub-library", 1u << PLACE_REPAIR, read_text, REPAIR(path), "a path in the environment",
	 "lib/libmpi.so.12", false},
	{"symbols", 1u << PLACE_REPAIR, read_words, REPAIR(symbols), "names of functions",
	 "[MPI_Init]", false},
};

static size_t known_keys(enum place place, const char *names[COUNT(keys)])
{
	size_t count = 0;

	for (size_t i = 0; i < COUNT(keys); i++)
		if (keys[i].places & 1u << place)
			names[count++] = keys[i].name;
	return count;
}

static const struct key *find_key(enum place place, const char *name)
{
	for (size_t i = 0; i < COUNT(keys); i++)
		if (keys[i].places & 1u << place && strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

static enum prony_status read_mapping(struct reader *reader, enum place place,
				      const yaml_node_t *node, void *target, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top && status == PRONY_OK; pair++) {
		const yaml_node_t *name = yaml_file_node(&reader->yaml, pair->key);
		const struct key *key = find_key(place, yaml_text(name));

		if (!key) {
			const char *names[COUNT(keys)];
			size_t count = known_keys(place, names);

			return yaml_file_unknown_key(&reader->yaml, name, place_names[place], names,
						     count, err);
		}
		if (key->of_tree && reader->of_user)
			return yaml_file_wrong(&reader->yaml, name, err,
					       "%s: is prony's own business; remove it", key->name);
		status = key->read(reader, key, yaml_file_node(&reader->yaml, pair->value), target,
				   err);
	}
	return status;
}

static enum prony_status need_mapping(struct reader *reader, const yaml_node_t *node,
				      const char *key, const char *example, struct error *err)
{
	if (node->type == YAML_MAPPING_NODE &&
	    node->data.mapping.pairs.start < node->data.mapping.pairs.top)
		return PRONY_OK;
	return yaml_file_wrong(&reader->yaml, node, err, "%s: needs a mapping and has %s; write %s",
			       key, yaml_file_describe(&reader->yaml, node), example);
}

/* Of which kind a step is, its own key tells; what belongs to another kind is a mistake. */
static enum prony_status check_repair(struct reader *reader, const yaml_node_t *node,
				      struct framework_repair *repair, struct error *err)
{
	static const struct {
		const char *key, *with;
	} kinds[] = {[REPAIR_SYMLINK] = {"symlink", "to"},
		     [REPAIR_WRITE_FILE] = {"write-file", "text"},
		     [REPAIR_STUB_LIBRARY] = {"stub-library", "symbols"}};
	size_t found = 0, with = 0;

	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		const char *name = yaml_text(yaml_file_node(&reader->yaml, pair->key));

		for (size_t i = 0; i < COUNT(kinds); i++) {
			if (strcmp(name, kinds[i].key) == 0 && ++found)
				repair->kind = (enum repair_kind)i;
			with += strcmp(name, kinds[i].with) == 0;
		}
	}
	bool complete = repair->kind == REPAIR_STUB_LIBRARY ? repair->symbols.count > 0
							    : repair->text != NULL;
	if (found != 1 || with != 1 || !complete)
		return yaml_file_wrong(
			&reader->yaml, node, err,
			"repairs: a step is symlink with to, write-file with text, or "
			"stub-library with symbols");
	if (!repair->why)
		return yaml_file_wrong(&reader->yaml, node, err,
				       "repairs: the step does not say why; add why: its reason");
	if (repair->path[0] == '/' || strstr(repair->path, ".."))
		return yaml_file_wrong(&reader->yaml, node, err,
				       "repairs: \"%.100s\" leads out of the environment; write a "
				       "path below it",
				       repair->path);
	return PRONY_OK;
}

/* Added to those that the row has already: a backend's to its framework's. */
static enum prony_status read_repairs(struct reader *reader, const struct key *key,
				      const yaml_node_t *value, void *target, struct error *err)
{
	struct framework *row = target;
	enum prony_status status = PRONY_OK;

	if (value->type != YAML_SEQUENCE_NODE)
		return needs(reader, key, value, err);
	const yaml_node_item_t *items = value->data.sequence.items.start;
	size_t more = (size_t)(value->data.sequence.items.top - items);
	if (more > WORDS_MAX)
		return yaml_file_wrong(&reader->yaml, value, err, "repairs: %zu steps; at most %zu",
				       more, WORDS_MAX);
	struct framework_repair *repairs =
		arena_array(reader->yaml.arena, row->repair_count + more + 1, sizeof(*repairs));
	if (row->repair_count)
		memcpy(repairs, row->repairs, row->repair_count * sizeof(*repairs));
	for (size_t i = 0; i < more && status == PRONY_OK; i++) {
		const yaml_node_t *node = yaml_file_node(&reader->yaml, items[i]);
		struct framework_repair *repair = &repairs[row->repair_count + i];

		status = need_mapping(reader, node, key->name, key->example, err);
		if (status == PRONY_OK)
			status = read_mapping(reader, PLACE_REPAIR, node, repair, err);
		if (status == PRONY_OK)
			status = check_repair(reader, node, repair, err);
	}
	row->repairs = repairs;
	row->repair_count += more;
	return status;
}

/* A name as it can stand in a framework's spelling: as a backend, or as an option. */
static enum prony_status check_name(struct reader *reader, const yaml_node_t *node, char sign,
				    struct error *err)
{
	const char *text = yaml_text(node);
	struct cell cell = {0};
	const char *spelling = arena_printf(reader->yaml.arena, "x%c%s", sign, text);

	if (!text[strcspn(text, "@:+")] && cell_parse_framework(spelling, &cell, NULL) == PRONY_OK)
		return PRONY_OK;
	return yaml_file_wrong(&reader->yaml, node, err,
			       "\"%.60s\" cannot stand in a framework's spelling; use letters in "
			       "lower case, digits, _ and -, at most %d",
			       text, CELL_WORD_BYTES - 3);
}

static enum prony_status read_options(struct reader *reader, struct framework *row,
				      struct error *err)
{
	const yaml_node_t *node = reader->options;
	const char *any = node ? word_of(node) : NULL;

	if (!node)
		return PRONY_OK;
	row->any_option = any && strcmp(any, "any") == 0;
	if (row->any_option)
		return PRONY_OK;
	enum prony_status status =
		need_mapping(reader, node, "options", "options: {nhwc: {help: its layout}}", err);
	if (status != PRONY_OK)
		return status;
	const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	row->options =
		arena_array(reader->yaml.arena, (size_t)(node->data.mapping.pairs.top - pair),
			    sizeof(*row->options));
	for (; pair < node->data.mapping.pairs.top && status == PRONY_OK; pair++) {
		const yaml_node_t *name = yaml_file_node(&reader->yaml, pair->key);
		const yaml_node_t *value = yaml_file_node(&reader->yaml, pair->value);
		struct framework_option *option = &row->options[row->option_count++];

		option->name = arena_strdup(reader->yaml.arena, yaml_text(name));
		status = check_name(reader, name, '+', err);
		if (status == PRONY_OK)
			status = need_mapping(reader, value, option->name,
					      "{help: what it changes}", err);
		if (status == PRONY_OK)
			status = read_mapping(reader, PLACE_OPTION, value, option, err);
		if (status == PRONY_OK && !option->help)
			status = yaml_file_wrong(&reader->yaml, name, err,
						 "%s: has no help; add help: what it changes",
						 option->name);
		/* Either it sets variables, or the worker is told of it. */
		if (!option->word)
			option->word = option->variables.count ? "" : option->name;
	}
	return status;
}

static enum prony_status missing(const struct reader *reader, const char *key, const char *example,
				 struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT, "%s:1: the key %s is missing; write %s: %s",
			 reader->yaml.path, key, key, example);
}

static enum prony_status read_worker(struct reader *reader, struct framework *row,
				     struct error *err)
{
	static const char *const ways[] = {"adapter", "python", "command"};
	const yaml_node_t *node = reader->worker;
	size_t found = 0;

	if (!node)
		return missing(reader, "worker", "{command: [./mine]}", err);
	enum prony_status status =
		need_mapping(reader, node, "worker", "worker: {command: [./mine]}", err);
	if (status == PRONY_OK)
		status = read_mapping(reader, PLACE_WORKER, node, row, err);
	if (status != PRONY_OK)
		return status;
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++)
		for (size_t i = 0; i < COUNT(ways); i++)
			found += strcmp(yaml_text(yaml_file_node(&reader->yaml, pair->key)),
					ways[i]) == 0;
	if (found != 1)
		return yaml_file_wrong(
			&reader->yaml, node, err,
			"worker: says %zu ways to start it; one of adapter, python and "
			"command is needed",
			found);
	if (row->library_pattern && row->kind != FRAMEWORK_BUILTIN)
		return yaml_file_wrong(&reader->yaml, node, err,
				       "worker: library goes with adapter only; remove it");
	if (row->library_pattern)
		row->kind = FRAMEWORK_LIBRARY;
	if ((row->modules.count || row->pythons.count) && row->kind != FRAMEWORK_PYTHON)
		return yaml_file_wrong(
			&reader->yaml, node, err,
			"worker: module and versions go with python only; remove them");
	if (row->kind == FRAMEWORK_PYTHON && !row->modules.count)
		return yaml_file_wrong(&reader->yaml, node, err,
				       "worker: has no module; add module: what Python must find");
	return PRONY_OK;
}

/* A framework is called like its file, so that two of a name are two files. */
static enum prony_status check_framework(struct reader *reader, const struct framework *row,
					 struct error *err)
{
	const char *slash = strrchr(reader->yaml.path, '/');
	const char *base = slash ? slash + 1 : reader->yaml.path;
	size_t length = row->name ? strlen(row->name) : 0;
	struct cell cell = {0};

	if (!row->name)
		return missing(reader, "name", "mine", err);
	if (cell_parse_framework(row->name, &cell, NULL) != PRONY_OK ||
	    strcmp(cell.name, row->name) != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: name: \"%.60s\" is no name of a framework; use letters in "
				 "lower case, digits, _ and -, at most %d",
				 reader->yaml.path, row->name, CELL_WORD_BYTES - 1);
	if (strncmp(base, row->name, length) != 0 || strcmp(base + length, SUFFIX) != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: name: is \"%s\", and a framework is called like its file; "
				 "rename the file to %s" SUFFIX ", or change the name",
				 reader->yaml.path, row->name, row->name);
	if (!row->summary)
		return missing(reader, "summary", "what it is", err);
	return PRONY_OK;
}

static enum prony_status read_backends(struct reader *reader, struct framework *rows, size_t *count,
				       struct error *err)
{
	const yaml_node_t *node = reader->backends;
	const struct framework whole = rows[0];

	*count = 1;
	if (!node)
		return PRONY_OK;
	enum prony_status status =
		need_mapping(reader, node, "backends", "backends: {jax: {module: jax}}", err);
	if (status != PRONY_OK)
		return status;
	*count = 0;
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top && status == PRONY_OK; pair++) {
		const yaml_node_t *name = yaml_file_node(&reader->yaml, pair->key);
		const yaml_node_t *value = yaml_file_node(&reader->yaml, pair->value);
		struct framework *row = &rows[*count];

		if (*count == DESCRIPTOR_BACKENDS_MAX)
			return yaml_file_wrong(&reader->yaml, name, err,
					       "backends: more than %d; shorten the list",
					       DESCRIPTOR_BACKENDS_MAX);
		*row = whole;
		row->backend = arena_strdup(reader->yaml.arena, yaml_text(name));
		status = check_name(reader, name, ':', err);
		if (status == PRONY_OK)
			status = need_mapping(reader, value, row->backend, "{environment: own}",
					      err);
		if (status == PRONY_OK)
			status = read_mapping(reader, PLACE_BACKEND, value, row, err);
		if (status == PRONY_OK && row->kind != FRAMEWORK_PYTHON &&
		    (row->modules.count || row->pythons.count))
			status = yaml_file_wrong(&reader->yaml, value, err,
						 "%s: module and versions go with python only; "
						 "remove them",
						 row->backend);
		*count += status == PRONY_OK;
	}
	return status;
}

enum prony_status descriptor_read(const char *path, bool of_user, struct arena *arena,
				  struct framework *rows, size_t *count, struct error *err)
{
	struct reader reader = {.yaml = {.path = path, .kind = &descriptor_kind, .arena = arena},
				.of_user = of_user};
	struct framework *row = &rows[0];
	enum prony_status status = yaml_file_load(&reader.yaml, err);

	if (status != PRONY_OK)
		return status;
	*row = (struct framework){.backend = "",
				  .file = arena_strdup(arena, path),
				  .of_user = of_user,
				  .distribution = "",
				  .stages = (1u << STAGE_LOAD) - 1,
				  .precisions = 1u << PRECISION_FP32};
	status = read_mapping(&reader, PLACE_ROOT,
			      yaml_document_get_root_node(&reader.yaml.document), row, err);
	if (status == PRONY_OK)
		status = check_framework(&reader, row, err);
	if (status == PRONY_OK)
		status = read_worker(&reader, row, err);
	if (status == PRONY_OK)
		status = read_options(&reader, row, err);
	if (status == PRONY_OK)
		status = read_backends(&reader, rows, count, err);
	yaml_file_release(&reader.yaml);
	return status;
}
