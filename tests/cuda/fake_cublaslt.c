/*
 * cuBLASLt on the CPU, libcublasLt.so.13 of the tests: products by plain loops, on the fake
 * driver's streams. It refuses what the library refuses or a GPU leaves undefined: host pointers,
 * leading dimensions that are too small, combinations of types without an algorithm, addresses that
 * are less aligned than promised, a workspace that is smaller than the algorithm's, outputs that
 * overlap inputs, an algorithm of another product. TF32 rounds its inputs to ten bits.
 * FAKE_CUBLASLT_PLAIN: it has no epilogues.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cuda/cublaslt.h"
#include "tests/cuda/fake_driver.h"

#define API FAKE_EXPORT __attribute__((used))

struct matrix {
	int type;
	uint64_t rows, columns;
	int64_t leading, stride;
	int32_t batch;
};

struct product {
	int compute, scale_type;
	int32_t operations[2]; /* of a and b */
	uint32_t epilogue;
	int32_t bias_type; /* -1: not set */
	const void *bias;
};

struct preference {
	uint64_t workspace;
	uint32_t alignment[4]; /* of a, b, c, d */
	uint32_t reductions;   /* cublasLtReductionScheme_t */
};

/* What an algorithm's opaque words hold. */
enum { WORD_MARK, WORD_PROBLEM, WORD_WORKSPACE, WORD_ALIGNMENT };
#define MARK 0x66616b65626c6173u

struct job {
	struct product product;
	struct matrix a_layout, b_layout, d_layout;
	const char *a, *b;
	char *d, *workspace;
	size_t workspace_bytes;
	float alpha, beta;
	int64_t m, n, k;
};

static int refuse(const char *why)
{
	fprintf(stderr, "fake cublasLt: %s\n", why);
	return CUBLAS_STATUS_INVALID_VALUE;
}

static size_t bytes_of(int type)
{
	return type == CUDA_R_32F ? 4 : 2;
}

static float read_number(const char *at, int type)
{
	uint16_t half;
	uint32_t bits;
	float value;

	if (type == CUDA_R_32F) {
		memcpy(&value, at, 4);
		return value;
	}
	memcpy(&half, at, 2);
	if (type == CUDA_R_16BF) {
		bits = (uint32_t)half << 16;
	} else {
		int exponent = half >> 10 & 31;
		uint32_t fraction = half & 1023, sign = (uint32_t)(half >> 15) << 31;

		if (exponent == 0) {
			value = ldexpf((float)fraction, -24);
			return sign ? -value : value;
		}
		bits = sign | (exponent == 31 ? 0x7f800000u : (uint32_t)(exponent + 112) << 23) |
		       fraction << 13;
	}
	memcpy(&value, &bits, 4);
	return value;
}

/* Rounds to nearest, ties to even, keeping so many bits after the point. */
static float rounded(float value, int kept)
{
	uint32_t bits, drop = 23 - (uint32_t)kept;

	memcpy(&bits, &value, 4);
	if ((bits & 0x7f800000u) == 0x7f800000u)
		return value;
	bits += ((uint32_t)1 << (drop - 1)) - 1 + (bits >> drop & 1);
	bits = bits >> drop << drop;
	memcpy(&value, &bits, 4);
	return value;
}

static uint16_t half_of(float value)
{
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	float size = fabsf(value);
	uint32_t bits;

	if (isnan(value))
		return 0x7e00;
	if (size < 0x1p-14f)
		return (uint16_t)(sign | (uint16_t)rintf(size * 0x1p24f));
	size = rounded(size, 10);
	if (size > 65504)
		return sign | 0x7c00;
	memcpy(&bits, &size, 4);
	return (uint16_t)(sign | ((bits >> 23) - 112) << 10 | (bits >> 13 & 1023));
}

static void write_number(char *at, int type, float value)
{
	uint16_t half;
	uint32_t bits;

	if (type == CUDA_R_32F) {
		memcpy(at, &value, 4);
		return;
	}
	if (type == CUDA_R_16BF) {
		value = rounded(value, 7);
		memcpy(&bits, &value, 4);
		half = (uint16_t)(bits >> 16);
	} else {
		half = half_of(value);
	}
	memcpy(at, &half, 2);
}

/* Element (row, column) of op(matrix), column-major. */
static size_t place(const struct matrix *layout, int operation, int64_t row, int64_t column)
{
	int64_t r = operation == CUBLAS_OP_T ? column : row,
		c = operation == CUBLAS_OP_T ? row : column;

	return (size_t)(r + c * layout->leading) * bytes_of(layout->type);
}

