/* Names of cells by the axes in which they differ. */
#include "report/labels.h"

#include <stdio.h>
#include <string.h>

#include "report/summary.h"

/* Examines the cells to which the axis applies. */
static void look(const struct axis *axis, const struct cell *const *cells, size_t count,
		 bool *varies, bool *partly)
{
	const struct cell *first = NULL;
	size_t applying = 0;

	for (size_t i = 0; i < count; i++) {
		if (!axis_applies(axis, cells[i]))
			continue;
		applying++;
		*varies = *varies || (first && !axis_equal(axis, first, cells[i]));
		first = first ? first : cells[i];
	}
	*partly = applying > 0 && applying < count;
}

struct labels labels_of(const struct cell *const *cells, size_t count)
{
	struct labels labels = {.varies = {false}};

	for (int id = 0; id < AXIS_COUNT; id++)
		look(&axes[id], cells, count, &labels.varies[id], &labels.partly[id]);
	return labels;
}

/* Adds a value. A title begins with its separator: ", batch ", " with ". */
static void add(const struct axis *axis, const struct cell *cell, char *out, size_t out_bytes)
{
	const char *title = axis->title ? axis->title : ", ";
	char text[CELL_WORD_BYTES];
	size_t used = strlen(out);

	if (!used)
		title += strspn(title, ", ");
	axis_text(axis, axis_value(axis, cell), text);
	snprintf(out + used, out_bytes - used, "%s%s%s", used && !*title ? ", " : "", title, text);
}

void label_text(const struct labels *labels, const struct cell *cell, char *out, size_t out_bytes)
{
	out[0] = '\0';
	if (labels->varies[AXIS_FRAMEWORK])
		add(&axes[AXIS_FRAMEWORK], cell, out, out_bytes);
	for (int place = 0; place < AXIS_COUNT; place++) {
		enum axis_id id = axis_in_order(place);
		bool named = labels->varies[id] || (labels->partly[id] && !axes[id].quiet);
		if (id != AXIS_FRAMEWORK && named && axis_applies(&axes[id], cell))
			add(&axes[id], cell, out, out_bytes);
	}
	if (!*out)
		add(&axes[AXIS_FRAMEWORK], cell, out, out_bytes);
}

void label_common(const struct labels *labels, const struct cell *cell, char *out, size_t out_bytes)
{
	out[0] = '\0';
	for (int place = 0; place < AXIS_COUNT; place++) {
		enum axis_id id = axis_in_order(place);
		const struct axis *axis = &axes[id];
		if (!axis->title || labels->varies[id] || labels->partly[id] ||
		    !axis_applies(axis, cell) || (axis->quiet && axis_is_default(axis, cell)))
			continue;
		add(axis, cell, out, out_bytes);
	}
}

size_t summary_comparison_key(const struct cell *cell, char key[SUMMARY_KEY_BYTES])
{
	size_t used = 0;

	for (int id = 0; id < AXIS_COUNT; id++) {
		char text[CELL_WORD_BYTES] = "";
		bool applies = axis_applies(&axes[id], cell);
		if (id == AXIS_FRAMEWORK)
			continue;
		if (applies)
			axis_text(&axes[id], axis_value(&axes[id], cell), text);
		/* Include the terminating zero, so that two texts cannot be confused with one. */
		size_t length = strlen(text) + 1;
		key[used++] = applies ? '+' : '-';
		memcpy(key + used, text, length);
		used += length;
	}
	return used;
}

void summary_comparison_title(const struct cell *cell, char *out, size_t out_bytes)
{
	size_t used = 0;
	for (int place = 0; place < AXIS_COUNT; place++) {
		const struct axis *axis = &axes[axis_in_order(place)];
		char text[CELL_WORD_BYTES];
		if (!axis->title || !axis_applies(axis, cell) ||
		    (axis->quiet && axis_is_default(axis, cell)) || used >= out_bytes)
			continue;
		axis_text(axis, axis_value(axis, cell), text);
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", axis->title, text);
	}
}
