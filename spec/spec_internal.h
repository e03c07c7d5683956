/* Private to spec/: adds words to lists. */
#ifndef PRONY_SPEC_SPEC_INTERNAL_H
#define PRONY_SPEC_SPEC_INTERNAL_H

#include "spec/spec.h"

/* Copies the text into the spec's arena; `origin` is not copied. Older copies of *list keep their
 * first `count` words. */
void spec_list_add(struct spec *spec, struct spec_list *list, const char *text, const char *origin);

/* Adds the comma-separated words of `text`; numbers may be ranges. Numbers and switches are made
 * canonical. Errors name the origin. */
enum prony_status spec_list_add_words(struct spec *spec, enum axis_id axis, const char *text,
				      const char *origin, struct spec_list *list,
				      struct error *err);

#endif
