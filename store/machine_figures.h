/* Figures of the machine that `prony selftest` measured once and that the environment record of
 * each later run contains (docs/store.md). */
#ifndef PRONY_STORE_MACHINE_FIGURES_H
#define PRONY_STORE_MACHINE_FIGURES_H

#include <jansson.h>
#include <stdint.h>

/* The noise floor of stats/noise.h as a fraction (0.012), at least 0.01; NaN when it was not
 * measured. `environment`: the record, or NULL. */
double machine_noise_floor(const json_t *environment);

/* How far two identical contenders differ, likewise. Old records without it (until version 0.1.0)
 * have the floor, which meant the same. */
double machine_noise(const json_t *environment);

/* When the floor was measured, "2026-11-21T03:34:05Z"; NULL when it was not. Borrowed from the
 * record. */
const char *machine_noise_measured_at(const json_t *environment);

/* Days from that measurement to a wall time in ns; NaN when the record has no time. */
double machine_noise_age_days(const json_t *environment, int64_t wall_ns);

/* Properties that make stored figures outdated although must_match is equal: kernel, frequency
 * driver and governor, drivers and the like, as members of an object. Properties that the record
 * lacks are left out. New reference. */
json_t *machine_surroundings(const json_t *environment);

/* The same properties at the time when the floor was measured; NULL in old records (until version
 * 0.1.0). Borrowed from the record. */
const json_t *machine_noise_surroundings(const json_t *environment);

/* The peak FLOP/s of so many cores with a precision ("fp32", "bf16"): the better of loop and matrix
 * product. Between one core and all cores: a multiple of one core, limited by all cores. On a CPU
 * tf32 uses the units of fp32. NaN when it was not measured. */
double machine_peak_flops(const json_t *environment, const char *precision, int64_t cores);

/* Bytes/s that so many cores move in memory, or the GPU cuda:0 for cores = 0; NaN when it was not
 * measured. */
double machine_bandwidth(const json_t *environment, int64_t cores);

/* The peak FLOP/s of the GPU cuda:0 with a precision: matrix products. NaN when it was not
 * measured. */
double machine_gpu_peak_flops(const json_t *environment, const char *precision);

#endif
