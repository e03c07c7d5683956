/* Declarations shared by the actions of `prony data`. */
#ifndef PRONY_CLI_DATA_H
#define PRONY_CLI_DATA_H

#include <stddef.h>

#include "base/error.h"
#include "datasets/dataset.h"

struct data_options {
	const char *data, *format;
	const char *to, *output; /* for convert */
	long long size;
};

/* The arguments of an action. */
struct data_request {
	const struct data_options *options;
	const char **names;
	size_t count;
};

/* NULL, with a message that suggests the nearest name. */
const struct dataset *data_find(const char *name, struct error *err);

/* `prony data convert`; returns the exit code. */
int data_convert_action(const struct data_request *request);

#endif
