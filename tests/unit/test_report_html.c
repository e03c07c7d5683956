/* The HTML page is complete and self-contained, and no text from frameworks becomes markup. */
#include "frameworks/registry.h"
#include "report/chart_internal.h"
#include "report/charts.h"
#include "report/colours.h"
#include "report/figures.h"
#include "report/html.h"
#include "report_fixture.h"
#include "unit_test.h"

/* `factor`: multiplies mxnet's forward step in the last run. */
static void make_page_with(size_t runs, double factor, struct strbuf *page)
{
	struct stored_run stored[2];
	struct summary summaries[2];
	const struct summary *borrowed[2] = {&summaries[0], &summaries[1]};
	struct error err = ERROR_INIT;
	for (size_t i = 0; i < runs; i++) {
		report_fixture_init(&stored[i], (int)i);
		for (size_t k = 0; i == runs - 1 && k < stored[i].cells[5].process_count; k++)
			stored[i].cells[5].processes[k].step_mean_ns *= factor;
		summary_init(&summaries[i], &stored[i]);
	}
	strbuf_init(page, 0);
	check(html_report(borrowed, runs, NULL, 0, page, &err), &err);
	for (size_t i = 0; i < runs; i++) {
		summary_release(&summaries[i]);
		stored_run_release(&stored[i]);
	}
}

static void make_page(size_t runs, struct strbuf *page)
{
	make_page_with(runs, 1, page);
}

static size_t count_of(const char *text, const char *what)
{
	size_t count = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		count++;
	return count;
}

TEST(test_complete)
{
	static const char *const wanted[] = {
		"<p>All comparisons: lenet, mnist-sample, batch 64, cpu, fp32</p>",
		"<h2>train with momentum</h2>",
		"parity: 7 of 8 checked cells match the reference",
		"1 did not match and is not ranked; 2 not checked",
		"unsupported",
		"onnxruntime runs the stage forward only",
		"prony framework install jax",
		"change fc2.bias",
		"431,080",
		"must_match.cpu_model",
		"Example CPU 9000, 2 cores, 8 GiB",
		"&lt;b&gt;bold&lt;/b&gt;",
		"&lt;i&gt;folded&lt;/i&gt;",
		"prony run quickstart &lt;&amp;&gt;",
		"prefers-color-scheme: dark",
	};
	SCOPED(strbuf) page;
	make_page(1, &page);
	for (size_t i = 0; i < COUNT(wanted); i++)
		if (!strstr(page.text, wanted[i]))
			fail_msg("the page lacks: %s", wanted[i]);
	/* The ratios of both comparisons; start-up, memory, power and core load of each; drift. */
	assert_int_equal(count_of(page.text, "<figure "), 10);
	assert_int_equal(count_of(page.text, "<svg "), 20);
}

TEST(test_self_contained)
{
	static const char *const unwanted[] = {"https:", " src=\"", "@import", "url(",
					       "<link",	 "<iframe", "<object", "'unsafe-eval'"};
	SCOPED(strbuf) page;
	make_page(2, &page);
	for (size_t i = 0; i < COUNT(unwanted); i++)
		if (strstr(page.text, unwanted[i]))
			fail_msg("the page has: %s", unwanted[i]);
	/* The only address is the namespace of SVG, which is never fetched. */
	assert_int_equal(count_of(page.text, "http:"),
			 count_of(page.text, "xmlns=\"http://www.w3.org/2000/svg\""));
	assert_has(page.text, "default-src 'none'");
}

TEST(test_nothing_becomes_markup)
{
	SCOPED(strbuf) page;
	make_page(1, &page);
	assert_lacks(page.text, "<script>alert");
	assert_lacks(page.text, "<b>bold");
	assert_lacks(page.text, "\033");
	assert_has(page.text, "&lt;script&gt;alert(1)&lt;/script&gt;");
	/* Only the page's own script. */
	assert_int_equal(count_of(page.text, "<script"), 1);
	assert_int_equal(count_of(page.text, "</script"), 1);
}

