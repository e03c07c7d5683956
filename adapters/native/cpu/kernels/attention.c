/* Attention by blocks of queries: the order of the products, and the loops for each instruction
 * set. */
#include "adapters/native/cpu/kernels/attention.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "adapters/bf16.h"

#define TILE_VECTORS 3
#define WEIGHT_ROWS 4 /* rows whose exponentials are computed together */
/* Queries whose scores are computed at once. Forward: few, because with a causal mask the scores
 * above the diagonal of a block are wasted. Gradient: many, because each block reads and writes all
 * of dk and dv. */
#define BLOCK_FORWARD 16
#define BLOCK_GRADIENT 32

/* c (+)= a b: a[i][k] is at i * a_row + k * a_column; columns are a multiple of the lanes. */
struct product {
	float *c;
	const float *a, *b;
	int64_t c_row, a_row, a_column, b_row, rows, columns, depth;
	bool adds;
};

/* Rows of scores that are replaced by exp(x - the largest of the row), and by 0 from element seen +
 * row * more on; `width` is a multiple of the lanes. */
struct scores {
	float *x;
	int64_t apart, rows, width, seen, more;
	float *sums, *largest; /* results, of each row */
};

struct attention_loops {
	int64_t lanes;
	void (*product)(const struct product *p);
	void (*weights)(const struct scores *s);
	void (*slopes)(float *p, float *d, const float *keep, float log_sum, float delta,
		       int64_t width);
	void (*keeps)(float *keep, const struct dropout_draw *draw, uint64_t first, int64_t count);
	void (*scale)(float *y, const float *x, float factor, int64_t count);
	void (*from_bf16)(float *y, const uint16_t *x, float factor, int64_t count);
	void (*to_bf16)(uint16_t *y, const float *x, float factor, int64_t count);
};

#define NAME(x) x##_baseline
#define TARGET
#define LANES 4
#define ROTATED(x, by)                                                                             \
	__builtin_shufflevector(x, x, (by), (1 + (by)) % 4, (2 + (by)) % 4, (3 + (by)) % 4)
#define TILE_ROWS 4
#include "adapters/native/cpu/kernels/attention_body.h"

#ifdef __x86_64__
#define NAME(x) x##_avx2
#define TARGET VECTORISED_AVX2
#define LANES 8
#define ROTATED(x, by)                                                                             \
	__builtin_shufflevector(x, x, (0 + (by)) % 8, (1 + (by)) % 8, (2 + (by)) % 8,              \
				(3 + (by)) % 8, (4 + (by)) % 8, (5 + (by)) % 8, (6 + (by)) % 8,    \
				(7 + (by)) % 8)
#define TILE_ROWS 4
#include "adapters/native/cpu/kernels/attention_body.h"

#define NAME(x) x##_avx512
#define TARGET VECTORISED_AVX512
#define LANES 16
#define ROTATED(x, by)                                                                             \
	__builtin_shufflevector(                                                                   \
		x, x, (0 + (by)) % 16, (1 + (by)) % 16, (2 + (by)) % 16, (3 + (by)) % 16,          \
		(4 + (by)) % 16, (5 + (by)) % 16, (6 + (by)) % 16, (7 + (by)) % 16,                \
		(8 + (by)) % 16, (9 + (by)) % 16, (10 + (by)) % 16, (11 + (by)) % 16,              \
		(12 + (by)) % 16, (13 + (by)) % 16, (14 + (by)) % 16, (15 + (by)) % 16)
#define TILE_ROWS 8
#include "adapters/native/cpu/kernels/attention_body.h"
#endif

const struct attention_loops *attention_pick(enum instruction_set set)
{
#ifdef __x86_64__
	if (set == INSTRUCTIONS_AVX512)
		return &loops_avx512;
	if (set == INSTRUCTIONS_AVX2)
		return &loops_avx2;
#else
	(void)set;
#endif
	return &loops_baseline;
}

/* The parts of the scratch. Rows of features have `wide` floats, rows of keys `apart`: more than
 * the keys, because rows whose distance is a power of two share a set of the first cache. */
