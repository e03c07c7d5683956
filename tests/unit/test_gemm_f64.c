/* Tests the reference's matrix product and convolutions against loops written from their
 * definitions: with every instruction set of this machine, and the same bits for any number of
 * threads. */
#include <sched.h>

#include "graph/gemm_f64.h"
#include "parity/reference_internal.h"
#include "unit_test.h"

#define TOLERANCE 1e-12 /* relative to the largest element */

static double *fill(struct random *random, int64_t count)
{
	double *x = malloc((size_t)(count > 0 ? count : 1) * sizeof(*x));

	assert_non_null(x);
	for (int64_t i = 0; i < count; i++)
		x[i] = random_normal(random);
	return x;
}

static double *copy(const double *x, int64_t count)
{
	double *y = malloc((size_t)(count > 0 ? count : 1) * sizeof(*y));

	assert_non_null(y);
	memcpy(y, x, (size_t)count * sizeof(*y));
	return y;
}

/* Returns the largest difference, relative to the largest element; NaN stays NaN. */
static double difference(const double *have, const double *want, int64_t count)
{
	double largest = 0, worst = 0;

	for (int64_t i = 0; i < count; i++) {
		if (isnan(have[i]))
			return NAN;
		largest = fmax(largest, fabs(want[i]));
		worst = fmax(worst, fabs(have[i] - want[i]));
	}
	return worst == 0 ? 0 : worst / largest;
}

static int64_t between(struct random *random, int64_t low, int64_t high)
{
	return low + (int64_t)random_below(random, (uint64_t)(high - low + 1));
}

/* A product of factors in any layout. */
struct problem {
	struct gemm_f64 product;
	double *a, *b, *to;
};

static void problem_init(struct problem *p, struct random *random, int64_t rows, int64_t columns,
			 int64_t depth)
{
	bool turned_a = random_below(random, 2), turned_b = random_below(random, 2);

	p->a = fill(random, rows * depth);
	p->b = fill(random, columns * depth);
	p->to = fill(random, rows * columns);
	p->product = (struct gemm_f64){
		.rows = rows,
		.columns = columns,
		.depth = depth,
		.alpha = random_below(random, 2) ? 1 : -0.7,
		.a = turned_a ? gemm_f64_matrix(p->a, rows, 1) : gemm_f64_matrix(p->a, 1, depth),
		.b = turned_b ? gemm_f64_matrix(p->b, 1, depth) : gemm_f64_matrix(p->b, columns, 1),
	};
}

static void problem_release(struct problem *p)
{
	free(p->a);
	free(p->b);
	free(p->to);
}

static double *problem_run(const struct problem *p, enum gemm_f64_set set, int threads)
{
	struct gemm_f64 product = p->product;
	double *to = copy(p->to, product.rows * product.columns);

	product.set = set;
	product.threads = threads;
	product.target = gemm_f64_rows(to, product.columns);
	gemm_f64(&product);
	return to;
}

static double *problem_expected(const struct problem *p)
{
	const struct gemm_f64 *product = &p->product;
	double *to = copy(p->to, product->rows * product->columns);

	for (int64_t i = 0; i < product->rows; i++)
		for (int64_t j = 0; j < product->columns; j++)
			for (int64_t k = 0; k < product->depth; k++)
				to[i * product->columns + j] +=
					product->alpha *
					product->a
						.data[k * product->a.depth + i * product->a.lane] *
					product->b.data[k * product->b.depth + j * product->b.lane];
	return to;
}

static const int64_t sizes[][3] = {
	{1, 1, 1},    {0, 3, 2},     {3, 0, 2},	      {3, 2, 0},     {8, 24, 256},
	{9, 25, 257}, {7, 23, 255},  {193, 241, 300}, {1, 700, 520}, {700, 1, 520},
	{5, 5, 2000}, {400, 30, 40}, {30, 600, 17},   {64, 49, 576},
};

