/* Escaping and measuring text, formatting numbers for people, and tables. */
#include "report/format.h"
#include "report/table.h"
#include "report/text.h"
#include "unit_test.h"

TEST(test_line_is_harmless)
{
	static const struct {
		const char *given, *wanted;
	} rows[] = {
		{NULL, ""},
		{"plain", "plain"},
		{"two\nlines\tand\r", "two lines and "},
		{"\033[31mred", "\xEF\xBF\xBD[31mred"},
		{"\xC2\x9B"
		 "31m",
		 "\xEF\xBF\xBD"
		 "31m"},					  /* CSI as one character */
		{"a\xE2\x80\xAEz", "a\xEF\xBF\xBDz"},		  /* right-to-left override */
		{"\xC3\xA9\xE6\xBC\xA2", "\xC3\xA9\xE6\xBC\xA2"}, /* é, a Chinese character */
		{"\xFF\xFE", "\xEF\xBF\xBD\xEF\xBF\xBD"},
		{"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},		  /* overlong / */
		{"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* a surrogate */
		{"\xE6\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD"},		  /* cut short */
		{"\xF5\x80\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *line = test_keep(text_line(rows[i].given));
		assert_string_equal(line, rows[i].wanted);
	}
	char *block = test_keep(text_block("a\n\tb\033"));
	assert_string_equal(block, "a\n\tb\xEF\xBF\xBD");
}

TEST(test_columns)
{
	assert_int_equal(text_columns(""), 0);
	assert_int_equal(text_columns("abc"), 3);
	assert_int_equal(text_columns("\xC3\xA9"), 1);
	assert_int_equal(text_columns("e\xCC\x81"), 1);
	assert_int_equal(text_columns("\xE6\xBC\xA2\xE5\xAD\x97"), 4);
	assert_int_equal(text_columns("\xF0\x9F\x9A\x80"), 2);
	assert_int_equal(text_fit("\xE6\xBC\xA2\xE5\xAD\x97", 3), 3);
	assert_int_equal(text_fit("\xE6\xBC\xA2", 1), 3); /* progress */
	assert_int_equal(text_fit("", 4), 0);
}

static void check_lines(const char *text, size_t columns, const char *wanted)
{
	struct strbuf *out = test_strbuf();
	while (*text) {
		const char *line;
		size_t bytes = text_take_line(&text, columns, &line);
		strbuf_add(out, line, bytes);
		strbuf_putc(out, '|');
	}
	assert_string_equal(strbuf_text(out), wanted);
}

TEST(test_lines_break_where_words_end)
{
	check_lines("two words", 9, "two words|");
	check_lines("two words", 5, "two|words|");
	/* A comma is never alone on a line. */
	check_lines("(not-steady, not-converged, busy)", 13, "(not-steady,|not-|converged,|busy)|");
	check_lines("not-converged)", 13, "not-|converged)|");
	check_lines("resnet50-cifar-10", 10, "resnet50-|cifar-10|");
	check_lines("BatchNormalization", 15, "Batch|Normalization|");
	check_lines("unbroken", 4, "unbr|oken|");
	check_lines("--repeat", 5, "--rep|eat|");
	check_lines("-12345", 4, "-123|45|");
	check_lines("-", 1, "-|");
	check_lines("", 4, "");
}

static void check_csv(const char *text, const char *wanted)
{
	struct strbuf *out = test_strbuf();
	text_csv(text, out);
	assert_string_equal(strbuf_text(out), wanted);
}

TEST(test_escapes)
{
	struct strbuf *out = test_strbuf();
	check_csv("", "");
	check_csv("plain text", "plain text");
	check_csv("a,b", "\"a,b\"");
	check_csv("say \"x\"", "\"say \"\"x\"\"\"");
	check_csv("two\nlines", "\"two\nlines\"");
	text_html("<a href=\"x\">&'", out);
	assert_string_equal(strbuf_text(out), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
	strbuf_clear(out);
	text_markdown("a|b <c> *d*", out);
	assert_string_equal(strbuf_text(out), "a\\|b &lt;c> \\*d\\*");
	json_t *json = text_json("bad \xFF byte");
	assert_string_equal(json_string_value(json), "bad \xEF\xBF\xBD byte");
	json_decref(json);
	json = text_json(NULL);
	assert_true(json_is_null(json));
	json_decref(json);
}

TEST(test_durations)
{
	static const struct {
		double ns;
		const char *wanted;
	} rows[] = {
		{0, "0 ns"},	       {0.25, "0.2500 ns"},	{1.5, "1.500 ns"},
		{999.94, "999.9 ns"},  {999.96, "1.000 us"},	{12345, "12.35 us"},
		{1234567, "1.235 ms"}, {999999.9e3, "1.000 s"}, {1.5e9, "1.500 s"},
		{1.2e14, "120000 s"},  {3e17, "3e+08 s"},	{NAN, "-"},
		{INFINITY, "-"},       {-1.5e6, "-1.500 ms"},
	};
	char text[FORMAT_BYTES];
	for (size_t i = 0; i < COUNT(rows); i++) {
		format_duration(rows[i].ns, text, sizeof text);
		assert_string_equal(text, rows[i].wanted);
		assert_true(strlen(text) <= 10);
	}
	for (double ns = 1e-3; ns < 1e18; ns *= 1.37) {
		format_duration(ns, text, sizeof text);
		assert_true(strlen(text) <= 10);
	}
}

TEST(test_digits_follow_interval)
{
	static const struct {
		double half_width;
		const char *wanted;
	} rows[] = {
		{NAN, "1.23 ms"},    {0.5, "1.2 ms"},	  {0.05, "1.23 ms"}, {0.008, "1.235 ms"},
		{1e-4, "1.2346 ms"}, {1e-9, "1.2346 ms"}, {2, "1 ms"},
	};
	char text[FORMAT_BYTES];
	format_duration_within(83.0e6, 1.22, text, sizeof text);
	assert_string_equal(text, "80 ms");
	format_duration_within(832e3, 0.66, text, sizeof text);
	assert_string_equal(text, "830 us");
	for (size_t i = 0; i < COUNT(rows); i++) {
		format_duration_within(1234567, rows[i].half_width, text, sizeof text);
		assert_string_equal(text, rows[i].wanted);
	}
}

TEST(test_other_numbers)
{
	static const struct {
		double ratio, half_width;
		const char *wanted;
	} ratios[] = {{341.2, 0.62, "340x"}, {9.78, 1.2, "10x"},     {0.352, 0.31, "0.35x"},
		      {1.024, 0.2, "1.0x"},  {1.024, 0.02, "1.02x"}, {0.0123, 0.5, "0.012x"},
		      {1.83, 0.001, "1.83x"}};
	char text[FORMAT_BYTES];
	format_bytes(1024, text, sizeof text);
	assert_string_equal(text, "1.00 KiB");
	format_bytes(512, text, sizeof text);
	assert_string_equal(text, "512 B");
	format_bytes(1.5 * 1073741824, text, sizeof text);
	assert_string_equal(text, "1.50 GiB");
	format_rate(5231.4, NAN, text, sizeof text);
	assert_string_equal(text, "5231 /s");
	format_rate(2034.4, 0.31, text, sizeof text);
	assert_string_equal(text, "2000 /s");
	format_rate(12.345, NAN, text, sizeof text);
	assert_string_equal(text, "12.35 /s");
	format_rate(3456789, NAN, text, sizeof text);
	assert_string_equal(text, "3.457 M/s");
	format_ratio(1, text, sizeof text);
	assert_string_equal(text, "1.00x");
	format_ratio(12.34, text, sizeof text);
	assert_string_equal(text, "12.3x");
	format_ratio(0.5, text, sizeof text);
	assert_string_equal(text, "0.500x");
	for (size_t i = 0; i < COUNT(ratios); i++) {
		format_ratio_within(ratios[i].ratio, ratios[i].half_width, text, sizeof text);
		assert_string_equal(text, ratios[i].wanted);
	}
	format_percent(0.0123, text, sizeof text);
	assert_string_equal(text, "1.2 %");
	format_percent(NAN, text, sizeof text);
	assert_string_equal(text, "-");
	format_flops(2.5e11, NAN, text, sizeof text);
	assert_string_equal(text, "250 GFLOP/s");
}

static const struct table_column columns[] = {
	{"name", "name", TABLE_LEFT},
	{"count", "count", TABLE_RIGHT},
	{"what", "what", TABLE_LEFT},
};

static struct table *small_table(void)
{
	struct table *table = table_new(columns, COUNT(columns));
	table_row(table);
	table_cell(table, "caf\xC3\xA9", NULL);
	table_cell(table, "7", json_integer(7));
	table_cell(table, "short", NULL);
	table_note(table, "because | of this");
	table_row(table);
	table_cell(table, "\xE6\xBC\xA2\xE5\xAD\x97\033", NULL);
	table_cell(table, "1,234", json_integer(1234));
	table_cell(table, "words that go on and on until they have to be broken", NULL);
	table_row(table);
	table_cell(table, "lone", NULL);
	return table;
}

static void check_text(bool colour, int width, const char *wanted)
{
	struct table *table = small_table();
	struct strbuf *out = test_strbuf();
	table_render_text(table, colour, width, out);
	assert_string_equal(strbuf_text(out), wanted);
	table_free(table);
}

TEST(test_table_text)
{
	check_text(false, 0,
		   "name   count  what\n"
		   "caf\xC3\xA9       7  short\n"
		   "  because | of this\n"
		   "\xE6\xBC\xA2\xE5\xAD\x97\xEF\xBF\xBD  1,234  words that go on and on until "
		   "they have "
		   "to be broken\n"
		   "lone\n");
	check_text(true, 40,
		   "\033[1mname   count  what\033[0m\n"
		   "caf\xC3\xA9       7  short\n"
		   "  \033[2mbecause | of this\033[0m\n"
		   "\xE6\xBC\xA2\xE5\xAD\x97\xEF\xBF\xBD  1,234  words that go on and on\n"
		   "              until they have to be\n"
		   "              broken\n"
		   "lone\n");
	/* If the columns do not fit, no number is broken. */
	check_text(false, 20,
		   "caf\xC3\xA9\n"
		   "  count 7\n"
		   "  what short\n"
		   "  because | of this\n"
		   "\xE6\xBC\xA2\xE5\xAD\x97\xEF\xBF\xBD\n"
		   "  count 1,234\n"
		   "  what words that go\n"
		   "  on and on until\n"
		   "  they have to be\n"
		   "  broken\n"
		   "lone\n");
}

/* Columns that can be wrapped between words give their room before a word is broken. */
TEST(test_columns_keep_words_whole)
{
	static const struct table_column three[] = {{"layer", "layer", TABLE_LEFT},
						    {"operator", "operator", TABLE_LEFT},
						    {"attributes", "attributes", TABLE_LEFT}};
	struct table *table = table_new(three, 3);
	struct strbuf *out = test_strbuf();
	table_row(table);
	table_cell(table, "inception_3a_output", NULL);
	table_cell(table, "BatchNormalization", NULL);
	table_cell(table, "kernel_shape 3x3, strides 2x2", NULL);
	table_render_text(table, false, 54, out);
	assert_string_equal(strbuf_text(out),
			    "layer                operator            attributes\n"
			    "inception_3a_output  BatchNormalization  kernel_shape\n"
			    "                                         3x3, strides\n"
			    "                                         2x2\n");
	table_free(table);
}

TEST(test_table_markdown_and_json)
{
	struct table *table = small_table();
	struct strbuf *out = test_strbuf();
	table_render_markdown(table, out);
	assert_string_equal(
		strbuf_text(out),
		"| name | count | what |\n"
		"| --- | ---: | --- |\n"
		"| caf\xC3\xA9 | 7 | short |\n"
		"| \xE6\xBC\xA2\xE5\xAD\x97\xEF\xBF\xBD | 1,234 | words that go on and on until "
		"they have to be broken |\n"
		"| lone |  |  |\n"
		"\n"
		"- caf\xC3\xA9: because \\| of this\n");
	json_t *json = table_to_json(table);
	assert_int_equal(json_array_size(json), 3);
	const json_t *second = json_array_get(json, 1);
	assert_int_equal(json_integer_value(json_object_get(second, "count")), 1234);
	assert_true(json_is_null(json_object_get(json_array_get(json, 2), "what")));
	json_decref(json);
	table_free(table);
	table_free(NULL);
}