/* op(matrix) as numbers, row by row. */
static float *unpack(const struct matrix *layout, int operation, const char *from, int64_t rows,
		     int64_t columns, bool tf32)
{
	float *out = malloc((size_t)(rows * columns) * sizeof(*out));

	for (int64_t i = 0; out && i < rows; i++) {
		for (int64_t k = 0; k < columns; k++) {
			float value =
				read_number(from + place(layout, operation, i, k), layout->type);

			out[i * columns + k] = tf32 ? rounded(value, 10) : value;
		}
	}
	return out;
}

static void multiply(const struct job *job, const char *a, const char *b, char *d)
{
	const struct product *p = &job->product;
	bool tf32 = p->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
	float *left = unpack(&job->a_layout, p->operations[0], a, job->m, job->k, tf32);
	float *right = unpack(&job->b_layout, p->operations[1], b, job->k, job->n, tf32);
	float *row = malloc((size_t)job->n * sizeof(*row));

	if (!left || !right || !row)
		abort();
	for (int64_t i = 0; i < job->m; i++) {
		memset(row, 0, (size_t)job->n * sizeof(*row));
		for (int64_t k = 0; k < job->k; k++) {
			float factor = left[i * job->k + k];

			for (int64_t j = 0; j < job->n; j++)
				row[j] += factor * right[k * job->n + j];
		}
		for (int64_t j = 0; j < job->n; j++) {
			char *at = d + place(&job->d_layout, CUBLAS_OP_N, i, j);
			float value = job->alpha * row[j];

			if (job->beta != 0)
				value += job->beta * read_number(at, job->d_layout.type);
			if (p->epilogue & 4)
				value += read_number((const char *)p->bias +
							     (size_t)i * bytes_of(p->bias_type),
						     p->bias_type);
			if (p->epilogue & CUBLASLT_EPILOGUE_RELU && value < 0)
				value = 0;
			write_number(at, job->d_layout.type, value);
		}
	}
	free(row);
	free(right);
	free(left);
}

static void run(void *data)
{
	const struct job *job = data;

	/* Whatever the workspace held is lost. */
	memset(job->workspace, 0xff, job->workspace_bytes);
	for (int32_t i = 0; i < job->d_layout.batch; i++)
		multiply(job,
			 job->a + i * job->a_layout.stride * (int64_t)bytes_of(job->a_layout.type),
			 job->b + i * job->b_layout.stride * (int64_t)bytes_of(job->b_layout.type),
			 job->d + i * job->d_layout.stride * (int64_t)bytes_of(job->d_layout.type));
}

/* A number that differs between products. */
static uint64_t problem_of(const struct product *p, const struct matrix *const layouts[3])
{
	uint64_t words[] = {(uint64_t)p->compute, (uint64_t)p->operations[0],
			    (uint64_t)p->operations[1], p->epilogue};
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = (hash ^ words[i]) * 1099511628211u;
	for (int i = 0; i < 3; i++) {
		const struct matrix *m = layouts[i];
		uint64_t parts[] = {(uint64_t)m->type,	 m->rows,
				    m->columns,		 (uint64_t)m->leading,
				    (uint64_t)m->stride, (uint64_t)m->batch};

		for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
			hash = (hash ^ parts[k]) * 1099511628211u;
	}
	return hash;
}

/* Why there is no such product; NULL if there is. */
static const char *judge(const struct product *p, const struct matrix *a, const struct matrix *b,
			 const struct matrix *d)
{
	bool ta = p->operations[0] == CUBLAS_OP_T, tb = p->operations[1] == CUBLAS_OP_T;

	if (p->scale_type != CUDA_R_32F)
		return "the scale type is not fp32";
	if (a->type != b->type || (d->type != a->type && d->type != CUDA_R_32F))
		return "no algorithm for these types";
	if (p->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type != CUDA_R_32F)
		return "tf32 needs inputs of fp32";
	if ((ta ? a->columns : a->rows) != d->rows || (tb ? b->rows : b->columns) != d->columns ||
	    (ta ? a->rows : a->columns) != (tb ? b->columns : b->rows))
		return "rows and columns do not fit";
	if (a->batch != b->batch || a->batch != d->batch)
		return "the batches differ";
	if (d->batch > 1 && d->stride < d->leading * (int64_t)(d->columns - 1) + (int64_t)d->rows)
		return "the outputs of a batch overlap";
	if (p->epilogue != CUBLASLT_EPILOGUE_DEFAULT && getenv("FAKE_CUBLASLT_PLAIN"))
		return "no epilogues";
	if (p->epilogue & CUBLASLT_EPILOGUE_BIAS && p->bias_type != d->type)
		return "the bias has another type than the output";
	return NULL;
}

/* From the first element to the last. */
static size_t extent(const struct matrix *m)
{
	int64_t last = m->stride * (m->batch - 1) + m->leading * (int64_t)(m->columns - 1) +
		       (int64_t)m->rows;

	return (size_t)last * bytes_of(m->type);
}

