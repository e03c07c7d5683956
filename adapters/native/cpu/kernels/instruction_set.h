/*
 * The instruction sets that our own loops are compiled for, and the best one of this processor.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_INSTRUCTION_SET_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_INSTRUCTION_SET_H

/* Narrowest first; a processor with one has those before it. */
enum instruction_set {
	INSTRUCTIONS_BASELINE,
	INSTRUCTIONS_AVX2,  /* with FMA */
	INSTRUCTIONS_AVX512 /* F, BW, DQ and VL */
};

static inline enum instruction_set instruction_set_best(void)
{
#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		return INSTRUCTIONS_AVX512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return INSTRUCTIONS_AVX2;
#endif
	return INSTRUCTIONS_BASELINE;
}

/* For loops that the compiler makes vectors of. GCC would use half of the registers' width, because
 * older processors lowered their clocks for the full width. */
#define VECTORISED_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define VECTORISED_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#else
#define VECTORISED_AVX512                                                                          \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")))
#endif

/*
 * Before a loop whose outputs may equal inputs element by element, which `restrict` forbids and a
 * run-time overlap test would send to the scalar loop: no iteration needs another.
 */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* sanitizers keep loops from being vectorised */
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Before a loop whose few iterations, known here, must lie in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* A loop's body, compiled into one function for each instruction set. */
#define BODY static inline __attribute__((always_inline))

#endif
