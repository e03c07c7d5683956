/* Properties of the timed region: its records are right, it allocates nothing and makes no system
 * call. */
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/ptrace.h>

#include "adapters/fake/fake.h"
#include "adapters/null.h"
#include "unit_test.h"
#include "worker/loop.h"
#include "zoo/zoo.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||                         \
	__has_feature(thread_sanitizer)
#define HAVE_SANITIZER 1
#endif
#endif

#define RECORDS_MAX 4096

#if !defined(HAVE_SANITIZER)
static int64_t allocations; /* malloc-family calls so far, by any library */

/*
 * The internal names of glibc's allocator. The definitions below take precedence for every library.
 */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void __libc_free(void *memory);

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *malloc(size_t bytes)
{
	allocations++;
	return __libc_malloc(bytes);
}

EXPORTED void *calloc(size_t count, size_t bytes)
{
	allocations++;
	return __libc_calloc(count, bytes);
}

EXPORTED void *realloc(void *memory, size_t bytes)
{
	allocations++;
	return __libc_realloc(memory, bytes);
}

EXPORTED void free(void *memory)
{
	allocations += memory != NULL;
	__libc_free(memory);
}
#endif

static struct step_record records[RECORDS_MAX];

/* An adapter that records its calls, and fails on request. */
static struct {
	char calls[64]; /* "s0" a step on slot 0, "w" a wait */
	int steps_until_error, syncs_until_error;
	bool allocates, calls_system;
} noted;

static void *volatile kept; /* volatile: the compiler must not remove the allocation */

static void note(const char *call)
{
	size_t length = strlen(noted.calls);

	snprintf(noted.calls + length, sizeof noted.calls - length, "%s", call);
}

static enum prony_status noting_step(struct session *s, int slot, struct error *err)
{
	char call[] = {'s', (char)('0' + slot), '\0'};

	(void)s;
	note(call);
	if (noted.allocates) {
		kept = malloc(1);
		free(kept);
	}
	if (noted.calls_system)
		syscall(SYS_getuid);
	if (noted.steps_until_error && --noted.steps_until_error == 0)
		return error_set(err, PRONY_OUT_OF_MEMORY, "no more");
	return PRONY_OK;
}

static enum prony_status noting_sync(struct session *s, struct error *err)
{
	(void)s;
	note("w");
	if (noted.syncs_until_error && --noted.syncs_until_error == 0)
		return error_set(err, PRONY_CRASHED, "no wait");
	return PRONY_OK;
}

static const struct adapter noting = {.name = "noting", .step = noting_step, .sync = noting_sync};

static void plan_calls(int64_t steps, int64_t every, int slot, int slots, const char *calls,
		       int64_t count)
{
	struct loop_plan plan = {.steps = steps, .every = every, .slot = slot, .slots = slots};
	struct session session = {.option = ""};
	struct error err = ERROR_INIT;

	memset(&noted, 0, sizeof noted);
	memset(records, 0, sizeof records);
	assert_int_equal(loop_records(&plan), count);
	check(loop_run(&noting, &session, &plan, records, &err), &err);
	assert_string_equal(noted.calls, calls);
	for (int64_t i = 0; i < count; i++) {
		assert_true(records[i].begin_ns > 0 && records[i].end_ns >= records[i].begin_ns);
		assert_true(i == 0 || records[i].begin_ns == records[i - 1].end_ns);
	}
	assert_int_equal(records[count].end_ns, 0);
}

TEST(steps_and_waits_come_in_the_order_of_the_protocol)
{
	plan_calls(1, 1, 0, 1, "ws0w", 1);
	plan_calls(4, 4, 0, 8, "ws0s1s2s3w", 1);
	plan_calls(4, 100, 2, 3, "ws2s0s1s2w", 1);
	plan_calls(3, 1, 1, 2, "ws1ws0ws1w", 3);
	plan_calls(5, 2, 0, 3, "ws0s1ws2s0ws1w", 3);
	plan_calls(4, 2, 0, 3, "ws0s1ws2s0w", 2);
	plan_calls(2, INT64_MAX, 0, 1, "ws0s0w", 1);
}

TEST(errors_end_the_loop)
{
	struct loop_plan plan = {.steps = 10, .every = 2, .slots = 2};
	struct session session = {.option = ""};
	struct error err = ERROR_INIT;

	memset(&noted, 0, sizeof noted);
	noted.steps_until_error = 3;
	assert_int_equal(loop_run(&noting, &session, &plan, records, &err), PRONY_OUT_OF_MEMORY);
	assert_string_equal(noted.calls, "ws0s1ws0");
	memset(&noted, 0, sizeof noted);
	noted.syncs_until_error = 1;
	assert_int_equal(loop_run(&noting, &session, &plan, records, &err), PRONY_CRASHED);
	assert_string_equal(noted.calls, "w");
	noted.syncs_until_error = 2;
	assert_int_equal(loop_run(&noting, &session, &plan, records, &err), PRONY_CRASHED);
}

/* A session of the null or fake adapter on LeNet, ready to step. */
struct ready {
	const struct adapter *adapter;
	struct session session;
	struct arena arena;
	struct graph graph;
};

