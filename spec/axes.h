/* Private to spec/: axes by key, words, and whom a message is for. */
#ifndef PRONY_SPEC_AXES_H
#define PRONY_SPEC_AXES_H

#include "spec/spec.h"

/* The list of an axis by its key in a suite; NULL for other keys. */
struct spec_list *spec_axis(struct spec *spec, const char *key);
struct spec_list *spec_rule_axis(struct spec_rule *rule, const char *key);

/* Copies text into the spec's arena; origin is kept as it is. Older copies of *list stay as they
 * were in their first `count` words. */
void spec_list_add(struct spec *spec, struct spec_list *list, const char *text, const char *origin);

#endif