TEST(products_are_the_sums)
{
	static const enum gemm_f64_set sets[] = {GEMM_F64_BASELINE, GEMM_F64_AVX2, GEMM_F64_AVX512,
						 GEMM_F64_BEST};
	struct random random;

	random_init(&random, 1);
	for (size_t i = 0; i < 40; i++) {
		SCOPED(problem) p;
		bool listed = i < COUNT(sizes);

		problem_init(&p, &random, listed ? sizes[i][0] : between(&random, 1, 70),
			     listed ? sizes[i][1] : between(&random, 1, 70),
			     listed ? sizes[i][2] : between(&random, 1, 600));
		double *want = problem_expected(&p);
		for (size_t s = 0; s < COUNT(sets); s++) {
			double *have = problem_run(&p, sets[s], 2);
			double off = difference(have, want, p.product.rows * p.product.columns);

			if (!(off <= TOLERANCE))
				fail_msg("%d x %d x %d, set %d: off by %g", (int)p.product.rows,
					 (int)p.product.columns, (int)p.product.depth, (int)sets[s],
					 off);
			free(have);
		}
		free(want);
	}
	print_message("# avx2 %d, avx512 %d\n", gemm_f64_has(GEMM_F64_AVX2),
		      gemm_f64_has(GEMM_F64_AVX512));
}

TEST(threads_do_not_change_a_bit)
{
	static const int threads[] = {2, 3, 7, 16, 61};
	struct random random;

	random_init(&random, 2);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		SCOPED(problem) p;

		problem_init(&p, &random, sizes[i][0], sizes[i][1], sizes[i][2]);
		size_t bytes = (size_t)(p.product.rows * p.product.columns) * sizeof(double);
		double *one = problem_run(&p, GEMM_F64_BEST, 1);
		for (size_t t = 0; t < COUNT(threads); t++) {
			double *many = problem_run(&p, GEMM_F64_BEST, threads[t]);

			assert_int_equal(memcmp(one, many, bytes), 0);
			free(many);
		}
		free(one);
	}
}

/* A convolution as a graph of one node; values x, k, bias, y. */
enum { X, K, BIAS, Y, VALUES };

struct conv_case {
	struct attributes attributes;
	struct shape shapes[VALUES];
	bool bias;
	char text[320];
};

static void name_case(struct conv_case *c)
{
	const struct attributes *a = &c->attributes;
	char x[64], k[64];

	shape_text(&c->shapes[X], x, sizeof(x));
	shape_text(&c->shapes[K], k, sizeof(k));
	snprintf(c->text, sizeof(c->text),
		 "%s, kernel %s, strides %d %d, dilations %d %d, pads %d %d %d %d, group %d", x, k,
		 (int)a->strides[0], (int)a->strides[1], (int)a->dilations[0], (int)a->dilations[1],
		 (int)a->pads[0], (int)a->pads[1], (int)a->pads[2], (int)a->pads[3], (int)a->group);
}

/* Returns false if the kernel does not fit into the input. */
static bool set_shapes(struct conv_case *c, int64_t batch, int64_t channels, const int64_t size[2],
		       int64_t outputs)
{
	struct attributes *a = &c->attributes;
	struct shape y = {4, {batch, outputs}};

	for (int i = 0; i < 2; i++) {
		int64_t room = size[i] + a->pads[i] + a->pads[2 + i] -
			       (a->dilations[i] * (a->kernel[i] - 1) + 1);

		if (room < 0)
			return false;
		y.dims[2 + i] = room / a->strides[i] + 1;
	}
	c->shapes[X] = (struct shape){4, {batch, channels, size[0], size[1]}};
	c->shapes[K] =
		(struct shape){4, {outputs, channels / a->group, a->kernel[0], a->kernel[1]}};
	c->shapes[BIAS] = (struct shape){1, {outputs}};
	c->shapes[Y] = y;
	name_case(c);
	return true;
}

