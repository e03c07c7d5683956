#include "graph/operators.h"

#include <assert.h>
#include <string.h>

static const char *const names[OP_COUNT] = {
#define X(id, text) [OP_##id] = text,
	PRONY_OPERATORS(X)
#undef X
};

const char *operator_name(enum op op)
{
	assert((unsigned)op < OP_COUNT);
	return names[op];
}

enum op operator_from_name(const char *name)
{
	for (int i = 0; i < OP_COUNT; i++) {
		if (strcmp(name, names[i]) == 0)
			return (enum op)i;
	}
	return OP_COUNT;
}
