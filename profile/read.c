#include "profile/read.h"

#include <string.h>

#include "base/json.h"

enum { WORDS_MAX = 4096, DEPTH_MAX = 1000, THREAD_MAX = 1 << 20 };

static enum prony_status wrong(struct error *err, const char *list, size_t at, const char *what)
{
	return error_set(err, PRONY_PROTOCOL, "the worker's profile is invalid: %s %zu: %s", list,
			 at, what);
}

/* Opens the file as a JSON object; any failure is the worker's fault. */
static enum prony_status open_file(const char *path, json_t **out, struct error *err)
{
	struct error why = ERROR_INIT;
	json_t *json = NULL;
	enum prony_status status = json_read_file(path, PROFILE_FILE_BYTES_MAX, &json, &why);
	if (status == PRONY_OK && !json_is_object(json)) {
		json_decref(json);
		return error_set(err, PRONY_PROTOCOL, "the worker's profile is not a JSON object");
	}
	if (status != PRONY_OK)
		return error_set(err, status == PRONY_NOMEM ? status : PRONY_PROTOCOL,
				 "the worker's profile cannot be read: %s", why.text);
	*out = json;
	return PRONY_OK;
}

static enum prony_status need_array(const json_t *file, const char *key, const json_t **out,
				    struct error *err)
{
	*out = json_object_get(file, key);
	if (json_is_array(*out))
		return PRONY_OK;
	return error_set(err, PRONY_PROTOCOL, "the worker's profile has no array \"%s\"", key);
}

/* Reads a text of limited length into the arena; `otherwise` when it is absent. False when it is
 * not a text. */
static bool text_of(struct arena *arena, const json_t *object, const char *key,
		    const char *otherwise, const char **out)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);
	*out = text && *text ? arena_strndup(arena, text, strnlen(text, WORDS_MAX)) : otherwise;
	return text || !value;
}

/* Reads an integer from 0 to `most`. */
static bool count_of(const json_t *object, const char *key, int64_t most, int64_t *out)
{
	const json_t *value = json_object_get(object, key);
	*out = json_is_integer(value) ? json_integer_value(value) : -1;
	return *out >= 0 && *out <= most;
}

/* Reads the instants of the steps: as many as requested, in order, within the bracket. */
static enum prony_status read_steps(const json_t *file, const struct profile_bracket *bracket,
				    double *mean_ns, struct error *err)
{
	const json_t *steps;
	int64_t last = bracket->begin_ns, sum = 0;
	enum prony_status status = need_array(file, "steps", &steps, err);
	if (status != PRONY_OK)
		return status;
	if ((int64_t)json_array_size(steps) != bracket->steps)
		return error_set(err, PRONY_PROTOCOL,
				 "the worker's profile has %zu steps, but %lld were requested",
				 json_array_size(steps), (long long)bracket->steps);
	for (size_t i = 0; i < json_array_size(steps); i++) {
		const json_t *pair = json_array_get(steps, i);
		const json_t *from = json_array_get(pair, 0), *to = json_array_get(pair, 1);
		if (!json_is_integer(from) || !json_is_integer(to))
			return wrong(err, "step", i, "it needs two times, begin and end");
		int64_t begin = json_integer_value(from), end = json_integer_value(to);
		if (begin < last || end < begin || end > bracket->end_ns)
			return wrong(err, "step", i,
				     "it overlaps the step before it, or lies outside the "
				     "request's time");
		last = end;
		sum += end - begin;
	}
	/* Shares are divided by it. */
	if (sum == 0)
		return error_set(err, PRONY_PROTOCOL,
				 "the steps of the worker's profile took no time");
	*mean_ns = (double)sum / (double)bracket->steps;
	return PRONY_OK;
}

/* False when it is no word of the protocol. */
static bool device_kind(const json_t *event, enum profile_device *out)
{
	const json_t *value = json_object_get(event, "device");
	const char *word = json_string_value(value);
	int device = PROFILE_DEVICE_NONE;
	while (word && device < PROFILE_DEVICE_COUNT &&
	       strcmp(profile_device_word((enum profile_device)device), word) != 0)
		device++;
	*out = (enum profile_device)device;
	return (word || !value) && device < PROFILE_DEVICE_COUNT;
}

