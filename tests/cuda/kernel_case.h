/* Kernels one by one, on the fake driver: arrays on the device, launches, and the operator's own
 * float64 kernel as the reference. Everything goes with the running test. */
#ifndef PRONY_TESTS_CUDA_KERNEL_CASE_H
#define PRONY_TESTS_CUDA_KERNEL_CASE_H

#include "adapters/native/cuda/driver.h"
#include "adapters/native/cuda/kernels/arguments.h"
#include "graph/graph.h"
#include "tests/unit/unit_test.h"

enum { DEVICE_ARRAYS_MAX = 100 };

/* The fixture: KERNEL_TEST(name) { ... uses d ... } */
struct kernel_device {
	struct cuda_driver cu;
	struct CUstream_st *stream;
	struct CUmod_st *module;
	CUdeviceptr arrays[DEVICE_ARRAYS_MAX];
	int count;
};

int kernel_device_open(void **state);
int kernel_device_close(void **state);
/* Frees all arrays before the end of the test. */
void kernel_device_forget(struct kernel_device *d);

#define KERNEL_TEST(name)                                                                          \
	TEST_ON(name, kernel_device_open, kernel_device_close, struct kernel_device *d)

/* The types that kernels exist for. */
extern const enum dtype kernel_types[3];

/* Numbers of a normal distribution, each rounded to the type. */
double *normal_numbers(int64_t count, enum dtype type, uint64_t seed, double mean,
		       double deviation);
/* The number in that type. */
double in_type(double value, enum dtype type);

/* A new array on the device: the numbers (NULL: none yet) in that type, which may be an integer's;
 * the same of an image whose channels come last on the device only. */
CUdeviceptr device_array(struct kernel_device *d, enum dtype type, int64_t count,
			 const double *numbers);
CUdeviceptr device_image(struct kernel_device *d, enum dtype type, const struct shape *shape,
			 bool channels_last, const double *numbers);
/* Waits, and reads. */
double *read_array(struct kernel_device *d, CUdeviceptr array, enum dtype type, int64_t count);
double *read_image(struct kernel_device *d, CUdeviceptr array, enum dtype type,
		   const struct shape *shape, bool channels_last);

/* Launches kernel `name` with the suffix of the type (DTYPE_COUNT: none), on the addresses of its
 * arguments' values. */
void launch_kernel(struct kernel_device *d, const char *name, enum dtype type, unsigned blocks,
		   unsigned threads, void **arguments);
#define LAUNCH(d, name, type, blocks, threads, ...)                                                \
	launch_kernel(d, name, type, blocks, threads, (void *[]){__VA_ARGS__})

/* Fails unless every |found - wanted| <= bound * max(|wanted|, root mean square of wanted). */
void assert_close(const char *what, const double *found, const double *wanted, int64_t count,
		  double bound);
/* The distance between numbers of the type beside 1, times a few. */
double type_bound(enum dtype type);

/* A node alone, in float64. Inputs first, then outputs, as many as the operator has; a value that
 * is left out is VALUE_NONE. */
struct lone_node {
	struct value values[12];
	double *arrays[12];
	struct node node;
	struct graph graph;
	bool training;
};

void lone_node_start(struct lone_node *lone, enum op op);
void lone_input(struct lone_node *lone, const struct shape *shape, double *numbers);
/* Returns the array that compute fills. */
double *lone_output(struct lone_node *lone, const struct shape *shape);
void lone_compute(struct lone_node *lone);

#endif
