/* Tests statuses, errors, memory, strings, words, clock, random numbers, digests. */
#include <errno.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "unit_test.h"

TEST(statuses_have_texts_and_exit_codes)
{
	assert_int_equal(prony_status_exit(PRONY_OK), 0);
	assert_int_equal(prony_status_exit(PRONY_USAGE), 64);
	assert_int_equal(prony_status_exit(PRONY_BAD_INPUT), 65);
	assert_int_equal(prony_status_exit(PRONY_STORE), 74);
	assert_int_equal(prony_status_exit(PRONY_INTERRUPTED), 130);
	assert_string_equal(prony_status_text(PRONY_OUT_OF_MEMORY), "out of memory");
	assert_non_null(prony_status_text((enum prony_status)999));
	assert_int_equal(prony_status_exit((enum prony_status)999), 70);
}

TEST(first_error_wins)
{
	struct error err = ERROR_INIT;

	error_prefix(&err, "no effect");
	assert_string_equal(err.text, "");
	assert_int_equal(error_set(&err, PRONY_BAD_INPUT, "line %d", 3), PRONY_BAD_INPUT);
	assert_int_equal(error_set(&err, PRONY_IO, "later"), PRONY_IO);
	assert_int_equal(err.code, PRONY_BAD_INPUT);
	error_prefix(&err, "suite %s", "a.yaml");
	assert_string_equal(err.text, "suite a.yaml: line 3");
	error_clear(&err);
	assert_int_equal(err.code, PRONY_OK);
	assert_int_equal(error_errno(&err, PRONY_IO, ENOENT, "open %s", "x"), PRONY_IO);
	assert_string_equal(err.text, "open x: No such file or directory");
	assert_int_equal(error_set(NULL, PRONY_IO, "nobody listens"), PRONY_IO);
	error_prefix(NULL, "nobody");
	error_clear(NULL);
}

TEST(error_texts_are_one_printable_line)
{
	static const struct {
		const char *given, *kept;
	} rows[] = {
		{"a\nb\tc\n", "a b c"},
		{"\033[31mred", "?[31mred"},
		{"caf\303\251 \342\202\254 \360\237\230\200",
		 "caf\303\251 \342\202\254 \360\237\230\200"},
		{"bad \377 byte", "bad ? byte"},
		{"overlong \300\257", "overlong ??"},
		{"surrogate \355\240\200", "surrogate ???"},
		{"c1 \302\233 control", "c1 ?? control"},
		{"cut \342\202", "cut ??"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		error_set(&err, PRONY_BAD_INPUT, "%s", rows[i].given);
		assert_string_equal(err.text, rows[i].kept);
	}
}

TEST(long_errors_keep_cause_and_prefix)
{
	struct error err = ERROR_INIT;
	char longer[3000];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	error_set(&err, PRONY_IO, "cause");
	error_prefix(&err, "%s", longer);
	assert_true(strlen(err.text) < ERROR_TEXT_BYTES);
	assert_string_equal(err.text + strlen(err.text) - 7, ": cause");

	error_clear(&err);
	error_set(&err, PRONY_IO, "%s", longer);
	assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES - 1);
	error_prefix(&err, "file");
	assert_memory_equal(err.text, "file: xxx", 9);
	assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES - 1);
}

TEST(arena_gives_zeroed_aligned_memory)
{
	static const size_t sizes[] = {0, 1, 63, 64, 65, 1000, 20000, 70000, 1000000, 5};
	struct arena arena;

	arena_init(&arena, 0);
	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < COUNT(sizes); i++) {
			unsigned char *memory = arena_alloc(&arena, sizes[i]);
			assert_int_equal((uintptr_t)memory % 64, 0);
			for (size_t at = 0; at < sizes[i]; at++)
				if (memory[at] != 0)
					fail_msg("byte %zu of %zu is not zero", at, sizes[i]);
			memset(memory, 0xa5, sizes[i]);
		}
	}
	assert_string_equal(arena_strdup(&arena, "name"), "name");
	assert_string_equal(arena_strndup(&arena, "name", 2), "na");
	assert_string_equal(arena_strndup(&arena, "name", 99), "name");
	assert_string_equal(arena_printf(&arena, "%s/%d", "conv", 7), "conv/7");
	arena_release(&arena);
	arena_release(&arena);
	assert_null(arena.blocks);
	arena_release(NULL);
}

