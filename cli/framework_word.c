#include "cli/framework_word.h"

#include <string.h>

#include "base/strbuf.h"
#include "cli/cli.h"

#define NAMES_BYTES 512

enum prony_status cli_registry(struct registry *registry, struct error *err)
{
	enum prony_status status = registry_load(registry, err);

	for (size_t i = 0; status == PRONY_OK && i < registry->note_count; i++)
		cli_say("prony: %s\n", registry->notes[i]);
	return status;
}

/* Lists all names, or all backends of one. */
static void known_names(const struct registry *registry, const char *name, struct strbuf *out)
{
	for (size_t i = 0; i < registry->count; i++) {
		const struct framework *row = &registry->rows[i];
		bool again = i > 0 && strcmp(row->name, registry->rows[i - 1].name) == 0;

		if (name ? strcmp(row->name, name) == 0 : !row->harness_only && !again)
			strbuf_printf(out, "%s%s%s%s", out->length ? ", " : "", row->name,
				      name ? ":" : "", name ? row->backend : "");
	}
}

static enum prony_status unknown_name(const struct registry *registry, const char *name,
				      struct error *err)
{
	const char *nearest = framework_nearest(registry, name);
	struct strbuf names;

	strbuf_init(&names, NAMES_BYTES);
	known_names(registry, NULL, &names);
	error_set(err, PRONY_USAGE, "no framework '%s'%s%s%s; known: %s", name,
		  nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "",
		  strbuf_text(&names));
	strbuf_release(&names);
	return PRONY_USAGE;
}

static enum prony_status unknown_backend(const struct registry *registry, const char *word,
					 const struct framework *any, struct error *err)
{
	struct strbuf names;

	if (!*any->backend)
		return error_set(err, PRONY_USAGE, "'%s': %s has no backends to choose from", word,
				 any->name);
	strbuf_init(&names, NAMES_BYTES);
	known_names(registry, any->name, &names);
	error_set(err, PRONY_USAGE, "'%s': unknown backend; use %s", word, strbuf_text(&names));
	strbuf_release(&names);
	return PRONY_USAGE;
}

enum prony_status framework_word(struct registry *registry, const char *word,
				 const struct framework **framework, const char **environment,
				 struct error *err)
{
	size_t length = strcspn(word, "@:+");
	const char *name = arena_strndup(&registry->arena, word, length);
	const char *at = word[length] == '@' ? word + length + 1 : "";
	const char *colon = strchr(word, ':');

	if (strchr(word, '+'))
		return error_set(err, PRONY_USAGE,
				 "'%s': options belong to prony run; install NAME[@ENV][:BACKEND]",
				 word);
	const struct framework *any = framework_find(registry, name, NULL);
	if (!any)
		return unknown_name(registry, name, err);
	*environment = arena_strndup(&registry->arena, at, strcspn(at, ":"));
	if (word[length] == '@' && !**environment)
		return error_set(err, PRONY_USAGE, "'%s': the environment is missing after @",
				 word);
	*framework = framework_find(registry, name, colon ? colon + 1 : "");
	return *framework ? PRONY_OK : unknown_backend(registry, word, any, err);
}
