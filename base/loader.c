#include "base/loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOADER_NAMES (sizeof(((struct loader_symbol *)0)->names) / sizeof(const char *))

/* A truncated library is mapped all the same, and the loader then dies of SIGBUS. Returns true for
 * anything that is not a 64-bit ELF file: the loader reports that itself. */
static bool is_whole(const char *path)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	struct stat about;
	bool whole = true;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return true;
	if (pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) && fstat(fd, &about) == 0 &&
	    memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64)
		for (int i = 0; i < head.e_phnum && whole; i++) {
			off_t at = (off_t)head.e_phoff + (off_t)sizeof(segment) * i;

			whole = pread(fd, &segment, sizeof(segment), at) ==
					(ssize_t)sizeof(segment) &&
				segment.p_offset + segment.p_filesz <= (uint64_t)about.st_size;
		}
	close(fd);
	return whole;
}

static enum prony_status open_with(const char *path, int flags, void **handle, struct error *err)
{
	if (!is_whole(path))
		return error_set(err, PRONY_MISSING,
				 "cannot load %s: the file is truncated; install it again", path);
	dlerror(); /* forget an older error */
	void *opened = dlopen(path, flags);

	if (!opened) {
		const char *text = dlerror();
		return error_set(err, PRONY_MISSING, "cannot load %s: %s", path,
				 text ? text : "unknown reason");
	}
	*handle = opened;
	return PRONY_OK;
}

enum prony_status loader_open(const char *path, void **handle, struct error *err)
{
	return open_with(path, RTLD_NOW | RTLD_LOCAL, handle, err);
}

enum prony_status loader_open_global(const char *path, struct error *err)
{
	void *handle;

	return open_with(path, RTLD_NOW | RTLD_GLOBAL, &handle, err);
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
	/* Resolve all first, store afterwards: on failure no slot has changed. */
	for (size_t i = 0; i < count; i++) {
		if (!symbols[i].optional && !find(handle, &symbols[i]))
			return error_set(
				err, PRONY_MISSING,
				"%s has no function %s; another version of the library may have it",
				path, symbols[i].names[0]);
	}
	for (size_t i = 0; i < count; i++) {
		void *address = find(handle, &symbols[i]);
		/* The slot is a function pointer: copy its bytes instead of aliasing it. */
		memcpy(symbols[i].slot, &address, sizeof(address));
	}
	return PRONY_OK;
}
