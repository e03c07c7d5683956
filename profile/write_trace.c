/* Writes Chrome trace events and folded stacks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/write.h"
#include "report/text.h"

/* A JSON string. */
static void add_string(const char *text, struct strbuf *out)
{
	json_t *json = text_json(text);
	char *dumped = text_of_json(json, JSON_ENCODE_ANY);
	strbuf_puts(out, dumped);
	free(dumped);
	json_decref(json);
}

static void comma(struct strbuf *out, bool *first)
{
	strbuf_puts(out, *first ? "\n" : ",\n");
	*first = false;
}

/* "M" events name processes and threads. */
static void name_row(const char *what, int pid, int tid, const char *name, bool *first,
		     struct strbuf *out)
{
	comma(out, first);
	strbuf_printf(out,
		      "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":",
		      what, pid, tid);
	add_string(name, out);
	strbuf_puts(out, "}}");
}

/* A complete event; times in microseconds, as the format wants them. */
static void begin_event(const char *name, const char *category, int pid, int tid, double begin_ns,
			double ns, bool *first, struct strbuf *out)
{
	comma(out, first);
	strbuf_puts(out, "{\"ph\":\"X\",\"name\":");
	add_string(name, out);
	strbuf_puts(out, ",\"cat\":");
	add_string(category, out);
	strbuf_printf(out, ",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{", pid, tid,
		      begin_ns / 1e3, ns / 1e3);
}

enum { THREAD_PHASES = 0, THREAD_FIRST = 1 };

static void add_span(const struct profile_span *span, int pid, int64_t begin_ns, int64_t origin_ns,
		     bool *first, struct strbuf *out)
{
	begin_event(span->name, *span->pass ? span->pass : "layer", pid,
		    THREAD_FIRST + span->thread, (double)(begin_ns - origin_ns), (double)span->ns,
		    first, out);
	strbuf_printf(out, "\"step\":%" PRId64, span->step);
	if (span->layer) {
		strbuf_puts(out, ",\"layer\":");
		add_string(span->layer, out);
	}
	if (*span->kind) {
		strbuf_puts(out, ",\"operator\":");
		add_string(span->kind, out);
	}
	if (span->device != PROFILE_DEVICE_NONE)
		strbuf_printf(out, ",\"device\":\"%s\"", profile_device_word(span->device));
	if (span->bytes > 0)
		strbuf_printf(out, ",\"bytes\":%" PRId64, span->bytes);
	strbuf_puts(out, "}}");
}

static void add_spans(const struct profile *profile, int pid, int64_t origin_ns, bool *first,
		      struct strbuf *out)
{
	/* Events without begin times are placed one after the other. */
	int64_t place = profile->phases[PROFILE_PHASE_LAYERS].begin_ns;
	int threads = 0;
	bool unplaced = false;
	for (size_t i = 0; i < profile->span_count; i++) {
		const struct profile_span *span = &profile->spans[i];
		bool placed = span->begin_ns != PROFILE_NO_TIME;
		add_span(span, pid, placed ? span->begin_ns : place, origin_ns, first, out);
		place += placed ? 0 : span->ns;
		unplaced = unplaced || !placed;
		threads = span->thread >= threads ? span->thread + 1 : threads;
	}
	for (int i = 0; i < threads && i < 256; i++) {
		char name[64];
		snprintf(name, sizeof name, "layers, thread %d%s", i,
			 unplaced ? " (only durations are known)" : "");
		name_row("thread_name", pid, THREAD_FIRST + i, name, first, out);
	}
}

static void add_trace(const struct profile *profile, int pid, bool *first, struct strbuf *out)
{
	int64_t origin_ns = profile->phases[PROFILE_PHASE_START].begin_ns;
	name_row("process_name", pid, THREAD_PHASES, profile->cell->cell.framework, first, out);
	name_row("thread_name", pid, THREAD_PHASES, "phases", first, out);
	for (int i = 0; i < PROFILE_PHASE_COUNT; i++) {
		const struct profile_phase *phase = &profile->phases[i];
		if (phase->ns < 0)
			continue;
		begin_event(profile_phase_name(i), "phase", pid, THREAD_PHASES,
			    (double)(phase->begin_ns - origin_ns), (double)phase->ns, first, out);
		strbuf_printf(out, "\"steps\":%" PRId64 "}}", phase->steps);
	}
	if (profile->has_layers)
		add_spans(profile, pid, origin_ns, first, out);
}

void profile_write_chrome(const struct profile *profiles, size_t count, struct strbuf *out)
{
	bool first = true;
	strbuf_puts(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"caution\":");
	add_string(profile_caution, out);
	strbuf_puts(out, ",\"cells\":[");
	for (size_t i = 0; i < count; i++) {
		strbuf_puts(out, i ? "," : "");
		add_string(profiles[i].cell->key, out);
	}
	strbuf_puts(out, "]},\"traceEvents\":[");
	for (size_t i = 0; i < count; i++)
		add_trace(&profiles[i], (int)i + 1, &first, out);
	strbuf_puts(out, "\n]}\n");
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_folds(const void *a, const void *b)
{
	const struct profile_span *left = *(const struct profile_span *const *)a,
				  *right = *(const struct profile_span *const *)b;
	int order = compare_text(left->layer, right->layer);
	if (!order)
		order = strcmp(left->pass, right->pass);
	return order ? order : strcmp(left->name, right->name);
}

/* Writes a frame of a stack; characters that separate frames and counts are replaced. */
static void add_frame(const char *text, struct strbuf *out)
{
	char *line = text_line(text);
	for (char *at = line; *at; at++)
		*at = *at == ';' ? ':' : *at;
	strbuf_printf(out, ";%s", *line ? line : "?");
	free(line);
}

static void fold_layers(const struct profile *profile, struct strbuf *out)
{
	size_t count = profile->span_count;
	const struct profile_span **order = calloc(count + 1, sizeof(*order));
	for (size_t i = 0; order && i < count; i++)
		order[i] = &profile->spans[i];
	if (order)
		qsort(order, count, sizeof(*order), compare_folds);
	for (size_t i = 0, next; order && i < count; i = next) {
		int64_t ns = 0;
		for (next = i; next < count && !compare_folds(&order[i], &order[next]); next++)
			ns += order[next]->ns;
		if (ns / profile->layer_steps == 0)
			continue;
		strbuf_puts(out, profile->cell->cell.framework);
		add_frame("layers", out);
		add_frame(order[i]->layer ? order[i]->layer : "(beside the layers)", out);
		if (*order[i]->pass)
			add_frame(order[i]->pass, out);
		add_frame(order[i]->name, out);
		strbuf_printf(out, " %" PRId64 "\n", ns / profile->layer_steps);
	}
	free(order);
}

static void fold_lines(const struct profile *profile, struct strbuf *out)
{
	for (size_t i = 0; i < profile->stack_count; i++) {
		const struct profile_stack *stack = &profile->stacks[i];
		if (stack->ns / profile->line_steps == 0)
			continue;
		strbuf_puts(out, profile->cell->cell.framework);
		add_frame("python", out);
		for (size_t k = 0; k < stack->depth; k++)
			add_frame(stack->frames[k], out);
		strbuf_printf(out, " %" PRId64 "\n", stack->ns / profile->line_steps);
	}
}

void profile_write_folded(const struct profile *profiles, size_t count, struct strbuf *out)
{
	for (size_t i = 0; i < count; i++) {
		if (profiles[i].has_layers)
			fold_layers(&profiles[i], out);
		if (profiles[i].has_lines)
			fold_lines(&profiles[i], out);
	}
}
