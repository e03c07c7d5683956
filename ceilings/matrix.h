/* Private to ceilings/: square matrix products with the library of the native executor. */
#ifndef PRONY_CEILINGS_MATRIX_H
#define PRONY_CEILINGS_MATRIX_H

#include "ceilings/ceilings.h"

/* Fills in the matrix products of `out`: the best over several sizes, in a layout chosen by the
 * library; or the reason why there is none. */
void matrix_measure(const struct ceilings_settings *settings, struct ceilings *out);

#endif
