#include "ceilings/matrix.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapters/native/cpu/onednn.h"
#include "base/clock.h"
#include "base/loader.h"

enum { OPERANDS = 3, CALLS_MIN = 3, CALL_PART = 4 };

/* A product C = A B of matrices filled with ones, so that every element of C must equal their
 * length; only then does its time count. */
struct product {
	const struct onednn *dnn;
	dnnl_primitive_t primitive;
	dnnl_memory_t memory[OPERANDS];
	void *data[OPERANDS]; /* A, B, C */
	int64_t n;
};

typedef __typeof__(dnnl_matmul_primitive_desc_create) create_matmul;

static void release(struct product *p)
{
	for (int i = 0; i < OPERANDS; i++) {
		if (p->memory[i])
			p->dnn->memory_destroy(p->memory[i]);
		free(p->data[i]);
	}
	if (p->primitive)
		p->dnn->primitive_destroy(p->primitive);
}

static void fill(void *data, size_t bytes, dnnl_data_type_t type)
{
	const uint16_t one = type == dnnl_bf16 ? 0x3f80 : 0x3c00; /* of 16 bits */

	if (type == dnnl_bf16 || type == dnnl_f16)
		for (size_t i = 0; i < bytes / sizeof(uint16_t); i++)
			((uint16_t *)data)[i] = one;
	else
		for (size_t i = 0; i < bytes / sizeof(float); i++)
			((float *)data)[i] = 1;
}

static enum prony_status make_memory(struct product *p, const_dnnl_primitive_desc_t chosen, int i,
				     struct error *err)
{
	static const dnnl_query_t which[OPERANDS] = {dnnl_query_src_md, dnnl_query_weights_md,
						     dnnl_query_dst_md};
	const_dnnl_memory_desc_t desc = p->dnn->primitive_desc_query_md(chosen, which[i], 0);
	size_t bytes = desc ? p->dnn->memory_desc_get_size(desc) : 0;

	if (bytes == 0 || posix_memalign(&p->data[i], 64, bytes))
		return error_set(err, PRONY_OUT_OF_MEMORY, "no memory for a matrix of %zu bytes",
				 bytes);
	fill(p->data[i], bytes, onednn_type(p->dnn, desc));
	return onednn_check(p->dnn->memory_create(&p->memory[i], desc, p->dnn->engine, p->data[i]),
			    "memory", "a matrix", err);
}

static enum prony_status make(struct product *p, create_matmul *create, dnnl_data_type_t type,
			      struct error *err)
{
	const dnnl_data_type_t types[OPERANDS] = {type, type, dnnl_f32};
	dnnl_dims_t dims = {p->n, p->n};
	dnnl_memory_desc_t descs[OPERANDS] = {NULL};
	dnnl_primitive_desc_t chosen = NULL;
	enum prony_status status = PRONY_OK;

	for (int i = 0; i < OPERANDS && status == PRONY_OK; i++)
		status = onednn_check(
			p->dnn->memory_desc_create_with_tag(&descs[i], 2, dims, types[i],
							    i < 2 ? dnnl_format_tag_any : dnnl_ab),
			"layout", "a matrix", err);
	if (status == PRONY_OK)
		status = onednn_check(
			create(&chosen, p->dnn->engine, descs[0], descs[1], NULL, descs[2], NULL),
			"matmul", "square", err);
	for (int i = 0; i < OPERANDS && status == PRONY_OK; i++)
		status = make_memory(p, chosen, i, err);
	if (status == PRONY_OK)
		status = onednn_check(p->dnn->primitive_create(&p->primitive, chosen), "matmul",
				      "square", err);
	if (chosen)
		p->dnn->primitive_desc_destroy(chosen);
	for (int i = 0; i < OPERANDS; i++)
		if (descs[i])
			p->dnn->memory_desc_destroy(descs[i]);
	return status;
}

static enum prony_status execute(struct product *p, struct error *err)
{
	dnnl_exec_arg_t args[OPERANDS] = {{DNNL_ARG_SRC, p->memory[0]},
					  {DNNL_ARG_WEIGHTS, p->memory[1]},
					  {DNNL_ARG_DST, p->memory[2]}};
	enum prony_status status = onednn_check(
		p->dnn->primitive_execute(p->primitive, p->dnn->stream, OPERANDS, args), "matmul",
		"square", err);

	if (status == PRONY_OK)
		status = onednn_check(p->dnn->stream_wait(p->dnn->stream), "matmul", "square", err);
	return status;
}

/* Raises *best, in FLOP/s, if the product is faster. */
static enum prony_status time_product(struct product *p, int64_t limit_ns, double *best,
				      struct error *err)
{
	double flops = 2.0 * (double)(p->n * p->n * p->n);
	int64_t begin = clock_monotonic_ns();
	enum prony_status status = execute(p, err);

