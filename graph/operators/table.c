/* The table of operators: names and rows; the rows are in the other files of this folder. */
#include "graph/operators/operator.h"

#include <assert.h>
#include <string.h>

static const char *const names[OP_COUNT] = {
#define X(id, text) [OP_##id] = text,
	PRONY_OPERATORS(X)
#undef X
};

static const struct operator_row *const rows[OP_COUNT] = {
#define X(id, text) [OP_##id] = &row_##id,
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

const struct operator_row *operator_row(enum op op)
{
	assert((unsigned)op < OP_COUNT);
	return rows[op];
}

static void set_default(const struct attribute_row *row, struct attributes *out)
{
	void *member = (char *)out + row->offset;
	/* ONNX's value for a real number may be too large for an integer. */
	int64_t whole = row->kind == ATTRIBUTE_REAL ? 0 : (int64_t)row->otherwise;

	switch (row->kind) {
	case ATTRIBUTE_INT:
	case ATTRIBUTE_WORD:
		*(int64_t *)member = whole;
		break;
	case ATTRIBUTE_INTS2:
	case ATTRIBUTE_INTS4:
		for (int i = 0; i < (row->kind == ATTRIBUTE_INTS2 ? 2 : 4); i++)
			((int64_t *)member)[i] = whole;
		break;
	case ATTRIBUTE_INTS:
		*(struct int_list *)member = (struct int_list){.count = 0};
		break;
	case ATTRIBUTE_REAL:
		*(double *)member = row->otherwise;
		break;
	case ATTRIBUTE_BOOL:
		*(bool *)member = whole != 0;
		break;
	}
}

void operator_default_attributes(enum op op, struct attributes *out)
{
	*out = (struct attributes){.kernel = {0, 0}};
	for (const struct attribute_row *row = operator_row(op)->attributes; row->name; row++)
		set_default(row, out);
}
