/* Fills inputs of a user's model as asked, or by their names. */
#include "graph/input_fill.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/random.h"

#define NPY_MAX_BYTES ((size_t)1 << 34)
#define NPY_MAGIC "\x93NUMPY"

static bool parse_range(const char *text, struct input_fill *out)
{
	const char *dots = strstr(text, "..");
	int64_t width;
	char *end;

	if (dots == NULL || dots == text || dots[2] == '\0')
		return false;
	errno = 0;
	out->low = strtoll(text, &end, 10);
	if (end != dots)
		return false;
	out->high = strtoll(dots + 2, &end, 10);
	return *end == '\0' && errno == 0 && out->high >= out->low &&
	       !__builtin_sub_overflow(out->high, out->low, &width) && width < INT64_MAX;
}

enum prony_status input_fill_parse(const char *text, struct input_fill *out, struct error *err)
{
	static const char *const words[] = {"", "zeros", "ones", "positions"};
	size_t length = strlen(text);

	*out = (struct input_fill){.kind = INPUT_DRAWN};
	for (int i = INPUT_ZEROS; i <= INPUT_POSITIONS; i++)
		if (strcmp(text, words[i]) == 0)
			out->kind = (enum input_fill_kind)i;
	if (out->kind != INPUT_DRAWN)
		return PRONY_OK;
	if (length > 4 && strcmp(text + length - 4, ".npy") == 0) {
		out->kind = INPUT_FILE;
		out->path = text;
		return PRONY_OK;
	}
	if (parse_range(text, out)) {
		out->kind = INPUT_RANGE;
		return PRONY_OK;
	}
	return error_set(
		err, PRONY_USAGE,
		"'%.100s' is no content of an input; write ones, zeros, positions, a range "
		"of integers such as 0..99, or a file that ends in .npy",
		text);
}

