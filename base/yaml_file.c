#include "base/yaml_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/nearest.h"
#include "base/strbuf.h"

/* Bounds for hostile files. libyaml compares each anchor with all others, which takes quadratic
 * time. */
#define BYTES_MAX ((size_t)64 * 1024)
#define KEYS_MAX 64
#define DEPTH_MAX 16
#define KNOWN_BYTES 600 /* bytes of the list of known keys in a message */

static int line_of(const yaml_mark_t *mark)
{
	return (int)mark->line + 1;
}

/* For invalid bytes libyaml reports an offset instead of a line. */
static int line_at(const char *text, size_t length, size_t offset)
{
	int line = 1;

	for (size_t i = 0; i < length && i < offset; i++)
		line += text[i] == '\n';
	return line;
}

static enum prony_status syntax_error(const struct yaml_file *file, const yaml_parser_t *parser,
				      const char *text, size_t length, struct error *err)
{
	const char *problem = parser->problem ? parser->problem : "not YAML";

	/* libyaml sets no error message when it had no memory for the document itself. */
	if (parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR)
		return error_set(err, PRONY_NOMEM, "%s: not enough memory to read it", file->path);
	if (parser->error == YAML_READER_ERROR)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s:%d: %s; a %s must be UTF-8 text without control characters",
				 file->path, line_at(text, length, parser->problem_offset), problem,
				 file->kind->noun);
	return error_set(err, PRONY_BAD_INPUT, "%s:%d: %s%s%s; see %s for the grammar", file->path,
			 line_of(&parser->problem_mark), parser->context ? parser->context : "",
			 parser->context ? ": " : "", problem, file->kind->page);
}

yaml_node_t *yaml_file_node(struct yaml_file *file, int index)
{
	return yaml_document_get_node(&file->document, index);
}

const char *yaml_text(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

bool yaml_is_nothing(const yaml_node_t *node)
{
	const char *text = yaml_text(node);

	return text && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

const char *yaml_file_describe(struct yaml_file *file, const yaml_node_t *node)
{
	const char *text = yaml_text(node);

	if (node->type == YAML_SEQUENCE_NODE)
		return "a list";
	if (!text)
		return "a mapping";
	if (yaml_is_nothing(node))
		return strcmp(text, "null") ? "nothing"
					    : "null (put it in quotes to use it as a word)";
	return arena_printf(file->arena, "\"%.60s\"%s", text,
			    node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? "" : " in quotes");
}

enum prony_status yaml_file_wrong(const struct yaml_file *file, const yaml_node_t *node,
				  struct error *err, const char *format, ...)
{
	char text[ERROR_TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return error_set(err, PRONY_BAD_INPUT, "%s:%d: %s", file->path, line_of(&node->start_mark),
			 text);
}

const char *yaml_file_origin(struct yaml_file *file, const yaml_node_t *node, const char *key)
{
	return arena_printf(file->arena, "%s:%d: %s", file->path, line_of(&node->start_mark), key);
}

enum prony_status yaml_file_unknown_key(const struct yaml_file *file, const yaml_node_t *key,
					const char *place, const char *const *names, size_t count,
					struct error *err)
{
	const char *text = yaml_text(key), *nearest = word_nearest(text, names, count);
	struct strbuf known;

	strbuf_init(&known, KNOWN_BYTES);
	for (size_t i = 0; i < count; i++)
		strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", names[i]);
	enum prony_status status = yaml_file_wrong(
		file, key, err, "unknown key \"%.60s\"%s%s%s%s%s Known: %s", text,
		place ? " in " : "", place ? place : "", nearest ? "; did you mean " : ".",
		nearest ? nearest : "", nearest ? "?" : "", strbuf_text(&known));
	strbuf_release(&known);
	return status;
}

/* The parser gives every node without a tag the default one of its kind. */
static bool has_default_tag(const yaml_node_t *node)
{
	const char *tag = (const char *)node->tag;
	const char *expected = node->type == YAML_SCALAR_NODE	  ? YAML_DEFAULT_SCALAR_TAG
			       : node->type == YAML_SEQUENCE_NODE ? YAML_DEFAULT_SEQUENCE_TAG
								  : YAML_DEFAULT_MAPPING_TAG;

	return tag && strcmp(tag, expected) == 0;
}

/* Libraries disagree on which of two equal keys counts, so refuse both. */
static enum prony_status check_keys(struct yaml_file *file, const yaml_node_t *mapping,
				    struct error *err)
{
	const yaml_node_pair_t *first = mapping->data.mapping.pairs.start;
	const yaml_node_pair_t *end = mapping->data.mapping.pairs.top;

	/* Comparing each key with all others takes quadratic time. */
	if (end - first > KEYS_MAX)
		return yaml_file_wrong(file, mapping, err,
				       "a mapping has %zu keys; in a %s, at most %d are allowed",
				       (size_t)(end - first), file->kind->noun, KEYS_MAX);
	for (const yaml_node_pair_t *pair = first; pair < end; pair++) {
		const yaml_node_t *key = yaml_file_node(file, pair->key);
		const char *text = yaml_text(key);

		if (!text)
			return yaml_file_wrong(file, key, err, "a key must be a word, not %s",
					       yaml_file_describe(file, key));
		for (const yaml_node_pair_t *other = first; other < pair; other++) {
			const yaml_node_t *before = yaml_file_node(file, other->key);

			if (strcmp(yaml_text(before), text) == 0)
				return yaml_file_wrong(
					file, key, err,
					"duplicate key %.60s (also in line %d); remove one", text,
					line_of(&before->start_mark));
		}
	}
	return PRONY_OK;
}

static enum prony_status check_root(struct yaml_file *file, struct error *err)
{
	const yaml_node_t *root = yaml_document_get_root_node(&file->document);

	if (!root)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s:1: the file is empty; a %s needs at least, for example, `%s`",
				 file->path, file->kind->noun, file->kind->example);
	if (root->type != YAML_MAPPING_NODE)
		return yaml_file_wrong(
			file, root, err,
			"a %s must be a mapping of keys to values, for example `%s`, not %s",
			file->kind->noun, file->kind->example, yaml_file_describe(file, root));
	return PRONY_OK;
}

static enum prony_status check_nodes(struct yaml_file *file, struct error *err)
{
	enum prony_status status = check_root(file, err);

	/* Iterate over the flat list of nodes, so that nesting and aliases cost nothing. */
	for (int i = 1; status == PRONY_OK && yaml_file_node(file, i); i++) {
		const yaml_node_t *node = yaml_file_node(file, i);

		if (!has_default_tag(node))
			status = yaml_file_wrong(
				file, node, err, "the tag %.60s is not allowed in a %s; remove it",
				node->tag ? (const char *)node->tag : "", file->kind->noun);
		else if (node->type == YAML_SCALAR_NODE &&
			 strlen(yaml_text(node)) != node->data.scalar.length)
			/* C code would see the word end at the NUL byte and miss the rest. */
			status = yaml_file_wrong(
				file, node, err,
				"\"%.60s\" is followed by a NUL character (\\0); remove it",
				yaml_text(node));
		else if (node->type == YAML_MAPPING_NODE)
			status = check_keys(file, node, err);
	}
	return status;
}

static void begin(yaml_parser_t *parser, const char *text, size_t length)
{
	yaml_parser_set_input_string(parser, (const unsigned char *)text, length);
	yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
}

/* libyaml's time grows with the square of the nesting depth, so stop before parsing deep files. */
static enum prony_status check_depth(const struct yaml_file *file, const char *text, size_t length,
				     struct error *err)
{
	enum prony_status status = PRONY_OK;
	yaml_parser_t parser;
	int depth = 0;
	bool ended = false;

	if (!yaml_parser_initialize(&parser))
		return error_set(err, PRONY_NOMEM, "not enough memory to read %s", file->path);
	begin(&parser, text, length);
	while (status == PRONY_OK && !ended) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event)) {
			status = syntax_error(file, &parser, text, length, err);
			break;
		}
		ended = event.type == YAML_STREAM_END_EVENT;
		if (event.type == YAML_SEQUENCE_START_EVENT ||
		    event.type == YAML_MAPPING_START_EVENT)
			depth++;
		if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT)
			depth--;
		if (depth > DEPTH_MAX)
			status = error_set(
				err, PRONY_BAD_INPUT,
				"%s:%d: nested more than %d levels deep; a %s does not need that",
				file->path, line_of(&event.start_mark), DEPTH_MAX,
				file->kind->noun);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return status;
}

