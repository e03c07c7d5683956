/* What the actions of `prony data` share. */
#ifndef PRONY_CLI_DATA_H
#define PRONY_CLI_DATA_H

#include <stddef.h>

#include "base/error.h"
#include "datasets/dataset.h"

struct data_options {
	const char *data, *format;
	const char *to, *output; /* of convert */
	long long size;
};

/* What an action works on. */
struct data_request {
	const struct data_options *options;
	const char **names;
	size_t count;
};

/* NULL, and a message with the nearest name. */
const struct dataset *data_find(const char *name, struct error *err);

/* `prony data convert`; the exit code. */
int data_convert_action(const struct data_request *request);

#endif
