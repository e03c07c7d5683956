/*
 * The differences of a libdnnl on TBB, with or without SYCL. Intel's packages since 2024 have only
 * this kind. With SYCL a CPU engine is a SYCL device, which is found through OpenCL, and a
 * primitive is a task of a queue with its own thread. Loops of primitives run on TBB's threads.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_ONEDNN_SYCL_H
#define PRONY_ADAPTERS_NATIVE_CPU_ONEDNN_SYCL_H

#include "adapters/native/cpu/onednn.h"

/*
 * Opens libdnnl. Where the loader does not find what it needs, takes that from the same folder, or
 * from wheels that were unpacked side by side (FOLDER/NAME.data/data/lib), and names the OpenCL of
 * the CPU that lies there to the run-time (OCL_ICD_FILENAMES, unless it is set). PRONY_MISSING with
 * the loader's words.
 */
enum prony_status onednn_sycl_open(const char *path, void **handle, struct error *err);

/*
 * TBB takes, once in a process, as many threads as there are processors that the process may use:
 * narrows them to `threads`. Before the engine is made. False when nothing was changed.
 */
bool onednn_tbb_narrow(struct onednn *dnn, int threads);

/* Threads of TBB's arena; -1 = cannot say. */
int onednn_tbb_threads(const struct onednn *dnn);

/* Why there is no engine: PRONY_MISSING. */
enum prony_status onednn_sycl_no_device(struct error *err);

#endif