/* Reads the words of an event. */
static enum prony_status read_words(struct arena *arena, const json_t *event, size_t at,
				    struct profile_span *span, struct error *err)
{
	if (!text_of(arena, event, "name", NULL, &span->name) || !span->name)
		return wrong(err, "event", at, "it has no name");
	if (!device_kind(event, &span->device))
		return wrong(err, "event", at, "device must be \"kernel\", \"copy\" or \"fill\"");
	if (!text_of(arena, event, "operator", "", &span->kind) ||
	    !text_of(arena, event, "layer", NULL, &span->layer) ||
	    !text_of(arena, event, "pass", "", &span->pass))
		return wrong(err, "event", at, "operator, layer and pass must be strings");
	return PRONY_OK;
}

static enum prony_status read_span(struct arena *arena, const json_t *event, size_t at,
				   const struct profile_bracket *bracket, struct profile_span *span,
				   struct error *err)
{
	const json_t *begin = json_object_get(event, "begin_ns");
	int64_t passed = bracket->end_ns - bracket->begin_ns, thread = 0;
	*span = (struct profile_span){.begin_ns = PROFILE_NO_TIME};
	enum prony_status status = read_words(arena, event, at, span, err);
	if (status != PRONY_OK)
		return status;
	if (!count_of(event, "duration_ns", passed, &span->ns))
		return wrong(
			err, "event", at,
			"duration_ns must be a whole number, at most the duration of the request");
	if (!count_of(event, "step", bracket->steps - 1, &span->step))
		return wrong(err, "event", at, "step must be one of the requested steps");
	if (json_object_get(event, "thread") && !count_of(event, "thread", THREAD_MAX, &thread))
		return wrong(err, "event", at, "thread must be a whole number from 0 to 1048576");
	span->thread = (int)thread;
	if (json_object_get(event, "bytes") && !count_of(event, "bytes", INT64_MAX, &span->bytes))
		return wrong(err, "event", at, "bytes must be a whole number");
	if (!begin)
		return PRONY_OK;
	if (json_is_integer(begin))
		span->begin_ns = json_integer_value(begin);
	if (!json_is_integer(begin) || span->begin_ns < bracket->begin_ns ||
	    span->begin_ns > bracket->end_ns - span->ns)
		return wrong(err, "event", at, "it lies outside the request's time");
	return PRONY_OK;
}

enum prony_status profile_read_layers(struct profile *profile, const char *path,
				      const struct profile_bracket *bracket, struct error *err)
{
	json_t *file = NULL;
	const json_t *events = NULL;
	struct profile_span *spans = NULL;
	double mean_ns = 0;
	enum prony_status status = open_file(path, &file, err);
	if (status == PRONY_OK)
		status = read_steps(file, bracket, &mean_ns, err);
	if (status == PRONY_OK)
		status = need_array(file, "events", &events, err);
	size_t count = status == PRONY_OK ? json_array_size(events) : 0;
	if (status == PRONY_OK && count == 0)
		status = error_set(err, PRONY_PROTOCOL, "the worker's profile has no events");
	if (status == PRONY_OK)
		spans = arena_try_array(&profile->arena, count, sizeof *spans, err);
	if (status == PRONY_OK && !spans)
		status = PRONY_NOMEM;
	for (size_t i = 0; status == PRONY_OK && i < count; i++)
		status = read_span(&profile->arena, json_array_get(events, i), i, bracket,
				   &spans[i], err);
	if (status == PRONY_OK) {
		profile->spans = spans;
		profile->span_count = count;
		profile->layer_steps = bracket->steps;
		profile->layer_step_ns = mean_ns;
	}
	json_decref(file);
	return status;
}

static bool read_line(struct arena *arena, const json_t *json, int64_t most,
		      struct profile_line *line)
{
	return count_of(json, "line", INT32_MAX, &line->line) &&
	       count_of(json, "hits", INT64_MAX, &line->hits) &&
	       count_of(json, "ns", INT64_MAX, &line->ns) &&
	       count_of(json, "self_ns", most, &line->self_ns) &&
	       text_of(arena, json, "text", "", &line->text);
}

