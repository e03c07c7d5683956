/* The fake driver: a right step passes, and each mistake that is planted in it is seen. Mistakes
 * run in a process of their own, as some of them end it. */
#include <signal.h>
#include <sys/wait.h>

#include "adapters/native/cuda/driver.h"
#include "tests/cuda/fake_driver.h"
#include "tests/unit/unit_test.h"

int cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags);
int cuMemAllocHost_v2(void **out, size_t bytes);
int cuMemFreeHost(void *address);

/* N: arrays end where a closed page begins (fake_memory.c, ALIGNMENT). */
enum { N = 1008, LAUNCHES = 3 };

enum mistake {
	NONE,
	NO_FINAL_SYNC,
	NO_EVENT,
	REFILLED_PINNED,
	HOST_READS_DEVICE,
	SYNC_IN_CAPTURE,
	CHANGED_SCALAR,
	OUT_OF_BOUNDS,
	HOST_POINTER,
	UNWRITTEN,
	UNJOINED_STREAM,
	PAGEABLE_IN_CAPTURE,
	FREED,
	NO_LOOP,
	NO_BARRIER,
	HALF_BARRIER,
	UNDECLARED_BARRIER
};

/* How a step ends. Calls that are refused end it at once. */
enum { RIGHT, WRONG, REFUSED };

struct step {
	struct cuda_driver cu;
	struct CUmod_st *module;
	struct CUstream_st *stream, *copies;
	struct CUevent_st *copied;
	CUdeviceptr weight, velocity, gradient, loss;
	float *host, *host_loss; /* pinned: N values, 1 value */
};

static void must(int status)
{
	if (status != CUDA_SUCCESS)
		_exit(REFUSED);
}

static void open_step(struct step *s)
{
	struct error err = ERROR_INIT;
	struct CUctx_st *context;

	if (cuda_driver_load(&s->cu, &err) != PRONY_OK)
		_exit(REFUSED);
	must(s->cu.DevicePrimaryCtxRetain(&context, 0));
	must(s->cu.CtxSetCurrent(context));
	must(s->cu.ModuleLoadData(&s->module, "machine code"));
	must(s->cu.StreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
	must(s->cu.StreamCreate(&s->copies, CU_STREAM_NON_BLOCKING));
	must(s->cu.EventCreate(&s->copied, CU_EVENT_DEFAULT));
	must(s->cu.MemAlloc(&s->weight, N * sizeof(float)));
	must(s->cu.MemAlloc(&s->velocity, N * sizeof(float)));
	must(s->cu.MemAlloc(&s->gradient, N * sizeof(float)));
	must(s->cu.MemAlloc(&s->loss, sizeof(float)));
	must(cuMemAllocHost_v2((void **)&s->host, N * sizeof(float)));
	must(cuMemAllocHost_v2((void **)&s->host_loss, sizeof(float)));
}

static void close_step(struct step *s)
{
	must(s->cu.MemFree(s->weight));
	must(s->cu.MemFree(s->velocity));
	must(s->cu.MemFree(s->gradient));
	must(s->cu.MemFree(s->loss));
	must(cuMemFreeHost(s->host));
	must(cuMemFreeHost(s->host_loss));
	must(s->cu.EventDestroy(s->copied));
	must(s->cu.StreamDestroy(s->stream));
	must(s->cu.StreamDestroy(s->copies));
	must(s->cu.ModuleUnload(s->module));
}

static void launch(struct step *s, const char *name, unsigned blocks, unsigned threads,
		   void **parameters)
{
	struct CUfunc_st *function;

	must(s->cu.ModuleGetFunction(&function, s->module, name));
	must(s->cu.LaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, s->stream, parameters,
				NULL));
}

static void fill(float *values, float value)
{
	for (int i = 0; i < N; i++)
		values[i] = value;
}

