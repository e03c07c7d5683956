#include "adapters/native/cuda/cupti.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cuda/packages.h"
#include "base/arena.h"
#include "base/loader.h"
#include "base/memory.h"

enum {
	/* CUptiResult, CUpti_ActivityKind */
	CUPTI_SUCCESS = 0,
	CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_CONCURRENT_KERNEL = 10,
	FLUSH_FORCED = 1,
	BUFFER_BYTES = 1 << 20, /* a few thousand records */
	BUFFER_ALIGN = 8,
	ANCHOR_TRIES = 5
};

/* The common beginnings of CUpti_ActivityKernel4 to 10, Memcpy4 to 6 and Memset3 to 4. */
struct activity_kernel {
	uint32_t kind, pad_12[3];
	uint64_t start, end;
	uint32_t
		pad_32[18]; /* device, context, stream, grid, block, memory, correlation, grid id */
	const char *name;
};
struct activity_memory {
	uint32_t kind;
	uint8_t copy_kind, pad_5[3]; /* of a memset: its value */
	uint64_t bytes, start, end;
};
_Static_assert(offsetof(struct activity_kernel, start) == 16 &&
		       offsetof(struct activity_kernel, name) == 104,
	       "CUPTI's layout of kernels");
_Static_assert(offsetof(struct activity_memory, bytes) == 8 &&
		       offsetof(struct activity_memory, start) == 16,
	       "CUPTI's layout of copies");

typedef void request_function(uint8_t **buffer, size_t *bytes, size_t *most);
typedef void complete_function(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			       size_t valid);

#define FUNCTIONS(X)                                                                               \
	X(ActivityRegisterCallbacks, (request_function * request, complete_function * complete))   \
	X(ActivityEnable, (int kind))                                                              \
	X(ActivityDisable, (int kind))                                                             \
	X(ActivityFlushAll, (uint32_t flag))                                                       \
	X(ActivityGetNextRecord, (uint8_t * buffer, size_t valid, const uint32_t **record))        \
	X(ActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))         \
	X(GetTimestamp, (uint64_t * now))                                                          \
	X(GetResultString, (int result, const char **text))

/* The same instant on CUPTI's clock and on ours. */
struct anchor {
	int64_t theirs, ours;
};

static struct {
#define X(name, parameters) int(*name) parameters;
	FUNCTIONS(X)
#undef X
	int64_t (*now_ns)(void);
	struct anchor start;
	bool running;
	/* CUPTI completes buffers on a thread of its own. Times are CUPTI's. */
	pthread_mutex_t mutex;
	struct cupti_record *records;
	size_t count, room;
	bool no_memory;
	struct arena arena; /* owns the names */
	const char **names;
	size_t name_count, name_room;
} cupti = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const int kinds[] = {KIND_CONCURRENT_KERNEL, KIND_MEMCPY, KIND_MEMSET};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static enum prony_status check(int result, const char *what, enum prony_status status,
			       struct error *err)
{
	const char *text = NULL;

	if (result == CUPTI_SUCCESS)
		return PRONY_OK;
	cupti.GetResultString(result, &text);
	return error_set(err, status, "CUPTI: %s failed: %s (%d)", what, text ? text : "unknown",
			 result);
}

static enum prony_status open_library(const char *path, struct error *err)
{
	const struct loader_symbol symbols[] = {
#define X(function, parameters) LOADER_SYMBOL(cupti.function, "cupti" #function),
		FUNCTIONS(X)
#undef X
	};
	void *handle;
	enum prony_status status = loader_open(path, &handle, err);

	return status == PRONY_OK ? loader_resolve(handle, path, symbols,
						   sizeof(symbols) / sizeof(symbols[0]), err)
				  : status;
}

/* Where libcupti of that version may be; the caller frees it. */
static char *library_path(int version)
{
	const char *folder = getenv("PRONY_CUPTI");
	char name[32], *packaged;

	snprintf(name, sizeof(name), "libcupti.so.%d", version);
	if (folder && *folder)
		return memory_printf("%s/%s", folder, name);
	packaged = cuda_package_library(name);
	return packaged ? packaged : memory_strdup(name);
}