struct parts {
	int64_t wide, apart;
	float *q, *k, *v, *dy;	    /* rows of features; q includes the scale */
	float *turned_k, *turned_v; /* features x keys */
	float *scores, *slopes;	    /* of a block of queries */
	float *y, *dq, *dk, *dv, *deltas, *keep;
	float *end;
};

static int64_t round_up(int64_t n, int64_t lanes)
{
	return (n + lanes - 1) / lanes * lanes;
}

static float *take(struct parts *parts, int64_t floats)
{
	float *start = parts->end;

	parts->end += round_up(floats, 16);
	return start;
}

static struct parts divide(const struct attention_head *h, const struct attention_loops *loops,
			   bool gradient, float *scratch)
{
	struct parts p = {.wide = round_up(h->width, loops->lanes),
			  .apart = round_up(h->keys, loops->lanes) + loops->lanes,
			  .end = scratch};

	p.q = take(&p, h->queries * p.wide);
	p.k = take(&p, h->keys * p.wide);
	p.v = take(&p, h->keys * p.wide);
	p.turned_k = take(&p, p.wide * p.apart);
	p.scores = take(&p, (gradient ? BLOCK_GRADIENT : BLOCK_FORWARD) * p.apart);
	p.keep = take(&p, p.apart);
	if (!gradient) {
		p.y = take(&p, BLOCK_FORWARD * p.wide);
		return p;
	}
	p.dy = take(&p, h->queries * p.wide);
	p.turned_v = take(&p, p.wide * p.apart);
	p.slopes = take(&p, BLOCK_GRADIENT * p.apart);
	p.dq = take(&p, BLOCK_GRADIENT * p.wide);
	p.dk = take(&p, h->keys * p.wide);
	p.dv = take(&p, h->keys * p.wide);
	p.deltas = take(&p, h->queries);
	return p;
}

size_t attention_scratch_floats(const struct attention_head *h, const struct attention_loops *loops,
				bool gradient)
{
	/* divide() only adds to this address. */
	static float none[1];
	struct parts p = divide(h, loops, gradient, none);

	return (size_t)(p.end - none);
}

/* Rows first to end - 1 of an array, times `factor`, as fp32 with zeros up to `wide`. */
static void read_rows(const struct attention_head *h, const struct attention_loops *loops,
		      float *to, int64_t wide, const struct attention_rows *from, int64_t rows,
		      float factor)
{
	for (int64_t i = 0; i < rows; i++, to += wide) {
		if (h->bf16)
			loops->from_bf16(to, (const uint16_t *)from->data + i * from->row, factor,
					 h->width);
		else
			loops->scale(to, (const float *)from->data + i * from->row, factor,
				     h->width);
		for (int64_t c = h->width; c < wide; c++)
			to[c] = 0;
	}
}

static void write_row(const struct attention_head *h, const struct attention_loops *loops,
		      const struct attention_rows *to, int64_t row, const float *from, float factor)
{
	if (h->bf16)
		loops->to_bf16((uint16_t *)to->data + row * to->row, from, factor, h->width);
	else
		loops->scale((float *)to->data + row * to->row, from, factor, h->width);
}

/* The transpose of rows of features, with zeros up to `apart` keys. */
static void turn(float *to, const struct parts *p, const float *from, int64_t rows)
{
	for (int64_t c = 0; c < p->wide; c++) {
		for (int64_t i = 0; i < rows; i++)
			to[c * p->apart + i] = from[i * p->wide + c];
		for (int64_t i = rows; i < p->apart; i++)
			to[c * p->apart + i] = 0;
	}
}

/* A block of queries. */
struct block {
	int64_t first, rows;
	int64_t keys;  /* that any of them sees */
	int64_t width; /* the same, rounded up */
};

static struct block cut(const struct attention_head *h, const struct attention_loops *loops,
			int64_t first, int64_t most)
{
	struct block b = {.first = first, .rows = h->queries - first, .keys = h->keys};

	if (b.rows > most)
		b.rows = most;
	if (h->causal)
		b.keys = first + b.rows;
	b.width = round_up(b.keys, loops->lanes);
	return b;
}

