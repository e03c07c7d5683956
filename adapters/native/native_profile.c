/* Computes a profile from the instants around each command. */
#include "adapters/native/native_profile.h"

#include <stdlib.h>

#include "adapters/native/backend.h"

enum prony_status native_profile_begin(struct program *program, int64_t steps,
				       int64_t (*now_ns)(void), struct error *err)
{
	int64_t commands = program->command_count;

	if (program->backend->profile_begin)
		return program->backend->profile_begin(program, steps, now_ns, err);
	if (commands == 0 || steps > PROFILE_EVENTS_MAX / commands)
		return error_set(err, PRONY_INVALID,
				 "%lld steps of %lld primitives exceed the limit of %d events; "
				 "profile fewer steps",
				 (long long)steps, (long long)commands, PROFILE_EVENTS_MAX);
	struct program_timer *timer = malloc(sizeof *timer);
	int64_t *instants = calloc((size_t)(2 * commands * steps), sizeof *instants);

	if (!timer || !instants) {
		free(timer);
		free(instants);
		return error_set(err, PRONY_NOMEM, "no memory for %lld times",
				 (long long)(2 * commands * steps));
	}
	*timer = (struct program_timer){
		.now_ns = now_ns, .instants = instants, .room = (size_t)(2 * commands * steps)};
	program->timer = timer;
	return PRONY_OK;
}

/* The layer's name; NULL for sums of gradients, which belong to no layer. */
static const char *layer_of(const struct graph *graph, int node)
{
	if (node >= graph->forward_count)
		node = graph->nodes[node].differentiates;
	return node >= 0 ? graph->nodes[node].name : NULL;
}

void native_profile_describe(const struct graph *graph, const struct program *program, int i,
			     struct profile_event *event)
{
	const struct command *command = &program->commands[i];
	bool trains = graph->node_count > graph->forward_count;

	*event = (struct profile_event){.name = command->name};
	if (command->node >= 0) {
		event->kind = operator_name(graph->nodes[command->node].op);
		event->layer = layer_of(graph, command->node);
		event->pass = command->node < graph->forward_count ? "forward" : "backward";
	} else if (program->update >= 0 && i >= program->update) {
		event->kind = "Update";
		event->pass = "update";
	} else {
		event->kind = "Copy";
		event->pass = trains ? "backward" : "forward";
	}
}

static enum prony_status add_timed(struct program *program, const struct graph *graph,
				   int64_t steps, struct profile_log *log, struct error *err)
{
	struct program_timer *timer = program->timer;
	const int64_t *at = timer->instants;
	enum prony_status status = PRONY_OK;

	program->timer = NULL;
	for (int64_t step = 0; step < steps; step++) {
		for (int i = 0; status == PRONY_OK && i < program->command_count; i++, at += 2) {
			struct profile_event event;

			native_profile_describe(graph, program, i, &event);
			event.step = step;
			event.begin_ns = at[0];
			event.duration_ns = at[1] - at[0];
			status = profile_log_add(log, &event, err);
		}
	}
	program_timer_free(timer);
	return status;
}

enum prony_status native_profile_end(struct program *program, const struct graph *graph,
				     const int64_t *instants, int64_t steps,
				     struct profile_log *log, struct error *err)
{
	return program->timer
		       ? add_timed(program, graph, steps, log, err)
		       : program->backend->profile_end(program, graph, instants, steps, log, err);
}
