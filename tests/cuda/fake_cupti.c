/*
 * libcupti.so.13 of the tests: what the fake driver ran, in the records of CUDA 13. Records arrive
 * when they are flushed, in the order in which the streams were waited for.
 *
 * FAKE_CUPTI=refuse: recording may not start. FAKE_CUPTI=lose: records are lost.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake_driver.h"

enum {
	SUCCESS = 0,
	ERROR_INVALID_KIND = 21,
	ERROR_MAX_LIMIT_REACHED = 12,
	ERROR_INSUFFICIENT_PRIVILEGES = 35,
	MEMCPY = 1,
	MEMSET = 2,
	CONCURRENT_KERNEL = 10,
	KINDS = 64,
	RECORDS_MAX = 1 << 16
};

/* CUpti_ActivityKernel10, CUpti_ActivityMemcpy6 and CUpti_ActivityMemset4, as far as they are
 * filled. */
struct kernel {
	uint32_t kind, unused[3];
	uint64_t start, end;
	uint32_t more[15], correlation;
	int64_t grid;
	const char *name;
	unsigned char rest[216 - 112];
};
struct memory {
	uint32_t kind;
	uint8_t copy_kind, unused[3];
	uint64_t bytes, start, end;
	uint32_t more[3], correlation;
	unsigned char rest[48];
};
_Static_assert(sizeof(struct kernel) == 216, "size of CUpti_ActivityKernel10");
_Static_assert(sizeof(struct memory) == 96, "size of CUpti_ActivityMemcpy6");
enum { MEMSET_BYTES = 88 };

typedef void request_function(uint8_t **buffer, size_t *bytes, size_t *most);
typedef void complete_function(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			       size_t valid);

static request_function *request;
static complete_function *complete;
static bool enabled[KINDS];
static struct fake_activity ran[RECORDS_MAX];
static size_t ran_count;

static bool planted(const char *what)
{
	const char *set = getenv("FAKE_CUPTI");

	return set != NULL && strcmp(set, what) == 0;
}

static int kind_of(const struct fake_activity *activity)
{
	return activity->kind == FAKE_KERNEL ? CONCURRENT_KERNEL
	       : activity->kind == FAKE_COPY ? MEMCPY
					     : MEMSET;
}

static size_t bytes_of(int kind)
{
	return kind == CONCURRENT_KERNEL ? sizeof(struct kernel)
	       : kind == MEMCPY		 ? sizeof(struct memory)
	       : kind == MEMSET		 ? (size_t)MEMSET_BYTES
					 : 0;
}

static void see(const struct fake_activity *activity)
{
	if (enabled[kind_of(activity)] && ran_count < RECORDS_MAX)
		ran[ran_count++] = *activity;
}

FAKE_EXPORT int cuptiActivityRegisterCallbacks(request_function *asks, complete_function *takes)
{
	request = asks;
	complete = takes;
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityEnable(int kind)
{
	if (kind < 0 || bytes_of(kind) == 0)
		return ERROR_INVALID_KIND;
	if (planted("refuse"))
		return ERROR_INSUFFICIENT_PRIVILEGES;
	enabled[kind] = true;
	fake_cuda_watch(see);
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityDisable(int kind)
{
	if (kind >= 0 && kind < KINDS)
		enabled[kind] = false;
	return SUCCESS;
}

static void write_record(uint8_t *to, const struct fake_activity *activity)
{
	int kind = kind_of(activity);
	struct kernel kernel = {.kind = (uint32_t)kind,
				.start = activity->begin,
				.end = activity->end,
				.correlation = activity->correlation,
				.name = activity->name};
	struct memory memory = {.kind = (uint32_t)kind,
				.copy_kind = 8, /* on the device */
				.bytes = activity->bytes,
				.start = activity->begin,
				.end = activity->end,
				.correlation = activity->correlation};

	memcpy(to, kind == CONCURRENT_KERNEL ? (const void *)&kernel : (const void *)&memory,
	       bytes_of(kind));
}

FAKE_EXPORT int cuptiActivityFlushAll(uint32_t flag)
{
	(void)flag;
	for (size_t next = 0; next < ran_count;) {
		uint8_t *buffer = NULL;
		size_t bytes = 0, most = 0, used = 0, step;

		request(&buffer, &bytes, &most);
		while (next < ran_count && (step = bytes_of(kind_of(&ran[next]))) <= bytes - used) {
			write_record(buffer + used, &ran[next++]);
			used += step;
		}
		complete(NULL, 0, buffer, bytes, used);
	}
	ran_count = 0;
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint8_t *next = *record != NULL
				? *record + bytes_of((int)*(const uint32_t *)(void *)*record)
				: buffer;

	if ((size_t)(next - buffer) >= valid)
		return ERROR_MAX_LIMIT_REACHED;
	*record = next;
	return SUCCESS;
}

FAKE_EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	(void)context;
	(void)stream;
	*dropped = planted("lose") ? 3 : 0;
	return SUCCESS;
}

FAKE_EXPORT int cuptiGetTimestamp(uint64_t *now)
{
	*now = fake_cuda_clock();
	return SUCCESS;
}

FAKE_EXPORT int cuptiGetResultString(int result, const char **text)
{
	*text = result == ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
							: "CUPTI_ERROR";
	return SUCCESS;
}
