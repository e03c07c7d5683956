/* The registry as commands use it, and frameworks as users write them. */
#ifndef PRONY_CLI_FRAMEWORK_WORD_H
#define PRONY_CLI_FRAMEWORK_WORD_H

#include "frameworks/registry.h"

/* registry_load, with its notes said on standard error. */
enum prony_status cli_registry(struct registry *registry, struct error *err);

/*
 * Takes "NAME[@ENV][:BACKEND]" apart; *environment is in the registry's arena, "" without one.
 * PRONY_USAGE names the known frameworks or backends when this is none.
 */
enum prony_status framework_word(struct registry *registry, const char *word,
				 const struct framework **framework, const char **environment,
				 struct error *err);

#endif