/* Makes figures from the summary of the fixture's first run. */
static void make_charts(struct charts *charts)
{
	SCOPED(stored_run) stored;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;
	report_fixture_init(&stored, 0);
	summary_init(&summary, &stored);
	*charts = (struct charts){.count = 0};
	charts_of_runs(&borrowed, 1, NULL, 0, charts);
}

/* In large runs few cells keep their processes. Charts that need processes omit the other cells. */
TEST(test_without_processes)
{
	SCOPED(stored_run) stored;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;
	struct charts charts = {.count = 0};
	size_t starts = 0, ratios = 0, drifts = 0;
	report_fixture_init(&stored, 0);
	summary_init(&summary, &stored);
	size_t counts[16];
	for (size_t i = 0; i < stored.cell_count; i++) {
		counts[i] = stored.cells[i].process_count;
		if (stored.cells[i].cell.stage == STAGE_FORWARD)
			stored.cells[i].process_count = 0;
	}
	charts_of_runs(&borrowed, 1, NULL, 0, &charts);
	for (size_t i = 0; i < charts.count; i++) {
		const struct chart *chart = charts.items[i];
		starts += !strncmp(chart->name, "start-up-", 9);
		ratios += !strcmp(chart->name, "ratio-to-native");
		if (strcmp(chart->name, "drift-over-the-run") != 0)
			continue;
		drifts++;
		assert_has(chart->caption, "Only the first comparisons");
	}
	assert_true(starts == 1 && ratios == 1 && drifts == 1);
	charts_release(&charts);
	for (size_t i = 0; i < stored.cell_count; i++)
		stored.cells[i].process_count = counts[i];
}

TEST(test_words)
{
	SCOPED(strbuf) page;
	make_page(1, &page);
	assert_has(page.text, "<li>train with momentum: <strong>native</strong> is the fastest "
			      "(6.20 ms a step); pytorch, the next, takes 1.58x as long (95 % "
			      "interval 1.56x to 1.61x).</li>");
	assert_has(page.text, "<li>forward: <strong>native, mxnet</strong> are tied for first, "
			      "as they cannot be told apart, with 2.10 ms a step; onnxruntime,");
	assert_has(page.text, "2 of 6 share a rank");
	/* Native shares the first rank, so the ranks do not say which of the others is first. */
	assert_lacks(page.text, "without native, the floor");
}

