/* Structs that kernels take by value, for the host's C (cuda_struct) and the kernels' C++. Only
 * int, long long, float and arrays of them: the same layout in both. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_KERNELS_ARGUMENTS_H
#define PRONY_ADAPTERS_NATIVE_CUDA_KERNELS_ARGUMENTS_H

#endif
