/* Opens a libdnnl on TBB or SYCL, and restricts TBB's threads. */
#include "adapters/native/cpu/onednn_sycl.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loader.h"
#include "base/memory.h"

/* tbb::detail::r1::max_concurrency(const task_arena_base *): NULL means the caller's arena. */
#define TBB_MAX_CONCURRENCY "_ZN3tbb6detail2r115max_concurrencyEPKNS0_2d115task_arena_baseE"

/* Finds a file in the library's folder, or in the same place in another wheel; names may be
 * patterns. */
static bool find_beside(const char *path, const char *name, char *out)
{
	const char *slash = strrchr(path, '/');
	int folder_bytes = slash ? (int)(slash - path) : 1;
	const char *folder = slash ? path : ".";
	char pattern[2 * PATH_MAX];
	glob_t found;
	bool one;

	snprintf(pattern, sizeof(pattern), "{%.*s,%.*s/../../../*.data/data/lib}/%s", folder_bytes,
		 folder, folder_bytes, folder, name);
	one = memory_glob(pattern, GLOB_BRACE, &found) > 0 && strlen(found.gl_pathv[0]) < PATH_MAX;
	if (one)
		memcpy(out, found.gl_pathv[0], strlen(found.gl_pathv[0]) + 1);
	globfree(&found);
	return one;
}

/* Opens the needed libraries. They stay open, so that the loader finds them by name. */
static void open_needed(const char *path)
{
	/* Each library follows those that it needs. libsycl opens libOpenCL by its name. */
	static const char *const names[] = {"libintlc.so.5", "libimf.so",    "libirng.so",
					    "libsvml.so",    "libtbb.so.12", "libsycl.so.[0-9]",
					    "libOpenCL.so.1"};
	char place[PATH_MAX];
	void *handle;
	bool any = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (find_beside(path, names[i], place) &&
		    loader_open(place, &handle, NULL) == PRONY_OK)
			any = true;
	}
	if (any && find_beside(path, "libintelocl.so", place))
		setenv("OCL_ICD_FILENAMES", place, 0);
}

enum prony_status onednn_sycl_open(const char *path, void **handle, struct error *err)
{
	if (loader_open(path, handle, NULL) == PRONY_OK)
		return PRONY_OK;
	open_needed(path);
	return loader_open(path, handle, err);
}

bool onednn_tbb_narrow(struct onednn *dnn, int threads)
{
	cpu_set_t few;

	if (sched_getaffinity(0, sizeof(dnn->allowed), &dnn->allowed) != 0 ||
	    CPU_COUNT(&dnn->allowed) <= threads)
		return false;
	CPU_ZERO(&few);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&few) < threads; cpu++) {
		if (CPU_ISSET(cpu, &dnn->allowed))
			CPU_SET(cpu, &few);
	}
	return sched_setaffinity(0, sizeof(few), &few) == 0;
}

int onednn_tbb_threads(const struct onednn *dnn)
{
	int (*threads)(const void *arena) = NULL;
	const struct loader_symbol symbol = LOADER_OPTIONAL(threads, TBB_MAX_CONCURRENCY);

	(void)loader_resolve(dnn->handle, "libtbb", &symbol, 1, NULL);
	return threads ? threads(NULL) : -1;
}

enum prony_status onednn_sycl_no_device(struct error *err)
{
	const char *named = getenv("OCL_ICD_FILENAMES");

	return error_set(err, PRONY_MISSING,
			 "this libdnnl uses SYCL, which found no CPU among OpenCL's devices "
			 "(OCL_ICD_FILENAMES=%s). It needs libOpenCL.so.1 and the complete folder "
			 "of libintelocl.so: run 'prony framework install native@3.13'",
			 named ? named : "");
}