/* Weights of 1, no velocity, gradients of 2 on a stream of their own. */
static void copy_in(struct step *s, enum mistake mistake)
{
	fill(s->host, 1);
	must(s->cu.MemcpyHtoDAsync(s->weight, s->host, N * sizeof(float), s->stream));
	if (mistake != UNWRITTEN)
		must(s->cu.MemsetD8Async(s->velocity, 0, N * sizeof(float), s->stream));
	if (mistake != REFILLED_PINNED)
		must(s->cu.StreamSynchronize(s->stream));
	fill(s->host, 2);
	must(s->cu.MemcpyHtoDAsync(s->gradient, s->host, N * sizeof(float), s->copies));
	must(s->cu.EventRecord(s->copied, s->copies));
	if (mistake != NO_EVENT)
		must(cuStreamWaitEvent(s->stream, s->copied, 0));
}

static void copy_on_other_stream(struct step *s)
{
	must(s->cu.EventRecord(s->copied, s->stream));
	must(cuStreamWaitEvent(s->copies, s->copied, 0));
	must(s->cu.MemsetD8Async(s->gradient, 0, N * sizeof(float), s->copies));
}

/* What the step does: an update of the weights, and their sum. */
static void issue(struct step *s, enum mistake mistake, float *rate)
{
	float momentum = 0.5f, pageable;
	long long rows = 1, n = mistake == OUT_OF_BOUNDS ? N + 1 : N;
	CUdeviceptr weight = s->weight;
	void *update[] = {&weight, &s->velocity, &s->gradient, rate, &momentum, &n};
	void *sum[] = {&s->loss, &s->weight, &rows, &n};

	if (mistake == HOST_POINTER)
		weight = (CUdeviceptr)(uintptr_t)&pageable;
	launch(s, "test_momentum", 8, 128, update);
	if (mistake == SYNC_IN_CAPTURE)
		s->cu.StreamSynchronize(s->stream);
	if (mistake == HOST_READS_DEVICE)
		*rate = *(volatile float *)(uintptr_t)s->weight;
	if (mistake == UNJOINED_STREAM)
		copy_on_other_stream(s);
	if (mistake == NO_LOOP)
		launch(s, "test_no_loop", (N + 255) / 256 * 8, 256, (void *[]){&s->weight, &n});
	if (mistake == NO_BARRIER)
		launch(s, "test_no_barrier", 1, 64, &sum[1]);
	if (mistake == HALF_BARRIER)
		launch(s, "test_half_barrier", 1, 64, &sum[1]);
	if (mistake == UNDECLARED_BARRIER)
		launch(s, "test_undeclared_barrier", 1, 64, &sum[1]);
	launch(s, "test_sums", 1, 64, sum);
	if (mistake == PAGEABLE_IN_CAPTURE)
		s->cu.MemcpyDtoHAsync(&pageable, s->loss, sizeof(float), s->stream);
	must(s->cu.MemcpyDtoHAsync(s->host_loss, s->loss, sizeof(float), s->stream));
}

static int run_step(enum mistake mistake, bool captured)
{
	struct step s;
	struct CUgraph_st *graph;
	struct CUgraphExec_st *ready;
	float rate = 0.5f;

	open_step(&s);
	copy_in(&s, mistake);
	if (captured) {
		must(s.cu.StreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		issue(&s, mistake, &rate);
		must(s.cu.StreamEndCapture(s.stream, &graph));
		must(s.cu.GraphInstantiate(&ready, graph, 0));
		must(s.cu.GraphDestroy(graph));
	}
	for (int i = 0; i < LAUNCHES; i++) {
		/* The last launch has no effect on the weights if the mistake is as planned. */
		rate = mistake == CHANGED_SCALAR && i == LAUNCHES - 1 ? 0 : 0.5f;
		if (captured)
			must(s.cu.GraphLaunch(ready, s.stream));
		else
			issue(&s, mistake, &rate);
	}
	if (mistake == FREED)
		must(s.cu.MemFree(s.gradient));
	if (mistake != NO_FINAL_SYNC)
		must(s.cu.StreamSynchronize(s.stream));
	/* Velocities 2, 3, 3.5; the weights, 1, fall by half of each. */
	return *s.host_loss == N * (mistake == CHANGED_SCALAR ? -1.5f : -3.25f) ? RIGHT : WRONG;
}

/* The state in which the process ended, and what it said. */
static int run_apart(enum mistake mistake, bool captured, char *said, size_t said_bytes)
{
	int ends[2], state;
	size_t got = 0;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		_exit(run_step(mistake, captured));
	}
	close(ends[1]);
	for (ssize_t n; got < said_bytes - 1; got += (size_t)n)
		if ((n = read(ends[0], said + got, said_bytes - 1 - got)) <= 0)
			break;
	said[got] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &state, 0), child);
	return state;
}

