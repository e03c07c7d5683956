/* Compares the outputs of two engines. */
#include "parity/agreement.h"

#include <math.h>
#include <string.h>

static bool is_real(enum dtype dtype)
{
	return dtype == DTYPE_F32 || dtype == DTYPE_F64 || dtype == DTYPE_F16 ||
	       dtype == DTYPE_BF16;
}

/* Converts IEEE 754 binary16. */
static double half_value(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double size;

	if (exponent == 31)
		size = fraction ? (double)NAN : (double)INFINITY;
	else
		size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
	return bits >> 15 ? -size : size;
}

/* Element i of a tensor of any type. Tensors that were read need not be aligned. */
static double element(const struct tensor *tensor, int64_t i)
{
	const char *at = (const char *)tensor->data + (size_t)i * dtype_bytes(tensor->dtype);
	union {
		float f32;
		double f64;
		uint16_t half[2];
		int32_t i32;
		int64_t i64;
		uint8_t u8;
	} u = {.f64 = 0};

	/* A bfloat16 is the upper half of a float. */
	memcpy(tensor->dtype == DTYPE_BF16 ? (void *)&u.half[1] : (void *)&u, at,
	       dtype_bytes(tensor->dtype));
	switch (tensor->dtype) {
	case DTYPE_F32:
	case DTYPE_BF16:
		return (double)u.f32;
	case DTYPE_F64:
		return u.f64;
	case DTYPE_F16:
		return half_value(u.half[0]);
	case DTYPE_I32:
		return (double)u.i32;
	case DTYPE_I64:
		return (double)u.i64;
	default:
		return (double)u.u8;
	}
}

static double real_distance(const struct tensor *a, const struct tensor *b, int64_t count)
{
	double difference = 0, norm_a = 0, norm_b = 0;

	for (int64_t i = 0; i < count; i++) {
		double x = element(a, i), y = element(b, i);

		difference += (x - y) * (x - y);
		norm_a += x * x;
		norm_b += y * y;
	}
	if (!isfinite(norm_a) || !isfinite(norm_b))
		return INFINITY;
	if (difference == 0)
		return 0;
	return 2 * sqrt(difference) / (sqrt(norm_a) + sqrt(norm_b));
}

static double integer_distance(const struct tensor *a, const struct tensor *b, int64_t count)
{
	size_t bytes = dtype_bytes(a->dtype);
	int64_t differ = 0;

	for (int64_t i = 0; i < count; i++)
		differ += memcmp((const char *)a->data + (size_t)i * bytes,
				 (const char *)b->data + (size_t)i * bytes, bytes) != 0;
	return count > 0 ? (double)differ / (double)count : 0;
}

static double distance(const struct tensor *a, const struct tensor *b)
{
	int64_t count = shape_elements(&a->shape);

	if (!b || a->dtype != b->dtype || !shape_equal(&a->shape, &b->shape))
		return INFINITY;
	return is_real(a->dtype) ? real_distance(a, b, count) : integer_distance(a, b, count);
}

/* The bound of an output. */
static double bound_of(const struct tensor *tensor, const struct tensor_set *changes)
{
	double bound = is_real(tensor->dtype) ? AGREEMENT_BOUND : AGREEMENT_BOUND_INTEGERS;
	const struct tensor *change = changes ? tensor_find(changes, tensor->name) : NULL;

	return change ? fmin(fmax(bound, AGREEMENT_CHANGES * element(change, 0)),
			     AGREEMENT_BOUND_MAX)
		      : bound;
}

void agreement_note_changes(const struct tensor_set *a, const struct tensor_set *b,
			    struct tensor_set *changes)
{
	for (size_t i = 0; i < a->count; i++) {
		double *change = changes->tensors[i].data;
		double found = distance(&a->tensors[i], tensor_find(b, a->tensors[i].name));

		/* The noise may also change the shape of an output; that allows nothing. */
		if (isfinite(found))
			*change = fmax(*change, found);
	}
}

struct agreement agreement_of(const struct tensor_set *a, const struct tensor_set *b,
			      const struct tensor_set *changes)
{
	struct agreement worst = {.output = "", .bound = AGREEMENT_BOUND, .agrees = true};

	if (a->count != b->count)
		return (struct agreement){"", INFINITY, AGREEMENT_BOUND, false};
	for (size_t i = 0; i < a->count; i++) {
		const struct tensor *tensor = &a->tensors[i];
		double value = distance(tensor, tensor_find(b, tensor->name));
		double bound = bound_of(tensor, changes);

		if (i > 0 && !(value / bound > worst.value / worst.bound))
			continue;
		worst = (struct agreement){tensor->name, value, bound, value <= bound};
	}
	return worst;
}

bool agreement_is_finite(const struct tensor_set *set)
{
	for (size_t k = 0; k < set->count; k++) {
		const struct tensor *tensor = &set->tensors[k];

		for (int64_t i = 0; i < shape_elements(&tensor->shape); i++)
			if (!isfinite(element(tensor, i)))
				return false;
	}
	return true;
}
