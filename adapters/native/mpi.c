#include "adapters/native/mpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loader.h"

#define SUM_MAX ((size_t)1 << 30) /* counts are ints */
#define VERSION_BYTES 8192	  /* MPI_MAX_LIBRARY_VERSION_STRING is 256 or 8192 */

enum { THREAD_FUNNELED = 1, IN_PLACE_MPICH = -1, IN_PLACE_OPEN_MPI = 1 };

/* MPICH's handles; Intel MPI, MVAPICH and Cray MPICH have the same. */
#define MPICH_WORLD 0x44000000
#define MPICH_FLOAT 0x4c00040a
#define MPICH_SUM 0x58000003

struct functions {
	int (*init)(int *argc, char ***argv, int required, int *provided);
	int (*rank)(mpi_handle communicator, int *rank);
	int (*size)(mpi_handle communicator, int *size);
	int (*version)(char *text, int *length);
};

/* The names under which libraries of an ABI are found, by what their launchers set. */
static const struct {
	const char *variable, *names[2];
} libraries[] = {
	{"OMPI_COMM_WORLD_SIZE", {"libmpi.so.40"}},
	{"PMI_SIZE", {"libmpi.so.12", "libmpich.so.12"}},
};

static enum prony_status open_library(const char **name, void **handle, struct error *err)
{
	const char *named = getenv("PRONY_MPI");
	size_t kinds = sizeof(libraries) / sizeof(*libraries);
	struct error why = ERROR_INIT;
	bool told = false;

	for (size_t i = 0; i < kinds; i++)
		told |= getenv(libraries[i].variable) != NULL;
	for (size_t i = 0; i < 2 * kinds; i++) {
		*name = named ? named : libraries[i / 2].names[i % 2];
		if (!*name || (!named && told && !getenv(libraries[i / 2].variable)))
			continue;
		error_clear(&why);
		/* Open MPI's plug-ins look for its symbols among the global ones. */
		if (loader_open_global(*name, &why) == PRONY_OK)
			return loader_open(*name, handle, err);
	}
	enum prony_status status =
		error_set(err, PRONY_MISSING,
			  "MPI's library is not here (%s); install libopenmpi3 or "
			  "libmpich12, or set PRONY_MPI to a library",
			  why.text);
	error_clear(&why);
	return status;
}

static enum prony_status resolve(struct mpi *mpi, struct functions *functions, const char *name,
				 void *handle, struct error *err)
{
	const struct loader_symbol symbols[] = {
		LOADER_SYMBOL(functions->init, "MPI_Init_thread"),
		LOADER_SYMBOL(functions->rank, "MPI_Comm_rank"),
		LOADER_SYMBOL(functions->size, "MPI_Comm_size"),
		LOADER_SYMBOL(functions->version, "MPI_Get_library_version"),
		LOADER_SYMBOL(mpi->allreduce, "MPI_Allreduce"),
		LOADER_SYMBOL(mpi->finalize, "MPI_Finalize"),
	};
	/* In Open MPI, handles are addresses of objects. */
	mpi_handle world = (mpi_handle)dlsym(handle, "ompi_mpi_comm_world");

	mpi->world = world ? world : MPICH_WORLD;
	mpi->float_type = world ? (mpi_handle)dlsym(handle, "ompi_mpi_float") : MPICH_FLOAT;
	mpi->sum = world ? (mpi_handle)dlsym(handle, "ompi_mpi_op_sum") : MPICH_SUM;
	mpi->in_place = world ? IN_PLACE_OPEN_MPI : IN_PLACE_MPICH;
	return loader_resolve(handle, name, symbols, sizeof(symbols) / sizeof(*symbols), err);
}

/* The first words of the version: up to the first comma or the end of the line. */
static void version_text(const struct functions *functions, char *out, size_t out_bytes)
{
	char text[VERSION_BYTES + 1] = "";
	int length = 0;

	functions->version(text, &length);
	text[strcspn(text, ",\n")] = '\0';
	for (char *c = text; *c; c++)
		*c = *c == '\t' ? ' ' : *c;
	snprintf(out, out_bytes, "mpi (%s) after the backward pass", text);
}

enum prony_status mpi_start(struct mpi *mpi, const struct target *target, char *version,
			    size_t version_bytes, struct error *err)
{
	struct functions functions;
	const char *name = NULL;
	void *handle = NULL;
	int provided, size = 0, rank = -1;
	enum prony_status status = open_library(&name, &handle, err);

	if (status == PRONY_OK)
		status = resolve(mpi, &functions, name, handle, err);
	if (status != PRONY_OK)
		return status;
	functions.init(NULL, NULL, THREAD_FUNNELED, &provided);
	functions.size(mpi->world, &size);
	functions.rank(mpi->world, &rank);
	mpi->ranks = size;
	if (size != target->world_size)
		return error_set(err, PRONY_INVALID,
				 "MPI sees %d rank%s, the launcher started %d: another MPI's "
				 "launcher (%s was loaded)",
				 size, size == 1 ? "" : "s", target->world_size, name);
	if (rank != target->rank)
		return error_set(err, PRONY_INVALID, "MPI sees rank %d here, prony rank %d", rank,
				 target->rank);
	version_text(&functions, version, version_bytes);
	return PRONY_OK;
}

void mpi_sum(const struct mpi *mpi, float *values, size_t count)
{
	for (size_t at = 0; at < count; at += SUM_MAX) {
		size_t some = count - at < SUM_MAX ? count - at : SUM_MAX;

		mpi->allreduce((const void *)mpi->in_place, values + at, (int)some, mpi->float_type,
			       mpi->sum, mpi->world);
	}
}

void mpi_end(struct mpi *mpi)
{
	if (mpi->ranks > 0)
		mpi->finalize();
	mpi->ranks = 0;
}