static enum prony_status load(int driver, struct error *err)
{
	enum prony_status status = PRONY_MISSING;

	for (int version = driver >= 13000 ? 13 : 12; version >= 12 && status != PRONY_OK;
	     version--) {
		char *path = library_path(version);

		error_clear(err);
		status = open_library(path, err);
		free(path);
	}
	if (status == PRONY_OK)
		return PRONY_OK;
	error_prefix(err, "a GPU's profile needs CUPTI of CUDA 12 or 13 (name its folder in "
			  "PRONY_CUPTI)");
	return PRONY_MISSING;
}

static void request(uint8_t **buffer, size_t *bytes, size_t *most)
{
	*buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_BYTES);
	*bytes = *buffer ? BUFFER_BYTES : 0;
	*most = 0; /* as many as there is room for */
}

static const char *copy_name(int kind)
{
	static const char *const names[] = {[1] = "copy, host to device",
					    [2] = "copy, device to host",
					    [8] = "copy on the device"};

	return kind >= 0 && kind < (int)(sizeof(names) / sizeof(names[0])) && names[kind]
		       ? names[kind]
		       : "copy";
}

/* CUPTI keeps one text for a kernel, as long as its module is loaded. */
static const char *kernel_name(const char *name)
{
	for (size_t i = 0; i < cupti.name_count; i++)
		if (strcmp(cupti.names[i], name) == 0)
			return cupti.names[i];
	cupti.names = arena_grow(&cupti.arena, cupti.names, cupti.name_count, &cupti.name_room,
				 sizeof(*cupti.names));
	cupti.names[cupti.name_count] = arena_strdup(&cupti.arena, name);
	return cupti.names[cupti.name_count++];
}

/* False when it is no record of ours. */
static bool read_record(const uint32_t *record, struct cupti_record *out)
{
	const struct activity_kernel *kernel = (const void *)record;
	const struct activity_memory *memory = (const void *)record;

	if (*record == KIND_CONCURRENT_KERNEL) {
		*out = (struct cupti_record){.kind = CUPTI_KERNEL,
					     .name = kernel_name(kernel->name ? kernel->name : "?"),
					     .begin_ns = (int64_t)kernel->start,
					     .end_ns = (int64_t)kernel->end};
		return true;
	}
	if (*record != KIND_MEMCPY && *record != KIND_MEMSET)
		return false;
	*out = (struct cupti_record){.kind = *record == KIND_MEMCPY ? CUPTI_COPY : CUPTI_FILL,
				     .name = *record == KIND_MEMCPY ? copy_name(memory->copy_kind)
								    : "fill",
				     .begin_ns = (int64_t)memory->start,
				     .end_ns = (int64_t)memory->end,
				     .bytes = (int64_t)memory->bytes};
	return true;
}

static void keep(const struct cupti_record *record)
{
	if (cupti.count == cupti.room) {
		size_t room = cupti.room ? 2 * cupti.room : 1024;
		struct cupti_record *larger = realloc(cupti.records, room * sizeof(*larger));

		if (!larger) {
			cupti.no_memory = true;
			return;
		}
		cupti.records = larger;
		cupti.room = room;
	}
	cupti.records[cupti.count++] = *record;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	const uint32_t *record = NULL;
	struct cupti_record read;

	(void)context;
	(void)stream;
	(void)bytes;
	pthread_mutex_lock(&cupti.mutex);
	while (cupti.running && valid > 0 &&
	       cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		if (read_record(record, &read))
			keep(&read);
	}
	pthread_mutex_unlock(&cupti.mutex);
	free(buffer);
}

/* The instant between two looks at our clock; of a few tries the one with the closest looks. */
static enum prony_status find_anchor(struct anchor *out, struct error *err)
{
	int64_t closest = INT64_MAX;

