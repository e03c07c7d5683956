/* One thread that samples all sensors while a worker runs. */
#ifndef PRONY_SENSORS_SAMPLING_H
#define PRONY_SENSORS_SAMPLING_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "samples/record.h"

struct sampling;

/* Probes and opens every sensor for the processes below `guard`, which are bound to `cpus` (none:
 * to no ones in particular), on the machine below root_fd (base/process_tree.h), and starts the
 * thread. It sleeps between samples, allocates nothing then, and takes no signals. */
enum prony_status sampling_start(int root_fd, pid_t guard, const int *cpus, int cpu_count,
				 struct sampling **out, struct error *err);

/* From now on prony works on the worker's processors too, as it does while it loads batches. */
void sampling_prony_too(struct sampling *sampling);

/* Samples every sensor now, in the caller's thread: at the edges of a window, so that what counters
 * say of it is exact. From a mark with in_window until one without, sensors that would disturb
 * rest. */
void sampling_mark(struct sampling *sampling, bool in_window);

/* How long between two instants the worker's processes were seen to compute nothing: between
 * samples of their clocks in which these took less than a twentieth of a core. 0 where nothing is
 * seen. */
int64_t sampling_rested_ns(struct sampling *sampling, int64_t from_ns, int64_t to_ns);

/* Ends the thread and gives what was seen to the record: a series for each sensor, absent ones with
 * their reason, one ("sampling") of the CPU time that each of them took, sampling_cpu_ns,
 * sampling_missed and energy_update_ns. Frees it; NULL is fine. */
void sampling_stop(struct sampling *sampling, struct process_record *record);

/* Fills the fields of the record that its series, energy_update_ns and its window (may be none yet)
 * give. */
void sampling_figures(struct process_record *record);

#endif
