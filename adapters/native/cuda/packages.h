/* NVIDIA's libraries in the Python packages of installed frameworks. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_PACKAGES_H
#define PRONY_ADAPTERS_NATIVE_CUDA_PACKAGES_H

#include <stddef.h>

/*
 * Finds a library in site-packages/nvidia of an environment that `prony framework install` made
 * (PyTorch and JAX bring cuDNN and cuBLAS). They work with each other and with the driver of the
 * time, which the loader's path does not promise. NULL if there is none; the caller frees it.
 */
char *cuda_package_library(const char *name);

#endif
