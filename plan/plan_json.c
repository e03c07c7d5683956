#include "plan/plan.h"

#include "frameworks/registry.h"

static json_t *words_to_json(const char *const *words)
{
	json_t *array = json_array();

	for (; words && *words; words++)
		json_array_append_new(array, json_string(*words));
	return array;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, text ? json_string(text) : json_null());
}

static json_t *cell_to_json(const struct plan_cell *planned)
{
	json_t *object = json_object();

	set_text(object, "key", planned->key);
	set_text(object, "hash", planned->hash);
	cell_axes_to_json(&planned->cell, object);
	set_text(object, "status", cell_status_name(planned->status));
	set_text(object, "reason", planned->status == CELL_PENDING ? NULL : planned->reason);
	json_object_set_new(object, "explicit", json_boolean(planned->explicit_));
	set_text(object, "origin", framework_origin_name(planned->location->origin));
	set_text(object, "version", planned->location->version);
	json_object_set_new(object, "threads", json_integer(planned->recipe.threads));
	/* 0 steps and -1 warm-up steps stand for "by the protocol". */
	json_object_set_new(object, "steps",
			    planned->steps > 0 ? json_integer(planned->steps) : json_null());
	json_object_set_new(object, "warm_up_steps",
			    planned->warm_up_steps >= 0 ? json_integer(planned->warm_up_steps)
							: json_null());
	/* Both then describe an epoch, which has fewer steps if it would last longer. */
	json_object_set_new(object, "epoch_max_ns",
			    planned->epoch_ns > 0 ? json_integer(planned->epoch_ns) : json_null());
	json_object_set_new(object, "command",
			    planned->worker_argv ? words_to_json(planned->worker_argv)
						 : json_null());
	json_object_set_new(object, "environment",
			    planned->worker_environment ? words_to_json(planned->worker_environment)
							: json_null());
	return object;
}

json_t *plan_to_json(const struct plan *plan)
{
	json_t *array = json_array();

	for (size_t i = 0; i < plan->count; i++)
		json_array_append_new(array, cell_to_json(&plan->cells[i]));
	return array;
}
