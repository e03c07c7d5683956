#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "profile/write.h"
#include "report/text.h"

/* Makes a framework's text a single line without terminal control characters. */
static void add_text(const char *text, struct strbuf *out)
{
	char *clean = text_line(text);
	text_csv(clean, out);
	free(clean);
}

static void begin_row(const struct profile *profile, const char *kind, const char *name,
		      const char *operator_, struct strbuf *out)
{
	strbuf_printf(out, "%s,", kind);
	text_csv(profile->cell->cell.framework, out);
	strbuf_putc(out, ',');
	add_text(name, out);
	strbuf_putc(out, ',');
	add_text(operator_, out);
}

static void add_layers(const struct profile *profile, struct strbuf *out)
{
	double steps = (double)profile->layer_steps;
	for (size_t i = 0; i < profile->layer_count; i++) {
		const struct profile_layer *layer = &profile->layers[i];
		double ns = profile_layer_ns(layer) / steps;
		begin_row(profile, "layer", layer->name, layer->kind, out);
		strbuf_printf(out, ",%g,%.1f,%.1f,%.1f,%.1f,%.6f,,,\n",
			      (double)layer->calls / steps, layer->forward_ns / steps,
			      layer->backward_ns / steps, layer->other_ns / steps, ns,
			      ns / profile->layer_step_ns);
	}
}

static void add_device(const struct profile *profile, struct strbuf *out)
{
	double steps = (double)profile->layer_steps;
	if (!profile->has_device)
		return;
	for (int i = PROFILE_DEVICE_NONE + 1; i < PROFILE_DEVICE_COUNT; i++) {
		const struct profile_device_sum *sum = &profile->device[i];
		begin_row(profile, "gpu", profile_device_word((enum profile_device)i), "", out);
		strbuf_printf(out, ",%g,,,,%.1f,%.6f,,,\n", (double)sum->calls / steps,
			      sum->ns / steps, sum->ns / steps / profile->layer_step_ns);
	}
	begin_row(profile, "gpu", "busy", "", out);
	strbuf_printf(out, ",,,,,%.1f,%.6f,,,\n", profile->device_ns,
		      profile->device_ns / profile->layer_step_ns);
}

static void add_lines(const struct profile *profile, struct strbuf *out)
{
	double steps = (double)profile->line_steps;
	for (size_t i = 0; i < profile->function_count; i++) {
		const struct profile_function *function = &profile->functions[i];
		for (size_t k = 0; k < function->line_count; k++) {
			const struct profile_line *line = &function->lines[k];
			begin_row(profile, "line", function->name, "", out);
			strbuf_printf(out, ",%g,,,%.1f,%.1f,%.6f,", (double)line->hits / steps,
				      (double)line->self_ns / steps, (double)line->ns / steps,
				      (double)line->ns / (double)profile->lines_total_ns);
			add_text(function->file, out);
			strbuf_printf(out, ",%" PRId64 ",", line->line);
			add_text(line->text, out);
			strbuf_putc(out, '\n');
		}
	}
}

static void add_profile(const struct profile *profile, struct strbuf *out)
{
	for (int i = 0; i < PROFILE_PHASE_COUNT; i++) {
		const struct profile_phase *phase = &profile->phases[i];
		if (phase->ns < 0)
			continue;
		begin_row(profile, "phase", profile_phase_name(i), "", out);
		strbuf_printf(out, ",%" PRId64 ",,,,%" PRId64 ",,,,\n", phase->steps, phase->ns);
	}
	if (profile->step_ns > 0) {
		begin_row(profile, "step", "nothing looked at", "", out);
		strbuf_printf(out, ",1,,,,%.1f,,,,\n", profile->step_ns);
	}
	if (profile->has_layers) {
		begin_row(profile, "step", "layers timed", "", out);
		strbuf_printf(out, ",1,,,,%.1f,1,,,\n", profile->layer_step_ns);
	}
	add_layers(profile, out);
	add_device(profile, out);
	add_lines(profile, out);
	for (size_t i = 0; i < profile->core_count; i++) {
		begin_row(profile, "core", profile->core_names[i], "", out);
		if (isfinite(profile->cores[i]))
			strbuf_printf(out, ",,,,,,%.4f,,,\n", profile->cores[i]);
		else
			strbuf_puts(out, ",,,,,,,,,\n");
	}
}

void profile_write_csv(const struct profile *profiles, size_t count, struct strbuf *out)
{
	strbuf_puts(out, "kind,framework,name,operator,calls,forward_ns,backward_ns,other_ns,ns,"
			 "share,file,line,text\n");
	for (size_t i = 0; i < count; i++)
		add_profile(&profiles[i], out);
}
