/* The environment record that is stored with every result, and the checks of `prony doctor`. */
#ifndef PRONY_DIAGNOSE_MACHINE_H
#define PRONY_DIAGNOSE_MACHINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/gpu.h"

/* Reads /proc, /sys, uname and hwloc into one JSON object: {"must_match": {...}, "should_match":
 * {...}, "informational": {...}} (docs/store.md). `root` (normally "") is put before every path,
 * for tests on recorded machines. Missing values are null, with a reason under "absent". New
 * reference. */
json_t *machine_record(const char *root);

/* 16 hexadecimal digits over must_match and should_match. Results with equal hashes may be resumed
 * and compared. */
void machine_hash(const json_t *record, char hash[17]);

/* The number of physical cores that this process may use (affinity and cgroup quota), at least 1.
 * cpus receives the first logical CPU of each, up to capacity. */
int machine_cores(int *cpus, int capacity);

/* Finds the GPUs of this machine: those that NVIDIA's driver answers with or, if its library cannot
 * be asked or the machine is a recorded one, those in /proc/driver/nvidia below `root`. The driver
 * is asked once, by the main thread. */
void machine_gpus(const char *root, struct gpus *out);

enum finding_level { FINDING_OK, FINDING_NOTE, FINDING_WARNING };

struct finding {
	enum finding_level level;
	bool spoils;	  /* its warning means wrong figures; otherwise only missing ones */
	char check[32];	  /* "governor" */
	char value[128];  /* what was found */
	char remedy[256]; /* what to do; "" when nothing */
};

/* Runs all checks: governor, boost, load, steal, cores, memory, swap, instruction set, virtual
 * machine, GPUs, absent sensors, clock source, perf permissions. Sleeps for watch_ns to observe
 * other programs; ignores up to two ticks of 10 ms. Returns the number of findings (<= capacity).
 */
size_t machine_findings(const char *root, int64_t watch_ns, struct finding *out, size_t capacity);

/* Adds the warnings that mean wrong figures to a machine_record, as informational.findings
 * (docs/store.md). */
void machine_findings_add(json_t *record, const char *root, int64_t watch_ns);

#endif
