/* Matrix products by cuBLASLt, and sums of columns. The library's matrices are column-major: a
 * row-major matrix is its transpose there, so out = a b is computed as out' = b' a'. */
#include "adapters/native/cuda/cuda.h"

#include <string.h>

#define WORKSPACE_BYTES_MAX ((uint64_t)32 << 20)

/* Operands start at multiples of 64 bytes. */
#define OPERAND_ALIGNMENT 64
/* Where a bias may be, while an algorithm is chosen: the library asks for an address. */
#define ANY_ADDRESS ((void *)(uintptr_t)OPERAND_ALIGNMENT)

/* A product that is ready to be issued. The arguments of its command are a, b, c, workspace, bias.
 */
struct ready {
	cublaslt_product description;
	cublaslt_matrix a, b, c;
	struct cublaslt_algorithm algorithm;
	size_t workspace;
	int64_t offset_a, offset_b, offset_c; /* bytes */
	int64_t start_a, start_b, start_c;    /* the same, from the start of the operand viewed */
	float beta;
	bool bias;
};

static int type_of(enum dtype type)
{
	return type == DTYPE_F16 ? CUDA_R_16F : type == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static void release(struct device *device, const void *detail)
{
	const struct ready *ready = detail;
	const struct cublaslt *blas = &device->blas;
	cublaslt_matrix matrices[] = {ready->a, ready->b, ready->c};

	for (int i = 0; i < 3; i++) {
		if (matrices[i])
			blas->MatrixLayoutDestroy(matrices[i]);
	}
	if (ready->description)
		blas->MatmulDescDestroy(ready->description);
}

static enum prony_status run(struct program *program, const struct command *command,
			     struct error *err)
{
	const struct device *device = program->device;
	const struct cublaslt *blas = &device->blas;
	const struct ready *ready = command->work->detail;
	const char *a = cuda_data(program, command, 0), *b = cuda_data(program, command, 1);
	char *c = cuda_data(program, command, 2);
	const void *bias = cuda_data(program, command, 4);
	const float alpha = 1;
	int status = CUBLAS_STATUS_SUCCESS;

	if (ready->bias)
		status = blas->MatmulDescSetAttribute(
			ready->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = blas->Matmul(
			device->blas_handle, ready->description, &alpha, b + ready->offset_b,
			ready->b, a + ready->offset_a, ready->a, &ready->beta, c + ready->offset_c,
			ready->c, c + ready->offset_c, ready->c, &ready->algorithm,
			cuda_workspace_data(program, command, 3), ready->workspace, device->stream);
	return cublaslt_check(blas, status, "product", command->name, err);
}

/* A row-major matrix as the library sees it. */
static int describe_matrix(const struct cublaslt *blas, enum dtype type, int64_t rows,
			   int64_t columns, int64_t leading, const struct cuda_product *p,
			   int64_t stride, cublaslt_matrix *out)
{
	int32_t batch = (int32_t)p->batch;
	int status = blas->MatrixLayoutCreate(out, type_of(type), (uint64_t)columns, (uint64_t)rows,
					      leading);

	if (status == CUBLAS_STATUS_SUCCESS && p->batch > 1)
		status = blas->MatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
							&batch, sizeof(batch));
	if (status == CUBLAS_STATUS_SUCCESS && p->batch > 1)
		status = blas->MatrixLayoutSetAttribute(
			*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride));
	return status;
}

static int describe_product(const struct device *device, const struct cuda_product *p,
			    cublaslt_product *out)
{
	const struct cublaslt *blas = &device->blas;
	bool strict = device->precision == PRECISION_FP32 || p->exact,
	     tf32 = device->precision == PRECISION_TF32;
	/* a and b change places. */
	int32_t first = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
		second = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
	uint32_t epilogue = (uint32_t)(p->bias && p->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
				       : p->bias	  ? CUBLASLT_EPILOGUE_BIAS
				       : p->relu	  ? CUBLASLT_EPILOGUE_RELU
							  : CUBLASLT_EPILOGUE_DEFAULT);
	int32_t bias_type = type_of(p->c);
	const void *bias = ANY_ADDRESS;
	int status = blas->MatmulDescCreate(out,
					    strict ? CUBLAS_COMPUTE_32F_PEDANTIC
					    : tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
						   : CUBLAS_COMPUTE_32F,
					    CUDA_R_32F);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = blas->MatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSA, &first,
						      sizeof(first));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = blas->MatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSB, &second,
						      sizeof(second));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = blas->MatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_EPILOGUE,
						      &epilogue, sizeof(epilogue));
	if (status == CUBLAS_STATUS_SUCCESS && p->bias)
		status = blas->MatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
						      &bias_type, sizeof(bias_type));
	if (status == CUBLAS_STATUS_SUCCESS && p->bias)
		status = blas->MatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
						      &bias, sizeof(bias));
	return status;
}

