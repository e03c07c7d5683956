/* Writes the properties and prices of the machines' devices, and the samples per unit of money. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/devices.h"
#include "report/figures.h"
#include "report/html_internal.h"
#include "report/text.h"

enum { GPUS_MAX = 16 };

/* The machine's names for its devices, the processor first; texts from its record. */
struct machine {
	const char *names[GPUS_MAX + 1];
	size_t count;
	int64_t cores; /* 0: unknown */
	int64_t usable;
};

static void machine_init(struct machine *machine, const struct summary *summary)
{
	json_t *gpu;
	size_t i;
	const json_t *fixed = json_object_get(summary->environment, "must_match");
	*machine = (struct machine){.count = 0};
	machine->names[machine->count++] = json_string_or(fixed, "cpu_model", "");
	machine->usable = json_int_or(fixed, "cores_usable", 0);
	machine->cores = json_int_or(fixed, "cores", machine->usable);
	json_array_foreach(json_object_get(fixed, "gpus"), i, gpu)
	{
		const char *name =
			json_is_string(gpu)
				? json_string_value(gpu)
				: json_string_or(gpu, "name", json_string_or(gpu, "model", NULL));
		if (name && machine->count <= GPUS_MAX)
			machine->names[machine->count++] = name;
	}
}

/* Adds a share of a device's price to the price of a cell. False if the device is in no table, or
 * its price is in another currency. */
static bool add_device(const struct machine *machine, const struct device_table *table,
		       size_t device, double share, struct device_row *price)
{
	const struct device_row *row =
		device < machine->count ? devices_find(table, machine->names[device]) : NULL;
	if (!row || (price->name && strcmp(price->currency, row->currency) != 0))
		return false;
	price->hourly += share * row->hourly;
	price->retail += share * row->retail;
	price->currency = row->currency;
	price->name = row->name;
	return true;
}

/* Adds the price of some cores of a processor, as a share of its cores by the table, or else of the
 * machine's: "2 of 16 cores of EPYC 9004". */
static bool price_cores(const struct machine *machine, const struct device_table *table,
			int64_t cores, struct device_row *price, struct strbuf *name)
{
	const struct device_row *row =
		machine->count > 0 ? devices_find(table, machine->names[0]) : NULL;
	double all = row && row->cores > 0 ? row->cores : (double)machine->cores;
	if (cores <= 0 || cores > machine->cores ||
	    !add_device(machine, table, 0, (double)cores / all, price))
		return false;
	if ((double)cores != all)
		strbuf_printf(name, "%lld of %.0f cores of ", (long long)cores, all);
	strbuf_puts(name, price->name);
	return true;
}

/* Adds up the prices of a cell's devices; `name`: the names of the devices. False if a price is
 * unknown. */
static bool price_of(const struct machine *machine, const struct device_table *table,
		     const struct cell *cell, struct device_row *price, struct strbuf *name)
{
	const struct device device = device_of(cell->device);
	*price = (struct device_row){.hourly = 0, .retail = 0};
	if (device.kind == DEVICE_CPU)
		return price_cores(machine, table,
				   device.cores > 0 ? device.cores : machine->usable, price, name);
	/* The table has no entry for the device of another library. */
	for (int i = 0; i < device.count; i++) {
		if (device.indices[i] >= GPUS_MAX ||
		    !add_device(machine, table, 1 + (size_t)device.indices[i], 1, price))
			return false;
		strbuf_printf(name, "%s%s", name->length > 0 ? " + " : "", price->name);
	}
	return price->name;
}

static void number_cell(double value, const char *format, const char *unit, struct strbuf *out)
{
	char number[40], text[64];
	snprintf(number, sizeof number, format, value);
	snprintf(text, sizeof text, "%s%s%s", number, *unit ? " " : "", unit);
	html_cell("figure", isfinite(value) ? text : "-", out);
}

