#include <jansson.h>
#include <stdlib.h>

#include "base/json.h"
#include "tests/bench/floor.h"

static double over(double a, double b)
{
	return b > 0 ? a / b : 0;
}

void floor_print_head(FILE *out)
{
	fprintf(out, "network            b stage  thr    step ms   best  /in-step  /warm  /cold  "
		     "own ms  reorders "
		     "in,act,w lib  new alloc own,lib   GFLOP/s  fma worst sgemm share  1thr/all   "
		     "  MB\n");
}

static void print_command(const struct floor_command *command, double peak, FILE *out)
{
	char share[16] = "-";

	if (command->flops > 0)
		snprintf(share, sizeof(share), "%.2f",
			 command->flops / command->in_step_ns * 1e9 / peak);
	fprintf(out,
		"    %-52s %9.3f ms in step %9.3f warm %9.3f cold  %5s of peak, loses %.3f ms\n",
		command->name, command->in_step_ns / 1e6, command->warm_ns / 1e6,
		command->cold_ns / 1e6, share, command->lost_ns / 1e6);
}

void floor_print_table(const struct floor_result *r, int top, FILE *out)
{
	double peak = floor_best_peak(&r->peak);

	fprintf(out,
		"%-16s %3lld %-7s %d %11.3f %6.2f %9.3f %6.3f %6.3f %7.3f %9d %4d %3d %3d %4d %5ld "
		"%7ld "
		"%9.1f "
		"%5.0f %5.0f %5.0f %5.2f",
		r->task.network, (long long)r->task.batch, r->task.stage, r->threads_used,
		r->step.median_ns / 1e6, over(r->step.min_ns, r->step.median_ns),
		over(r->step.median_ns, r->in_step_sum_ns), over(r->step.median_ns, r->warm_sum_ns),
		over(r->step.median_ns, r->cold_sum_ns), r->own_loops_ns / 1e6,
		r->reorders_of_input, r->reorders_of_activations, r->reorders_of_weights,
		r->counts.reorders, r->counts.creations, r->allocations.own, r->allocations.library,
		r->flops / r->step.median_ns, r->peak.fma / 1e9, r->peak.fma_worst / 1e9,
		r->peak.sgemm / 1e9, over(r->flops / r->step.median_ns * 1e9, peak));
	if (r->all_threads_ns > 0)
		fprintf(out, "  %8.2f", r->one_thread_ns / r->all_threads_ns);
	else
		fprintf(out, "  %8s", "-");
	fprintf(out, " %6.0f\n", r->planned_bytes / 1e6);
	for (int i = 0; i < top && i < r->command_count; i++)
		print_command(&r->commands[i], peak, out);
	for (int i = 0; i < top && i < r->command_count; i++)
		fprintf(out, "    late: %-52s %9.3f ms more in a step than alone\n",
			r->late[i].name, (r->late[i].in_step_ns - r->late[i].warm_ns) / 1e6);
	if (top > 0)
		fprintf(out,
			"    shortest times added up: %.3f ms in steps, %.3f ms alone\n    %s\n",
			r->in_step_best_sum_ns / 1e6, r->warm_best_sum_ns / 1e6, r->notes);
	fflush(out);
}

static json_t *times_to_json(const struct floor_times *times)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:i}", "median_ns", times->median_ns, "min_ns",
			 times->min_ns, "low_ns", times->low_ns, "high_ns", times->high_ns, "n",
			 times->count);
}

static json_t *commands_to_json(const struct floor_result *r, const struct floor_command *commands,
				int top)
{
	double peak = floor_best_peak(&r->peak);
	json_t *array = json_array();

	for (int i = 0; i < top && i < r->command_count; i++) {
		const struct floor_command *command = &commands[i];
		double share = over(command->flops / command->in_step_ns * 1e9, peak);

		json_array_append_new(
			array, json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "name",
					 command->name, "in_step_ns", command->in_step_ns,
					 "warm_ns", command->warm_ns, "cold_ns", command->cold_ns,
					 "in_step_best_ns", command->in_step_best_ns,
					 "warm_best_ns", command->warm_best_ns, "lost_ns",
					 command->lost_ns, "flops", command->flops, "share_of_peak",
					 command->flops > 0 ? json_number(share) : json_null()));
	}
	return array;
}

