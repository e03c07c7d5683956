#include "report/program.h"

#include <stdio.h>

#include "base/json.h"

enum { BUILD_SHOWN = 40 };

const char *program_part(const json_t *environment, const char *part)
{
	const json_t *should = json_object_get(environment, "should_match");
	const char *text = json_string_or(json_object_get(should, "program"), part, "");

	return *text ? text : NULL;
}

void program_text(const struct run_meta *meta, const json_t *environment, char out[PROGRAM_BYTES])
{
	const char *build = program_part(environment, "build");
	const char *hash = program_part(environment, "sha256");

	if (!hash)
		snprintf(out, PROGRAM_BYTES, "%s", meta->version);
	else
		snprintf(out, PROGRAM_BYTES, "%s (%.*s%ssha256 %.*s)", meta->version, BUILD_SHOWN,
			 build ? build : "", build ? ", " : "", PROGRAM_HASH_SHOWN, hash);
}

json_t *program_libraries(const json_t *environment)
{
	const json_t *should = json_object_get(environment, "should_match");
	json_t *libraries = json_object_get(json_object_get(should, "program"), "libraries");

	return json_is_object(libraries) ? libraries : NULL;
}

void program_remove(json_t *environment)
{
	json_object_del(json_object_get(environment, "should_match"), "program");
}
