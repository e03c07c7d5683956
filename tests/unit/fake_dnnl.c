/* A fake libdnnl that computes nothing. FAKE_DNNL names its run-time: sycl, tbb, pool, or old for a
 * version 2. With sycl its primitives complete on a wait, as in the real library. It needs
 * fake_sycl.c, as the real library needs SYCL. */
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

int fake_sycl_here(void);
int fake_dnnl_pending(void);

static int pending;

static int is(const char *how)
{
	const char *asked = getenv("FAKE_DNNL");

	return asked && strcmp(asked, how) == 0;
}

int fake_dnnl_pending(void)
{
	return pending;
}

const dnnl_version_t *dnnl_version(void)
{
	static dnnl_version_t version;

	version = (dnnl_version_t){.major = is("old") ? 2 : 3,
				   .minor = 13,
				   .patch = fake_sycl_here(),
				   .cpu_runtime = is("pool")  ? DNNL_RUNTIME_THREADPOOL
						  : is("tbb") ? DNNL_RUNTIME_TBB
							      : DNNL_RUNTIME_SYCL};
	return &version;
}

size_t dnnl_engine_get_count(dnnl_engine_kind_t kind)
{
	return kind == dnnl_cpu && !getenv("FAKE_DNNL_NO_CPU");
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
				     int count, const dnnl_exec_arg_t *args)
{
	(void)primitive;
	(void)stream;
	(void)count;
	(void)args;
	pending++;
	return dnnl_success;
}

dnnl_status_t dnnl_stream_wait(dnnl_stream_t stream)
{
	(void)stream;
	pending = 0;
	return dnnl_success;
}