	for (int calls = 0;
	     status == PRONY_OK && (calls < CALLS_MIN || clock_monotonic_ns() - begin < limit_ns);
	     calls++) {
		int64_t start = clock_monotonic_ns();
		status = execute(p, err);
		double rate = flops / (double)(clock_monotonic_ns() - start + 1) * 1e9;
		*best = rate > *best ? rate : *best;
	}
	const float *c = p->data[2];
	for (int64_t i = 0; i < p->n * p->n && status == PRONY_OK; i++)
		if (c[i] != (float)p->n)
			status = error_set(err, PRONY_INVALID,
					   "the matrix product is wrong, so its time is not used");
	return status;
}

/* The best rate over several sizes with so many threads. */
static enum prony_status best_rate(const struct ceilings_settings *s, struct onednn *dnn,
				   dnnl_data_type_t type, int threads, double *best, int64_t *size,
				   struct error *err)
{
	static const int64_t sizes[] = {384, 768, 1536, 2304};
	union {
		void *address;
		create_matmul *call;
	} found = {NULL};
	const struct loader_symbol symbols[] = {
		LOADER_SYMBOL(found.address, "dnnl_matmul_primitive_desc_create")};
	enum prony_status status = loader_resolve(dnn->handle, s->library, symbols, 1, err);

	if (status == PRONY_OK)
		status = onednn_start(dnn, threads, err);
	if (status == PRONY_OK && dnn->on_tbb && onednn_threads(dnn) != threads)
		status = error_set(err, PRONY_UNSUPPORTED,
				   "a libdnnl built with TBB cannot change its number of threads; "
				   "give one built with OpenMP");
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && status == PRONY_OK; i++) {
		struct product product = {.dnn = dnn, .n = sizes[i]};
		double before = *best, flops = 2.0 * (double)(sizes[i] * sizes[i] * sizes[i]);
		/* Skip a size whose single call would take too long. */
		if (*best > 0 && flops / *best * 1e9 > CALL_PART * (double)s->each_ns)
			break;
		status = make(&product, found.call, type, err);
		if (status == PRONY_OK)
			status = time_product(&product, s->each_ns / 2, best, err);
		if (*best > before)
			*size = sizes[i];
		release(&product);
	}
	onednn_stop(dnn);
	return status;
}

/* AVX512-FP16, which every processor with AMX-FP16 has too. The library reports what it found. */
static bool has_fp16(const struct onednn *dnn)
{
	unsigned isa = (unsigned)dnn->get_effective_cpu_isa();

	return (isa & dnnl_cpu_isa_avx512_core_fp16) == dnnl_cpu_isa_avx512_core_fp16;
}

static void measure(const struct ceilings_settings *s, struct onednn *dnn, dnnl_data_type_t type,
		    struct ceiling *out)
{
	struct error why = ERROR_INIT;
	double one = 0, all = 0;
	int64_t size = 0;
	char version[32];

	if ((type == dnnl_bf16 && !onednn_has_bf16(dnn)) || (type == dnnl_f16 && !has_fp16(dnn))) {
		snprintf(out->absent, sizeof out->absent,
			 "the processor or the library lacks the instructions");
		return;
	}
	enum prony_status status = best_rate(s, dnn, type, 1, &one, &size, &why);
	if (status == PRONY_OK)
		status = best_rate(s, dnn, type, s->cpu_count, &all, &size, &why);
	if (status != PRONY_OK) {
		snprintf(out->absent, sizeof out->absent, "%.150s", why.text);
		return;
	}
	onednn_version_text(dnn, version, sizeof version);
	out->one = one;
	out->all = all;
	snprintf(out->how, sizeof out->how, "oneDNN %.20s, %lld x %lld", version, (long long)size,
		 (long long)size);
}

void matrix_measure(const struct ceilings_settings *s, struct ceilings *out)
{
	const struct {
		dnnl_data_type_t type;
		struct ceiling *out;
	} rows[] = {{dnnl_f32, &out->matrix_fp32},
		    {dnnl_f16, &out->matrix_fp16},
		    {dnnl_bf16, &out->matrix_bf16}};
	struct onednn dnn = {.handle = NULL};
	struct error why = ERROR_INIT;
	cpu_set_t cpus;

	if (!s->library)
		error_set(&why, PRONY_MISSING, "%s", s->no_library ? s->no_library : "no oneDNN");
	else
		onednn_load(&dnn, s->library, &why);
	/* Let the library's threads use the allowed processors. */
	CPU_ZERO(&cpus);
	for (int i = 0; i < s->cpu_count; i++)
		CPU_SET((size_t)s->cpus[i], &cpus);
	if (why.code == PRONY_OK)
		(void)sched_setaffinity(0, sizeof cpus, &cpus);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ceiling *row = rows[i].out;
		if (why.code == PRONY_OK)
			measure(s, &dnn, rows[i].type, row);
		else
			snprintf(row->absent, sizeof row->absent, "%.150s", why.text);
	}
}
