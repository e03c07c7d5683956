#include "parity/worth_internal.h"

#include "base/parallel.h"

/* Below this, starting a thread costs more than it saves. */
#define MACS_PER_THREAD (INT64_C(1) << 20)

int parallel_threads(int64_t macs)
{
	int64_t worth = macs / MACS_PER_THREAD;

	if (worth < 2)
		return 1;
	int64_t cores = parallel_cores();
	return (int)(worth < cores ? worth : cores);
}