/* The number of keys that row `i` of the block sees. */
static int64_t seen(const struct attention_head *h, const struct block *b, int64_t i)
{
	return h->causal ? b->first + i + 1 : h->keys;
}

/* The scores of a block of queries, or products like them. */
static void multiply_turned(const struct attention_loops *loops, const struct parts *p,
			    const struct attention_head *h, const struct block *b, float *scores,
			    const float *rows, const float *turned)
{
	loops->product(&(struct product){.c = scores,
					 .c_row = p->apart,
					 .a = rows + b->first * p->wide,
					 .a_row = p->wide,
					 .a_column = 1,
					 .b = turned,
					 .b_row = p->apart,
					 .rows = b->rows,
					 .columns = b->width,
					 .depth = h->width});
}

static void add_mask(const struct attention_head *h, const struct parts *p, const struct block *b)
{
	for (int64_t i = 0; h->mask && i < b->rows; i++) {
		const float *mask = h->mask + (b->first + i) * h->keys;
		float *x = p->scores + i * p->apart;

		INDEPENDENT
		for (int64_t j = 0; j < h->keys; j++)
			x[j] += mask[j];
	}
}

/* The sum of the keys' rows with the weights of a block of queries. */
static void mix_rows(const struct attention_loops *loops, const struct parts *p,
		     const struct block *b, float *y, const float *weights, const float *rows)
{
	loops->product(&(struct product){.c = y,
					 .c_row = p->wide,
					 .a = weights,
					 .a_row = p->apart,
					 .a_column = 1,
					 .b = rows,
					 .b_row = p->wide,
					 .rows = b->rows,
					 .columns = p->wide,
					 .depth = b->keys});
}

/* Adds the queries' rows with the same weights to the keys' sums. */
static void add_rows(const struct attention_loops *loops, const struct parts *p,
		     const struct block *b, float *sums, const float *weights, const float *rows)
{
	loops->product(&(struct product){.c = sums,
					 .c_row = p->wide,
					 .a = weights,
					 .a_row = 1,
					 .a_column = p->apart,
					 .b = rows + b->first * p->wide,
					 .b_row = p->wide,
					 .rows = b->keys,
					 .columns = p->wide,
					 .depth = b->rows,
					 .adds = true});
}

static const float *kept(const struct attention_head *h, const struct attention_loops *loops,
			 const struct parts *p, int64_t row, int64_t keys)
{
	if (!h->drops)
		return NULL;
	loops->keeps(p->keep, &h->draw, h->first + (uint64_t)(row * h->keys), keys);
	return p->keep;
}

/* Turns the scores of a block into weights that are not yet divided by their sums. */
static void weigh(const struct attention_head *h, const struct attention_loops *loops,
		  const struct parts *p, const struct block *b, float *sums, float *largest)
{
	loops->weights(&(struct scores){.x = p->scores,
					.apart = p->apart,
					.rows = b->rows,
					.width = b->width,
					.seen = seen(h, b, 0),
					.more = h->causal ? 1 : 0,
					.sums = sums,
					.largest = largest});
	for (int64_t i = 0; h->drops && i < b->rows; i++) {
		float *x = p->scores + i * p->apart;
		const float *keep = kept(h, loops, p, b->first + i, b->keys);

		for (int64_t j = 0; j < b->keys; j++)
			x[j] *= keep[j];
	}
}

