#include "profile/write.h"

#include <stdlib.h>

#include "base/json.h"
#include "report/text.h"

const char profile_caution[] = "a profile is not a measurement: timers and tracers slow the steps, "
			       "the parity gate did not run, and nothing is stored";

static json_t *phases_json(const struct profile *profile)
{
	json_t *rows = json_array();
	for (int i = 0; i < PROFILE_PHASE_COUNT; i++) {
		const struct profile_phase *phase = &profile->phases[i];
		if (phase->ns < 0)
			continue;
		json_array_append_new(
			rows, json_pack("{s:s, s:I, s:I, s:I}", "phase", profile_phase_name(i),
					"begin_ns", (json_int_t)phase->begin_ns, "ns",
					(json_int_t)phase->ns, "steps", (json_int_t)phase->steps));
	}
	return rows;
}

/* A GPU's work per step; null where none is known. */
static json_t *device_json(const struct profile *profile)
{
	double steps = (double)profile->layer_steps;
	if (!profile->has_device)
		return json_null();
	json_t *all =
		json_pack("{s:o, s:o}", "busy_ns", json_number(profile->device_ns), "busy_share",
			  json_number(profile->device_ns / profile->layer_step_ns));
	for (int i = PROFILE_DEVICE_NONE + 1; i < PROFILE_DEVICE_COUNT; i++) {
		const struct profile_device_sum *sum = &profile->device[i];
		json_object_set_new(all, profile_device_word((enum profile_device)i),
				    json_pack("{s:o, s:o, s:o}", "calls",
					      json_number((double)sum->calls / steps), "ns",
					      json_number(sum->ns / steps), "bytes",
					      json_number((double)sum->bytes / steps)));
	}
	return all;
}

static json_t *layers_json(const struct profile *profile)
{
	if (!profile->has_layers)
		return json_null();
	json_t *rows = json_array();
	double steps = (double)profile->layer_steps;
	for (size_t i = 0; i < profile->layer_count; i++) {
		const struct profile_layer *layer = &profile->layers[i];
		double ns = profile_layer_ns(layer) / steps;
		json_array_append_new(
			rows,
			json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "layer",
				  text_json(layer->name), "operator", text_json(layer->kind),
				  "fused", text_json_or_null(layer->fused), "named", layer->named,
				  "calls", json_number((double)layer->calls / steps), "forward_ns",
				  json_number(layer->forward_ns / steps), "backward_ns",
				  json_number(layer->backward_ns / steps), "other_ns",
				  json_number(layer->other_ns / steps), "ns", json_number(ns),
				  "share", json_number(ns / profile->layer_step_ns)));
	}
	return json_pack(
		"{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "steps", (json_int_t)profile->layer_steps,
		"step_ns", json_number(profile->layer_step_ns), "sum_ns",
		json_number(profile->layers_ns), "named_ns", json_number(profile->named_ns),
		"covered_ns", json_number(profile->covered_ns), "device", device_json(profile),
		"rows", rows);
}

static json_t *function_json(const struct profile_function *function)
{
	json_t *lines = json_array();
	for (size_t i = 0; i < function->line_count; i++) {
		const struct profile_line *line = &function->lines[i];
		json_array_append_new(
			lines, json_pack("{s:I, s:I, s:I, s:I, s:o}", "line",
					 (json_int_t)line->line, "hits", (json_int_t)line->hits,
					 "ns", (json_int_t)line->ns, "self_ns",
					 (json_int_t)line->self_ns, "text", text_json(line->text)));
	}
	return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:o}", "function",
			 text_json(function->name), "file", text_json(function->file), "line",
			 (json_int_t)function->line, "calls", (json_int_t)function->calls, "ns",
			 (json_int_t)function->ns, "self_ns", (json_int_t)function->self_ns,
			 "lines", lines);
}

static json_t *lines_json(const struct profile *profile)
{
	if (!profile->has_lines)
		return json_null();
	json_t *functions = json_array();
	for (size_t i = 0; i < profile->function_count; i++)
		json_array_append_new(functions, function_json(&profile->functions[i]));
	return json_pack("{s:I, s:I, s:I, s:o}", "steps", (json_int_t)profile->line_steps,
			 "all_steps_ns", (json_int_t)profile->lines_total_ns, "all_lines_ns",
			 (json_int_t)profile_lines_sum(profile), "functions", functions);
}

static json_t *cores_json(const struct profile *profile)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < profile->core_count; i++)
		json_array_append_new(rows, json_pack("{s:s, s:o}", "core", profile->core_names[i],
						      "busy", json_number(profile->cores[i])));
	return rows;
}

static json_t *profile_json(const struct profile *profile)
{
	return json_pack(
		"{s:s, s:s, s:s, s:o, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "cell",
		profile->cell->key, "hash", profile->cell->hash, "framework",
		profile->cell->cell.framework, "version", text_json_or_null(profile->version),
		"status", cell_status_name(profile->status), "reason",
		text_json_or_null(profile->reason), "caution", profile_caution, "phases",
		phases_json(profile), "step_ns",
		profile->step_ns > 0 ? json_number(profile->step_ns) : json_null(), "layers",
		layers_json(profile), "no_layers", text_json_or_null(profile->no_layers), "lines",
		lines_json(profile), "cores", cores_json(profile));
}

void profile_write_json(const struct profile *profiles, size_t count, struct strbuf *out)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, profile_json(&profiles[i]));
	char *text = text_of_json(array, JSON_INDENT(2));
	strbuf_puts(out, text);
	strbuf_putc(out, '\n');
	free(text);
	json_decref(array);
}
