/* The differences of a libdnnl on TBB, with or without SYCL. Intel's packages since 2024 have only
 * this kind. With SYCL a CPU engine is a SYCL device, which is found through OpenCL, and a
 * primitive is a task of a queue with its own thread. Loops of primitives run on TBB's threads. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_ONEDNN_SYCL_H
#define PRONY_ADAPTERS_NATIVE_CPU_ONEDNN_SYCL_H

#include "adapters/native/cpu/onednn.h"

/* Opens libdnnl. Libraries that the loader cannot find are taken from the same folder, or from
 * wheels that were unpacked side by side (FOLDER/NAME.data/data/lib). The CPU's OpenCL library
 * found there is given to the run-time through OCL_ICD_FILENAMES, unless that is set. PRONY_MISSING
 * with the loader's message. */
enum prony_status onednn_sycl_open(const char *path, void **handle, struct error *err);

/* Restricts the process to `threads` processors. TBB starts, once in a process, as many threads as
 * there are processors that the process may use, so this is called before the engine is created.
 * False when nothing was changed. */
bool onednn_tbb_narrow(struct onednn *dnn, int threads);

/* The number of threads of TBB's arena; -1 = unknown. */
int onednn_tbb_threads(const struct onednn *dnn);

/* Explains why there is no engine: PRONY_MISSING. */
enum prony_status onednn_sycl_no_device(struct error *err);

#endif
