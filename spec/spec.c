#include "spec/spec.h"

#include <string.h>

#include "base/strbuf.h"
#include "spec/axes.h"

#define DEFAULT_SEED 1
/* Small enough that no batch size of mlp and lenet diverges; with 0.01 lenet at batch 4 does. */
#define DEFAULT_LEARNING_RATE 0.001
#define DEFAULT_MOMENTUM 0.9

static const char *const effort_words[EFFORT_COUNT] = {
	[EFFORT_QUICK] = "quick",
	[EFFORT_DEFAULT] = "default",
	[EFFORT_RIGOROUS] = "rigorous",
};

const char *effort_name(enum effort effort)
{
	return (unsigned)effort < EFFORT_COUNT ? effort_words[effort] : "?";
}

bool effort_parse(const char *word, enum effort *out)
{
	for (int i = 0; word != NULL && i < EFFORT_COUNT; i++) {
		if (strcmp(effort_words[i], word) == 0) {
			*out = (enum effort)i;
			return true;
		}
	}
	return false;
}

void spec_init(struct spec *spec)
{
	*spec = (struct spec){
		.suite = "",
		.summary = "",
		.effort = EFFORT_DEFAULT,
		.warm_up_steps = -1,
		.statistic = "geometric",
		.dropout = true,
		.learning_rate = DEFAULT_LEARNING_RATE,
		.momentum = DEFAULT_MOMENTUM,
		.seed = DEFAULT_SEED,
	};
	arena_init(&spec->arena, 0);
}

void spec_release(struct spec *spec)
{
	if (spec == NULL)
		return;
	arena_release(&spec->arena);
	*spec = (struct spec){.suite = ""};
}

struct spec_list *spec_axis(struct spec *spec, const char *key)
{
#define X(member, name)                                                                            \
	if (strcmp(key, name) == 0)                                                                \
		return &spec->member;
	SPEC_AXES(X)
#undef X
	return NULL;
}

struct spec_list *spec_rule_axis(struct spec_rule *rule, const char *key)
{
#define X(member, name)                                                                            \
	if (strcmp(key, name) == 0)                                                                \
		return &rule->member;
	SPEC_AXES(X)
#undef X
	return NULL;
}

void spec_list_add(struct spec *spec, struct spec_list *list, const char *text, const char *origin)
{
	/* Doubles at powers of two; what is left behind stays in the arena. */
	if ((list->count & (list->count - 1)) == 0) {
		size_t capacity = list->count == 0 ? 1 : list->count * 2;
		struct spec_word *words = arena_array(&spec->arena, capacity, sizeof(*words));

		if (list->count > 0)
			memcpy(words, list->words, list->count * sizeof(*words));
		list->words = words;
	}
	list->words[list->count++] =
		(struct spec_word){.text = arena_strdup(&spec->arena, text), .origin = origin};
}

void spec_complete(struct spec *spec)
{
	static const struct {
		const char *axis, *word;
	} defaults[] = {
		{"frameworks", "all"},	{"networks", "lenet"}, {"devices", "cpu"},
		{"precisions", "fp32"}, {"batches", "64"},     {"stages", "train"},
		{"inputs", "resident"}, {"syncs", "blocks"},   {"optimisers", "momentum"},
	};

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		struct spec_list *list = spec_axis(spec, defaults[i].axis);

		if (list->count == 0)
			spec_list_add(spec, list, defaults[i].word, "default");
	}
}

enum prony_status spec_set_axis(struct spec *spec, const char *axis_key, const char *const *values,
				size_t count, const char *origin, struct error *err)
{
	struct spec_list *axis = spec_axis(spec, axis_key);
	struct spec_list list = {.count = 0};
	bool batches = strcmp(axis_key, "batches") == 0;
	bool all = false;

	if (axis == NULL)
		return error_set(err, PRONY_INTERNAL, "no axis is called %s", axis_key);
	origin = arena_strdup(&spec->arena, origin);
	for (size_t i = 0; i < count; i++) {
		const char *word = values[i];

		for (;;) {
			size_t length = strcspn(word, ",");
			char *text = arena_strndup(&spec->arena, word, length);

			if (length == 0)
				return error_set(err, PRONY_USAGE,
						 "%s: \"%s\" has an empty word: write words "
						 "with single commas between them",
						 origin, values[i]);
			if (!batches)
				spec_list_add(spec, &list, text, origin);
			else if (spec_expand_numbers(spec, text, origin, &list, err) != PRONY_OK)
				return err != NULL ? err->code : PRONY_USAGE;
			all |= strcmp(text, "all") == 0;
			if (word[length] == '\0')
				break;
			word += length + 1;
		}
	}
	*axis = list;
	if (axis == &spec->frameworks)
		spec->frameworks_explicit = list.count > 0 && !all;
	return PRONY_OK;
}

void spec_fix_steps(struct spec *spec, int64_t steps)
{
	spec->steps = steps;
	for (size_t i = 0; i < spec->override_count; i++)
		spec->overrides[i].steps = -1;
}

void spec_fix_warm_up(struct spec *spec, int64_t steps)
{
	spec->warm_up_steps = steps;
	for (size_t i = 0; i < spec->override_count; i++)
		spec->overrides[i].warm_up_steps = -1;
}

static void canonical_list(struct strbuf *out, const char *key, const struct spec_list *list)
{
	if (list->count == 0)
		return;
	strbuf_puts(out, key);
	strbuf_putc(out, '=');
	for (size_t i = 0; i < list->count; i++)
		strbuf_printf(out, "%s%s", i == 0 ? "" : ",", list->words[i].text);
	strbuf_putc(out, '\n');
}

static void canonical_rule(struct strbuf *out, const char *kind, const struct spec_rule *rule)
{
	strbuf_printf(out, "[%s]\n", kind);
#define X(member, key) canonical_list(out, key, &rule->member);
	SPEC_AXES(X)
#undef X
	strbuf_printf(out, "batch=%lld steps=%lld warm-up-steps=%lld learning-rate=%.17g\n",
		      (long long)rule->batch, (long long)rule->steps,
		      (long long)rule->warm_up_steps, rule->learning_rate);
}

char *spec_canonical(const struct spec *spec)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	strbuf_printf(&out, "suite=%s\n", spec->suite);
#define X(member, key) canonical_list(&out, key, &spec->member);
	SPEC_AXES(X)
#undef X
	strbuf_printf(&out, "effort=%s\nsteps=%lld\nwarm-up-steps=%lld\nrepeat=%d\n",
		      effort_name(spec->effort), (long long)spec->steps,
		      (long long)spec->warm_up_steps, spec->repeat);
	strbuf_printf(&out, "statistic=%s\ndropout=%s\nlearning-rate=%.17g\nmomentum=%.17g\n",
		      spec->statistic, spec->dropout ? "on" : "off", spec->learning_rate,
		      spec->momentum);
	strbuf_printf(&out, "weight-decay=%.17g\nseed=%llu\n", spec->weight_decay,
		      (unsigned long long)spec->seed);
	for (size_t i = 0; i < spec->exclude_count; i++)
		canonical_rule(&out, "exclude", &spec->excludes[i]);
	for (size_t i = 0; i < spec->override_count; i++)
		canonical_rule(&out, "override", &spec->overrides[i]);
	return strbuf_take(&out);
}
