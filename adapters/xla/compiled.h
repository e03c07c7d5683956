/* Reads which types the products of a compiled program have. */
#ifndef PRONY_ADAPTERS_XLA_COMPILED_H
#define PRONY_ADAPTERS_XLA_COMPILED_H

#include <stddef.h>

#include "adapters/xla/pjrt.h"
#include "bundle/recipe.h"

/* Reads back the compiled program and counts its values and the results of its products by type;
 * `text` gets the counts ("as compiled: values 79 f32 25 bf16, products 4 f32"). PRONY_INVALID if
 * bf16 was requested and there is none, or fp32 was requested and there are narrower values. If the
 * plug-in does not give the program, returns PRONY_OK with its message in `text`. */
enum prony_status compiled_check(const struct pjrt *pjrt, struct pjrt_executable *executable,
				 enum precision asked, char *text, size_t text_bytes,
				 struct error *err);

#endif
