#include "frameworks/descriptor.h"

#include <string.h>

#include "cell/cell.h"
#include "frameworks/descriptor_values.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SUFFIX ".yaml"

static const struct yaml_kind descriptor_kind = {
	.noun = "framework descriptor",
	.example = "name: mine",
	.page = "docs/descriptors.md",
	.remedy = "make it readable, or remove it",
};

/* Contexts of keys; each has its own known keys and its own struct. */
enum place { PLACE_ROOT, PLACE_WORKER, PLACE_BACKEND, PLACE_OPTION, PLACE_REPAIR };
static const char *const place_names[] = {
	[PLACE_ROOT] = NULL,	    [PLACE_WORKER] = "worker",	[PLACE_BACKEND] = "backends",
	[PLACE_OPTION] = "options", [PLACE_REPAIR] = "repairs",
};

/* Saved until the rest was read, so that backends and options can refer to it in any order. */
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
	{"adapter", WORKER, read_adapter, ROW(adapter), "the name of an adapter in adapters/",
	 "native", false},
	{"library", WORKER, read_text, ROW(library_pattern),
	 "a pattern for the path of the library in its environment", "lib/libmine.so*", false},
	{"python", WORKER, read_python, ROW(adapter),
	 "the name of an adapter in python/adapters/, or a file", "mine.py", false},
	{"module", WORKER | BACKEND, read_words, ROW(modules), "a list of Python modules",
	 "[keras, jax]", false},
	{"distribution", WORKER | BACKEND, read_text, ROW(distribution),
	 "the name of the package whose version is shown", "torch", false},
	{"versions", WORKER | BACKEND, read_words, ROW(pythons), "a list of Python versions",
	 "[\"3.12\", \"3.11\"]", false},
	{"lock", WORKER | BACKEND, read_text, ROW(lock), "the name of a lock file without .txt",
	 "keras2", false},
	{"command", WORKER, read_command, 0, "a list of words", "[python3, \"{here}/mine.py\"]",
	 false},
	{"environment", BACKEND, read_environment, 0, "own or shared", "shared", false},
	{"variables", ROOT | BACKEND, read_variables, ROW(variables), "a mapping of names to texts",
	 "{MINE_THREADS: \"{threads}\"}", false},
	{"options", ROOT, remember, 0, "", "", false},
	{"backends", ROOT, remember, 0, "", "", false},
	{"stages", ROOT | BACKEND, read_stages, ROW(stages),
	 "one or more of forward, forward-backward and train", "[forward, train]", false},
	{"lacks", ROOT | BACKEND, read_lacks, 0, "a list of stages and optimisers",
	 "[decode, adamw]", false},
	{"precisions", ROOT | BACKEND, read_precisions, ROW(precisions),
	 "one or more of fp32, tf32, fp16 and bf16", "[fp32]", false},
	{"cuda-precisions", ROOT | BACKEND, read_precisions, ROW(cuda_precisions),
	 "one or more of fp32, tf32, fp16 and bf16", "[tf32, fp16]", false},
	{"loops", ROOT | BACKEND, read_loops, ROW(loops), "step, fit or both", "[step, fit]",
	 false},
	{"devices", ROOT | BACKEND, read_devices, ROW(devices), "one or more of cpu, cuda and any",
	 "[cpu, cuda]", false},
	{"cuda-newest", ROOT | BACKEND, read_capability, ROW(cuda_newest),
	 "sm_ and two or three digits", "sm_86", false},
	{"native-input", ROOT | BACKEND, read_words, ROW(native_input),
	 "a list of data set formats", "[idx, cifar10, images]", false},
	{"native-input-by", ROOT, read_text, ROW(native_input_by),
	 "the framework whose loader is used instead", "tensorflow-python", false},
	{"fed-by-script", ROOT | BACKEND, read_flag, ROW(fed_by_script), "true or false", "true",
	 false},
	{"ranks", ROOT | BACKEND, read_text, ROW(ranks),
	 "what sums the gradients of several ranks on the CPU", "gloo", false},
	{"no-ranks", ROOT | BACKEND, read_text, ROW(no_ranks), "why it runs one rank only",
	 "it trains in one process", false},
	{"clip-norm", ROOT | BACKEND, read_flag, ROW(clips), "true or false", "true", false},
	{"reads-onnx", ROOT, read_flag, ROW(reads_onnx), "true or false", "true", false},
	{"repairs", ROOT | BACKEND, read_repairs, 0, "a list of steps, each with a reason",
	 "[{why: the library searches there, symlink: lib/liba.so.1, to: liba.so.1.2}]", false},
	{"harness-only", ROOT, read_flag, ROW(harness_only), "true or false", "true", true},
	{"computes-nothing", ROOT, read_flag, ROW(computes_nothing), "true or false", "true", true},
	{"floor", ROOT, read_flag, ROW(floor), "true or false", "true", true},

	{"help", 1u << PLACE_OPTION, read_text, OPTION(help), "a line of text", "what it changes",
	 false},
	{"word", 1u << PLACE_OPTION, read_text, OPTION(word), "the word that the worker receives",
	 "nhwc", false},
	{"variables", 1u << PLACE_OPTION, read_variables, OPTION(variables),
	 "a mapping of names to texts", "{MINE_LAYOUT: nhwc}", false},
	{"native-input", 1u << PLACE_OPTION, read_words, OPTION(native_input),
	 "a list of data set formats", "[lmdb]", false},
	{"recomputes", 1u << PLACE_OPTION, read_flag, OPTION(recomputes), "true or false", "true",
	 false},

	{"why", 1u << PLACE_REPAIR, read_text, REPAIR(why), "the reason",
	 "it needs a library that it never calls", false},
	{"symlink", 1u << PLACE_REPAIR, read_text, REPAIR(path), "a path in the environment",
	 "lib/liba.so.1", false},
	{"to", 1u << PLACE_REPAIR, read_text, REPAIR(text), "the target of the link", "liba.so.1.2",
	 false},
	{"write-file", 1u << PLACE_REPAIR, read_text, REPAIR(path), "a path in the environment",
	 "etc/mine.cfg", false},
	{"text", 1u << PLACE_REPAIR, read_lines, REPAIR(text), "the text of the file", "quiet=1",
	 false},
	{"stub-library", 1u << PLACE_REPAIR, read_text, REPAIR(path), "a path in the environment",
	 "lib/libmpi.so.12", false},
	{"symbols", 1u << PLACE_REPAIR, read_words, REPAIR(symbols), "a list of function names",
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
					       "%s is only for prony's own descriptors; remove it",
					       key->name);
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
	return yaml_file_wrong(&reader->yaml, node, err, "%s must be a mapping, not %s; write %s",
			       key, yaml_file_describe(&reader->yaml, node), example);
}

