/* The instruction sets for which prony's own loops are compiled, and the best one of this
 * processor. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_INSTRUCTION_SET_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_INSTRUCTION_SET_H

/* Narrowest first; a processor with one has all before it. */
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

/* For loops that the compiler vectorises. By default GCC uses half of the registers' width, because
 * older processors lowered their clock for the full width. */
#define VECTORISED_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define VECTORISED_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#else
#define VECTORISED_AVX512                                                                          \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")))
#endif

/* Precedes a loop whose outputs may equal inputs element by element: no iteration depends on
 * another. `restrict` would forbid this, and a run-time overlap test would choose the scalar loop.
 */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* with sanitizers loops are not vectorised */
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Precedes a loop with a small constant number of iterations, whose data must stay in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* The body of a loop, compiled into one function for each instruction set. */
#define BODY static inline __attribute__((always_inline))

#endif
