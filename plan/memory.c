/* Estimates whether a cell fits into the memory of the machine, or of its GPU. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "plan/resolve_internal.h"

#define MEMORY_BYTES 32

/* Returns the bytes of the inputs that a worker holds; saturates. */
static int64_t batches_bytes(const struct plan_cell *cell, int64_t batch)
{
	int64_t sum = 0;

	for (int i = 0; i < cell->network->input_count; i++) {
		const struct network_input *input = &cell->network->inputs[i];
		int64_t bytes = PLAN_SLOTS * (int64_t)dtype_bytes(input->dtype);

		for (int k = 0; k < input->rank; k++)
			if (__builtin_mul_overflow(bytes, input->dims[k], &bytes))
				return INT64_MAX;
		if (__builtin_mul_overflow(bytes, batch, &bytes) ||
		    __builtin_add_overflow(sum, bytes, &sum))
			return INT64_MAX;
	}
	return sum;
}

static void memory_text(int64_t bytes, char out[MEMORY_BYTES])
{
	if (bytes >= INT64_C(1) << 30)
		snprintf(out, MEMORY_BYTES, "%.1f GiB", (double)bytes / 0x1p30);
	else
		snprintf(out, MEMORY_BYTES, "%.0f MiB", (double)bytes / 0x1p20);
}

/* Returns how many numbers the optimiser keeps for each parameter. */
static int optimiser_copies(const struct plan_cell *cell)
{
	return cell->cell.stage == STAGE_TRAIN && cell->recipe.optimiser != OPTIMISER_SGD;
}

/* Whether activations are computed again; then only the forward pass's memory is known. */
static bool recomputes(const struct plan_cell *cell)
{
	const char *options = cell->cell.options;

	while (*options) {
		size_t length = strcspn(options, ",");
		const struct framework_option *option =
			framework_option(cell->location->framework, options, length);

		if (option && option->recomputes)
			return true;
		options += length + (options[length] == ',');
	}
	return false;
}

/* The memory of a network and its parameters. Cells of all frameworks share it, because building a
 * deep network's graph takes milliseconds. */
struct network_memory {
	const struct network *network;
	int64_t batch;
	enum stage stage;
	bool recomputes;
	int optimiser_copies, element_bytes;
	enum prony_status status;
	int64_t bytes;
	const char *why; /* the error, if status is one */
	const struct network_memory *next;
};

static bool same_question(const struct network_memory *a, const struct network_memory *b)
{
	return a->network == b->network && a->batch == b->batch && a->stage == b->stage &&
	       a->recomputes == b->recomputes && a->optimiser_copies == b->optimiser_copies &&
	       a->element_bytes == b->element_bytes;
}

static enum prony_status count_bytes(struct network_memory *m, struct error *why)
{
	struct graph graph;
	bool trains = m->stage != STAGE_FORWARD && !stage_has_cache(m->stage);
	enum prony_status status = network_build(m->network, m->batch, &graph, why);

	if (status != PRONY_OK)
		return status;
	if (trains && graph_parameter_count(&graph) == 0)
		status = error_set(
			why, PRONY_UNSUPPORTED,
			"stage %s: the network has no parameters to train; use stage forward",
			stage_name(m->stage));
	else if (trains && !m->recomputes)
		status = graph_add_backward(&graph, why);
	if (status == PRONY_OK)
		m->bytes = graph_memory_least(&graph, m->optimiser_copies, m->element_bytes);
	graph_release(&graph);
	return status;
}

/* Returns the least memory of the network in the cell's stage. */
static enum prony_status network_bytes(const struct expansion *e, const struct plan_cell *cell,
				       int64_t batch, int64_t *bytes, struct error *why)
{
	bool half =
		cell->cell.precision == PRECISION_FP16 || cell->cell.precision == PRECISION_BF16;
	struct network_memory question = {.network = cell->network,
					  .batch = batch,
					  .stage = cell->cell.stage,
					  .recomputes = recomputes(cell),
					  .optimiser_copies = optimiser_copies(cell),
					  .element_bytes = half ? 2 : 4};
	const struct network_memory *known = *e->memories;

	while (known && !same_question(known, &question))
		known = known->next;
	if (!known) {
		struct network_memory *answer = arena_alloc(&e->plan->arena, sizeof(*answer));
		struct error none = ERROR_INIT;

		*answer = question;
		answer->status = count_bytes(answer, &none);
		answer->why = arena_strdup(&e->plan->arena, none.text);
		answer->next = *e->memories;
		*e->memories = known = answer;
	}
	*bytes = known->bytes;
	return known->status == PRONY_OK ? PRONY_OK
					 : error_set(why, known->status, "%s", known->why);
}

