/* The sum over ranks by MPI, whose library is loaded when there are ranks. */
#ifndef PRONY_ADAPTERS_NATIVE_MPI_H
#define PRONY_ADAPTERS_NATIVE_MPI_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bundle/target.h"

/* A handle is an int in MPICH's ABI and a pointer in Open MPI's: on 64-bit machines, both are
 * passed in the same register. */
typedef uintptr_t mpi_handle;

struct mpi {
	int ranks; /* 0: not started */
	mpi_handle world, float_type, sum;
	intptr_t in_place; /* MPI_IN_PLACE */
	int (*allreduce)(const void *from, void *to, int count, mpi_handle type, mpi_handle op,
			 mpi_handle communicator);
	int (*finalize)(void);
};

/* Loads the library of the launcher that started this process, or the one that PRONY_MPI names, and
 * starts it with all other ranks. `version`: what sums, with its version. PRONY_MISSING: there is
 * no library; PRONY_INVALID: it sees other ranks than the target has, as that of another MPI than
 * the launcher's does. */
enum prony_status mpi_start(struct mpi *mpi, const struct target *target, char *version,
			    size_t version_bytes, struct error *err);
/* Replaces the values by their sums over all ranks. An error of MPI ends the process. */
void mpi_sum(const struct mpi *mpi, float *values, size_t count);
/* All ranks must call it. */
void mpi_end(struct mpi *mpi);

#endif
