#include "sensors/watched.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* Look for new processes once a second. Where that is slow (without children files every process
 * must be read), look so seldom that it costs at most 1 / 400. */
#define TREE_PERIOD_NS INT64_C(1000000000)
#define TREE_COST_FACTOR 400
#define NOBODY_PERIOD_NS INT64_C(10000000)

/* "cpu0 1 2 3..." */
static bool parse_line(const char *line, struct cpu_time *out)
{
	/* Fields: user nice system idle iowait irq softirq steal. Guest time is part of user. */
	enum { IDLE = 3, WAIT = 4, STEAL = 7, FIELDS = 8 };
	long hertz = sysconf(_SC_CLK_TCK);
	int64_t tick = INT64_C(1000000000) / (hertz > 0 ? hertz : 100), fields[FIELDS] = {0},
		total = 0;
	int count = 0;

	for (const char *at = line + strcspn(line, " \n"); count < FIELDS; count++) {
		char *end;
		while (*at == ' ')
			at++;
		long long value = *at == '\n' ? -1 : strtoll(at, &end, 10);
		if (value < 0 || end == at || value > INT64_MAX / tick / FIELDS)
			break;
		fields[count] = (int64_t)value * tick;
		total += fields[count];
		at = end;
	}
	if (count <= IDLE)
		return false;
	*out = (struct cpu_time){
		.known = true,
		.busy_ns = total - fields[IDLE] - fields[WAIT] - fields[STEAL],
		.steal_ns = fields[STEAL],
		.total_ns = total,
	};
	return true;
}

bool cpu_times_read(int root_fd, struct cpu_times *out)
{
	/* The processor lines come first in the file. */
	char buffer[CPUS_MAX * 128];

	memset(out, 0, sizeof *out);
	if (process_read_file(root_fd, "/proc/stat", buffer, sizeof buffer) <= 0 ||
	    strncmp(buffer, "cpu ", 4) || !parse_line(buffer, &out->all) || !out->all.total_ns) {
		out->all.known = false;
		return false;
	}
	for (const char *line = strchr(buffer, '\n'); line; line = strchr(line, '\n')) {
		char *end;
		line++;
		if (strncmp(line, "cpu", 3))
			break;
		long cpu = strtol(line + 3, &end, 10);
		if (end == line + 3 || cpu < 0 || cpu >= CPUS_MAX ||
		    !parse_line(line, &out->cpus[cpu]))
			continue;
		out->online++;
		if (cpu >= out->count)
			out->count = (int)cpu + 1;
	}
	return true;
}

bool load_averages_read(int root_fd, double out[3])
{
	char buffer[128], *at = buffer;
	double read[3];

	if (process_read_file(root_fd, "/proc/loadavg", buffer, sizeof buffer) <= 0)
		return false;
	for (int i = 0; i < 3; i++) {
		char *end;
		read[i] = strtod(at, &end);
		if (end == at || !isfinite(read[i]) || read[i] < 0)
			return false;
		at = end;
	}
	memcpy(out, read, sizeof read);
	return true;
}

void watched_init(struct watched *watched, int root_fd, pid_t self, pid_t guard)
{
	memset(watched, 0, sizeof *watched);
	watched->root_fd = root_fd;
	watched->self = self;
	watched->guard = guard;
}

/* Marks the hardware threads of a processor's core; the file reads "0,4" or "0-1". */
static void mark_siblings(struct watched *watched, int cpu)
{
	char path[96], buffer[256], *end;

	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 cpu);
	if (process_read_file(watched->root_fd, path, buffer, sizeof buffer) <= 0)
		return;
	for (const char *at = buffer;; at = end + 1) {
		long first = strtol(at, &end, 10), last = first;
		if (end == at)
			return;
		if (*end == '-') {
			at = end + 1;
			last = strtol(at, &end, 10);
		}
		for (long i = first; i >= 0 && i <= last && i < CPUS_MAX; i++)
			watched->cores.beside[i] = true;
		if (*end != ',')
			return;
	}
}

void watched_bind(struct watched *watched, const int *cpus, int count)
{
	struct watched_cores *cores = &watched->cores;

	memset(cores, 0, sizeof *cores);
	for (int i = 0; cpus && i < count; i++) {
		if (cpus[i] < 0 || cpus[i] >= CPUS_MAX || cores->own[cpus[i]])
			continue;
		cores->own[cpus[i]] = true;
		cores->count++;
		mark_siblings(watched, cpus[i]);
	}
	for (int i = 0; i < CPUS_MAX; i++)
		cores->beside[i] = cores->beside[i] && !cores->own[i];
}

bool watched_owns(const struct watched *watched, int cpu)
{
	return watched->cores.count == 0 || watched->cores.own[cpu];
}

bool watched_own_time(const struct watched *watched, struct cpu_time *out, int *count,
		      int64_t *beside_ns)
{
	const struct watched_cores *cores = &watched->cores;
	const struct cpu_times *times = &watched->times;
	struct cpu_time sum = {.known = true};
	int64_t beside = 0;

	if (!times->all.known || times->online == 0)
		return false;
	for (int i = 0; i < CPUS_MAX && cores->count > 0; i++) {
		const struct cpu_time *time = &times->cpus[i];
		if (cores->own[i] && !time->known)
			return false;
		if (cores->own[i]) {
			sum.busy_ns += time->busy_ns;
			sum.steal_ns += time->steal_ns;
			sum.total_ns += time->total_ns;
		}
		beside += cores->beside[i] && time->known ? time->busy_ns : 0;
	}
	*out = cores->count > 0 ? sum : times->all;
	*count = cores->count > 0 ? cores->count : times->online;
	*beside_ns = beside;
	return true;
}

static void look_for_processes(struct watched *watched)
{
	int64_t begin = clock_monotonic_ns();

	if (watched->guard <= 0 || begin < watched->tree_due_ns)
		return;
	watched->below_count = process_descendants(watched->root_fd, watched->guard, watched->below,
						   PROCESS_TREE_MAX);
	for (int i = 0; i < watched->other_count && watched->below_count > 0; i++)
		watched->below_count += process_descendants(
			watched->root_fd, watched->others[i], watched->below + watched->below_count,
			PROCESS_TREE_MAX - watched->below_count);
	int64_t end = clock_monotonic_ns(), rest = (end - begin) * TREE_COST_FACTOR;
	watched->tree_due_ns = end + (rest > TREE_PERIOD_NS ? rest : TREE_PERIOD_NS);
	/* The worker will appear at any moment. */
	if (watched->below_count == 0)
		watched->tree_due_ns = end + NOBODY_PERIOD_NS;
}

double watched_tree_sum(const struct watched *watched,
			int64_t (*count)(int root_fd, pid_t pid, int64_t *reaped))
{
	int64_t reaped = 0, sum = 0;

	if (watched->below_count == 0 || count(watched->root_fd, watched->guard, &reaped) < 0)
		return NAN;
	sum = reaped;
	for (int i = 0; i < watched->below_count; i++) {
		int64_t own = count(watched->root_fd, watched->below[i], &reaped);
		/*
		 * The worker itself has ended. The time of an ended child is counted by its parent.
		 */
		if (own < 0 && i == 0)
			return NAN;
		sum += own < 0 ? 0 : own + reaped;
	}
	return (double)sum;
}

int64_t watched_look(struct watched *watched)
{
	look_for_processes(watched);
	watched->now_ns = clock_monotonic_ns();
	cpu_times_read(watched->root_fd, &watched->times);
	return watched->now_ns;
}
