/* The end of a training that runs until an evaluation reaches a target (`--until`). */
#ifndef PRONY_CELL_UNTIL_H
#define PRONY_CELL_UNTIL_H

#include <stdbool.h>
#include <stdint.h>

enum goal { GOAL_NONE, GOAL_ACCURACY, GOAL_LOSS };

struct until {
	enum goal goal; /* GOAL_NONE: a training of a fixed length, or no training */
	double target;	/* the least accuracy, a share, or the greatest loss */
	int64_t every;	/* steps between two evaluations; 0 = a quarter of an epoch */
	int64_t most;	/* steps of a training that does not reach it; 0 = 20 epochs */
};

#define UNTIL_NEEDS                                                                                \
	"accuracy=A with A above 0 and up to 1, or loss=L with L above 0, of at most 4 digits"
#define UNTIL_EXAMPLE "accuracy=0.99"

/* Parses "accuracy=0.99" or "loss=0.05" into goal and target. False, and nothing set, if it is
 * neither. */
bool until_parse(const char *text, struct until *out);

/* Writes the same text. */
enum { UNTIL_BYTES = 16 };
void until_text(const struct until *until, char out[UNTIL_BYTES]);

/* The figure that the target is about. */
double until_value(const struct until *until, double accuracy, double loss);
bool until_reached(const struct until *until, double value);

#endif
