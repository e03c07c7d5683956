/*
 * An allocator that fails, for LD_PRELOAD: allocation number N of a process gives no memory, and
 * with FAIL_ALLOC_KEEP none after it does. tests/e2e/test_failed_allocations.py drives it.
 *
 * FAIL_ALLOC_AT=N, from 1; FAIL_ALLOC_IN=main, guard or worker: which process of prony it is meant
 * for, by its first argument; FAIL_ALLOC_LOG=FILE: made when an allocation failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The C library's own. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
EXPORT void *memalign(size_t alignment, size_t bytes);

static atomic_ullong calls;
static unsigned long long fail_at;
static bool ready, keep;

/* "guard" and "worker" are prony's own commands; any other makes a main process. */
static bool is_meant(const char *role)
{
	char line[512];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return false;
	line[length] = '\0';
	size_t program = strlen(line);
	const char *slash = strrchr(line, '/');
	const char *first = program + 1 < (size_t)length ? line + program + 1 : "";
	if (strcmp(slash ? slash + 1 : line, "prony") != 0)
		return false;
	if (strcmp(first, "guard") == 0 || strcmp(first, "worker") == 0)
		return strcmp(role, first) == 0;
	return strcmp(role, "main") == 0;
}

/* Before the first allocation, and so before there are threads. */
static void prepare(void)
{
	const char *at = getenv("FAIL_ALLOC_AT"), *role = getenv("FAIL_ALLOC_IN");

	ready = true;
	keep = getenv("FAIL_ALLOC_KEEP") != NULL;
	if (at && is_meant(role ? role : "main"))
		fail_at = strtoull(at, NULL, 10);
}

static bool fails(void)
{
	if (!ready)
		prepare();
	if (!fail_at)
		return false;
	unsigned long long call = atomic_fetch_add(&calls, 1) + 1;
	if (call < fail_at || (call > fail_at && !keep))
		return false;
	const char *log = call == fail_at ? getenv("FAIL_ALLOC_LOG") : NULL;
	int fd = log ? open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
	if (fd >= 0)
		close(fd);
	errno = ENOMEM;
	return true;
}

EXPORT void *malloc(size_t bytes)
{
	return fails() ? NULL : __libc_malloc(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __libc_calloc(count, bytes);
}

EXPORT void *realloc(void *memory, size_t bytes)
{
	return fails() ? NULL : __libc_realloc(memory, bytes);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
	return fails() ? NULL : __libc_memalign(alignment, bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t bytes)
{
	void *memory = memalign(alignment, bytes);

	if (!memory)
		return ENOMEM;
	*out = memory;
	return 0;
}
