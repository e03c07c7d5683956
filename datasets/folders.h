/* Private to datasets/: folders in which data sets are searched. */
#ifndef PRONY_DATASETS_FOLDERS_H
#define PRONY_DATASETS_FOLDERS_H

#include <stddef.h>

#include "base/files.h"

enum { DATA_FOLDERS_MAX = PATH_DATA_HOMES_MAX + 3 };

/* In search order; the caller frees each. data_option (--data) may be NULL. */
size_t data_folders(const char *data_option, char *folders[DATA_FOLDERS_MAX]);

#endif
