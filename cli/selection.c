#include "cli/selection.h"

#include <stdlib.h>

#include "adapters/adapter.h"
#include "base/files.h"
#include "cli/framework_word.h"
#include "cli/memory_limit.h"
#include "diagnose/machine.h"

void selection_init(struct selection *selection)
{
	*selection = (struct selection){.self = NULL};
	spec_init(&selection->spec);
}

/* Asks an adapter of prony, which can be done before a worker is started. */
static enum prony_status judge_options(const struct framework *framework, const char *options,
				       struct error *why)
{
	const struct adapter *adapter =
		framework->kind == FRAMEWORK_BUILTIN ? adapter_find(framework->adapter) : NULL;

	return adapter && adapter->judge_options ? adapter->judge_options(options, why) : PRONY_OK;
}

static const struct gpus *find_gpus(void)
{
	static struct gpus gpus;
	machine_gpus("", &gpus);
	return &gpus;
}

enum prony_status selection_make(struct selection *selection, const struct run_options *options,
				 const char **words, size_t count, struct error *err)
{
	enum prony_status status = run_options_spec(options, words, count, &selection->spec, err);
	if (status != PRONY_OK)
		return status;
	selection->self = path_self();
	selection->cpu_count = machine_cores(selection->cpus, SELECTION_CPUS_MAX);
	struct memory_limit room = memory_limit_worker(options->memory_limit);
	status = cli_registry(&selection->registry, err);
	for (size_t i = 0; status == PRONY_OK && i < options->workers.count; i++)
		status = registry_add_worker(&selection->registry, options->workers.values[i], err);
	if (status != PRONY_OK)
		return status;
	struct plan_settings settings = {.registry = &selection->registry,
					 .data_folder = options->data,
					 .self = selection->self,
					 .cores = selection->cpu_count,
					 .gpus = find_gpus,
					 .memory_bytes = room.bytes,
					 .memory_of = room.of,
					 .judge_options = judge_options};
	status = plan_expand(&selection->spec, &settings, &selection->plan, err);
	selection->plan_ready = status == PRONY_OK;
	return status;
}

void selection_release(struct selection *selection)
{
	if (selection->plan_ready)
		plan_release(&selection->plan);
	registry_release(&selection->registry);
	spec_release(&selection->spec);
	free(selection->self);
}
