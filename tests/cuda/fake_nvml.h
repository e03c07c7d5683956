/* Played GPUs behind NVML's interface: build/tests/cuda/lib/libnvidia-ml.so.1. A program that opens
 * the library gets two GPUs at 300 W by this machine's clock; FAKE_NVML="gpus=1 refresh_ms=10
 * refuse=energy" changes that. A test finds `fake_nvml` by dlsym and changes anything. */
#ifndef PRONY_TESTS_CUDA_FAKE_NVML_H
#define PRONY_TESTS_CUDA_FAKE_NVML_H

#include <stdatomic.h>
#include <stdbool.h>

enum { FAKE_GPUS = 2 };
#define FAKE_MIB (1ull << 20)

struct fake_nvml {
	/* ns; NULL: the machine's clock. A call that takes time moves it. */
	atomic_llong *clock;
	int gpus;
	/* NVML lists them in the order 0, 1; their UUIDs end with 00 and 01. */
	struct fake_gpu {
		/* From 0 to begin_ns, and from end_ns on, it draws idle_w. */
		double idle_w, busy_w;
		long long begin_ns, end_ns;
		unsigned long long used, reserved; /* bytes */
		long long set_back_ns; /* the energy counter begins anew there; 0: never */
		unsigned reasons, processes;
		unsigned bus; /* bytes, both ways */
	} gpu[FAKE_GPUS];
	long long refresh_ns;	  /* of energy and power */
	long long energy_call_ns; /* what reading the energy takes */
	bool refuse_energy, refuse_instant, refuse_processes;
	unsigned refuse_field; /* one more field; 0: none */
	bool mig;	       /* a part of a GPU: no energy, power or utilisation */
};

#endif