/* The key of a step determines its kind; keys of another kind are an error. */
static enum prony_status check_repair(struct reader *reader, const yaml_node_t *node,
				      struct framework_repair *repair, struct error *err)
{
	static const struct {
		const char *key, *with;
	} kinds[] = {[REPAIR_SYMLINK] = {"symlink", "to"},
		     [REPAIR_WRITE_FILE] = {"write-file", "text"},
		     [REPAIR_STUB_LIBRARY] = {"stub-library", "symbols"}};
	size_t found = 0, with[COUNT(kinds)] = {0}, others = 0;

	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		const char *name = yaml_text(yaml_file_node(&reader->yaml, pair->key));

		for (size_t i = 0; i < COUNT(kinds); i++) {
			if (strcmp(name, kinds[i].key) == 0 && ++found)
				repair->kind = (enum repair_kind)i;
			with[i] += strcmp(name, kinds[i].with) == 0;
		}
	}
	for (size_t i = 0; i < COUNT(kinds); i++)
		others += with[i];
	if (found != 1 || others != 1 || !with[repair->kind])
		return yaml_file_wrong(&reader->yaml, node, err,
				       "repairs: each step must have symlink and to, write-file "
				       "and text, or stub-library and symbols");
	if (!repair->why)
		return yaml_file_wrong(&reader->yaml, node, err,
				       "repairs: the step has no reason; add why: REASON");
	if (repair->path[0] == '/' || strstr(repair->path, ".."))
		return yaml_file_wrong(
			&reader->yaml, node, err,
			"repairs: \"%.100s\" is outside the environment; write a path inside it",
			repair->path);
	return PRONY_OK;
}

