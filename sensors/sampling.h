/* The thread that samples all sensors while a worker runs. */
#ifndef PRONY_SENSORS_SAMPLING_H
#define PRONY_SENSORS_SAMPLING_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "samples/record.h"

struct sampling;
struct meters; /* sensors/meters.h */

/* Probes and opens every sensor for the processes below `guard`, which are bound to `cpus` (count
 * 0: not bound), on the machine below root_fd (base/process_tree.h), and starts the thread. The
 * thread sleeps between samples, does not allocate while sampling, and blocks all signals.
 * `meters`: of the GPUs that the processes use; NULL: none. They must outlive the sampling. */
enum prony_status sampling_start(int root_fd, pid_t guard, const int *cpus, int cpu_count,
				 struct meters *meters, struct sampling **out, struct error *err);

/* From now on the processes below another guard count as well: the worker of another rank. */
void sampling_also(struct sampling *sampling, pid_t guard);

/* From now on prony uses the worker's processors too, because it loads batches for it. */
void sampling_prony_too(struct sampling *sampling);

/* Samples every sensor now, in the caller's thread. Call it at the edges of a window, so that
 * counters are exact for it. Between a mark with in_window and one without, sensors that would
 * disturb the measurement are paused. */
void sampling_mark(struct sampling *sampling, bool in_window);

/* How long the worker's processes were seen idle between two instants: the time between samples in
 * which they used less than a twentieth of a core. 0 when unknown. */
int64_t sampling_rested_ns(struct sampling *sampling, int64_t from_ns, int64_t to_ns);

/* Stops the thread and moves the results into the record: a series per sensor, absent sensors with
 * their reason, a series "sampling" with the CPU time of each sensor, sampling_cpu_ns,
 * sampling_missed, energy_update_ns, gpu_update_ns, gpu_source and gpu_memory_before. Frees
 * `sampling`; NULL is fine. */
void sampling_stop(struct sampling *sampling, struct process_record *record);

/* Computes the fields of the record that follow from its series, the fields above and its window
 * (which may not exist yet). */
void sampling_figures(struct process_record *record);

#endif
