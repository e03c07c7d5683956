#include "adapters/probe.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum prony_status probe_library_named(const struct session *s, const char *framework,
				      const char *file, struct error *err)
{
	char name[32];
	size_t i = 0;

	if (s->library)
		return PRONY_OK;
	for (; framework[i] && i + 1 < sizeof(name); i++)
		name[i] = (char)toupper((unsigned char)framework[i]);
	name[i] = '\0';
	return error_set(err, PRONY_MISSING,
			 "not installed: run 'prony framework install %s' or set PRONY_%s_LIBRARY "
			 "to the path of %s",
			 framework, name, file);
}

void probe_add_library(struct probe *found, const char *name, const char *version)
{
	int i = found->library_count++;

	snprintf(found->libraries[i].name, sizeof(found->libraries[i].name), "%s", name);
	snprintf(found->libraries[i].version, sizeof(found->libraries[i].version), "%.*s",
		 (int)strcspn(version, "\n"), version);
}

void probe_add_processor(struct probe *found, const char *how)
{
	char has[80] = "";
	size_t length = 0;

#if defined(__x86_64__)
	static const struct {
		const char *name;
		unsigned subleaf, word,
			bit; /* bit of cpuid leaf 7: register (eax, ebx, ecx, edx) and position */
	} known[] = {{"avx2", 0, 1, 5},		{"avx512f", 0, 1, 16},	  {"avx512bw", 0, 1, 30},
		     {"avx512_vnni", 0, 2, 11}, {"avx512_bf16", 1, 0, 5}, {"amx_bf16", 0, 3, 22}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		unsigned words[4];

		if (__get_cpuid_count(7, known[i].subleaf, &words[0], &words[1], &words[2],
				      &words[3]) &&
		    words[known[i].word] & 1u << known[i].bit)
			length += (size_t)snprintf(has + length, sizeof(has) - length, "%s%s",
						   length > 0 ? "," : "", known[i].name);
	}
#endif
	snprintf(found->instruction_set, sizeof(found->instruction_set),
		 "not said (%s); the processor has %s", how, length > 0 ? has : "no AVX2");
}

const char *probe_environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && value[0] != '\0' ? value : otherwise;
}
