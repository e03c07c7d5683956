/* Assigns what a framework ran to the layers of the network. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_internal.h"

static bool is_word(char c)
{
	return isalnum((unsigned char)c) != 0;
}

/* Whether `word` occurs in `text` as a whole word. */
static bool holds_word(const char *text, const char *word)
{
	size_t length = strlen(word);
	if (length == 0)
		return false;
	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || !is_word(at[-1])) && !is_word(at[length]))
			return true;
	return false;
}

/* Frameworks separate names with different characters, so all characters other than letters and
 * digits count as the same one. */
static void plain_name(const char *name, char *out, size_t bytes)
{
	size_t i = 0;
	for (; name[i] && i + 1 < bytes; i++)
		out[i] = is_word(name[i]) ? name[i] : '_';
	out[i] = '\0';
}

int profile_find_node(const struct graph *graph, const char *name)
{
	char text[512], word[512];
	size_t longest = 0;
	int found = -1;
	plain_name(name, text, sizeof text);
	for (int i = 0; i < graph->forward_count; i++) {
		plain_name(graph->nodes[i].name, word, sizeof word);
		size_t length = strlen(word);
		if (length > longest && holds_word(text, word)) {
			longest = length;
			found = i;
		}
	}
	return found;
}

/* The layer of each name seen, so that each is looked up once. */
struct known {
	const char *name;
	int node;
};

static int compare_known(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->name, ((const struct known *)b)->name);
}

/* The index of a node by name; -1 if there is none. */
static int node_named(const struct graph *graph, const char *name)
{
	for (int i = 0; i < graph->forward_count; i++)
		if (!strcmp(graph->nodes[i].name, name))
			return i;
	return -1;
}

static const char *span_key(const struct profile_span *span)
{
	return span->layer ? span->layer : span->name;
}

/* The distinct names of the spans, sorted, each with its node. */
static struct known *know_names(struct profile *profile, const struct graph *graph, size_t *count)
{
	struct known *known = arena_array(&profile->arena, profile->span_count + 1, sizeof *known);
	size_t used = 0;
	for (size_t i = 0; i < profile->span_count; i++)
		known[i].name = span_key(&profile->spans[i]);
	qsort(known, profile->span_count, sizeof *known, compare_known);
	for (size_t i = 0; i < profile->span_count; i++) {
		if (used > 0 && !strcmp(known[used - 1].name, known[i].name))
			continue;
		known[used] = known[i];
		known[used].node = -1;
		if (graph)
			known[used].node = node_named(graph, known[i].name);
		if (graph && known[used].node < 0)
			known[used].node = profile_find_node(graph, known[i].name);
		used++;
	}
	*count = used;
	return known;
}

static void add_span(struct profile_layer *layer, const struct profile_span *span)
{
	layer->calls++;
	if (!strcmp(span->pass, "backward"))
		layer->backward_ns += (double)span->ns;
	else if (!strcmp(span->pass, "forward"))
		layer->forward_ns += (double)span->ns;
	else
		layer->other_ns += (double)span->ns;
}

double profile_layer_ns(const struct profile_layer *layer)
{
	return layer->forward_ns + layer->backward_ns + layer->other_ns;
}

static int compare_layers(const void *a, const void *b)
{
	const struct profile_layer *left = a, *right = b;
	double x = profile_layer_ns(left), y = profile_layer_ns(right);
	return x != y ? (x < y) - (x > y) : strcmp(left->name, right->name);
}

/* The names seen and their rows: one per node, one per other name, one for the update. */
struct naming {
	const struct graph *graph; /* NULL for a model file run unchanged */
	struct known *known;
	size_t count, nodes;
	struct profile_layer **rows; /* nodes + count + 1 */
};

