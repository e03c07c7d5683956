/* Private to parity/: whether a loop is worth threads (base/parallel.h). */
#ifndef PRONY_PARITY_WORTH_INTERNAL_H
#define PRONY_PARITY_WORTH_INTERNAL_H

#include <stdint.h>

/* How many threads such a number of multiplications is worth: at most one per allowed core. */
int parallel_threads(int64_t macs);

#endif
