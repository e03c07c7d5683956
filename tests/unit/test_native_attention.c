/* The native executor's attention against sums in double, on every instruction set of this
 * processor. Needs no library. */
#include "adapters/bf16.h"
#include "adapters/native/cpu/kernels/attention.h"
#include "unit_test.h"

/* A head whose rows have more elements between them: q, k, v, y, dy, dq, dk, dv. */
struct layer {
	struct attention_head h;
	struct attention_rows at[8];
	double *exact[8];
};

static int64_t rows_of(const struct attention_head *h, int i)
{
	return i == 1 || i == 2 || i >= 6 ? h->keys : h->queries;
}

static double *make_exact(int64_t count)
{
	double *made = test_keep(memory_alloc((size_t)count * sizeof(double)));

	for (int64_t i = 0; i < count; i++)
		made[i] = 0;
	return made;
}

/* Random rows, and the same numbers in double. */
static void make_rows(struct layer *layer, int i, struct random *random)
{
	const struct attention_head *h = &layer->h;
	int64_t rows = rows_of(h, i), row = h->width + 3;
	float *made = test_keep(memory_alloc((size_t)(rows * row) * sizeof(float)));

	layer->exact[i] = make_exact(rows * h->width);
	layer->at[i] = (struct attention_rows){.data = made, .row = row};
	for (int64_t k = 0; k < rows * row; k++) {
		float x = (float)random_normal(random);

		if (h->bf16)
			((uint16_t *)layer->at[i].data)[k] = bf16_from_float(x);
		else
			made[k] = x;
		if (k % row < h->width)
			layer->exact[i][k / row * h->width + k % row] =
				(double)(h->bf16 ? bf16_to_float(bf16_from_float(x)) : x);
	}
}

static double kept(const struct attention_head *h, int64_t i, int64_t j)
{
	uint64_t at = h->first + (uint64_t)(i * h->keys + j);
	const uint32_t key[2] = {h->draw.key[0], h->draw.key[1] ^ (uint32_t)(at >> 32)};

	if (!h->drops)
		return 1;
	return dropout_hash((uint32_t)at, key) >= h->draw.threshold ? (double)h->draw.scale : 0;
}

static double product(const double *a, const double *b, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void add(double *to, double factor, const double *row, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] += factor * row[i];
}

/* The weights of query i before dropout. */
static void weigh(const struct layer *layer, int64_t i, double *p)
{
	const struct attention_head *h = &layer->h;
	int64_t w = h->width, seen = h->causal ? i + 1 : h->keys;
	double largest = -1e300, sum = 0;

	for (int64_t j = 0; j < seen; j++) {
		p[j] = product(layer->exact[0] + i * w, layer->exact[1] + j * w, w) *
			       (double)h->scale +
		       (h->mask ? (double)h->mask[i * h->keys + j] : 0);
		largest = fmax(largest, p[j]);
	}
	for (int64_t j = 0; j < seen; j++)
		sum += p[j] = exp(p[j] - largest);
	for (int64_t j = 0; j < h->keys; j++)
		p[j] = j < seen ? p[j] / sum : 0;
}

static void compute(struct layer *layer)
{
	const struct attention_head *h = &layer->h;
	int64_t w = h->width;
	double **e = layer->exact, *p = make_exact(h->keys);

	for (int i = 5; i < 8; i++)
		e[i] = make_exact(rows_of(h, i) * w);
	e[3] = make_exact(h->queries * w);
	for (int64_t i = 0; i < h->queries; i++) {
		const double *dy = e[4] + i * w;

		weigh(layer, i, p);
		for (int64_t j = 0; j < h->keys; j++)
			add(e[3] + i * w, p[j] * kept(h, i, j), e[2] + j * w, w);
		for (int64_t j = 0; j < h->keys; j++) {
			double slope = p[j] * (double)h->scale *
				       (product(dy, e[2] + j * w, w) * kept(h, i, j) -
					product(dy, e[3] + i * w, w));

			add(e[5] + i * w, slope, e[1] + j * w, w);
			add(e[6] + j * w, slope, e[0] + i * w, w);
			add(e[7] + j * w, p[j] * kept(h, i, j), dy, w);
		}
	}
}

