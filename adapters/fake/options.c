/* Parses the fake adapter's options. */
#include "adapters/fake/options_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

#define OPTION_BYTES 64
#define NANOSECONDS_PER_US 1000
#define NANOSECONDS_PER_MS 1000000

enum fake_option_kind {
	KIND_FAULT,  /* NAME, NAME-at=PLACE; also NAME=N if `max` is set */
	KIND_FLAG,   /* NAME: the member becomes 1 */
	KIND_INT,    /* NAME=N: the member becomes N * unit */
	KIND_REAL,   /* NAME=X */
	KIND_CHOICE, /* NAME or NAME=WORD: the member becomes 1 + the word's number */
};

struct fake_option {
	const char *name, *argument, *doc;
	enum fake_option_kind kind;
	size_t offset;
	int64_t min, max, unit;
	enum fake_fault fault;
	unsigned places;
	const char *const choices[5]; /* NULL-terminated; the first is the default */
};

#define PLACE(place) (1u << (place))
#define MEMBER(member) offsetof(struct fake_options, member)
#define FAULT(word, id, default_places, text)                                                      \
	{                                                                                          \
		.name = (word), .kind = KIND_FAULT, .fault = (id), .places = (default_places),     \
		.doc = (text)                                                                      \
	}
#define FAULT_WITH_NUMBER(word, id, default_places, metavar, member, top, text)                    \
	{                                                                                          \
		.name = (word), .argument = (metavar), .kind = KIND_FAULT, .fault = (id),          \
		.places = (default_places), .offset = MEMBER(member), .max = (top), .unit = 1,     \
		.doc = (text)                                                                      \
	}
#define FLAG(word, member, text)                                                                   \
	{                                                                                          \
		.name = (word), .kind = KIND_FLAG, .offset = MEMBER(member), .doc = (text)         \
	}
#define NUMBER(word, metavar, member, top, scale, text)                                            \
	{                                                                                          \
		.name = (word), .argument = (metavar), .kind = KIND_INT, .offset = MEMBER(member), \
		.max = (top), .unit = (scale), .doc = (text)                                       \
	}

