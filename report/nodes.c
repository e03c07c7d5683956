#include "report/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/history.h"
#include "report/names.h"
#include "report/replicates.h"
#include "report/summary.h"
#include "samples/disturbance.h"

const char *node_lasts_word(enum node_lasts lasts)
{
	static const char *const words[] = {
#define X(id, word) word,
		NODE_LASTS(X)
#undef X
	};

	return words[lasts];
}

/* A machine that ran a run, or some of its parts. */
struct source {
	const char *place, *environment;
};

/* Returns the machine of part i of a run, or for i = 0 that of a run without parts; false after the
 * last one. */
static bool source_of(const struct run_meta *meta, size_t i, struct source *out)
{
	if (meta->part_count == 0) {
		*out = (struct source){run_place(meta), meta->environment};
		return i == 0;
	}
	if (i >= meta->part_count)
		return false;
	const struct run_part *part = &meta->parts[i];
	*out = (struct source){*part->node ? part->node : part->host, part->environment};
	return true;
}

void nodes_select(const struct run_extent *runs, size_t count, const char *spec, bool *wanted)
{
	struct names places = {.count = 0};
	size_t capacity = 0, *seen = NULL;

	for (size_t i = 0; i < count; i++) {
		struct source source;
		wanted[i] = false;
		if (spec && strcmp(runs[i].meta.spec, spec) != 0)
			continue;
		for (size_t k = 0; source_of(&runs[i].meta, k, &source); k++) {
			size_t known = places.count;
			size_t at = names_add(&places, source.place, strlen(source.place));
			if (at == known) {
				seen = memory_grow(seen, at, &capacity, sizeof *seen);
				seen[at] = 0;
			}
			wanted[i] = seen[at]++ < NODE_ROUNDS || wanted[i];
		}
	}
	names_release(&places);
	free(seen);
}

/* What must match, as one text in the arena; "" without a record. */
static const char *machine_of(struct arena *arena, const char *environment)
{
	json_t *record = machine_parse(environment);
	char *text =
		json_dumps(json_object_get(record, "must_match"), JSON_COMPACT | JSON_SORT_KEYS);
	const char *kept = arena_strdup(arena, text ? text : "");

	free(text);
	json_decref(record);
	return kept;
}

static struct node *find_node(struct nodes *nodes, const char *place)
{
	for (size_t i = 0; i < nodes->count; i++)
		if (!strcmp(nodes->nodes[i].place, place))
			return &nodes->nodes[i];
	return NULL;
}

static int by_place(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return x->compared != y->compared ? (x->compared ? -1 : 1) : strverscmp(x->place, y->place);
}

static void add_source(struct nodes *nodes, const struct stored_run *run,
		       const struct source *source, size_t *capacity)
{
	const char *machine = machine_of(&nodes->arena, source->environment);
	struct node *node = find_node(nodes, source->place);

	if (!node) {
		nodes->nodes = arena_grow(&nodes->arena, nodes->nodes, nodes->count, capacity,
					  sizeof *nodes->nodes);
		nodes->nodes[nodes->count++] = (struct node){.place = source->place,
							     .runs = {NULL, run},
							     .machine = machine,
							     .environment = source->environment};
	} else if (!node->runs[ROUND_BEFORE] && node->runs[ROUND_LAST] != run &&
		   !strcmp(machine, node->machine)) {
		node->runs[ROUND_BEFORE] = run;
	}
}

/* Finds the nodes with their runs; one that is of another machine than the newest is no round. */
static void find_nodes(struct nodes *nodes, const struct stored_run *runs, size_t count)
{
	size_t capacity = 0;
	struct source source;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; source_of(&runs[i].meta, k, &source); k++)
			add_source(nodes, &runs[i], &source, &capacity);
}

/* Chooses the kind of machine that most nodes are; of equally frequent ones the newest run's. */
static void choose_machine(struct nodes *nodes)
{
	const char *most = "";
	size_t best = 0;

	for (size_t i = 0; i < nodes->count; i++) {
		size_t alike = 0;
		for (size_t k = 0; k < nodes->count; k++)
			alike += !strcmp(nodes->nodes[i].machine, nodes->nodes[k].machine);
		if (alike > best) {
			best = alike;
			most = nodes->nodes[i].machine;
		}
	}
	for (size_t i = 0; i < nodes->count; i++) {
		struct node *node = &nodes->nodes[i];
		node->compared = !strcmp(node->machine, most);
		if (node->compared && node->runs[ROUND_BEFORE])
			nodes->rounds = NODE_ROUNDS;
	}
	nodes->compared = best;
	qsort(nodes->nodes, nodes->count, sizeof *nodes->nodes, by_place);
}

