#include <stdlib.h>

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
