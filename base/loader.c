#include "base/loader.h"

#include <dlfcn.h>
#include <string.h>

#define LOADER_NAMES (sizeof(((struct loader_symbol *)0)->names) / sizeof(const char *))

enum prony_status loader_open(const char *path, void **handle, struct error *err)
{
	dlerror(); /* forget an older error */
	void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!opened) {
		const char *text = dlerror();
		return error_set(err, PRONY_MISSING, "cannot load %s: %s", path,
				 text ? text : "unknown reason");
	}
	*handle = opened;
	return PRONY_OK;
}

static void *find(void *handle, const struct loader_symbol *symbol)
{
	for (size_t i = 0; i < LOADER_NAMES && symbol->names[i]; i++) {
		void *address = dlsym(handle, symbol->names[i]);
		if (address)
			return address;
	}
	return NULL;
}

enum prony_status loader_resolve(void *handle, const char *path,
				 const struct loader_symbol *symbols, size_t count,
				 struct error *err)
{
	/* Look first, store later: on failure no slot has changed. */
	for (size_t i = 0; i < count; i++) {
		if (!symbols[i].optional && !find(handle, &symbols[i]))
			return error_set(err, PRONY_MISSING,
					 "%s lacks the function %s (another version of the library "
					 "may have it)",
					 path, symbols[i].names[0]);
	}
	for (size_t i = 0; i < count; i++) {
		void *address = find(handle, &symbols[i]);
		/* The object behind the slot is a function pointer: copied, not aliased. */
		memcpy(symbols[i].slot, &address, sizeof(address));
	}
	return PRONY_OK;
}
