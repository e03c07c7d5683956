/* The instrument that reads this machine's first GPU. */
#ifndef PRONY_SENSORS_GPU_INSTRUMENT_H
#define PRONY_SENSORS_GPU_INSTRUMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes "NVML 13.580.159, driver 580.159.04" to `where` and what it refuses, "energy, temperature
 * memory", to `said`. False if there is none; then `said` has the reason. */
bool gpu_instrument(char *where, size_t where_bytes, char *said, size_t said_bytes);

#endif