static bool random_case(struct random *random, struct conv_case *c)
{
	int64_t group = between(random, 1, 3), size[2];

	*c = (struct conv_case){.bias = random_below(random, 2)};
	for (int i = 0; i < 2; i++) {
		c->attributes.kernel[i] = between(random, 1, 5);
		c->attributes.strides[i] = between(random, 1, 4);
		c->attributes.dilations[i] = between(random, 1, 3);
		c->attributes.pads[i] = between(random, 0, 3);
		c->attributes.pads[2 + i] = between(random, 0, 3);
		size[i] = between(random, 1, 14);
	}
	c->attributes.group = group;
	return set_shapes(c, between(random, 1, 3), group * between(random, 1, 9), size,
			  group * between(random, 1, 9));
}

/* Computes y += k * x, or with `which` one of the gradients, by definition. */
static void naive_conv(const struct conv_case *c, double *x, double *k, double *y, int which)
{
	const struct attributes *a = &c->attributes;
	const int64_t *xd = c->shapes[X].dims, *kd = c->shapes[K].dims, *yd = c->shapes[Y].dims;
	int64_t taps = kd[1] * kd[2] * kd[3];

	for (int64_t i = 0; i < shape_elements(&c->shapes[Y]); i++) {
		int64_t n = i / (yd[1] * yd[2] * yd[3]), o = i / (yd[2] * yd[3]) % yd[1];

		for (int64_t t = 0; t < taps; t++) {
			int64_t channel = o / (yd[1] / a->group) * kd[1] + t / (kd[2] * kd[3]);
			int64_t h = i / yd[3] % yd[2] * a->strides[0] +
				    t / kd[3] % kd[2] * a->dilations[0] - a->pads[0];
			int64_t w = i % yd[3] * a->strides[1] + t % kd[3] * a->dilations[1] -
				    a->pads[1];

			if (h < 0 || h >= xd[2] || w < 0 || w >= xd[3])
				continue;
			double *xi = &x[((n * xd[1] + channel) * xd[2] + h) * xd[3] + w];
			double *ki = &k[o * taps + t];

			if (which == Y)
				y[i] += *ki * *xi;
			else if (which == X)
				*xi += *ki * y[i];
			else
				*ki += y[i] * *xi;
		}
	}
}

/* Runs one of the operators; the arrays are those of x, k, bias, y or of their gradients. */
static void run_conv(const struct conv_case *c, double *const arrays[VALUES], int which)
{
	struct value values[VALUES] = {0};
	struct graph graph = {.values = values, .value_count = VALUES};
	struct node node = {.attributes = c->attributes, .output_count = 1};
	static const int forward[] = {X, K, BIAS}, grad_x[] = {Y, K}, grad_k[] = {X, Y};
	const int *inputs = which == Y ? forward : which == X ? grad_x : grad_k;
	struct kernel_call call = {.graph = &graph, .node = &node, .values = arrays};

	for (int i = 0; i < VALUES; i++)
		values[i].shape = c->shapes[i];
	node.input_count = which == Y && c->bias ? 3 : 2;
	memcpy(node.inputs, inputs, (size_t)node.input_count * sizeof(*inputs));
	node.outputs[0] = which;
	if (which == K && c->bias)
		node.outputs[node.output_count++] = BIAS;
	operator_row(which == Y	  ? OP_CONV
		     : which == X ? OP_CONV_GRAD_INPUT
				  : OP_CONV_GRAD_WEIGHT)
		->compute(&call);
}

/* Adds the bias, which naive_conv omits. */
static void naive_bias(const struct conv_case *c, double *const arrays[VALUES], int which)
{
	int64_t outputs = c->shapes[Y].dims[1], plane = c->shapes[Y].dims[2] * c->shapes[Y].dims[3];

	if (which == K)
		memset(arrays[BIAS], 0, (size_t)outputs * sizeof(double));
	for (int64_t i = 0; c->bias && i < shape_elements(&c->shapes[Y]); i++) {
		if (which == Y)
			arrays[Y][i] = arrays[BIAS][i / plane % outputs];
		else if (which == K)
			arrays[BIAS][i / plane % outputs] += arrays[Y][i];
	}
}