/* Returns the least memory of the network and the batches. */
static enum prony_status needed_bytes(const struct expansion *e, const struct plan_cell *cell,
				      int64_t batch, int64_t *bytes, struct error *why)
{
	int64_t network = 0;
	enum prony_status status = PRONY_OK;

	int ranks = device_of(cell->cell.device).ranks;
	if (!cell->ungated)
		status = network_bytes(e, cell, batch / ranks > 1 ? batch / ranks : 1, &network,
				       why);
	/* Each rank has its own weights and its part of the batch. */
	if (__builtin_mul_overflow(network, ranks, &network) ||
	    __builtin_add_overflow(batches_bytes(cell, batch), network, bytes))
		*bytes = INT64_MAX;
	return status;
}

/* Suggests a batch that fits: all memory except the parameters grows with the batch. Suggests none
 * if the file works only with its own batch. */
static void add_remedy(const struct expansion *e, const struct plan_cell *cell, int64_t need,
		       int64_t have, struct strbuf *text)
{
	struct error why = ERROR_INIT;
	char one_text[MEMORY_BYTES];
	int64_t batch = cell->cell.batch, one = need;

	if (batch > 1 && needed_bytes(e, cell, 1, &one, &why) != PRONY_OK)
		return;
	memory_text(one, one_text);
	if (one > have && batch > 1)
		strbuf_printf(text, ", and even batch 1 needs %s", one_text);
	else if (one <= have && need > one)
		strbuf_printf(text, ": use a batch of at most %" PRId64 " (-b)",
			      1 + (int64_t)((double)(have - one) / (double)(need - one) *
					    (double)(batch - 1)));
}

const struct gpu *cell_gpu(const struct expansion *e, const struct plan_cell *cell)
{
	const struct device device = device_of(cell->cell.device);

	if (device.count != 1 || !e->settings->gpus)
		return NULL;
	const struct gpus *gpus = e->settings->gpus();
	return device.indices[0] < gpus->count ? &gpus->gpus[device.indices[0]] : NULL;
}

/* Returns the memory that a cell may use, INT64_MAX if it is unknown; *of: whose it is, or NULL. */
static int64_t available_bytes(const struct expansion *e, const struct plan_cell *cell,
			       const char **of)
{
	const struct gpu *gpu = cell_gpu(e, cell);

	*of = gpu ? cell->cell.device : e->settings->memory_of;
	if (gpu)
		return gpu->memory_bytes > 0 ? gpu->memory_bytes : INT64_MAX;
	return e->settings->memory_bytes > 0 ? e->settings->memory_bytes : memory_physical_bytes();
}

/* A cell that does not fit could make the system kill other programs. The estimate is the minimum
 * for every framework, so a cell that might fit is tried. */
enum cell_status judge_memory(const struct expansion *e, const struct plan_cell *cell,
			      struct strbuf *reasons)
{
	const char *of;
	int64_t have = available_bytes(e, cell, &of);
	int64_t need = 0;
	char need_text[MEMORY_BYTES], have_text[MEMORY_BYTES];
	struct error why = ERROR_INIT;

	if (needed_bytes(e, cell, cell->cell.batch, &need, &why) != PRONY_OK && need <= have) {
		strbuf_puts(reasons, why.text);
		return CELL_UNSUPPORTED;
	}
	if (need <= have)
		return CELL_PENDING;
	memory_text(need, need_text);
	memory_text(have, have_text);
	strbuf_printf(reasons,
		      "batch %" PRId64 " needs at least %s, but only %s%s%s%s is available",
		      cell->cell.batch, need_text, have_text, of ? " (" : "", of ? of : "",
		      of ? ")" : "");
	add_remedy(e, cell, need, have, reasons);
	return CELL_OUT_OF_MEMORY;
}
