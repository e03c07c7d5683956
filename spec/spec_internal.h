/* Private to spec/: words on their way into a list. */
#ifndef PRONY_SPEC_SPEC_INTERNAL_H
#define PRONY_SPEC_SPEC_INTERNAL_H

#include "spec/spec.h"

/* Copies text into the spec's arena; origin is kept as it is. Older copies of *list stay as they
 * were in their first `count` words. */
void spec_list_add(struct spec *spec, struct spec_list *list, const char *text, const char *origin);

/*
 * Adds the words of `text`, which commas separate: of numbers also ranges; numbers and switches
 * made canonical. What is wrong is told with the origin.
 */
enum prony_status spec_list_add_words(struct spec *spec, enum axis_id axis, const char *text,
				      const char *origin, struct spec_list *list,
				      struct error *err);

#endif
