/* Tests the option table: parsing, its errors, help and manual page. */
#include "base/options.h"
#include "unit_test.h"

#define ARGUMENTS_MAX 80

struct values {
	bool quiet, all;
	const char *output;
	struct option_list frameworks;
	long long batch, seed, memory;
	const char *stage;
};

static const char *const stages[] = {"forward", "forward-backward", "train", NULL};

static const struct option rows[] = {
	{.name = "quiet",
	 .letter = 'q',
	 .kind = OPTION_FLAG,
	 .help = "say less",
	 .offset = offsetof(struct values, quiet)},
	{.name = "all",
	 .letter = 'a',
	 .kind = OPTION_FLAG,
	 .help = "take everything",
	 .offset = offsetof(struct values, all)},
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_STRING,
	 .metavar = "FILE",
	 .help = "write to FILE",
	 .offset = offsetof(struct values, output)},
	{.name = "framework",
	 .letter = 'f',
	 .kind = OPTION_LIST,
	 .help = "frameworks to run",
	 .offset = offsetof(struct values, frameworks)},
	{.name = "batch",
	 .letter = 'b',
	 .kind = OPTION_INT,
	 .min = 1,
	 .max = 65536,
	 .help = "examples per step",
	 .offset = offsetof(struct values, batch)},
	{.name = "seed",
	 .kind = OPTION_INT,
	 .help = "seed of everything random",
	 .offset = offsetof(struct values, seed)},
	{.name = "memory",
	 .kind = OPTION_MIB,
	 .min = 16,
	 .max = 1 << 30,
	 .hidden = true,
	 .offset = offsetof(struct values, memory)},
	{.name = "stage",
	 .letter = 's',
	 .kind = OPTION_CHOICE,
	 .choices = stages,
	 .help = "what one step does",
	 .offset = offsetof(struct values, stage)},
	{.name = "debug-crash",
	 .kind = OPTION_FLAG,
	 .hidden = true,
	 .offset = offsetof(struct values, all)},
	{.name = NULL},
};

static const struct command_syntax syntax = {
	.name = "run",
	.arguments = "[SUITE ...]",
	.summary = "Measure frameworks",
	.description = "A first paragraph that is long enough to be filled over more than one line "
		       "of the terminal.\n\n  prony run -f all\n\n.dot and 'quote and back\\slash",
	.options = rows,
};

struct outcome {
	struct values values;
	const char *positional[ARGUMENTS_MAX];
	size_t positional_count;
	bool help_wanted;
	struct error err;
	enum prony_status status;
};

/* Splits `line` at blanks in place and parses it. */
static void parse_line(char *line, struct outcome *out)
{
	char *argv[ARGUMENTS_MAX + 1] = {(char[]){"run"}};
	int argc = 1;
	char *rest = NULL;

	*out = (struct outcome){.values = {.batch = -7, .stage = "default"},
				.positional_count = 99};
	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	out->status = options_parse(&syntax, argc, argv, &out->values, out->positional,
				    &out->positional_count, &out->help_wanted, &out->err);
}

TEST(accepts_every_form)
{
	struct outcome out;
	char line[] = "one -qa --output=a=b -f pytorch,jax two --framework native -b16 --seed -5 "
		      "-s train - -- --quiet -x";

	parse_line(line, &out);
	assert_int_equal(out.status, PRONY_OK);
	assert_true(out.values.quiet && out.values.all && !out.help_wanted);
	assert_string_equal(out.values.output, "a=b");
	assert_int_equal(out.values.frameworks.count, 2);
	assert_string_equal(out.values.frameworks.values[0], "pytorch,jax");
	assert_string_equal(out.values.frameworks.values[1], "native");
	assert_int_equal(out.values.batch, 16);
	assert_int_equal(out.values.seed, -5);
	assert_ptr_equal(out.values.stage, stages[2]);
	assert_int_equal(out.positional_count, 5);
	assert_string_equal(out.positional[0], "one");
	assert_string_equal(out.positional[1], "two");
	assert_string_equal(out.positional[2], "-");
	assert_string_equal(out.positional[3], "--quiet");
	assert_string_equal(out.positional[4], "-x");
}

TEST(more_accepted_forms)
{
	struct outcome out;

	parse_line((char[]){"-qo file --output= -b 1 --batch 65536"}, &out);
	assert_int_equal(out.status, PRONY_OK);
	assert_string_equal(out.values.output, "");
	assert_int_equal(out.values.batch, 65536);
	parse_line((char[]){""}, &out);
	assert_int_equal(out.status, PRONY_OK);
	assert_int_equal(out.positional_count, 0);
	assert_int_equal(out.values.batch, -7);
	parse_line((char[]){"--output=--odd"}, &out);
	assert_string_equal(out.values.output, "--odd");
	parse_line((char[]){"--debug-crash"}, &out);
	assert_true(out.values.all);
	parse_line((char[]){"--memory 1536"}, &out);
	assert_int_equal(out.values.memory, 1536);
	parse_line((char[]){"--memory=512MiB"}, &out);
	assert_int_equal(out.values.memory, 512);
	parse_line((char[]){"--memory 2G"}, &out);
	assert_int_equal(out.values.memory, 2048);
}

