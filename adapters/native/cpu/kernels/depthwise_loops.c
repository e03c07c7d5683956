/* The innermost loops of depthwise convolutions, for each instruction set. */
#include "adapters/native/cpu/kernels/depthwise_loops.h"

#include "adapters/native/cpu/kernels/depthwise.h"

const int depthwise_widths[DEPTHWISE_WIDTHS] = {7, 5, 3, 1};
const int depthwise_rows[DEPTHWISE_WIDTHS] = {2, 2, 3, 1};

#define VECTOR(lanes)                                                                              \
	typedef float vector __attribute__((vector_size((lanes)*4), aligned(4), may_alias))

/* Computes `n` points at once, from the j-th on. */
#define POINTS(n)                                                                                  \
	for (; j + (n) <= p->count; j += (n)) {                                                    \
		vector sum[n];                                                                     \
		UNROLL for (int i = 0; i < (n); i++) sum[i] = *(const vector *)p->start;           \
		for (int t = 0; t < p->tap_count; t++) {                                           \
			const float *in = p->taps[t].in + j * p->in_step;                          \
			vector weight = *(const vector *)p->taps[t].weight;                        \
                                                                                                   \
			UNROLL for (int i = 0; i < (n); i++) sum[i] +=                             \
				*(const vector *)(in + i * p->in_step) * weight;                   \
		}                                                                                  \
		if (p->relu)                                                                       \
			UNROLL for (int i = 0; i < (n); i++) sum[i] =                              \
				(vector)((bits)sum[i] & (sum[i] > 0));                             \
		UNROLL for (int i = 0; i < (n); i++) * (vector *)(p->to + (j + i) * p->to_step) =  \
			sum[i];                                                                    \
	}

#define PRODUCTS(set, target, lanes, rows, width)                                                  \
	target static void products_##set##_##lanes##_##rows##x##width(                            \
		const struct depthwise_products *p)                                                \
	{                                                                                          \
		VECTOR(lanes);                                                                     \
		vector sum[rows][width] = {0};                                                     \
		int64_t tap = p->tap_step, row = p->x_row;                                         \
                                                                                                   \
		for (int64_t j = 0; j < p->count; j++) {                                           \
			vector dy = *(const vector *)(p->dy + j * p->dy_step);                     \
			const float *x = p->x + j * p->x_step;                                     \
                                                                                                   \
			UNROLL for (int r = 0; r < (rows); r++)                                    \
				UNROLL for (int k = 0; k < (width); k++) sum[r][k] +=              \
				*(const vector *)(x + r * row + k * tap) * dy;                     \
		}                                                                                  \
		UNROLL for (int r = 0; r < (rows); r++) UNROLL for (int k = 0; k < (width); k++) * \
			(vector *)(p->sums + r * p->sums_row + k * (lanes)) += sum[r][k];          \
	}

#define LOOPS(set, target, lanes_)                                                                 \
	target static void points_##set##_##lanes_(const struct depthwise_points *p)               \
	{                                                                                          \
		VECTOR(lanes_);                                                                    \
		typedef int32_t bits __attribute__((vector_size((lanes_)*4)));                     \
		int64_t j = 0;                                                                     \
                                                                                                   \
		POINTS(8)                                                                          \
		POINTS(4)                                                                          \
		POINTS(1)                                                                          \
	}                                                                                          \
	target static void total_##set##_##lanes_(const float *dy, int64_t step, int64_t count,    \
						  float *sum)                                      \
	{                                                                                          \
		VECTOR(lanes_);                                                                    \
		vector total = {0};                                                                \
                                                                                                   \
		for (int64_t j = 0; j < count; j++)                                                \
			total += *(const vector *)(dy + j * step);                                 \
		*(vector *)sum += total;                                                           \
	}                                                                                          \
	PRODUCTS(set, target, lanes_, 1, 7)                                                        \
	PRODUCTS(set, target, lanes_, 2, 7)                                                        \
	PRODUCTS(set, target, lanes_, 1, 5)                                                        \
	PRODUCTS(set, target, lanes_, 2, 5)                                                        \
	PRODUCTS(set, target, lanes_, 1, 3)                                                        \
	PRODUCTS(set, target, lanes_, 2, 3)                                                        \
	PRODUCTS(set, target, lanes_, 3, 3)                                                        \
	PRODUCTS(set, target, lanes_, 1, 1)                                                        \
	static const struct depthwise_loops loops_##set##_##lanes_ = {                             \
		.lanes = lanes_,                                                                   \
		.points = points_##set##_##lanes_,                                                 \
		.total = total_##set##_##lanes_,                                                   \
		.products = {{products_##set##_##lanes_##_1x7, products_##set##_##lanes_##_2x7},   \
			     {products_##set##_##lanes_##_1x5, products_##set##_##lanes_##_2x5},   \
			     {products_##set##_##lanes_##_1x3, products_##set##_##lanes_##_2x3,    \
			      products_##set##_##lanes_##_3x3},                                    \
			     {products_##set##_##lanes_##_1x1}},                                   \
	};

#define NO_TARGET
LOOPS(baseline, NO_TARGET, 1)
LOOPS(baseline, NO_TARGET, 4)
#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
LOOPS(avx2, AVX2, 8)
LOOPS(avx512, AVX512, 16)
#endif

/* Chooses the widest vectors that fit into a block; below eight channels, those that every
 * processor has. */
const struct depthwise_loops *depthwise_pick(const struct depthwise *d, enum instruction_set set)
{
	int64_t room = d->x.block < d->y.block ? d->x.block : d->y.block;

#ifdef __x86_64__
	if (set >= INSTRUCTIONS_AVX512 && room >= 16)
		return &loops_avx512_16;
	if (set >= INSTRUCTIONS_AVX2 && room >= 8)
		return &loops_avx2_8;
#else
	(void)set;
#endif
	return room >= 4 ? &loops_baseline_4 : &loops_baseline_1;
}
