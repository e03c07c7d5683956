/* Figures of the machine that were measured once (`prony selftest`) and stand in the environment
 * record of each later run (docs/store.md). */
#ifndef PRONY_STORE_MACHINE_FIGURES_H
#define PRONY_STORE_MACHINE_FIGURES_H

#include <jansson.h>
#include <stdint.h>

/* The floor of stats/noise.h, as in 0.012; at least 0.01. NaN where nobody measured it.
 * `environment`: the record, or NULL. */
double machine_noise_floor(const json_t *environment);

/* Likewise how far two of the same lie apart; of records that do not have it (until version 0.1.0)
 * the floor, which was that. */
double machine_noise(const json_t *environment);

/* When that was measured, "2026-11-21T03:34:05Z"; NULL where it was not. Borrowed from the record.
 */
const char *machine_noise_measured_at(const json_t *environment);

/* Days from then to a time since 1970 in ns; NaN where the record does not say when. */
double machine_noise_age_days(const json_t *environment, int64_t wall_ns);

/* What of a record makes the machine that figures were measured on another one, though all that
 * must match does: kernel, frequency driver and governor, drivers and such, as members of an
 * object; those that the record does not have are missing. New reference. */
json_t *machine_surroundings(const json_t *environment);

/* Likewise as they were when the floor was measured; NULL where nobody wrote them down (until
 * version 0.1.0). Borrowed from the record. */
const json_t *machine_noise_surroundings(const json_t *environment);

/*
 * What so many cores can do at best with operands of a precision ("fp32", "bf16"), in FLOP/s: the
 * best of loop and matrix product. Between one core and all of them: as many times one, at most
 * what all can do. tf32 has the units of fp32 on a CPU. NaN where nobody measured it.
 */
double machine_peak_flops(const json_t *environment, const char *precision, int64_t cores);

#endif