static struct profile_layer *layer_of(struct profile *profile, const struct profile_span *span,
				      const struct naming *naming)
{
	const struct graph *graph = naming->graph;
	struct profile_layer **rows = naming->rows;
	struct known wanted = {.name = span_key(span)};
	const struct known *found =
		bsearch(&wanted, naming->known, naming->count, sizeof wanted, compare_known);
	bool update = !strcmp(span->pass, "update");
	size_t at = update	       ? naming->nodes + naming->count
		    : found->node >= 0 ? (size_t)found->node
				       : naming->nodes + (size_t)(found - naming->known);
	if (!rows[at]) {
		rows[at] = &profile->layers[profile->layer_count++];
		*rows[at] = (struct profile_layer){.name = update ? "(update)" : span->name,
						   .kind = span->kind,
						   .named = update || found->node >= 0 || !graph};
		if (update || found->node < 0)
			return rows[at];
		/* Copy the name: the graph may be released before the profile. */
		rows[at]->name = arena_strdup(&profile->arena, graph->nodes[found->node].name);
		rows[at]->kind = operator_name(graph->nodes[found->node].op);
	}
	return rows[at];
}

static int compare_spans(const void *a, const void *b)
{
	const struct profile_span *left = *(const struct profile_span *const *)a,
				  *right = *(const struct profile_span *const *)b;
	return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

/* The time in which at least one span ran, or one of a GPU; without begin times, the sum of the
 * spans. */
static double covered(struct profile *profile, bool device)
{
	const struct profile_span **order =
		arena_array(&profile->arena, profile->span_count + 1, sizeof(*order));
	double ns = 0;
	int64_t end = INT64_MIN;
	size_t placed = 0;
	for (size_t i = 0; i < profile->span_count; i++) {
		if (device && profile->spans[i].device == PROFILE_DEVICE_NONE)
			continue;
		if (profile->spans[i].begin_ns == PROFILE_NO_TIME)
			ns += (double)profile->spans[i].ns;
		else
			order[placed++] = &profile->spans[i];
	}
	qsort(order, placed, sizeof(*order), compare_spans);
	for (size_t i = 0; i < placed; i++) {
		int64_t begin = order[i]->begin_ns, stop = begin + order[i]->ns;
		if (begin < end)
			begin = end;
		if (stop > begin)
			ns += (double)(stop - begin);
		if (stop > end)
			end = stop;
	}
	return ns;
}

const char *profile_device_word(enum profile_device device)
{
	static const char *const words[] = {
#define X(id, word) word,
		PROFILE_DEVICES(X)
#undef X
	};
	return words[device];
}

static void sum_devices(struct profile *profile)
{
	memset(profile->device, 0, sizeof profile->device);
	for (size_t i = 0; i < profile->span_count; i++) {
		const struct profile_span *span = &profile->spans[i];
		struct profile_device_sum *sum = &profile->device[span->device];
		sum->calls++;
		sum->bytes += span->bytes;
		sum->ns += (double)span->ns;
	}
	profile->has_device =
		(int64_t)profile->span_count > profile->device[PROFILE_DEVICE_NONE].calls;
	profile->device_ns = covered(profile, true) / (double)profile->layer_steps;
}

void profile_sum_layers(struct profile *profile, const struct graph *graph)
{
	struct naming naming = {.graph = graph, .nodes = graph ? (size_t)graph->forward_count : 0};
	double steps = (double)profile->layer_steps, all = 0, named = 0;
	naming.known = know_names(profile, graph, &naming.count);
	size_t room = naming.nodes + naming.count + 1;
	naming.rows = arena_array(&profile->arena, room, sizeof(*naming.rows));
	profile->layers = arena_array(&profile->arena, room, sizeof *profile->layers);
	profile->layer_count = 0;
	for (size_t i = 0; i < profile->span_count; i++) {
		struct profile_layer *layer = layer_of(profile, &profile->spans[i], &naming);
		add_span(layer, &profile->spans[i]);
		if (layer->named && !layer->fused && strstr(profile->spans[i].name, PROFILE_FUSED))
			layer->fused = profile->spans[i].name;
		profile->spans[i].layer = layer->named ? layer->name : NULL;
	}
	for (size_t i = 0; i < profile->layer_count; i++) {
		all += profile_layer_ns(&profile->layers[i]);
		named += profile->layers[i].named ? profile_layer_ns(&profile->layers[i]) : 0;
	}
	qsort(profile->layers, profile->layer_count, sizeof *profile->layers, compare_layers);
	profile->layers_ns = all / steps;
	profile->named_ns = named / steps;
	profile->covered_ns = covered(profile, false) / steps;
	sum_devices(profile);
	profile->has_layers = true;
}
