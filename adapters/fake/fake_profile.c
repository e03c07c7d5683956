/* Records and reports profiles of the fake adapter. */
#include "adapters/fake/fake_profile.h"

#include <stdlib.h>

/* State between begin and end of a profile. */
struct marks {
	int64_t (*now_ns)(void);
	struct mark {
		int64_t at_ns;
		int node; /* -1: a step begins */
	} * rows;
	size_t count, room;
};

static void note(void *context, int node)
{
	struct marks *marks = context;

	if (marks->count < marks->room)
		marks->rows[marks->count++] = (struct mark){marks->now_ns(), node};
}

enum prony_status fake_profile_begin(struct executor *executor, int64_t steps,
				     int64_t (*now_ns)(void), struct error *err)
{
	int64_t rows = executor->graph->node_count + 2;

	if (steps > PROFILE_EVENTS_MAX / rows)
		return error_set(err, PRONY_INVALID,
				 "%lld steps exceed the limit of %d events; profile fewer steps",
				 (long long)steps, PROFILE_EVENTS_MAX);
	struct marks *marks = malloc(sizeof *marks);
	struct mark *list = calloc((size_t)(steps * rows), sizeof *list);

	if (!marks || !list) {
		free(marks);
		free(list);
		return error_set(err, PRONY_NOMEM, "no memory for a profile");
	}
	*marks = (struct marks){.now_ns = now_ns, .rows = list, .room = (size_t)(steps * rows)};
	executor->context = marks;
	executor->ran = note;
	return PRONY_OK;
}

static void describe(const struct graph *graph, int i, struct profile_event *event)
{
	if (i == graph->node_count) {
		*event = (struct profile_event){
			.name = "update", .kind = "Update", .pass = "update"};
		return;
	}
	const struct node *node = &graph->nodes[i];
	bool backward = i >= graph->forward_count;

	*event = (struct profile_event){.name = node->name,
					.kind = operator_name(node->op),
					.pass = backward ? "backward" : "forward"};
	if (!backward)
		event->layer = node->name;
	else if (node->differentiates >= 0)
		event->layer = graph->nodes[node->differentiates].name;
}

enum prony_status fake_profile_end(struct executor *executor, const int64_t *instants,
				   int64_t steps, struct profile_log *log, struct error *err)
{
	struct marks *marks = executor->context;
	bool forward = executor->graph->node_count == executor->graph->forward_count;
	enum prony_status status = PRONY_OK;

	executor->ran = NULL;
	executor->context = NULL;
	for (size_t i = 1; status == PRONY_OK && i < marks->count; i++) {
		const struct mark *mark = &marks->rows[i], *before = mark - 1;
		struct profile_event event;

		/* A step begins, or ends without an update. */
		if (mark->node < 0 || (forward && mark->node == executor->graph->node_count))
			continue;
		describe(executor->graph, mark->node, &event);
		event.begin_ns = before->at_ns;
		event.duration_ns = mark->at_ns - before->at_ns;
		event.step = profile_step_at(instants, steps, event.begin_ns);
		status = profile_log_add(log, &event, err);
	}
	free(marks->rows);
	free(marks);
	return status;
}