struct input_fill input_fill_by_name(const char *name)
{
	static const struct {
		const char *part;
		enum input_fill_kind kind;
	} rows[] = {
		{"attention_mask", INPUT_ONES},	  {"input_mask", INPUT_ONES},
		{"token_type_id", INPUT_ZEROS},	  {"segment_id", INPUT_ZEROS},
		{"position_id", INPUT_POSITIONS},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (strstr(name, rows[i].part))
			return (struct input_fill){.kind = rows[i].kind};
	return (struct input_fill){.kind = INPUT_DRAWN};
}

/* IEEE 754 binary16, rounded to the nearest. */
static uint16_t to_half(double number)
{
	double size = fabs(number);
	unsigned sign = signbit(number) ? 0x8000 : 0, bits;
	int exponent;

	if (size < 0x1p-14) {
		bits = (unsigned)nearbyint(size * 0x1p24);
	} else if (size < 65520) {
		double fraction = frexp(size, &exponent) * 2 - 1;

		/* A fraction that rounds to 1 carries into the exponent. */
		bits = ((unsigned)(exponent + 14) << 10) + (unsigned)nearbyint(fraction * 1024);
	} else {
		bits = 0x7c00;
	}
	return (uint16_t)(sign | bits);
}

static double from_half(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double size = exponent == 0    ? fraction * 0x1p-24
		      : exponent == 31 ? (fraction ? NAN : INFINITY)
				       : ldexp(1024 + fraction, exponent - 25);

	return bits & 0x8000 ? -size : size;
}

/* Writes a number as the tensor's type. */
static void put(const struct tensor *tensor, int64_t i, double number)
{
	switch (tensor->dtype) {
	case DTYPE_F32:
		((float *)tensor->data)[i] = (float)number;
		break;
	case DTYPE_F64:
		((double *)tensor->data)[i] = number;
		break;
	case DTYPE_I32:
		((int32_t *)tensor->data)[i] = (int32_t)number;
		break;
	case DTYPE_I64:
		((int64_t *)tensor->data)[i] = (int64_t)number;
		break;
	case DTYPE_F16:
		((uint16_t *)tensor->data)[i] = to_half(number);
		break;
	case DTYPE_BF16: {
		float wide = (float)number;

		memcpy((uint16_t *)tensor->data + i, (const char *)&wide + 2, 2);
		break;
	}
	default:
		((uint8_t *)tensor->data)[i] = number != 0;
		break;
	}
}

/* An array of a .npy file. */
struct npy {
	char kind; /* f, i, u or b */
	int size;
	int64_t count;
	struct shape shape;
	const char *data;
};

static bool read_npy_shape(const char *header, struct npy *out)
{
	const char *at = strstr(header, "'shape': (");

	if (at == NULL)
		return false;
	at += strlen("'shape': (");
	while (*at != ')') {
		char *end;
		long long dim = strtoll(at, &end, 10);

		if (end == at || dim < 0 || out->shape.rank == TENSOR_MAX_RANK)
			return false;
		out->shape.dims[out->shape.rank++] = dim;
		at = end + strspn(end, ", ");
	}
	out->count = shape_elements(&out->shape);
	return out->count >= 0;
}

static bool read_npy(char *bytes, size_t length, struct npy *out)
{
	size_t start = 10, size;
	const char *descr;

	*out = (struct npy){0};
	if (length < 12 || memcmp(bytes, NPY_MAGIC, 6) != 0)
		return false;
	size = (uint8_t)bytes[8] | (size_t)(uint8_t)bytes[9] << 8;
	if (bytes[6] > 1) {
		start = 12;
		size |= (size_t)(uint8_t)bytes[10] << 16 | (size_t)(uint8_t)bytes[11] << 24;
	}
	if (size == 0 || size > length - start)
		return false;
	bytes[start + size - 1] = '\0'; /* a line feed */
	descr = strstr(bytes + start, "'descr': '");
	if (descr == NULL || strstr(bytes + start, "'fortran_order': False") == NULL)
		return false;
	descr += strlen("'descr': '");
	if (!descr[0] || !descr[1] || !descr[2])
		return false;
	out->kind = descr[1];
	out->size = descr[2] - '0';
	out->data = bytes + start + size;
	if ((descr[0] != '<' && descr[0] != '|') || !read_npy_shape(bytes + start, out))
		return false;
	return out->size > 0 && out->size <= 8 &&
	       (size_t)out->count <= (length - start - size) / (size_t)out->size;
}

static bool npy_number(const struct npy *npy, int64_t i, double *out)
{
	const char *at = npy->data + i * npy->size;
	float single;
	uint16_t half;
	int64_t whole = 0;

	switch (npy->kind) {
	case 'f':
		if (npy->size == 8)
			memcpy(out, at, 8);
		else if (npy->size == 4)
			*out = (double)(memcpy(&single, at, 4), single);
		else
			*out = (memcpy(&half, at, 2), from_half(half));
		return npy->size >= 2;
	case 'i':
	case 'u':
	case 'b':
		memcpy(&whole, at, (size_t)npy->size);
		/* Extends the sign. */
		if (npy->kind == 'i' && npy->size < 8 && whole >> (8 * npy->size - 1))
			whole -= INT64_C(1) << (8 * npy->size);
		*out = (double)whole;
		return true;
	default:
		return false;
	}
}

/* Whether the tensor's type can hold it: an integer cannot hold 0.7. */
static bool can_hold(const struct tensor *tensor, double number)
{
	double most = tensor->dtype == DTYPE_I32 ? 0x1p31 : tensor->dtype == DTYPE_I64 ? 0x1p63 : 0;

	return most == 0 || (number == floor(number) && number >= -most && number < most);
}

/* Whether the array is the whole batch, or one sample. */
static bool npy_fits(const struct npy *npy, const struct tensor *tensor)
{
	struct shape sample = tensor->shape, one = tensor->shape;

	if (shape_equal(&npy->shape, &tensor->shape))
		return true;
	if (sample.rank < 1)
		return false;
	one.dims[0] = 1;
	sample.rank--;
	memmove(sample.dims, sample.dims + 1, (size_t)sample.rank * sizeof(*sample.dims));
	return shape_equal(&npy->shape, &one) || shape_equal(&npy->shape, &sample);
}

static enum prony_status fill_from_file(const char *path, const struct tensor *tensor,
					struct error *err)
{
	char have[96], want[96], *bytes = NULL;
	struct npy npy;
	size_t length = 0;
	enum prony_status status = file_read(path, NPY_MAX_BYTES, &bytes, &length, err);

