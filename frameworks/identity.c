#include "frameworks/identity.h"

/* Adds the descriptor file's bytes and what was found on the machine. */
static void add_description(const struct framework_location *place, struct digest *digest)
{
	const struct framework *framework = place->framework;
	const char *words[] = {framework->name, framework->backend, place->environment,
			       place->version,	place->interpreter, place->library};
	char descriptor[DIGEST_HEX_BYTES] = "";

	digest_file(framework->file, descriptor, NULL);
	digest_add_text(digest, descriptor);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		digest_add_text(digest, words[i]);
}

bool framework_identity(const struct framework_location *place, struct digest *digest)
{
	add_description(place, digest);
	if (place->framework->of_user || place->framework->kind == FRAMEWORK_COMMAND)
		return false;
	if (place->origin == ORIGIN_BUILTIN)
		return true;
	if (place->origin != ORIGIN_INSTALLED)
		return false;
	digest_add_tree(digest, place->folder);
	digest_add_tree(digest, place->interpreter);
	digest_add_tree(digest, place->library);
	return true;
}
