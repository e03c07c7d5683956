/* Private to ceilings/: the peak of the first GPU. */
#ifndef PRONY_CEILINGS_GPU_H
#define PRONY_CEILINGS_GPU_H

#include "ceilings/ceilings.h"

/* Fills in the figures of the GPU `cuda:0`, with the libraries of the native executor: matrix
 * products by cuBLASLt, and copies within its memory. A machine without a CUDA driver gets none
 * (out->has_gpu), one whose library is missing gets the reason. */
void gpu_measure(const struct ceilings_settings *settings, struct ceilings *out);

#endif
