/* Private to `prony selftest`: its parts. */
#ifndef PRONY_CLI_SELFTEST_PARTS_H
#define PRONY_CLI_SELFTEST_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The cost of the sensor thread. */
struct observer {
	double share;				      /* share of one core while sampling */
	int64_t start_ns;			      /* CPU time to find and open all sensors */
	size_t pairs;				      /* pairs of blocks, with and without */
	double slowdown, slowdown_low, slowdown_high; /* ratio for work on all cores with its 95 %
							 interval; NaN if unknown */
};

/* Works on all `cores` for about limit_ns, in blocks with and without sensors. Starts an idle child
 * for the sensors to observe. */
enum prony_status observer_measure(int cores, int64_t limit_ns, struct observer *out,
				   struct error *err);

/*
 * Arms of the framework fake: two identical ones and three slowed down by known amounts, in rounds.
 */
enum { ARM_A, ARM_SAME, ARM_1, ARM_2, ARM_5, ARM_COUNT, ARM_ROUNDS_MAX = 512 };
extern const double arm_slowdowns[ARM_COUNT]; /* 0, 0, 0.01, 0.02, 0.05 */

struct arms {
	size_t rounds;
	double means_ns[ARM_COUNT][ARM_ROUNDS_MAX]; /* mean step of a process, by round */
	double injected[ARM_COUNT]; /* the slowdown really added, relative to A's step */
};

/* Runs rounds for about limit_ns, at least three. The caller holds the machine lock. */
enum prony_status arms_measure(int64_t limit_ns, const volatile int *stop, struct arms *out,
			       struct error *err);

#endif
