/* Loads a shared library and resolves a typed list of its functions. */
#ifndef PRONY_BASE_LOADER_H
#define PRONY_BASE_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* One function to find. `slot` is the address of a function pointer; POSIX guarantees that it has
 * the size of a data pointer. Names are tried in order, for libraries that renamed a function. */
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

/* dlopen(path, RTLD_NOW | RTLD_LOCAL). Frameworks must not see each other's symbols, and deep
 * binding breaks libstdc++. The handle is never closed, because libraries with threads crash when
 * unloaded. PRONY_MISSING, with the loader's own message, when the library cannot be opened or
 * lacks a function. */
enum prony_status loader_open(const char *path, void **handle, struct error *err);
/* Opens a library with RTLD_GLOBAL, for a later library that uses its symbols without naming it. */
enum prony_status loader_open_global(const char *path, struct error *err);
enum prony_status loader_resolve(void *handle, const char *path,
				 const struct loader_symbol *symbols, size_t count,
				 struct error *err);

#endif
