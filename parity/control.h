/* Lets the caller stop the reference and follow its progress. */
#ifndef PRONY_PARITY_CONTROL_H
#define PRONY_PARITY_CONTROL_H

#include <stdint.h>

/* Every function with a control argument also accepts NULL. */
struct reference_control {
	/* If it is not 0, the computation stops and returns PRONY_INTERRUPTED; may be NULL. */
	const volatile int *stop;
	int64_t deadline_ns; /* the same from this time of the monotonic clock on; 0: none */
	/* Called between operators, many times a second, with a fraction below 1; may be NULL. */
	void (*progress)(void *context, double fraction);
	void *context;
	/* Multiplications: the approximate total, and those done. */
	double expected, done;
};

#endif
