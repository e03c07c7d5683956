/* prony's own kernels as they were built: machine code by nvcc, embedded in the program. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_KERNELS_H
#define PRONY_ADAPTERS_NATIVE_CUDA_KERNELS_H

#include "adapters/native/cuda/cuda.h"

/* Fat binaries, one per file of kernels/; NULL-terminated; empty when built without nvcc. */
extern const unsigned char *const cuda_kernel_images[];

/* PRONY_MISSING when there are no kernels: built without nvcc, and PRONY_CUDA_KERNELS names no
 * folder of them. */
enum prony_status cuda_kernels_check(struct error *err);

/* Loads them in the current context, from the folder in PRONY_CUDA_KERNELS (files *.fatbin) if that
 * is set, else those of the program; fills device->modules. */
enum prony_status cuda_kernels_load(struct device *device, struct error *err);

#endif
