/* The parts of `prony selftest`. */
#ifndef PRONY_CLI_SELFTEST_PARTS_H
#define PRONY_CLI_SELFTEST_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What the thread that samples the sensors costs. */
struct observer {
	double share;	  /* of one core, while it samples at its rates */
	int64_t start_ns; /* processor time to find and open all sensors */
	size_t pairs;	  /* blocks with it and without, in turn */
	double slowdown, slowdown_low, slowdown_high; /* of work on all cores: ratio, 95 %; NaN */
};

/* Works on all `cores` for about limit_ns, in blocks with and without sensors. Starts a child that
 * only waits, for the sensors to watch. */
enum prony_status observer_measure(int cores, int64_t limit_ns, struct observer *out,
				   struct error *err);

/* The framework fake, twice the same and slower by known parts, in rounds. */
enum { ARM_A, ARM_SAME, ARM_1, ARM_2, ARM_5, ARM_COUNT, ARM_ROUNDS_MAX = 512 };
extern const double arm_slowdowns[ARM_COUNT]; /* 0, 0, 0.01, 0.02, 0.05 */

struct arms {
	size_t rounds;
	double means_ns[ARM_COUNT][ARM_ROUNDS_MAX]; /* of a process' steps, by round */
	double injected[ARM_COUNT];		    /* what was really added, of A's step */
};

/* Runs rounds for about limit_ns, at least three; the caller holds the machine's lock. */
enum prony_status arms_measure(int64_t limit_ns, const volatile int *stop, struct arms *out,
			       struct error *err);

#endif