/* The largest power of two that divides all addresses of matrices that begin so many bytes after an
 * operand, at most OPERAND_ALIGNMENT. */
static uint32_t alignment(int64_t offset, int64_t stride_bytes)
{
	uint32_t bytes = OPERAND_ALIGNMENT;

	while (offset % bytes != 0 || stride_bytes % bytes != 0)
		bytes /= 2;
	return bytes;
}

static int set_preference(const struct cublaslt *blas, const struct cuda_product *p,
			  const struct ready *ready, cublaslt_preference preference)
{
	uint64_t most = WORKSPACE_BYTES_MAX;
	bool batched = p->batch > 1;
	uint32_t first = alignment(ready->start_b,
				   batched ? p->stride_b * (int64_t)dtype_bytes(p->b) : 0),
		 second = alignment(ready->start_a,
				    batched ? p->stride_a * (int64_t)dtype_bytes(p->a) : 0),
		 third = alignment(ready->start_c,
				   batched ? p->stride_c * (int64_t)dtype_bytes(p->c) : 0);
	/* Parts of a sum are added up in fp32. */
	uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	const struct {
		int attribute;
		const uint32_t *value;
	} rows[] = {{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme},
		    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &first},
		    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &second},
		    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &third},
		    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &third}};
	int status = blas->MatmulPreferenceSetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most));

	for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < 5; i++)
		status = blas->MatmulPreferenceSetAttribute(preference, rows[i].attribute,
							    rows[i].value, sizeof(uint32_t));
	return status;
}

/* Asks the library's heuristics for the algorithm it expects to be the fastest. */
static int choose(const struct device *device, const struct cuda_product *p, struct ready *ready)
{
	const struct cublaslt *blas = &device->blas;
	struct cublaslt_choice choice;
	cublaslt_preference preference = NULL;
	int found = 0, status = blas->MatmulPreferenceCreate(&preference);

	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	status = set_preference(blas, p, ready, preference);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = blas->MatmulAlgoGetHeuristic(device->blas_handle, ready->description,
						      ready->b, ready->a, ready->c, ready->c,
						      preference, 1, &choice, &found);
	blas->MatmulPreferenceDestroy(preference);
	if (status == CUBLAS_STATUS_SUCCESS && (found == 0 || choice.state != 0))
		status = CUBLAS_STATUS_NOT_SUPPORTED;
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	ready->algorithm = choice.algorithm;
	ready->workspace = choice.workspace;
	return status;
}

/* Fills `ready`; what was made before a failure is released by the caller. */
static int prepare(const struct device *device, const struct cuda_product *p, struct ready *ready)
{
	const struct cublaslt *blas = &device->blas;
	int status = describe_product(device, p, &ready->description);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrix(blas, p->a, p->transpose_a ? p->k : p->m,
					 p->transpose_a ? p->m : p->k, p->lda, p, p->stride_a,
					 &ready->a);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrix(blas, p->b, p->transpose_b ? p->n : p->k,
					 p->transpose_b ? p->k : p->n, p->ldb, p, p->stride_b,
					 &ready->b);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrix(blas, p->c, p->m, p->n, p->ldc, p, p->stride_c, &ready->c);
	return status == CUBLAS_STATUS_SUCCESS ? choose(device, p, ready) : status;
}

/* Appends what an epilogue computes, as a kernel of its own. */
static void add_epilogue(struct lowering *l, const char *name, const struct cuda_product *p, int c,
			 int bias)
{
	struct work *work = cuda_kernel(l, name, "bias", "row_epilogue", p->c, p->m * p->n);

	cuda_operand(l, work, c);
	cuda_operand(l, work, bias);
	cuda_long(l, work, p->m);
	cuda_long(l, work, p->n);
	cuda_int(l, work, p->relu);
}

