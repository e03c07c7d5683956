/* What is said of a run in parts. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/summary.h"

/* Adds "part 2", "parts 2 and 5 to 7": the numbers of the parts in this state. Returns how many. */
static size_t add_numbers(const int *states, int64_t parts, int state, struct strbuf *out)
{
	size_t count = 0, ranges = 0, range = 0;
	for (int64_t i = 0; i < parts; i++) {
		count += states[i] == state;
		ranges += states[i] == state && (i == 0 || states[i - 1] != state);
	}
	if (count > 0)
		strbuf_puts(out, count == 1 ? "part " : "parts ");
	for (int64_t i = 0, end; i < parts; i = end) {
		end = i + 1;
		if (states[i] != state)
			continue;
		while (end < parts && states[end] == state)
			end++;
		const char *comma = range == 0 ? "" : range + 1 == ranges ? " and " : ", ";
		strbuf_printf(out, "%s%lld", comma, (long long)i + 1);
		if (end - i > 1)
			strbuf_printf(out, " to %lld", (long long)end);
		range++;
	}
	return count;
}

static bool add_state(const int *states, int64_t parts, int state, const char *what,
		      struct strbuf *out)
{
	struct strbuf numbers;
	strbuf_init(&numbers, 0);
	size_t count = add_numbers(states, parts, state, &numbers);
	if (count > 0)
		strbuf_printf(out, "%s%s of %lld %s %s", out->length > 0 ? "; " : "",
			      strbuf_text(&numbers), (long long)parts, count == 1 ? "is" : "are",
			      what);
	strbuf_release(&numbers);
	return count > 0;
}

enum { PART_MISSING, PART_UNFINISHED, PART_FINISHED };

/* Adds what is missing of the run. */
static void add_missing(const struct summary *summary, struct strbuf *out)
{
	const struct run_meta *meta = &summary->run->meta;
	int64_t parts = meta->parts[0].parts, cells = 0;
	int *states = memory_alloc((size_t)parts * sizeof *states);
	for (int64_t i = 0; i < parts; i++)
		states[i] = PART_MISSING;
	for (size_t i = 0; i < meta->part_count; i++) {
		const struct run_part *part = &meta->parts[i];
		cells = part->cells > cells ? part->cells : cells;
		if (part->part <= parts)
			states[part->part - 1] = part->finished_wall_ns == RECORD_NONE
							 ? PART_UNFINISHED
							 : PART_FINISHED;
	}
	bool missing = add_state(states, parts, PART_MISSING, "missing", out);
	add_state(states, parts, PART_UNFINISHED, "not finished", out);
	if (!missing && (int64_t)summary->count < cells)
		strbuf_printf(out,
			      "%sthe parts hold %zu of %lld cells: their machines did not plan "
			      "the same",
			      out->length > 0 ? "; " : "", summary->count, (long long)cells);
	free(states);
}

static const char *place_of(const struct run_part *part)
{
	return *part->node ? part->node : part->host;
}

/* Adds the machines, if they differ in what must match. */
static void add_machines(const struct run_meta *meta, struct strbuf *out)
{
	json_t **records = memory_alloc((meta->part_count + 1) * sizeof *records);
	int *machine = memory_alloc((size_t)RUN_PARTS_MAX * sizeof *machine), count = 0;
	for (int64_t i = 0; i < RUN_PARTS_MAX; i++)
		machine[i] = -1;
	for (size_t i = 0; i < meta->part_count; i++) {
		int *own = &machine[meta->parts[i].part - 1];
		records[i] = machine_parse(meta->parts[i].environment);
		for (size_t k = 0; k < i && *own < 0; k++)
			if (json_equal(json_object_get(records[k], "must_match"),
				       json_object_get(records[i], "must_match")))
				*own = machine[meta->parts[k].part - 1];
		if (*own < 0)
			*own = count++;
	}
	for (int m = 0; m < count && count > 1; m++) {
		if (m == 0)
			strbuf_printf(out, "%sof %d machines, each table of one: ",
				      out->length > 0 ? "; " : "", count);
		else
			strbuf_puts(out, "; ");
		add_numbers(machine, RUN_PARTS_MAX, m, out);
		for (size_t i = 0; i < meta->part_count; i++) {
			if (machine[meta->parts[i].part - 1] != m)
				continue;
			strbuf_printf(out, " on %s, ", place_of(&meta->parts[i]));
			if (!machine_text(records[i], out))
				strbuf_puts(out, "unknown");
			break;
		}
	}
	for (size_t i = 0; i < meta->part_count; i++)
		json_decref(records[i]);
	free(records);
	free(machine);
}

bool summary_parts(const struct summary *summary, struct strbuf *out)
{
	const struct run_meta *meta = &summary->run->meta;
	if (meta->part_count == 0)
		return false;
	add_missing(summary, out);
	add_machines(meta, out);
	return out->length > 0;
}

size_t summary_hosts(const struct summary *summary)
{
	const struct run_meta *meta = &summary->run->meta;
	size_t count = meta->part_count == 0;
	for (size_t i = 0; i < meta->part_count; i++) {
		bool known = false;
		for (size_t k = 0; k < i && !known; k++)
			known = !strcmp(place_of(&meta->parts[i]), place_of(&meta->parts[k]));
		count += !known;
	}
	return count;
}