TEST(test_right_step_passes)
{
	char said[1000];

	assert_int_equal(run_apart(NONE, true, said, sizeof(said)), 0);
	assert_int_equal(run_apart(NONE, false, said, sizeof(said)), 0);
	assert_lacks(said, "fake CUDA");
}

TEST(test_mistakes_are_seen)
{
	enum { ABORTED = 100 };
	static const struct {
		enum mistake mistake;
		int end; /* exit status, or ABORTED */
		const char *says;
	} cases[] = {
		{NO_FINAL_SYNC, WRONG, ""},
		{NO_EVENT, WRONG, ""},
		{REFILLED_PINNED, WRONG, ""},
		{HOST_READS_DEVICE, ABORTED, "the host touched byte 0 of 4032 bytes of device"},
		{SYNC_IN_CAPTURE, REFUSED, "cuStreamSynchronize while a stream is captured"},
		{CHANGED_SCALAR, WRONG, ""},
		{OUT_OF_BOUNDS, ABORTED, "test_momentum touched byte 4032 of 4032 bytes of device"},
		{HOST_POINTER, REFUSED, "test_momentum: argument 1"},
		{UNWRITTEN, WRONG, ""},
		{UNJOINED_STREAM, REFUSED, "does not wait for another"},
		{PAGEABLE_IN_CAPTURE, REFUSED, "memory that is not pinned"},
		{FREED, ABORTED, "a copy of freed device memory"},
		{NO_LOOP, WRONG, ""},
		{NO_BARRIER, WRONG, ""},
		{HALF_BARRIER, ABORTED, "test_half_barrier: 32 of 64 threads ended"},
		{UNDECLARED_BARRIER, ABORTED, "declare it by BLOCK_KERNEL"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char said[1000];
		int ended = run_apart(cases[i].mistake, true, said, sizeof(said));
		int end = WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT ? ABORTED
									   : WEXITSTATUS(ended);

		if (end != cases[i].end)
			fail_msg("mistake %zu: state %d, said '%s'", i + 1, ended, said);
		assert_has(said, cases[i].says);
	}
}

/* Each call of the step matters: without any one of them it is wrong. Calls are counted from the
 * start of the process, so that no test before this one may issue any. */
TEST(test_planted_mistakes)
{
	static const char *const planted[] = {"skip:0", "skip:1", "skip:2", "swap:0", "swap:1",
					      "copy:0", "copy:1", "fill:0", "wait:0", "wait:1"};
	char said[1000];

	for (size_t i = 0; i < COUNT(planted); i++) {
		setenv("FAKE_CUDA", planted[i], 1);
		if (run_apart(NONE, true, said, sizeof(said)) != WRONG << 8)
			fail_msg("%s is not seen", planted[i]);
	}
	unsetenv("FAKE_CUDA");
}

/* The value of a binary float with `fraction` bits below an exponent of the given bias. */
static double decode(int code, int fraction, int bias)
{
	int exponent = code >> fraction, bits = code & ((1 << fraction) - 1);

	if (exponent == 0)
		return ldexp(bits, 1 - bias - fraction);
	return ldexp(bits + (1 << fraction), exponent - bias - fraction);
}

struct rounding {
	struct step s;
	CUdeviceptr out, in, back;
	float *host;
	long long n;
};

static void round_all(struct rounding *r, const char *kernel)
{
	size_t bytes = (size_t)r->n * sizeof(float);

	must(r->s.cu.MemcpyHtoDAsync(r->in, r->host, bytes, r->s.stream));
	launch(&r->s, kernel, 4, 256, (void *[]){&r->out, &r->in, &r->back, &r->n});
	must(r->s.cu.MemcpyDtoHAsync(r->host, r->back, bytes, r->s.stream));
	must(r->s.cu.StreamSynchronize(r->s.stream));
}

/* Every number of a type, the point halfway to the next, and the floats beside that point. */
static void check_rounding(struct rounding *r, const char *kernel, int fraction, int bias,
			   int codes)
{
	r->n = 4 * (codes - 1);
	for (int c = 0; c < codes - 1; c++) {
		double low = decode(c, fraction, bias), high = decode(c + 1, fraction, bias);
		float half = (float)((low + high) / 2);

		r->host[4 * c] = (float)low;
		r->host[4 * c + 1] = nextafterf(half, 0);
		r->host[4 * c + 2] = -half;
		r->host[4 * c + 3] = nextafterf(half, INFINITY);
	}
	round_all(r, kernel);
	for (int c = 0; c < codes - 1; c++) {
		float low = (float)decode(c, fraction, bias);
		float high = c + 1 < codes - 1 ? (float)decode(c + 1, fraction, bias) : INFINITY;

		assert_true(r->host[4 * c] == low);
		/* A bfloat16 may be as small as a float can be: no float is nearer. */
		assert_true(r->host[4 * c + 1] == low);
		assert_true(r->host[4 * c + 2] == (c % 2 == 0 ? -low : -high));
		assert_true(r->host[4 * c + 3] == high);
	}
	r->n = 2;
	r->host[0] = NAN;
	r->host[1] = -INFINITY;
	round_all(r, kernel);
	assert_true(isnan(r->host[0]) && r->host[1] == -INFINITY);
}

TEST(test_16_bits_round_to_nearest_even)
{
	enum { F16_INFINITY = 0x7c00, BF16_INFINITY = 0x7f80, MOST = 4 * BF16_INFINITY };
	struct rounding r = {0};

	open_step(&r.s);
	must(r.s.cu.MemAlloc(&r.in, MOST * sizeof(float)));
	must(r.s.cu.MemAlloc(&r.out, MOST * sizeof(uint16_t)));
	must(r.s.cu.MemAlloc(&r.back, MOST * sizeof(float)));
	must(cuMemAllocHost_v2((void **)&r.host, MOST * sizeof(float)));
	check_rounding(&r, "test_round_f16", 10, 15, F16_INFINITY + 1);
	check_rounding(&r, "test_round_bf16", 7, 127, BF16_INFINITY + 1);
	must(r.s.cu.MemFree(r.in));
	must(r.s.cu.MemFree(r.out));
	must(r.s.cu.MemFree(r.back));
	must(cuMemFreeHost(r.host));
	close_step(&r.s);
}

static void add_one(void *data)
{
	float **value = data;

	**value += 1;
}

/* A library's work: in its place among the stream's, captured or not. */
TEST(test_enqueued_work_runs_in_order)
{
	struct step s;
	struct CUgraph_st *graph;
	struct CUgraphExec_st *ready;
	float *loss;

	open_step(&s);
	loss = (float *)(uintptr_t)s.loss;
	must(s.cu.MemsetD8Async(s.loss, 0, sizeof(float), s.stream));
	must(fake_cuda_enqueue(s.stream, add_one, &loss, sizeof(loss)));
	must(s.cu.StreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	must(fake_cuda_enqueue(s.stream, add_one, &loss, sizeof(loss)));
	must(s.cu.MemcpyDtoHAsync(s.host_loss, s.loss, sizeof(float), s.stream));
	must(s.cu.StreamEndCapture(s.stream, &graph));
	must(s.cu.GraphInstantiate(&ready, graph, 0));
	must(s.cu.GraphLaunch(ready, s.stream));
	must(s.cu.GraphLaunch(ready, s.stream));
	must(s.cu.GraphExecDestroy(ready));
	must(s.cu.GraphDestroy(graph));
	must(s.cu.StreamSynchronize(s.stream));
	assert_true(*s.host_loss == 3);
	close_step(&s);
}

TEST(test_memory)
{
	struct step s;
	CUdeviceptr address;

	open_step(&s);
	setenv("FAKE_CUDA_MEMORY", "20000", 1);
	assert_int_equal(s.cu.MemAlloc(&address, 20000), CUDA_ERROR_OUT_OF_MEMORY);
	must(s.cu.MemAlloc(&address, 20000 - 3 * N * sizeof(float) - sizeof(float)));
	assert_true(fake_cuda_is_device((void *)(uintptr_t)(s.weight + 4), 4028));
	assert_false(fake_cuda_is_device((void *)(uintptr_t)(s.weight + 4), 4029));
	assert_int_equal(s.cu.MemcpyDtoDAsync(s.weight, s.velocity + 4, 4032, s.stream),
			 CUDA_ERROR_INVALID_VALUE);
	must(s.cu.MemFree(address));
	assert_int_equal(s.cu.MemFree(address), CUDA_ERROR_INVALID_VALUE);
	unsetenv("FAKE_CUDA_MEMORY");
	close_step(&s);
}

/* What is left when the process ends is a line each in the file. */
IN_FOLDER(test_leaks_are_reported)
{
	const char *path = test_path("leaks");
	char text[200] = "";
	pid_t child;
	FILE *file;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		struct step s;

		setenv("FAKE_CUDA_LEAKS", path, 1);
		open_step(&s);
		must(s.cu.MemFree(s.weight));
		must(cuMemFreeHost(s.host));
		exit(0); /* which runs the driver's report */
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_has(text, "4032 bytes of device memory\n4032 bytes of device memory\n"
			 "4 bytes of device memory\n4 bytes of pinned memory\n");
}

/* Blocks of threads that meet at barriers give the sum of each row, in any size. */
TEST(test_block_sums)
{
	struct step s;
	long long rows = 25, n = N / 25;
	float sums[25];

	open_step(&s);
	for (int i = 0; i < N; i++)
		s.host[i] = (float)(i / n);
	must(s.cu.MemcpyHtoDAsync(s.gradient, s.host, N * sizeof(float), s.stream));
	for (unsigned threads = 32; threads <= 256; threads *= 2) {
		must(s.cu.MemsetD8Async(s.weight, 0xff, N * sizeof(float), s.stream));
		launch(&s, "test_sums", 7, threads, (void *[]){&s.weight, &s.gradient, &rows, &n});
		must(s.cu.MemcpyDtoHAsync(sums, s.weight, sizeof(sums), s.stream));
		must(s.cu.StreamSynchronize(s.stream));
		for (int row = 0; row < rows; row++)
			assert_true(sums[row] == (float)(row * n));
	}
	close_step(&s);
}

static struct fake_activity seen[20];
static int seen_count;

static void see(const struct fake_activity *activity)
{
	seen[seen_count++] = *activity;
}

/* What ran, in its order and one after another; a graph's work has one correlation. */
TEST(test_activities)
{
	static const char *const names[] = {"fill", "test_momentum", "test_sums", "copy"};
	struct step s;
	struct CUgraph_st *graph;
	struct CUgraphExec_st *ready;
	float rate = 0.5f;

	open_step(&s);
	fake_cuda_watch(see);
	must(s.cu.MemsetD8Async(s.velocity, 0, 40, s.stream));
	must(s.cu.StreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	issue(&s, NONE, &rate);
	must(s.cu.StreamEndCapture(s.stream, &graph));
	must(s.cu.GraphInstantiate(&ready, graph, 0));
	must(s.cu.GraphLaunch(ready, s.stream));
	must(s.cu.StreamSynchronize(s.stream));
	fake_cuda_watch(NULL);
	must(s.cu.StreamSynchronize(s.stream));
	assert_int_equal(seen_count, 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(seen[i].name, names[i]);
		assert_true(seen[i].begin <= seen[i].end);
		assert_true(i == 0 || seen[i].begin >= seen[i - 1].end);
	}
	assert_int_equal(seen[0].bytes, 40);
	assert_int_not_equal(seen[0].correlation, seen[1].correlation);
	assert_int_equal(seen[1].correlation, seen[3].correlation);
	must(s.cu.GraphExecDestroy(ready));
	must(s.cu.GraphDestroy(graph));
	close_step(&s);
}