static void make_ready(struct ready *ready, const struct adapter *adapter)
{
	enum { BATCH = 2, SLOTS = 2 };
	struct error err = ERROR_INIT;
	struct recipe recipe;
	struct probe probe;
	struct effective effective;
	struct built built;
	struct tensor_set weights;
	struct tensor x, y;

	*ready = (struct ready){.adapter = adapter, .session = {.option = ""}};
	arena_init(&ready->arena, 0);
	recipe_defaults(&recipe);
	recipe.stage = STAGE_TRAIN;
	recipe.batch = BATCH;
	recipe.slots = SLOTS;
	ready->session.private_data = arena_alloc(&ready->arena, adapter->private_size);
	if (zoo_build(zoo_find("lenet", NULL), BATCH, &ready->graph, &err) != PRONY_OK ||
	    graph_initial_weights(&ready->graph, 1, &ready->arena, &weights, &err) != PRONY_OK ||
	    tensor_new(&ready->arena, "x", DTYPE_F32,
		       &ready->graph.values[graph_input(&ready->graph, 0)].shape, &x,
		       &err) != PRONY_OK ||
	    tensor_new(&ready->arena, "y", DTYPE_I64,
		       &ready->graph.values[graph_label(&ready->graph, 0)].shape, &y,
		       &err) != PRONY_OK ||
	    adapter->probe(&ready->session, &probe, &err) != PRONY_OK ||
	    adapter->open(&ready->session, &recipe, &effective, &err) != PRONY_OK ||
	    adapter->build(&ready->session, &ready->graph, &recipe, &weights, &built, &err) !=
		    PRONY_OK)
		fail_msg("%s", err.text);
	for (int slot = 0; slot < SLOTS; slot++)
		check(adapter->feed(&ready->session, slot, (struct batch){&x, &y, 1, 1}, &err),
		      &err);
}

static void end_ready(struct ready *ready)
{
	ready->adapter->close(&ready->session);
	graph_release(&ready->graph);
	arena_release(&ready->arena);
}

#if !defined(HAVE_SANITIZER) /* sanitizers have their own allocator */
static int64_t allocations_of(const struct adapter *adapter, struct session *session, int64_t steps,
			      int64_t every)
{
	struct loop_plan plan = {.steps = steps, .every = every, .slots = 2};
	struct error err = ERROR_INIT;
	int64_t before = allocations;

	check(loop_run(adapter, session, &plan, records, &err), &err);
	return allocations - before;
}

TEST(the_timed_region_allocates_nothing)
{
	const struct adapter *const adapters[] = {&adapter_null, &adapter_fake};
	struct session session = {.option = ""};

	memset(&noted, 0, sizeof noted);
	noted.allocates = true;
	assert_int_equal(allocations_of(&noting, &session, 3, 3), 6); /* the counter counts */
	for (size_t i = 0; i < 2; i++) {
		struct ready ready;

		make_ready(&ready, adapters[i]);
		assert_int_equal(allocations_of(adapters[i], &ready.session, 10, 10), 0);
		assert_int_equal(allocations_of(adapters[i], &ready.session, 10, 1), 0);
		assert_int_equal(allocations_of(adapters[i], &ready.session, 10, 3), 0);
		end_ready(&ready);
	}
}
#endif

/* Makes a system call that is not used elsewhere, as a mark around the traced code. */
static void mark(void)
{
	syscall(SYS_getpriority, -1, -1);
}

static _Noreturn void run_traced(const struct adapter *adapter, struct session *session)
{
	struct loop_plan plan = {.steps = 20, .every = 3, .slots = 2};
	struct error err = ERROR_INIT;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(77);
	raise(SIGSTOP);
	mark();
	enum prony_status status = loop_run(adapter, session, &plan, records, &err);
	mark();
	_exit(status == PRONY_OK ? 0 : 1);
}

/* Continues to the next entry of a system call; returns its number, or -1 at the end of the
 * process. */
static int64_t next_system_call(pid_t child, int *status)
{
	for (;;) {
		struct ptrace_syscall_info info = {.op = 0};

		assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, status, 0), child);
		if (!WIFSTOPPED(*status))
			return -1;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) < 0)
			fail_msg("PTRACE_GET_SYSCALL_INFO needs Linux 5.3");
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			return (int64_t)info.entry.nr;
	}
}

/* Returns the number of system calls of a loop between its marks, without those of the clock: on a
 * machine without a vDSO clock, reading it is a system call. -1 if tracing is not allowed here. */
static int64_t system_calls_of(const struct adapter *adapter, struct session *session)
{
	int64_t count = 0, call;
	int marks = 0, status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		run_traced(adapter, session);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status))
		return -1;
	/* This option distinguishes stops at system calls from others. */
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD), 0);
	while ((call = next_system_call(child, &status)) >= 0) {
		if (call == SYS_getpriority)
			marks++;
		else if (marks == 1 && call != SYS_clock_gettime)
			count++;
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(marks, 2);
	return count;
}

TEST(the_timed_region_calls_no_system)
{
	const struct adapter *const adapters[] = {&adapter_null, &adapter_fake};
	struct session session = {.option = ""};

	memset(&noted, 0, sizeof noted);
	noted.calls_system = true;
	int64_t seen = system_calls_of(&noting, &session);

	if (seen < 0)
		skip();		    /* no ptrace here */
	assert_int_equal(seen, 20); /* the counter counts */
	for (size_t i = 0; i < 2; i++) {
		struct ready ready;

		make_ready(&ready, adapters[i]);
		assert_int_equal(system_calls_of(adapters[i], &ready.session), 0);
		end_ready(&ready);
	}
}
