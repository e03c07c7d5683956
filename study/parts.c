#include "study/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"
#include "report/names.h"
#include "run/workload_key.h"
#include "study/time_left.h"

struct dealt {
	double weight, seconds;
	size_t number; /* in the order of the plan */
	int part;
};

static int largest_first(const void *a, const void *b)
{
	const struct dealt *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int by_number(const void *a, const void *b)
{
	const struct dealt *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

/* Returns the plan's tables; *table_of: the number of each cell's. The caller frees both. */
static struct dealt *find_tables(const struct plan *plan, const struct spec *spec, int cores,
				 size_t **table_of, size_t *count)
{
	const struct effort_row *effort = &effort_table[spec->effort];
	struct dealt *tables = memory_alloc((plan->count + 1) * sizeof *tables);
	size_t *of = memory_alloc((plan->count + 1) * sizeof *of);
	struct names names = {.count = 0};
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_cell *cell = &plan->cells[i];
		char key[CELL_KEY_BYTES];
		workload_key(cell, key);
		size_t known = names.count, at = names_add(&names, key, strlen(key));
		bool first = at == known;
		if (first)
			tables[at] = (struct dealt){.number = at};
		of[i] = at;
		tables[at].weight +=
			time_left_forecast(cell, effort, spec->repeat, spec->gate_only, 1, first);
		tables[at].seconds += time_left_forecast(cell, effort, spec->repeat,
							 spec->gate_only, cores, first);
	}
	*count = names.count;
	*table_of = of;
	names_release(&names);
	return tables;
}

void parts_deal(const struct plan *plan, const struct spec *spec, int count, int cores,
		struct parts *out)
{
	size_t table_count, *table_of;
	struct dealt *tables = find_tables(plan, spec, cores, &table_of, &table_count);
	double *load = memory_alloc((size_t)count * sizeof *load);
	*out = (struct parts){.count = count,
			      .of_cell = memory_alloc((plan->count + 1) * sizeof *out->of_cell),
			      .tables = memory_alloc((size_t)count * sizeof *out->tables),
			      .seconds = memory_alloc((size_t)count * sizeof *out->seconds)};
	for (int part = 0; part < count; part++) {
		load[part] = out->seconds[part] = 0;
		out->tables[part] = 0;
	}
	qsort(tables, table_count, sizeof *tables, largest_first);
	for (size_t i = 0; i < table_count; i++) {
		int least = 0;
		for (int part = 1; part < count; part++)
			if (load[part] < load[least])
				least = part;
		tables[i].part = least;
		load[least] += tables[i].weight;
		out->seconds[least] += tables[i].seconds;
		out->tables[least]++;
	}
	qsort(tables, table_count, sizeof *tables, by_number);
	for (size_t i = 0; i < plan->count; i++)
		out->of_cell[i] = tables[table_of[i]].part;
	free(load);
	free(tables);
	free(table_of);
}

void parts_release(struct parts *parts)
{
	free(parts->of_cell);
	free(parts->tables);
	free(parts->seconds);
	*parts = (struct parts){.count = 0};
}

void parts_keep(const struct parts *parts, int part, struct plan *plan)
{
	size_t kept = 0;
	for (size_t i = 0; i < plan->count; i++)
		if (parts->of_cell[i] == part)
			plan->cells[kept++] = plan->cells[i];
	plan->count = kept;
}

void parts_uid(const struct spec *spec, int count, const char *id, char uid[33])
{
	char *canonical = spec_canonical(spec), number[16], hex[DIGEST_HEX_BYTES];
	struct digest digest;
	snprintf(number, sizeof number, "%d", count);
	digest_begin(&digest);
	digest_add_text(&digest, canonical);
	digest_add_text(&digest, number);
	digest_add_text(&digest, id);
	digest_end(&digest, hex);
	snprintf(uid, 33, "%.32s", hex);
	free(canonical);
}
