/*
 * A CUDA driver on the CPU, libcuda.so.1 of the tests: as late and as strict as CUDA may be.
 *
 * - Device memory cannot be read by the host. It is NaN until it is written, and a page that nobody
 *   may touch follows its end.
 * - Work runs only when the host waits for it, each stream on its own.
 * - A capture records calls with the values of their arguments. What is forbidden in a capture
 *   fails and spoils it.
 * - Kernels are those of adapters/native/cuda/kernels, compiled for the host. Blocks run in a
 *   shuffled order, the threads of a block backwards. A kernel without barriers that is launched
 *   with more than 2,048 threads runs with two.
 * - What a GPU leaves undefined is an error here: a message on standard error and a refused call,
 *   or the end of the process by SIGABRT.
 *
 * Environment: FAKE_CUDA_DEVICES=N devices (1); FAKE_CUDA_MEMORY=BYTES on each (80 GiB);
 * FAKE_CUDA_LEAKS=FILE appends a line for each allocation that is left when the process ends;
 * FAKE_CUDA_TRACE=FILE appends a line for each call that a mistake can be planted in.
 *
 * FAKE_CUDA=MISTAKE:N plants a mistake in the caller, as if it had not issued call N of its kind,
 * counted from 0 (in the trace, "skip 3 relu_f32"; a swap has both names):
 *   skip   work N of each capture is not recorded
 *   swap   work N of each capture is recorded behind the next one
 *   copy   copy N outside of captures is not made
 *   fill   fill N outside of captures fills with NaN
 *   wait   cuStreamSynchronize number N returns at once
 *
 * This header is for the other fakes of NVIDIA's libraries, which link libcuda.so.1.
 */
#ifndef PRONY_TESTS_CUDA_FAKE_DRIVER_H
#define PRONY_TESTS_CUDA_FAKE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_EXPORT __attribute__((visibility("default")))

/*
 * Appends a library's work to a stream, captured if the stream is: run(copy of data) once the
 * stream is waited for, with device memory readable and writable. Returns a CUresult.
 */
FAKE_EXPORT int fake_cuda_enqueue(void *stream, void (*run)(void *data), const void *data,
				  size_t bytes);

/* Whether all of these bytes lie in one live allocation of device memory. */
FAKE_EXPORT bool fake_cuda_is_device(const void *address, size_t bytes);

/* Work that was issued and did not run yet, on all streams. */
FAKE_EXPORT long fake_cuda_pending(void);

/* What ran on the device. */
enum fake_activity_kind { FAKE_KERNEL, FAKE_COPY, FAKE_FILL };
struct fake_activity {
	enum fake_activity_kind kind;
	const char *name;	       /* of the kernel, or of the library */
	unsigned long long begin, end; /* by fake_cuda_clock */
	size_t bytes;		       /* of a copy or fill */
	unsigned correlation;	       /* the same for all work of one call */
};
/* Calls `seen` for everything that runs from now on; NULL: no more. */
FAKE_EXPORT void fake_cuda_watch(void (*seen)(const struct fake_activity *activity));
/* Nanoseconds; not the clock of the host, so that who compares them has to find the difference. */
FAKE_EXPORT unsigned long long fake_cuda_clock(void);

/* The fake device. */
#define FAKE_CUDA_NAME "NVIDIA Fake H100"
#define FAKE_CUDA_UUID                                                                             \
	{                                                                                          \
		0xfa, 0xce, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 0                         \
	} /* the last byte counts devices */
enum { FAKE_CUDA_VERSION = 13000, FAKE_CUDA_CAPABILITY = 90, FAKE_CUDA_MULTIPROCESSORS = 132 };

/* Kernels, as kernel_table.py lists them. */
struct fake_argument {
	size_t bytes;
	bool pointer;
};
struct fake_kernel {
	const char *name;
	bool block; /* has barriers */
	int argument_count;
	const struct fake_argument *arguments;
	void (*call)(void **arguments); /* by addresses of the values */
};
/* Adds kernels to the driver's table, which keeps the pointer. Returns true. */
bool fake_kernels_add(const struct fake_kernel *kernels, int count);

#ifdef __cplusplus
}
#endif

#endif
