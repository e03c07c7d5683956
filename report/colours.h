/* A colour for each framework of a page. */
#ifndef PRONY_REPORT_COLOURS_H
#define PRONY_REPORT_COLOURS_H

#include <stddef.h>

/* All have at least 3 to 1 against white and against the dark ground of pages (WCAG 2.2, 1.4.11),
 * and any two a distance of COLOURS_APART in OKLab (Ottosson, 2020), three times what is just seen.
 */
#define COLOURS_APART 0.06
/* So many frameworks beside the named ones have colours that differ. */
enum { COLOURS_SPARE = 28 };

/*
 * "#rrggbb" for each spelling; static texts. Frameworks of the tree have their own, the same on
 * every page; the floor and what tests the harness are grey, for they are no contenders. Any other
 * spelling (with options or an environment, or a user's own) gets the free spare colour that is
 * nearest to its framework's, in the order of their names: so it changes only with others of its
 * kind on the page. Beyond COLOURS_SPARE of them colours are used again.
 */
void colours_assign(const char *const *frameworks, size_t count, const char **out);

/* Distance of two colours in OKLab. */
double colours_distance(const char *a, const char *b);

#endif
