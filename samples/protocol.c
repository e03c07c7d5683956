#include "samples/protocol.h"

#include <string.h>

static const char *const verb_names[VERB_COUNT] = {
#define X(id, name) [VERB_##id] = name,
	PROTOCOL_VERBS(X)
#undef X
};

const char *protocol_verb_name(enum protocol_verb verb)
{
	return (unsigned)verb < VERB_COUNT ? verb_names[verb] : "?";
}

enum protocol_verb protocol_verb_parse(const char *name)
{
	for (int verb = 0; name && verb < VERB_COUNT; verb++)
		if (strcmp(verb_names[verb], name) == 0)
			return (enum protocol_verb)verb;
	return VERB_COUNT;
}

uint64_t ring_pages(uint64_t bytes)
{
	return (bytes + RING_ALIGNMENT - 1) / RING_ALIGNMENT * RING_ALIGNMENT;
}

struct ring_layout ring_layout_of(uint64_t input_bytes, uint64_t label_bytes)
{
	uint64_t labels = ring_pages(input_bytes);

	return (struct ring_layout){.labels = labels, .stride = labels + ring_pages(label_bytes)};
}

static const char *const profile_names[PROFILE_COUNT] = {
#define X(id, name) [PROFILE_##id] = name,
	PROTOCOL_PROFILES(X)
#undef X
};

const char *protocol_profile_name(enum protocol_profile profile)
{
	return (unsigned)profile < PROFILE_COUNT ? profile_names[profile] : "?";
}

enum protocol_profile protocol_profile_parse(const char *name)
{
	for (int profile = 0; name && profile < PROFILE_COUNT; profile++)
		if (strcmp(profile_names[profile], name) == 0)
			return (enum protocol_profile)profile;
	return PROFILE_COUNT;
}