static bool in_memory(const void *at, const struct matrix *m)
{
	return at && fake_cuda_is_device(at, extent(m));
}

static bool overlap(const void *a, const struct matrix *a_layout, const void *b,
		    const struct matrix *b_layout)
{
	uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;

	return first < second + extent(b_layout) && second < first + extent(a_layout);
}

API size_t cublasLtGetVersion(void)
{
	return 130100;
}

API const char *cublasLtGetStatusString(int status)
{
	return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "invalid value";
}

API int cublasLtCreate(cublaslt_handle *handle)
{
	*handle = malloc(1);
	return CUBLAS_STATUS_SUCCESS;
}

API int cublasLtDestroy(cublaslt_handle handle)
{
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

API int cublasLtMatmulDescCreate(cublaslt_product *out, int compute, int scale_type)
{
	struct product *p = calloc(1, sizeof(*p));

	*p = (struct product){.compute = compute,
			      .scale_type = scale_type,
			      .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
			      .bias_type = -1};
	*out = p;
	return CUBLAS_STATUS_SUCCESS;
}

API int cublasLtMatmulDescDestroy(cublaslt_product product)
{
	free(product);
	return CUBLAS_STATUS_SUCCESS;
}

API int cublasLtMatmulDescSetAttribute(cublaslt_product product, int attribute, const void *value,
				       size_t bytes)
{
	struct product *p = product;
	struct {
		int attribute;
		void *to;
		size_t bytes;
	} rows[] = {{CUBLASLT_MATMUL_DESC_TRANSA, &p->operations[0], 4},
		    {CUBLASLT_MATMUL_DESC_TRANSB, &p->operations[1], 4},
		    {CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue, 4},
		    {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof(void *)},
		    {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &p->bias_type, 4}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].attribute == attribute && rows[i].bytes == bytes) {
			memcpy(rows[i].to, value, bytes);
			return CUBLAS_STATUS_SUCCESS;
		}
	}
	return refuse("an attribute of a product is unknown or has another size");
}

API int cublasLtMatrixLayoutCreate(cublaslt_matrix *out, int type, uint64_t rows, uint64_t columns,
				   int64_t leading)
{
	struct matrix *m;

	if (rows == 0 || columns == 0 || leading < (int64_t)rows)
		return refuse("a leading dimension is smaller than the number of rows");
	m = calloc(1, sizeof(*m));
	*m = (struct matrix){
		.type = type, .rows = rows, .columns = columns, .leading = leading, .batch = 1};
	*out = m;
	return CUBLAS_STATUS_SUCCESS;
}

API int cublasLtMatrixLayoutDestroy(cublaslt_matrix matrix)
{
	free(matrix);
	return CUBLAS_STATUS_SUCCESS;
}

API int cublasLtMatrixLayoutSetAttribute(cublaslt_matrix matrix, int attribute, const void *value,
					 size_t bytes)
{
	struct matrix *m = matrix;

	if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof(m->batch))
		memcpy(&m->batch, value, bytes);
	else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
		 bytes == sizeof(m->stride))
		memcpy(&m->stride, value, bytes);
	else
		return refuse("an attribute of a matrix is unknown or has another size");
	return CUBLAS_STATUS_SUCCESS;
}

API int cublasLtMatmulPreferenceCreate(cublaslt_preference *out)
{
	struct preference *p = calloc(1, sizeof(*p));

	*p = (struct preference){.alignment = {256, 256, 256, 256}};
	*out = p;
	return CUBLAS_STATUS_SUCCESS;
}

API int cublasLtMatmulPreferenceDestroy(cublaslt_preference preference)
{
	free(preference);
	return CUBLAS_STATUS_SUCCESS;
}

API int cublasLtMatmulPreferenceSetAttribute(cublaslt_preference preference, int attribute,
					     const void *value, size_t bytes)
{
	struct preference *p = preference;
	int which = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;

	if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof(p->workspace))
		memcpy(&p->workspace, value, bytes);
	else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
		 bytes == sizeof(p->reductions))
		memcpy(&p->reductions, value, bytes);
	else if (which >= 0 && which < 4 && bytes == sizeof(p->alignment[which]))
		memcpy(&p->alignment[which], value, bytes);
	else
		return refuse("an attribute of a preference is unknown or has another size");
	return CUBLAS_STATUS_SUCCESS;
}

/* The only algorithm wants a workspace where one is allowed, of a size that depends on the product.
 */
