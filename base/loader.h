/* Loads a shared library and resolves a typed list of its functions. */
#ifndef PRONY_BASE_LOADER_H
#define PRONY_BASE_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * One function to find. `slot` is the address of a function pointer; POSIX guarantees that it has
 * the size of a data pointer. Names are tried in order, for libraries that renamed a function.
 */
struct loader_symbol {
	void **slot;
	const char *names[3];
	bool optional; /* the slot stays NULL when the library lacks it */
};

#define LOADER_SYMBOL(pointer, name)                                                               \
	{                                                                                          \
		.slot = (void **)&(pointer), .names = {(name) }                                    \
	}
#define LOADER_OPTIONAL(pointer, name)                                                             \
	{                                                                                          \
		.slot = (void **)&(pointer), .names = {(name)}, .optional = true                   \
	}

/*
 * dlopen(path, RTLD_NOW | RTLD_LOCAL): frameworks must not see each other's symbols, and deep
 * binding breaks libstdc++. The handle is never closed: libraries with threads do not survive it.
 * PRONY_MISSING with the loader's own text when it cannot be opened or lacks a function.
 */
enum prony_status loader_open(const char *path, void **handle, struct error *err);
/* The same for one whose symbols a later library takes without naming it. */
enum prony_status loader_open_global(const char *path, struct error *err);
enum prony_status loader_resolve(void *handle, const char *path,
				 const struct loader_symbol *symbols, size_t count,
				 struct error *err);

#endif
