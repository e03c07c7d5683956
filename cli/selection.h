/*
 * Turns the words of `prony run` and `prony profile` into cells with their workers on this machine.
 */
#ifndef PRONY_CLI_SELECTION_H
#define PRONY_CLI_SELECTION_H

#include <stdbool.h>

#include "cli/run_options.h"
#include "frameworks/registry.h"
#include "plan/plan.h"

enum { SELECTION_CPUS_MAX = 1024 };

struct selection {
	struct spec spec;
	struct registry registry;
	struct plan plan;
	char *self; /* path of prony's executable, which starts workers */
	int cpus[SELECTION_CPUS_MAX], cpu_count; /* CPUs that may be used */
	bool plan_ready;
};

/* Call this first; selection_release may then be called in any case. */
void selection_init(struct selection *selection);

/* Makes a spec from suites and options, and a plan from it and the user's own workers. `options`
 * and `words` must outlive the selection. Errors: PRONY_USAGE and those of suites, descriptors and
 * the plan. */
enum prony_status selection_make(struct selection *selection, const struct run_options *options,
				 const char **words, size_t count, struct error *err);

void selection_release(struct selection *selection);

#endif
