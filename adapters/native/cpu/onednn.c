/* Loads oneDNN, starts its engine and threads, and splits work among the threads. */
#include "adapters/native/cpu/onednn.h"

#include <stdint.h>
#include <stdio.h>

#include "adapters/native/cpu/onednn_sycl.h"
#include "base/loader.h"

/* Finds the OpenMP run-time among the dependencies of libdnnl, which dlsym also searches. A libdnnl
 * on TBB has none; prony's own loops then use the system's. */
static void find_team(struct onednn *dnn, const char *path)
{
	void *team = dnn->handle;
	const struct loader_symbol symbols[] = {
		LOADER_OPTIONAL(dnn->team_run, "GOMP_parallel"),
		LOADER_OPTIONAL(dnn->team_member, "omp_get_thread_num"),
		LOADER_OPTIONAL(dnn->team_size, "omp_get_num_threads"),
		LOADER_OPTIONAL(dnn->threads_max, "omp_get_max_threads"),
		LOADER_OPTIONAL(dnn->threads_set, "omp_set_num_threads"),
	};

	if (dnn->on_tbb)
		(void)loader_open("libgomp.so.1", &team, NULL);
	(void)loader_resolve(team, path, symbols, sizeof(symbols) / sizeof(symbols[0]), NULL);
	if (!dnn->team_member || !dnn->team_size)
		dnn->team_run = NULL;
}

enum prony_status onednn_load(struct onednn *dnn, const char *path, struct error *err)
{
	const struct loader_symbol symbols[] = {
#define X(name) LOADER_SYMBOL(dnn->name, "dnnl_" #name),
		ONEDNN_FUNCTIONS(X)
#undef X
	};
	const dnnl_version_t *version;
	enum prony_status status;

	if (!path)
		return error_set(
			err, PRONY_MISSING,
			"no path of libdnnl.so.3 was given; run 'prony framework install native'");
	status = onednn_sycl_open(path, &dnn->handle, err);
	if (status != PRONY_OK)
		return status;
	status = loader_resolve(dnn->handle, path, symbols, sizeof(symbols) / sizeof(symbols[0]),
				err);
	if (status != PRONY_OK)
		return status;
	version = dnn->version();
	if (version->major != 3)
		return error_set(err, PRONY_MISSING, "%s is oneDNN %d.%d.%d; version 3 is needed",
				 path, version->major, version->minor, version->patch);
	dnn->deferred = version->cpu_runtime == DNNL_RUNTIME_SYCL;
	dnn->on_tbb = dnn->deferred || version->cpu_runtime == DNNL_RUNTIME_TBB;
	/*
	 * Libraries with another run-time need a thread pool from the caller, and prony has none.
	 */
	if (!dnn->on_tbb && version->cpu_runtime != DNNL_RUNTIME_OMP &&
	    version->cpu_runtime != DNNL_RUNTIME_SEQ)
		return error_set(err, PRONY_MISSING,
				 "%s needs a thread pool from its caller; use a libdnnl built for "
				 "OpenMP, SYCL or TBB",
				 path);
	find_team(dnn, path);
	return PRONY_OK;
}

/* Runs in each thread of the team: binds thread n to the n-th allowed processor. */
static void bind_member(void *data)
{
	struct onednn *dnn = data;
	size_t member = (size_t)dnn->team_member(), seen = 0;
	cpu_set_t one;

	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &dnn->allowed) && seen++ == member)
			CPU_SET(cpu, &one);
	}
	/* On failure the thread keeps its present processors. */
	(void)sched_setaffinity(0, sizeof(one), &one);
}

static void start_threads(struct onednn *dnn, int threads)
{
	dnn->threads = 1;
	dnn->narrowed = dnn->on_tbb && onednn_tbb_narrow(dnn, threads);
	if (!dnn->threads_set)
		return;
	dnn->threads_set(threads);
	if (!dnn->team_run)
		return;
	dnn->threads = threads;
	if (dnn->on_tbb || threads < 2 ||
	    sched_getaffinity(0, sizeof(dnn->allowed), &dnn->allowed) != 0 ||
	    CPU_COUNT(&dnn->allowed) < threads)
		return;
	dnn->team_run(bind_member, dnn, (unsigned)threads, 0);
	dnn->bound = true;
}

enum prony_status onednn_start(struct onednn *dnn, int threads, struct error *err)
{
	enum prony_status status;

	start_threads(dnn, threads);
	if (dnn->deferred && dnn->engine_get_count(dnnl_cpu) == 0)
		return onednn_sycl_no_device(err);
	status = onednn_check(dnn->engine_create(&dnn->engine, dnnl_cpu, 0), "engine", "cpu", err);
	if (status != PRONY_OK)
		return status;
	return onednn_check(
		dnn->stream_create(&dnn->stream, dnn->engine, dnnl_stream_default_flags), "stream",
		"cpu", err);
}

void onednn_use_threads(const struct onednn *dnn, int threads)
{
	if (dnn->threads_set)
		dnn->threads_set(threads);
}

enum prony_status onednn_finish(const struct onednn *dnn, struct error *err)
{
	return dnn->deferred
		       ? onednn_check(dnn->stream_wait(dnn->stream), "execution", "stream", err)
		       : PRONY_OK;
}

