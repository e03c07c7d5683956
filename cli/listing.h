/* Lists that several commands print. */
#ifndef PRONY_CLI_LISTING_H
#define PRONY_CLI_LISTING_H

#include <stddef.h>

#include "base/error.h"
#include "frameworks/registry.h"

/*
 * Takes "NAME[@ENV]" apart; *environment points into `word`, "" without one.
 * PRONY_USAGE names the known frameworks when this is none.
 */
enum prony_status framework_word(const char *word, const struct framework **framework,
				 const char **environment, struct error *err);

/* Prints the frameworks named, all known ones when count is 0; returns the exit code. */
int listing_frameworks(const char *const *words, size_t count, const char *format);

#endif
