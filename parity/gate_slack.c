/* Computes the slack of the figures when comparisons are too close to call. */
#include <float.h>
#include <math.h>

#include "parity/gate_internal.h"

/* Some comparisons may be turned while others that would cancel their effect are not. */
#define KINK_SLACK 2.0
/* This multiple of the usual cosine: a movement that is sideways in this run may not be so in the
 * next. */
#define KINK_COSINES 3.0

static double largest_difference(const struct tensor *a, const struct tensor *b)
{
	const double *x = a->data, *y = b->data;
	double largest = 0;

	for (int64_t i = 0; i < shape_elements(&a->shape); i++)
		largest = fmax(largest, fabs(x[i] - y[i]));
	return largest;
}

/* The effect of turned comparisons on one tensor. */
struct moved {
	double length;	 /* length of the tensor */
	double distance; /* norm of the difference */
	double along;	 /* inner product of the difference and the tensor */
};

static struct moved compare(const struct tensor *from, const struct tensor *to)
{
	const double *x = from->data, *y = to->data;
	double squares = 0, differences = 0, along = 0;

	for (int64_t i = 0; i < shape_elements(&from->shape); i++) {
		double difference = y[i] - x[i];

		squares += x[i] * x[i];
		differences += difference * difference;
		along += difference * x[i];
	}
	return (struct moved){sqrt(squares), sqrt(differences), along};
}

/* The root mean square, over all tensors that move, of the cosine between movement and tensor. */
static double usual_cosine(const struct tensor_set *from, const struct tensor_set *to)
{
	double squares = 0, count = 0;

	for (size_t i = 0; i < from->count; i++) {
		struct moved moved = compare(&from->tensors[i], &to->tensors[i]);

		if (moved.length <= 0 || moved.distance <= 0)
			continue;
		squares += pow(moved.along / moved.length / moved.distance, 2);
		count++;
	}
	return count > 0 ? sqrt(squares / count) : 0;
}

/* Sets the slack of each tensor of gradients or changes. */
static void set_tensor_slack(struct gate_expected *expected, const struct tensor_set *from,
			     const struct tensor_set *to)
{
	double cosine = usual_cosine(from, to), whole = 0, squares = 0;

	for (size_t i = 0; i < from->count; i++) {
		struct moved moved = compare(&from->tensors[i], &to->tensors[i]);
		double along = fabs(moved.along) / fmax(moved.length, DBL_MIN);

		expected->tensor_slack[i] = KINK_SLACK * moved.distance;
		expected->length_slack[i] =
			KINK_SLACK *
			fmin(along + KINK_COSINES * cosine * moved.distance, moved.distance) /
			fmax(moved.length, DBL_MIN);
		whole += fabs(moved.along);
		squares += moved.length * moved.length;
	}
	/* Tensors whose movements cancel in this run need not cancel in the next. */
	expected->whole_length_slack = KINK_SLACK * whole / fmax(squares, DBL_MIN);
}

/* Returns the usual change of the mean cross-entropy for this movement of the logits. Its gradient
 * by the logits of one sample is softmax - onehot, at most sqrt(2) long, and samples move it up and
 * down. */
static double usual_loss(const struct tensor *from, const struct tensor *to)
{
	int64_t samples = from->shape.dims[0];
	double rms = compare(from, to).distance / sqrt((double)shape_elements(&from->shape));

	return sqrt(2) * rms / sqrt((double)samples);
}

void gate_amplification(const struct gate_expected *expected, const struct gate_expected *other,
			double amplified[GATE_UPDATES])
{
	double first = 0;

	for (int i = 0; i < GATE_UPDATES; i++) {
		struct moved moved = compare(&expected->logits[i], &other->logits[i]);
		double relative = moved.distance / fmax(moved.length, DBL_MIN);

		if (i == 0)
			first = fmax(relative, DBL_MIN);
		amplified[i] = fmax(relative / first, 1);
	}
}

void gate_set_slack(struct gate_expected *expected, const struct gate_expected *other)
{
	for (int i = 0; i < GATE_UPDATES; i++) {
		const struct tensor *from = &expected->logits[i], *to = &other->logits[i];
		/* The logits may move far while the loss happens not to change. */
		double usual = KINK_COSINES * usual_loss(from, to);

		expected->logits_slack[i] = KINK_SLACK * largest_difference(from, to);
		expected->loss_slack[i] =
			KINK_SLACK * fmax(fabs(expected->loss[i] - other->loss[i]), usual);
	}
	if (expected->gradients.count > 0)
		set_tensor_slack(expected, &expected->gradients, &other->gradients);
	if (expected->change.count > 0)
		set_tensor_slack(expected, &expected->change, &other->change);
	for (size_t i = 0; i < expected->state.count; i++)
		expected->state_slack[i] =
			KINK_SLACK *
			compare(&expected->state.tensors[i], &other->state.tensors[i]).distance;
}