static enum prony_status read_function(struct arena *arena, const json_t *json, size_t at,
				       int64_t most, struct profile_function *function,
				       struct error *err)
{
	const json_t *lines = json_object_get(json, "lines");
	if (!text_of(arena, json, "name", NULL, &function->name) || !function->name)
		return wrong(err, "function", at, "it has no name");
	if (!text_of(arena, json, "file", "", &function->file))
		return wrong(err, "function", at, "its file is not a string");
	if (!count_of(json, "line", INT32_MAX, &function->line) ||
	    !count_of(json, "calls", INT64_MAX, &function->calls) ||
	    !count_of(json, "ns", most, &function->ns) ||
	    !count_of(json, "self_ns", most, &function->self_ns) || !json_is_array(lines))
		return wrong(err, "function", at,
			     "it needs lines, and line, calls, ns, self_ns (whole numbers; times "
			     "at most that of the request)");
	function->line_count = json_array_size(lines);
	function->lines = arena_array(arena, function->line_count + 1, sizeof *function->lines);
	for (size_t i = 0; i < function->line_count; i++)
		if (!read_line(arena, json_array_get(lines, i), most, &function->lines[i]))
			return wrong(err, "function", at,
				     "each of its lines needs line, hits, ns and self_ns (whole "
				     "numbers)");
	return PRONY_OK;
}

static enum prony_status read_stack(struct arena *arena, const json_t *json, size_t at,
				    int64_t most, struct profile_stack *stack, struct error *err)
{
	const json_t *frames = json_object_get(json, "frames");
	size_t depth = json_array_size(frames);
	if (depth == 0 || depth > DEPTH_MAX || !count_of(json, "ns", most, &stack->ns))
		return wrong(err, "stack", at, "it needs frames and ns (a whole number)");
	stack->frames = arena_array(arena, depth, sizeof(*stack->frames));
	for (stack->depth = 0; stack->depth < depth; stack->depth++) {
		const char *frame = json_string_value(json_array_get(frames, stack->depth));
		if (!frame)
			return wrong(err, "stack", at, "a frame is not a string");
		stack->frames[stack->depth] = arena_strdup(arena, frame);
	}
	return PRONY_OK;
}

/*
 * Store into the profile only when everything is valid: it may hold results of an earlier request.
 */
static enum prony_status read_functions(struct profile *profile, const json_t *functions,
					const json_t *stacks, int64_t most, struct error *err)
{
	enum prony_status status = PRONY_OK;
	struct arena *arena = &profile->arena;
	size_t count = json_array_size(functions), depth = json_array_size(stacks);
	struct profile_function *function = arena_array(arena, count + 1, sizeof *function);
	struct profile_stack *stack = arena_array(arena, depth + 1, sizeof *stack);
	for (size_t i = 0; status == PRONY_OK && i < count; i++)
		status = read_function(arena, json_array_get(functions, i), i, most, &function[i],
				       err);
	for (size_t i = 0; status == PRONY_OK && i < depth; i++)
		status = read_stack(arena, json_array_get(stacks, i), i, most, &stack[i], err);
	if (status != PRONY_OK)
		return status;
	profile->functions = function;
	profile->function_count = count;
	profile->stacks = stack;
	profile->stack_count = depth;
	return PRONY_OK;
}

enum prony_status profile_read_lines(struct profile *profile, const char *path,
				     const struct profile_bracket *bracket, struct error *err)
{
	json_t *file = NULL;
	const json_t *functions = NULL, *stacks = NULL;
	double mean_ns = 0;
	int64_t total = 0, passed = bracket->end_ns - bracket->begin_ns;
	enum prony_status status = open_file(path, &file, err);
	if (status == PRONY_OK)
		status = read_steps(file, bracket, &mean_ns, err);
	if (status == PRONY_OK)
		status = need_array(file, "functions", &functions, err);
	if (status == PRONY_OK)
		status = need_array(file, "stacks", &stacks, err);
	if (status == PRONY_OK && (!count_of(file, "total_ns", passed, &total) || total == 0))
		status = error_set(err, PRONY_PROTOCOL,
				   "total_ns in the worker's profile must be above 0 and at most "
				   "the duration of the request");
	if (status == PRONY_OK)
		status = read_functions(profile, functions, stacks, passed, err);
	if (status == PRONY_OK) {
		profile->line_steps = bracket->steps;
		profile->lines_total_ns = total;
		profile->has_lines = true;
	}
	json_decref(file);
	return status;
}

int64_t profile_lines_sum(const struct profile *profile)
{
	int64_t sum = 0;
	for (size_t i = 0; i < profile->function_count; i++)
		for (size_t k = 0; k < profile->functions[i].line_count; k++)
			sum += profile->functions[i].lines[k].self_ns;
	return sum;
}