/* A backend's steps are added to those of its framework. */
static enum prony_status read_repairs(struct reader *reader, const struct key *key,
				      const yaml_node_t *value, void *target, struct error *err)
{
	struct framework *row = target;
	enum prony_status status = PRONY_OK;

	if (value->type != YAML_SEQUENCE_NODE)
		return reader_needs(reader, key, value, err);
	const yaml_node_item_t *items = value->data.sequence.items.start;
	size_t more = (size_t)(value->data.sequence.items.top - items);
	if (more > DESCRIPTOR_WORDS_MAX)
		return yaml_file_wrong(&reader->yaml, value, err,
				       "repairs has %zu steps; at most %zu are allowed", more,
				       DESCRIPTOR_WORDS_MAX);
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

/* Checks a name that is part of a framework's spelling: a backend or an option. */
static enum prony_status check_name(struct reader *reader, const yaml_node_t *node, char sign,
				    struct error *err)
{
	const char *text = yaml_text(node);
	struct cell cell = {0};
	const char *spelling = arena_printf(reader->yaml.arena, "x%c%s", sign, text);

	if (!text[strcspn(text, "@:+")] && cell_parse_framework(spelling, &cell, NULL) == PRONY_OK)
		return PRONY_OK;
	return yaml_file_wrong(
		&reader->yaml, node, err,
		"invalid name \"%.60s\"; use at most %d lower-case letters, digits, _ and -", text,
		CELL_WORD_BYTES - 3);
}

static enum prony_status read_options(struct reader *reader, struct framework *row,
				      struct error *err)
{
	const yaml_node_t *node = reader->options;
	const char *any = node ? reader_word(node) : NULL;

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
						 "option %s has no help; add help: what it changes",
						 option->name);
		/* An option sets variables, or the worker receives its word. */
		if (!option->word)
			option->word = option->variables.count || option->native_input.count
					       ? ""
					       : option->name;
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
			"worker has %zu of adapter, python and command; exactly one is needed",
			found);
	if (row->library_pattern && row->kind != FRAMEWORK_BUILTIN)
		return yaml_file_wrong(&reader->yaml, node, err,
				       "worker: library is only for adapter; remove it");
	if (row->library_pattern)
		row->kind = FRAMEWORK_LIBRARY;
	if ((row->modules.count || row->pythons.count) && row->kind != FRAMEWORK_PYTHON)
		return yaml_file_wrong(
			&reader->yaml, node, err,
			"worker: module and versions are only for python; remove them");
	if (row->kind == FRAMEWORK_PYTHON && !row->modules.count)
		return yaml_file_wrong(&reader->yaml, node, err,
				       "worker has no module; add module: NAME of a Python module");
	return PRONY_OK;
}

/* A framework is named after its file, so names are unique within a folder. */
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
				 "%s: invalid name \"%.60s\"; use at most %d lower-case letters, "
				 "digits, _ and -",
				 reader->yaml.path, row->name, CELL_WORD_BYTES - 1);
	if (strncmp(base, row->name, length) != 0 || strcmp(base + length, SUFFIX) != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: name is \"%s\", but must be the file name; rename the file "
				 "to %s" SUFFIX ", or change the name",
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
					       "backends has more than %d entries; remove some",
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
			status = yaml_file_wrong(
				&reader->yaml, value, err,
				"%s: module and versions are only for python; remove them",
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
				  .precisions = 1u << PRECISION_FP32,
				  .loops = 1u << LOOP_STEP};
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
