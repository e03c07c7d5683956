#include "conformance/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "bundle/safetensors.h"
#include "conformance/check_internal.h"

enum { CHECK_BATCH = 8 };
#define CHECK_SEED 1

void check_cell(const struct checker *checker, const struct network *network, enum stage stage,
		struct plan_cell *out)
{
	*out = (struct plan_cell){
		.status = CELL_PENDING,
		.network = network,
		.dataset = dataset_find("synthetic"),
		.origin = "named",
		.worker_argv = checker->spec->argv,
	};
	struct cell *cell = &out->cell;
	cell_defaults(cell);
	cell_parse_framework("worker", cell, NULL);
	cell->precision = checker->precision;
	cell->batch = CHECK_BATCH;
	cell->stage = stage;
	cell->sync = SYNC_END;
	cell->dropout = false;
	snprintf(cell->dataset, sizeof cell->dataset, "synthetic");
	snprintf(cell->network, sizeof cell->network, "%s", network->name);
	snprintf(cell->device, sizeof cell->device, "%s", checker->device);
	target_defaults(&out->target);
	target_set_device(&out->target, checker->device);
	struct recipe *recipe = &out->recipe;
	recipe_defaults(recipe);
	recipe->threads = 1;
	recipe->stage = stage;
	recipe->precision = checker->precision;
	recipe->batch = CHECK_BATCH;
	recipe->dropout = false;
	cell_key(cell, out->key);
	cell_hash(cell, out->hash);
}

enum stage check_stage(const struct checker *checker)
{
	static const enum stage order[] = {STAGE_TRAIN, STAGE_FORWARD_BACKWARD, STAGE_FORWARD};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (checker->stages & 1u << order[i])
			return order[i];
	return STAGE_TRAIN;
}

enum prony_status check_session_start(struct checker *checker, const char *name, int slots,
				      bool shared_memory, struct check_session *out,
				      struct error *err)
{
	const struct check_spec *spec = checker->spec;
	*out = (struct check_session){.checker = checker, .name = name};
	check_cell(checker, zoo_find("mlp", NULL), check_stage(checker), &out->cell);
	out->cell.recipe.slots = slots;
	enum prony_status status = workload_init(&out->work, &out->cell, CHECK_SEED, err);
	out->prepared = true;
	if (status != PRONY_OK)
		return status;
	out->bundle = path_join(checker->folder, shared_memory ? "shared" : "files");
	out->spec = (struct client_spec){
		.argv = spec->argv,
		.self = spec->self,
		.target = &out->cell.target,
		.bundle = out->bundle,
		.tensors_bytes = safetensors_image_bytes(&out->work.weights) + 65536,
		.records_capacity = CHECK_RECORDS,
		.memory_limit_bytes = spec->memory_limit_bytes,
		.timeout_ns = spec->timeout_ns,
		.stop = spec->stop,
		.no_shared_memory = !shared_memory,
	};
	return client_start(&out->spec, &out->client, err);
}

void check_session_end(struct check_session *session, struct client_end *end)
{
	client_end(session->client, end);
	session->client = NULL;
}

void check_session_release(struct check_session *session)
{
	client_end(session->client, NULL);
	if (session->bundle)
		directory_remove(session->bundle, NULL);
	free(session->bundle);
	if (session->prepared)
		workload_release(&session->work);
}

/* Outcomes that say nothing about the worker. */
static bool is_our_own(enum prony_status status)
{
	return status == PRONY_INTERRUPTED || status == PRONY_NOMEM || status == PRONY_INTERNAL ||
	       status == PRONY_IO;
}

enum prony_status check_conclude(struct checker *checker, const char *session, const char *name,
				 enum prony_status status, const struct error *why,
				 struct error *err)
{
	if (is_our_own(status))
		return error_set(err, status, "%s", why->text);
	char check[96];
	snprintf(check, sizeof check, "%s%s%s", session, *session ? ": " : "", name);
	checker->checks++;
	checker->failures += status != PRONY_OK;
	checker->sink->result(checker->sink->context, check, status == PRONY_OK,
			      status == PRONY_OK ? "" : why->text);
	return PRONY_OK;
}

enum prony_status check_steps(struct check_session *session, const struct check_step *steps,
			      bool *passed, struct error *err)
{
	enum prony_status status = PRONY_OK;
	*passed = true;
	for (; steps->run && *passed && status == PRONY_OK; steps++) {
		if (steps->training && session->cell.recipe.stage == STAGE_FORWARD)
			continue;
		struct error why = ERROR_INIT;
		enum prony_status outcome = steps->run(session, &why);
		*passed = outcome == PRONY_OK;
		status = check_conclude(session->checker, session->name, steps->name, outcome, &why,
					err);
	}
	return status;
}

static enum prony_status check_all(struct checker *checker, struct error *err)
{
	enum prony_status status = check_work(checker, "shared memory", CHECK_SLOTS, true, err);
	if (status == PRONY_OK && !checker->stopped)
		status = check_work(checker, "files", CHECK_SLOTS_FILES, false, err);
	if (status == PRONY_OK && !checker->stopped)
		status = check_hostile(checker, err);
	if (status == PRONY_OK && !checker->stopped && checker->spec->level == CHECK_NUMERIC)
		status = check_numeric(checker, err);
	return status;
}

enum prony_status worker_check(const struct check_spec *spec, const struct check_sink *sink,
			       struct error *err)
{
	struct checker checker = {
		.spec = spec, .sink = sink, .device = "cpu", .precision = PRECISION_FP32};
	enum prony_status status = directory_make_temporary("prony-check-", &checker.folder, err);
	if (status == PRONY_OK)
		status = check_all(&checker, err);
	if (checker.folder)
		directory_remove(checker.folder, NULL);
	free(checker.folder);
	if (status == PRONY_OK && checker.failures)
		status = error_set(err, PRONY_MISMATCH, "%d of %d checks failed%s",
				   checker.failures, checker.checks,
				   checker.stopped ? "; those that come after them were not run"
						   : "");
	return status;
}
