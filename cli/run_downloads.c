#include "cli/run_downloads.h"

#include <inttypes.h>
#include <string.h>

#include "frameworks/lock.h"
#include "frameworks/registry.h"

#define MB 1000000

struct downloads {
	const struct plan *plan;
	struct arena arena;
	const char **names; /* those listed so far */
	size_t count;
	int64_t sum_mb;
	struct strbuf *out;
};

static bool is_new(struct downloads *d, const char *name)
{
	for (size_t i = 0; i < d->count; i++)
		if (strcmp(d->names[i], name) == 0)
			return false;
	d->names[d->count++] = name;
	return true;
}

/* Returns the megabytes stated in the framework's lock; -1 if there is no lock. */
static int64_t framework_mb(struct downloads *d, const struct plan_cell *cell)
{
	const struct framework *framework = cell->place->framework;
	const char *path = NULL;
	struct error ignored = ERROR_INIT;
	struct lock lock;

	for (size_t i = 0; !path && i < framework->pythons.count; i++)
		path = lock_find(framework, cell->cell.environment, framework->pythons.words[i],
				 &d->arena);
	if (!path)
		path = lock_find(framework, cell->cell.environment, NULL, &d->arena);
	if (!path || lock_read(path, &d->arena, &lock, &ignored) != PRONY_OK)
		return -1;
	return lock.download_mb;
}

static void add_framework(struct downloads *d, const struct plan_cell *cell)
{
	const char *name =
		framework_spelling(cell->place->framework, cell->cell.environment, &d->arena);

	if (!is_new(d, name))
		return;
	int64_t mb = framework_mb(d, cell);
	if (mb < 0)
		return;
	strbuf_printf(d->out, "prony framework install %s  %" PRId64 " MB\n", name, mb);
	d->sum_mb += mb;
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

static void add_dataset(struct downloads *d, const struct dataset *dataset)
{
	if (!is_new(d, dataset->name) || !dataset_is_published(dataset))
		return;
	int64_t mb = (dataset_bytes(dataset) + MB - 1) / MB;
	strbuf_printf(d->out, "prony data fetch %s  %" PRId64 " MB\n", dataset->name, mb);
	d->sum_mb += mb;
}

void downloads_text(const struct plan *plan, struct strbuf *out)
{
	struct downloads d = {.plan = plan, .out = out};
	size_t before = out->length;

	arena_init(&d.arena, 0);
	d.names = arena_array(&d.arena, 2 * plan->count + 1, sizeof *d.names);
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_cell *cell = &plan->cells[i];

		if (cell->status != CELL_MISSING)
			continue;
		if (cell->place->origin == ORIGIN_NONE)
			add_framework(&d, cell);
		if (cell->dataset->format && !cell->data_folder)
			add_dataset(&d, cell->dataset);
	}
	if (out->length > before)
		strbuf_printf(out, "to download: %" PRId64 " MB in all\n", d.sum_mb);
	arena_release(&d.arena);
}
