/* The names of readouts. */
#include "adapters/adapter.h"

#include <string.h>

static const char *const readout_words[READ_COUNT] = {
	[READ_LOGITS] = "logits",	[READ_LOSS] = "loss",	[READ_WEIGHTS] = "weights",
	[READ_GRADIENTS] = "gradients", [READ_STATE] = "state", [READ_OUTPUTS] = "outputs",
};

const char *readout_name(enum readout what)
{
	return (unsigned)what < READ_COUNT ? readout_words[what] : "?";
}

bool readout_parse(const char *word, enum readout *out)
{
	for (int what = 0; word && what < READ_COUNT; what++) {
		if (strcmp(readout_words[what], word) == 0) {
			*out = (enum readout)what;
			return true;
		}
	}
	return false;
}
