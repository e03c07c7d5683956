#include "adapters/openvino/openvino_names.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"

/* Topologies contain no weights: some kilobytes per node. */
#define TOPOLOGY_BYTES_MAX ((size_t)256 << 20)

/* A node with comma-separated names of its parts and of its constants' parts. */
struct row {
	const char *id, *name, *parts, *weights;
	bool constant;
};

struct ov_names {
	struct arena arena;
	struct row *rows;
	size_t count;
};

/* The export callback has no context argument, so pass it through a thread-local variable. */
static _Thread_local struct strbuf *topology;

static void pass_on(const char *in, size_t bytes, char *out, size_t *out_bytes)
{
	*out_bytes = bytes;
	if (!out)
		return;
	memcpy(out, in, bytes);
	if (topology)
		strbuf_add(topology, in, bytes);
}

const struct ov_encryption *ov_names_encryption(void)
{
	static const struct ov_encryption open = {.encrypt = pass_on, .decrypt = pass_on};

	return &open;
}

/* The value of an attribute of the tag at `tag`, with entities resolved; NULL if there is none. */
static char *value_of(struct arena *arena, const char *tag, const char *key)
{
	static const struct {
		const char *entity;
		char is;
	} known[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}};
	char wanted[32];
	const char *end = strchr(tag + 1, '<'); /* a quote inside a value is an entity */

	snprintf(wanted, sizeof(wanted), " %s=\"", key);
	const char *at = strstr(tag, wanted), *stop = at ? strchr(at + strlen(wanted), '"') : NULL;
	if (!stop || !end || stop > end)
		return NULL;
	at += strlen(wanted);
	char *text = arena_strndup(arena, at, (size_t)(stop - at)), *to = text;
	for (const char *from = text; *from; to++) {
		size_t skip = 1;

		*to = *from;
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (!strncmp(from, known[i].entity, strlen(known[i].entity))) {
				*to = known[i].is;
				skip = strlen(known[i].entity);
			}
		from += skip;
	}
	*to = '\0';
	return text;
}

static struct row *row_with(struct ov_names *names, const char *id)
{
	for (size_t i = 0; id && i < names->count; i++)
		if (!strcmp(names->rows[i].id, id))
			return &names->rows[i];
	return NULL;
}

/* A node with folded weights has them as constants, each with the names of its parts. */
static void add_weights(struct ov_names *names, const char *xml)
{
	static const char edge[] = "<edge ";

	for (const char *at = strstr(xml, edge); at; at = strstr(at + 1, edge)) {
		struct row *from = row_with(names, value_of(&names->arena, at, "from-layer"));
		struct row *to = row_with(names, value_of(&names->arena, at, "to-layer"));

		if (from && to && from->constant)
			to->weights =
				arena_printf(&names->arena, "%s, %s", to->weights, from->parts);
	}
}

struct ov_names *ov_names_parse(const char *xml)
{
	static const char layer[] = "<layer ", parts[] = "<attribute name=\"fused_names\"";
	struct ov_names *names = memory_alloc(sizeof(*names));
	size_t room = 0;

	*names = (struct ov_names){.count = 0};
	arena_init(&names->arena, 0);
	for (const char *at = strstr(xml, layer); at; at = strstr(at + 1, layer))
		room++;
	names->rows = arena_array(&names->arena, room + 1, sizeof(names->rows[0]));
	for (const char *at = strstr(xml, layer), *next; at; at = next) {
		const char *told = strstr(at, parts);

		next = strstr(at + 1, layer);
		if (!told || (next && told > next))
			continue;
		const char *type = value_of(&names->arena, at, "type");
		struct row row = {.id = value_of(&names->arena, at, "id"),
				  .name = value_of(&names->arena, at, "name"),
				  .parts = value_of(&names->arena, told, "value"),
				  .weights = "",
				  .constant = type && !strcmp(type, "Const")};
		if (row.id && row.name && row.parts)
			names->rows[names->count++] = row;
	}
	add_weights(names, xml);
	return names;
}

void ov_names_release(struct ov_names *names)
{
	if (!names)
		return;
	arena_release(&names->arena);
	free(names);
}

