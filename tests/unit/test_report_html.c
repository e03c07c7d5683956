/* The HTML page: complete, self-contained, and nothing of what frameworks said becomes markup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "report/html.h"
#include "report_fixture.h"

/* A bundle that tries to end its own element; strings of JavaScript stay what they are. */
static const char bundle[] = "window.vegaEmbed=function(){return '</SCRIPT><!-- x';};";

static char *folder;

/* `factor`: of mxnet's forward step in the last run. */
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
	assert_int_equal(html_report(borrowed, runs, page, &err), PRONY_OK);
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

static int setup(void **state)
{
	struct error err = ERROR_INIT;
	(void)state;
	if (directory_make_temporary("prony-html", &folder, &err) != PRONY_OK)
		return -1;
	return setenv("PRONY_SHARE", folder, 1);
}

static int teardown(void **state)
{
	struct error err = ERROR_INIT;
	(void)state;
	directory_remove(folder, &err);
	free(folder);
	return 0;
}

static void write_bundle(void)
{
	struct error err = ERROR_INIT;
	char *path = path_join(folder, "vega-bundle.js");
	assert_int_equal(file_write_atomic(path, bundle, strlen(bundle), &err), PRONY_OK);
	free(path);
}

static void test_without_bundle(void **state)
{
	struct strbuf page;
	(void)state;
	make_page(1, &page);
	assert_non_null(strstr(page.text, "The charts are missing"));
	assert_non_null(strstr(page.text, "tools/setup"));
	assert_non_null(strstr(page.text, "2.11 ms"));
	assert_null(strstr(page.text, "vegaEmbed"));
	assert_null(strstr(page.text, "<figure"));
	strbuf_release(&page);
}

static void test_complete(void **state)
{
	static const char *const wanted[] = {
		"lenet, mnist-sample, train with momentum, batch 64, cpu, fp32",
		"parity: 7 of 8 cells did the same work",
		"1 did not and is not ranked; 2 never came to the gate",
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
	struct strbuf page;
	(void)state;
	write_bundle();
	make_page(1, &page);
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if (!strstr(page.text, wanted[i]))
			fail_msg("the page lacks: %s", wanted[i]);
	/* Two charts for each comparison. */
	assert_int_equal(count_of(page.text, "class=\"chart\""), 4);
	strbuf_release(&page);
}

static void test_self_contained(void **state)
{
	static const char *const unwanted[] = {
		"http:", "https:", " src=", "@import", "url(", "<link"};
	struct strbuf page;
	(void)state;
	write_bundle();
	make_page(2, &page);
	for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
		if (strstr(page.text, unwanted[i]))
			fail_msg("the page has: %s", unwanted[i]);
	assert_non_null(strstr(page.text, "default-src 'none'"));
	strbuf_release(&page);
}

static void test_nothing_becomes_markup(void **state)
{
	struct strbuf page;
	(void)state;
	write_bundle();
	make_page(1, &page);
	assert_null(strstr(page.text, "<script>alert"));
	assert_null(strstr(page.text, "<b>bold"));
	assert_null(strstr(page.text, "\033"));
	assert_non_null(strstr(page.text, "&lt;script&gt;alert(1)&lt;/script&gt;"));
	/* Four charts' data, the bundle, the page's own script: no more elements than these. */
	assert_int_equal(count_of(page.text, "<script"), 6);
	assert_int_equal(count_of(page.text, "</script"), 6);
	assert_int_equal(count_of(page.text, "</SCRIPT"), 0);
	assert_non_null(strstr(page.text, "<\\/SCRIPT><\\!-- x"));
	strbuf_release(&page);
}

static void test_specifications_parse(void **state)
{
	static const char start[] = "<script type=\"application/json\">";
	struct strbuf page;
	size_t found = 0;
	(void)state;
	write_bundle();
	make_page(2, &page);
	for (const char *at = page.text; (at = strstr(at, start)); found++) {
		at += strlen(start);
		json_t *spec = json_loadb(at, (size_t)(strstr(at, "</script>") - at), 0, NULL);
		assert_non_null(spec);
		const json_t *values = json_object_get(json_object_get(spec, "data"), "values");
		assert_true(json_array_size(values) > 0);
		assert_true(json_array_size(json_object_get(spec, "layer")) > 1);
		json_decref(spec);
	}
	assert_int_equal(found, 4);
	strbuf_release(&page);
}

static void test_two_runs(void **state)
{
	struct strbuf page;
	(void)state;
	write_bundle();
	make_page(2, &page);
	assert_non_null(strstr(page.text, "pytorch, slow, run 12"));
	assert_non_null(strstr(page.text, "pytorch, fast, run 13"));
	assert_non_null(
		strstr(page.text, "<tr class=\"differs\"><td class=\"name\">must_match.cpu_model"));
	assert_non_null(strstr(page.text, "<tr><td class=\"name\">should_match.kernel"));
	strbuf_release(&page);
}

static void test_broken_floor(void **state)
{
	struct strbuf page;
	(void)state;
	make_page(2, &page);
	assert_null(strstr(page.text, "the floor is broken"));
	strbuf_release(&page);
	make_page_with(1, 0.8, &page);
	assert_non_null(
		strstr(page.text, "<p class=\"warning\">the floor is broken by mxnet (0.804x, "));
	strbuf_release(&page);
	make_page_with(2, 0.8, &page);
	assert_int_equal(count_of(page.text, "the floor is broken"), 1);
	assert_non_null(strstr(page.text, "run 13: the floor is broken by mxnet (0.804x, "));
	strbuf_release(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_bundle),
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_self_contained),
		cmocka_unit_test(test_nothing_becomes_markup),
		cmocka_unit_test(test_specifications_parse),
		cmocka_unit_test(test_two_runs),
		cmocka_unit_test(test_broken_floor),
	};
	return cmocka_run_group_tests_name("report html", tests, setup, teardown);
}