static const struct fake_option rows[] = {
	NUMBER("delay-us", "N", delay_ns, 60000000, NANOSECONDS_PER_US,
	       "each step takes N us longer than its arithmetic (it spins)"),
	NUMBER("delay-ms", "N", delay_ns, 60000, NANOSECONDS_PER_MS, "the same in milliseconds"),
	NUMBER("step-us", "N", step_ns, 60000000, NANOSECONDS_PER_US,
	       "each step takes N us (more if its arithmetic takes longer), so that the result is "
	       "known"),
	NUMBER("cold-ms", "N", cold_ns, 60000, NANOSECONDS_PER_MS,
	       "the first step takes N ms longer, like one that compiles"),
	FAULT("crash", FAULT_CRASH, PLACE(AT_STEP), "ends by SIGSEGV"),
	FAULT_WITH_NUMBER("exit", FAULT_EXIT, PLACE(AT_STEP), "N", exit_code, 255,
			  "ends with exit code N (0 when left out) without a reply"),
	FAULT("hang", FAULT_HANG, PLACE(AT_STEP), "never replies"),
	FAULT("grandchild", FAULT_GRANDCHILD, PLACE(AT_OPEN),
	      "leaves a grandchild in its own session that ignores SIGTERM, SIGINT and SIGHUP"),
	FAULT_WITH_NUMBER("oom", FAULT_OOM, PLACE(AT_BUILD), "MIB", oom_mib, 1 << 20,
			  "allocates and writes memory until it is killed; with MIB it stops there "
			  "and sends itself SIGKILL"),
	FAULT("oom-reply", FAULT_OOM_REPLY, PLACE(AT_BUILD), "replies with status out-of-memory"),
	FAULT("fail", FAULT_FAIL, PLACE(AT_STEP), "replies with status crashed"),
	FAULT("garbage-stdout", FAULT_GARBAGE_STDOUT,
	      PLACE(AT_HELLO) | PLACE(AT_OPEN) | PLACE(AT_BUILD) | PLACE(AT_FEED) | PLACE(AT_CLOSE),
	      "floods standard output and error with binary data and lines that look like replies"),
	FAULT("garbage-reply", FAULT_GARBAGE_REPLY, PLACE(AT_STEP),
	      "sends bytes that are not JSON before the reply"),
	FAULT("long-line", FAULT_LONG_LINE, PLACE(AT_STEP),
	      "sends 2 MiB without a newline before the reply"),
	FAULT("half-reply", FAULT_HALF_REPLY, PLACE(AT_STEP),
	      "sends the first half of a reply and ends with exit code 0"),
	FAULT("wrong-id", FAULT_WRONG_ID, PLACE(AT_STEP),
	      "replies to a request that was never sent"),
	NUMBER("after", "N", after, 1000000000, 1, "faults in a step happen after N steps"),
	FLAG("gate-only", gate_only, "faults happen only in the parity gate (at most 3 slots)"),
	FLAG("timed-only", timed_only, "faults happen only in timed processes (more than 3 slots)"),
	NUMBER("rank", "N", only_rank, 63, 1,
	       "faults, delays and mutants are those of rank N; the other ranks are correct"),
	{.name = "reduce",
	 .argument = "none|sum|some|other",
	 .kind = KIND_CHOICE,
	 .offset = MEMBER(reduce),
	 .choices = {"none", "sum", "some", "other"},
	 .doc = "mutant: gradients are not averaged over the ranks, summed, averaged except for "
		"the last parameter's, or averaged while rank 1 changes its last parameter"},
	FLAG("missing", missing, "reports that its library is not installed"),
	FLAG("unsupported", unsupported, "supports nothing"),
	{.name = "wrong-precision",
	 .argument = "PRECISION",
	 .kind = KIND_CHOICE,
	 .offset = MEMBER(wrong_precision),
	 .choices = {"bf16", "fp16", "tf32", "fp32"},
	 .doc = "reports this precision as the effective one"},
	FLAG("wrong-threads", wrong_threads, "reports one thread more than it uses"),
	FLAG("wrong-logits", wrong_logits, "one logit is off by 1"),
	{.name = "nan-loss",
	 .argument = "first|last",
	 .kind = KIND_CHOICE,
	 .offset = MEMBER(nan_loss),
	 .choices = {"first", "last"},
	 .doc = "the loss is NaN from the first step on, or (last) from the fourth on, which the "
		"gate does not reach"},
	{.name = "impossible-time",
	 .argument = "long|before",
	 .kind = KIND_CHOICE,
	 .offset = MEMBER(impossible_time),
	 .choices = {"long", "before"},
	 .doc = "reports a run that took longer than the time that passed, or that began before "
		"its request"},
	FLAG("backwards-time", backwards_time, "each step record ends before it begins"),
	FLAG("no-momentum", no_momentum, "mutant: momentum is ignored"),
	{.name = "lr-scale",
	 .argument = "X",
	 .kind = KIND_REAL,
	 .offset = MEMBER(lr_scale),
	 .doc = "mutant: the learning rate times X, for example 1.01"},
	FLAG("no-bias-gradient", no_bias_gradient, "mutant: biases have no gradient"),
	FLAG("clips-each", clips_each,
	     "mutant: each gradient is clipped by its own norm instead of that of all"),
	FLAG("tf32", tf32, "mutant: products with 10 bits of mantissa, reported as fp32"),
	FLAG("frozen-layer", frozen_layer, "mutant: the first layer is not updated"),
	FLAG("swapped-channels", swapped_channels,
	     "mutant: channels 0 and 1 of the first weight are swapped, and swapped back when "
	     "read"),
	{.name = "each-maximum",
	 .argument = "said|unsaid|claimed",
	 .kind = KIND_CHOICE,
	 .offset = MEMBER(each_maximum),
	 .choices = {"said", "unsaid", "claimed"},
	 .doc = "a max-pool's gradient goes to each of several equal maxima; its settings state "
		"this (said) or not (unsaid); claimed: the settings state it, but the gradient "
		"goes to the first"},
};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

static const char *const place_words[PLACE_COUNT] = {
	[AT_HELLO] = "hello", [AT_SUPPORTS] = "supports", [AT_OPEN] = "open", [AT_BUILD] = "build",
	[AT_FEED] = "feed",   [AT_STEP] = "step",	  [AT_READ] = "read", [AT_CLOSE] = "close",
};

enum fake_place fake_place_parse(const char *word)
{
	if (strcmp(word, "run") == 0)
		return AT_STEP;
	for (int place = 0; place < PLACE_COUNT; place++)
		if (strcmp(place_words[place], word) == 0)
			return (enum fake_place)place;
	return PLACE_COUNT;
}

static const struct fake_option *find_row(const char *name, size_t length)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
			return &rows[i];
	return NULL;
}

static enum prony_status unknown_option(const char *text, size_t length, struct error *err)
{
	const char *names[ROW_COUNT];
	char name[OPTION_BYTES] = "";

	memcpy(name, text, length);
	for (size_t i = 0; i < ROW_COUNT; i++)
		names[i] = rows[i].name;
	const char *nearest = word_nearest(name, names, ROW_COUNT);