enum prony_status ov_names_ask(const struct ov_api *api, const struct ov_compiled *compiled,
			       struct ov_names **out, struct error *err)
{
	char path[64];
	struct strbuf text;
	int fd = memfd_create("prony-openvino", MFD_CLOEXEC); /* the weights are exported too */

	if (fd < 0)
		return error_set(err, PRONY_IO,
				 "cannot create a file in memory for OpenVINO's exported model");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	strbuf_init(&text, TOPOLOGY_BYTES_MAX);
	topology = &text;
	enum prony_status status =
		ov_check(api, api->ov_compiled_model_export_model(compiled, path),
			 "export the compiled model", err);
	topology = NULL;
	close(fd);
	if (status == PRONY_OK && text.length > 0 && !text.truncated)
		*out = ov_names_parse(strbuf_text(&text));
	else if (status == PRONY_OK)
		status = error_set(err, PRONY_UNSUPPORTED,
				   "OpenVINO exported an empty or too large model");
	strbuf_release(&text);
	return status;
}

/* Whether `text` contains `word` as a whole word. */
static bool holds(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); length > 0 && at; at = strstr(at + 1, word))
		if ((at == text || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[length]))
			return true;
	return false;
}

/* Whether a comma-separated list contains `name` or, with `goes_on`, a name that begins with it and
 * "_": nodes with several outputs have the names of all, "lstm_lstm.state". */
static bool lists(const char *parts, const char *name, bool goes_on)
{
	size_t length = strlen(name);

	for (const char *at = strstr(parts, name); length > 0 && at; at = strstr(at + 1, name)) {
		char next = at[length];

		if ((at == parts || at[-1] == ',' || at[-1] == ' ') &&
		    (next == '\0' || next == ',' || (goes_on && next == '_')))
			return true;
	}
	return false;
}

/* Whether a parameter of the node is in the list, by its own name or its ONNX name (an LSTM's gates
 * have another order there). */
static bool has_weights(const struct graph *graph, const struct node *node, const char *weights)
{
	char arranged[320];

	snprintf(arranged, sizeof(arranged), "%s.W", node->name);
	if (lists(weights, arranged, false))
		return true;
	for (int i = 0; i < node->input_count; i++)
		if (node->inputs[i] >= 0 &&
		    graph->values[node->inputs[i]].kind == VALUE_PARAMETER &&
		    lists(weights, graph->values[node->inputs[i]].name, false))
			return true;
	return false;
}

/* The first node of the graph among the parts, and the names of all; -1 when there is none. */
static int node_of(const struct row *row, const struct graph *graph, struct strbuf *all)
{
	int first = -1, other = -1;

	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (lists(row->parts, node->name, false)) {
			strbuf_printf(all, "%s%s", first >= 0 ? " + " : "", node->name);
			first = first >= 0 ? first : i;
		} else if (other < 0 && (lists(row->parts, node->name, true) ||
					 has_weights(graph, node, row->weights))) {
			other = i;
		}
	}
	if (first < 0 && other >= 0)
		strbuf_puts(all, graph->nodes[other].name);
	return first >= 0 ? first : other;
}

int ov_names_find(const struct ov_names *names, const struct graph *graph, const char *node,
		  struct arena *arena, const char **all)
{
	struct strbuf text;
	size_t longest = 0;
	int found = -1;

	strbuf_init(&text, 0);
	for (size_t i = 0; i < names->count; i++) {
		const struct row *row = &names->rows[i];
		bool same = !strcmp(row->name, node);

		/* A preparation step added by the plug-in contains the node's name:
		 * "input_f32_abcd_bf16_acdb_Multiply_7493". */
		if (!same && (strlen(row->name) <= longest || !holds(node, row->name)))
			continue;
		strbuf_clear(&text);
		int is = node_of(row, graph, &text);
		if (is >= 0) {
			found = is;
			longest = strlen(row->name);
			*all = same ? arena_strdup(arena, strbuf_text(&text)) : node;
		}
		if (same)
			break;
	}
	strbuf_release(&text);
	return found;
}
