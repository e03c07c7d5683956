/* What profiled steps consist of, as a framework says it: the list that its adapter fills. */
#ifndef PRONY_ADAPTERS_PROFILE_H
#define PRONY_ADAPTERS_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* More of them would be a profile that nobody reads. */
#define PROFILE_EVENTS_MAX 400000
/* The framework says how long it took, and not when. */
#define PROFILE_UNPLACED INT64_MIN

/* Something that ran once in a step. Those of one thread do not overlap. */
struct profile_event {
	const char *name;  /* as the framework calls it: "conv1 forward" */
	const char *kind;  /* what it did, in the framework's words; NULL: nothing said */
	const char *layer; /* node of the network, where it is known; NULL: found by the name */
	const char *pass;  /* "forward", "backward", "update"; NULL: nothing said */
	int64_t begin_ns;  /* on the clock of the steps, or PROFILE_UNPLACED */
	int64_t duration_ns;
	int64_t step; /* of the profiled ones, from 0 */
	int thread;   /* a small number for each */
};

struct profile_log {
	struct arena arena; /* owns texts and list */
	struct profile_event *events;
	size_t count, capacity;
};

void profile_log_init(struct profile_log *log);
void profile_log_release(struct profile_log *log);

/* Adds one; its texts are copied. PRONY_INVALID when there are too many. */
enum prony_status profile_log_add(struct profile_log *log, const struct profile_event *event,
				  struct error *err);

/* Cuts what stands out of its step, which lasted from `begin` to `end`. */
void profile_event_cut(struct profile_event *event, int64_t begin, int64_t end);

/* The step in whose interval an instant lies, `instants` being pairs of begin and end that rise; -1
 * when it lies in none. */
int64_t profile_step_at(const int64_t *instants, int64_t steps, int64_t at_ns);

#endif
