/* Device memory that the host cannot touch, and pinned memory. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/fake_internal.h"

struct allocation {
	unsigned char *start, *end;	  /* what was asked for */
	unsigned char *mapped, *after;	  /* with the pages before and behind it, closed for all */
	unsigned char *pages, *pages_end; /* without them */
	unsigned char *twin;		  /* device: the same pages, open for copies */
	bool device, freed;
};

enum { PAGE = 4096, ALIGNMENT = 64, POISON = 0xff /* NaN in every float type */ };

static struct allocation *allocations;
static int allocation_count, allocation_room;
static bool opened;
static struct sigaction old_handler;

int fake_refuse(int status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("fake CUDA: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	return status;
}

void fake_abort(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("fake CUDA: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	abort();
}

static size_t room_of(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE + 2 * (size_t)PAGE;
}

/* Maps the pages, which are NaN; those of device memory twice. */
static bool map_pages(struct allocation *a)
{
	size_t bytes = (size_t)(a->pages_end - a->pages);
	int flags = a->device ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	int file = a->device ? memfd_create("device memory", MFD_CLOEXEC) : -1;
	int closed = a->device && !opened ? PROT_NONE : PROT_READ | PROT_WRITE;
	bool mapped = !a->device || (file >= 0 && ftruncate(file, (off_t)bytes) == 0);

	mapped = mapped && mmap(a->pages, bytes, closed, flags | MAP_FIXED, file, 0) != MAP_FAILED;
	a->twin = a->pages;
	if (mapped && a->device)
		a->twin = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
	if (file >= 0)
		close(file);
	if (!mapped || a->twin == MAP_FAILED)
		return false;
	memset(a->twin, POISON, bytes);
	return true;
}

static int allocate(size_t bytes, bool device, void **out)
{
	size_t mapped = room_of(bytes);
	unsigned char *at;
	struct allocation *added;

	if (bytes == 0)
		return fake_refuse(CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
	at = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (allocation_count == allocation_room) {
		allocation_room = allocation_room > 0 ? 2 * allocation_room : 64;
		allocations = realloc(allocations, (size_t)allocation_room * sizeof(*allocations));
	}
	added = &allocations[allocation_count];
	*added = (struct allocation){
		.mapped = at,
		.after = at + mapped,
		.pages = at + PAGE,
		.pages_end = at + mapped - PAGE,
		/* The end at the closed page, as far as the alignment lets it: a real driver's is
		 * 256 bytes, and callers rely on ALIGNMENT of them. */
		.start = at + PAGE + (mapped - 2 * PAGE - bytes) / ALIGNMENT * ALIGNMENT,
		.device = device,
	};
	added->end = added->start + bytes;
	if (!map_pages(added)) {
		munmap(at, mapped);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	allocation_count++;
	*out = added->start;
	return CUDA_SUCCESS;
}

/* Keeps the addresses, closed for ever, so that a later use is seen. */
static int release(void *address, bool device)
{
	for (int i = 0; i < allocation_count; i++) {
		struct allocation *a = &allocations[i];

		if (a->start != address || a->device != device || a->freed)
			continue;
		a->freed = true;
		if (device)
			munmap(a->twin, (size_t)(a->pages_end - a->pages));
		if (mmap(a->mapped, (size_t)(a->after - a->mapped), PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			fake_abort("cannot unmap memory");
		return CUDA_SUCCESS;
	}
	return fake_refuse(CUDA_ERROR_INVALID_VALUE, "%p is freed and is no start of %s memory",
			   address, device ? "device" : "pinned");
}

int fake_device_alloc(size_t bytes, void **out)
{
	return allocate(bytes, true, out);
}

int fake_device_free(void *address)
{
	return release(address, true);
}

int fake_host_alloc(size_t bytes, void **out)
{
	return allocate(bytes, false, out);
}

int fake_host_free(void *address)
{
	return release(address, false);
}

void *fake_copy_place(const void *address)
{
	const unsigned char *at = address;

	for (int i = 0; i < allocation_count; i++) {
		const struct allocation *a = &allocations[i];

		if (!a->device || at < a->pages || at >= a->pages_end)
			continue;
		if (a->freed)
			fake_abort("a copy of freed device memory");
		return a->twin + (at - a->pages);
	}
	return (void *)(uintptr_t)address;
}

static const struct allocation *live_at(const void *address, size_t bytes, bool device)
{
	const unsigned char *first = address;

	for (int i = 0; i < allocation_count; i++) {
		const struct allocation *a = &allocations[i];

		if (!a->freed && a->device == device && first >= a->start && first <= a->end &&
		    bytes <= (size_t)(a->end - first))
			return a;
	}
	return NULL;
}

bool fake_cuda_is_device(const void *address, size_t bytes)
{
	return live_at(address, bytes, true) != NULL;
}

bool fake_is_pinned(const void *address, size_t bytes)
{
	return live_at(address, bytes, false) != NULL;
}

size_t fake_device_used(void)
{
	size_t used = 0;

	for (int i = 0; i < allocation_count; i++)
		if (allocations[i].device && !allocations[i].freed)
			used += (size_t)(allocations[i].end - allocations[i].start);
	return used;
}

static void protect_all(int protection)
{
	for (int i = 0; i < allocation_count; i++) {
		const struct allocation *a = &allocations[i];

		if (a->device && !a->freed &&
		    mprotect(a->pages, (size_t)(a->pages_end - a->pages), protection) != 0)
			fake_abort("cannot change the protection of memory");
	}
}

void fake_memory_open(void)
{
	if (!opened)
		protect_all(PROT_READ | PROT_WRITE);
	opened = true;
}

void fake_memory_close(void)
{
	if (opened)
		protect_all(PROT_NONE);
	opened = false;
}

/* What a fault at this address means, as far as it is ours. */
static int explain(const unsigned char *at, char *text, size_t room)
{
	const char *kernel = fake_kernel_running();
	const char *who = !opened ? "the host" : kernel != NULL ? kernel : "a library";

	for (int i = 0; i < allocation_count; i++) {
		const struct allocation *a = &allocations[i];
		const char *kind = a->device ? "device" : "pinned";

		if (at < a->mapped || at >= a->after)
			continue;
		if (a->freed)
			return snprintf(text, room, "%s touched freed %s memory\n", who, kind);
		if (at < a->pages || at >= a->pages_end)
			return snprintf(text, room,
					"%s touched byte %td of %td bytes of %s memory\n", who,
					at - a->start, a->end - a->start, kind);
		return snprintf(text, room,
				"the host touched byte %td of %td bytes of device memory; copy "
				"it and wait for the stream\n",
				at - a->start, a->end - a->start);
	}
	return 0;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	char text[256] = "fake CUDA: ";
	size_t head = strlen(text);
	int more = explain(info->si_addr, text + head, sizeof(text) - head);

	(void)context;
	if (more > 0) {
		if (write(STDERR_FILENO, text, head + (size_t)more) < 0)
			_exit(1);
		abort();
	}
	sigaction(number, &old_handler, NULL); /* not ours: it happens again, to the old handler */
}

static void report_leaks(void)
{
	const char *path = getenv("FAKE_CUDA_LEAKS");
	FILE *file = path != NULL ? fopen(path, "a") : NULL;

	if (file == NULL)
		return;
	for (int i = 0; i < allocation_count; i++)
		if (!allocations[i].freed)
			fprintf(file, "%td bytes of %s memory\n",
				allocations[i].end - allocations[i].start,
				allocations[i].device ? "device" : "pinned");
	fclose(file);
}

int fake_memory_start(void)
{
	static bool started;
	struct sigaction handler = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (started)
		return CUDA_SUCCESS;
	started = true;
	sigaction(SIGSEGV, &handler, &old_handler);
	return atexit(report_leaks) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