static void compare(const struct layer *layer, int i)
{
	const struct attention_head *h = &layer->h;
	double largest = 0;

	for (int64_t k = 0; k < rows_of(h, i) * h->width; k++)
		largest = fmax(largest, fabs(layer->exact[i][k]));
	for (int64_t k = 0; k < rows_of(h, i) * h->width; k++) {
		int64_t place = k / h->width * layer->at[i].row + k % h->width;
		float x = h->bf16 ? bf16_to_float(((uint16_t *)layer->at[i].data)[place])
				  : ((float *)layer->at[i].data)[place];

		assert_true(fabs((double)x - layer->exact[i][k]) <=
			    (h->bf16 ? 1e-2 : 3e-6) * largest);
	}
}

static void verify(const struct attention_head *shape, enum instruction_set set)
{
	const struct attention_loops *loops = attention_pick(set);
	struct layer layer = {.h = *shape};
	size_t floats = attention_scratch_floats(shape, loops, true);
	float *scratch = test_keep(memory_alloc(floats * sizeof(float) + 64));
	float *sums = test_keep(memory_alloc((size_t)shape->queries * sizeof(float)));
	struct random random;

	scratch += (64 - (uintptr_t)scratch % 64) / sizeof(float);
	random_init(&random, 3);
	for (int i = 0; i < 8; i++)
		make_rows(&layer, i, &random);
	compute(&layer);
	assert_true(attention_scratch_floats(shape, loops, false) <= floats);
	attention_forward(shape, loops, layer.at, sums, scratch);
	attention_gradient(shape, loops, layer.at, sums, layer.at + 5, scratch);
	for (int i = 3; i < 8; i++) {
		if (i != 4)
			compare(&layer, i);
	}
}

static void verify_sets(const struct attention_head *shape)
{
	for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++)
		verify(shape, (enum instruction_set)set);
}

TEST(test_sizes)
{
	static const int64_t sizes[][3] = {{1, 1, 1},	 {65, 65, 16},	 {17, 40, 20},
					   {40, 17, 64}, {128, 128, 32}, {33, 129, 80},
					   {1, 300, 64}};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		for (int form = 0; form < 4; form++) {
			struct attention_head h = {.queries = sizes[i][0],
						   .keys = sizes[i][1],
						   .width = sizes[i][2],
						   .bf16 = form / 2,
						   .causal = form % 2,
						   .scale = 0.3F};

			if (!h.causal || h.queries == h.keys)
				verify_sets(&h);
		}
	}
}

TEST(test_dropout)
{
	struct attention_head h = {.queries = 50,
				   .keys = 50,
				   .width = 24,
				   .causal = true,
				   .scale = 0.2F,
				   .drops = true,
				   .draw = dropout_draw_make(1, 2, 3, 0.4),
				   .first = ((uint64_t)1 << 32) + 5000};

	verify_sets(&h);
}

/* A mask of numbers; a causal one that is added gives what the loop that knows it does. */
TEST(test_masks)
{
	enum { TOKENS = 37 };
	float mask[TOKENS * TOKENS];
	struct attention_head h = {
		.queries = TOKENS, .keys = TOKENS, .width = 16, .scale = 0.25F, .mask = mask};

	for (int64_t i = 0; i < (int64_t)COUNT(mask); i++)
		mask[i] = (float)(i % 7) - 3;
	verify_sets(&h);
	for (int64_t i = 0; i < (int64_t)COUNT(mask); i++)
		mask[i] = i % TOKENS > i / TOKENS ? -1e9F : 0;
	verify_sets(&h);
}
