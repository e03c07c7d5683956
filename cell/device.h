/* The device of a cell, parsed from its word: "cpu", "cpu:4", "cpu:1x2", "cuda:0+1", "gpu.1". */
#ifndef PRONY_CELL_DEVICE_H
#define PRONY_CELL_DEVICE_H

#include <stdbool.h>

#include "base/error.h"

enum { DEVICE_INDICES_MAX = 64 };

enum device_kind {
	DEVICE_CPU,
	DEVICE_CUDA,
	DEVICE_OTHER /* a word that only a framework's library knows */
};

struct device {
	enum device_kind kind;
	int cores; /* of DEVICE_CPU, of each rank; 0: all */
	/* GPUs of DEVICE_CUDA in the order in which the word names them. */
	int count, indices[DEVICE_INDICES_MAX];
	int ranks; /* processes that train together: 2 in "cpu:1x2"; else 1 */
};

/* Words: cpu, cpu:N, cpu:NxR (R ranks of N cores), cuda:N, cuda:N+M..., and NAME, NAME:N, NAME.N of
 * a framework's library. PRONY_USAGE explains the grammar, and names the word that a slip is near
 * to. */
enum prony_status device_parse(const char *word, struct device *out, struct error *err);

/* The same of a word that was checked before; one that is none is DEVICE_OTHER. */
struct device device_of(const char *word);

/* Whether a word, also one of another program's results, means the processor. */
bool device_is_cpu(const char *word);

#endif
