#include "cli/run_needs.h"

#include <inttypes.h>
#include <string.h>

#include "diagnose/machine.h"
#include "frameworks/lock.h"
#include "frameworks/registry.h"
#include "report/text.h"

enum { INDENT = 2 };

#define MB 1000000

/* What cells need; a cell has at most one of each kind. */
enum kind { NEEDS_GPU, NEEDS_GPUS, NEEDS_CUDA, NEEDS_FRAMEWORK, NEEDS_DATA, KIND_COUNT };

static int gpu_count(void)
{
	struct gpus gpus;

	machine_gpus("", &gpus);
	return gpus.count;
}

static bool needs(const struct plan_cell *cell, enum kind kind)
{
	const struct device device = device_of(cell->cell.device);
	bool cuda = device.kind == DEVICE_CUDA, missing = cell->status == CELL_MISSING;
	bool supported = cell->location->framework->devices & (FRAMEWORK_CUDA | FRAMEWORK_ANY);
	switch (kind) {
	case NEEDS_GPU: /* an installed framework has no other reason to be missing on a GPU */
		return missing && cuda && device.indices[0] >= gpu_count();
	case NEEDS_GPUS:
		return cell->status == CELL_UNSUPPORTED && device.count > 1;
	case NEEDS_CUDA:
		return cell->status == CELL_UNSUPPORTED && device.count == 1 && cuda && !supported;
	case NEEDS_FRAMEWORK:
		return missing && cell->location->origin == ORIGIN_NONE &&
		       cell_not_installed(&cell->cell, cell->location->reason);
	case NEEDS_DATA:
		return missing && cell->dataset->format && !cell->data_folder &&
		       cell->cell.input != INPUT_SYNTHETIC;
	case KIND_COUNT:
		break;
	}
	return false;
}

bool needs_something(const struct plan_cell *cell)
{
	bool any = false;
	for (int kind = 0; kind < KIND_COUNT; kind++)
		any |= needs(cell, (enum kind)kind);
	return any;
}

/* Returns the bytes that `prony data fetch` downloads. */
static int64_t dataset_bytes(const struct dataset *dataset)
{
	int64_t bytes = 0;

	if (dataset->archive.file.name)
		return dataset->archive.file.bytes;
	for (const struct dataset_file *file = dataset->files; file->name; file++)
		bytes += file->url ? file->bytes : 0;
	return bytes;
}

/* The cells with the same need: all that lack a framework, or a kind's cells with the same text. */
struct need {
	enum kind kind;
	const char *text; /* of NEEDS_FRAMEWORK: the names so far */
	size_t cells;
	int64_t mb; /* to download; 0: nothing, or unknown */
};

/* Adds the framework's name and the megabytes stated in its lock, if it is new. */
static void add_framework(struct need *need, const struct plan_cell *cell, struct arena *arena)
{
	const char *name =
		framework_spelling(cell->location->framework, cell->cell.environment, arena);
	const char *padded = arena_printf(arena, " %s ", name);

	if (strstr(arena_printf(arena, "%s ", need->text), padded))
		return;
	need->text = arena_printf(arena, "%s %s", need->text, name);
	need->mb += lock_download_mb(cell->location->framework, cell->cell.environment, arena);
}

static const char *dataset_text(const struct dataset *dataset, struct arena *arena)
{
	if (dataset_is_published(dataset))
		return arena_printf(arena, "the data set %s: prony data fetch %s", dataset->name,
				    dataset->name);
	return arena_printf(arena, "the data set %s: %s", dataset->name,
			    dataset->owner ? dataset->owner
					   : "it is not published (docs/datasets.md)");
}

static const char *text_of(const struct plan_cell *cell, enum kind kind, struct arena *arena)
{
	int gpus = gpu_count();
	switch (kind) {
	case NEEDS_GPU:
		return gpus ? arena_printf(arena, "more GPUs than the %d of this machine", gpus)
			    : "a GPU with an NVIDIA driver; this machine has none";
	case NEEDS_GPUS:
		return "several GPUs; this version supports one per cell";
	case NEEDS_CUDA:
		return arena_printf(arena, "a GPU, but %s runs on the CPU only",
				    cell->location->framework->name);
	case NEEDS_DATA:
		return dataset_text(cell->dataset, arena);
	case NEEDS_FRAMEWORK:
	case KIND_COUNT:
		break;
	}
	return "";
}

/* Counts the cell in the row of its need, which is the last one if it is new. */
static void add_need(const struct plan_cell *cell, enum kind kind, struct need *rows, size_t *count,
		     struct arena *arena)
{
	const char *text = text_of(cell, kind, arena);
	bool all = kind == NEEDS_FRAMEWORK;
	size_t i = 0;

	while (i < *count && (rows[i].kind != kind || (!all && strcmp(rows[i].text, text) != 0)))
		i++;
	if (i == *count) {
		rows[(*count)++] = (struct need){.kind = kind, .text = text};
		if (kind == NEEDS_DATA && dataset_is_published(cell->dataset))
			rows[i].mb = (dataset_bytes(cell->dataset) + MB - 1) / MB;
	}
	rows[i].cells++;
	if (all)
		add_framework(&rows[i], cell, arena);
}

void needs_text(const struct plan *plan, int width, struct strbuf *out)
{
	struct arena arena;
	size_t count = 0;

	arena_init(&arena, 0);
	struct need *rows = arena_array(&arena, KIND_COUNT * plan->count + 1, sizeof *rows);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		for (size_t i = 0; i < plan->count; i++)
			if (needs(&plan->cells[i], (enum kind)kind))
				add_need(&plan->cells[i], (enum kind)kind, rows, &count, &arena);
	for (size_t i = 0; i < count; i++) {
		const char *line = arena_printf(
			&arena, "%zu need%s %s%s%s", rows[i].cells, rows[i].cells == 1 ? "s" : "",
			rows[i].kind == NEEDS_FRAMEWORK ? "frameworks: " CELL_INSTALL : "",
			rows[i].text + strspn(rows[i].text, " "),
			rows[i].mb ? arena_printf(&arena, " (%s)",
						  lock_megabytes_text(rows[i].mb, &arena))
				   : "");
		text_wrap(line, INDENT, width, "", "", out);
	}
	arena_release(&arena);
}
