/* The environment record that goes with every result, and the doctor's checks. */
#ifndef PRONY_DIAGNOSE_MACHINE_H
#define PRONY_DIAGNOSE_MACHINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Reads /proc, /sys, uname, hwloc into one JSON object: {"must_match": {...}, "should_match":
 * {...}, "informational": {...}} (docs/store.md). `root` ("" in use) is put before every path,
 * for tests on recorded machines. Missing sources become null with a reason under "absent". New
 * reference.
 */
json_t *machine_record(const char *root);

/* 16 hexadecimal digits over must_match and should_match: which results may be resumed or compared.
 */
void machine_hash(const json_t *record, char hash[17]);

/* Physical cores that this process may use (affinity and cgroup quota), at least 1; cpus gets the
 * first logical CPU of each, up to capacity. */
int machine_cores(int *cpus, int capacity);

/* GPUs that NVIDIA's driver shows below `root`. */
int machine_gpus(const char *root);

enum finding_level { FINDING_OK, FINDING_NOTE, FINDING_WARNING };

struct finding {
	enum finding_level level;
	bool spoils;	  /* a warning of it spoils numbers; else only what is known of them */
	char check[32];	  /* "governor" */
	char value[128];  /* what was found */
	char remedy[256]; /* what to do; "" when nothing */
};

/* Runs the doctor's checks: governor, boost, load, steal, cores, memory, swap, instruction set,
 * virtual machine, sensors absent and why, clock source, perf permissions. Sleeps for watch_ns, in
 * which it sees what others do; what is two ticks of 10 ms at most is not told. Returns how many
 * (<= capacity). */
size_t machine_findings(const char *root, int64_t watch_ns, struct finding *out, size_t capacity);

/* Adds the warnings of it that spoil numbers to a machine_record, as informational.findings
 * (docs/store.md). */
void machine_findings_add(json_t *record, const char *root, int64_t watch_ns);

#endif
