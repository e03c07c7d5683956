#include "adapters/profile.h"

#include <string.h>

void profile_log_init(struct profile_log *log)
{
	*log = (struct profile_log){.count = 0};
	arena_init(&log->arena, 0);
}

void profile_log_release(struct profile_log *log)
{
	arena_release(&log->arena);
	*log = (struct profile_log){.count = 0};
}

static const char *keep(struct profile_log *log, const char *text)
{
	return text ? arena_strdup(&log->arena, text) : NULL;
}

enum prony_status profile_log_add(struct profile_log *log, const struct profile_event *event,
				  struct error *err)
{
	if (log->count == PROFILE_EVENTS_MAX)
		return error_set(err, PRONY_INVALID,
				 "the profile has more than %d events; profile fewer steps",
				 PROFILE_EVENTS_MAX);
	log->events = arena_grow(&log->arena, log->events, log->count, &log->capacity,
				 sizeof *log->events);
	struct profile_event *kept = &log->events[log->count++];

	*kept = *event;
	kept->name = keep(log, event->name);
	kept->kind = keep(log, event->kind);
	kept->layer = keep(log, event->layer);
	kept->pass = keep(log, event->pass);
	kept->device = keep(log, event->device);
	return PRONY_OK;
}

void profile_event_cut(struct profile_event *event, int64_t begin, int64_t end)
{
	if (event->begin_ns < begin)
		event->begin_ns = begin;
	if (event->begin_ns > end)
		event->begin_ns = end;
	if (event->duration_ns > end - event->begin_ns)
		event->duration_ns = end - event->begin_ns;
}

int64_t profile_step_at(const int64_t *instants, int64_t steps, int64_t at_ns)
{
	int64_t low = 0, high = steps;

	/* Binary search for the first step that ends after it. */
	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (instants[2 * middle + 1] <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < steps && instants[2 * low] <= at_ns ? low : -1;
}
