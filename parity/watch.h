/* Who waits for the reference: may stop it, and hears how far it has come. */
#ifndef PRONY_PARITY_WATCH_H
#define PRONY_PARITY_WATCH_H

#include <stdint.h>

/* All functions that take one take NULL, too. */
struct reference_watch {
	/* While it is not 0 nothing more is computed and PRONY_INTERRUPTED comes back; may be NULL.
	 */
	const volatile int *stop;
	/* Called between operators, many times a second, with less than 1; may be NULL. */
	void (*progress)(void *context, double fraction);
	void *context;
	/* Multiplications: how many there will be, about, and how many there were. */
	double expected, done;
};

#endif