	for (int i = 0; i < ANCHOR_TRIES; i++) {
		uint64_t theirs = 0;
		int64_t before = cupti.now_ns();
		enum prony_status status = check(cupti.GetTimestamp(&theirs), "reading its clock",
						 PRONY_INTERNAL, err);
		int64_t after = cupti.now_ns();

		if (status != PRONY_OK)
			return status;
		if (after - before >= closest)
			continue;
		closest = after - before;
		*out = (struct anchor){.theirs = (int64_t)theirs,
				       .ours = before + (after - before) / 2};
	}
	return PRONY_OK;
}

enum prony_status cupti_start(int driver, int64_t (*now_ns)(void), struct error *err)
{
	enum prony_status status = load(driver, err);

	if (status != PRONY_OK)
		return status;
	cupti.now_ns = now_ns;
	cupti.running = true;
	arena_init(&cupti.arena, 0);
	status = check(cupti.ActivityRegisterCallbacks(request, complete), "registration",
		       PRONY_MISSING, err);
	for (int i = 0; status == PRONY_OK && i < KINDS; i++)
		status = check(cupti.ActivityEnable(kinds[i]), "start", PRONY_MISSING, err);
	if (status == PRONY_OK)
		status = find_anchor(&cupti.start, err);
	if (status != PRONY_OK)
		cupti_stop();
	return status;
}

/* On our clock, by what both clocks showed at the start and now. */
static int64_t translate(int64_t theirs, struct anchor now)
{
	int64_t passed = now.theirs - cupti.start.theirs;
	double rate = passed > 0 ? (double)(now.ours - cupti.start.ours) / (double)passed : 1;

	return cupti.start.ours + (int64_t)((double)(theirs - cupti.start.theirs) * rate);
}

static int compare(const void *a, const void *b)
{
	const struct cupti_record *left = a, *right = b;

	return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

enum prony_status cupti_take(struct cupti_record **records, size_t *count, struct error *err)
{
	struct anchor now;
	size_t dropped = 0;
	enum prony_status status =
		check(cupti.ActivityFlushAll(FLUSH_FORCED), "reading records", PRONY_INTERNAL, err);

	if (status == PRONY_OK)
		status = check(cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped),
			       "counting lost records", PRONY_INTERNAL, err);
	if (status == PRONY_OK)
		status = find_anchor(&now, err);
	if (status != PRONY_OK)
		return status;
	pthread_mutex_lock(&cupti.mutex);
	*records = cupti.records;
	*count = cupti.count;
	cupti.records = NULL;
	cupti.count = cupti.room = 0;
	pthread_mutex_unlock(&cupti.mutex);
	if (dropped > 0 || cupti.no_memory) {
		free(*records);
		return error_set(err, PRONY_INTERNAL,
				 "CUPTI lost %zu records; profile fewer steps (--steps)", dropped);
	}
	for (size_t i = 0; i < *count; i++) {
		(*records)[i].begin_ns = translate((*records)[i].begin_ns, now);
		(*records)[i].end_ns = translate((*records)[i].end_ns, now);
	}
	if (*count > 0)
		qsort(*records, *count, sizeof(**records), compare);
	return PRONY_OK;
}

void cupti_stop(void)
{
	for (int i = 0; i < KINDS; i++)
		cupti.ActivityDisable(kinds[i]);
	pthread_mutex_lock(&cupti.mutex);
	cupti.running = false;
	pthread_mutex_unlock(&cupti.mutex);
	cupti.ActivityFlushAll(FLUSH_FORCED); /* the rest is freed unread */
	pthread_mutex_lock(&cupti.mutex);
	free(cupti.records);
	cupti.records = NULL;
	cupti.count = cupti.room = 0;
	cupti.no_memory = false;
	arena_release(&cupti.arena);
	cupti.names = NULL;
	cupti.name_count = cupti.name_room = 0;
	pthread_mutex_unlock(&cupti.mutex);
}
