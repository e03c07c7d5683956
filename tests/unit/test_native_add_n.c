/* The native executor's sums of many terms against one addition after the other, on every
 * instruction set that this processor has; needs no library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "adapters/native/kernels/add_n.h"
#include "adapters/native/kernels/bf16.h"
#include "base/random.h"

#define COUNT 2503 /* no multiple of any vector */

static float numbers[SUM_ARRAYS_MAX][COUNT], results[COUNT];
static uint16_t low[SUM_ARRAYS_MAX][COUNT], low_results[COUNT];

/* Numbers that bf16 holds as well, an infinity and a NaN among them. */
static void fill(struct random *random)
{
	for (int k = 0; k < SUM_ARRAYS_MAX; k++) {
		for (size_t i = 0; i < COUNT; i++) {
			low[k][i] = bf16_from_float((float)random_normal(random));
			if (random_below(random, 97) == 0)
				low[k][i] = bf16_from_float(k % 2 ? -INFINITY : NAN);
			numbers[k][i] = bf16_to_float(low[k][i]);
		}
	}
}

/* What becomes of number i of array 0 and the `count` - 1 arrays behind, the mask being the last.
 */
static float expected(size_t i, int count, enum sum_then then)
{
	float sum = numbers[0][i];

	for (int k = 1; k < count; k++)
		sum += numbers[k][i];
	if (then == SUM_RELU)
		return sum > 0 ? sum : 0;
	return then != SUM_RELU_GRAD || numbers[SUM_ARRAYS_MAX - 1][i] > 0 ? sum : 0;
}

static void assert_same(float have, float want)
{
	if (!(have == want || (isnan(have) && isnan(want))))
		fail_msg("%.9g, not %.9g", (double)have, (double)want);
}

static void check(int count, enum sum_then then, enum instruction_set set)
{
	const void *terms[SUM_TERMS_MAX], *low_terms[SUM_TERMS_MAX];

	for (int k = 0; k < count; k++) {
		terms[k] = numbers[k];
		low_terms[k] = low[k];
	}
	/* In place of the last term, as the executor may have it. */
	memcpy(results, numbers[count - 1], sizeof(results));
	memcpy(low_results, low[count - 1], sizeof(low_results));
	terms[count - 1] = results;
	low_terms[count - 1] = low_results;
	sum_pick(false, set)(results, terms, count, then, numbers[SUM_ARRAYS_MAX - 1], COUNT);
	sum_pick(true, set)(low_results, low_terms, count, then, low[SUM_ARRAYS_MAX - 1], COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		float want = expected(i, count, then);

		assert_same(results[i], want);
		assert_same(bf16_to_float(low_results[i]), bf16_to_float(bf16_from_float(want)));
	}
}

static void sums_are_those_of_one_after_the_other(void **state)
{
	struct random random;

	(void)state;
	random_init(&random, 4);
	fill(&random);
	for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++) {
		for (int count = 1; count <= SUM_TERMS_MAX; count++) {
			for (int then = SUM_ONLY; then <= SUM_RELU_GRAD; then++)
				check(count, (enum sum_then)then, (enum instruction_set)set);
		}
	}
}

/* Two terms that are columns 16 to 31 and 0 to 15 of wider arrays, masked. */
static void rows_are_parts_of_arrays(void **state)
{
	enum { ROWS = 23, INNER = 16, WIDE = 48 };
	const struct sum_rows rows = {
		.loop = sum_pick(false, instruction_set_best()),
		.then = SUM_RELU_GRAD,
		.count = 2,
		.inner = INNER,
		.strides = {INNER, WIDE, INNER, INNER},
		.starts = {0, 16, 0, 0},
	};
	void *const arrays[] = {results, numbers[0], numbers[1], numbers[2]};
	struct random random;

	(void)state;
	random_init(&random, 5);
	fill(&random);
	memset(results, 0x55, sizeof(results));
	/* Shares that end within a row. */
	sum_rows_run(&rows, arrays, 0, 70);
	sum_rows_run(&rows, arrays, 70, 71);
	sum_rows_run(&rows, arrays, 71, ROWS * INNER);
	for (size_t i = 0; i < ROWS * INNER; i++) {
		float sum = numbers[0][i / INNER * WIDE + 16 + i % INNER] + numbers[1][i];

		assert_same(results[i], numbers[2][i] > 0 ? sum : 0);
	}
	for (size_t i = ROWS * INNER; i < COUNT; i++) {
		uint32_t bits;

		memcpy(&bits, &results[i], sizeof(bits));
		assert_true(bits == 0x55555555);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_one_after_the_other),
		cmocka_unit_test(rows_are_parts_of_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
