/* Private to ceilings/: square matrix products of the library that the executor native uses. */
#ifndef PRONY_CEILINGS_MATRIX_H
#define PRONY_CEILINGS_MATRIX_H

#include "ceilings/ceilings.h"

/* Fills the matrix products of `out`: the best of several sizes, in a layout of the library's
 * choice; or why there is none. */
void matrix_measure(const struct ceilings_settings *settings, struct ceilings *out);

#endif
