/* Products of few rows of the native executor against sums in double, on every instruction set of
 * this processor and from every layout of the rows. Needs no library. */
#include "adapters/native/cpu/kernels/few_rows_gemm.h"
#include "unit_test.h"

/* A layout of rows: the channel block (0: no blocks, channels first; -1: channels last) and the
 * points. */
struct form {
	int64_t channels, points, block;
};

static float *random_floats(struct random *random, size_t count)
{
	float *made = test_keep(memory_alloc(count * sizeof(float)));

	for (size_t i = 0; i < count; i++)
		made[i] = (float)random_normal(random);
	return made;
}

static struct few_rows_source lay_out(const struct form *form)
{
	int64_t present = form->channels;

	if (form->block > 0)
		present = (present + form->block - 1) / form->block * form->block;
	if (form->block > 0)
		return (struct few_rows_source){.row_stride = present * form->points,
						.block = form->block,
						.block_stride = form->block * form->points,
						.channel_stride = 1,
						.point_stride = form->block,
						.points = form->points};
	return (struct few_rows_source){
		.row_stride = present * form->points,
		.block = form->channels,
		.channel_stride = form->block < 0 ? 1 : form->points,
		.point_stride = form->block < 0 ? form->channels : 1,
		.points = form->points,
	};
}

/* Returns element i of a row in the order of the weights. */
static float element(const struct few_rows *s, const float *x, int64_t row, int64_t i)
{
	const struct few_rows_source *in = &s->x;
	int64_t c = i / in->points, p = i % in->points;

	return x[row * in->row_stride + c / in->block * in->block_stride +
		 c % in->block * in->channel_stride + p * in->point_stride];
}

static void compare(const struct few_rows *s, int64_t block, const float *y, const float *x,
		    const float *w, const float *bias)
{
	for (int64_t row = 0; row < s->rows; row++) {
		for (int64_t n = 0; n < s->outputs; n++) {
			double sum = bias ? (double)bias[n] : 0, scale = fabs(sum);

			for (int64_t i = 0; i < s->inner; i++) {
				double product = (double)element(s, x, row, i) *
						 (double)w[n / block * s->inner * block +
							   i * block + n % block];

				sum += product;
				scale += fabs(product);
			}
			sum = s->relu && sum < 0 ? 0 : sum;
			assert_true(fabs((double)y[row * s->outputs + n] - sum) <= 1e-6 * scale);
		}
	}
}

/* Runs in three shares, like three threads; the second share is empty. */
static void verify(struct few_rows *s, enum instruction_set set, bool has_bias)
{
	const struct few_rows_loops *loops = few_rows_pick(set);
	int64_t block = few_rows_block(loops), blocks = (s->outputs + block - 1) / block;
	size_t channels = (size_t)(s->inner / s->x.points), past = (size_t)(s->rows * s->outputs);
	struct random random;
	float *x, *w, *bias, *packed, *y;

	random_init(&random, 5);
	x = random_floats(&random, (size_t)(s->rows * s->x.row_stride));
	w = random_floats(&random, (size_t)(blocks * block * s->inner));
	bias = random_floats(&random, (size_t)s->outputs);
	packed = random_floats(&random, few_rows_packed_floats(s, loops));
	y = random_floats(&random, past + 1);
	y[past] = 7;
	few_rows_pack(s, loops, packed, x, 0, channels / 3);
	few_rows_pack(s, loops, packed, x, channels / 3, channels / 3);
	few_rows_pack(s, loops, packed, x, channels / 3, channels);
	few_rows_product(s, loops, y, packed, w, has_bias ? bias : NULL, 0, (size_t)blocks / 2);
	few_rows_product(s, loops, y, packed, w, has_bias ? bias : NULL, (size_t)blocks / 2,
			 (size_t)blocks);
	compare(s, block, y, x, w, has_bias ? bias : NULL);
	assert_true(y[past] == 7);
}

TEST(test_layouts)
{
	static const struct form forms[] = {
		{150, 1, 0}, {33, 6, 0}, {33, 6, -1}, {40, 4, 16},
		{32, 9, 8},  {1, 70, 0}, {1, 1, 0},
	};

	for (size_t f = 0; f < COUNT(forms); f++) {
		for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++) {
			for (int64_t rows = 1; rows <= FEW_ROWS_ROWS_MAX; rows++) {
				struct few_rows s = {.rows = rows,
						     .inner = forms[f].channels * forms[f].points,
						     .outputs = 71,
						     .relu = rows % 2 == 0,
						     .x = lay_out(&forms[f])};

				verify(&s, (enum instruction_set)set, rows % 3 != 0);
			}
		}
	}
}

TEST(test_outputs)
{
	for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++) {
		for (int64_t outputs = 1; outputs <= 97; outputs += 8) {
			struct few_rows s = {.rows = 3,
					     .inner = 65,
					     .outputs = outputs,
					     .x = lay_out(&(struct form){65, 1, 0})};

			verify(&s, (enum instruction_set)set, true);
		}
	}
}

/* All products are equal, so all roundings of a single long sum have the same sign. */
TEST(test_equal_products)
{
	enum { INNER = 25088 };
	static const float value = 0.02F;
	double exact = (double)value * (double)value * INNER;

	for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++) {
		const struct few_rows_loops *loops = few_rows_pick((enum instruction_set)set);
		struct few_rows s = {.rows = 1,
				     .inner = INNER,
				     .outputs = 1,
				     .x = lay_out(&(struct form){INNER, 1, 0})};
		int64_t count = few_rows_block(loops) * INNER;
		float *w = malloc((size_t)count * sizeof(*w)), y;

		assert_non_null(w);
		for (int64_t i = 0; i < count; i++)
			w[i] = value;
		few_rows_product(&s, loops, &y, w, w, NULL, 0, 1);
		assert_true(fabs((double)y - exact) <= 1e-5 * exact);
		free(w);
	}
}
