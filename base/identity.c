#include "base/identity.h"

#include "base/digest.h"

static const char *known_build = "";

void identity_set_build(const char *build)
{
	known_build = build;
}

const char *identity_build(void)
{
	return known_build;
}

const char *identity_sha256(void)
{
	static char hex[DIGEST_HEX_BYTES];
	struct error ignored = ERROR_INIT;

	/* The link leads to the file that was started, not to the one that has its name now. */
	if (!*hex && digest_file("/proc/self/exe", hex, &ignored) != PRONY_OK)
		*hex = '\0';
	return hex;
}
