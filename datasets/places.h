/* Private to datasets/: the folders that may hold data sets. */
#ifndef PRONY_DATASETS_PLACES_H
#define PRONY_DATASETS_PLACES_H

#include <stddef.h>

enum { PLACES_MAX = 4 };

/* In the order of search; caller frees each. data_option (--data) may be NULL. */
size_t data_places(const char *data_option, char *places[PLACES_MAX]);

#endif