TEST(help_is_noticed)
{
	static const char *const lines[] = {"--help", "-h", "-qh", "x --help --nonsense"};
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct outcome out;
		char line[64];
		snprintf(line, sizeof(line), "%s", lines[i]);
		parse_line(line, &out);
		assert_int_equal(out.status, PRONY_OK);
		assert_true(out.help_wanted);
		assert_false(out.values.quiet);
	}
	struct outcome out;
	parse_line((char[]){"-- --help"}, &out);
	assert_false(out.help_wanted);
}

TEST(errors_name_option_and_remedy)
{
	static const struct {
		const char *line, *texts[3];
	} wrong[] = {
		{"--framewrk x",
		 {"unknown option --framewrk", "did you mean --framework?", "--help"}},
		{"--Output x", {"did you mean --output?"}},
		{"--hepl", {"did you mean --help?"}},
		{"--debug-crush", {"unknown option --debug-crush", "prony run --help"}},
		{"--totally-else", {"unknown option --totally-else", "prony run --help"}},
		{"--framewrk=x", {"unknown option --framewrk;", "did you mean --framework?"}},
		{"-z", {"unknown option -z", "prony run --help"}},
		{"-qz", {"unknown option -z", "'-qz'"}},
		{"--output", {"--output needs a value", "--output FILE"}},
		{"-o", {"--output needs a value"}},
		{"--output --quiet", {"--output needs a value", "found --quiet"}},
		{"--quiet=yes", {"--quiet takes no value", "=yes"}},
		{"--batch 0", {"--batch: 0 is out of range", "1 to 65536"}},
		{"--batch 65537", {"out of range"}},
		{"--batch 12x", {"--batch: '12x' is not an integer"}},
		{"--batch=", {"'' is not an integer"}},
		{"--batch 1GiB", {"'1GiB' is not an integer"}},
		{"--memory 1TiB", {"--memory: '1TiB' is not a size", "512MiB, 2GiB"}},
		{"--memory GiB", {"'GiB' is not a size"}},
		{"--memory 8MiB", {"--memory: 8MiB is out of range"}},
		{"--memory 9007199254740993G", {"out of range"}},
		{"--seed 99999999999999999999", {"out of range"}},
		{"-s trian",
		 {"--stage: unknown value 'trian'", "did you mean 'train'?",
		  "forward, forward-backward, train"}},
		{"-s xyzzyplugh", {"unknown value 'xyzzyplugh'; use one of forward"}},
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct outcome out;
		char line[128];
		snprintf(line, sizeof(line), "-q -f a %s", wrong[i].line);
		parse_line(line, &out);
		assert_int_equal(out.status, PRONY_USAGE);
		assert_int_equal(out.err.code, PRONY_USAGE);
		for (size_t t = 0; t < 3 && wrong[i].texts[t]; t++)
			if (!strstr(out.err.text, wrong[i].texts[t]))
				fail_msg("'%s': no '%s' in '%s'", wrong[i].line, wrong[i].texts[t],
					 out.err.text);
		/* Nothing was stored. */
		assert_false(out.values.quiet);
		assert_int_equal(out.values.frameworks.count, 0);
		assert_int_equal(out.positional_count, 99);
	}
}

TEST(too_many_list_values)
{
	struct outcome out;
	char line[1024] = "";

	for (size_t i = 0; i <= OPTION_LIST_MAX; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "-fx ");
	parse_line(line, &out);
	assert_int_equal(out.status, PRONY_USAGE);
	assert_has(out.err.text, "commas");
}

TEST(help_text)
{
	static const char expected[] =
		"Usage: prony run [options] [SUITE ...]\n"
		"\n"
		"Measure frameworks\n"
		"\n"
		"A first paragraph that is long enough to be filled over more than one line of\n"
		"the terminal.\n"
		"\n"
		"  prony run -f all\n"
		"\n"
		".dot and 'quote and back\\slash\n"
		"\n"
		"Options:\n"
		"  -q, --quiet                 say less\n"
		"  -a, --all                   take everything\n"
		"  -o, --output FILE           write to FILE\n"
		"  -f, --framework LIST        frameworks to run (repeatable)\n"
		"  -b, --batch N               examples per step (1 to 65536)\n"
		"      --seed N                seed of everything random\n"
		"  -s, --stage WORD            what one step does: forward (default),\n"
		"                              forward-backward, train\n"
		"  -h, --help                  show this help\n";
	struct strbuf *out = test_strbuf();
	options_help(&syntax, 120, out);
	assert_string_equal(strbuf_text(out), expected);
	strbuf_clear(out);
	options_help(&syntax, 40, out);
	assert_has(strbuf_text(out), "  -s, --stage WORD\n"
				     "        what one step does: forward\n"
				     "        (default), forward-backward,\n"
				     "        train\n");
}

TEST(manual_text)
{
	struct strbuf *out = test_strbuf();

	options_manual(&syntax, out);
	const char *text = strbuf_text(out);
	assert_memory_equal(text, ".SS prony run [options] [SUITE ...]\nMeasure frameworks.\n", 56);
	assert_has(text, ".PP\n.nf\n  prony run \\-f all\n.fi\n");
	assert_has(text, "\n\\&.dot and 'quote and back\\eslash\n");
	assert_has(text, ".TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR\n"
			 "write to FILE.\n");
	assert_lacks(text, "debug");
}
