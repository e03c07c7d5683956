/* Writes the verdict of the gate as text and JSON. */
#include "parity/gate_verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

void gate_check_text(const struct gate_check *check, char text[GATE_CHECK_BYTES])
{
	char place[32] = "", figure[128];

	if (check->step >= 0)
		snprintf(place, sizeof(place), " of step %d", check->step + 1);
	if (check->reason)
		snprintf(figure, sizeof(figure), ": %.120s", check->reason);
	else
		snprintf(figure, sizeof(figure),
			 " differs from the reference by %.3g, allowed %.3g", check->value,
			 check->bound);
	snprintf(text, GATE_CHECK_BYTES, "%.40s%s%s%.160s%s", check->what, place,
		 check->tensor ? " of " : "", check->tensor ? check->tensor : "", figure);
}

json_t *gate_check_to_json(const struct gate_check *check)
{
	json_t *row = json_object();

	json_object_set_new(row, "what", json_string(check->what));
	if (check->step >= 0)
		json_object_set_new(row, "step", json_integer(check->step));
	if (check->tensor)
		json_object_set_new(row, "tensor", json_string(check->tensor));
	json_object_set_new(row, "value", json_number(check->value));
	json_object_set_new(row, "bound", json_number(check->bound));
	json_object_set_new(row, "passed", json_boolean(check->passed));
	if (check->ratio != 0)
		json_object_set_new(row, "ratio", json_real(check->ratio));
	if (check->reason)
		json_object_set_new(row, "reason", json_string(check->reason));
	return row;
}

static json_t *count_or_null(int64_t count)
{
	return count < 0 ? json_null() : json_integer(count);
}

/* Returns true for the figures that show work: logits before any update, and the gradient or change
 * of each tensor that has one. */
static bool shows_work(const struct gate_check *check)
{
	if (check->vanished)
		return false;
	return (strcmp(check->what, "logits") == 0 && check->step == 0) ||
	       strcmp(check->what, "change") == 0 || strcmp(check->what, "gradient") == 0;
}

/* Counts the figures that show work and have a bound of 1 or more, which show nothing: zeros, or a
 * tensor that was never updated, are off by 1 and would pass. NULL if there is none. */
static json_t *coarse(const struct gate_verdict *verdict)
{
	int figures = 0, all = 0;

	for (size_t i = 0; i < verdict->count; i++) {
		if (!shows_work(&verdict->checks[i]))
			continue;
		all++;
		figures += verdict->checks[i].bound >= 1;
	}
	return figures > 0 ? json_pack("{s:i, s:i}", "figures", figures, "of", all) : NULL;
}

json_t *gate_verdict_to_json(const struct gate_verdict *verdict)
{
	json_t *out = json_object(), *checks = json_array(), *vague = coarse(verdict);

	for (size_t i = 0; i < verdict->count; i++)
		json_array_append_new(checks, gate_check_to_json(&verdict->checks[i]));
	json_object_set_new(out, "passed", json_boolean(verdict->passed));
	json_object_set_new(out, "checks", checks);
	json_object_set_new(out, "parameters", count_or_null(verdict->parameters));
	json_object_set_new(out, "macs", count_or_null(verdict->macs));
	json_object_set_new(out, "gate_batch", json_integer(verdict->batch));
	if (verdict->tokens > 0)
		json_object_set_new(out, "gate_tokens", json_integer(verdict->tokens));
	if (!isnan(verdict->learning_rate))
		json_object_set_new(out, "learning_rate", json_real(verdict->learning_rate));
	if (verdict->clip_norm > 0)
		json_object_set_new(out, "clip_norm", json_real(verdict->clip_norm));
	json_object_set_new(out, "kinks", json_integer(verdict->kinks));
	json_object_set_new(out, "turned", json_integer(verdict->turned));
	if (verdict->precision_proved)
		json_object_set_new(out, "precision_proved",
				    json_string(verdict->precision_proved));
	if (verdict->rmsprop_epsilon)
		json_object_set_new(out, "rmsprop_epsilon", json_string(verdict->rmsprop_epsilon));
	if (verdict->running_variance)
		json_object_set_new(out, "running_variance",
				    json_string(verdict->running_variance));
	if (verdict->batch_statistics)
		json_object_set_new(out, "batch_statistics",
				    json_string(verdict->batch_statistics));
	json_object_set(out, "worst", json_array_get(checks, verdict->worst));
	if (vague)
		json_object_set_new(out, "coarse", vague);
	return out;
}
