/* The native executor's own gradient of max-pooling against a direct computation, on every
 * instruction set of this processor. Needs no library. */
#include "adapters/bf16.h"
#include "adapters/native/cpu/kernels/max_pool.h"
#include "unit_test.h"

#define PLANES 3
#define SIDE_MAX 16

struct window {
	int64_t kernel[2], stride[2], before[2], after[2];
};

/* One layer with its inputs and outputs; dx has a guard after it. */
struct layer {
	struct max_pool p;
	struct max_pool_span spans[2][SIDE_MAX];
	size_t in_count, out_count;
	float *dy, *dx, *want;
	uint16_t *low_dy, *low_dx;
	uint8_t *chosen;
};

static const float guard = 12345;

static void layer_make(struct layer *layer, const int64_t *in, const struct window *w,
		       int64_t channels, struct random *random)
{
	struct max_pool *p = &layer->p;

	*layer = (struct layer){.p = {.channels = channels, .kernel_width = w->kernel[1]}};
	for (int i = 0; i < 2; i++) {
		p->in[i] = in[i];
		p->strides[i] = w->stride[i];
		p->out[i] = (in[i] + w->before[i] + w->after[i] - w->kernel[i]) / w->stride[i] + 1;
		max_pool_spans(in[i], p->out[i], w->kernel[i], w->stride[i], w->before[i],
			       layer->spans[i]);
	}
	p->rows = layer->spans[0];
	p->columns = layer->spans[1];
	max_pool_find_inner(p, w->before[1]);
	layer->in_count = (size_t)(PLANES * in[0] * in[1] * channels);
	layer->out_count = (size_t)(PLANES * p->out[0] * p->out[1] * channels);
	layer->dy = test_keep(memory_alloc(layer->out_count * sizeof(float)));
	layer->low_dy = test_keep(memory_alloc(layer->out_count * sizeof(uint16_t)));
	layer->chosen = test_keep(memory_alloc(layer->out_count));
	layer->dx = test_keep(memory_alloc((layer->in_count + 1) * sizeof(float)));
	layer->low_dx = test_keep(memory_alloc((layer->in_count + 1) * sizeof(uint16_t)));
	layer->want = test_keep(memory_alloc(layer->in_count * sizeof(float)));
	for (size_t i = 0; i < layer->out_count; i++) {
		/* Values that bf16 can represent, so that one reference serves both types. */
		layer->low_dy[i] = bf16_from_float((float)random_normal(random));
		if (random_below(random, 50) == 0)
			layer->low_dy[i] =
				bf16_from_float(random_below(random, 2) ? INFINITY : NAN);
		layer->dy[i] = bf16_to_float(layer->low_dy[i]);
		/*
		 * Some windows choose a position in the padding, as windows without a maximum do.
		 */
		layer->chosen[i] =
			(uint8_t)random_below(random, (uint64_t)(w->kernel[0] * w->kernel[1]));
	}
}

/* Each window adds its gradient to the element that it chose. */
static void reference(struct layer *layer, const struct window *w)
{
	const struct max_pool *p = &layer->p;
	int64_t channels = p->channels;

	memset(layer->want, 0, layer->in_count * sizeof(float));
	for (int64_t i = 0; i < (int64_t)layer->out_count; i++) {
		int64_t c = i % channels, column = i / channels % p->out[1];
		int64_t row = i / channels / p->out[1] % p->out[0];
		int64_t plane = i / channels / p->out[1] / p->out[0];
		int64_t y = row * w->stride[0] - w->before[0] + layer->chosen[i] / w->kernel[1];
		int64_t x = column * w->stride[1] - w->before[1] + layer->chosen[i] % w->kernel[1];

		if (y >= 0 && y < p->in[0] && x >= 0 && x < p->in[1])
			layer->want[((plane * p->in[0] + y) * p->in[1] + x) * channels + c] +=
				layer->dy[i];
	}
}

static void assert_same(float have, float want, size_t i)
{
	if (!(have == want || (isnan(have) && isnan(want))))
		fail_msg("element %zu is %.9g, not %.9g", i, (double)have, (double)want);
}

/* Runs in two shares, like two threads. */
static void run(const struct layer *layer, max_pool_gradient *gradient, void *dx, const void *dy)
{
	size_t rows = (size_t)(PLANES * layer->p.in[0]), half = rows / 2;

	gradient(&layer->p, dx, dy, layer->chosen, 0, half);
	gradient(&layer->p, dx, dy, layer->chosen, half, rows);
}

static void compare(struct layer *layer, enum instruction_set set)
{
	size_t n = layer->in_count;

	memset(layer->dx, 0x55, n * sizeof(float));
	memset(layer->low_dx, 0x55, n * sizeof(uint16_t));
	layer->dx[n] = guard;
	layer->low_dx[n] = bf16_from_float(guard);
	run(layer, max_pool_pick(layer->p.channels, false, set), layer->dx, layer->dy);
	run(layer, max_pool_pick(layer->p.channels, true, set), layer->low_dx, layer->low_dy);
	for (size_t i = 0; i < n; i++) {
		assert_same(layer->dx[i], layer->want[i], i);
		assert_same(bf16_to_float(layer->low_dx[i]),
			    bf16_to_float(bf16_from_float(layer->want[i])), i);
	}
	assert_true(layer->dx[n] == guard);
	assert_int_equal(layer->low_dx[n], bf16_from_float(guard));
}

TEST(gradient_goes_where_the_window_chose)
{
	static const struct window windows[] = {
		{{2, 2}, {2, 2}, {0, 0}, {0, 0}}, {{3, 3}, {2, 2}, {0, 0}, {0, 0}},
		{{3, 3}, {2, 2}, {0, 0}, {1, 1}}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}},
		{{3, 3}, {1, 1}, {1, 1}, {1, 1}}, {{3, 3}, {3, 3}, {0, 1}, {2, 0}},
		{{1, 1}, {2, 2}, {0, 0}, {0, 0}}, {{2, 3}, {1, 2}, {1, 0}, {0, 2}},
		{{5, 5}, {2, 2}, {2, 2}, {2, 2}}, {{2, 2}, {2, 2}, {1, 1}, {1, 1}},
		{{2, 2}, {1, 1}, {0, 0}, {1, 1}}, {{2, 2}, {3, 3}, {0, 0}, {0, 0}},
	};
	static const int64_t sides[][2] = {{3, 3}, {6, 8}, {7, 15}};
	static const int64_t channels[] = {1, 3, 4, 8, 11, 16, 20, 50};
	struct random random;

	random_init(&random, 3);
	for (size_t k = 0; k < COUNT(windows); k++) {
		for (size_t i = 0; i < 3 * 8; i++) {
			struct layer layer;

			layer_make(&layer, sides[i % 3], &windows[k], channels[i / 3], &random);
			reference(&layer, &windows[k]);
			for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best();
			     set++)
				compare(&layer, (enum instruction_set)set);
		}
	}
}
