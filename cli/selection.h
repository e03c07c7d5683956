/* What the words of `prony run` and `prony profile` choose on this machine: cells with their
 * workers. */
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
	char *self; /* path of this program, which workers are started by */
	int cpus[SELECTION_CPUS_MAX], cpu_count; /* that may be used */
	bool plan_ready;
};

/* Call first; release is then right whatever happened. */
void selection_init(struct selection *selection);

/*
 * Suites and options into a spec, with the user's own workers into a plan. `options` and `words`
 * must live as long. Errors: PRONY_USAGE and what a suite, a descriptor or the plan says.
 */
enum prony_status selection_make(struct selection *selection, const struct run_options *options,
				 const char **words, size_t count, struct error *err);

void selection_release(struct selection *selection);

#endif
