#include "cell/until.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const goals[] = {[GOAL_ACCURACY] = "accuracy=", [GOAL_LOSS] = "loss="};

bool until_parse(const char *text, struct until *out)
{
	for (int goal = GOAL_ACCURACY; goal <= GOAL_LOSS; goal++) {
		size_t length = strlen(goals[goal]);
		char again[UNTIL_BYTES], *end;

		if (strncmp(text, goals[goal], length) != 0)
			continue;
		const char *number = text + length;
		struct until read = {.goal = (enum goal)goal, .target = strtod(number, &end)};
		if (end == number || *end || strspn(number, "0123456789.") != strlen(number) ||
		    !(read.target > 0) || (goal == GOAL_ACCURACY && read.target > 1))
			return false;
		/* It is stored as a text of that size. */
		until_text(&read, again);
		if (strtod(again + length, NULL) != read.target)
			return false;
		out->goal = read.goal;
		out->target = read.target;
		return true;
	}
	return false;
}

void until_text(const struct until *until, char out[UNTIL_BYTES])
{
	snprintf(out, UNTIL_BYTES, "%s%.4g", goals[until->goal], until->target);
}

double until_value(const struct until *until, double accuracy, double loss)
{
	return until->goal == GOAL_ACCURACY ? accuracy : loss;
}

bool until_reached(const struct until *until, double value)
{
	return until->goal == GOAL_ACCURACY ? value >= until->target : value <= until->target;
}
