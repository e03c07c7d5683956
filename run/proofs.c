/* Copies the proofs of a plan's cells into a folder that other machines read. */
#include <stdlib.h>

#include "base/memory.h"
#include "run/schedule_internal.h"

/* Copies an entry; *count counts those that were there. */
static enum prony_status copy(const struct cache *from, const char *key, const struct cache *to,
			      size_t *count, struct error *err)
{
	struct cache_entry entry = {.file = NULL};
	if (cache_read(from, key, &entry, NULL) != PRONY_OK)
		return PRONY_OK;
	enum prony_status status =
		cache_write(to, key, entry.file, CACHE_HEAD_BYTES + entry.length, err);
	*count += status == PRONY_OK;
	free(entry.file);
	return status;
}

/* Whether the reference of a cell can be computed here, even if the cell cannot run. */
static bool has_reference(const struct plan_cell *cell)
{
	return (cell->status == CELL_PENDING || cell->status == CELL_MISSING) && !cell->ungated &&
	       !network_is_as_it_is(cell->network) &&
	       (!cell->dataset->format || cell->data_folder || cell->cell.input == INPUT_SYNTHETIC);
}

static enum prony_status keep_reference(struct schedule *s, size_t cell, const struct cache *to,
					struct proofs *out, struct error *err)
{
	const struct plan_cell *planned = &s->plan->cells[cell];
	struct workload *work = s->cells[cell].work;
	enum prony_status status = workload_need_gate(work, planned, s->settings->seed,
						      schedule_control(s, cell), err);
	if (status == PRONY_OK)
		status = copy(&s->answers, work->gate_key, to, &out->references, err);
	workload_drop_gate(work);
	if (status == PRONY_OK && planned->recipe.input != INPUT_NATIVE)
		status = workload_need_loss(work, planned, schedule_control(s, cell), err);
	if (status == PRONY_OK)
		status = copy(&s->answers, work->loss_key, to, &out->losses, err);
	out->works++;
	return status;
}

static enum prony_status keep_cell(struct schedule *s, size_t cell, const struct cache *answers,
				   const struct cache *gates, struct proofs *out, struct error *err)
{
	char key[DIGEST_HEX_BYTES];
	size_t before = s->work_count;
	if (!has_reference(&s->plan->cells[cell]))
		return PRONY_OK;
	enum prony_status status = schedule_may_start(s, err);
	if (status == PRONY_OK)
		status = schedule_need_work(s, cell, err);
	/* Cells of the same work share its reference. */
	if (status == PRONY_OK && s->work_count > before)
		status = keep_reference(s, cell, answers, out, err);
	if (status == PRONY_OK && s->plan->cells[cell].status == CELL_PENDING &&
	    gate_cache_key(&s->gates, &s->plan->cells[cell], s->cells[cell].work, key))
		status = copy(&s->gates.cache, key, gates, &out->gates, err);
	return status;
}

enum prony_status proofs_keep(const struct plan *plan, struct run_cell *cells,
			      const struct run_settings *settings, const struct run_caller *caller,
			      const char *folder, struct proofs *out, struct error *err)
{
	struct schedule s = {.plan = plan,
			     .cells = cells,
			     .settings = settings,
			     .caller = caller,
			     .folder_fd = -1};
	struct cache answers = {.folder = memory_printf("%s/cache/" ANSWERS_CACHE, folder),
				.limit_bytes = ANSWERS_LIMIT_BYTES};
	struct cache gates = {.folder = memory_printf("%s/cache/" GATE_CACHE, folder),
			      .limit_bytes = GATE_CACHE_LIMIT_BYTES};
	*out = (struct proofs){.works = 0};
	enum prony_status status = schedule_init(&s, err);
	for (size_t cell = 0; cell < plan->count && status == PRONY_OK; cell++)
		status = keep_cell(&s, cell, &answers, &gates, out, err);
	schedule_release(&s);
	cache_close(&answers);
	cache_close(&gates);
	return status;
}
