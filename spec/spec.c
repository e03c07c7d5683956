#include "spec/spec.h"

#include <string.h>

#include "base/strbuf.h"
#include "spec/spec_internal.h"

#define DEFAULT_SEED 1
/* docs/semantics.md, "Published suites": a hundredth of the work, and each process still has steps
 * other than the first and a single one. */
#define SCREENING_STEPS 3
#define SCREENING_WARM_UP 1
#define SCREENING_PROCESSES 3
#define SCREENING_SAMPLES 128
#define SCREENING_EPOCHS 2
#define SCREENING_DIVISOR 8
/* docs/accuracy.md: the interval of a median needs six, and six find other curves among twenty. */
#define UNTIL_SEEDS 20
#define UNTIL_SEEDS_MIN 6

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

int spec_other_seeds(const struct spec *spec)
{
	int part = spec->repeat * 3 / 10, few = part > UNTIL_SEEDS_MIN ? part : UNTIL_SEEDS_MIN;

	return few < spec->repeat ? few : spec->repeat;
}

void spec_init(struct spec *spec)
{
	*spec = (struct spec){
		.suite = "",
		.summary = "",
		.effort = EFFORT_DEFAULT,
		.warm_up_steps = -1,
		.seed = DEFAULT_SEED,
		.origin = "",
		.batch_divisor = 1,
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

void spec_complete(struct spec *spec)
{
	if (spec->until.goal && spec->repeat <= 0)
		spec->repeat = UNTIL_SEEDS;
	/* A training needs all of the data set. */
	if (spec->until.goal && spec->axes[AXIS_INPUT].count == 0)
		spec_list_add(spec, &spec->axes[AXIS_INPUT], input_mode_name(INPUT_STREAM),
			      "default");
	for (int id = 0; id < AXIS_COUNT; id++)
		if (spec->axes[id].count == 0 && *axes[id].initial)
			spec_list_add(spec, &spec->axes[id], axes[id].initial, "default");
}

enum prony_status spec_set_axis(struct spec *spec, enum axis_id axis, const char *const *values,
				size_t count, const char *origin, struct error *err)
{
	struct spec_list list = {.count = 0};
	enum prony_status status = PRONY_OK;
	bool all = false;

	origin = arena_strdup(&spec->arena, origin);
	for (size_t i = 0; i < count && status == PRONY_OK; i++)
		status = spec_list_add_words(spec, axis, values[i], origin, &list, err);
	if (status != PRONY_OK)
		return status;
	for (size_t i = 0; i < list.count; i++)
		all |= strcmp(list.words[i].text, "all") == 0;
	spec->axes[axis] = list;
	if (axis == AXIS_FRAMEWORK)
		spec->cells_explicit = list.count > 0 && !all;
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

void spec_screen(struct spec *spec)
{
	if (spec->samples > 0) {
		spec->samples = SCREENING_SAMPLES;
		spec->epochs = SCREENING_EPOCHS;
	} else {
		spec_fix_steps(spec, SCREENING_STEPS);
		spec_fix_warm_up(spec, SCREENING_WARM_UP);
	}
	spec->repeat = SCREENING_PROCESSES;
	spec->batch_divisor = SCREENING_DIVISOR;
}

bool spec_screens(const struct spec *spec)
{
	return spec->batch_divisor > 1;
}

int64_t spec_screened_batch(const struct spec *spec, int64_t batch)
{
	int64_t least = batch < 2 ? batch : 2, part = batch / spec->batch_divisor;

	return !spec_screens(spec) ? batch : part > least ? part : least;
}

static const char **copy_texts(struct spec *spec, const char *const *texts, size_t count)
{
	const char **copy = arena_array(&spec->arena, count, sizeof(*copy));

	for (size_t i = 0; i < count; i++)
		copy[i] = arena_strdup(&spec->arena, texts[i]);
	return copy;
}

void spec_set_shapes(struct spec *spec, const char *const *texts, size_t count)
{
	spec->shapes = copy_texts(spec, texts, count);
	spec->shape_count = count;
}

void spec_set_fills(struct spec *spec, const char *const *texts, size_t count)
{
	spec->fills = copy_texts(spec, texts, count);
	spec->fill_count = count;
}

/* Prints real numbers with all digits, as the specs of the first stores have them. */
static void canonical_word(struct strbuf *out, enum axis_id id, const char *word)
{
	double number;

	if (axes[id].type == AXIS_REAL && axis_parse(&axes[id], word, &number))
		strbuf_printf(out, "%.17g", number);
	else
		strbuf_puts(out, word);
}

static void canonical_list(struct strbuf *out, enum axis_id id, const char *key,
			   const struct spec_list *list)
{
	bool initial = list->count == 1 && strcmp(list->words[0].text, axes[id].initial) == 0;

	if (list->count == 0 || (axes[id].texts == AXIS_LATER && initial))
		return;
	strbuf_puts(out, key);
	strbuf_putc(out, '=');
	for (size_t i = 0; i < list->count; i++) {
		strbuf_puts(out, i == 0 ? "" : ",");
		canonical_word(out, id, list->words[i].text);
	}
	strbuf_putc(out, '\n');
}

static void canonical_value(struct strbuf *out, const struct spec_rule *rule, enum axis_id id)
{
	strbuf_printf(out, "%s=", axes[id].singular);
	canonical_word(out, id, rule->values[id] ? rule->values[id] : "-1");
}

static void canonical_rule(struct strbuf *out, const char *kind, const struct spec_rule *rule)
{
	strbuf_printf(out, "[%s]\n", kind);
	for (int id = 0; id < AXIS_COUNT; id++)
		canonical_list(out, (enum axis_id)id, axes[id].plural, &rule->axes[id]);
	canonical_value(out, rule, AXIS_BATCH);
	strbuf_printf(out, " steps=%lld warm-up-steps=%lld ", (long long)rule->steps,
		      (long long)rule->warm_up_steps);
	canonical_value(out, rule, AXIS_LEARNING_RATE);
	for (int id = 0; id < AXIS_COUNT; id++) {
		if (!rule->values[id] || id == AXIS_BATCH || id == AXIS_LEARNING_RATE)
			continue;
		strbuf_putc(out, ' ');
		canonical_value(out, rule, (enum axis_id)id);
	}
	strbuf_putc(out, '\n');
}

/* Fields that came with the published suites. */
static void canonical_origin(struct strbuf *out, const struct spec *spec)
{
	const struct spec_list *instead = &spec->precisions_instead;

	if (*spec->origin)
		strbuf_printf(out, "origin=%s\n", spec->origin);
	if (spec->loss_every > 0)
		strbuf_printf(out, "loss-every=%lld\n", (long long)spec->loss_every);
	if (spec->until.goal) {
		char text[UNTIL_BYTES];
		until_text(&spec->until, text);
		strbuf_printf(out, "until=%s\nevaluate-every=%lld\nmax-steps=%lld\n", text,
			      (long long)spec->until.every, (long long)spec->until.most);
	}
	if (spec->samples > 0)
		strbuf_printf(out, "samples=%lld\nepochs=%lld\n", (long long)spec->samples,
			      (long long)spec->epochs);
	if (spec_screens(spec))
		strbuf_printf(out, "batch-divisor=%lld\n", (long long)spec->batch_divisor);
	if (spec->batch_per_rank)
		strbuf_puts(out, "batch-of=rank\n");
	/* A run that was started with whole epochs in every loop cannot be resumed as this one. */
	if (spec_screens(spec) && spec->samples > 0)
		strbuf_puts(out, "epochs-of=fit\n");
	for (size_t i = 0; i < instead->count; i++)
		strbuf_printf(out, "%s%s%s",
			      i ? "," : "precisions-instead=", instead->words[i].text,
			      i + 1 < instead->count ? "" : "\n");
}

char *spec_canonical(const struct spec *spec)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	strbuf_printf(&out, "suite=%s\n", spec->suite);
	for (int id = 0; id < AXIS_COUNT; id++)
		if (!axes[id].settable || id == AXIS_BATCH)
			canonical_list(&out, (enum axis_id)id, axes[id].plural, &spec->axes[id]);
	/* "statistic" has one value; it stays so that stored specs keep their text. */
	strbuf_printf(&out,
		      "effort=%s\nsteps=%lld\nwarm-up-steps=%lld\nrepeat=%d\n"
		      "statistic=geometric\n",
		      effort_name(spec->effort), (long long)spec->steps,
		      (long long)spec->warm_up_steps, spec->repeat);
	for (int id = 0; id < AXIS_COUNT; id++)
		if (axes[id].settable && id != AXIS_BATCH)
			canonical_list(&out, (enum axis_id)id, axes[id].singular, &spec->axes[id]);
	strbuf_printf(&out, "seed=%llu\n", (unsigned long long)spec->seed);
	/* Written only when it is asked for, so that stored specs keep their text. */
	if (spec->gate_only)
		strbuf_puts(&out, "gate-only\n");
	canonical_origin(&out, spec);
	for (size_t i = 0; i < spec->shape_count; i++)
		strbuf_printf(&out, "shape=%s\n", spec->shapes[i]);
	for (size_t i = 0; i < spec->fill_count; i++)
		strbuf_printf(&out, "fill=%s\n", spec->fills[i]);
	for (size_t i = 0; i < spec->exclude_count; i++)
		canonical_rule(&out, "exclude", &spec->excludes[i]);
	for (size_t i = 0; i < spec->override_count; i++)
		canonical_rule(&out, "override", &spec->overrides[i]);
	return strbuf_take(&out);
}