API int cublasLtMatmulAlgoGetHeuristic(cublaslt_handle handle, cublaslt_product product,
				       cublaslt_matrix a, cublaslt_matrix b, cublaslt_matrix c,
				       cublaslt_matrix d, cublaslt_preference preference, int room,
				       struct cublaslt_choice *choices, int *count)
{
	const struct product *p = product;
	const struct preference *wishes = preference;
	const struct matrix *const layouts[] = {a, b, d};
	const char *why = judge(p, a, b, d);
	uint64_t bytes = 64 + ((const struct matrix *)d)->rows % 7 * 64;

	*count = 0;
	if (!handle || room < 1 || !c)
		return refuse("the search for an algorithm lacks an argument");
	if (wishes->reductions != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
		why = "sums may be added up in another type than fp32";
	if (why) {
		refuse(why);
		return CUBLAS_STATUS_NOT_SUPPORTED;
	}
	*choices = (struct cublaslt_choice){.workspace = bytes <= wishes->workspace ? bytes : 0};
	choices->algorithm.data[WORD_MARK] = MARK;
	choices->algorithm.data[WORD_PROBLEM] = problem_of(p, layouts);
	choices->algorithm.data[WORD_WORKSPACE] = choices->workspace;
	for (int i = 0; i < 4; i++)
		choices->algorithm.data[WORD_ALIGNMENT + i] = wishes->alignment[i];
	*count = 1;
	return CUBLAS_STATUS_SUCCESS;
}

/* Why the addresses of a product may not be used; NULL if they may. */
static const char *judge_addresses(const struct job *job, const uint64_t *words, const void *c)
{
	const void *addresses[] = {job->a, job->b, c, job->d};

	if (!in_memory(job->a, &job->a_layout) || !in_memory(job->b, &job->b_layout) ||
	    !in_memory(job->d, &job->d_layout))
		return "a matrix is not in the device's memory";
	if (c != job->d)
		return "c is not d";
	for (int i = 0; i < 4; i++) {
		if ((uintptr_t)addresses[i] % words[WORD_ALIGNMENT + i] != 0)
			return "a matrix is less aligned than promised";
	}
	if (overlap(job->a, &job->a_layout, job->d, &job->d_layout) ||
	    overlap(job->b, &job->b_layout, job->d, &job->d_layout))
		return "the output overlaps an input";
	if (job->workspace_bytes < words[WORD_WORKSPACE] ||
	    (words[WORD_WORKSPACE] > 0 &&
	     !fake_cuda_is_device(job->workspace, job->workspace_bytes)))
		return "the workspace is smaller than the algorithm's, or not in the device's "
		       "memory";
	if ((uintptr_t)job->workspace % 256 != 0)
		return "the workspace does not begin at a multiple of 256 bytes";
	if (job->product.epilogue & CUBLASLT_EPILOGUE_BIAS &&
	    !fake_cuda_is_device(job->product.bias,
				 (size_t)job->m * bytes_of(job->product.bias_type)))
		return "the bias is not in the device's memory";
	return NULL;
}

API int cublasLtMatmul(cublaslt_handle handle, cublaslt_product product, const void *alpha,
		       const void *a, cublaslt_matrix a_layout, const void *b,
		       cublaslt_matrix b_layout, const void *beta, const void *c,
		       cublaslt_matrix c_layout, void *d, cublaslt_matrix d_layout,
		       const struct cublaslt_algorithm *algorithm, void *workspace,
		       size_t workspace_bytes, void *stream)
{
	const struct matrix *const layouts[] = {a_layout, b_layout, d_layout};
	struct job job = {.product = *(const struct product *)product,
			  .a_layout = *layouts[0],
			  .b_layout = *layouts[1],
			  .d_layout = *layouts[2],
			  .a = a,
			  .b = b,
			  .d = d,
			  .workspace = workspace,
			  .workspace_bytes = workspace_bytes,
			  .alpha = *(const float *)alpha,
			  .beta = *(const float *)beta};
	bool transposed = job.product.operations[0] == CUBLAS_OP_T;
	const char *why = judge(&job.product, layouts[0], layouts[1], layouts[2]);

	if (!handle || c_layout != d_layout)
		return refuse("a product lacks an argument");
	if (!why && (!algorithm || algorithm->data[WORD_MARK] != MARK ||
		     algorithm->data[WORD_PROBLEM] != problem_of(&job.product, layouts)))
		why = "the algorithm is for another product";
	job.m = (int64_t)job.d_layout.rows;
	job.n = (int64_t)job.d_layout.columns;
	job.k = (int64_t)(transposed ? job.a_layout.rows : job.a_layout.columns);
	if (!why)
		why = judge_addresses(&job, algorithm->data, c);
	if (why)
		return refuse(why);
	return fake_cuda_enqueue(stream, run, &job, sizeof(job)) == 0
		       ? CUBLAS_STATUS_SUCCESS
		       : CUBLAS_STATUS_EXECUTION_FAILED;
}
