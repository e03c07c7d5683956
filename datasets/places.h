/* Private to datasets/: folders in which data sets are searched. */
#ifndef PRONY_DATASETS_PLACES_H
#define PRONY_DATASETS_PLACES_H

#include <stddef.h>

enum { PLACES_MAX = 4 };

/* In search order; the caller frees each. data_option (--data) may be NULL. */
size_t data_places(const char *data_option, char *places[PLACES_MAX]);

#endif
