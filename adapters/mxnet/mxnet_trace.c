/* Reads the file that MXNet's profiler writes. */
#include "adapters/mxnet/mxnet_trace.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define DIGITS_MAX 18 /* digits of an integer that the JSON reader always accepts */

/* Keeps the last digits of a number that has too many. Such a number is an identifier and is not
 * used in arithmetic. */
static void shorten(char *digits, size_t count)
{
	size_t blank = count > DIGITS_MAX ? count - DIGITS_MAX : 0;

	while (blank > 0 && blank + 1 < count && digits[blank] == '0')
		blank++;
	memset(digits, ' ', blank);
}

/* Turns the text into valid JSON; see the header. */
static void mend(char *text)
{
	char before = '\0'; /* the previous character that is not white space */
	bool quoted = false;

	for (char *at = text; *at; at++) {
		if (quoted && *at == '\\' && at[1]) {
			at++;
		} else if (*at == '"') {
			quoted = !quoted;
		} else if (!quoted && *at == ',' && before == '[') {
			*at = ' ';
		} else if (!quoted && isdigit((unsigned char)*at)) {
			size_t count = strspn(at, "0123456789");

			shorten(at, count);
			at += count - 1;
		}
		if (!isspace((unsigned char)*at))
			before = *at;
	}
}

static bool is_operator(const json_t *event, const char *phase)
{
	return !strcmp(json_string_or(event, "cat", ""), "operator") &&
	       !strcmp(json_string_or(event, "ph", ""), phase);
}

static int compare(const void *a, const void *b)
{
	const struct mx_trace_event *left = a, *right = b;

	if (left->begin_us != right->begin_us)
		return left->begin_us < right->begin_us ? -1 : 1;
	/* An event inside another one sorts after it. */
	return (left->end_us < right->end_us) - (left->end_us > right->end_us);
}

static enum prony_status read_events(const json_t *events, struct arena *arena,
				     struct mx_trace *out, struct error *err)
{
	size_t count = json_array_size(events);
	struct mx_trace trace = {.events = arena_array(arena, count + 1, sizeof(*trace.events))};

	if (!json_is_array(events))
		return error_set(err, PRONY_INVALID, "MXNet's profile has no list traceEvents");
	for (size_t i = 0; i < count; i++) {
		const json_t *begin = json_array_get(events, i);
		const json_t *end = json_array_get(events, i + 1);
		const char *name = json_string_or(begin, "name", "");

		if (!is_operator(begin, "B"))
			continue;
		int64_t from = json_int_or(begin, "ts", -1), to = json_int_or(end, "ts", -1);
		if (!is_operator(end, "E") || strcmp(json_string_or(end, "name", ""), name) != 0 ||
		    from < 0 || to < from)
			return error_set(err, PRONY_INVALID,
					 "event %.60s in MXNet's profile has no end", name);
		trace.events[trace.count++] = (struct mx_trace_event){
			.name = arena_strdup(arena, name), .begin_us = from, .end_us = to};
	}
	qsort(trace.events, trace.count, sizeof(trace.events[0]), compare);
	*out = trace;
	return PRONY_OK;
}

enum prony_status mx_trace_read(char *text, size_t length, struct arena *arena,
				struct mx_trace *out, struct error *err)
{
	json_t *document = NULL;

	mend(text);
	enum prony_status status = json_parse(text, length, "MXNet's profile", &document, err);
	if (status == PRONY_OK)
		status = read_events(json_object_get(document, "traceEvents"), arena, out, err);
	json_decref(document);
	return status;
}