static void device_line(const struct html_page *page, size_t run, const struct device_row *row,
			struct strbuf *out)
{
	strbuf_puts(out, "<tr>");
	html_run_cell(page, run, out);
	html_cell("strong", row->name, out);
	number_cell(row->cores, "%.0f", "", out);
	number_cell(row->memory_gib, "%.0f", "GiB", out);
	for (int i = 0; i < PRECISION_COUNT; i++)
		number_cell(row->peak_tflops[i], "%.4g", "", out);
	number_cell(row->retail, "%.0f", row->currency, out);
	number_cell(row->hourly, "%.3g", row->currency, out);
	html_cell(NULL, row->source, out);
	strbuf_puts(out, "</tr>\n");
}

static void money_line(const struct html_page *page, size_t run, const struct summary_row *row,
		       const struct device_row *price, const char *device, struct strbuf *out)
{
	char rate[FORMAT_BYTES];
	double samples = figure_value(FIGURE_SAMPLES, row).value;
	figure_text(FIGURE_SAMPLES, row, rate);
	html_row(row, "", out);
	html_cell("strong", row->cell->cell.framework, out);
	html_work_cell(page, &row->cell->cell, "", out);
	html_run_cell(page, run, out);
	html_cell(NULL, device, out);
	html_cell("figure", rate, out);
	number_cell(devices_samples_per_money(price, samples), "%.0f", "", out);
	html_cell(NULL, price->currency, out);
	number_cell(samples / price->retail * 1000, "%.4g", "", out);
	strbuf_puts(out, "</tr>\n");
}

/* Writes the comparable cells with the price of their devices. */
static void money_rows(const struct html_page *page, const struct device_table *table,
		       struct strbuf *out)
{
	static const char *const titles[] = {"framework", "work",
					     "run",	  "device",
					     ">samples",  ">samples for one",
					     "currency",  ">samples/s for 1,000 (retail)"};
	size_t shown = 0;
	for (size_t run = 0; run < page->count; run++) {
		struct machine machine;
		machine_init(&machine, page->summaries[run]);
		for (size_t i = 0; i < page->summaries[run]->count && shown < HTML_ROWS_MAX; i++) {
			const struct summary_row *row = &page->summaries[run]->rows[i];
			struct device_row price;
			struct strbuf device;
			strbuf_init(&device, 0);
			if (row->comparable &&
			    price_of(&machine, table, &row->cell->cell, &price, &device) &&
			    (isfinite(price.hourly) || isfinite(price.retail))) {
				if (shown++ == 0)
					HTML_HEAD(page, titles, out);
				money_line(page, run, row, &price, strbuf_text(&device), out);
			}
			strbuf_release(&device);
		}
	}
	if (shown > 0)
		html_foot(out);
}

/* Writes the devices that are in the table; returns the number of rows. */
static size_t device_rows(const struct html_page *page, const struct device_table *table,
			  struct strbuf *out)
{
	static const char *const titles[] = {
		"run",		 "device",	  ">cores",	   ">memory",
		">fp32 TFLOP/s", ">tf32 TFLOP/s", ">fp16 TFLOP/s", ">bf16 TFLOP/s",
		">retail",	 ">an hour",	  "source",
	};
	size_t shown = 0;
	for (size_t run = 0; run < page->count; run++) {
		struct machine machine;
		machine_init(&machine, page->summaries[run]);
		for (size_t i = 0; i < machine.count; i++) {
			const struct device_row *row = devices_find(table, machine.names[i]);
			if (!row)
				continue;
			if (shown++ == 0)
				HTML_HEAD(page, titles, out);
			device_line(page, run, row, out);
		}
	}
	if (shown > 0)
		html_foot(out);
	return shown;
}

void html_devices(const struct html_page *page, struct strbuf *out)
{
	struct device_table table;
	struct error err = ERROR_INIT;
	if (devices_load(NULL, &table, &err) != PRONY_OK) {
		html_text("<p class=\"warning\">", err.text, "</p>\n", out);
		return;
	}
	if (device_rows(page, &table, out) > 0)
		strbuf_puts(out, "<p class=\"note\">Peaks and prices are the vendors' figures from "
				 "devices.yaml, not measured here.</p>\n");
	money_rows(page, &table, out);
	devices_release(&table);
}