/* The product without its epilogue, if that can follow as a kernel; false if there is none. */
static bool drop_epilogue(struct cuda_product *p, int64_t offset_c)
{
	bool dense = p->batch == 1 && p->ldc == p->n && offset_c == 0;

	if (!dense || (!p->bias && !p->relu))
		return false;
	p->bias = p->relu = false;
	return true;
}

enum prony_status cuda_product(struct lowering *l, const char *name, const char *what,
			       const struct cuda_product *product, int a, int64_t offset_a, int b,
			       int64_t offset_b, int c, int64_t offset_c, int bias,
			       struct error *err)
{
	struct device *device = l->program->device;
	struct ready *ready = arena_alloc(&l->program->arena, sizeof(*ready));
	struct cuda_product plain = *product;
	struct work *work;
	int found;
	enum prony_status status;

	*ready = (struct ready){.offset_a = offset_a * (int64_t)dtype_bytes(product->a),
				.offset_b = offset_b * (int64_t)dtype_bytes(product->b),
				.offset_c = offset_c * (int64_t)dtype_bytes(product->c),
				.beta = product->accumulate ? 1 : 0,
				.bias = product->bias};
	ready->start_a = ready->offset_a + (int64_t)program_shift(l->program, a);
	ready->start_b = ready->offset_b + (int64_t)program_shift(l->program, b);
	ready->start_c = ready->offset_c + (int64_t)program_shift(l->program, c);
	found = prepare(device, &plain, ready);
	if (found != CUBLAS_STATUS_SUCCESS && drop_epilogue(&plain, offset_c)) {
		release(device, ready);
		ready->description = NULL;
		ready->a = ready->b = ready->c = NULL;
		ready->bias = false;
		found = prepare(device, &plain, ready);
	}
	status = cublaslt_check(&device->blas, found, what, name, err);
	if (status != PRONY_OK) {
		release(device, ready);
		return status;
	}
	work = cuda_call(l, name, what, run, ready);
	work->release = release;
	cuda_operand(l, work, a);
	cuda_operand(l, work, b);
	cuda_operand(l, work, c);
	cuda_operand(l, work,
		     ready->workspace > 0 ? cuda_workspace(l, ready->workspace) : OPERAND_NONE);
	cuda_operand(l, work, ready->bias ? bias : OPERAND_NONE);
	if (plain.bias != product->bias || plain.relu != product->relu)
		add_epilogue(l, name, product, c, bias);
	return PRONY_OK;
}

enum { SUM_COLUMNS = 32, SUM_ROWS = 256, SUM_PARTS_MAX = 256, SUM_THREADS = 256 };

static void add_sums(struct lowering *l, const char *name, const char *what, enum dtype type,
		     int matrix, int64_t rows, int64_t columns, int64_t parts, int out)
{
	int64_t tiles = (columns + SUM_COLUMNS - 1) / SUM_COLUMNS;
	struct work *work =
		cuda_blocks(l, name, what, "column_sums", type, tiles * parts, SUM_THREADS);

	cuda_operand(l, work, out);
	cuda_operand(l, work, matrix);
	cuda_long(l, work, rows);
	cuda_long(l, work, columns);
	cuda_long(l, work, parts);
}

enum prony_status cuda_column_sums(struct lowering *l, const char *name, const char *what,
				   int matrix, int64_t rows, int64_t columns, int out,
				   struct error *err)
{
	enum dtype type = lower_layout(l, matrix)->type;
	int64_t parts = (rows + SUM_ROWS - 1) / SUM_ROWS;
	int partial;
	enum prony_status status;

	if (parts > SUM_PARTS_MAX)
		parts = SUM_PARTS_MAX;
	if (parts == 1) {
		add_sums(l, name, what, type, matrix, rows, columns, 1, out);
		return PRONY_OK;
	}
	status = lower_new(l, DTYPE_F32, 2, (const int64_t[]){parts, columns}, &partial, err);
	if (status != PRONY_OK)
		return status;
	add_sums(l, name, what, type, matrix, rows, columns, parts, partial);
	add_sums(l, name, what, DTYPE_F32, partial, parts, columns, 1, out);
	return PRONY_OK;
}
