/* What a GPU ran, by CUPTI: of the fake driver's work. */
#include "adapters/native/cuda/cupti.h"

#include "base/clock.h"
#include "tests/cuda/kernel_case.h"

/* A fill, two kernels and a copy. */
static void issue(struct kernel_device *d)
{
	long long n = 1000, rows = 10, columns = 100;
	float rate = 0.5f, momentum = 0.5f;
	CUdeviceptr x = device_array(d, DTYPE_F32, n, NULL),
		    v = device_array(d, DTYPE_F32, n, NULL);

	assert_int_equal(d->cu.MemsetD8Async(x, 0, (size_t)n, d->stream), 0);
	LAUNCH(d, "test_momentum", DTYPE_COUNT, 4, 128, &x, &v, &x, &rate, &momentum, &n);
	LAUNCH(d, "test_sums", DTYPE_COUNT, 2, 64, &v, &x, &rows, &columns);
	assert_int_equal(d->cu.MemcpyDtoDAsync(x, v, 400, d->stream), 0);
	assert_int_equal(d->cu.StreamSynchronize(d->stream), 0);
}

KERNEL_TEST(test_records)
{
	static const struct {
		const char *name;
		enum cupti_kind kind;
		int64_t bytes;
	} wanted[] = {{"fill", CUPTI_FILL, 1000},
		      {"test_momentum", CUPTI_KERNEL, 0},
		      {"test_sums", CUPTI_KERNEL, 0},
		      {"copy on the device", CUPTI_COPY, 400}};
	struct error err = ERROR_INIT;
	struct cupti_record *records;
	size_t count;

	issue(d);
	check(cupti_start(13000, clock_monotonic_ns, &err), &err);
	for (int round = 0; round < 2; round++) {
		int64_t begin = clock_monotonic_ns(), end;

		issue(d);
		end = clock_monotonic_ns();
		check(cupti_take(&records, &count, &err), &err);
		test_keep(records);
		assert_int_equal(count, COUNT(wanted));
		for (size_t i = 0; i < count; i++) {
			assert_string_equal(records[i].name, wanted[i].name);
			assert_int_equal(records[i].kind, wanted[i].kind);
			assert_int_equal(records[i].bytes, wanted[i].bytes);
			assert_true(records[i].end_ns >= records[i].begin_ns);
		}
		/* The clocks differ by eleven days; what is left of that is microseconds. */
		assert_true(records[0].begin_ns >= begin - 1000000);
		assert_true(records[3].end_ns <= end + 1000000);
	}
	check(cupti_take(&records, &count, &err), &err);
	assert_int_equal(count, 0);
	cupti_stop();
}

/* More records than fit one buffer; none is left after a stop. */
KERNEL_TEST(test_many_records)
{
	enum { LAUNCHES = 10000 };
	CUdeviceptr x = device_array(d, DTYPE_F32, 1, NULL);
	struct error err = ERROR_INIT;
	struct cupti_record *records;
	size_t count;

	check(cupti_start(13000, clock_monotonic_ns, &err), &err);
	for (int i = 0; i < LAUNCHES; i++)
		assert_int_equal(d->cu.MemsetD8Async(x, 0, sizeof(float), d->stream), 0);
	assert_int_equal(d->cu.StreamSynchronize(d->stream), 0);
	check(cupti_take(&records, &count, &err), &err);
	test_keep(records);
	assert_int_equal(count, LAUNCHES);
	for (size_t i = 1; i < count; i++)
		assert_true(records[i].begin_ns >= records[i - 1].begin_ns);
	issue(d);
	cupti_stop();
	check(cupti_start(13000, clock_monotonic_ns, &err), &err);
	check(cupti_take(&records, &count, &err), &err);
	assert_int_equal(count, 0);
	cupti_stop();
}

KERNEL_TEST(test_what_it_cannot)
{
	struct error err = ERROR_INIT;
	struct cupti_record *records;
	size_t count;

	setenv("FAKE_CUPTI", "refuse", 1);
	expect_error(cupti_start(13000, clock_monotonic_ns, &err), PRONY_MISSING, &err,
		     "CUPTI: start failed: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)");
	setenv("FAKE_CUPTI", "lose", 1);
	check(cupti_start(13000, clock_monotonic_ns, &err), &err);
	issue(d);
	expect_error(cupti_take(&records, &count, &err), PRONY_INTERNAL, &err,
		     "CUPTI lost 3 records");
	cupti_stop();
	unsetenv("FAKE_CUPTI");
}
