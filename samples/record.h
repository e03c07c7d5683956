/* The result of one worker process (the independent replicate) and the table of its fields. */
#ifndef PRONY_SAMPLES_RECORD_H
#define PRONY_SAMPLES_RECORD_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "cell/cell.h"
#include "samples/protocol.h"
#include "samples/series.h"

#define RECORD_NONE INT64_MIN /* "not measured": null everywhere, never 0 */

/*
 * Member types: int64_t (RECORD_NONE = null), double (NaN = null), char[] ("" = null). Every row
 * X(member, type, unit, doc) yields a SQL column, a CSV and JSON field and the row of
 * docs/store.md. Order is output order. Append only.
 */
#define PROCESS_FIELDS(X)                                                                          \
	X(replicate, INT, "", "number of the process within its cell, from 0")                     \
	X(round, INT, "", "round of the schedule in which it ran, from 0")                         \
	X(status, TEXT16, "", "how the process ended: ok or a cell status")                        \
	X(started_wall_ns, INT, "ns", "wall clock at its start, since 1970")                       \
	X(steps, INT, "", "steps in the measured window")                                          \
	X(window_ns, INT, "ns", "length of the measured window")                                   \
	X(step_mean_ns, REAL, "ns", "timed part of the window / steps")                            \
	X(step_median_ns, REAL, "ns", "median over blocks or steps of the window")                 \
	X(step_min_ns, REAL, "ns", "smallest block or step mean")                                  \
	X(step_max_ns, REAL, "ns", "largest block or step mean")                                   \
	X(step_sd_ns, REAL, "ns", "standard deviation over blocks or steps")                       \
	X(blocks, INT, "", "timed intervals (blocks or steps) in the window")                      \
	X(block_steps, INT, "", "steps in each interval")                                          \
	X(spawn_ns, INT, "ns",                                                                     \
	  "from the start of the process to its first reply, without import_ns")                   \
	X(import_ns, INT, "ns", "loading the framework's library or package")                      \
	X(open_ns, INT, "ns", "choosing device and threads")                                       \
	X(build_ns, INT, "ns", "translating and compiling the network, loading weights")           \
	X(feed_ns, INT, "ns", "making the batches resident")                                       \
	X(first_step_ns, INT, "ns", "the first step, synchronised")                                \
	X(to_first_step_ns, INT, "ns",                                                             \
	  "from the start of the process to the end of its first step")                            \
	X(warm_up_ns, INT, "ns", "steps between the first step and the window")                    \
	X(warm_up_steps, INT, "", "number of warm-up steps")                                       \
	X(total_ns, INT, "ns", "from the start of the process to its end")                         \
	X(loss_first, REAL, "", "loss of the first step, full batch, before its update")           \
	X(loss_expected, REAL, "", "the reference's loss for the same batch")                      \
	X(loss_last, REAL, "", "loss of the last step of the window")                              \
	X(rss_peak_bytes, INT, "bytes", "largest resident set of a process of the worker's tree")  \
	X(cpu_user_ns, INT, "ns", "user time of the worker's tree, whole life")                    \
	X(cpu_system_ns, INT, "ns", "system time of the worker's tree, whole life")                \
	X(window_cpu_cores, REAL, "cores", "CPU time of the worker's tree / time, in the window")  \
	X(mxcsr, INT, "", "MXCSR of the stepping thread (bits 15 FTZ, 6 DAZ)")                     \
	X(threads, INT, "", "compute threads that took effect")                                    \
	X(precision, TEXT16, "", "precision that took effect")                                     \
	X(flags, TEXT128, "", "flags of the process: not-steady, few-steps, disturbed, waits")     \
	X(error, TEXT1024, "", "why it did not end ok")                                            \
	X(window_begin_ns, INT, "ns", "start of the measured window on the monotonic clock")       \
	X(memory_mean_run, REAL, "bytes", "mean resident memory of the worker's tree, whole run")  \
	X(memory_mean_window, REAL, "bytes",                                                       \
	  "mean resident memory of the worker's tree in the window")                               \
	X(memory_max_window, REAL, "bytes",                                                        \
	  "largest sample of the worker's resident memory in the window")                          \
	X(cpu_cores, REAL, "cores", "busy processors of the whole machine, mean of the window")    \
	X(steal_share, REAL, "", "share of its cores' time that the host took, in the window")     \
	X(foreign_share, REAL, "",                                                                 \
	  "share of its cores' time that other programs took, in the window")                      \
	X(load_average, REAL, "", "mean of the 1-minute load average over the window")             \
	X(frequency_mean_hz, REAL, "Hz", "clock of the processors, mean over them and the window") \
	X(frequency_min_hz, REAL, "Hz", "lowest sample of any processor in the window")            \
	X(sampling_cpu_ns, INT, "ns", "CPU time of prony's sensors during the process")            \
	X(memory_pss_max, REAL, "bytes", "largest memory_pss of its tree, outside the window")     \
	X(step_p90_ns, REAL, "ns", "90th percentile over steps, if each was synchronised")         \
	X(step_p99_ns, REAL, "ns", "99th percentile over steps, if each was synchronised")         \
	X(energy_joules, REAL, "J", "energy of all processor packages in the window")              \
	X(energy_dram_joules, REAL, "J",                                                           \
	  "energy of the memory in the window, if it has a counter")                               \
	X(energy_psys_joules, REAL, "J",                                                           \
	  "energy of the whole board in the window, packages included")                            \
	X(energy_grade, TEXT16, "", "how energy was measured: B is a hardware counter")            \
	X(power_mean_window, REAL, "W", "energy_joules / window")                                  \
	X(power_mean_run, REAL, "W", "mean power of the processor packages, whole run")            \
	X(threads_alive, REAL, "",                                                                 \
	  "largest number of threads of the worker's tree, in the window")                         \
	X(cores_used, REAL, "", "largest number of processors that they used at one time")         \
	X(null_reasons, TEXT1024, "", "why figures of the sensors are null: fields: reason; ...")  \
	X(step_undisturbed_ns, REAL, "ns", "10th percentile over at least 20 blocks of 0.1 s")     \
	X(input_wait_ns, REAL, "ns",                                                               \
	  "time per step that it waits for its batch (input stream, native)")                      \
	X(input_copy_ns, REAL, "ns", "time per step to copy the batch to the framework")           \
	X(load_batches, INT, "", "batches that prony's loader prepared in the window")             \
	X(load_storage_ns, REAL, "ns", "time per such batch for reading, summed over threads")     \
	X(load_decode_ns, REAL, "ns",                                                              \
	  "time per such batch for decoding and scaling, summed over threads")                     \
	X(foreign_elsewhere, REAL, "", "share of the other cores' time that other programs took")  \
	X(pressure_cpu, REAL, "", "share of the window in which a process waited for a processor") \
	X(pressure_memory, REAL, "", "share of the window in which a process waited for memory")   \
	X(pressure_io, REAL, "", "share of the window in which a process waited for a disk")       \
	X(quota_share, REAL, "", "share of its cores' time lost to a quota")                       \
	X(thermal_share, REAL, "", "share of its cores' time with a clock lowered by heat")        \
	X(frequency_drop, REAL, "",                                                                \
	  "mean clock of its cores below their highest sample, as a share")                        \
	X(temperature_max, REAL, "degC",                                                           \
	  "highest temperature of the processor packages in the window")                           \
	X(swap_rate, REAL, "B/s", "rate of swapping in and out on the machine")                    \
	X(switches_voluntary, REAL, "/s",                                                          \
	  "voluntary context switches of its threads, in the window")                              \
	X(switches_involuntary, REAL, "/s",                                                        \
	  "involuntary context switches of its threads, in the window")                            \
	X(sampling_missed, INT, "", "samples of the sensors that were late by a period or more")   \
	X(energy_update_ns, INT, "ns", "measured time between two updates of the energy counter")  \
	X(page_faults_step, REAL, "", "page faults of the worker's tree per step, in the window")  \
	X(gpu_source, TEXT16, "", "instrument of its GPUs: nvml, hwmon")                           \
	X(gpu_memory_before, REAL, "bytes", "memory in use on its GPUs before the worker started") \
	X(gpu_memory_max_window, REAL, "bytes",                                                    \
	  "largest sample of the memory in use on its GPUs in the window")                         \
	X(gpu_memory_reserved, REAL, "bytes", "memory of its GPUs that their driver reserves")     \
	X(gpu_energy_joules, REAL, "J", "energy of its GPUs in the window")                        \
	X(gpu_energy_grade, TEXT16, "",                                                            \
	  "how it was measured: B counter, C coarse or sampled, U instrument never tried")         \
	X(gpu_update_ns, INT, "ns", "measured time between two updates of the GPU's counter")      \
	X(gpu_power_window, REAL, "W", "gpu_energy_joules / window")                               \
	X(gpu_power_sampled, REAL, "W", "mean of the power samples of its GPUs in the window")     \
	X(gpu_power_run, REAL, "W", "mean of the power samples of its GPUs, whole run")            \
	X(gpu_clock_hz, REAL, "Hz", "mean compute clock of its GPUs in the window")                \
	X(gpu_power_held, REAL, "", "share of the window with a clock held down by a power cap")   \
	X(gpu_heat_held, REAL, "", "share of the window with a clock held down by heat")           \
	X(gpu_temperature_max, REAL, "degC", "highest temperature of its GPUs in the window")      \
	X(gpu_busy_share, REAL, "", "share of the window in which a kernel ran, sampled")          \
	X(gpu_bus_rate, REAL, "B/s", "rate over PCIe to and from its GPUs in the window")          \
	X(gpu_processes, REAL, "", "largest number of processes on its GPUs in the window")        \
	X(ranks, INT, "", "processes that train together; null: one")                              \
	X(rank_skew_ns, REAL, "ns", "step_mean_ns of the slowest rank less that of the fastest")   \
	X(rank_rss_max, INT, "bytes", "rss_peak_bytes of the rank with the largest")               \
	X(seed, INT, "", "seed of its weights and order of samples, of a training until a target") \
	X(target, TEXT16, "", "what the training was to reach: accuracy=0.99")                     \
	X(target_steps, INT, "",                                                                   \
	  "steps until the first evaluation that reached it; null: none did in 1 + steps")         \
	X(target_curve, TEXT1024, "",                                                              \
	  "accuracy or loss of each evaluation, in order; of a long training, of the first ones")

