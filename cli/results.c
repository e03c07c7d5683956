#include "cli/results.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "report/published.h"

static void say_damaged(const struct stored_run *run)
{
	if (run->damaged > 0)
		cli_say("prony: run %lld: the step times or sensor series of %zu process%s are "
			"damaged and left out; its other figures stand\n",
			(long long)run->meta.id, run->damaged, run->damaged == 1 ? "" : "es");
}

enum prony_status results_load_from(struct store *store, const char *which, unsigned parts,
				    struct stored_run *out, struct error *err)
{
	enum prony_status status = store_load_run(store, which, parts | STORE_FORGIVES, out, err);

	if (status == PRONY_OK)
		say_damaged(out);
	return status;
}

enum prony_status results_load_run(const char *store_file, const char *which, unsigned parts,
				   struct stored_run *out, struct error *err)
{
	struct store *store = NULL;
	enum prony_status status = store_open(store_file, true, &store, err);

	if (status == PRONY_OK)
		status = results_load_from(store, which, parts, out, err);
	store_close(store);
	return status;
}

enum prony_status results_open(const char *store_file, bool public, struct store **out,
			       struct error *err)
{
	struct store *store = NULL;
	enum prony_status status = store_open(store_file, true, &store, err);

	if (status == PRONY_OK && public)
		status = store_make_public(store, err);
	if (status == PRONY_OK)
		*out = store;
	else
		store_close(store);
	return status;
}

enum prony_status results_open_existing(const char *store, struct store **out, struct error *err)
{
	struct store *reader = NULL;
	/* Open read-only, so that no store is created. */
	enum prony_status status = store_open(store, true, &reader, err);
	store_close(reader);
	return status == PRONY_OK ? store_open(store, false, out, err) : status;
}

enum prony_status results_check_output(const char *path, const char *store, struct error *err)
{
	if (!path || !strcmp(path, "-"))
		return PRONY_OK;
	char *file = store_file(store);
	bool same = file_is_same(path, file);
	free(file);
	if (same)
		return error_set(err, PRONY_USAGE,
				 "cannot write %s: it is the store; use another file", path);
	return file_check_output(path, err);
}

/* Adds the published figures of the run's suite, if there are any. */
static void add_published(const struct summary *summary, struct strbuf *out)
{
	struct error err = ERROR_INIT;
	struct published published;

	if (published_load(NULL, &published, &err) != PRONY_OK) {
		cli_say("prony: published figures: %s\n", err.text);
		return;
	}
	published_render(&published, summary, cli_colour(), cli_width(), out);
	published_release(&published);
}

void results_print(const struct summary *summary)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	summary_render(summary, cli_colour(), cli_width(), &text);
	add_published(summary, &text);
	cli_page(strbuf_text(&text));
	strbuf_release(&text);
}

enum prony_status results_write(const struct strbuf *text, const char *path, struct error *err)
{
	if (path && strcmp(path, "-"))
		return file_write_atomic(path, strbuf_text(text), text->length, err);
	return cli_bytes(strbuf_text(text), text->length, err);
}

void results_say_doubled(const char *other, const struct store_imported *imported)
{
	if (imported->doubled > 0)
		cli_say("prony: %s: %lld of its cells left out, because another part has them, "
			"too: the machines did not plan the same cells\n",
			other, (long long)imported->doubled);
}
