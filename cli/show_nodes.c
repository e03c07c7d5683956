#include "cli/show_nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/compare_options.h"
#include "cli/results.h"
#include "report/nodes.h"

/* The runs of a store, newest first, and those of them that are compared. */
struct choice {
	struct run_extent *runs;
	bool *wanted;
	size_t count;
};

static enum prony_status mark_words(struct store *store, const char *const *words, size_t count,
				    struct choice *choice, struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (size_t k = 0; k < count && status == PRONY_OK; k++) {
		struct run_extent found;
		status = store_find_run(store, words[k], &found, err);
		for (size_t i = 0; i < choice->count && status == PRONY_OK; i++)
			choice->wanted[i] =
				choice->wanted[i] || choice->runs[i].meta.id == found.meta.id;
	}
	return status;
}

static enum prony_status mark(struct store *store, const char *const *words, size_t count,
			      struct choice *choice, struct error *err)
{
	struct run_extent like;
	if (count > 1)
		return mark_words(store, words, count, choice, err);
	enum prony_status status = store_find_run(store, count ? words[0] : "latest", &like, err);
	for (size_t i = 0; i < choice->count && status == PRONY_OK; i++)
		if (choice->runs[i].meta.id == like.meta.id)
			nodes_select(choice->runs, choice->count, choice->runs[i].meta.spec,
				     choice->wanted);
	return status;
}

enum prony_status show_nodes_runs(struct store *store, const char *const *words, size_t count,
				  struct arena *arena, const char ***uids, size_t *found,
				  struct error *err)
{
	struct choice choice = {.count = 0};
	enum prony_status status =
		store_list_runs(store, NULL, arena, &choice.runs, &choice.count, err);
	choice.wanted = arena_array(arena, choice.count + 1, sizeof *choice.wanted);
	if (status == PRONY_OK)
		status = mark(store, words, count, &choice, err);
	*uids = arena_array(arena, choice.count + 1, sizeof **uids);
	*found = 0;
	for (size_t i = 0; i < choice.count && status == PRONY_OK; i++)
		if (choice.wanted[i])
			(*uids)[(*found)++] = choice.runs[i].meta.uid;
	return status;
}

static int print(const struct nodes *nodes, const struct show_nodes_options *options,
		 struct error *err)
{
	struct strbuf text;
	if (nodes->compared < 2 || nodes->cell_count == 0) {
		error_set(
			err, PRONY_BAD_INPUT,
			"nothing to compare: %zu node%s of one kind, %zu cell%s that two of them "
			"ran; import the stores of other nodes, or name the runs: prony show --by "
			"node RUN RUN...",
			nodes->compared, nodes->compared == 1 ? "" : "s", nodes->cell_count,
			nodes->cell_count == 1 ? "" : "s");
		return 0;
	}
	strbuf_init(&text, 0);
	if (!strcmp(options->format, "json")) {
		json_t *json = nodes_to_json(nodes);
		cli_print_json(json);
		json_decref(json);
	} else if (!strcmp(options->format, "csv")) {
		nodes_csv(nodes, &text);
		results_write(&text, NULL, err);
	} else if (!strcmp(options->format, "md")) {
		nodes_markdown(nodes, options->full, &text);
		results_write(&text, NULL, err);
	} else {
		nodes_render(nodes, options->full, cli_colour(), cli_width(), &text);
		cli_page(strbuf_text(&text));
	}
	strbuf_release(&text);
	if (nodes->slow)
		return COMPARE_EXIT_SLOWER;
	if (nodes->broken)
		return COMPARE_EXIT_BROKEN;
	return nodes->undecided ? COMPARE_EXIT_UNDECIDED : COMPARE_EXIT_FINE;
}

int show_nodes(const struct show_nodes_options *options, const char *const *words, size_t count,
	       struct error *err)
{
	struct arena arena;
	struct stored_run *runs = NULL;
	struct store *store = NULL;
	const char **uids;
	size_t loaded = 0, wanted = 0;
	double threshold = NAN;
	int exit_code = 0;
	arena_init(&arena, 0);
	enum prony_status status = threshold_parse(options->threshold, &threshold, err);
	if (status == PRONY_OK)
		status = store_open(options->store, true, &store, err);
	if (status == PRONY_OK)
		status = show_nodes_runs(store, words, count, &arena, &uids, &wanted, err);
	runs = memory_alloc((wanted + 1) * sizeof *runs);
	while (status == PRONY_OK && loaded < wanted) {
		status = results_load_from(store, uids[loaded], 0, &runs[loaded], err);
		loaded += status == PRONY_OK;
	}
	store_close(store);
	if (status == PRONY_OK) {
		struct nodes nodes;
		nodes_init(&nodes, runs, loaded, isnan(threshold) ? NODES_THRESHOLD : threshold);
		exit_code = print(&nodes, options, err);
		nodes_release(&nodes);
	}
	for (size_t i = 0; i < loaded; i++)
		stored_run_release(&runs[i]);
	free(runs);
	arena_release(&arena);
	return exit_code;
}