	if (status != PRONY_OK)
		return status;
	if (!read_npy(bytes, length, &npy)) {
		status = error_set(err, PRONY_BAD_INPUT,
				   "%.200s is no .npy file of numbers in C order", path);
	} else if (!npy_fits(&npy, tensor)) {
		shape_text(&npy.shape, have, sizeof(have));
		shape_text(&tensor->shape, want, sizeof(want));
		status = error_set(err, PRONY_BAD_INPUT,
				   "%.200s has the shape %s, but the input takes %s, or one sample "
				   "of it",
				   path, have, want);
	}
	for (int64_t i = 0; status == PRONY_OK && i < shape_elements(&tensor->shape); i++) {
		double number = 0;

		if (!npy_number(&npy, i % npy.count, &number))
			status = error_set(err, PRONY_BAD_INPUT,
					   "%.200s holds elements of the type %c%d, which is not "
					   "supported",
					   path, npy.kind, npy.size);
		else if (!can_hold(tensor, number))
			status = error_set(err, PRONY_BAD_INPUT,
					   "%.200s holds %g, but the input takes integers (%s)",
					   path, number, dtype_name(tensor->dtype));
		else
			put(tensor, i, number);
	}
	free(bytes);
	return status;
}

/* The integers of a filled tensor must be rows of the tables that it indexes. */
static enum prony_status check_bound(const struct tensor *tensor, int64_t bound, struct error *err)
{
	for (int64_t i = 0; bound > 0 && i < shape_elements(&tensor->shape); i++) {
		int64_t number = 0;

		if (tensor->dtype == DTYPE_I64)
			number = ((const int64_t *)tensor->data)[i];
		else if (tensor->dtype == DTYPE_I32)
			number = ((const int32_t *)tensor->data)[i];
		if (number < 0 || number >= bound)
			return error_set(err, PRONY_BAD_INPUT,
					 "element %" PRId64 " is %" PRId64
					 "; the input takes 0 to %" PRId64,
					 i, number, bound - 1);
	}
	return PRONY_OK;
}

enum prony_status input_fill_apply(const struct input_fill *fill, const struct tensor *tensor,
				   int64_t bound, uint64_t seed, const char *stream,
				   struct error *err)
{
	int64_t count = shape_elements(&tensor->shape), last = 1;
	enum prony_status status = PRONY_OK;
	struct error why = ERROR_INIT;
	struct random random;

	if (fill->kind == INPUT_DRAWN)
		return PRONY_OK;
	random_init_named(&random, seed, stream);
	if (tensor->shape.rank > 1)
		last = tensor->shape.dims[tensor->shape.rank - 1];
	if (fill->kind == INPUT_FILE)
		status = fill_from_file(fill->path, tensor, &why);
	for (int64_t i = 0; i < count && fill->kind != INPUT_FILE; i++) {
		uint64_t width = (uint64_t)(fill->high - fill->low) + 1;

		put(tensor, i,
		    fill->kind == INPUT_RANGE
			    ? (double)(fill->low + (int64_t)random_below(&random, width))
		    : fill->kind == INPUT_POSITIONS ? (double)(i % last)
						    : (double)(fill->kind == INPUT_ONES));
	}
	if (status == PRONY_OK)
		status = check_bound(tensor, bound, &why);
	return status == PRONY_OK
		       ? status
		       : error_set(err, status, "input '%.100s': %s", tensor->name, why.text);
}
