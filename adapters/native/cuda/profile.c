/*
 * Profiles: what the GPU ran in a step and for which command. CUPTI says nothing of commands, and
 * the kernels of a graph all have the graph's launch in common. But a step's work runs on one
 * stream, in the order of the commands: how much each of them issues is counted beforehand, one by
 * one, and then the place within the step tells the command.
 */
#include <stdlib.h>

#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/cupti.h"
#include "adapters/native/native_profile.h"

struct cuda_profile {
	size_t *issued; /* by each command: kernels, copies and fills */
	size_t all;	/* of a step */
};

static enum prony_status sync(const struct program *program, struct error *err)
{
	return program->backend->sync(program->device, err);
}

/* Graphs from before CUPTI started need not be observed: captures them again. */
static enum prony_status capture_again(struct program *program, struct error *err)
{
	struct device *device = program->device;
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < device->graph_count; i++) {
		if (!device->graphs[i])
			continue;
		device->driver.GraphExecDestroy(device->graphs[i]);
		device->graphs[i] = NULL;
		status = program_run(program, i, err);
	}
	return status == PRONY_OK ? sync(program, err) : status;
}

static enum prony_status count_new(size_t *count, struct error *err)
{
	struct cupti_record *records;
	enum prony_status status = cupti_take(&records, count, err);

	if (status == PRONY_OK)
		free(records);
	return status;
}

static enum prony_status count_issued(struct program *program, struct error *err)
{
	struct cuda_profile *profile = program->device->profile;
	size_t before;
	enum prony_status status = count_new(&before, err);

	for (int i = 0; status == PRONY_OK && i < program->command_count; i++) {
		status = cuda_run_one(program, i, err);
		if (status == PRONY_OK)
			status = count_new(&profile->issued[i], err);
		profile->all += profile->issued[i];
	}
	return status;
}

enum prony_status cuda_profile_begin(struct program *program, int64_t steps,
				     int64_t (*now_ns)(void), struct error *err)
{
	struct device *device = program->device;
	struct cuda_profile *profile = calloc(1, sizeof(*profile));
	enum prony_status status;

	if (profile)
		profile->issued = calloc((size_t)program->command_count + 1, sizeof(size_t));
	if (!profile || !profile->issued) {
		free(profile);
		return error_set(err, PRONY_NOMEM, "no memory for a profile");
	}
	status = cupti_start(device->driver.version, now_ns, err);
	if (status != PRONY_OK) {
		free(profile->issued);
		free(profile);
		return status;
	}
	device->profile = profile; /* from here on also that CUPTI runs */
	status = capture_again(program, err);
	if (status == PRONY_OK)
		status = count_issued(program, err);
	if (status == PRONY_OK && profile->all > 0 &&
	    steps > PROFILE_EVENTS_MAX / (int64_t)profile->all)
		status = error_set(err, PRONY_INVALID,
				   "%lld steps of %zu kernels and copies exceed the limit of %d "
				   "events; profile fewer steps",
				   (long long)steps, profile->all, PROFILE_EVENTS_MAX);
	if (status != PRONY_OK)
		cuda_profile_release(device);
	return status;
}

static void describe(const struct cupti_record *record, struct profile_event *event)
{
	static const char *const kinds[CUPTI_KIND_COUNT] = {
		[CUPTI_KERNEL] = "kernel", [CUPTI_COPY] = "copy", [CUPTI_FILL] = "fill"};

	event->name = record->name;
	event->begin_ns = record->begin_ns;
	event->duration_ns = record->end_ns - record->begin_ns;
	event->device = kinds[record->kind];
	event->bytes = record->bytes;
}

/* Adds a step's records. If they are not as many as were counted, their commands are unknown. */
static enum prony_status add_step(const struct program *program, const struct graph *graph,
				  const struct cupti_record *records, size_t count,
				  const int64_t *instants, int64_t step, struct profile_log *log,
				  struct error *err)
{
	const struct cuda_profile *profile = program->device->profile;
	size_t passed = 0; /* records of the commands before */
	enum prony_status status = PRONY_OK;
	int command = 0;

	for (size_t i = 0; status == PRONY_OK && i < count; i++) {
		struct profile_event event = {0};

		while (command + 1 < program->command_count &&
		       i >= passed + profile->issued[command])
			passed += profile->issued[command++];
		if (count == profile->all)
			native_profile_describe(graph, program, command, &event);
		describe(&records[i], &event);
		event.step = step;
		profile_event_cut(&event, instants[0], instants[1]);
		status = profile_log_add(log, &event, err);
	}
	return status;
}

enum prony_status cuda_profile_end(struct program *program, const struct graph *graph,
				   const int64_t *instants, int64_t steps, struct profile_log *log,
				   struct error *err)
{
	struct cupti_record *records = NULL;
	size_t count = 0, first = 0;
	enum prony_status status = cupti_take(&records, &count, err);

	for (int64_t step = 0; status == PRONY_OK && step < steps; step++, instants += 2) {
		size_t last;

		while (first < count && records[first].begin_ns < instants[0])
			first++;
		last = first;
		while (last < count && records[last].begin_ns <= instants[1])
			last++;
		status = add_step(program, graph, records + first, last - first, instants, step,
				  log, err);
		first = last;
	}
	free(records);
	cuda_profile_release(program->device);
	return status;
}

void cuda_profile_release(struct device *device)
{
	if (!device->profile)
		return;
	cupti_stop();
	free(device->profile->issued);
	free(device->profile);
	device->profile = NULL;
}