TEST(arena_limit_is_an_error)
{
	struct arena arena;
	struct error err = ERROR_INIT;

	arena_init(&arena, 4096);
	assert_non_null(arena_try_array(&arena, 32, 64, &err));
	assert_null(arena_try_array(&arena, 33, 64, &err));
	assert_int_equal(err.code, PRONY_NOMEM);
	assert_has(err.text, "4096");
	assert_non_null(arena_try_array(&arena, 32, 64, NULL));
	assert_int_equal(arena.used_bytes, 4096);
	assert_null(arena_try_array(&arena, 1, 1, NULL));
	arena_release(&arena);

	error_clear(&err);
	arena_init(&arena, 0);
	assert_null(arena_try_array(&arena, SIZE_MAX / 2, 3, &err));
	assert_int_equal(err.code, PRONY_NOMEM);
	assert_null(arena_try_array(&arena, 1, SIZE_MAX, NULL));
	assert_null(arena_try_array(&arena, 1, SIZE_MAX / 2 - 64, NULL));
	arena_release(&arena);
}

/* Runs `body` in a child without stderr and returns its exit code. */
static int exit_code_of(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int null_fd = open("/dev/null", O_WRONLY);
		dup2(null_fd, 2);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void pass_the_limit(void)
{
	struct arena arena;

	arena_init(&arena, 1000);
	arena_alloc(&arena, 1001);
}

static void overflow_an_array(void)
{
	struct arena arena;

	arena_init(&arena, 0);
	arena_array(&arena, SIZE_MAX, 2);
}

static void exhaust_memory(void)
{
	memory_alloc(SIZE_MAX / 2);
}

TEST(exhausted_bookkeeping_ends_with_70)
{
	assert_int_equal(exit_code_of(pass_the_limit), 70);
	assert_int_equal(exit_code_of(overflow_an_array), 70);
	assert_int_equal(exit_code_of(exhaust_memory), 70);
}

TEST(strbuf_grows_and_stops_at_its_limit)
{
	struct strbuf buf;

	strbuf_init(&buf, 0);
	assert_string_equal(strbuf_text(&buf), "");
	for (int i = 0; i < 1000; i++)
		strbuf_printf(&buf, "%03d,", i);
	assert_int_equal(buf.length, 4000);
	assert_memory_equal(strbuf_text(&buf) + 3996, "999,", 5);
	assert_false(buf.truncated);
	strbuf_clear(&buf);
	assert_string_equal(strbuf_text(&buf), "");
	strbuf_release(&buf);
	strbuf_release(&buf);
	strbuf_release(NULL);

	strbuf_init(&buf, 10);
	strbuf_puts(&buf, "12345");
	strbuf_putc(&buf, '6');
	assert_false(buf.truncated);
	strbuf_printf(&buf, "%s", "789012345");
	assert_true(buf.truncated);
	assert_string_equal(strbuf_text(&buf), "1234567890");
	strbuf_puts(&buf, "more");
	assert_int_equal(buf.length, 10);
	char *taken = strbuf_take(&buf);
	assert_string_equal(taken, "1234567890");
	free(taken);
	taken = strbuf_take(&buf);
	assert_string_equal(taken, "");
	free(taken);
	assert_int_equal(buf.limit_bytes, 10);
	strbuf_release(&buf);
}

TEST(strbuf_keeps_bytes)
{
	struct strbuf buf = {0}; /* works without strbuf_init, with the default limit */

	strbuf_add(&buf, "a\0b", 3);
	assert_int_equal(buf.length, 3);
	assert_memory_equal(strbuf_text(&buf), "a\0b", 4);
	strbuf_add(&buf, NULL, 0);
	assert_int_equal(buf.length, 3);
	strbuf_release(&buf);
}

TEST(nearest_words)
{
	static const char *const words[] = {"resnet50", "resnet18", "lenet", "alexnet", "mlp"};
	static const struct {
		const char *typed, *near;
	} rows[] = {
		{"resnet5", "resnet50"},
		{"resnet-18", "resnet18"},
		{"LeNet", "lenet"},
		{"alexent", "alexnet"},
		{"ml", "mlp"},
		{"x", NULL},
		{"", NULL},
		{"transformer", NULL},
		{"mpl", "mlp"},
		{"lnet", "lenet"},
		{"lneet", "lenet"},
		{"mlpabc", NULL},
		{"zz", NULL},
		{"resnet", "resnet50"},
		{"alex", "alexnet"},
		{"NET18", "resnet18"},
		{"res", NULL},
		{NULL, NULL},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *near = word_nearest(rows[i].typed, words, COUNT(words));
		if (rows[i].near && near)
			assert_string_equal(near, rows[i].near);
		else
			assert_ptr_equal(near, rows[i].near);
	}
	char longer[300];
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_null(word_nearest(longer, words, COUNT(words)));
	assert_null(word_nearest("mlp", words, 0));
}

TEST(clocks)
{
	static const struct {
		int64_t ns;
		const char *text;
	} rows[] = {
		{0, "1970-01-01T00:00:00Z"},
		{INT64_C(1795232045999999999), "2026-11-21T03:34:05Z"},
		{INT64_C(951782400000000000), "2000-02-29T00:00:00Z"},
		{-1, "1969-12-31T23:59:59Z"},
	};
	char text[21];
	for (size_t i = 0; i < COUNT(rows); i++) {
		clock_format_utc(rows[i].ns, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
	clock_format_utc(0, text, 5);
	assert_string_equal(text, "");

	int64_t before = clock_monotonic_ns();
	clock_sleep_until_ns(before + 20000000);
	assert_true(clock_monotonic_ns() >= before + 20000000);
	clock_sleep_until_ns(0);

	setenv("SOURCE_DATE_EPOCH", "1000", 1);
	assert_int_equal(clock_wall_ns(), INT64_C(1000000000000));
	/* Year 2300, which has no time in nanoseconds. */
	setenv("SOURCE_DATE_EPOCH", "10413792000", 1);
	clock_format_utc(clock_wall_ns(), text, sizeof(text));
	assert_string_equal(text, "2200-01-01T00:00:00Z");
	setenv("SOURCE_DATE_EPOCH", "soon", 1);
	assert_true(clock_wall_ns() > INT64_C(1600000000000000000));
	unsetenv("SOURCE_DATE_EPOCH");
	assert_true(clock_wall_ns() > INT64_C(1600000000000000000));
}

TEST(random_matches_the_reference_code)
{
	/* Output of splitmix64.c of https://prng.di.unimi.it from x = 1234567. */
	static const uint64_t splitmix[4] = {
		UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
		UINT64_C(9817491932198370423), UINT64_C(4593380528125082431)};
	/* Output of xoshiro256starstar.c from s = {1, 2, 3, 4}. */
	static const uint64_t xoshiro[] = {
		UINT64_C(11520),
		UINT64_C(0),
		UINT64_C(1509978240),
		UINT64_C(1215971899390074240),
		UINT64_C(1216172134540287360),
		UINT64_C(607988272756665600),
		UINT64_C(16172922978634559625),
		UINT64_C(8476171486693032832),
		UINT64_C(10595114339597558777),
		UINT64_C(2904607092377533576),
	};
	struct random random;
	random_init(&random, 1234567);
	assert_memory_equal(random.state, splitmix, sizeof(splitmix));
	random = (struct random){.state = {1, 2, 3, 4}};
	for (size_t i = 0; i < COUNT(xoshiro); i++)
		assert_true(random_next(&random) == xoshiro[i]);
}

TEST(named_streams_differ)
{
	struct random a, b, c, again;

	random_init_named(&a, 1, "weights/conv1.weight");
	random_init_named(&b, 1, "weights/conv1.bias");
	random_init_named(&c, 2, "weights/conv1.weight");
	random_init_named(&again, 1, "weights/conv1.weight");
	assert_memory_equal(&a, &again, sizeof(a));
	assert_memory_not_equal(&a, &b, sizeof(a));
	assert_memory_not_equal(&a, &c, sizeof(a));
}

TEST(random_distributions)
{
	enum { DRAWS = 200000 };
	struct random random;
	double sum = 0, squares = 0, fourth = 0, uniform = 0;
	size_t buckets[7] = {0};

	random_init(&random, 42);
	for (int i = 0; i < DRAWS; i++) {
		double x = random_normal(&random);
		assert_true(isfinite(x));
		sum += x;
		squares += x * x;
		fourth += x * x * x * x;
		double u = random_uniform(&random);
		assert_true(u >= 0 && u < 1);
		uniform += u;
		buckets[random_below(&random, 7)]++;
	}
	/* Five standard errors each. */
	assert_true(fabs(sum / DRAWS) < 5 / sqrt(DRAWS));
	assert_true(fabs(squares / DRAWS - 1) < 5 * sqrt(2.0 / DRAWS));
	assert_true(fabs(fourth / DRAWS - 3) < 5 * sqrt(96.0 / DRAWS));
	assert_true(fabs(uniform / DRAWS - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
	for (size_t i = 0; i < COUNT(buckets); i++)
		assert_true(fabs((double)buckets[i] - DRAWS / 7.0) < 5 * sqrt(DRAWS * 6.0 / 49));
	assert_true(random_below(&random, 1) == 0);
}

/* The polar method with libm's logarithm: prony's own may differ only by rounding. */
TEST(random_normal_has_an_accurate_logarithm)
{
	struct random random, copy;

	random_init(&random, 7);
	copy = random;
	for (int i = 0; i < 20000; i++) {
		double x, y, square;
		do {
			x = 2 * random_uniform(&copy) - 1;
			y = 2 * random_uniform(&copy) - 1;
			square = x * x + y * y;
		} while (square >= 1 || square <= 0);
		double expected = x * sqrt(-2 * log(square) / square);
		double found = random_normal(&random);
		assert_true(fabs(found - expected) <= 4e-15 * fabs(expected));
	}
}

TEST(shuffle_permutes)
{
	struct random random;
	size_t indices[100], seen[100] = {0}, moved = 0;

	for (size_t i = 0; i < COUNT(indices); i++)
		indices[i] = i;
	random_init(&random, 3);
	random_shuffle(&random, indices, COUNT(indices));
	for (size_t i = 0; i < COUNT(indices); i++) {
		seen[indices[i]]++;
		moved += indices[i] != i;
	}
	for (size_t i = 0; i < COUNT(seen); i++)
		assert_int_equal(seen[i], 1);
	assert_true(moved > 80);
	random_shuffle(&random, indices, 1);
	random_shuffle(&random, NULL, 0);
}

TEST(digests_match_fips_180)
{
	char hex[DIGEST_HEX_BYTES], from_file[DIGEST_HEX_BYTES];
	struct error err = ERROR_INIT;

	digest_bytes("", 0, hex);
	assert_string_equal(hex,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	digest_bytes("abc", 3, hex);
	assert_string_equal(hex,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	char *million = test_keep(memory_alloc(1000000));
	memset(million, 'a', 1000000);
	digest_bytes(million, 1000000, hex);
	assert_string_equal(hex,
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");

	char path[] = "/tmp/prony-test-digest-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, million, 1000000), 1000000);
	close(fd);
	check(digest_file(path, from_file, &err), &err);
	assert_string_equal(from_file, hex);
	unlink(path);
	expect_error(digest_file(path, from_file, &err), PRONY_BAD_INPUT, &err, path);
	assert_int_equal(digest_file("/", from_file, NULL), PRONY_IO);
	assert_string_equal(from_file, hex);
}
