/* The GPUs of this machine, as NVIDIA's driver numbers them for programs ("cuda:0"). */
#ifndef PRONY_BASE_GPU_H
#define PRONY_BASE_GPU_H

#include <stdbool.h>
#include <stdint.h>

enum { GPUS_MAX = 32 };

struct gpu {
	char name[96];	      /* "NVIDIA H200" */
	int64_t memory_bytes; /* 0: unknown */
	int capability;	      /* compute capability, 90 for sm_90; 0: unknown */
	char uuid[40];	      /* "8a0f...-...", without "GPU-"; "" if unknown */
};

struct gpus {
	bool answered; /* the driver's library answered; then `count` is right, also 0 */
	int count;
	struct gpu gpus[GPUS_MAX];
	char driver[48];  /* version of the driver, "580.159.04"; "" if unknown */
	char reason[160]; /* why there are none; "" if there are some */
};

/* Asks the driver (libcuda.so.1, and libnvidia-ml.so.1 for the driver's version) in a child
 * process, because the library starts threads and may crash. CUDA_VISIBLE_DEVICES and
 * CUDA_DEVICE_ORDER count, as in the frameworks' processes. Gives up after 20 s. */
void gpus_ask(struct gpus *out);

/* The answer for this machine: asked once, by the main thread. */
const struct gpus *gpus_here(void);

/* The UUID of the GPU that programs call cuda:INDEX, without "GPU-"; NULL if it is unknown. */
const char *gpu_uuid(int index);

#endif