void attention_forward(const struct attention_head *h, const struct attention_loops *loops,
		       const struct attention_rows at[4], float *log_sums, float *scratch)
{
	struct parts p = divide(h, loops, false, scratch);

	read_rows(h, loops, p.q, p.wide, &at[0], h->queries, h->scale);
	read_rows(h, loops, p.k, p.wide, &at[1], h->keys, 1);
	read_rows(h, loops, p.v, p.wide, &at[2], h->keys, 1);
	turn(p.turned_k, &p, p.k, h->keys);
	for (int64_t first = 0; first < h->queries; first += BLOCK_FORWARD) {
		struct block b = cut(h, loops, first, BLOCK_FORWARD);
		float sums[BLOCK_FORWARD], largest[BLOCK_FORWARD];

		multiply_turned(loops, &p, h, &b, p.scores, p.q, p.turned_k);
		add_mask(h, &p, &b);
		weigh(h, loops, &p, &b, sums, largest);
		for (int64_t i = 0; log_sums && i < b.rows; i++)
			log_sums[first + i] = largest[i] + logf(sums[i]);
		mix_rows(loops, &p, &b, p.y, p.scores, p.v);
		for (int64_t i = 0; i < b.rows; i++)
			write_row(h, loops, &at[3], first + i, p.y + i * p.wide, 1 / sums[i]);
	}
}

/* The sum of dy y of each query. */
static void sum_deltas(const struct attention_head *h, const struct attention_loops *loops,
		       const struct parts *p, const struct attention_rows *y)
{
	for (int64_t i = 0; i < h->queries; i++) {
		struct attention_rows row = *y;
		float *out = p->dq;
		float sum = 0;

		row.data = (unsigned char *)y->data +
			   (size_t)(i * y->row) * (h->bf16 ? sizeof(uint16_t) : sizeof(float));
		read_rows(h, loops, out, p->wide, &row, 1, 1);
		for (int64_t c = 0; c < h->width; c++)
			sum += out[c] * p->dy[i * p->wide + c];
		p->deltas[i] = sum;
	}
}

void attention_gradient(const struct attention_head *h, const struct attention_loops *loops,
			const struct attention_rows in[5], const float *log_sums,
			const struct attention_rows out[3], float *scratch)
{
	struct parts p = divide(h, loops, true, scratch);

	read_rows(h, loops, p.q, p.wide, &in[0], h->queries, h->scale);
	read_rows(h, loops, p.k, p.wide, &in[1], h->keys, 1);
	read_rows(h, loops, p.v, p.wide, &in[2], h->keys, 1);
	read_rows(h, loops, p.dy, p.wide, &in[4], h->queries, 1);
	turn(p.turned_k, &p, p.k, h->keys);
	turn(p.turned_v, &p, p.v, h->keys);
	sum_deltas(h, loops, &p, &in[3]);
	memset(p.dk, 0, (size_t)(h->keys * p.wide) * sizeof(float));
	memset(p.dv, 0, (size_t)(h->keys * p.wide) * sizeof(float));
	for (int64_t first = 0; first < h->queries; first += BLOCK_GRADIENT) {
		struct block b = cut(h, loops, first, BLOCK_GRADIENT);

		multiply_turned(loops, &p, h, &b, p.scores, p.q, p.turned_k);
		add_mask(h, &p, &b);
		multiply_turned(loops, &p, h, &b, p.slopes, p.dy, p.turned_v);
		for (int64_t i = 0; i < b.rows; i++) {
			float *weights = p.scores + i * p.apart, *slopes = p.slopes + i * p.apart;
			int64_t keys = seen(h, &b, i);

			loops->slopes(weights, slopes, kept(h, loops, &p, first + i, keys),
				      log_sums[first + i], p.deltas[first + i],
				      round_up(keys, loops->lanes));
			for (int64_t j = keys; j < b.keys; j++)
				weights[j] = slopes[j] = 0;
		}
		add_rows(loops, &p, &b, p.dv, p.scores, p.dy);
		add_rows(loops, &p, &b, p.dk, p.slopes, p.q);
		mix_rows(loops, &p, &b, p.dq, p.slopes, p.k);
		for (int64_t i = 0; i < b.rows; i++)
			write_row(h, loops, &out[0], first + i, p.dq + i * p.wide, h->scale);
	}
	for (int64_t i = 0; i < h->keys; i++) {
		write_row(h, loops, &out[1], i, p.dk + i * p.wide, 1);
		write_row(h, loops, &out[2], i, p.dv + i * p.wide, 1);
	}
}
