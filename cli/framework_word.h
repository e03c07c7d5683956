/* Loads the registry for commands and parses frameworks as users write them. */
#ifndef PRONY_CLI_FRAMEWORK_WORD_H
#define PRONY_CLI_FRAMEWORK_WORD_H

#include "frameworks/registry.h"

/* registry_load; prints its notes to standard error. */
enum prony_status cli_registry(struct registry *registry, struct error *err);

/* Splits "NAME[@ENV][:BACKEND]"; *environment is in the registry's arena, "" without one.
 * PRONY_USAGE lists the known frameworks or backends when it is unknown. */
enum prony_status framework_word(struct registry *registry, const char *word,
				 const struct framework **framework, const char **environment,
				 struct error *err);

#endif