static void fill_figure(struct arena *arena, const struct stored_run *run,
			const struct stored_cell *cell, struct node_figure *out)
{
	struct replicates found = replicates_of(arena, cell);
	bool suffice = replicates_suffice(&run->meta, cell, found.all);

	out->cell = cell;
	out->records = found.records;
	out->means = (struct node_means){found.means.means, suffice ? found.means.count : 0};
	estimate_compute(out->means.means, out->means.count, 0, false, &out->step);
}

static struct node_row *new_rows(struct nodes *nodes)
{
	struct node_row *rows = arena_array(&nodes->arena, nodes->compared + 1, sizeof *rows);

	for (size_t i = 0; i < nodes->compared; i++) {
		rows[i] = (struct node_row){.reasons = ""};
		for (int round = 0; round < NODE_ROUNDS; round++)
			contrast_from(NAN, NAN, NAN, &rows[i].rounds[round].contrast);
	}
	return rows;
}

/* Lays the cells of all runs side by side, and drops those of a single node. */
static void find_cells(struct nodes *nodes)
{
	struct names hashes = {.count = 0};
	struct node_cell *cells = NULL;
	size_t capacity = 0, kept = 0;

	for (size_t n = 0; n < nodes->compared; n++)
		for (int round = 0; round < NODE_ROUNDS; round++) {
			const struct stored_run *run = nodes->nodes[n].runs[round];
			for (size_t i = 0; run && i < run->cell_count; i++) {
				const struct stored_cell *cell = &run->cells[i];
				if (strcmp(cell_place(&run->meta, cell), nodes->nodes[n].place))
					continue;
				size_t known = hashes.count;
				size_t at = names_add(&hashes, cell->hash, strlen(cell->hash));
				if (at == known) {
					cells = arena_grow(&nodes->arena, cells, at, &capacity,
							   sizeof *cells);
					cells[at] = (struct node_cell){cell, new_rows(nodes)};
				}
				fill_figure(&nodes->arena, run, cell,
					    &cells[at].rows[n].rounds[round]);
			}
		}
	for (size_t i = 0; i < hashes.count; i++) {
		size_t here = 0;
		for (size_t n = 0; n < nodes->compared; n++)
			here += cells[i].rows[n].rounds[ROUND_LAST].cell ? 1 : 0;
		if (here > 1)
			cells[kept++] = cells[i];
	}
	nodes->cells = cells;
	nodes->cell_count = kept;
	names_release(&hashes);
}

/* Compares in one round: in each cell every node with the others, the verdicts over all. */
static void judge_round(struct nodes *nodes, int round)
{
	size_t all = nodes->cell_count * nodes->compared;
	struct node_means *means = memory_alloc((nodes->compared + 1) * sizeof *means);
	struct contrast *contrasts = memory_alloc((all + 1) * sizeof *contrasts);
	double *adjusted = memory_alloc((all + 1) * sizeof *adjusted);
	enum verdict *verdicts = memory_alloc((all + 1) * sizeof *verdicts);

	for (size_t i = 0; i < nodes->cell_count; i++) {
		for (size_t n = 0; n < nodes->compared; n++)
			means[n] = nodes->cells[i].rows[n].rounds[round].means;
		nodes_contrast(means, nodes->compared, &contrasts[i * nodes->compared]);
	}
	nodes_judge(contrasts, all, nodes->threshold, adjusted, verdicts);
	for (size_t i = 0; i < all; i++) {
		struct node_row *row = &nodes->cells[i / nodes->compared].rows[i % nodes->compared];
		row->rounds[round].contrast = contrasts[i];
		row->rounds[round].p_adjusted = adjusted[i];
		row->rounds[round].verdict = verdicts[i];
	}
	free(verdicts);
	free(adjusted);
	free(contrasts);
	free(means);
}

static bool is_slower(const struct node_figure *figure)
{
	return !isnan(figure->contrast.ratio) && figure->verdict == VERDICT_SLOWER;
}

static enum node_lasts lasts_of(const struct node_row *row)
{
	bool before = is_slower(&row->rounds[ROUND_BEFORE]);
	bool last = is_slower(&row->rounds[ROUND_LAST]);

	if (!before && !last)
		return LASTS_NOT;
	if (isnan(row->rounds[ROUND_BEFORE].contrast.ratio) ||
	    isnan(row->rounds[ROUND_LAST].contrast.ratio))
		return LASTS_UNKNOWN;
	return before && last ? LASTS_PERSISTENT : LASTS_ONCE;
}