static json_t *count_or_null(int count)
{
	return count < 0 ? json_null() : json_integer(count);
}

void floor_print_json(const struct floor_result *r, int top, FILE *out)
{
	double flops = over(r->flops, r->step.median_ns) * 1e9;
	json_t *line = json_pack("{s:s, s:I, s:s, s:i, s:i, s:s}", "network", r->task.network,
				 "batch", (json_int_t)r->task.batch, "stage", r->task.stage,
				 "threads", r->task.threads, "threads_used", r->threads_used,
				 "clock", floor_uses_cpu_time() ? "cpu" : "wall");
	json_t *peak = json_pack("{s:f, s:f, s:s, s:f, s:i}", "fma", r->peak.fma, "fma_worst",
				 r->peak.fma_worst, "fma_set", r->peak.fma_set, "sgemm",
				 r->peak.sgemm, "sgemm_size", r->peak.sgemm_size);
	json_t *reorders =
		json_pack("{s:i, s:i, s:i, s:o}", "input", r->reorders_of_input, "activations",
			  r->reorders_of_activations, "weights", r->reorders_of_weights,
			  "seen_by_library", count_or_null(r->counts.reorders));

	json_object_set_new(line, "step", times_to_json(&r->step));
	json_object_set_new(line, "warm_sum_ns", json_number(r->warm_sum_ns));
	json_object_set_new(line, "cold_sum_ns", json_number(r->cold_sum_ns));
	json_object_set_new(line, "in_step_sum_ns", json_number(r->in_step_sum_ns));
	json_object_set_new(line, "warm_best_sum_ns", json_number(r->warm_best_sum_ns));
	json_object_set_new(line, "in_step_best_sum_ns", json_number(r->in_step_best_sum_ns));
	json_object_set_new(line, "own_loops_ns", json_number(r->own_loops_ns));
	json_object_set_new(line, "step_over_warm",
			    json_number(over(r->step.median_ns, r->warm_sum_ns)));
	json_object_set_new(line, "step_over_in_step",
			    json_number(over(r->step.median_ns, r->in_step_sum_ns)));
	json_object_set_new(line, "step_over_cold",
			    json_number(over(r->step.median_ns, r->cold_sum_ns)));
	json_object_set_new(line, "peak_flops_per_second", peak);
	json_object_set_new(line, "flops", json_number(r->flops));
	json_object_set_new(line, "flops_per_second", json_number(flops));
	json_object_set_new(line, "share_of_peak",
			    json_number(over(flops, floor_best_peak(&r->peak))));
	json_object_set_new(line, "reorders", reorders);
	json_object_set_new(line, "creations", count_or_null(r->counts.creations));
	json_object_set_new(line, "executions", count_or_null(r->counts.executions));
	json_object_set_new(line, "allocations", json_integer(r->allocations.own));
	json_object_set_new(line, "library_allocations", json_integer(r->allocations.library));
	json_object_set_new(line, "planned_bytes", json_number(r->planned_bytes));
	json_object_set_new(line, "one_thread_ns",
			    r->all_threads_ns > 0 ? json_number(r->one_thread_ns) : json_null());
	json_object_set_new(line, "all_threads_ns",
			    r->all_threads_ns > 0 ? json_number(r->all_threads_ns) : json_null());
	json_object_set_new(line, "commands", commands_to_json(r, r->commands, top));
	json_object_set_new(line, "slower_in_step", commands_to_json(r, r->late, top));
	json_object_set_new(line, "notes", json_string(r->notes));
	json_dumpf(line, out, JSON_COMPACT);
	fputc('\n', out);
	fflush(out);
	json_decref(line);
}
