#include "cli/listing.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/cli.h"

json_t *listing_text(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

/* Joins an array of texts to "a, b". */
static char *join(const json_t *array)
{
	struct strbuf text;
	strbuf_init(&text, 0);
	for (size_t i = 0; i < json_array_size(array); i++)
		strbuf_printf(&text, "%s%s", i ? ", " : "",
			      json_string_value(json_array_get(array, i)));
	return strbuf_take(&text);
}

static void add_cell(struct table *table, json_t *value)
{
	char *text = json_is_integer(value)
			     ? memory_printf("%lld", (long long)json_integer_value(value))
		     : json_is_string(value)  ? memory_strdup(json_string_value(value))
		     : json_array_size(value) ? join(value)
					      : memory_strdup("-");
	table_cell(table, text, value ? json_incref(value) : NULL);
	free(text);
}

void listing_print(const struct table_column *columns, const json_t *rows)
{
	size_t count = 0, i;
	json_t *row;
	while (columns[count].title)
		count++;
	struct table *table = table_new(columns, count);
	json_array_foreach(rows, i, row)
	{
		table_row(table);
		for (size_t k = 0; k < count; k++)
			add_cell(table, json_object_get(row, columns[k].key));
		const char *reason = json_string_value(json_object_get(row, "reason"));
		if (reason)
			table_note(table, reason);
	}
	cli_print_table(table, "table");
	table_free(table);
}