void onednn_stop(struct onednn *dnn)
{
	if (dnn->stream)
		dnn->stream_destroy(dnn->stream);
	if (dnn->engine)
		dnn->engine_destroy(dnn->engine);
	if (dnn->bound || dnn->narrowed)
		(void)sched_setaffinity(0, sizeof(dnn->allowed), &dnn->allowed);
	dnn->stream = NULL;
	dnn->engine = NULL;
	dnn->bound = dnn->narrowed = false;
}

void onednn_version_text(const struct onednn *dnn, char *out, size_t out_bytes)
{
	const dnnl_version_t *version = dnn->version();

	snprintf(out, out_bytes, "%d.%d.%d", version->major, version->minor, version->patch);
}

const char *onednn_runtime_text(const struct onednn *dnn)
{
	switch (dnn->version()->cpu_runtime) {
	case DNNL_RUNTIME_OMP:
		return "openmp";
	case DNNL_RUNTIME_TBB:
		return "tbb";
	case DNNL_RUNTIME_SYCL:
		return "sycl";
	default:
		return "sequential";
	}
}

int onednn_threads(const struct onednn *dnn)
{
	if (dnn->version()->cpu_runtime == DNNL_RUNTIME_SEQ)
		return 1;
	if (dnn->on_tbb)
		return onednn_tbb_threads(dnn);
	return dnn->threads_max ? dnn->threads_max() : -1;
}

const char *onednn_isa_text(const struct onednn *dnn)
{
	static const struct {
		unsigned isa;
		const char *name;
	} names[] = {
		{dnnl_cpu_isa_sse41, "sse41"},
		{dnnl_cpu_isa_avx, "avx"},
		{dnnl_cpu_isa_avx2, "avx2"},
		{dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
		{dnnl_cpu_isa_avx2_vnni_2, "avx2_vnni_2"},
		{dnnl_cpu_isa_avx512_core, "avx512_core"},
		{dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
		{dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
		{dnnl_cpu_isa_avx512_core_fp16, "avx512_core_fp16"},
		{dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
		{dnnl_cpu_isa_avx512_core_amx_fp16, "avx512_core_amx_fp16"},
	};
	unsigned isa = (unsigned)dnn->get_effective_cpu_isa();
	const char *best = "unknown";

	/* A newer library may use a newer set: this names the widest known set that it contains. */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((isa & names[i].isa) == names[i].isa)
			best = names[i].name;
	}
	return best;
}

bool onednn_processor_has_bf16(void)
{
#if defined(__x86_64__)
	/* Every processor with AMX also has AVX512_BF16. */
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512bf16");
#else
	return false;
#endif
}

bool onednn_has_bf16(const struct onednn *dnn)
{
	unsigned isa = (unsigned)dnn->get_effective_cpu_isa();

	return onednn_processor_has_bf16() &&
	       (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

dnnl_data_type_t onednn_type(const struct onednn *dnn, const_dnnl_memory_desc_t desc)
{
	dnnl_data_type_t type = dnnl_data_type_undef;

	dnn->memory_desc_query(desc, dnnl_query_data_type, &type);
	return type;
}

enum prony_status onednn_check(dnnl_status_t status, const char *what, const char *name,
			       struct error *err)
{
	switch (status) {
	case dnnl_success:
		return PRONY_OK;
	case dnnl_out_of_memory:
		return error_set(err, PRONY_OUT_OF_MEMORY,
				 "oneDNN is out of memory for the %s of '%s'", what, name);
	case dnnl_unimplemented:
		return error_set(
			err, PRONY_UNSUPPORTED,
			"oneDNN has no implementation on this processor for the %s of '%s'", what,
			name);
	default:
		return error_set(err, PRONY_INTERNAL,
				 "oneDNN: the %s of '%s' failed with status %d", what, name,
				 (int)status);
	}
}

struct share {
	const struct onednn *dnn;
	size_t count, grain;
	void (*body)(void *data, size_t first, size_t end);
	void *data;
};

static void run_share(void *data)
{
	const struct share *share = data;
	size_t members = (size_t)share->dnn->team_size(),
	       member = (size_t)share->dnn->team_member();
	size_t grains = (share->count + share->grain - 1) / share->grain;
	size_t first = grains * member / members * share->grain;
	size_t end = grains * (member + 1) / members * share->grain;

	if (end > share->count)
		end = share->count;
	if (first < end)
		share->body(share->data, first, end);
}

static void split(const struct onednn *dnn, int threads, struct share *share)
{
	if (threads > 1 && dnn->team_run)
		dnn->team_run(run_share, share, (unsigned)threads, 0);
	else if (share->count > 0)
		share->body(share->data, 0, share->count);
}

void onednn_parallel(const struct onednn *dnn, int threads, size_t count,
		     void (*body)(void *data, size_t first, size_t end), void *data)
{
	/* Shares are whole cache lines, so that no two threads write into the same one. */
	struct share share = {.dnn = dnn, .count = count, .grain = 64, .body = body, .data = data};

	split(dnn, threads, &share);
}

void onednn_split(const struct onednn *dnn, int threads, size_t count,
		  void (*body)(void *data, size_t first, size_t end), void *data)
{
	struct share share = {.dnn = dnn, .count = count, .grain = 1, .body = body, .data = data};

	split(dnn, threads, &share);
}
