#include "report/break_even.h"

#include <math.h>
#include <string.h>

static const char eager[] = "pytorch"; /* most users' framework; it compiles nothing */

static size_t find(const struct summary_row *rows, size_t count, const char *name, size_t length)
{
	for (size_t i = 0; i < count; i++) {
		const char *framework = rows[i].cell->cell.framework;
		if (rows[i].comparable && strlen(framework) == length &&
		    !memcmp(framework, name, length))
			return i;
	}
	return count;
}

/* The row that starts sooner, if there is one; else count. */
static size_t rival_of(const struct summary_row *rows, size_t count, size_t row)
{
	const char *name = rows[row].cell->cell.framework;
	size_t plain = strcspn(name, "+");
	size_t rival = name[plain] ? find(rows, count, name, plain) : count;

	if (rival == count)
		rival = find(rows, count, eager, strlen(eager));
	return rival == row ? count : rival;
}

static struct starts starts_of(struct arena *arena, const struct replicates *replicates)
{
	size_t count = 0;
	double *first = arena_array(arena, replicates->means.count + 1, sizeof *first);
	double *step = arena_array(arena, replicates->means.count + 1, sizeof *step);

	for (size_t i = 0; i < replicates->means.count; i++) {
		if (replicates->records[i]->to_first_step_ns == RECORD_NONE)
			continue;
		first[count] = (double)replicates->records[i]->to_first_step_ns;
		step[count++] = replicates->means.means[i];
	}
	return (struct starts){first, step, count};
}

void break_even_fill(struct arena *arena, struct summary_row *rows,
		     const struct replicates *replicates, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t rival = rows[i].comparable ? rival_of(rows, count, i) : count;

		rows[i].break_even = (struct break_even){NAN, NAN, NAN};
		if (rival == count)
			continue;
		struct starts soon = starts_of(arena, &replicates[rival]);
		struct starts late = starts_of(arena, &replicates[i]);
		break_even_of(&soon, &late, &rows[i].break_even);
		rows[i].overtakes = rows[rival].cell;
	}
}

/* Adds a number of steps with three digits: "12300", not "1.23e+04". */
static void add_steps(const char *before, double steps, struct strbuf *out)
{
	double unit = pow(10, fmax(floor(log10(steps)) - 2, 0));

	strbuf_printf(out, "%s%.0f", before, round(steps / unit) * unit);
}

bool summary_break_even(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	bool said = false;

	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (isnan(row->break_even.steps))
			continue;
		strbuf_printf(out, "%s%s overtakes %s",
			      said ? "; " : "from the start of a process ",
			      row->cell->cell.framework, row->overtakes->cell.framework);
		add_steps(" after ", row->break_even.steps, out);
		add_steps(" steps (", row->break_even.low, out);
		add_steps(" to ", row->break_even.high, out);
		strbuf_putc(out, ')');
		said = true;
	}
	return said;
}
