/* A colour for each framework of a page. */
#ifndef PRONY_REPORT_COLOURS_H
#define PRONY_REPORT_COLOURS_H

#include <stddef.h>

/* All colours have a contrast of at least 3 to 1 against white and against the dark background of
 * pages (WCAG 2.2, 1.4.11), and any two differ visibly. COLOURS_SPARE: the number of frameworks,
 * besides those with a fixed colour, that get distinct colours. */
enum { COLOURS_SPARE = 28 };

/* Assigns "#rrggbb" to each spelling; static texts. Frameworks of the tree have fixed colours, the
 * same on every page. The floor and the test adapters are grey because they are not contenders.
 * Other spellings (with options or an environment, or a user's own) get the spare colours in the
 * order of their names, so that a colour depends only on the other such spellings on the page.
 * Beyond COLOURS_SPARE of them, colours repeat. */
void colours_assign(const char *const *frameworks, size_t count, const char **out);

#endif