static void check_case(const struct conv_case *c, struct random *random)
{
	static const int operators[] = {Y, X, K};

	for (size_t o = 0; o < COUNT(operators); o++) {
		int which = operators[o];
		double *have[VALUES], *want[VALUES];

		for (int i = 0; i < VALUES; i++) {
			int64_t count = shape_elements(&c->shapes[i]);

			have[i] = fill(random, count);
			want[i] = copy(have[i], count);
		}
		memset(want[which], 0, (size_t)shape_elements(&c->shapes[which]) * sizeof(double));
		naive_bias(c, want, which);
		naive_conv(c, want[X], want[K], want[Y], which);
		run_conv(c, have, which);
		for (int i = 0; i < VALUES; i++) {
			double off = i == BIAS && !c->bias
					     ? 0
					     : difference(have[i], want[i],
							  shape_elements(&c->shapes[i]));

			if (!(off <= TOLERANCE))
				fail_msg("%s: value %d of operator %zu is off by %g", c->text, i, o,
					 off);
			free(have[i]);
			free(want[i]);
		}
	}
}

TEST(random_convolutions_are_their_definition)
{
	struct random random;
	int tried = 0;

	random_init(&random, 3);
	while (tried < 300) {
		struct conv_case c;

		if (!random_case(&random, &c))
			continue;
		check_case(&c, &random);
		tried++;
	}
}

/* Layers of networks, reduced in size: partial blocks, long depths, depthwise, strided 1 x 1. */
static const struct {
	int64_t batch, channels, size[2], outputs;
	struct attributes attributes;
} layers[] = {
	{2, 3, {35, 35}, 20, {{7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}, .group = 1}},
	{3, 70, {13, 14}, 40, {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, .group = 1}},
	{2, 40, {14, 14}, 210, {{1, 1}, {1, 1}, {1, 1}, {0}, .group = 1}},
	{2, 40, {14, 13}, 64, {{1, 1}, {2, 2}, {1, 1}, {0}, .group = 1}},
	{2, 16, {11, 17}, 24, {{1, 7}, {1, 1}, {1, 1}, {0, 3, 0, 3}, .group = 1}},
	{2, 24, {15, 15}, 24, {{5, 5}, {2, 2}, {1, 1}, {1, 1, 2, 2}, .group = 24}},
	{2, 12, {9, 9}, 24, {{3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}, .group = 12}},
	{2, 32, {9, 9}, 32, {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, .group = 8}},
	{2, 20, {6, 6}, 50, {{6, 6}, {1, 1}, {1, 1}, {0}, .group = 1}},
};

TEST(layers_of_networks_are_their_definition)
{
	struct random random;

	random_init(&random, 4);
	for (size_t i = 0; i < COUNT(layers); i++) {
		struct conv_case c = {.attributes = layers[i].attributes, .bias = true};

		assert_true(set_shapes(&c, layers[i].batch, layers[i].channels, layers[i].size,
				       layers[i].outputs));
		check_case(&c, &random);
	}
}

/* Repeats the first of the layers on one core. */
TEST(one_core_gives_the_same_bits)
{
	static const int operators[] = {Y, X, K};
	struct conv_case c = {.attributes = layers[1].attributes, .bias = true};
	cpu_set_t before, one;
	struct random random;
	double *arrays[VALUES];

	random_init(&random, 5);
	assert_true(set_shapes(&c, 8, 70, layers[1].size, 40));
	for (int i = 0; i < VALUES; i++)
		arrays[i] = fill(&random, shape_elements(&c.shapes[i]));
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; core++)
		if (CPU_ISSET(core, &before))
			CPU_SET(core, &one);
	for (size_t o = 0; o < COUNT(operators); o++) {
		int64_t count = shape_elements(&c.shapes[operators[o]]);

		run_conv(&c, arrays, operators[o]);
		double *all = copy(arrays[operators[o]], count);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		run_conv(&c, arrays, operators[o]);
		assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
		assert_int_equal(memcmp(all, arrays[operators[o]], (size_t)count * sizeof(*all)),
				 0);
		free(all);
	}
	for (int i = 0; i < VALUES; i++)
		free(arrays[i]);
}
