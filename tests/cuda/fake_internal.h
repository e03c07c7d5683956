/* What the files of the fake driver share. */
#ifndef PRONY_TESTS_CUDA_FAKE_INTERNAL_H
#define PRONY_TESTS_CUDA_FAKE_INTERNAL_H

#include <stdarg.h>
#include <stdint.h>

#include "adapters/native/cuda/driver.h"
#include "tests/cuda/fake_driver.h"

enum {
	ERROR_CONTEXT = 201,
	ERROR_HANDLE = 400,
	ERROR_NOT_READY = 600,
	ERROR_UNSUPPORTED = 801,
	ERROR_UNJOINED = 904,
	ERROR_ISOLATION = 905,
	ERROR_CAPTURED_EVENT = 907
};

/* Says on standard error what is wrong and returns the status. */
int fake_refuse(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what a GPU leaves undefined: ends the process. */
void fake_abort(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* fake_memory.c. The host may touch device memory between open and close. */
int fake_memory_start(void); /* the handler of faults */
int fake_device_alloc(size_t bytes, void **out);
int fake_device_free(void *address);
int fake_host_alloc(size_t bytes, void **out);
int fake_host_free(void *address);
bool fake_is_pinned(const void *address, size_t bytes);
size_t fake_device_used(void);
/* Where copies read or write what lies at this address of the device or the host. */
void *fake_copy_place(const void *address);
void fake_memory_open(void);
void fake_memory_close(void);

/* fake_kernels.c */
const struct fake_kernel *fake_kernel_find(const char *name);
/* Runs the kernel on arguments at multiples of 16 bytes; device memory is open. */
void fake_kernel_run(const struct fake_kernel *kernel, unsigned blocks, unsigned threads,
		     unsigned char *arguments);
/* The kernel that runs, or NULL. */
const char *fake_kernel_running(void);

/* fake_mistakes.c: whether FAKE_CUDA plants this mistake in call `number`, which the trace names.
 */
bool fake_mistake(const char *kind, long number, const char *name);

/* fake_queue.c */
enum operation_kind { LAUNCH, CALL, COPY, FILL, RECORD, WAIT, GRAPH };
struct operation {
	enum operation_kind kind;
	const struct fake_kernel *kernel; /* LAUNCH */
	unsigned blocks, threads;
	void (*run)(void *data); /* CALL */
	unsigned char *data;	 /* of LAUNCH and CALL, owned */
	void *to;		 /* COPY, FILL */
	const void *from;
	size_t bytes;
	unsigned char value;
	struct CUevent_st *event; /* RECORD */
	struct queue *queue;	  /* WAIT: until `position` operations of it are done */
	long position;
	struct recording *recording; /* GRAPH, a share of it */
	unsigned correlation;
};
/* Appends to the stream's queue, or to its capture. Returns a CUresult. */
int fake_append(struct CUstream_st *stream, const struct operation *operation);
/* Whether a capture is under way; it is spoiled then, and `what` named. */
bool fake_forbidden(const char *what);
bool fake_capturing(const struct CUstream_st *stream);

#endif