/* The median over a node's processes, of the round in which it was SLOWER last. */
static double median_figure(const struct node_row *row, int round, size_t offset)
{
	const struct node_figure *figure = &row->rounds[round];
	double *values = memory_alloc((figure->means.count + 1) * sizeof *values), median;
	size_t count = 0;

	for (size_t i = 0; i < figure->means.count; i++) {
		double value;
		memcpy(&value, (const char *)figure->records[i] + offset, sizeof value);
		if (isfinite(value))
			values[count++] = value;
	}
	median = median_of(values, count);
	free(values);
	return median;
}

/* The median node's figure. */
static double usual_figure(const struct nodes *nodes, const struct node_cell *cell, int round,
			   size_t offset)
{
	double *values = memory_alloc((nodes->compared + 1) * sizeof *values), median;
	size_t count = 0;

	for (size_t n = 0; n < nodes->compared; n++) {
		double value = median_figure(&cell->rows[n], round, offset);
		if (isfinite(value))
			values[count++] = value;
	}
	median = median_of(values, count);
	free(values);
	return median;
}

static void add_clock(const char *what, double own, double usual, double threshold,
		      struct strbuf *out)
{
	if (own * (1 + threshold) < usual)
		strbuf_printf(out, "%s%s %.3g of %.3g GHz", out->length ? ", " : "", what,
			      own / 1e9, usual / 1e9);
}

/* What its sensors saw, and not those of the median node: "clock 2.1 of 2.6 GHz, heat 12 % of the
 * time". */
static const char *reasons_of(struct nodes *nodes, const struct node_cell *cell,
			      const struct node_row *row)
{
	int round = is_slower(&row->rounds[ROUND_LAST]) ? ROUND_LAST : ROUND_BEFORE;
	static const struct {
		const char *what;
		size_t offset;
	} clocks[] = {{"clock", offsetof(struct process_record, frequency_mean_hz)},
		      {"clock of its GPU", offsetof(struct process_record, gpu_clock_hz)}};
	struct strbuf text;

	strbuf_init(&text, 0);
	for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
		add_clock(clocks[i].what, median_figure(row, round, clocks[i].offset),
			  usual_figure(nodes, cell, round, clocks[i].offset), nodes->threshold,
			  &text);
	for (size_t i = 0; i < disturbance_cause_count; i++) {
		const struct disturbance_cause *cause = &disturbance_causes[i];
		double own = median_figure(row, round, cause->offset);
		if (!(own > cause->limit) ||
		    usual_figure(nodes, cell, round, cause->offset) > cause->limit)
			continue;
		strbuf_printf(&text, "%s%s ", text.length ? ", " : "", cause->word);
		strbuf_two_digits(&text, own * cause->scale);
		strbuf_printf(&text, " %s", cause->unit);
	}
	const char *kept = arena_strdup(&nodes->arena, strbuf_text(&text));
	strbuf_release(&text);
	return kept;
}

static void conclude_cell(struct nodes *nodes, struct node_cell *cell)
{
	size_t good = 0;

	for (size_t n = 0; n < nodes->compared; n++)
		good += cell->rows[n].rounds[ROUND_LAST].step.n > 0 ? 1 : 0;
	for (size_t n = 0; n < nodes->compared; n++) {
		struct node_row *row = &cell->rows[n];
		const struct node_figure *last = &row->rounds[ROUND_LAST];
		row->broken = good > 0 && last->cell && last->cell->status != CELL_OK &&
			      last->cell->status != CELL_PENDING;
		nodes->broken += row->broken;
		row->lasts = lasts_of(row);
		if (row->lasts != LASTS_NOT)
			row->reasons = reasons_of(nodes, cell, row);
		if (row->lasts > nodes->nodes[n].lasts)
			nodes->nodes[n].lasts = row->lasts;
	}
}

void nodes_init(struct nodes *nodes, const struct stored_run *runs, size_t count, double threshold)
{
	*nodes = (struct nodes){.threshold = threshold, .rounds = 1};
	arena_init(&nodes->arena, 0);
	find_nodes(nodes, runs, count);
	choose_machine(nodes);
	find_cells(nodes);
	for (int round = 0; round < NODE_ROUNDS; round++)
		judge_round(nodes, round);
	for (size_t i = 0; i < nodes->cell_count; i++)
		conclude_cell(nodes, &nodes->cells[i]);
	for (size_t n = 0; n < nodes->compared; n++) {
		nodes->slow += nodes->nodes[n].lasts == LASTS_PERSISTENT;
		nodes->undecided += nodes->nodes[n].lasts == LASTS_UNKNOWN;
	}
}

void nodes_release(struct nodes *nodes)
{
	if (nodes)
		arena_release(&nodes->arena);
}
