/* The events of profiled steps, which an adapter collects. */
#ifndef PRONY_ADAPTERS_PROFILE_H
#define PRONY_ADAPTERS_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* A larger profile could not be read by anybody. */
#define PROFILE_EVENTS_MAX 400000
/* The framework reports the duration, but not the begin. */
#define PROFILE_UNPLACED INT64_MIN

/* Something that ran once in a step. Events of one thread do not overlap. */
struct profile_event {
	const char *name;  /* the framework's name: "conv1 forward" */
	const char *kind;  /* what it did, in the framework's words; NULL: unknown */
	const char *layer; /* node of the network, if known; NULL: found by the name */
	const char *pass;  /* "forward", "backward", "update"; NULL: unknown */
	int64_t begin_ns;  /* on the clock of the steps, or PROFILE_UNPLACED */
	int64_t duration_ns;
	int64_t step;	    /* profiled step, from 0 */
	int thread;	    /* a small number per thread */
	const char *device; /* on a GPU: "kernel", "copy" or "fill"; NULL: not known to be on one */
	int64_t bytes;	    /* of a copy or fill on a GPU */
};

struct profile_log {
	struct arena arena; /* owns texts and list */
	struct profile_event *events;
	size_t count, capacity;
};

void profile_log_init(struct profile_log *log);
void profile_log_release(struct profile_log *log);

/* Adds an event and copies its texts. PRONY_INVALID when there are too many. */
enum prony_status profile_log_add(struct profile_log *log, const struct profile_event *event,
				  struct error *err);

/* Clips an event to its step, which lasted from `begin` to `end`. */
void profile_event_cut(struct profile_event *event, int64_t begin, int64_t end);

/* The step that contains an instant; `instants` are ascending pairs of begin and end. -1 when no
 * step contains it. */
int64_t profile_step_at(const int64_t *instants, int64_t steps, int64_t at_ns);

#endif
