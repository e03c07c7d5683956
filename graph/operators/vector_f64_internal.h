/* Private to graph/operators/: sums over rows of float64 values. */
#ifndef PRONY_GRAPH_OPERATORS_VECTOR_F64_INTERNAL_H
#define PRONY_GRAPH_OPERATORS_VECTOR_F64_INTERNAL_H

#include <stdint.h>

/* to[i] += factor * from[i]; the arrays must not overlap. */
static inline void add_scaled(double *restrict to, const double *restrict from, double factor,
			      int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		to[i] += factor * from[i];
}

/* The sum of a[i] * b[i]. Four partial sums, so that the compiler may use vectors. */
static inline double dot(const double *restrict a, const double *restrict b, int64_t count)
{
	double sum[4] = {0};
	int64_t i = 0;

	for (; i + 4 <= count; i += 4)
		for (int lane = 0; lane < 4; lane++)
			sum[lane] += a[i + lane] * b[i + lane];
	for (; i < count; i++)
		sum[0] += a[i] * b[i];
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

#endif