/* What one of several ranks did in its process. */
struct rank_record {
	/* Its own window, by its own records. RECORD_NONE: unknown, here and below. */
	int64_t begin_ns, length_ns;
	int64_t rss_bytes, user_ns, system_ns;
};

struct process_record {
#define FIELD_INT(member) int64_t member;
#define FIELD_REAL(member) double member;
#define FIELD_TEXT16(member) char member[16];
#define FIELD_TEXT128(member) char member[128];
#define FIELD_TEXT1024(member) char member[1024];
#define X(member, type, unit, doc) FIELD_##type(member)
	PROCESS_FIELDS(X)
#undef X
	/* Owned: raw intervals of the window, the log of the process (stdout and stderr together),
	 * and the sensor series; absent sensors are included with their reasons. */
	struct step_record *intervals;
	size_t interval_count;
	char *log;
	struct series *series;
	size_t series_count;
	struct rank_record *rank_records; /* by rank; none of a single one. Owned */
	size_t rank_count;
};

enum field_type { FIELD_TYPE_INT, FIELD_TYPE_REAL, FIELD_TYPE_TEXT };

struct record_field {
	const char *name, *unit, *doc;
	enum field_type type;
	size_t offset, bytes;
};

/* The rows of PROCESS_FIELDS. */
extern const struct record_field process_fields[];
extern const size_t process_field_count;

/* All numbers null, all texts empty. */
void process_record_init(struct process_record *record);
/* Frees its intervals and series. */
void process_record_drop_samples(struct process_record *record);
void process_record_release(struct process_record *record);

/* Whether other programs or the host disturbed this process: its flag, or unknown when its window
 * was too short to tell. */
enum disturbance { DISTURBANCE_NONE, DISTURBANCE_UNKNOWN, DISTURBANCE_SEEN };
enum disturbance process_disturbance(const struct process_record *record);

/* The step time when nothing interrupts: a low quantile over blocks of the window. A block lasts at
 * least this long (or one step), because single steps vary for reasons of their own. With few
 * blocks the quantile says little (docs/measurement.md). */
#define RECORD_BLOCK_NS INT64_C(100000000)
#define RECORD_BLOCKS_MIN 20
#define RECORD_UNDISTURBED_P 0.1

/* Fills steps, window_ns, undisturbed, median, min, max, sd and blocks from the intervals, each of
 * record->block_steps steps, and the mean from `timed_ns`, the time of all steps: the window less
 * what is not measured in it. PRONY_INVALID when the intervals go backwards or overlap. */
enum prony_status process_record_summarise(struct process_record *record, int64_t timed_ns,
					   struct error *err);

#endif
