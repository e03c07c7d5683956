#include "cli/chosen.h"

#include <stdlib.h>

#include "adapters/adapter.h"
#include "base/files.h"
#include "cli/framework_word.h"
#include "cli/memory_limit.h"
#include "diagnose/machine.h"

void chosen_init(struct chosen *chosen)
{
	*chosen = (struct chosen){.self = NULL};
	spec_init(&chosen->spec);
}

/* An adapter of ours can be asked before a worker is started. */
static enum prony_status judge_options(const struct framework *framework, const char *options,
				       struct error *why)
{
	const struct adapter *adapter =
		framework->kind == FRAMEWORK_BUILTIN ? adapter_find(framework->adapter) : NULL;

	return adapter && adapter->judge_options ? adapter->judge_options(options, why) : PRONY_OK;
}

enum prony_status chosen_make(struct chosen *chosen, const struct run_options *options,
			      const char **words, size_t count, struct error *err)
{
	enum prony_status status = run_options_spec(options, words, count, &chosen->spec, err);
	if (status != PRONY_OK)
		return status;
	chosen->self = path_self();
	chosen->cpu_count = machine_cores(chosen->cpus, CHOSEN_CPUS_MAX);
	struct memory_limit room = memory_limit_worker(options->memory_limit);
	status = cli_registry(&chosen->registry, err);
	for (size_t i = 0; status == PRONY_OK && i < options->workers.count; i++)
		status = registry_add_worker(&chosen->registry, options->workers.values[i], err);
	if (status != PRONY_OK)
		return status;
	struct plan_settings settings = {.registry = &chosen->registry,
					 .data_folder = options->data,
					 .self = chosen->self,
					 .cores = chosen->cpu_count,
					 .gpus = machine_gpus(""),
					 .memory_bytes = room.bytes,
					 .memory_of = room.of,
					 .judge_options = judge_options};
	status = plan_expand(&chosen->spec, &settings, &chosen->plan, err);
	chosen->plan_ready = status == PRONY_OK;
	return status;
}

void chosen_release(struct chosen *chosen)
{
	if (chosen->plan_ready)
		plan_release(&chosen->plan);
	registry_release(&chosen->registry);
	spec_release(&chosen->spec);
	free(chosen->self);
}