TEST(test_charts)
{
	SCOPED(charts) charts;
	struct strbuf *text = test_strbuf();
	make_charts(&charts);
	assert_int_equal(charts.count, 10);
	for (size_t i = 0; i < charts.count; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(charts.items[i]->name, charts.items[k]->name);
	assert_string_equal(charts.items[0]->name, "ratio-to-native");
	chart_csv(charts.items[0], text);
	assert_int_equal(strncmp(text->text, "row,floor_ratio,low,high,process_0,", 35), 0);
	assert_has(text->text, "\ntrain with momentum: native,1,1,1,");
	const struct chart *power = charts.items[3];
	assert_int_equal(strncmp(power->name, "power-lenet-mnist-sample-train", 30), 0);
	assert_string_equal(power->rows[0].label, "native");
	assert_true(power->rows[0].value == 40);
	assert_string_equal(power->rows[0].text, "40 W");
}

/* Frameworks differ in their marks, too, for those who do not see all colours. */
TEST(test_marks)
{
	struct charts charts;
	make_charts(&charts);
	const struct chart *drift = charts.items[charts.count - 1];
	assert_string_equal(drift->name, "drift-over-the-run");
	assert_int_equal(drift->series_count, 4);
	for (size_t i = 0; i < drift->series_count; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(drift->series[i].mark, drift->series[k].mark);
	charts_release(&charts);
}

/* An interval that exceeds the axis ends in an arrow at the edge, inside the picture. */
TEST(test_whiskers)
{
	SCOPED(charts) charts = {.count = 0};
	struct strbuf text;
	struct chart *chart = charts_add(&charts, CHART_BARS, "A b", "t", "c", 2);
	chart->x = (struct chart_axis){
		.title = "x", .column = "x", .measure = CHART_NS, .logarithmic = true};
	for (int i = 0; i < 2; i++) {
		struct chart_row *row = chart_row(&charts, chart, "r", "r", "#000000");
		row->value = 1e6;
		row->low = 0.9e6;
		row->high = i ? 90e6 : 1.1e6;
	}
	for (int i = 0; i < 4; i++) {
		int width = i % 2 ? CHART_WIDE : CHART_NARROW;
		chart->kind = i < 2 ? CHART_BARS : CHART_FOREST;
		strbuf_init(&text, 0);
		chart_svg(chart, width, &text);
		assert_int_equal(count_of(text.text, "fw-beyond"), 1);
		for (const char *at = text.text; (at = strstr(at, " x2=\"")); at++)
			assert_true(strtod(at + 5, NULL) <= width);
		strbuf_release(&text);
	}
	assert_string_equal(chart->name, "a-b");
	assert_string_equal(charts_add(&charts, CHART_BARS, "A-B", "", "", 0)->name, "a-b-2");
}

static double number_after(const char *text, const char *what)
{
	const char *at = strstr(text, what);
	assert_non_null(at);
	return strtod(at + strlen(what), NULL);
}

/* Without known intervals, the longest bar or dot ends at the end of the axis; the text follows it
 * in both cases. */
TEST(test_bars_without_intervals)
{
	static const double dots[] = {0.5e6, 1.25e6};
	SCOPED(charts) charts = {.count = 0};
	struct strbuf text;
	struct chart *chart = charts_add(&charts, CHART_BARS, "a", "t", "c", 2);
	chart->x = (struct chart_axis){.title = "x", .column = "x", .measure = CHART_NS};
	for (int i = 0; i < 2; i++) {
		struct chart_row *row = chart_row(&charts, chart, "r", "r", "#000000");
		row->value = 1e6 / (i + 1);
		row->text = "text";
		assert_true(isnan(row->low) && isnan(row->high));
	}
	for (int with_dots = 0; with_dots < 2; with_dots++) {
		chart->rows[0].cells = dots;
		chart->rows[0].cell_count = with_dots ? 2 : 0;
		strbuf_init(&text, 0);
		chart_svg(chart, CHART_WIDE, &text);
		const char *row = strstr(text.text, "class=\"row\""), *bar = strstr(row, "<rect ");
		double left = number_after(bar, " x=\""), length = number_after(bar, " width=\"");
		/* Everything to the right of it is for the text. */
		double end = CHART_WIDE - chart_text_width("text") - 16;
		double longest = with_dots ? length * 1.25 : length;
		assert_true(fabs(left + longest - end) < 0.2);
		const char *behind = strstr(bar, "<text");
		assert_true(fabs(number_after(behind, " x=\"") - (left + longest + 8)) < 0.2);
		strbuf_release(&text);
	}
}

/* Run numbers spread over the axis, whatever the first number is. */
TEST(test_axis_of_runs)
{
	enum { POINTS = 6 };
	SCOPED(charts) charts = {.count = 0};
	struct strbuf *text = test_strbuf();
	double first = INFINITY, last = 0;
	struct chart *chart = charts_add(&charts, CHART_LINES, "a", "t", "c", 1);
	chart->x = (struct chart_axis){
		.title = "run", .column = "run", .measure = CHART_PLAIN, .ticks_at_values = true};
	chart->y = (struct chart_axis){.title = "y", .column = "y", .measure = CHART_NS};
	struct chart_series *series = chart_series(&charts, chart, "r", "r", "#000000", POINTS);
	for (int i = 0; i < POINTS; i++)
		series->points[series->count++] = (struct chart_point){950 + 10 * i, 1e6, NAN, NAN};
	chart_svg(chart, CHART_WIDE, text);
	const char *marks = strstr(strstr(text->text, "class=\"series\""), "<polyline");
	assert_non_null(marks);
	marks = strstr(marks, "points=\"") + strlen("points=\"");
	for (int i = 0; i < POINTS; i++) {
		char *end;
		double x = strtod(marks, &end);
		first = fmin(first, x);
		last = fmax(last, x);
		strtod(end + 1, &end);
		marks = end + strspn(end, " ");
	}
	assert_true(last - first > 0.8 * CHART_WIDE);
	/* Each point has its label. */
	for (int i = 0; i < POINTS; i++) {
		char label[16];
		snprintf(label, sizeof label, ">%d</text>", 950 + 10 * i);
		assert_has(text->text, label);
	}
}

/* Curves and marks of one framework differ by its runs, up to eight, also in the legend. */
TEST(test_runs_differ)
{
	enum { RUNS = 8 };
	struct charts charts = {.count = 0};
	struct strbuf texts[RUNS];
	for (unsigned run = 0; run < RUNS; run++) {
		struct chart *chart = charts_add(&charts, CHART_LINES, "a", "t", "c", 1);
		struct chart_series *series = chart_series(&charts, chart, "r", "r", "#000000", 2);
		chart->x.title = chart->y.title = "";
		series->run = run;
		for (series->count = 0; series->count < 2; series->count++)
			series->points[series->count] =
				(struct chart_point){(double)series->count, 1, NAN, NAN};
		strbuf_init(&texts[run], 0);
		chart_svg(chart, CHART_WIDE, &texts[run]);
		assert_int_equal(count_of(texts[run].text, "stroke-dasharray"), run % 4 ? 2 : 0);
		for (unsigned other = 0; other < run; other++)
			assert_string_not_equal(texts[other].text, texts[run].text);
	}
	for (int run = 0; run < RUNS; run++)
		strbuf_release(&texts[run]);
	charts_release(&charts);
}

/* Returns the relative luminance of WCAG 2.2. */
static double luminance(const char *colour)
{
	static const double weights[] = {0.2126, 0.7152, 0.0722};
	double sum = 0;
	for (int i = 0; i < 3; i++) {
		char part[3] = {colour[1 + 2 * i], colour[2 + 2 * i], '\0'};
		double share = (double)strtol(part, NULL, 16) / 255;
		sum += weights[i] *
		       (share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4));
	}
	return sum;
}

static void check_contrast(const char *framework, const char *colour)
{
	double light = (luminance("#f5f6f8") + 0.05) / (luminance(colour) + 0.05);
	double dark = (luminance(colour) + 0.05) / (luminance("#1d2127") + 0.05);
	if (light < 3 || dark < 3)
		fail_msg("%s: %.2f on light, %.2f on dark", framework, light, dark);
}

/* Returns every framework of the tree and the options of one after the other, as many as have
 * different colours; all on one page. */
static size_t contenders(struct arena *arena, const char **names, size_t room)
{
	SCOPED(registry) registry;
	size_t count = 0, own;
	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	assert_int_equal(registry_load(&registry, NULL), PRONY_OK);
	for (size_t i = 0; i < registry.count; i++)
		if (!registry.rows[i].harness_only && !registry.rows[i].of_user)
			names[count++] = framework_spelling(&registry.rows[i], NULL, arena);
	own = count;
	names[count++] = "mine";
	names[count++] = "pytorch@nightly";
	for (size_t i = 0; i < registry.count; i++)
		for (size_t k = 0; k < registry.rows[i].option_count; k++)
			if (count < own + COLOURS_SPARE && count < room)
				names[count++] = arena_printf(arena, "%s+%s", registry.rows[i].name,
							      registry.rows[i].options[k].name);
	return count;
}

/* Colours are visible on both backgrounds of figures, and any two differ. */
TEST(test_colours)
{
	enum { ROOM = 100 };
	const char *names[ROOM], *colours[ROOM], *alone;
	SCOPED(arena) arena;
	arena_init(&arena, 0);
	size_t count = contenders(&arena, names, ROOM);
	assert_true(count > 30 && count < ROOM);
	colours_assign(names, count, colours);
	for (size_t i = 0; i < count; i++) {
		check_contrast(names[i], colours[i]);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(colours[i], colours[k]);
		/* Frameworks of the tree have the same colour on every page. */
		colours_assign(&names[i], 1, &alone);
		if (!strpbrk(names[i], "+@") && strcmp(names[i], "mine") != 0)
			assert_string_equal(alone, colours[i]);
	}
}

/* The order in which names appear does not matter. */
TEST(test_colours_are_kept)
{
	static const char *const names[] = {"pytorch+compile", "pytorch", "pytorch+eager", "mine"},
				 *const turned[] = {"mine", "pytorch+eager", "pytorch",
						    "pytorch+compile"};
	const char *colours[4], *again[4];
	colours_assign(names, 4, colours);
	colours_assign(turned, 4, again);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(colours[i], again[3 - i]);
}

/* Of pytorch's step of about 9.8 ms, 3 ms are waiting and 1 ms copying; one third of the loader's
 * time is storage. `resident`: ms of the step in the same run with resident batches; 0: not
 * measured. */
static void check_split(double resident, double storage, const double expected[6])
{
	SCOPED(stored_run) stored;
	SCOPED(summary) summary;
	SCOPED(charts) charts = {.count = 0};
	const struct summary *borrowed = &summary;
	const struct chart *input = NULL;
	report_fixture_init(&stored, 0);
	for (size_t c = 0; c < stored.cell_count; c++) {
		struct stored_cell *cell = &stored.cells[c];
		bool arrives = !strcmp(cell->cell.framework, "pytorch");
		if (cell->cell.stage != STAGE_TRAIN)
			continue;
		cell->cell.input = arrives ? INPUT_STREAM : INPUT_RESIDENT;
		if (!strcmp(cell->cell.framework, "native") && resident > 0)
			snprintf(cell->cell.framework, sizeof cell->cell.framework, "pytorch");
		cell_key(&cell->cell, cell->key);
		for (size_t p = 0; p < cell->process_count; p++) {
			struct process_record *record = &cell->processes[p];
			if (arrives) {
				record->input_wait_ns = 3e6;
				record->input_copy_ns = 1e6;
				record->load_storage_ns = storage;
				record->load_decode_ns = 4e6;
			} else if (resident > 0) {
				record->step_mean_ns = resident * 1e6;
			}
		}
	}
	summary_init(&summary, &stored);
	charts_of_runs(&borrowed, 1, NULL, 0, &charts);
	for (size_t i = 0; i < charts.count; i++)
		if (!strncmp(charts.items[i]->name, "input-", 6)) {
			assert_null(input);
			input = charts.items[i];
		}
	assert_non_null(input);
	assert_int_equal(input->row_count, 1);
	double sum = 0;
	for (size_t i = 0; i < 6; i++) {
		double value = input->rows[0].cells[i] / 1e6;
		sum += value;
		if (!(fabs(value - expected[i]) < 0.05))
			fail_msg("%s: %g, not %g", input->parts[i].name, value, expected[i]);
	}
	assert_true(fabs(sum - input->rows[0].value / 1e6) < 1e-6);
}

TEST(test_input)
{
	check_split(0, 2e6, (double[]){5.8, 0, 1, 1, 2, 0});
	check_split(5, 2e6, (double[]){5, 0.8, 1, 1, 2, 0});
	check_split(7, 2e6, (double[]){5.8, 0, 1, 1, 2, 0});
	check_split(0, NAN, (double[]){5.8, 0, 1, 0, 0, 3});
}

/* A machine with expensive and cheap GPUs, and the prices of its devices. */
static const char priced_machine[] =
	"{\"must_match\": {\"cpu_model\": \"Example CPU 9000\", \"cores\": 4, "
	"\"cores_usable\": 2, \"gpus\": [\"GPU 10\", \"GPU 20\", \"GPU 30\"]}}";
static const char prices[] = "devices:\n"
			     "  - {name: Box, match: Example CPU, hourly: 4, currency: EUR}\n"
			     "  - {name: Small, match: GPU 10, hourly: 1, currency: EUR}\n"
			     "  - {name: Large, match: GPU 20, hourly: 10, currency: EUR}\n"
			     "  - {name: Foreign, match: GPU 30, hourly: 10, currency: USD}\n";

/* `called` NULL: the page has no price for it. */
static void check_price(const char *device, const char *called, double hourly)
{
	SCOPED(stored_run) stored;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;
	struct strbuf *page = test_strbuf();
	char wanted[200];
	report_fixture_init(&stored, 0);
	stored.meta.environment = priced_machine;
	for (size_t c = 0; c < stored.cell_count; c++)
		snprintf(stored.cells[c].cell.device, sizeof stored.cells[c].cell.device, "%s",
			 device);
	summary_init(&summary, &stored);
	assert_int_equal(html_report(&borrowed, 1, NULL, 0, page, NULL), PRONY_OK);
	snprintf(wanted, sizeof wanted, "<td class=\"figure\">%.0f</td><td>EUR</td>",
		 figure_value(FIGURE_SAMPLES, &summary.rows[0]).value * 3600 / hourly);
	if (called && !strstr(page->text, wanted))
		fail_msg("%s: no %s", device, wanted);
	snprintf(wanted, sizeof wanted, "<td>%s</td>", called ? called : "EUR");
	assert_int_equal(strstr(page->text, wanted) != NULL, called != NULL);
}

/* Two GPUs cost the sum of both, each with its own price; one of four cores costs a quarter. */
TEST(test_money)
{
	char *folder, *own, *path;
	assert_int_equal(directory_make_temporary("test-money-", &folder, NULL), PRONY_OK);
	setenv("XDG_CONFIG_HOME", folder, 1);
	own = test_keep(path_join(folder, "prony"));
	path = test_keep(path_join(own, "devices.yaml"));
	assert_int_equal(directory_make(own, NULL), PRONY_OK);
	assert_int_equal(file_write_atomic(path, prices, strlen(prices), NULL), PRONY_OK);
	check_price("cuda:0", "Small", 1);
	check_price("cuda:1", "Large", 10);
	check_price("cuda:0+1", "Small + Large", 11);
	check_price("cuda:0+2", NULL, 0);
	check_price("cuda:3", NULL, 0);
	check_price("cpu", "2 of 4 cores of Box", 2);
	check_price("cpu:1", "1 of 4 cores of Box", 1);
	check_price("cpu:4", "Box", 4);
	unsetenv("XDG_CONFIG_HOME");
	directory_remove(folder, NULL);
	free(folder);
}

TEST(test_two_runs)
{
	SCOPED(strbuf) page;
	make_page(2, &page);
	assert_has(page.text, "pytorch, slow, run 12");
	assert_has(page.text, "pytorch, fast, run 13");
	assert_has(page.text, "<tr class=\"differs\"><td class=\"name\">must_match.cpu_model");
	assert_has(page.text, "<tr><td class=\"name\">should_match.kernel");
}

TEST(test_broken_floor)
{
	struct strbuf page;
	make_page(2, &page);
	assert_lacks(page.text, "faster than native");
	strbuf_release(&page);
	make_page_with(1, 0.8, &page);
	assert_has(page.text, "<p class=\"warning\">faster than native: mxnet (0.804x, ");
	strbuf_release(&page);
	make_page_with(2, 0.8, &page);
	assert_int_equal(count_of(page.text, "faster than native"), 1);
	assert_has(page.text, "run 13: faster than native: mxnet (0.804x, ");
	strbuf_release(&page);
}

/* If an interval is wide, the page gives the possible ranks and names no winner. */
TEST(test_unknown_order)
{
	SCOPED(stored_run) stored;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;
	struct strbuf *page = test_strbuf();
	struct error err = ERROR_INIT;
	report_fixture_init(&stored, 0);
	for (size_t i = 0; i < stored.cells[5].process_count; i++)
		stored.cells[5].processes[i].step_mean_ns *= i % 2 ? 3 : 1.0 / 3;
	summary_init(&summary, &stored);
	check(html_report(&borrowed, 1, NULL, 0, page, &err), &err);
	assert_has(page->text, ": <strong>mxnet</strong> is fastest by the figures (2 ms); "
			       "native (");
	assert_has(page->text, ">1-4</td>");
	assert_has(page->text, ">2-3</td>");
	assert_has(page->text, "<p class=\"warning\">no rank for mxnet, native, "
			       "onnxruntime, pytorch: ");
	assert_lacks(page->text, "mxnet</strong> is the fastest");
}

/* A row that stands for several cells has the values that they share, and is hidden when all of
 * them are hidden. */
TEST(test_alike)
{
	SCOPED(stored_run) stored;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;
	struct strbuf *page = test_strbuf();
	struct error err = ERROR_INIT;
	report_fixture_init(&stored, 0);
	struct stored_cell *cell = &stored.cells[stored.cell_count++], *alike = cell - 1;
	assert_int_equal(alike->status, CELL_MISSING);
	*cell = *alike;
	cell->cell.stage = STAGE_TRAIN;
	cell_key(&cell->cell, cell->key);
	summary_init(&summary, &stored);
	check(html_report(&borrowed, 1, NULL, 0, page, &err), &err);
	const char *ledger = strstr(page->text, "<section id=\"ledger\""),
		   *end = strstr(ledger, "</section>");
	const char *row = strstr(ledger, "<tr class=\"\" data-framework=\"jax\"");
	assert_non_null(row);
	assert_true(row < end);
	char *text = test_keep(strndup(row, (size_t)(strstr(row, "</tr>") - row)));
	assert_has(text, ", and 1 more alike");
	assert_has(text, " data-network=\"lenet\"");
	assert_has(text, " data-status=\"missing\"");
	assert_lacks(text, " data-stage=");
	assert_lacks(text, " data-optimiser=");
}

/* Makes the page of eight frameworks in that many comparisons. */
static void make_wide_page(int comparisons, struct strbuf *page)
{
	SCOPED(stored_run) stored;
	SCOPED(summary) summary;
	const struct summary *borrowed = &summary;
	struct error err = ERROR_INIT;
	report_fixture_init(&stored, 0);
	strbuf_init(page, 0);
	for (size_t i = 0; i < stored.cell_count; i++) {
		struct cell *cell = &stored.cells[i].cell;
		if (strcmp(cell->framework, "native") != 0)
			snprintf(cell->framework, sizeof cell->framework, "pytorch@%zu", i);
		if (cell->stage == STAGE_FORWARD)
			cell->batch = 1 + (int)i % (comparisons - 1);
	}
	summary_init(&summary, &stored);
	assert_int_equal(summary.comparison_count, comparisons);
	check(html_report(&borrowed, 1, NULL, 0, page, &err), &err);
}

/* If the frameworks exceed the page width they are in rows; none crosses the edge of the paper. */
TEST(test_many_frameworks)
{
	struct strbuf page;
	for (int comparisons = 2; comparisons <= 6; comparisons += 4) {
		make_wide_page(comparisons, &page);
		/* Of six, one has a missing framework only. */
		assert_int_equal(count_of(page.text, "<th scope=\"col\" class=\"figure work\""),
				 comparisons == 6 ? 5 : 2);
		assert_int_equal(count_of(page.text, "<th scope=\"row\"><span class=\"swatch\""),
				 8);
		assert_has(page.text, "<tr data-framework=\"pytorch@6\"><th scope=\"row\">");
		strbuf_release(&page);
	}
}

/* The fastest have a sign, not only a colour; if two share the first place, both have it. */
TEST(test_first_is_marked)
{
	SCOPED(strbuf) page;
	make_page(1, &page);
	assert_int_equal(count_of(page.text, "<span role=\"img\" aria-label=\"first\">*</span> "),
			 3);
	assert_int_equal(count_of(page.text, "class=\"figure best"), 3);
}

/* Makes the page of a run after a change of its cells. */
static void make_changed_page(void (*change)(struct stored_cell *cell), struct strbuf *page)
{
	enum { CELLS_MAX = 16 };
	struct stored_run stored;
	struct summary summary;
	const struct summary *borrowed = &summary;
	size_t counts[CELLS_MAX];
	report_fixture_init(&stored, 0);
	for (size_t i = 0; i < stored.cell_count; i++) {
		counts[i] = stored.cells[i].process_count;
		change(&stored.cells[i]);
	}
	summary_init(&summary, &stored);
	strbuf_init(page, 0);
	assert_int_equal(html_report(&borrowed, 1, NULL, 0, page, NULL), PRONY_OK);
	summary_release(&summary);
	for (size_t i = 0; i < stored.cell_count; i++)
		stored.cells[i].process_count = counts[i];
	stored_run_release(&stored);
}

static void fail_others(struct stored_cell *cell)
{
	if (cell->status == CELL_OK && strcmp(cell->cell.framework, "native") != 0)
		cell->status = CELL_CRASHED;
}

static void fail_all(struct stored_cell *cell)
{
	cell->status = CELL_CRASHED;
}

static void stop_all(struct stored_cell *cell)
{
	cell->status = CELL_PENDING;
	cell->process_count = cell->process_count < 2 ? cell->process_count : 2;
}

TEST(nothing_to_rank_has_its_reason)
{
	struct strbuf page;
	make_changed_page(fail_all, &page);
	assert_has(page.text, "<li>No cell is ok: see <a");
	strbuf_release(&page);
	make_changed_page(stop_all, &page);
	assert_has(page.text, "<li>The run is not finished: no comparison has");
	strbuf_release(&page);
}

/* A framework without another one has no rank, no sign of the first, and no figure of one bar. */
TEST(test_alone)
{
	struct strbuf page;
	make_changed_page(fail_others, &page);
	assert_has(page.text, "No comparison has two frameworks to rank.");
	assert_has(page.text, "<td class=\"figure\">-</td><td class=\"strong\">native</td>");
	assert_lacks(page.text, "<td class=\"figure\">1</td>");
	assert_lacks(page.text, "aria-label=\"first\"");
	assert_lacks(page.text, "<tr class=\"best\"");
	assert_lacks(page.text, "geometric mean of 2");
	assert_lacks(page.text, "The deeper the orange");
	assert_lacks(page.text, "<figure id=\"ratio");
	assert_lacks(page.text, "<figure id=\"memory");
	assert_lacks(page.text, "<figure id=\"power");
	assert_has(page.text, "<figure id=\"start-up");
	strbuf_release(&page);
}

static void only_gate(struct stored_cell *cell)
{
	cell->process_count = 0;
	if (cell->status == CELL_OK)
		cell->flags |= CELL_FLAG_GATE_ONLY;
}

/* What passed the gate and was not timed did not fail, and has no columns of unknown figures. */
TEST(test_gate_only)
{
	struct strbuf page;
	make_changed_page(only_gate, &page);
	assert_has(page.text, "<li>Nothing was timed: ");
	assert_has(page.text, "<td class=\"good\">ok (");
	assert_lacks(page.text, "<td class=\"bad\">ok");
	assert_has(page.text, "class=\"figure good\" title=\"\">same work</td>");
	assert_has(page.text, "<td class=\"bad\">mismatch");
	assert_lacks(page.text, "geometric mean of 2");
	assert_lacks(page.text, ">95 % interval</th>");
	assert_lacks(page.text, ">memory</th>");
	strbuf_release(&page);
}

/* Of more comparisons without a proved order than have a sentence, the leaders are counted. */
TEST(test_many_unproved)
{
	enum { COMPARISONS = 6 };
	struct stored_run stored;
	struct summary summary;
	const struct summary *borrowed = &summary;
	struct strbuf *page = test_strbuf();
	report_fixture_init(&stored, 0);
	const struct stored_cell fast = stored.cells[5], slow = stored.cells[0];
	struct stored_cell *own = stored.cells, cells[2 * COMPARISONS];
	for (int i = 0; i < 2 * COMPARISONS; i++) {
		cells[i] = i % 2 ? slow : fast;
		cells[i].cell.stage = STAGE_FORWARD;
		cells[i].cell.batch = 1 + i / 2;
		cells[i].process_count = 1;
		snprintf(cells[i].cell.framework, sizeof cells[i].cell.framework,
			 i % 2 ? "xla" : "native");
	}
	size_t count = stored.cell_count;
	stored.cells = cells;
	stored.cell_count = 2 * COMPARISONS;
	summary_init(&summary, &stored);
	assert_int_equal(html_report(&borrowed, 1, NULL, 0, page, NULL), PRONY_OK);
	assert_has(page->text, "<li>In 3 more comparisons, the fastest is not proved; by the "
			       "figures it is native in 3.</li>");
	summary_release(&summary);
	stored.cells = own;
	stored.cell_count = count;
	stored_run_release(&stored);
}
