/* Tests an installation: a worker loads it and answers hello. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "client/client.h"
#include "frameworks/install_internal.h"

#define HELLO_LIMIT_NS INT64_C(300000000000)
#define SAYS_BYTES_MAX 400
#define PRINTED_BYTES_MAX 400

/* The worker's last output line explains more than its exit code. */
static const char *last_printed(char *log, struct arena *arena)
{
	size_t length = log ? strlen(log) : 0;

	while (length > 0 && strchr(" \r\n", log[length - 1]))
		log[--length] = '\0';
	const char *newline = length ? strrchr(log, '\n') : NULL;
	return length ? arena_strndup(arena, newline ? newline + 1 : log, PRINTED_BYTES_MAX) : "";
}

/* "0.1.0 (onednn 3.2.0)" */
static const char *what_it_says(const json_t *reply, struct arena *arena)
{
	const char *name;
	const json_t *libraries = json_object_get(reply, "libraries");
	json_t *version;
	struct strbuf text;

	strbuf_init(&text, SAYS_BYTES_MAX);
	strbuf_puts(&text, json_string_or(reply, "version", "unknown"));
	const char *before = " (", *after = "";
	json_object_foreach((json_t *)libraries, name, version)
	{
		if (!json_is_string(version))
			continue;
		strbuf_printf(&text, "%s%s %s", before, name, json_string_value(version));
		before = ", ";
		after = ")";
	}
	strbuf_puts(&text, after);
	const char *kept = arena_strdup(arena, strbuf_text(&text));
	strbuf_release(&text);
	return kept;
}

static enum prony_status say_hello(struct install *install, struct client *client,
				   const char **says, struct error *err)
{
	json_t *reply = NULL;
	enum prony_status status =
		client_request(client, VERB_HELLO, NULL, 0, &reply, NULL, NULL, err);

	if (status == PRONY_OK)
		status = client_check_name(reply, install->framework->name, err);
	if (status == PRONY_OK)
		*says = what_it_says(reply, &install->arena);
	json_decref(reply);
	return status;
}

enum prony_status install_try(struct install *install, const char *entry, const char **says,
			      struct error *err)
{
	const char *path = *entry == '/'
				   ? entry
				   : arena_printf(&install->arena, "%s/%s", install->tree, entry);
	const struct framework_location place = {
		.framework = install->framework,
		.environment = install->environment,
		.origin = ORIGIN_INSTALLED,
		.library = install->framework->kind == FRAMEWORK_LIBRARY ? path : NULL,
		.interpreter = install->framework->kind == FRAMEWORK_PYTHON ? path : NULL,
		.version = install->lock.version,
		.folder = install->tree};
	char *self = path_self();
	struct target target;
	target_defaults(&target);
	snprintf(target.backend, sizeof target.backend, "%s", install->framework->backend);
	struct client_spec spec = {.self = self,
				   .target = &target,
				   .bundle = install->staging,
				   .no_shared_memory = true,
				   .timeout_ns = HELLO_LIMIT_NS,
				   .stop = install->sink ? install->sink->stop : NULL};
	struct client *client = NULL;
	struct client_end end = {0};
	enum prony_status status = framework_worker_command(&place, self, NULL, 1, &install->arena,
							    &spec.argv, &spec.environment, err);

	if (status == PRONY_OK)
		status = client_start(&spec, &client, err);
	if (status == PRONY_OK)
		status = say_hello(install, client, says, err);
	client_end(client, &end);
	if (status == PRONY_CRASHED || status == PRONY_PROTOCOL) {
		const char *printed = last_printed(end.log, &install->arena);

		if (*printed)
			error_set(err, status, "its worker: %s: %s",
				  arena_strdup(&install->arena, err ? err->text : ""), printed);
	}
	free(end.log);
	free(self);
	return status;
}
