/* What XLA made of a program: which types its products are computed in. */
#ifndef PRONY_ADAPTERS_XLA_COMPILED_H
#define PRONY_ADAPTERS_XLA_COMPILED_H

#include <stddef.h>

#include "adapters/xla/pjrt.h"
#include "bundle/recipe.h"

/*
 * Reads back what was compiled and counts its values and the results of its products by type, which
 * `text` tells ("as compiled: values 79 f32 25 bf16, products 4 f32"). PRONY_INVALID where bf16 was
 * asked for and there is none, or fp32 and there are narrower values. A plug-in that does not tell
 * is PRONY_OK, with its words as `text`.
 */
enum prony_status compiled_check(const struct pjrt *pjrt, struct pjrt_executable *executable,
				 enum precision asked, char *text, size_t text_bytes,
				 struct error *err);

#endif