static enum prony_status parse(struct yaml_file *file, yaml_parser_t *parser, const char *text,
			       size_t length, struct error *err)
{
	yaml_document_t second;

	begin(parser, text, length);
	if (!yaml_parser_load(parser, &file->document))
		return syntax_error(file, parser, text, length, err);

	enum prony_status status = check_nodes(file, err);
	if (status == PRONY_OK && !yaml_parser_load(parser, &second)) {
		status = syntax_error(file, parser, text, length, err);
	} else if (status == PRONY_OK) {
		if (yaml_document_get_root_node(&second))
			status = error_set(err, PRONY_BAD_INPUT,
					   "%s:%d: a second document begins here; a %s file must "
					   "have only one",
					   file->path, line_of(&second.start_mark),
					   file->kind->noun);
		yaml_document_delete(&second);
	}
	if (status != PRONY_OK)
		yaml_document_delete(&file->document);
	return status;
}

enum prony_status yaml_file_load(struct yaml_file *file, struct error *err)
{
	yaml_parser_t parser;
	char *text = NULL;
	size_t length = 0;
	struct error why = ERROR_INIT;
	enum prony_status status = file_read(file->path, BYTES_MAX, &text, &length, &why);

	if (status != PRONY_OK)
		return error_set(err, status, "%s; %s", why.text, file->kind->remedy);
	status = check_depth(file, text, length, err);
	if (status != PRONY_OK)
		goto out;
	if (yaml_parser_initialize(&parser)) {
		status = parse(file, &parser, text, length, err);
		yaml_parser_delete(&parser);
	} else {
		status = error_set(err, PRONY_NOMEM, "not enough memory to read %s", file->path);
	}
out:
	free(text);
	return status;
}

void yaml_file_release(struct yaml_file *file)
{
	yaml_document_delete(&file->document);
}
