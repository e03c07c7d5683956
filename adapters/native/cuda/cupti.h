/*
 * What a GPU ran, with times: the activity records of CUPTI (libcupti), which is loaded when a
 * profile asks for it. Declared here so that building needs no toolkit; types and values are those
 * of cupti_activity.h of CUDA 12 and 13, whose records begin alike.
 *
 * CUPTI observes the whole process and gives its callbacks no data of ours: there is one collection
 * at a time, kept by cupti.c.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_CUPTI_H
#define PRONY_ADAPTERS_NATIVE_CUDA_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum cupti_kind { CUPTI_KERNEL, CUPTI_COPY, CUPTI_FILL, CUPTI_KIND_COUNT };

struct cupti_record {
	const char *name; /* of the kernel, or "copy, host to device"; until cupti_stop */
	enum cupti_kind kind;
	int64_t begin_ns, end_ns; /* on the clock given to cupti_start */
	int64_t bytes;		  /* of a copy or fill */
};

/*
 * Starts to collect. `driver` is the version of the CUDA driver (13000), which decides between
 * libcupti.so.13 and .12. It is searched in the folder PRONY_CUPTI, which is then the only place;
 * in the packages of installed frameworks; on the loader's path. PRONY_MISSING with the reason when
 * there is none or it may not observe this process.
 */
enum prony_status cupti_start(int driver, int64_t (*now_ns)(void), struct error *err);

/*
 * Waits for what has been recorded since the start or the last take, in the order of begin times.
 * The caller has waited for the GPU. *records is owned by the caller (free). PRONY_INTERNAL when
 * CUPTI lost records.
 */
enum prony_status cupti_take(struct cupti_record **records, size_t *count, struct error *err);

/* Stops collecting and forgets the rest. */
void cupti_stop(void);

#endif
