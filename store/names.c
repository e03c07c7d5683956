/* Names of runs (unique) and tags. */
#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

enum { UID_DIGITS = 4 }; /* this many digits of a uid identify a run */

/* Allowed are letters, digits and the characters of file names, versions and branches. Colon and
 * tilde belong to the grammar of commands. */
static bool has_odd_character(const char *word)
{
	for (; *word; word++)
		if (!isalnum((unsigned char)*word) && !strchr("._+-", *word))
			return true;
	return false;
}

static enum prony_status check_word(const char *word, const char *what, struct error *err)
{
	if (!*word || strlen(word) >= RUN_WORD_BYTES || !isascii((unsigned char)*word) ||
	    has_odd_character(word))
		return error_set(err, PRONY_USAGE,
				 "'%s' cannot be a %s: use 1 to %d letters, digits and . _ + -",
				 word, what, RUN_WORD_BYTES - 1);
	return PRONY_OK;
}

enum prony_status run_name_check(const char *name, struct error *err)
{
	enum prony_status status = check_word(name, "name", err);

	if (status == PRONY_OK && !isalpha((unsigned char)*name))
		status = error_set(err, PRONY_USAGE,
				   "'%s' cannot be a name: it must begin with a letter", name);
	if (status == PRONY_OK && !strcmp(name, "latest"))
		status = error_set(err, PRONY_USAGE,
				   "'latest' cannot be a name: it always means the newest run");
	if (status == PRONY_OK && strlen(name) >= UID_DIGITS &&
	    !name[strspn(name, "0123456789abcdef")])
		status = error_set(err, PRONY_USAGE,
				   "'%s' cannot be a name: it could be the beginning of a uid; add "
				   "a character other than 0 to 9 and a to f",
				   name);
	return status;
}

enum prony_status run_tag_check(const char *tag, struct error *err)
{
	enum prony_status status = check_word(tag, "tag", err);

	if (status == PRONY_OK && !isalnum((unsigned char)*tag))
		status = error_set(err, PRONY_USAGE,
				   "'%s' cannot be a tag: it must begin with a letter or a digit",
				   tag);
	return status;
}

enum prony_status names_insert(struct store *store, int64_t run, const char *name,
			       struct error *err)
{
	int64_t other = -1;
	enum prony_status status = run_name_check(name, err);

	if (status == PRONY_OK)
		status = sql_int(store, "SELECT run FROM run_name WHERE name = ?1",
				 "look for a name", -1, &other, err, "t", name);
	if (status != PRONY_OK || other == run)
		return status;
	if (other >= 0)
		return error_set(err, PRONY_USAGE,
				 "run %lld already has the name '%s': choose another, or remove it "
				 "with 'prony tag %lld --name \"\"'",
				 (long long)other, name, (long long)other);
	return sql_change(store,
			  "INSERT INTO run_name (name, run) VALUES (?1, ?2)"
			  " ON CONFLICT (run) DO UPDATE SET name = excluded.name",
			  "name a run", NULL, err, "tn", name, run);
}

enum prony_status names_load(struct store *store, int64_t run, struct arena *arena,
			     struct run_meta *meta, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	struct strbuf tags;
	bool row = true;

	meta->tags = "";
	if (!store->has_names)
		return PRONY_OK;
	enum prony_status status = sql_prepare(store, "SELECT name FROM run_name WHERE run = ?1",
					       "read a run", &statement, err, "n", run);
	if (status == PRONY_OK)
		status = sql_step(store, statement, "read a run", &row, err);
	if (status == PRONY_OK && row)
		sql_copy(statement, 0, meta->name, sizeof meta->name);
	sqlite3_finalize(statement);
	statement = NULL;
	strbuf_init(&tags, 0);
	if (status == PRONY_OK)
		status = sql_prepare(store, "SELECT tag FROM run_tag WHERE run = ?1 ORDER BY tag",
				     "read a run", &statement, err, "n", run);
	while (status == PRONY_OK) {
		status = sql_step(store, statement, "read a run", &row, err);
		if (status != PRONY_OK || !row)
			break;
		strbuf_printf(&tags, "%s%s", tags.length ? "," : "", sql_text(statement, 0));
	}
	sqlite3_finalize(statement);
	meta->tags = arena_strdup(arena, strbuf_text(&tags));
	strbuf_release(&tags);
	return status;
}

enum prony_status store_run_name(struct store *store, int64_t run, const char *name, bool take,
				 struct error *err)
{
	static const char doing[] = "name a run";
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	if (take)
		status = sql_change(store, "DELETE FROM run_name WHERE name = ?1 AND run <> ?2",
				    doing, NULL, err, "tn", name, run);
	if (status == PRONY_OK)
		status = *name ? names_insert(store, run, name, err)
			       : sql_change(store, "DELETE FROM run_name WHERE run = ?1", doing,
					    NULL, err, "n", run);
	return sql_end(store, status, doing, err);
}

enum prony_status store_run_tag(struct store *store, int64_t run, const char *tag,
				struct error *err)
{
	static const char doing[] = "tag a run";
	enum prony_status status = run_tag_check(tag, err);

	if (status == PRONY_OK)
		status = sql_begin(store, doing, err);
	if (status != PRONY_OK)
		return status;
	status = sql_change(store,
			    "INSERT INTO run_tag (run, tag) VALUES (?1, ?2)"
			    " ON CONFLICT (run, tag) DO NOTHING",
			    doing, NULL, err, "nt", run, tag);
	return sql_end(store, status, doing, err);
}

enum prony_status store_run_untag(struct store *store, int64_t run, const char *tag,
				  struct error *err)
{
	static const char doing[] = "take a tag from a run";
	int changes = 0;
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	status = sql_change(store, "DELETE FROM run_tag WHERE run = ?1 AND tag = ?2", doing,
			    &changes, err, "nt", run, tag);
	if (status == PRONY_OK && changes == 0)
		status = error_set(err, PRONY_BAD_INPUT, "run %lld has no tag '%s'", (long long)run,
				   tag);
	return sql_end(store, status, doing, err);
}
