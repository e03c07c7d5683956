/* Lets the caller stop the reference and follow its progress. */
#ifndef PRONY_PARITY_CONTROL_H
#define PRONY_PARITY_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

/* Every function with a control argument also accepts NULL. */
struct reference_control {
	/* If it is not 0, the computation stops and returns PRONY_INTERRUPTED; may be NULL. */
	const volatile int *stop;
	int64_t deadline_ns; /* the same from this time of the monotonic clock on; 0: none */
	/* Asked by the caller of the reference before it begins, with the multiplications that it
	 * will take; false: PRONY_INTERRUPTED. May be NULL. */
	bool (*may_begin)(void *context, double multiplications);
	/* Called between operators, many times a second, with a fraction below 1; may be NULL. */
	void (*progress)(void *context, double fraction);
	void *context;
	/* Multiplications: the approximate total, and those done. */
	double expected, done;
};

#endif