	if (nearest)
		return error_set(err, PRONY_UNSUPPORTED,
				 "fake has no option \"%s\"; did you mean %s?", name, nearest);
	return error_set(err, PRONY_UNSUPPORTED, "fake has no option \"%s\"", name);
}

static int64_t *int_member(struct fake_options *options, const struct fake_option *row)
{
	return (int64_t *)((char *)options + row->offset);
}

static enum prony_status parse_int(const struct fake_option *row, const char *value,
				   struct fake_options *options, struct error *err)
{
	char *end;

	errno = 0;
	long long number = value ? strtoll(value, &end, 10) : -1;
	if (!value || end == value || *end || errno || number < row->min || number > row->max)
		return error_set(err, PRONY_UNSUPPORTED,
				 "fake: %s takes a number from %lld to %lld", row->name,
				 (long long)row->min, (long long)row->max);
	*int_member(options, row) = number * row->unit;
	return PRONY_OK;
}

static enum prony_status parse_real(const struct fake_option *row, const char *value,
				    struct fake_options *options, struct error *err)
{
	char *end;
	double number = value ? strtod(value, &end) : NAN;

	if (!value || end == value || *end || !isfinite(number))
		return error_set(err, PRONY_UNSUPPORTED, "fake: %s takes a number", row->name);
	*(double *)((char *)options + row->offset) = number;
	return PRONY_OK;
}

static enum prony_status parse_choice(const struct fake_option *row, const char *value,
				      struct fake_options *options, struct error *err)
{
	for (int i = 0; row->choices[i]; i++) {
		if (value && strcmp(row->choices[i], value) != 0)
			continue;
		*int_member(options, row) = i + 1;
		return PRONY_OK;
	}
	return error_set(err, PRONY_UNSUPPORTED, "fake: %s takes %s: %s", row->name, row->argument,
			 row->doc);
}

/* Parses one option, terminated, "NAME" or "NAME=VALUE". */
static enum prony_status parse_one(const char *text, struct fake_options *options,
				   struct error *err)
{
	size_t length = strcspn(text, "=");
	const char *value = text[length] ? text + length + 1 : NULL;
	const struct fake_option *row = find_row(text, length);
	bool is_place = false;

	if (!row && length > 3 && memcmp(text + length - 3, "-at", 3) == 0) {
		row = find_row(text, length - 3);
		is_place = row && row->kind == KIND_FAULT;
	}
	if (!row || (!is_place && strlen(row->name) != length))
		return unknown_option(text, length, err);
	if (row->kind == KIND_INT)
		return parse_int(row, value, options, err);
	if (row->kind == KIND_REAL)
		return parse_real(row, value, options, err);
	if (row->kind == KIND_CHOICE)
		return parse_choice(row, value, options, err);
	if (value && !is_place && row->max == 0)
		return error_set(err, PRONY_UNSUPPORTED, "fake: %s takes no value", row->name);
	if (row->kind == KIND_FLAG) {
		*int_member(options, row) = 1;
		return PRONY_OK;
	}
	options->faults |= 1u << row->fault;
	if (!is_place)
		return value ? parse_int(row, value, options, err) : PRONY_OK;
	enum fake_place place = value ? fake_place_parse(value) : PLACE_COUNT;
	if (place == PLACE_COUNT)
		return error_set(
			err, PRONY_UNSUPPORTED,
			"fake: %s-at takes hello, supports, open, build, feed, step, read or close",
			row->name);
	options->places[row->fault] |= PLACE(place);
	return PRONY_OK;
}

enum prony_status fake_options_parse(const char *text, struct fake_options *options,
				     struct error *err)
{
	struct fake_options parsed = *options;

	while (text && *text) {
		char one[OPTION_BYTES] = "";
		size_t length = strcspn(text, ",+");

		if (length >= sizeof one)
			return error_set(err, PRONY_UNSUPPORTED,
					 "fake: the option \"%.20s...\" is too long", text);
		memcpy(one, text, length);
		enum prony_status status = length > 0 ? parse_one(one, &parsed, err) : PRONY_OK;
		if (status != PRONY_OK)
			return status;
		text += length + (text[length] != '\0');
	}
	*options = parsed;
	return PRONY_OK;
}

bool fake_options_strike(const struct fake_options *options, enum fake_fault fault,
			 enum fake_place place)
{
	unsigned places = options->places[fault];

	if (!(options->faults & 1u << fault))
		return false;
	for (size_t i = 0; i < ROW_COUNT && places == 0; i++)
		if (rows[i].kind == KIND_FAULT && rows[i].fault == fault)
			places = rows[i].places;
	return places & PLACE(place);
}
