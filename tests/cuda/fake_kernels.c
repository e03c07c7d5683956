/* Runs kernels: blocks in a shuffled order, their threads backwards; threads that meet at barriers
 * are fibers. */
#include <link.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/cuda/fake_internal.h"

enum {
	THREADS_MAX = 256, /* as common.cuh promises to kernels */
	STACK = 128 * 1024,
	PAGE = 4096,
	ARGUMENTS_MAX = 64,
	TABLES_MAX = 64,
	/* More threads than this run as FEW: each takes every n-th element, which is slow. */
	MANY = 2048,
	FEW = 2
};

/* As in host_cuda.h. */
struct host_dim3 {
	unsigned x, y, z;
};
extern struct host_dim3 threadIdx, blockIdx, blockDim, gridDim;
void host_barrier(const char *file, int line);
struct host_dim3 threadIdx, blockIdx, blockDim, gridDim;

static struct {
	const struct fake_kernel *kernels;
	int count;
} tables[TABLES_MAX];
static int table_count;

static const struct fake_kernel *running;
static void *values[ARGUMENTS_MAX];

/* A thread of a block. It is parked between two runs of a kernel and at barriers. */
static struct fiber {
	jmp_buf place;
	bool started, finished;
	const char *file; /* of the barrier */
	int line;
} fibers[THREADS_MAX];
static jmp_buf scheduler;
static ucontext_t starting, first;
static unsigned current;

/* The block's shared memory: all thread-local variables of this library (SHARED in host_cuda.h).
 * This one makes sure that the first look finds the others. */
static _Thread_local char shared_memory = 1;

bool fake_kernels_add(const struct fake_kernel *kernels, int count)
{
	if (table_count == TABLES_MAX)
		fake_abort("more than %d files of kernels", TABLES_MAX);
	tables[table_count].kernels = kernels;
	tables[table_count++].count = count;
	return true;
}

const struct fake_kernel *fake_kernel_find(const char *name)
{
	for (int t = 0; t < table_count; t++)
		for (int i = 0; i < tables[t].count; i++)
			if (strcmp(tables[t].kernels[i].name, name) == 0)
				return &tables[t].kernels[i];
	return NULL;
}

const char *fake_kernel_running(void)
{
	return running != NULL ? running->name : NULL;
}

static int find_shared(struct dl_phdr_info *object, size_t bytes, void *out)
{
	struct {
		unsigned char *start;
		size_t bytes;
	} *found = out;

	(void)bytes;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const unsigned char *start = object->dlpi_tls_data;
		const unsigned char *ours = (const unsigned char *)&shared_memory;

		if (object->dlpi_phdr[i].p_type == PT_TLS && start != NULL && ours >= start &&
		    ours < start + object->dlpi_phdr[i].p_memsz) {
			found->start = object->dlpi_tls_data;
			found->bytes = object->dlpi_phdr[i].p_memsz;
			return 1;
		}
	}
	return 0;
}

void host_barrier(const char *file, int line)
{
	struct fiber *own = &fibers[current];

	if (!running->block)
		fake_abort("%s has a barrier (%s:%d): declare it by BLOCK_KERNEL", running->name,
			   file, line);
	own->file = file;
	own->line = line;
	if (_setjmp(own->place) == 0)
		_longjmp(scheduler, 1);
}

/* Runs the kernel once for each time that it is resumed. */
static void live(void)
{
	struct fiber *own = &fibers[current];

	if (_setjmp(own->place) == 0)
		swapcontext(&starting, &first);
	for (;;) {
		running->call(values);
		own->finished = true;
		if (_setjmp(own->place) == 0)
			_longjmp(scheduler, 1);
	}
}

static void start_fiber(unsigned i)
{
	unsigned char *stack =
		mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED || mprotect(stack, PAGE, PROT_NONE) != 0 ||
	    getcontext(&starting) != 0)
		fake_abort("no memory for a thread of a block");
	starting.uc_stack.ss_sp = stack;
	/* Stacks that begin at different places of their pages do not displace each other in
	 * caches. */
	starting.uc_stack.ss_size = STACK - i * 5 * 64;
	starting.uc_link = NULL;
	makecontext(&starting, live, 0);
	current = i;
	fibers[i].started = true;
	swapcontext(&first, &starting);
}

static void resume(unsigned i)
{
	current = i;
	threadIdx.x = i;
	if (_setjmp(scheduler) == 0)
		_longjmp(fibers[i].place, 1);
}

/* From barrier to barrier. All threads of a block have to come to the same ones. */
static void run_fibers(unsigned threads)
{
	unsigned finished = 0;

	for (unsigned i = 0; i < threads; i++) {
		if (!fibers[i].started)
			start_fiber(i);
		fibers[i].finished = false;
	}
	while (finished < threads) {
		const struct fiber *last = &fibers[threads - 1];

		finished = 0;
		for (unsigned i = threads; i-- > 0;) {
			resume(i);
			finished += fibers[i].finished;
		}
		if (finished > 0 && finished < threads)
			fake_abort("%s: %u of %u threads ended while the others wait at a barrier",
				   running->name, finished, threads);
		for (unsigned i = 0; finished == 0 && i < threads; i++)
			if (fibers[i].line != last->line || fibers[i].file != last->file)
				fake_abort("%s: threads wait at different barriers, %s:%d and "
					   "%s:%d",
					   running->name, fibers[i].file, fibers[i].line,
					   last->file, last->line);
	}
}

static unsigned common_divisor(unsigned a, unsigned b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

void fake_kernel_run(const struct fake_kernel *kernel, unsigned blocks, unsigned threads,
		     unsigned char *arguments)
{
	struct {
		unsigned char *start;
		size_t bytes;
	} shared = {0};
	unsigned stride = 7919; /* prime: a permutation of the blocks, once it divides no count */

	if (kernel->block) {
		shared_memory = 1;
		dl_iterate_phdr(find_shared, &shared);
	}
	if (!kernel->block && (unsigned long long)blocks * threads > MANY) {
		blocks = FEW;
		threads = 1;
	}
	for (int i = 0; i < kernel->argument_count; i++) {
		values[i] = arguments;
		arguments += (kernel->arguments[i].bytes + 15) / 16 * 16;
	}
	while (common_divisor(stride, blocks) != 1)
		stride++;
	running = kernel;
	gridDim = (struct host_dim3){blocks, 1, 1};
	blockDim = (struct host_dim3){threads, 1, 1};
	for (unsigned b = 0; b < blocks; b++) {
		blockIdx.x = (unsigned)(((unsigned long long)b * stride + blocks / 2) % blocks);
		if (kernel->block) {
			memset(shared.start, 0xff, shared.bytes);
			run_fibers(threads);
			continue;
		}
		for (threadIdx.x = threads; threadIdx.x-- > 0;)
			kernel->call(values);
	}
	running = NULL;
}
